"""Scans to report on, made with a fake encoder; no file is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from strays.jobs.corpus import Corpus
from strays.jobs.report.facts import facts
from strays.jobs.scan import Scan
from strays.jobs.score import flag_rows
from strays.model import RawScores, TextOutlierDetector
from tests.conftest import HashEncoder, farm_texts

SPAM = ["win big cash now click here", "free cash win now", "click here to win free cash", "cash cash cash now"]


def scan_of(texts: list[str], labels: list[str | None] | None = None, detector: str = "auto", **rule: float) -> Scan:
    """A scan as scan_table makes it, of a file with one row without a text in the beginning."""
    labels = labels or [None] * len(texts)
    corpus = Corpus(texts, labels, list(range(1, len(texts) + 1)), len(texts) + 1)
    model = TextOutlierDetector(HashEncoder(), detector, keep_examples=200).fit(texts, labels)
    if rule:
        model.set_threshold(**rule)
    scores = np.r_[np.nan, model.training_scores_]
    return Scan("folder/texts.csv", model, corpus, flag_rows(model, RawScores(scores)))


def facts_of(scan: Scan, *, fitted_here: bool = True, **options: Any) -> dict[str, Any]:
    return facts(replace(scan, fitted_here=fitted_here), **options)


@pytest.fixture(scope="session")
def scan() -> Scan:
    return scan_of(farm_texts(120) + SPAM)


@pytest.fixture(scope="session")
def labelled() -> Scan:
    texts = farm_texts(120) + SPAM
    return scan_of(texts, ["normal" if i % 2 else None for i in range(120)] + ["anomaly"] * 4)
