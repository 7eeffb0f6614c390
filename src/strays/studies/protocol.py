"""How training, dev and test sets are drawn: the paper's pollution protocol of 5.1 and 5.2, its splits of 5.3, and few
labels with some kinds of anomalies never seen.

Rows are drawn in the order of a hash of the seed and the text, so that a corpus, a protocol and a seed give the same
scenario on every machine and with every version of every library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from strays.errors import DataError
from strays.studies.corpora import LabelledCorpus

RUNS = 5
POLLUTIONS = (0.0, 0.01, 0.02, 0.04, 0.08)
TEST_SHARE = 0.05
# 5.3: 384 anomalies beside 7,836 normals, of each 70 % to train on.
ANOMALY_SHARE = 384 / 7836
TRAIN_SHARE = 0.7


@dataclass(frozen=True)
class LabelledRows:
    """Rows of a corpus (`rows`) and their labels (`y`, +1 normal and -1 anomaly), in random order.

    >>> LabelledRows(np.array([7, 3]), np.array([1, -1])).y.tolist()
    [1, -1]
    """

    rows: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Scenario:
    """One training set with its dev and test sets; the dev set of 5.3 is empty.

    >>> train, dev, test = (LabelledRows(np.array([row]), np.array([1])) for row in (4, 2, 9))
    >>> sorted(Scenario(train, dev, test).rows)
    [2, 4, 9]
    """

    train: LabelledRows
    dev: LabelledRows
    test: LabelledRows

    @property
    def rows(self) -> set[int]:
        """Every row that is used."""
        return {int(i) for part in (self.train, self.dev, self.test) for i in part.rows}

    def digest(self, corpus: LabelledCorpus) -> str:
        """Twelve hex digits that tell whether two machines drew the same texts, labels and order."""
        digest = hashlib.sha256()
        for part in (self.train, self.dev, self.test):
            for row, y in zip(part.rows, part.y, strict=True):
                digest.update(f"{y:+d}{corpus.texts[row]}\0".encode("utf-8", "replace"))
            digest.update(b"\1")
        return digest.hexdigest()[:12]


@dataclass(frozen=True)
class FewLabels:
    """Rows to train on, labelled 0 (unlabelled) or -1 (known anomaly), and rows to test on.

    Known and unlabelled anomalies are of the kinds `seen` alone; the kinds of `test_unseen` are nowhere in training.

    >>> train = LabelledRows(np.array([0, 1]), np.array([0, -1]))
    >>> few = FewLabels(train, np.array([2]), np.array([3]), np.array([4]), seen=("spam",))
    >>> sorted(few.rows)
    [0, 1, 2, 3, 4]
    """

    train: LabelledRows
    test_normal: np.ndarray
    test_seen: np.ndarray
    test_unseen: np.ndarray
    seen: tuple[str, ...]

    @property
    def rows(self) -> set[int]:
        """Every row that is used."""
        parts = (self.train.rows, self.test_normal, self.test_seen, self.test_unseen)
        return {int(i) for part in parts for i in part}


def few_labels(
    corpus: LabelledCorpus,
    n_known: int,
    pollution: float,
    seed: int,
    *,
    test: str = "test",
    all_kinds: bool = False,
    most_normals: int = 3000,
    most_tested: tuple[int, int] = (2000, 500),
) -> FewLabels:
    """Unlabelled normals with a share of unlabelled anomalies among them, and some known anomalies.

    Half of the kinds of anomalies, at least one, are seen, equally often; or all of them, as often as they come. Every
    draw begins with those of fewer labels or less pollution, so that cells of one seed can be compared. `most_tested`
    bounds the normals, and the anomalies seen and unseen, of the split `test`.
    """
    key = _keys(corpus, seed)
    order = np.argsort(key, kind="stable")
    kinds = sorted(corpus.kinds, key=lambda kind: hashlib.sha256(f"{seed}\0{kind}".encode()).digest())
    n_seen = len(kinds) if all_kinds else max(1, len(kinds) // 2)

    def rows_of(split: str, names: Sequence[str]) -> list[np.ndarray]:
        here = order[corpus.split[order] == split]
        classes = [names] if all_kinds and names else [[name] for name in names]
        return [here[np.isin(corpus.label[here], of)] for of in classes]

    normals = rows_of("train", [corpus.spec.normal])[0][:most_normals]
    anomalies = _evenly(rows_of("train", kinds[:n_seen]), len(corpus.texts))
    n_unlabelled = round(pollution * len(normals))
    if n_known + n_unlabelled > len(anomalies):
        raise DataError(
            f"{corpus.spec.file}: has {len(anomalies)} training anomalies of {', '.join(kinds[:n_seen])}; "
            f"{n_known} known and {n_unlabelled} unlabelled ones are wanted"
        )
    known, unlabelled = anomalies[:n_known], anomalies[len(anomalies) - n_unlabelled :]
    rows = np.array([*normals, *unlabelled, *known], dtype=int)
    y = np.r_[np.zeros(len(rows) - n_known, dtype=int), -np.ones(n_known, dtype=int)]
    mixed = np.argsort(key[rows], kind="stable")
    n_normals, n_anomalies = most_tested
    return FewLabels(
        train=LabelledRows(rows[mixed], y[mixed]),
        test_normal=rows_of(test, [corpus.spec.normal])[0][:n_normals],
        test_seen=np.array(_evenly(rows_of(test, kinds[:n_seen]), n_anomalies), dtype=int),
        test_unseen=np.array(_evenly(rows_of(test, kinds[n_seen:]), n_anomalies), dtype=int),
        seen=tuple(kinds[:n_seen]),
    )


def pollute(
    corpus: LabelledCorpus,
    share: float,
    seed: int,
    *,
    known: Sequence[str] | None = None,
    tested: Sequence[str] | None = None,
    evenly: bool = True,
) -> Scenario:
    """Mix a share of anomalies (of the number of training normals) into train, and 5 % into dev and test.

    They come in equal numbers from every class of anomalies (unless `evenly` is false: from all their rows alike), or
    only from the classes `known` in train and `tested` in dev and test.
    """
    key = _keys(corpus, seed)
    order = np.argsort(key, kind="stable")
    parts = {}
    for split, part_share, kinds in (
        ("train", share, known),
        ("dev", TEST_SHARE, tested),
        ("test", TEST_SHARE, tested),
    ):
        here = order[corpus.split[order] == split]
        label = corpus.label[here]
        normals = here[label == corpus.spec.normal]
        wanted = round(part_share * len(normals))
        names = kinds or corpus.spec.anomalies
        classes = [here[label == name] for name in names] if evenly else [here[np.isin(label, names)]]
        anomalies = _evenly(classes, wanted)
        if kinds is None:
            anomalies += _evenly([here[label == name] for name in corpus.spec.spare], wanted - len(anomalies))
        if len(anomalies) < wanted:
            raise DataError(
                f"{corpus.spec.file}: split {split!r} has {len(anomalies)} anomalies to draw from "
                f"({', '.join(names)}); {wanted} are wanted, {part_share:.0%} of its normals"
            )
        parts[split] = _mixed(normals, np.array(anomalies, dtype=int), key)
    return Scenario(**parts)


def pile(corpus: LabelledCorpus, share: float, seed: int, *, most_normals: int = 9800) -> LabelledRows:
    """Normals of all splits, and anomalies evenly from every class, a share of the whole: a pile to look through."""
    key = _keys(corpus, seed)
    order = np.argsort(key, kind="stable")
    label = corpus.label[order]
    normals = order[label == corpus.spec.normal][:most_normals]
    kinds = [order[label == kind] for kind in corpus.kinds]
    return _mixed(normals, np.array(_evenly(kinds, round(share / (1 - share) * len(normals))), dtype=int), key)


def split_at_random(corpus: LabelledCorpus, seed: int) -> Scenario:
    """70 % of the normals and of the anomalies to train on, the rest to test on, whatever the file's own splits.

    Which anomalies take part does not depend on the seed: as many as the paper's share, evenly from every class.
    """
    fixed = np.argsort(_keys(corpus, "pool"), kind="stable")
    label = corpus.label[fixed]
    normals = fixed[label == corpus.spec.normal]
    kinds = [fixed[label == name] for name in corpus.spec.anomalies]
    anomalies = np.array(_evenly(kinds, round(ANOMALY_SHARE * len(normals))), dtype=int)
    key = _keys(corpus, seed)
    (train, test), (train_anomalies, test_anomalies) = (
        np.split(rows[np.argsort(key[rows], kind="stable")], [round(TRAIN_SHARE * len(rows))])
        for rows in (normals, anomalies)
    )
    none = np.array([], dtype=int)
    return Scenario(
        train=_mixed(train, train_anomalies, key), dev=_mixed(none, none, key), test=_mixed(test, test_anomalies, key)
    )


@lru_cache(maxsize=16)
def _keys(corpus: LabelledCorpus, seed: int | str) -> np.ndarray:
    """For each text a number that is random, and the same everywhere: the first 8 bytes of a hash."""
    digests = (hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "replace")).digest() for text in corpus.texts)
    return np.array([int.from_bytes(digest[:8], "big") for digest in digests], dtype=np.uint64)


def _mixed(normals: np.ndarray, anomalies: np.ndarray, key: np.ndarray) -> LabelledRows:
    rows = np.concatenate([normals, anomalies])
    y = np.r_[np.ones(len(normals), dtype=int), -np.ones(len(anomalies), dtype=int)]
    order = np.argsort(key[rows], kind="stable")
    return LabelledRows(rows[order], y[order])


def _evenly(classes: list[np.ndarray], wanted: int) -> list[int]:
    """The first rows of every class in turn until there are enough, or all."""
    longest = max((len(rows) for rows in classes), default=0)
    in_turn = [int(rows[i]) for i in range(longest) for rows in classes if i < len(rows)]
    return in_turn[: max(0, wanted)]
