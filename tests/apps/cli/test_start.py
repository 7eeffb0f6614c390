"""What a command imports: start-up is nearly all imports, so none may load what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

PROGRAM = """
import json, sys
from strays.apps.cli import main
try:
    main(sys.argv[2:])
except SystemExit as end:
    assert not end.code, end.code
with open(sys.argv[1], "w") as out:
    json.dump(sorted(sys.modules), out)
"""
# What takes long to import, or much memory.
HEAVY = {
    "fastapi",
    "huggingface_hub",
    "jinja2",
    "matplotlib",
    "onnx",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
    "urllib.request",
}
# What a command needs that does something.
WORKING = {"numpy", "onnxruntime", "pyarrow", "rich", "tokenizers"}


def loaded_by(folder: Path, args: list[object], of: set[str]) -> set[str]:
    """Which of some modules a command loads in a process of its own."""
    out = folder / "modules.json"
    ran = subprocess.run([sys.executable, "-c", PROGRAM, out, *args], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(out.read_text())) & of


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["scan", "--help"]], ids=" ".join)
def test_help_loads_nothing_of_weight(args: list[object], tmp_path: Path) -> None:
    assert not loaded_by(tmp_path, args, HEAVY | WORKING)


def test_the_encoders_are_listed_without_loading_one(tmp_path: Path) -> None:
    assert not loaded_by(tmp_path, ["encoders"], {"onnxruntime", "scipy", "sklearn", "torch", "transformers"})


def test_scan(file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    command = ["scan", file, "--encoder", tiny_bert]
    assert not loaded_by(tmp_path, command, HEAVY)
    assert not loaded_by(tmp_path, command, {"onnxruntime"})  # all embeddings are in the cache


def test_scan_with_known_anomalies_loads_a_solver_of_scipys(file: Path, tiny_bert: Path, tmp_path: Path) -> None:
    command = ["scan", file, "--encoder", tiny_bert, "--label-column", "label"]
    assert not loaded_by(tmp_path, command, HEAVY - {"scipy"})


def test_score(file: Path, model: Path, tmp_path: Path) -> None:
    command = ["score", file, "--model", model, "--out", tmp_path / "out.csv"]
    assert not loaded_by(tmp_path, command, HEAVY)


def test_explain(model: Path, tmp_path: Path) -> None:
    assert not loaded_by(tmp_path, ["explain", "the cow sings now", "--model", model], HEAVY | {"pyarrow"})


def test_the_library_and_its_detectors_load_neither_scikit_learn_nor_scipy() -> None:
    program = """
import sys
import numpy
import strays.detectors
from strays import TextOutlierDetector
for name in strays.detectors.DETECTORS:
    strays.detectors.detector_class(name)()
X = numpy.random.default_rng(0).normal(size=(50, 8))
strays.detectors.AutoDetector().fit(X).anomaly_score(X)
loaded = {"scipy", "sklearn", "torch"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
