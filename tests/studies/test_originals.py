"""Corpora from their public originals, on small files of the originals' form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.errors import DataError, UsageError
from strays.studies import originals
from strays.studies.corpora import load_corpus
from strays.studies.originals import Dataset, clean, is_short, make_where_missing, sentences

REVIEW = "I liked film {i}. <br /><br />It has a plot that goes on for too long to be called short! Go and see {i}."
ARTICLE = (
    " Town {i} lies in the north . It was founded in {year} . The name of town {i} is older than its houses are . \n"
)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the hub."""
    root = tmp_path / "hub"

    def fetch(dataset: Dataset, split: str) -> Path:
        return root / dataset.repo / dataset.files[split]

    def put(dataset: Dataset, split: str, rows: list[dict]) -> None:
        path = fetch(dataset, split)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.setattr(originals, "fetch", fetch)
    monkeypatch.setattr(originals, "IMDB_SIZES", {"train": 20, "dev": 4, "test": 6})
    monkeypatch.setattr(originals, "AG_DEV", 5)
    for n, split in enumerate(("train", "test")):
        put(originals.IMDB, split, [{"text": REVIEW.format(i=100 * n + i), "label": i % 2} for i in range(30)])
        titles = [
            {"label": k, "title": f"Title {n} {i} &amp; {k}", "description": "x"}
            for k in range(1, 5)
            for i in range(20)
        ]
        put(originals.AG_NEWS, split, [*titles, {"label": 2, "title": " ", "description": "no headline"}])
        reviews = [{"label": k, "text": f"Stars {k}\\nof number {n} {i}"} for k in range(5) for i in range(30)]
        put(originals.YELP, split, [*reviews, {"label": 0, "text": "Too short"}, {"label": 0, "text": "long " * 51}])
    for n, split in enumerate(("train", "validation", "test")):
        lines = [" = Town = \n", "", *(ARTICLE.format(i=100 * n + i, year=1000 + i) for i in range(70))]
        put(originals.WIKITEXT, split, [{"text": line} for line in lines])
    roles = ("background", "objective", "methods", "results", "conclusions")
    for split in ("train", "dev", "test"):
        rows = [{"label": role, "text": f"{role} of  trial {i} {split}"} for role in roles for i in range(6)]
        put(originals.RCT, split, [*rows, {"label": "results", "text": "Everywhere the same."}])
    return root


def counts(folder: Path, name: str) -> Counter:
    corpus = load_corpus(name, folder)
    return Counter(zip(corpus.label.tolist(), corpus.split.tolist(), strict=True))


def test_film_reviews_and_articles_become_short_sentences(tmp_path: Path, hub: Path) -> None:
    make_where_missing(["5.1"], str(tmp_path / "data"))
    corpus = load_corpus("5.1", tmp_path / "data")
    found = counts(tmp_path / "data", "5.1")
    assert [found["imdb", split] for split in ("train", "dev", "test")] == [20, 4, 6]
    assert found["wiki", "dev"] == found["wiki", "test"] == 60
    assert all(is_short(text, 60) for text in corpus.texts)
    assert all(len(t) <= 50 for t, label in zip(corpus.texts, corpus.label, strict=True) if label != "wiki_51_60")
    assert {text[:4] for text, label in zip(corpus.texts, corpus.label, strict=True) if label == "imdb"} == {
        "I li",
        "Go a",
    }
    assert not any("=" in text or "<br" in text for text in corpus.texts)
    assert found["wiki_51_60", "train"] > 0
    assert len(set(corpus.texts)) == len(corpus.texts)


def test_a_corpus_with_enough_short_articles_needs_no_longer_ones(
    tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(originals, "WIKI_IN_ALL", 130)
    make_where_missing(["5.1"], str(tmp_path))
    assert ("wiki_51_60", "train") not in counts(tmp_path, "5.1")


def test_headlines_without_the_articles(tmp_path: Path, hub: Path) -> None:
    make_where_missing(["5.2-ag"], str(tmp_path))
    found = counts(tmp_path, "5.2-ag")
    assert {found["sports", split] for split in ("train", "test")} == {15, 20}
    assert {label for (label, split), n in found.items() if split == "dev" and n == 5} == {
        "world",
        "sports",
        "business",
        "scitech",
    }
    assert "Title 0 3 & 2" in load_corpus("5.2-ag", tmp_path).texts


def test_reviews_of_three_to_fifty_words(tmp_path: Path, hub: Path) -> None:
    make_where_missing(["5.2-yelp"], str(tmp_path))
    corpus = load_corpus("5.2-yelp", tmp_path)
    assert all(3 <= len(text.split()) <= 50 and "\\n" not in text for text in corpus.texts)
    found = counts(tmp_path, "5.2-yelp")
    assert [found["star5", split] for split in ("train", "dev", "test")] == [22, 8, 30]


def test_abstracts_by_role_and_no_text_in_two_splits(tmp_path: Path, hub: Path) -> None:
    make_where_missing(["5.2-rct"], str(tmp_path))
    corpus = load_corpus("5.2-rct", tmp_path)
    assert corpus.texts.count("Everywhere the same.") == 1
    assert corpus.split[corpus.texts.index("Everywhere the same.")] == "test"
    assert counts(tmp_path, "5.2-rct")["conclusions", "train"] == 6


def test_the_same_file_every_time_and_one_that_is_there_is_left_alone(tmp_path: Path, hub: Path) -> None:
    for folder in ("a", "b"):
        make_where_missing(["5.1"], str(tmp_path / folder))
    [a], [b] = ((tmp_path / folder).iterdir() for folder in ("a", "b"))
    assert pq.read_table(a).equals(pq.read_table(b))
    a.write_text("mine")
    make_where_missing(["5.1"], str(tmp_path / "a"))
    assert a.read_text() == "mine"


def test_what_cannot_be_had_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"corpus of 5\.3 has no public original"):
        make_where_missing(["5.1", "5.3"], str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    with pytest.raises(
        DataError, match=r"could not get train.jsonl of the dataset armanc/pubmed-rct20k .* Check the net"
    ):
        make_where_missing(["5.2-rct"], str(tmp_path))
    assert not list(tmp_path.glob("*.parquet"))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is good. Go and see it!", ["It is good.", "Go and see it!"]),
        ("Mr. Bean met Dr. No. They left.", ["Mr. Bean met Dr. No.", "They left."]),
        ("Starring J. Smith. So was I. Bye.", ["Starring J. Smith.", "So was I.", "Bye."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("It costs 3.50 now. and goes on", ["It costs 3.50 now. and goes on"]),
        ("The town lies north . It is old .", ["The town lies north .", "It is old ."]),
        ("What?! 10 out of 10.", ["What?!", "10 out of 10."]),
        ("", []),
    ],
)
def test_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@given(st.text(alphabet="ab AB.!?'\"()1 \n", max_size=80))
def test_splitting_loses_nothing(text: str) -> None:
    assert " ".join(sentences(text)) == clean(text)
