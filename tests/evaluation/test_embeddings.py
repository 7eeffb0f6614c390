from __future__ import annotations

import numpy as np
import pytest

from strays.evaluation import embeddings
from strays.evaluation.corpora import CORPORA, LabelledCorpus
from strays.evaluation.embeddings import embed
from tests.conftest import HashEncoder


class Encoder(HashEncoder):
    """Counts what it encodes, and can break down after some texts."""

    fingerprint = "f" * 64

    def __init__(self, most: int = 10**9) -> None:
        super().__init__()
        self.most = most

    def encode(self, texts: list[str]) -> np.ndarray:
        if sum(map(len, self.seen)) + len(texts) > self.most:
            raise KeyboardInterrupt
        return super().encode(texts)

    @property
    def n_encoded(self) -> int:
        return sum(map(len, self.seen))


def corpus_of(texts: list[str]) -> LabelledCorpus:
    return LabelledCorpus(
        "5.1", CORPORA["5.1"], texts, np.array(["imdb"] * len(texts)), np.array(["train"] * len(texts))
    )


@pytest.fixture
def corpus() -> LabelledCorpus:
    return corpus_of([f"text {i}" for i in range(50)])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "TEXTS_IN_PART", 8)


def test_rows_asked_for_are_filled_and_no_others(corpus: LabelledCorpus) -> None:
    encoder = Encoder()
    X = embed(corpus, [3, 7, 3], encoder)
    assert np.array_equal(X[[3, 7]], HashEncoder().encode(["text 3", "text 7"]))
    assert np.isnan(np.delete(X, [3, 7], axis=0)).all()
    assert encoder.n_encoded == 2


def test_what_is_kept_is_not_encoded_again(corpus: LabelledCorpus) -> None:
    first = embed(corpus, range(20), Encoder())
    encoder = Encoder()
    again = embed(corpus, range(30), encoder)
    assert np.array_equal(first[:20], again[:20])
    assert encoder.n_encoded == 10


def test_texts_are_known_by_what_they_say_not_by_their_row(corpus: LabelledCorpus) -> None:
    embed(corpus, range(50), Encoder())
    encoder = Encoder()
    turned = embed(corpus_of([*corpus.texts[::-1], "another"]), range(51), encoder)
    assert encoder.seen == [["another"]]
    assert np.array_equal(turned[:50], HashEncoder().encode(corpus.texts[::-1]))


def test_a_stopped_run_keeps_its_finished_parts(corpus: LabelledCorpus) -> None:
    with pytest.raises(KeyboardInterrupt):
        embed(corpus, range(50), Encoder(most=30))
    encoder = Encoder()
    X = embed(corpus, range(50), encoder)
    assert encoder.n_encoded == 50 - 24
    assert np.array_equal(X, HashEncoder().encode(corpus.texts))


def test_another_encoder_keeps_its_own(corpus: LabelledCorpus) -> None:
    embed(corpus, range(5), Encoder())
    other = Encoder()
    other.fingerprint = "e" * 64
    embed(corpus, range(5), other)
    assert other.n_encoded == 5


def test_no_cache_is_needed(corpus: LabelledCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE_SIZE", "0")
    for _ in range(2):
        encoder = Encoder()
        assert np.array_equal(embed(corpus, range(50), encoder), HashEncoder().encode(corpus.texts))
        assert encoder.n_encoded == 50


def test_progress_counts_what_is_missing(corpus: LabelledCorpus) -> None:
    embed(corpus, range(20), Encoder())
    calls = []
    embed(corpus, range(50), Encoder(), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(8, 30), (16, 30), (24, 30), (30, 30)]
