from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import load_encoder
from strays.studies import embeddings
from strays.studies.corpora import CORPORA, LabelledCorpus
from strays.studies.embeddings import embed
from tests.conftest import HashEncoder


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
    encoder = HashEncoder()
    X = embed(corpus, [3, 7, 3], encoder)
    assert np.array_equal(X[[3, 7]], HashEncoder().encode(["text 3", "text 7"]))
    assert np.isnan(np.delete(X, [3, 7], axis=0)).all()
    assert sum(map(len, encoder.seen)) == 2


def test_a_stopped_run_keeps_its_finished_parts(
    corpus: LabelledCorpus, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_encoder(str(tiny_bert), cache=False).encode(corpus.texts)
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done == 24:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(corpus, range(50), load_encoder(str(tiny_bert)), progress=stop)
    assert told == [(8, 50), (16, 50), (24, 50)]
    again = load_encoder(str(tiny_bert))
    encoded: list[str] = []
    run = again._run  # type: ignore[attr-defined]

    def counted(texts: list[str], is_missing: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        encoded.extend(text for text, missing in zip(texts, is_missing, strict=True) if missing)
        yield from run(texts, is_missing)

    monkeypatch.setattr(again, "_run", counted)
    np.testing.assert_allclose(embed(corpus, range(50), again), expected, atol=1e-6)
    assert len(encoded) == 50 - 24
