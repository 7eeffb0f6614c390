"""Texts that look alike to an encoder tie: their p-values and flags never depend on rounding or on their company."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.detectors import DETECTORS, detector_class
from strays.model.calibration import Calibration, threshold
from tests.detectors.test_every_detector import make

N_ALIKE = 190


class FirstWord:
    """An encoder that sees the first word of a text alone, as a small static one may."""

    dimension = 131

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        seeds = [int.from_bytes(text.split()[0].encode()[-4:], "big") for text in texts]
        rows = [np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)


@pytest.fixture(scope="module", params=DETECTORS)
def model(request: pytest.FixtureRequest) -> TextOutlierDetector:
    """Fitted on texts of which nearly all look alike."""
    texts = [f"hello {i}" for i in range(N_ALIKE)] + [f"w{i}" for i in range(12)]
    return TextOutlierDetector(FirstWord(), make(detector_class(request.param)), form=False).fit(texts)


def test_many_texts_that_look_alike_have_one_p_value_in_any_company(model: TextOutlierDetector) -> None:
    alike, others = [f"hello again {i}" for i in range(60)], [f"new{i}" for i in range(40)]
    [score], [p] = model.anomaly_score(alike[:1]), model.p_value(alike[:1])
    for n_alike, n_others in ((1, 1), (2, 0), (7, 0), (6, 13), (60, 40), (1, 40)):
        for company in (alike[:n_alike] + others[:n_others], others[:n_others] + alike[:n_alike]):
            found = model.score(company)
            first = [text.startswith("hello") for text in company]
            assert set(found.anomaly_score[first]) == {score}
            assert set(found.p_value[first]) == {p}
            assert not found.flagged[first].any()


def test_texts_that_nearly_all_look_alike_are_not_flagged(model: TextOutlierDetector) -> None:
    """They are far more than any rule may flag."""
    texts = [f"hello {i}" for i in range(N_ALIKE)]
    for rule in ({"max_false_alarms": 0.05}, {"flag_rate": 0.05}):
        model.set_threshold(**rule)
        assert (model.predict(texts) == 1).all()
    # Where held-out texts are scored in folds, each fold has scores a little different from the others.
    assert model.p_value(texts).min() > (0.05 if model.detector_.comparable_fits else 0.9)
    model.set_threshold(max_false_alarms=0.05)


@pytest.mark.parametrize("shift", [0, 1e-15, -1e-15, 1e-9, -1e-9, 1e-7])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_scores_that_differ_by_rounding_tie_with_those_of_a_saved_model(shift: float, size: float) -> None:
    """A model of version 0.1 has scores that were computed in another way."""
    rounding = 1 + 1e-15 * np.random.default_rng(0).integers(-3, 4, size=200)
    normals = size * np.r_[rounding, np.linspace(2, 3, 10)]
    calibration = Calibration.from_scores(normals, normals)
    scores = size * np.array([1 + shift, 2 + shift, 3 + shift, 4])
    np.testing.assert_allclose(calibration.p_value(scores) * 211, [211, 11, 2, 1])
    for rule, flagged in (("max_false_alarms", [False, False, True, True]), ("flag_rate", [False, False, True, True])):
        wanted = threshold(**{rule: 2 / 210})
        assert calibration.flagged(wanted, scores).tolist() == flagged
        assert ((calibration.offset(wanted, scores) - scores) < 0).tolist() == flagged


def test_one_huge_held_out_score_makes_no_ties() -> None:
    normals = np.r_[np.arange(1.0, 100), 1e15]
    calibration = Calibration.from_scores(normals, normals)
    assert calibration.p_value(np.array([50.0, 99.5])).tolist() == pytest.approx([52 / 101, 2 / 101])
