from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector, load_encoder
from strays.detectors import CentroidDistance
from strays.model import scoring
from tests.conftest import HashEncoder, farm_texts

TEXTS = farm_texts(120)


class Reporting(HashEncoder):
    """Reports from within, after every third text."""

    def encode(self, texts: list[str], *, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        if progress:
            for done in range(3, len(texts) + 1, 3):
                progress(done, len(texts))
        return super().encode(texts)


class Streaming(HashEncoder):
    """Gives embeddings in an order of its own."""

    def stream(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for rows in np.array_split(np.random.default_rng(0).permutation(len(texts)), 7):
            yield rows, self.encode([texts[i] for i in rows])


@pytest.mark.parametrize("at_once", [10, 1000])
@pytest.mark.parametrize("encoder", [HashEncoder, Streaming, Reporting])
def test_texts_are_scored_in_blocks_while_the_next_are_encoded(
    encoder: type[HashEncoder], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "AT_ONCE", at_once)
    X = HashEncoder().encode(TEXTS)
    found = scoring.anomaly_scores(encoder(), lambda texts, X: X.sum(axis=1), [*TEXTS, *TEXTS[:5]])
    np.testing.assert_allclose(found, [*X.sum(axis=1), *X.sum(axis=1)[:5]])


def test_an_error_of_the_detector_in_its_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "AT_ONCE", 10)

    def fail(texts: list[str], X: np.ndarray) -> np.ndarray:
        raise ArithmeticError("of a detector")

    with pytest.raises(ArithmeticError, match="of a detector"):
        scoring.anomaly_scores(HashEncoder(), fail, TEXTS)


@pytest.mark.parametrize("encoder", [HashEncoder, Reporting])
def test_progress_goes_up_to_all_texts(encoder: type[HashEncoder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "AT_ONCE", 50)
    model = TextOutlierDetector(encoder(), CentroidDistance())
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    for job in (model.fit, model.anomaly_score, model.score):
        told.clear()
        job(TEXTS, progress=progress)  # type: ignore[operator]
        assert told == sorted(told)
        assert told[-1] == (120, 120)
        assert {total for _, total in told} == {120}
    told.clear()
    model.explain_many(TEXTS[:3], progress=progress)
    assert told[-1][0] == told[-1][1] > 3


def test_a_transformer_reports_its_progress(tiny_bert: Path) -> None:
    model = TextOutlierDetector(load_encoder(str(tiny_bert), cache=False), CentroidDistance())
    told: list[tuple[int, int]] = []
    for job in (model.fit, model.anomaly_score):
        told.clear()
        job(TEXTS, progress=lambda done, total: told.append((done, total)))  # type: ignore[operator]
        assert told == sorted(told)
        assert told[-1] == (120, 120)


def test_a_model_without_a_cache_keeps_no_embeddings(tiny_bert: Path, tmp_path: Path) -> None:
    TextOutlierDetector(load_encoder(str(tiny_bert), cache=False), CentroidDistance()).fit(TEXTS).save(tmp_path / "m")
    cached = TextOutlierDetector.load(tmp_path / "m")
    cached.set_threshold(flag_rate=0.2)
    for model in (cached.without_cache(), TextOutlierDetector.load(tmp_path / "m", cache=False)):
        assert model.encoder_.cache is None  # type: ignore[attr-defined]
        assert model.fingerprint == cached.fingerprint
    assert cached.without_cache().threshold_ == cached.threshold_
    assert cached.encoder_.cache is not None  # type: ignore[attr-defined]


def test_an_encoder_object_without_a_cache_stays_as_it_is() -> None:
    model = TextOutlierDetector(HashEncoder(), CentroidDistance()).fit(TEXTS)
    assert model.without_cache().encoder_ is model.encoder_
