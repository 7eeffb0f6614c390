"""The paper's pollution protocol: known anomalies mixed into the training normals, 5 % of them into dev and test.

Rows are drawn in the order of a hash of the seed and the text, so that a corpus, a share and a seed give the same
scenario on every machine and with every version of every library.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from strays.evaluation.corpora import LabelledCorpus

POLLUTIONS = (0.0, 0.01, 0.02, 0.04, 0.08)
TEST_SHARE = 0.05


@dataclass(frozen=True)
class Part:
    """Rows of a corpus (`rows`) and their labels (`y`, +1 normal and -1 anomaly), in random order."""

    rows: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Scenario:
    """One polluted training set with its dev and test sets."""

    train: Part
    dev: Part
    test: Part


def pollute(corpus: LabelledCorpus, share: float, seed: int) -> Scenario:
    """Mix a share of anomalies (of the number of training normals) into train, and 5 % into dev and test."""
    key = [hashlib.sha256(f"{seed}\0{text}".encode()).hexdigest() for text in corpus.texts]
    order = np.argsort(key, kind="stable")
    parts = {}
    for split, part_share in (("train", share), ("dev", TEST_SHARE), ("test", TEST_SHARE)):
        here = order[corpus.split[order] == split]
        label = corpus.label[here]
        normals = here[label == corpus.spec.normal]
        wanted = round(part_share * len(normals))
        anomalies = _evenly([here[label == name] for name in corpus.spec.anomalies], wanted)
        anomalies += _evenly([here[label == name] for name in corpus.spec.spare], wanted - len(anomalies))
        rows = np.concatenate([normals, np.array(anomalies, dtype=int)])
        y = np.r_[np.ones(len(normals), dtype=int), -np.ones(len(anomalies), dtype=int)]
        mixed = np.argsort(np.array(key)[rows], kind="stable")
        parts[split] = Part(rows[mixed], y[mixed])
    return Scenario(**parts)


def _evenly(classes: list[np.ndarray], wanted: int) -> list[int]:
    """The first rows of every class in turn until there are enough, or all."""
    longest = max((len(rows) for rows in classes), default=0)
    in_turn = [int(rows[i]) for i in range(longest) for rows in classes if i < len(rows)]
    return in_turn[: max(0, wanted)]
