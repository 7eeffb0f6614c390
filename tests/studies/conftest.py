"""Small corpora of the paper's form."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strays.studies.corpora import CORPORA

SIZES = {"train": 1000, "dev": 100, "test": 200}


def write_corpus(
    folder: Path,
    name: str,
    per_anomaly: dict[str, int],
    drop: str | None = None,
    sizes: dict[str, int] = SIZES,
    number: Callable[[int], str] = str,
) -> None:
    """A corpus's file with so many normals and so many anomalies of each class in every split, numbered."""
    spec = CORPORA[name]
    rows = []
    for split, n in sizes.items():
        for label in (spec.normal, *spec.anomalies, *spec.spare):
            count = n if label == spec.normal else per_anomaly[split]
            rows += [{"text": f"{label} {split} {number(i)}", "label": label, "split": split} for i in range(count)]
    pq.write_table(pa.Table.from_pylist([row for row in rows if row["label"] != drop]), folder / spec.file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All corpora, of a thousand normals each."""
    for name in CORPORA:
        write_corpus(tmp_path, name, {"train": 60, "dev": 20, "test": 20})
    return tmp_path


def in_letters(i: int) -> str:
    """A number that the tiny encoder can read: it knows letters and no digits."""
    return " ".join("abcdefghij"[int(digit)] for digit in str(i))


def write_small_corpus(folder: Path, name: str, train: int = 100, drop: str | None = None) -> None:
    """A corpus's file with a hundred normals to train on."""
    sizes = {"train": train, "dev": 20, "test": 40}
    write_corpus(folder, name, {"train": 10, "dev": 2, "test": 2}, drop, sizes, in_letters)


@pytest.fixture(scope="session")
def small_corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All corpora, small; to be read only."""
    folder = tmp_path_factory.mktemp("small-corpora")
    for name in CORPORA:
        write_small_corpus(folder, name)
    return folder


@pytest.fixture
def small_folder(small_corpora: Path, tmp_path: Path) -> Path:
    """All corpora, small; the test's own."""
    return Path(shutil.copytree(small_corpora, tmp_path / "data"))
