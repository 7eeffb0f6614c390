"""Detectors of one source tree, fitted in a process of its own, so that two versions can be compared in turn.

with Fitter("../before/src") as before, Fitter("src") as now: ...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

ROOT = Path(__file__).parents[1]


class Fitter:
    """strays of one source tree, waiting for rows to fit a detector on."""

    def __init__(self, source: str | Path) -> None:
        self._source = Path(source).resolve()

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        env = {**os.environ, "PYTHONPATH": f"{self._source}{os.pathsep}{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fitter"],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def fit(
        self, detector: str, params: dict[str, Any], X: np.ndarray, y: np.ndarray | None, X_test: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Seconds of the fit, and the scores of the test rows; all 0 where a network collapsed."""
        given, out = (Path(self._folder.name) / name for name in ("given.npz", "scores.npy"))
        np.savez(given, X=X, y=np.zeros(len(X), np.int8) if y is None else y, X_test=X_test)
        order = {"detector": detector, "params": params, "given": str(given), "out": str(out)}
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline()), np.load(out)


def main() -> None:
    from strays.detectors import detector_class
    from strays.errors import CollapseError

    for line in sys.stdin:
        order = json.loads(line)
        with np.load(order["given"]) as given:
            X, y, X_test = (given[name] for name in ("X", "y", "X_test"))
        detector = detector_class(order["detector"])(**order["params"])
        began = time.perf_counter()
        try:
            detector.fit(X, y)
            seconds = time.perf_counter() - began
            scores = detector.anomaly_score(X_test)
        except CollapseError:
            seconds, scores = time.perf_counter() - began, np.zeros(len(X_test))
        np.save(order["out"], scores)
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
