"""The logistic regression that is written out is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from strays.detectors.logistic_head import logistic_regression


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d", "n_known"), [(40, 60, 1), (300, 32, 20), (300, 3, 150)])
def test_coefficients_are_scikit_learns(n: int, d: int, n_known: int, C: float, weighted: bool) -> None:
    rng = np.random.default_rng(n + d)
    X, anomalous = rng.normal(size=(n, d)), np.arange(n) < n_known
    X[anomalous] += 0.5
    weight = rng.uniform(0.2, 1, n) if weighted else None
    theirs = LogisticRegression(C=C, max_iter=1000).fit(X, anomalous, sample_weight=weight)
    found = logistic_regression(X, anomalous, C, weight)
    np.testing.assert_allclose(found, np.r_[theirs.coef_[0], theirs.intercept_], rtol=0, atol=1e-8)


def test_rows_far_from_the_boundary_raise_no_warning() -> None:
    X = np.array([[-4000.0], [-3999], [3999], [4000]])
    with np.errstate(all="raise", under="ignore"):
        assert logistic_regression(X, np.array([False, False, True, True]), 1.0)[0] > 0
