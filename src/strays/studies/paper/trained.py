"""A method trained and tested on one draw, as often as a study asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from strays.detectors.sphere import SphereDetector
from strays.errors import DataError
from strays.studies.paper.methods import Method, ScoringEstimator, fit_and_score
from strays.studies.paper.study import SEEDS_APART, TEST_TO_TRAIN, Setting, joined, measure
from strays.studies.protocol import LabelledRows
from strays.studies.rows import Row, RowFile

Make = Callable[[int], ScoringEstimator]
Tuned = dict[str, dict[str, float]]
# Training normals that are scored, to tell overfitting.
NORMALS_SCORED = 2000


def train_and_test(
    make: Make,
    X: np.ndarray,
    train: LabelledRows,
    tests: Sequence[LabelledRows],
    *,
    sees_labels: bool,
    seed: int,
    trainings: int,
) -> list[Row]:
    """What each test set says of the method that `make` makes of a seed, over several trainings."""
    y = train.y if sees_labels else None
    normals = train.rows[train.y > 0][:NORMALS_SCORED]
    measured: list[list[Row]] = [[] for _ in tests]
    for training in range(trainings):
        estimator = make(seed + SEEDS_APART * training)
        own, *scores = fit_and_score(estimator, X[train.rows], y, X[normals], *(X[test.rows] for test in tests))
        for found, test, of_test in zip(measured, tests, scores, strict=True):
            row = measure(test.y, of_test)
            if isinstance(estimator, SphereDetector) and own.any():
                row[TEST_TO_TRAIN] = round(float(np.median(of_test[test.y > 0]) / np.median(own)) ** 2, 4)
            found.append(row)
    return [joined(found) for found in measured]


def maker(method: Method, study: str, tuned: Tuned) -> Make:
    """From a seed to the method as it is for a study, with the winner's settings where it takes those on."""
    grid = method.grid
    return lambda seed: method.make(study, seed, **(tuned[grid] if grid else {}))


def settings_of(method: Method, tuned: Tuned) -> Row:
    """What a row keeps of the settings that a tuned method took on."""
    return {"settings": tuned[method.grid]} if method.grid else {}


def runnable(methods: dict[str, Method], tuned: Tuned) -> dict[str, Method]:
    """The methods without those whose grid was not searched."""
    return {name: method for name, method in methods.items() if method.grid is None or method.grid in tuned}


def check_same_settings(file: RowFile, setting: Setting, methods: dict[str, Method], tuned: Tuned) -> None:
    """Raise where rows of a tuned method were made with other settings than the winner's now."""
    for row in file.read():
        if "settings" in row and row["encoder"] == setting.encoder_name:
            grid = methods[row["method"]].grid
            if grid in tuned and tuned[grid] != row["settings"]:
                raise DataError(
                    f"{file.path} has rows of {row['method']} with the settings {row['settings']}, but the rows of "
                    f"tuning now say {tuned[grid]}. Name another folder with {{out}}, or delete those rows",
                    param="out",
                )
