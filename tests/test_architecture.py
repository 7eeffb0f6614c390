"""Imports point one way, also inside functions, and the house stays small enough to keep in one's head."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import strays

SOURCE = Path(strays.__file__).parent
# A package may import from the rows above its own, and from itself.
LAYERS = [
    {"errors"},
    {"files"},
    {"encoders", "detectors", "tables"},
    {"model"},
    {"jobs"},
    {"engines"},
    {"studies"},
    {"apps"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in LEVEL)


def imported(path: Path) -> Iterator[str]:
    """The entries of strays that a module imports, wherever in it; `__version__` and the like are of no layer."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{name}" for name in names]
        yield from (parts[1] for name in names if (parts := name.split("."))[0] == "strays" and parts[1] in LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for name in imported(path):
        assert name == own or LEVEL[name] < LEVEL[own], f"{own} imports strays.{name}"


def test_the_house_is_small() -> None:
    entries = {path.name for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"}
    assert len(entries) <= 12, sorted(entries)
    long = {path.name: n for path in MODULES if (n := len(path.read_text(encoding="utf-8").splitlines())) > 450}
    assert not long


def test_nothing_unpickles() -> None:
    for path in MODULES:
        for word in ("import pickle", "joblib", "torch.load(", "trust_remote_code=True", "allow_pickle"):
            assert word not in path.read_text(encoding="utf-8"), f"{path} has {word}"
