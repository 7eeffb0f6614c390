"""Mutated tables of every format: scoring one either says clearly what is wrong with it, or gives all its rows back.

Worked means: opened, its column of texts found, scored by a quick stand-in for a model into files of all formats and
into a folder; as many rows out as in, in their order and with their other columns, and nothing else left lying around.
Refused means a StraysError that names the file.

    python -m benchmarks.attacks.tables --n 10000 --seed 0
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.attacks.mutating import Rng, flipped, pick
from benchmarks.attacks.parquet_mutations import PARQUET, PARQUET_BOMBS, base
from benchmarks.attacks.runner import Attack, LeftOverError, WrongResultError, main
from benchmarks.attacks.table_mutations import LARGE, ON_LINES, base_rows
from benchmarks.attacks.xlsx_mutations import XLSX, XLSX_BOMBS
from benchmarks.attacks.xlsx_mutations import base as xlsx_base
from strays.engines.local import LocalEngine
from strays.errors import StraysError
from strays.jobs.score import score_files
from strays.model import RawScores, Scores
from strays.model.calibration import Calibration, Threshold
from strays.tables import open_table

OUTPUTS = ("out.csv", "out.jsonl", "out.parquet", "parts/", "out.xlsx", "out.json")
LINES = ("csv", "tsv", "jsonl", "json", "txt")
# Beyond this the values are not compared one by one.
MOST_COMPARED = 200_000
# Kinds that take long come once in so many rounds of the others.
ROUNDS = 12


class StandIn:
    """Scores are hashes of the texts."""

    fingerprint = "stand-in"
    encoder_identity: ClassVar[dict[str, Any]] = {"fingerprint": "stand-in"}
    estimates = False
    threshold_ = Threshold("max_false_alarms", 0.1)
    calibration = Calibration(np.arange(100) / 100, np.arange(100) / 100)

    def anomaly_score(self, texts: Sequence[str], *, progress: object = None) -> np.ndarray:
        """One float for each text."""
        return np.array([zlib.crc32(text.encode("utf-8", "surrogatepass")) / 2**32 for text in texts])

    def raw_scores(self, texts: Sequence[str], *, progress: object = None) -> RawScores:
        """The same, as a job takes them."""
        return RawScores(self.anomaly_score(texts))

    def flag(self, scores: np.ndarray) -> Scores:
        """P-values and flags."""
        return Scores(scores, self.calibration.p_value(scores), self.calibration.flagged(self.threshold_, scores))


def lines_of(rows: list[dict[str, object]], format: str) -> bytes:
    """Rows as a file of lines."""
    if format == "json":
        return ("[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]\n").encode()
    if format == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if format == "txt":
        return "".join(f"{row['text']}\n" for row in rows).encode()
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter="\t" if format == "tsv" else ",")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def gzip_bomb(rng: Rng, format: str) -> bytes:
    """Few bytes that unpack to many: one line, long lines, members in members, with something behind."""
    size = pick(rng, [10**7, 10**8, 10**8, 10**9])
    how = int(rng.integers(5))
    start = {"json": b'[{"text": "', "jsonl": b'{"text": "', "csv": b'id,text\n1,"', "tsv": b"id\ttext\n1\t"}.get(
        format, b""
    )
    line = pick(rng, [b"x", b"\n", b'"', b"\0", b"a,b\n", b"[", b"a\n"])
    if how == 0:
        return gzip.compress(gzip.compress(b"a" * 10**6))
    if how == 1:
        member = gzip.compress(b"word " * 200_000, 9)
        return member * (size // 10**6)
    if how == 2:
        return gzip.compress(b'text\n"one"\n') + rng.bytes(100)
    size = size if b"\n" not in line else 10**6  # many rows take their time, as they should
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = line * (10**6 // len(line))
    return b"".join([packer.compress(start), *(packer.compress(block) for _ in range(size // 10**6)), packer.flush()])


def _values(column: pa.ChunkedArray) -> str:
    """The values of a column, to compare; nothing where Python has none such."""
    try:
        return repr(column.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException):
        return ""


class Tables(Attack):
    """Files of rows, damaged."""

    name: ClassVar = "tables"
    allowance: ClassVar = 500_000_000
    seconds: ClassVar = 60.0

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        quick = [f"{format}: {name}" for name in ON_LINES for format in LINES] + [*PARQUET, *XLSX] * 3
        slow = [f"{format}: {name}" for name in LARGE for format in LINES]
        slow += [*PARQUET_BOMBS, *XLSX_BOMBS, *(f"{format}: gzip bomb" for format in (*LINES, "parquet", "xlsx"))]
        self._kinds = quick * ROUNDS + slow
        self.path, self.piped = "", False
        for format in (*LINES, "parquet", "xlsx"):  # everything that is imported on use is imported now
            folder = root / f"warm-{format}"
            (folder / "in").mkdir(parents=True)
            rng = np.random.default_rng(0)
            whole = {"parquet": base, "xlsx": xlsx_base}.get(format)
            data = whole(rng) if whole else lines_of(base_rows(rng), format)
            (folder / "in" / f"table.{format}").write_bytes(data)
            self.path = str(folder / "in" / f"table.{format}")
            self.use(folder)

    def kinds(self) -> list[str]:
        """Names of the mutations, as often as they come in a round."""
        return self._kinds

    def make(self, kind: str, rng: np.random.Generator, folder: Path) -> str:
        """Write a damaged table."""
        format, _, name = kind.partition(": ")
        packed = name == "gzip bomb" or rng.random() < 0.25
        if name == "gzip bomb":
            data = gzip_bomb(rng, format)
        elif format in ("parquet", "xlsx"):
            data = (PARQUET | PARQUET_BOMBS | XLSX | XLSX_BOMBS)[kind](rng)
        else:
            data = (ON_LINES | LARGE)[name](rng, lines_of(base_rows(rng), format), format)
        if packed and name != "gzip bomb":
            data = gzip.compress(data)
            if rng.random() < 0.3 and data:
                data = pick(
                    rng, [flipped(rng, data, 0, len(data)), data[: int(rng.integers(len(data)))], data + b"\0junk"]
                )
        (folder / "in").mkdir()
        self.path = str(folder / "in" / f"table.{format}{'.gz' * packed}")
        self.piped = bool(rng.random() < 0.1)
        Path(self.path).write_bytes(data)
        return f"{Path(self.path).name} {len(data)} bytes, {hashlib.md5(data).hexdigest()[:8]}"

    def check_error(self, error: StraysError, folder: Path) -> None:
        """It names the file, or the one that was to be written."""
        names = [Path(self.path).name, "out.", "parts", *["stdin"] * self.piped]
        if not any(name in str(error) for name in names):
            raise WrongResultError("the message does not name the file")

    def use(self, folder: Path) -> None:
        """Open it, find the texts, score it in all ways."""
        try:
            if self.piped:
                self._from_stdin(folder)
            else:
                self._score(folder)
        finally:
            self._check_left_overs(folder)

    def _from_stdin(self, folder: Path) -> None:
        before = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(Path(self.path).read_bytes()))
        try:
            score_files(StandIn(), "-", str(folder / "out.csv"), engine=LocalEngine())
        finally:
            sys.stdin = before

    def _score(self, folder: Path) -> None:
        table = open_table(self.path)
        n = size = 0
        for batch in table.batches():
            n, size = n + len(batch), size + batch.nbytes
        table.text_column()
        small = n * len(table.columns) <= MOST_COMPARED and size < 10**6
        refused: StraysError | None = None
        for out in OUTPUTS if small else OUTPUTS[n % 6 : n % 6 + 1]:
            try:
                summary = score_files(StandIn(), self.path, f"{folder}/{out}", engine=LocalEngine())
            except StraysError as error:  # some values fit in one format and not in another
                refused = error
                continue
            if summary.n_rows != n:
                raise WrongResultError(f"{out}: {summary.n_rows} rows of {n}")
        if small and (folder / "out.parquet").exists():
            found, expected = pq.read_table(folder / "out.parquet"), table.read()
            for i, name in enumerate(table.columns):
                if _values(found.column(i)) != _values(expected.column(i)):
                    raise WrongResultError(f"the column {name!r:.60} has changed")
        if refused:
            raise refused

    def _check_left_overs(self, folder: Path) -> None:
        allowed = {"in", *(out.rstrip("/") for out in OUTPUTS)}
        there = {path.name for path in folder.iterdir()} - allowed
        there |= {path.name for path in folder.rglob("*.part")} | {path.name for path in (folder / "in").iterdir()} - {
            Path(self.path).name
        }
        if there:
            raise LeftOverError(f"left behind: {sorted(there)[:5]}")


if __name__ == "__main__":
    main(Tables)
