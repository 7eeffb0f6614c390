"""A scorer that is quick, the same everywhere, and keeps count of what it was asked; and files to score."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from strays.engines import LocalEngine
from strays.jobs.score import RowProgress, ScoreSummary, score_files
from strays.model import RawScores, Scores
from strays.model.calibration import Calibration, Threshold, threshold


class StandIn:
    """Scores are hashes of the texts; held-out normals are evenly spread, so that p-values are 1 - score."""

    def __init__(self, fingerprint: str = "one", **rule: float) -> None:
        self.fingerprint = fingerprint
        self.encoder_identity: dict[str, Any] = {"fingerprint": "hashes"}
        self.threshold_: Threshold = threshold(**(rule or {"max_false_alarms": 0.1}))  # type: ignore[arg-type]
        self.calibration = Calibration(np.arange(100) / 100, np.arange(100) / 100)
        self.asked: list[list[str]] = []

    @property
    def estimates(self) -> bool:
        return False

    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        self.asked.append(list(texts))
        return np.array([int.from_bytes(hashlib.md5(text.encode()).digest()[:4]) / 2**32 for text in texts])

    def raw_scores(self, texts: list[str], *, progress: object = None) -> RawScores:
        return RawScores(self.anomaly_score(texts))

    def flag(self, scores: np.ndarray) -> Scores:
        return Scores(scores, self.calibration.p_value(scores), self.calibration.flagged(self.threshold_, scores))

    @property
    def n_asked(self) -> int:
        return sum(map(len, self.asked))


class Estimating(StandIn):
    """Sends every third text to a full model, as a cascade does, by what the text is."""

    @property
    def estimates(self) -> bool:
        return True

    def raw_scores(self, texts: list[str], *, progress: object = None) -> RawScores:
        scores = super().raw_scores(texts).anomaly_score
        by_full = np.array([sum(text.encode()) % 3 == 0 for text in texts], dtype=bool)
        return RawScores(np.where(by_full, scores, np.minimum(scores, 0.5)), by_full)


class Stop(BaseException):
    """Stands for whatever ends a process."""


def stopping(model: StandIn, calls: int) -> StandIn:
    """The model, which ends the process when it is asked for one call more than allowed."""
    ask = model.raw_scores

    def raw_scores(texts: list[str], *, progress: object = None) -> RawScores:
        if len(model.asked) == calls:
            raise Stop
        return ask(texts)

    model.raw_scores = raw_scores
    return model


def when_done(n: int, what: Callable[[], object]) -> RowProgress:
    """Does something once, when so many rows are done."""
    waiting = [what]

    @contextmanager
    def bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
        yield lambda done, total: waiting.pop()() if waiting and done >= n else None

    return RowProgress(bar)


def stop() -> None:
    raise Stop


def run(source: str | Path, out: str | Path, model: StandIn | None = None, **options: Any) -> ScoreSummary:
    options = {"part_rows": 10, "engine": LocalEngine()} | options
    return score_files(model or StandIn(), str(source), str(out), **options)


def rows(n: int, mark: str = "") -> list[dict[str, str]]:
    return [{"id": f"{mark}{i}", "text": f"text {mark} number {i}"} for i in range(n)]


# The ids of the fixture `folder`, in order.
ALL = [row["id"] for mark, n in (("a", 25), ("b", 13), ("c", 30)) for row in rows(n, mark)]


def write(path: Path, some: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(some), path, row_group_size=7)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in some))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(some[0]))
            writer.writeheader()
            writer.writerows(some)
    return path


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def read_parts(folder: Path) -> list[dict]:
    """All rows of the parts, in the order of the manifest."""
    from strays.jobs.score.manifest import NAME
    from strays.tables import open_table

    lines = [json.loads(line) for line in (folder / NAME).read_text().splitlines()[1:]]
    parts = sorted((line["file"], line["first_row"], line["out"]) for line in lines if line["kind"] == "part")
    return [row for _, _, out in parts for row in open_table(str(folder / out)).read().to_pylist()]
