"""Imports point one way, also inside functions, and the house stays small enough to keep in one's head."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import strays

SOURCE = Path(strays.__file__).parent
# A package may import from those before its own, and from itself.
LAYERS = ["errors", "files", "encoders detectors tables", "model", "jobs", "engines", "studies", "apps", "__main__"]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
# Module -> its source. The package's own __init__ has the names that users import, and is of no layer.
TEXTS = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
    for path in SOURCE.rglob("*.py")
    if path != SOURCE / "__init__.py"
}
TREES = {module: ast.parse(text) for module, text in TEXTS.items()}


def imported(module: str) -> Iterator[str]:
    """The modules of strays that a module imports, wherever in it; `__version__` and the like are none."""
    for node in ast.walk(TREES[module]):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names = [f"{node.module}.{name}" for name in names]
        for name in (name.removeprefix("strays.") for name in names if name.startswith("strays.")):
            yield from [found for found in (name, name.rpartition(".")[0]) if found in TREES][:1]


def test_imports_point_one_way() -> None:
    graph = {module: set(imported(module)) - {module} for module in TREES}
    layer = {module: module.partition(".")[0] for module in TREES}
    pairs = [(layer[a], layer[b], f"{a} imports {b}") for a, found in graph.items() for b in found]
    assert not [words for a, b, words in pairs if a != b and LEVEL[b] >= LEVEL[a]]
    TopologicalSorter(graph).prepare()  # raises CycleError: inside a package there is one direction too


def test_the_house_is_small_and_a_name_means_one_class() -> None:
    assert len({path.name for path in SOURCE.iterdir()} - {"__pycache__", "py.typed"}) <= 12
    assert not {module: n for module, text in TEXTS.items() if (n := text.count("\n")) > 350}
    nodes = [node for tree in TREES.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert not [name for name, n in classes.items() if n > 1]


def test_nothing_unpickles() -> None:
    for word in ("import pickle", "joblib", "torch.load(", "trust_remote_code=True", "allow_pickle"):
        assert not [module for module, text in TEXTS.items() if word in text], word
