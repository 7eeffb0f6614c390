"""The paper's Figures 1 and 2, redrawn by us: what they explain, not what they look like. They need no rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from strays.detectors.network import weighted_center
from strays.studies.paper.figures import BLUE, COLORS, GREEN, RED, panels

# Each circle holds this share of the points that are labelled normal.
INSIDE = 0.95
# Draws that tell how usual the one of Figure 1 is.
DRAWS = 200


@dataclass(frozen=True)
class Motivation:
    """The points of Figure 1, and what is computed from them: two circles and the line of a logistic regression.

    >>> sketch = motivation()
    >>> sketch.missed("with labels") <= sketch.missed("without labels")
    True
    """

    normal: np.ndarray  # (n, 2), and so are the next three
    mislabelled: np.ndarray  # anomalies that are labelled normal
    known: np.ndarray
    unseen: np.ndarray
    circles: dict[str, tuple[np.ndarray, float]]  # "without labels", "with labels": centre and radius
    coef: np.ndarray  # the classifier calls x an anomaly where coef @ x + intercept > 0
    intercept: float

    def flags(self, by: str, points: np.ndarray) -> np.ndarray:
        """Which points one of the circles, or the "classifier", calls anomalies."""
        if by == "classifier":
            return np.asarray(points @ self.coef + self.intercept > 0)
        center, radius = self.circles[by]
        return np.asarray(np.linalg.norm(points - center, axis=1) > radius)

    def missed(self, by: str) -> int:
        """How many unseen anomalies are taken for normal."""
        return int((~self.flags(by, self.unseen)).sum())


@cache
def motivation(seed: int = 4) -> Motivation:
    """One draw: normals around the origin, a few known anomalies on one side, others all around."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(80, 2))
    mislabelled = (5.0, 4.5) + 0.5 * rng.normal(size=(3, 2))
    known = (4.5, 4.5) + 0.8 * rng.normal(size=(9, 2))
    angle = 2 * np.pi * (np.arange(14) + 0.5) / 14
    unseen = rng.uniform(2.2, 5.5, size=(14, 1)) * np.c_[np.cos(angle), np.sin(angle)]
    X = np.concatenate([normal, mislabelled, known])
    y = np.r_[np.ones(len(normal) + len(mislabelled)), -np.ones(len(known))]
    centers = {"without labels": X.mean(axis=0), "with labels": weighted_center(X, y)}
    radius = {
        name: float(np.quantile(np.linalg.norm(X[y > 0] - center, axis=1), INSIDE)) for name, center in centers.items()
    }
    classifier = LogisticRegression().fit(X, y < 0)
    return Motivation(
        normal,
        mislabelled,
        known,
        unseen,
        {name: (center, radius[name]) for name, center in centers.items()},
        classifier.coef_[0],
        float(classifier.intercept_[0]),
    )


def figure_1() -> Any:
    """The motivation: a circle without labels, one with labels, and a classifier's line."""
    sketch = motivation()
    figure, [ax] = panels(1, columns=1, size=(7.8, 4.6))
    ax.scatter(*sketch.normal.T, s=12, color=BLUE, alpha=0.6, lw=0, label="normal")
    ax.scatter(*sketch.mislabelled.T, s=30, color="#8c564b", label="anomaly labelled normal")
    ax.scatter(*sketch.known.T, s=30, color=GREEN, marker="x", label="known anomaly")
    ax.scatter(*sketch.unseen.T, s=30, color="black", marker="^", lw=0, label="anomaly of a kind never seen")
    colors = {"without labels": BLUE, "with labels": RED}
    for (name, (center, radius)), equation in zip(sketch.circles.items(), (4, 5), strict=True):
        turn = np.linspace(0, 2 * np.pi, 121)
        around = center[:, None] + radius * np.array([np.cos(turn), np.sin(turn)])
        ax.plot(*around, color=colors[name], lw=1.6, label=f"centre {name} (Eq. {equation}), its circle")
        ax.scatter(*center, s=60, color=colors[name], marker="+")
    x = np.array([-6.0, 7.0])
    line = -(sketch.coef[0] * x + sketch.intercept) / sketch.coef[1]
    ax.plot(x, line, color=COLORS["logistic"], lw=1.6, label="logistic regression: anomalies beyond the line")
    ax.set(xlim=(-6, 7), ylim=(-6, 7), aspect="equal")
    ax.set_axis_off()
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    figure.suptitle("Figure 1, redrawn: why labels move the centre (an illustration with made-up points)")
    return figure


# Figure 2: stages as (left, right, title), boxes as (x, y, width, height, colour, lines), arrows from point to point.
STAGES = (
    (0, 21, "input"),
    (23, 46, "pretraining stage"),
    (48, 78, "training stage"),
    (80, 104, "test stage"),
)
FOR_BOTH, FOR_OC, FOR_AI = "#f0f0f0", "#dbe9f6", "#fde5cc"
BOXES = (
    (2, 35, 17, 7, FOR_BOTH, ("**texts**", "y = +1 normal, -1 anomaly")),
    (2, 25, 17, 7, FOR_BOTH, ("**encoder**", "BERT in the paper, frozen")),
    (2, 15, 17, 7, FOR_BOTH, ("**embeddings x**",)),
    (
        25,
        5,
        19,
        15,
        FOR_OC,
        ("**auto-encoder**", "MLP encoder and decoder,", "mean squared error;", "the encoder goes on"),
    ),
    (
        50,
        26,
        26,
        16,
        FOR_AI,
        (
            "**AI-SVDD: MLP on the BC-Loss**",
            "Eq. 6, with the labels y;",
            "after every step each layer",
            "is divided by its norm (Eq. 8)",
        ),
    ),
    (
        50,
        5,
        26,
        15,
        FOR_OC,
        ("**deep OC-SVDD: MLP on the OC-Loss**", "Eq. 1, no labels; fixed centre c,", "weight decay λ"),
    ),
    (
        82,
        14,
        20,
        19,
        FOR_BOTH,
        (
            "**distance to the centre**",
            "T(x) = |φ(x; W) - c|",
            "of a test text's embedding;",
            "higher is odder",
        ),
    ),
)
ARROWS = (
    ((10.5, 35), (10.5, 32.4)),
    ((10.5, 25), (10.5, 22.4)),
    ((19, 17), (24.6, 12.5)),
    ((19, 20), (49.6, 34)),
    ((44, 12.5), (49.6, 12.5)),
    ((76, 34), (81.6, 27)),
    ((76, 12.5), (81.6, 19.5)),
)
NOTES = (
    (34.5, 36, ("the BC-Loss needs", "no pretraining")),
    (92, 39, ("AI-SVDD:", "c = c* = Σ yφ(x) / Σ y,", "over the training set")),
    (92, 7, ("OC-SVDD: c is the mean", "of the pretrained latents")),
)


def figure_2() -> Any:
    """The pipeline: texts, encoder, and the two ways to train; the distance to the centre is the score."""
    from matplotlib.patches import FancyBboxPatch, Rectangle

    figure, [ax] = panels(1, columns=1, size=(10.4, 4.4))
    ax.set(xlim=(-0.5, 104.5), ylim=(0, 49))
    ax.set_axis_off()
    for left, right, title in STAGES:
        ax.add_patch(Rectangle((left, 1), right - left, 47, facecolor="#fafafa", edgecolor="#d0d0d0", lw=0.8))
        ax.text((left + right) / 2, 45.5, title, ha="center", va="center", color="#555555", style="italic")
    for x, y, width, height, color, lines in BOXES:
        shape = FancyBboxPatch(
            (x, y), width, height, "round,pad=0,rounding_size=1", facecolor=color, edgecolor="#555555"
        )
        ax.add_patch(shape)
        _lines(ax, x + width / 2, y + height / 2, lines)
    for center_x, center_y, lines in NOTES:
        _lines(ax, center_x, center_y, lines, color="#555555")
    for start, end in ARROWS:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#333333", "shrinkA": 0, "shrinkB": 0})
    figure.suptitle("Figure 2, redrawn: from texts to scores")
    return figure


def _lines(ax: Any, x: float, y: float, lines: tuple[str, ...], color: str = "black") -> None:
    """Lines of text around a point; one between two pairs of stars is bold."""
    for i, line in enumerate(lines):
        below = (i - (len(lines) - 1) / 2) * 2.5
        weight = "bold" if line.startswith("**") else "normal"
        ax.text(x, y - below, line.strip("*"), ha="center", va="center", size=8, color=color, weight=weight)


SKETCHES = {"figure-1": figure_1, "figure-2": figure_2}
