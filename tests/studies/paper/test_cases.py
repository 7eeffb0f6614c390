"""The closed forms against numbers found another way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from strays.detectors.ai_svdd import bc_loss
from strays.studies.paper import printed
from strays.studies.paper.cases import (
    DRAWS,
    case_1,
    case_2,
    case_3,
    covariance,
    flattest_map,
    ridge_map,
)


def test_the_map_of_eq_1_is_a_ridge_regression_onto_the_centre() -> None:
    rng = np.random.default_rng(0)
    X, c, weight_decay = rng.normal(size=(50, 4)) + 1, rng.normal(size=3), 0.3
    # 1/n |XW - 1c'|^2 + lambda/2 |W|^2 is 1/n times scikit-learn's |XW - Y|^2 + n lambda/2 |W|^2.
    ridge = Ridge(alpha=len(X) * weight_decay / 2, fit_intercept=False).fit(X, np.tile(c, (len(X), 1)))
    assert ridge_map(X, c, weight_decay) == pytest.approx(ridge.coef_.T)


def test_no_map_of_norm_1_has_a_lower_loss() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) @ np.diag([1, 2, 3])
    y = np.where(np.arange(60) < 10, -1.0, 1.0)
    W = flattest_map(covariance(X, y))
    assert np.linalg.norm(W) == pytest.approx(1)
    best = bc_loss(X @ W, y)
    assert best == pytest.approx(np.linalg.eigvalsh(covariance(X, y))[0])
    for _ in range(200):
        other = rng.normal(size=(3, 2))
        assert bc_loss(X @ (other / np.linalg.norm(other)), y) >= best - 1e-12


def test_case_1_eq_3_collapses_and_the_others_do_not() -> None:
    row = case_1(0)
    assert row["eq1_error"] < 1e-6
    assert row["eq3_norm"] < 1e-6
    assert row["eq3_least_eigenvalue"] > 0
    assert row["eq4_norm"] == pytest.approx(1)
    assert row["eq4_loss"] == pytest.approx(row["eq4_least"], rel=0.01)


def test_case_2_lands_within_the_spread_of_the_draws() -> None:
    rows = [case_2(draw) for draw in range(DRAWS)]
    for name, figures in printed.CASE_2.items():
        for field, paper in zip(("size", "ratio"), figures, strict=True):
            drawn = [row[name][field] for row in rows]
            low, high = np.quantile(drawn, [0.025, 0.975])
            assert low < paper < high, (name, field)
    # The scale of Eq. 1's centre is open: it moves the size and not the ratio.
    assert rows[3]["eq1"]["size"] == pytest.approx(4 * rows[3]["eq1_at_mean"]["size"], rel=1e-3)
    assert rows[3]["eq1"]["ratio"] == pytest.approx(rows[3]["eq1_at_mean"]["ratio"], rel=1e-3)


def test_case_3_labels_bring_the_centre_closer() -> None:
    rows = [case_3(draw) for draw in range(50)]
    assert np.mean([row["taught"] < row["blind"] for row in rows]) > 0.95


def test_only_the_first_draw_keeps_its_points() -> None:
    for case in (case_2, case_3):
        assert "points" in case(0)
        assert "points" not in case(1)
        assert case(5) == case(5)
