"""The paper's public corpora, made from their originals on the Hugging Face hub by the paper's preprocessing.

    5.1        stanfordnlp/imdb, Salesforce/wikitext   sentences of at least 3 words and at most 50 characters
    5.2-ag     sh0416/ag_news                          headlines
    5.2-yelp   Yelp/yelp_review_full                   reviews of 3 to 50 words
    5.2-rct    armanc/pubmed-rct20k                    sentences as they are

The paper splits sentences with Stanza; here a few rules do. What it draws at random, such as a dev set where the
original has none, is drawn in the order of a hash of the text, in the paper's numbers. The corpus of 5.3 was never
published.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strays.errors import DataError, UsageError, first_line
from strays.files import replace_file
from strays.studies.corpora import CORPORA, data_folder
from strays.tables import open_table

Labelled = tuple[str, str, str]  # text, label, split


@dataclass(frozen=True)
class Dataset:
    """A dataset on the hub at a fixed revision, and the file of each of its splits.

    >>> RCT.files["dev"]
    'dev.jsonl'
    """

    repo: str
    revision: str
    files: dict[str, str]


def _parquet(folder: str, *splits: str) -> dict[str, str]:
    return {split: f"{folder}/{split}-00000-of-00001.parquet" for split in splits}


IMDB = Dataset("stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31", _parquet("plain_text", "train", "test"))
WIKITEXT = Dataset(
    "Salesforce/wikitext",
    "b08601e04326c79dfdd32d625aee71d232d685c3",
    _parquet("wikitext-2-raw-v1", "train", "validation", "test"),
)
AG_NEWS = Dataset(
    "sh0416/ag_news",
    "70e3fa1915be9a8daebec5e840f20df9a8e18793",
    {"train": "train.jsonl", "test": "test.jsonl"},
)
YELP = Dataset(
    "Yelp/yelp_review_full", "c1f9ee939b7d05667af864ee1cb066393154bf85", _parquet("yelp_review_full", "train", "test")
)
RCT = Dataset(
    "armanc/pubmed-rct20k",
    "091aec1e2384a20b2b36eb96177755ca13dd0b42",
    {"train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"},
)

AG_LABELS = {1: "world", 2: "sports", 3: "business", 4: "scitech"}
# The paper's numbers of normals: train, dev, test of 5.1; dev of every class of AG; dev's share of Yelp's train split.
IMDB_SIZES = {"train": 9849, "dev": 991, "test": 1010}
WIKI_SIZES = {"dev": 60, "test": 60}
WIKI_IN_ALL = 1000
AG_DEV = 1250
YELP_DEV_SHARE = 11622 / (31856 + 11622)

SHORT = 50
SPARE = 60
TITLES = {"mr", "mrs", "ms", "dr", "st", "jr", "sr", "prof", "gen", "col", "capt", "lt", "sgt", "rev", "hon"}
MONTHS = {"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}
ABBREVIATIONS = TITLES | MONTHS | {"vs", "inc", "ltd", "vol", "fig", "approx", "e.g", "i.e", "u.s", "u.k"}


def make_where_missing(names: Iterable[str], data: str | None) -> None:
    """Make the parquet files that the data folder lacks; the folder is made too."""
    if data:
        Path(data).mkdir(parents=True, exist_ok=True)
    folder = data_folder(data)
    missing = [name for name in names if not (folder / CORPORA[name].file).exists()]
    for name in missing:
        if name not in MAKERS:
            raise UsageError(
                f"{folder / CORPORA[name].file}: no such file, and the corpus of {name} has no public original to "
                "download; omit that study"
            )
    for name in missing:
        _make(name, folder / CORPORA[name].file)


def _make(name: str, path: Path) -> None:
    columns = map(list, zip(*without_duplicates(MAKERS[name]()), strict=True))
    table = pa.table(dict(zip(("text", "label", "split"), columns, strict=True)))
    with replace_file(path) as file:
        pq.write_table(table, file)


def imdb_wiki() -> Iterator[Labelled]:
    """5.1: short sentences of film reviews, and of Wikipedia articles as anomalies."""
    reviews = (text for split in IMDB.files for text in _columns(IMDB, split, "text")[0])
    normal = in_hash_order(s for review in reviews for s in sentences(review) if is_short(s))
    yield from _cut(normal, "imdb", IMDB_SIZES)
    # Lines such as " = = Career = = " are headings.
    lines = (line for split in WIKITEXT.files for line in _columns(WIKITEXT, split, "text")[0])
    articles = (line for line in lines if not line.startswith(" = "))
    found = in_hash_order(s for article in articles for s in sentences(article) if is_short(s, SPARE))
    wiki = [s for s in found if len(s) <= SHORT][:WIKI_IN_ALL]
    yield from _cut(wiki, "wiki", {**WIKI_SIZES, "train": len(wiki)})
    longer = [s for s in found if len(s) > SHORT]
    yield from ((s, "wiki_51_60", "train") for s in longer[: WIKI_IN_ALL - len(wiki)])


def ag_news() -> Iterator[Labelled]:
    """5.2: headlines of news in four classes."""
    for split in AG_NEWS.files:
        titles: dict[str, list[str]] = {name: [] for name in AG_LABELS.values()}
        for label, title in zip(*_columns(AG_NEWS, split, "label", "title"), strict=True):
            if text := clean(title):
                titles[AG_LABELS[int(label)]].append(text)
        for name, texts in titles.items():
            sizes = {"dev": AG_DEV, "train": len(texts)} if split == "train" else {split: len(texts)}
            yield from _cut(in_hash_order(texts), name, sizes)


def yelp() -> Iterator[Labelled]:
    """5.2: short reviews with one to five stars."""
    for split in YELP.files:
        reviews: dict[str, list[str]] = {f"star{i}": [] for i in range(1, 6)}
        for label, review in zip(*_columns(YELP, split, "label", "text"), strict=True):
            text = clean(review.replace("\\n", " "))
            if 3 <= len(text.split()) <= 50:
                reviews[f"star{int(label) + 1}"].append(text)
        for name, texts in reviews.items():
            dev = round(YELP_DEV_SHARE * len(texts))
            sizes = {"dev": dev, "train": len(texts)} if split == "train" else {split: len(texts)}
            yield from _cut(in_hash_order(texts), name, sizes)


def rct() -> Iterator[Labelled]:
    """5.2: sentences of structured abstracts, by their role."""
    for split in RCT.files:
        for label, text in zip(*_columns(RCT, split, "label", "text"), strict=True):
            yield clean(text), str(label).lower(), split


MAKERS: dict[str, Callable[[], Iterator[Labelled]]] = {
    "5.1": imdb_wiki,
    "5.2-ag": ag_news,
    "5.2-yelp": yelp,
    "5.2-rct": rct,
}


def sentences(text: str) -> list[str]:
    """The sentences of a text, by rules: an end mark, white space, a capital or a digit; not after an abbreviation."""
    text = clean(text)
    found, start = [], 0
    for end in re.finditer(r"[.!?]+[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])", text):
        words = text[start : end.start()].split()
        before = words[-1].lstrip("\"'([") if words and not text[end.start() - 1].isspace() else ""
        is_initial = len(before) == 1 and before.isupper() and before != "I"
        if end.group().startswith(".") and (before.lower() in ABBREVIATIONS or is_initial):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    return [s for s in (*found, text[start:].strip()) if s]


def clean(text: str) -> str:
    """A text without mark-up and with single blanks."""
    return " ".join(html.unescape(re.sub(r"<br\s*/?>", " ", text)).split())


def is_short(sentence: str, most: int = SHORT) -> bool:
    """At least 3 words and at most so many characters."""
    return len(sentence) <= most and len(sentence.split()) >= 3


def in_hash_order(texts: Iterable[str]) -> list[str]:
    """Distinct texts in an order that is random, and the same everywhere."""
    return sorted(set(texts), key=lambda text: hashlib.sha256(text.encode("utf-8", "replace")).digest())


def without_duplicates(rows: Iterable[Labelled]) -> list[Labelled]:
    """Each text once; one that stands in several splits is kept for testing."""
    order = {"test": 0, "dev": 1, "train": 2}
    first: dict[str, Labelled] = {}
    for row in sorted(rows, key=lambda row: order[row[2]]):
        first.setdefault(row[0], row)
    return [row for row in first.values() if row[0]]


def _cut(texts: list[str], label: str, sizes: dict[str, int]) -> Iterator[Labelled]:
    """The texts dealt out to splits, in the given order and sizes."""
    start = 0
    for split, size in sizes.items():
        yield from ((text, label, split) for text in texts[start : start + size])
        start += size


def _columns(dataset: Dataset, split: str, *names: str) -> list[list[str]]:
    table = open_table(str(fetch(dataset, split)), text_column=names[-1])
    for name in names:
        table.require_column(name)
    rows = table.read()
    return [rows.column(name).to_pylist() for name in names]


def fetch(dataset: Dataset, split: str) -> Path:
    """The file of a split, from the hub or its cache."""
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(
            dataset.repo, dataset.files[split], repo_type="dataset", revision=dataset.revision, etag_timeout=10
        )
    except Exception as error:  # each network library has its own
        raise DataError(
            f"could not get {dataset.files[split]} of the dataset {dataset.repo} from the Hugging Face hub "
            f"({first_line(error)}). Check the network, or put the corpus's parquet file (columns text, label, split) "
            "into the data folder yourself"
        ) from error
    return Path(path)
