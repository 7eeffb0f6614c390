"""What is interrupted: saving a model, scoring, judging, and keeping embeddings, each on a few rows."""

from __future__ import annotations

import hashlib
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from typing_extensions import override

from strays.apps.review.history import Judgement
from strays.apps.review.store import Entry, LabelStore
from strays.encoders.cache import EmbeddingCache, clear
from strays.engines import LocalEngine
from strays.errors import StraysWarning
from strays.files import replacing
from strays.jobs.score import score_files
from strays.model import TextOutlierDetector

TEXTS = [f"the {animal} eats {food}" for animal in ("cat", "dog", "hen", "cow") for food in ("hay", "corn", "fish")]
ASKED = ["the cat eats hay", "stocks fell again", ""]
# Files of somebody else's, named much like ours, with their modes.
LETTER = "dear, these are mine\n"
Acknowledge = Callable[[], None]


class LetterEncoder:
    """Counts of letters: quick, and the same everywhere."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of shape (len(texts), 8)."""
        rows = [[1 + sum(ord(c) % 8 == i for c in text) for i in range(8)] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 8)


@cache
def fitted(*more: str) -> TextOutlierDetector:
    """A small model, fitted once."""
    model = TextOutlierDetector(LetterEncoder(), "centroid", keep_examples=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)  # twelve texts promise little
        return model.fit([*TEXTS, *more])


def digest(folder: Path, hidden: bool = True) -> dict[str, str]:
    """The bytes of the files of a folder, by their names."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    shown = {name: path for name, path in names.items() if hidden or not _is_hidden(name)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in shown.items()}


def _is_hidden(name: str) -> bool:
    """Whether who reads a folder of parts passes over this file; 0.1 named its manifest without a mark."""
    return any(part[0] in "._" for part in name.split("/")) or name.endswith("/manifest.jsonl")


class Scenario(ABC):
    """A command, what was there before it, and what the next one finds."""

    name: ClassVar[str]
    others: ClassVar[tuple[str, ...]] = ()
    # Whether every history of faults ends in the same bytes.
    same_bytes: ClassVar[bool] = False

    def set_up(self, folder: Path) -> None:
        """Make what is there before the command, and files of somebody else's."""
        self.prepare(folder)
        for name in (*self.others, "letter.txt"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(LETTER)
            path.chmod(0o640)

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Make what is there before the command."""

    @abstractmethod
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        """The command. What it acknowledges must be there afterwards."""

    @abstractmethod
    def look(self, folder: Path) -> Any:
        """What the next command finds, as plain data."""

    def is_good(self, found: Any, before: Any, after: Any, acknowledged: int, kind: str) -> bool:
        """Whether that is the old state or the new one."""
        return found in (before, after)

    def state(self, found: Any, before: Any, after: Any) -> str:
        """What was found, in words."""
        return "old" if found == before else "new" if found == after else "in between, whole"

    def is_settled(self, found: Any, once_more: Any, after: Any) -> bool:
        """Whether running the command again, undisturbed, gave what it should."""
        return bool(once_more == after)


class Save(Scenario):
    """A model is saved over an older one, which is private."""

    name = "save"
    others: ClassVar[tuple[str, ...]] = (
        ".model.1.new/config.json",
        ".model.1.old/config.json",
        "model.bak/config.json",
        ".model.new",
    )

    @override
    def prepare(self, folder: Path) -> None:
        fitted("rain fell").save(folder / "model")
        (folder / "model").chmod(0o700)

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        fitted("snow fell", "the king of spain").save(folder / "model")
        acknowledge()

    @override
    def look(self, folder: Path) -> Any:
        model = TextOutlierDetector.load(folder / "model", encoder=LetterEncoder())
        return [model.fingerprint, model.score(ASKED).anomaly_score.tolist(), oct((folder / "model").stat().st_mode)]


class SaveByRenames(Save):
    """The same where two folders cannot be exchanged in one step."""

    name = "save, without an exchange in one step"

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        with patch.object(replacing, "exchange", lambda one, other: False):
            super().work(folder, acknowledge)


class FirstSave(Save):
    """A model is saved where there is none."""

    name = "save, a first time"

    @override
    def prepare(self, folder: Path) -> None:
        pass

    @override
    def look(self, folder: Path) -> Any:
        return super().look(folder) if (folder / "model").exists() else None


class Score(Scenario):
    """A file is scored to one file, over an older one, in several chunks."""

    name = "score to a file"
    others: ClassVar[tuple[str, ...]] = (".out.csv.1.part", ".out.csv.0a1b2c3d.1.part", "out.csv.bak", "out-00000.csv")
    same_bytes: ClassVar[bool] = True
    out = "out.csv"

    @override
    def prepare(self, folder: Path) -> None:
        rows = "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS))
        (folder / "in.csv").write_text(f"id,text\n{rows}")
        (folder / "out.csv").write_text("older\n")

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        score_files(fitted(), str(folder / "in.csv"), f"{folder}/{self.out}", engine=LocalEngine(), part_rows=8)
        acknowledge()

    @override
    def look(self, folder: Path) -> Any:
        return digest(folder, hidden=False)


class ScoreToFolder(Score):
    """A file is scored to a new folder of parts."""

    name = "score to a folder"
    others: ClassVar[tuple[str, ...]] = (".parts.1.part", "parts.bak/in-00000.csv")
    out = "parts/"

    @override
    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        (folder / "out.csv").unlink()

    @override
    def is_good(self, found: Any, before: Any, after: Any, acknowledged: int, kind: str) -> bool:
        """Every part that is there is whole, and nothing that was there is gone."""
        return bool(before.items() <= found.items() <= after.items())


class Resume(ScoreToFolder):
    """A job that was stopped is run again; somebody has put a file into its folder that is named like a part."""

    name = "score to a folder, resumed"
    others: ClassVar[tuple[str, ...]] = ("parts/in-20240101.csv", "parts/in-000001.csv", "parts/deep/.in.csv.1.part")

    @override
    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        self.work(folder, lambda: None)
        manifest = next(path for path in (folder / "parts").iterdir() if path.name.endswith("manifest.jsonl"))
        lines = manifest.read_bytes().splitlines(keepends=True)
        manifest.write_bytes(b"".join(lines[:2]))
        for path in sorted((folder / "parts").glob("in-*.csv"))[1:]:
            path.unlink()


class Review(Scenario):
    """Verdicts go into a project, and one is taken back."""

    name = "review"
    others: ClassVar[tuple[str, ...]] = ("pile.csv.strays.bak", "pile.csv.strays-journal.old", ".pile.csv.strays")

    @override
    def prepare(self, folder: Path) -> None:
        store = LabelStore(folder / "pile.csv.strays")
        self.fill(store)
        self.judge(store, lambda: None)
        store.close()

    def fill(self, store: LabelStore) -> None:
        """Put the texts into a project."""
        store.put_texts(Entry(text, 1, (row,)) for row, text in enumerate(TEXTS, 1))
        store.set(detector="auto")

    def judge(self, store: LabelStore, acknowledge: Acknowledge) -> None:
        """Three actions."""
        first, second, *_ = store.texts()
        for text in (first, second):
            store.commit_verdict({text: Judgement(p_value=0.5)}, "anomaly", "ada", "tab")
            acknowledge()
        store.commit_undo("ada", "tab")
        acknowledge()

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        store = LabelStore(folder / "pile.csv.strays")
        try:
            self.fill(store)
            self.judge(store, acknowledge)
        finally:
            store.close()

    @override
    def look(self, folder: Path) -> Any:
        store = LabelStore(folder / "pile.csv.strays")
        try:
            texts = [entry.text for entry in store.texts().values()]
            events = [[e.verdict, e.who, e.undoes, len(e.judgements)] for e in store.events()]
            return {"texts": texts, "events": events, "mode": oct((folder / "pile.csv.strays").stat().st_mode)}
        finally:
            store.close()

    @override
    def is_good(self, found: Any, before: Any, after: Any, acknowledged: int, kind: str) -> bool:
        """All events that were acknowledged, at most one more, and none but these."""
        old, n = len(before["events"]), len(found["events"])
        return bool(
            found["texts"] in (before["texts"], after["texts"])
            and found["events"] == after["events"][:n]
            and old + acknowledged <= n <= old + acknowledged + 1
            and found["mode"] == after["mode"]
        )

    @override
    def is_settled(self, found: Any, once_more: Any, after: Any) -> bool:
        return bool(
            once_more["texts"] == after["texts"]
            and once_more["events"][: len(found["events"])] == found["events"]
            and len(once_more["events"]) == len(found["events"]) + 3
        )


class FirstReview(Review):
    """The same in a new project."""

    name = "review, a new project"

    @override
    def prepare(self, folder: Path) -> None:
        pass


class Cache(Scenario):
    """Embeddings are added to a cache."""

    name = "cache"
    others: ClassVar[tuple[str, ...]] = (
        "embeddings.lmdb.bak/data.mdb",
        "photos/cat.jpg",
        ".strays-removed-mine/letter",
        "strays-model/data",
    )

    @override
    def prepare(self, folder: Path) -> None:
        self._put(folder, 0, 40)

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        self._put(folder, 20, 80)

    def _put(self, folder: Path, first: int, last: int) -> None:
        store = EmbeddingCache(folder, 10**7)
        for start in range(first, last, 20):
            some = range(start, start + 20)
            store.put("an encoder", [f"text {i}" for i in some], np.array([self._embedding(i) for i in some]))
        store.close()

    def _embedding(self, i: int) -> np.ndarray:
        return np.random.default_rng(i).normal(size=300).astype(np.float32)

    @override
    def look(self, folder: Path) -> Any:
        store = EmbeddingCache(folder, 10**7)
        found, embeddings = store.get("an encoder", [f"text {i}" for i in range(80)])
        store.close()
        right = [self._embedding(int(i)).tobytes() for i in np.flatnonzero(found)]
        if [row.tobytes() for row in embeddings] != right:
            return "another embedding than was stored"
        return np.flatnonzero(found).tolist()

    @override
    def is_good(self, found: Any, before: Any, after: Any, acknowledged: int, kind: str) -> bool:
        """What was there, and what was added so far. A file that cannot be read is taken for damaged and made anew."""
        kept = kind == "broken" or set(before) <= set(found)
        return isinstance(found, list) and kept and set(found) <= set(after) and len(found) % 20 == 0

    @override
    def state(self, found: Any, before: Any, after: Any) -> str:
        made_anew = not set(before) <= set(found) and found != after
        return "unreadable, so made anew" if made_anew else super().state(found, before, after)

    @override
    def is_settled(self, found: Any, once_more: Any, after: Any) -> bool:
        return set(once_more) == set(found) | set(range(20, 80))


class Clear(Cache):
    """The cache is emptied."""

    name = "cache clear"

    @override
    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        clear(folder)

    @override
    def is_good(self, found: Any, before: Any, after: Any, acknowledged: int, kind: str) -> bool:
        return found in (before, after)

    @override
    def is_settled(self, found: Any, once_more: Any, after: Any) -> bool:
        return bool(once_more == after)


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Save(),
        SaveByRenames(),
        FirstSave(),
        Score(),
        ScoreToFolder(),
        Resume(),
        Review(),
        FirstReview(),
        Cache(),
        Clear(),
    )
}


def as_plain(found: Any) -> Any:
    """As it is after a way through a pipe."""
    return json.loads(json.dumps(found))
