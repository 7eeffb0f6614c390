"""The supplement's case studies, on points in the plane, where everything has a closed form.

A linear layer maps x to W^T x. With S = 1/n sum (x_i - m)(x_i - m)^T, the covariance of the points:

    Eq. 1   min 1/n sum |W^T x_i - c|^2 + lambda/2 |W|^2    ->  W = (2/n X^T X + lambda I)^-1 (2/n X^T 1 c^T)
    Eq. 3   min tr(W^T S W) + lambda/2 |W|^2                ->  W = 0, since 2 S + lambda I has full rank
    Eq. 4   min tr(W^T S W),  |W|_F = 1                     ->  the eigenvector of S with the least eigenvalue
    Eq. 6   the same with S_y = 1/n sum y_i (x_i - c*)(x_i - c*)^T,  c* = sum y_i x_i / sum y_i
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from strays.detectors.network import squared_distance, weighted_center
from strays.studies.paper.study import Cell, Compute, Setting, Study
from strays.studies.rows import Row

DRAWS = 200
# The appendix's choice.
LAMBDA = 1e-4
# Gradient descent of case I: a lambda large enough to see its end, and steps to get there.
CASE_1_LAMBDA, CASE_1_STEPS, CASE_1_RATE = 0.1, 400, 0.05
CURVE_STEP = 5  # every so many steps are kept for the figure
OBJECTIVES = {
    "eq1": "Eq. 1, centre 2 m",
    "eq1_at_mean": "Eq. 1, centre m",
    "eq4": "Eq. 4",
    "ai-svdd": "AI-SVDD",
    "ai-svdd_on_known": "AI-SVDD, ratio of the known anomalies",
}


def ridge_map(X: np.ndarray, c: np.ndarray, weight_decay: float) -> np.ndarray:
    """The minimiser W (inputs, outputs) of Eq. 1 for a linear layer."""
    n, d = X.shape
    return np.linalg.solve(2 / n * X.T @ X + weight_decay * np.eye(d), np.outer(2 * X.mean(axis=0), c))


def covariance(X: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """S, or S_y with labels."""
    y = np.ones(len(X)) if y is None else y
    away = X - weighted_center(X, y)
    return (y[:, None] * away).T @ away / len(X)


def flattest_map(S: np.ndarray) -> np.ndarray:
    """A minimiser of tr(W^T S W) with |W|_F = 1: the projection onto the eigenvector of the least eigenvalue."""
    v = np.linalg.eigh(S).eigenvectors[:, 0]
    return np.outer(v, v)


def mean_squared_distance(Z: np.ndarray, c: np.ndarray) -> float:
    """The paper's size of a hypersphere."""
    return float(squared_distance(Z, c).mean())


def largest_stretch(X: np.ndarray, W: np.ndarray) -> float:
    """The largest |W^T (x - y)| / (|W|_F |x - y|) of two points: at most 1, by Cauchy-Schwarz."""
    apart = (X[:, None] - X).reshape(-1, X.shape[1])
    apart = apart[apart.any(axis=1)]
    lengths = np.linalg.norm(apart @ W, axis=1) / np.linalg.norm(apart, axis=1)
    return float(lengths.max() / np.linalg.norm(W))


class CaseStudy(Study):
    """Many draws of one case; the first also keeps its points, for the figure.

    >>> CASES[2].name, sorted(CASES[2].compute(1))
    ('case-3', ['blind', 'blind_without_anomalies', 'taught'])
    """

    def __init__(self, name: str, title: str, compute: Callable[[int], Row]) -> None:
        super().__init__(name, title)
        self.compute = compute

    def cells(self, setting: Setting) -> list[Cell]:
        """One for each draw."""
        return [{"study": self.name, "draw": draw} for draw in range(DRAWS)]

    def prepare(self, setting: Setting) -> Callable[[], Compute]:
        """Nothing to prepare."""
        return lambda: lambda cell: self.compute(cell["draw"])


def case_1(draw: int) -> Row:
    """Gradient descent on Eq. 1, 3 and 4 for a linear layer, against the closed forms."""
    rng = np.random.default_rng(draw)
    X = rng.normal(size=(100, 2)) + 2
    c = X.mean(axis=0)
    S, best = covariance(X), ridge_map(X, c, CASE_1_LAMBDA)
    start = rng.normal(size=(2, 2))
    W1, W3, W4 = start, start, start / np.linalg.norm(start)
    error, norm_3, loss_4 = [], [], []
    for _ in range(CASE_1_STEPS):
        W1 = W1 - CASE_1_RATE * (2 / len(X) * X.T @ (X @ W1 - c) + CASE_1_LAMBDA * W1)
        W3 = W3 - CASE_1_RATE * (2 * S @ W3 + CASE_1_LAMBDA * W3)
        W4 = W4 - CASE_1_RATE * 2 * S @ W4
        W4 = W4 / np.linalg.norm(W4)
        error.append(float(np.linalg.norm(W1 - best) / np.linalg.norm(best)))
        norm_3.append(float(np.linalg.norm(W3)))
        loss_4.append(float(np.trace(W4.T @ S @ W4)))
    least = float(np.linalg.eigvalsh(S)[0])
    row: Row = {
        "eq1_error": error[-1],
        "eq3_least_eigenvalue": 2 * least + CASE_1_LAMBDA,
        "eq3_norm": norm_3[-1],
        "eq4_norm": float(np.linalg.norm(W4)),
        "eq4_loss": loss_4[-1],
        "eq4_least": least,
    }
    if draw == 0:
        curves = {"eq1_error": error, "eq3_norm": norm_3, "eq4_loss": loss_4}
        row["curves"] = {name: _short(curve[::CURVE_STEP]) for name, curve in curves.items()}
    return row


def case_2(draw: int) -> Row:
    """The three maps of a Gaussian with anomalies on a circle: size of the hypersphere, anomaly / normal ratio.

    Eq. 1 needs a centre, which the paper does not give; both m and 2 m are tried, m the mean of the points.
    Beside them, what Section 3 and the supplement prove: around the mean of the mapped points the hypersphere is no
    larger than around a fixed centre (`joint_to_fixed`); with weights of norm 1 no two points move apart (`stretch`).
    """
    rng = np.random.default_rng(draw)
    X = rng.normal(size=(100, 2)) + 2
    angle = rng.uniform(0, 2 * np.pi, size=10)
    circle = 2 + 2 * np.c_[np.cos(angle), np.sin(angle)]
    A, known = circle[:5], circle[5:]
    taught = np.r_[X, known]
    y = np.r_[np.ones(len(X)), -np.ones(len(known))]
    m = X.mean(axis=0)
    W1, W4, W6 = ridge_map(X, 2 * m, LAMBDA), flattest_map(covariance(X)), flattest_map(covariance(taught, y))
    maps = {"eq1": (W1, 2 * m), "eq4": (W4, m @ W4), "ai-svdd": (W6, weighted_center(taught, y) @ W6)}
    row: Row = {}
    for name, (W, c) in maps.items():
        size = mean_squared_distance(X @ W, c)
        row[name] = {"size": size, "ratio": mean_squared_distance(A @ W, c) / size}
    for name in ("eq4", "ai-svdd"):
        row[name]["stretch"] = largest_stretch(X, maps[name][0])
    row["joint_to_fixed"] = mean_squared_distance(X @ W1, m @ W1) / row["eq1"]["size"]
    small = ridge_map(X, m, LAMBDA)
    size = mean_squared_distance(X @ small, m)
    row["eq1_at_mean"] = {"size": size, "ratio": mean_squared_distance(A @ small, m) / size}
    size = row["ai-svdd"]["size"]
    row["ai-svdd_on_known"] = {"size": size, "ratio": mean_squared_distance(known @ W6, maps["ai-svdd"][1]) / size}
    if draw == 0:
        row["points"] = {"input": {"normal": _short(X), "anomaly": _short(A), "center": _short(m)}} | {
            name: {"normal": _short(X @ W), "anomaly": _short(A @ W), "center": _short(c)}
            for name, (W, c) in maps.items()
        }
    return row


def case_3(draw: int) -> Row:
    """How far the centre lies from the truth, [0, 0], when two normal rows are bad: with and without labels."""
    rng = np.random.default_rng(draw)

    def gauss(mean: tuple[float, float], variance: float, n: int) -> np.ndarray:
        return mean + np.sqrt(variance) * rng.normal(size=(n, 2))

    normal, bad = gauss((0, 0), 5, 10), gauss((45, 45), 10, 2)
    clusters = [((45.0, 45.0), 10, 2), ((10.0, 5.0), 3, 3), ((-5.0, -10.0), 2, 1), ((-10.0, -20.0), 2, 1)]
    anomaly = np.concatenate([gauss(mean, variance, n) for mean, variance, n in clusters])
    X = np.r_[normal, bad, anomaly]
    y = np.r_[np.ones(len(normal) + len(bad)), -np.ones(len(anomaly))]
    blind, taught = X.mean(axis=0), weighted_center(X, y)
    row: Row = {
        "blind": float(np.linalg.norm(blind)),
        "blind_without_anomalies": float(np.linalg.norm(X[y > 0].mean(axis=0))),
        "taught": float(np.linalg.norm(taught)),
    }
    if draw == 0:
        row["points"] = {
            name: _short(value)
            for name, value in {
                "normal": normal,
                "bad": bad,
                "anomaly": anomaly,
                "blind": blind,
                "taught": taught,
            }.items()
        }
    return row


CASES = (
    CaseStudy("case-1", "supplement, case I: a linear layer; Eq. 1 in closed form, the collapse of Eq. 3", case_1),
    CaseStudy("case-2", "supplement, case II: three maps of a Gaussian, sizes and distance ratios", case_2),
    CaseStudy("case-3", "supplement, case III: the centre with and without labels", case_3),
)


def _short(values: Any) -> Any:
    """Figures for a picture: four digits are enough."""
    if np.ndim(values):
        return [_short(value) for value in values]
    return float(f"{values:.4g}")
