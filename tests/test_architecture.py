"""Imports point one way, and the docs name what there is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import strays

SOURCE = Path(strays.__file__).parent
REPO = SOURCE.parent.parent

# Every part may import from rows above its own, never from its own row or below (itself excepted).
LAYERS = [
    ["errors", "sampling", ""],
    ["arrays"],
    ["cache"],
    ["tables", "encoders", "detectors", "calibration", "explain", "persistence", "labels", "terminal"],
    ["cascade", "fitting"],
    ["saving"],
    ["model"],
    ["triage"],
    ["corpus"],
    ["scoring"],
    ["cluster", "spark"],
    ["scanning", "evaluation"],
    ["report"],
    ["web"],
    ["review", "server"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def parts() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        name = relative.parts[0].removesuffix(".py")
        found.append(("" if name == "__init__" else name, path))
    return found


@pytest.mark.parametrize(("part", "path"), parts(), ids=lambda value: str(value).removeprefix(str(SOURCE)))
def test_imports_point_one_way(part: str, path: Path) -> None:
    assert part in LEVEL, f"{part} has no place in LAYERS"
    if part == "":
        return  # the package itself only names things, imported on use
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "strays":
            module = (node.module or "").split(".")
            names = [module[1]] if len(module) > 1 else [a.name if a.name in LEVEL else "" for a in node.names]
            for name in names:
                assert name == part or LEVEL[name] < LEVEL[part], f"{path.name} imports strays.{name}"


def test_only_the_cluster_imports_ray() -> None:
    importing = {part for part, path in parts() if re.search(r"^ *(import|from) ray\b", path.read_text(), re.MULTILINE)}
    assert importing == {"cluster"}


def test_nothing_unpickles() -> None:
    for _, path in parts():
        text = path.read_text()
        for word in ("import pickle", "joblib", "torch.load(", "trust_remote_code=True", "allow_pickle"):
            assert word not in text, f"{path} has {word}"


def test_the_architecture_page_names_every_module() -> None:
    page = (REPO / "docs" / "architecture.md").read_text()
    for name in LEVEL:
        if name and name != "__main__":
            assert re.search(rf"\b{name}(\.py|/)", page), f"docs/architecture.md does not name {name}"
