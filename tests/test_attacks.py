"""A few hundred of the damaged models, tables and projects of benchmarks/attacks; benchmarks/results has thousands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.attacks import runner

REPO = Path(__file__).parent.parent
RESULTS = REPO / "benchmarks" / "results"
# Every kind of mutation some times; of tables, of which some kinds take long, those that do not.
CASES = {"models": range(180), "tables": range(240), "kept": range(90), "projects": range(120)}
ALL = {"models": 10_000, "tables": 10_000, "kept": 4_500, "projects": 3_000}


@pytest.mark.attack
@pytest.mark.parametrize("name", list(CASES))
def test_damaged_files_give_clear_errors_or_good_results(name: str, tmp_path: Path) -> None:
    # In a process of its own: the audit hook stays for good, and workers are forked from it.
    code = (
        "import sys, json\n"
        "from dataclasses import asdict\n"
        "from pathlib import Path\n"
        f"from benchmarks.attacks import runner, {name}\n"
        "runner.prepare_environment(Path(sys.argv[1]))\n"
        f"attack = {name}.{name.capitalize()}(Path(sys.argv[1]), seed=1)\n"
        f"found = [asdict(o) for o in attack.run_all({CASES[name]!r})]\n"
        "Path(sys.argv[1], 'found.json').write_text(json.dumps(found))\n"
    )
    source = os.pathsep.join([str(REPO), str(REPO / "src")])
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=REPO, env=environment, check=True, timeout=300)
    found = [runner.Outcome(**outcome) for outcome in json.loads((tmp_path / "found.json").read_text())]
    assert len(found) == len(CASES[name])
    assert [outcome for outcome in found if outcome.outcome not in runner.FINE] == []
    assert name == "kept" or {outcome.outcome for outcome in found} == set(runner.FINE)


@pytest.mark.parametrize("name", list(CASES))
def test_the_committed_run_found_nothing(name: str) -> None:
    result = json.loads((RESULTS / f"attacks_{name}.json").read_text())
    assert result["cases"] == ALL[name]
    assert {kind: n for kind, n in result["outcomes"].items() if n and kind not in runner.FINE} == {}


class Awkward(runner.Attack):
    """What the runner has to notice."""

    name = "awkward"
    allowance = 50_000_000
    seconds = -5.0  # so that five seconds are too long

    def kinds(self) -> list[str]:
        return [
            "fine",
            "refused",
            "long error",
            "exception",
            "warning",
            "crash",
            "timeout",
            "read",
            "write",
            "memory",
            "code",
        ]

    def make(self, kind: str, rng: object, folder: Path) -> str:
        self.kind = kind
        (folder / "evil.py").write_text("x = 1")
        return kind

    def use(self, folder: Path) -> None:
        import ctypes
        import time
        import warnings

        from strays.errors import DataError

        if self.kind in ("refused", "long error"):
            raise DataError("no" * (1 if self.kind == "refused" else 10_000))
        if self.kind == "exception":
            raise KeyError("x")
        if self.kind == "warning":
            warnings.warn("hm", RuntimeWarning, stacklevel=1)
        if self.kind == "crash":
            ctypes.string_at(0)
        if self.kind == "timeout":
            time.sleep(60)
        if self.kind == "read":
            (self.outside / "canary.txt").read_text()
        if self.kind == "write":
            (self.outside / "new").write_text("x")
        if self.kind == "memory":
            bytearray(b"x" * 200_000_000)
        if self.kind == "code":
            exec(compile((folder / "evil.py").read_text(), str(folder / "evil.py"), "exec"))


@pytest.mark.attack
def test_the_runner_notices_everything(tmp_path: Path) -> None:
    code = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from tests.test_attacks import Awkward\n"
        "attack = Awkward(Path(sys.argv[1]), seed=0)\n"
        "print(json.dumps([[o.number, o.outcome] for o in attack.run_all(range(11))]))\n"
    )
    source = os.pathsep.join([str(REPO), str(REPO / "src")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "root")],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": source},
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    expected = ["worked", "refused", "unclear error", "other exception", "warning", "crash", "timeout"]
    expected += ["read outside", "wrote outside", "memory", "code executed"]
    assert json.loads(done.stdout.splitlines()[-1]) == [[i, outcome] for i, outcome in enumerate(expected)]
