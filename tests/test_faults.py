"""Some of the faults of benchmarks/attacks/faults; all of them are in benchmarks/results/faults.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.attacks.faults.scenarios import SCENARIOS, Acknowledge, Scenario
from benchmarks.attacks.faults.shim import KINDS, can_build, start_again_with_shim

REPO = Path(__file__).parent.parent
RESULTS = REPO / "benchmarks" / "results"
needs_gcc = pytest.mark.skipif(not can_build(), reason="needs Linux and gcc, to stand before the C library")


def python(*args: object) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which starts itself again with the library that makes the faults."""
    source = os.pathsep.join([str(REPO), str(REPO / "src")])
    command = [sys.executable, *map(str, args)]
    return subprocess.run(
        command, cwd=REPO, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, timeout=900
    )


@needs_gcc
@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_fault_at_a_call_leaves_the_old_state_or_the_new_one(name: str) -> None:
    done = python("-m", "benchmarks.attacks.faults.run", "--scenario", name, "--every", 17)
    assert done.returncode == 0, done.stdout + done.stderr


class Clumsy(Scenario):
    """What the harness has to notice: a file written in place, and one of somebody else's that is touched."""

    name = "clumsy"

    def __init__(self, ends_badly: bool) -> None:
        self.ends_badly = ends_badly

    def prepare(self, folder: Path) -> None:
        (folder / "file").write_text("older" * 1000)

    def work(self, folder: Path, acknowledge: Acknowledge) -> None:
        if self.ends_badly:
            (folder / "letter.txt").chmod(0o644)
        (folder / "file").write_text("newer" * 1000)

    def look(self, folder: Path) -> str:
        return (folder / "file").read_text()


def try_clumsy_ones(root: Path) -> None:
    """Write what the harness says of them; in a process of its own."""
    start_again_with_shim()
    from benchmarks.attacks.faults.run import Faults

    said = {}
    for ends_badly in (False, True):
        faults = Faults(Clumsy(ends_badly), root / f"{ends_badly}")
        said[str(ends_badly)] = {kind: faults.try_all(kind, iter(range(1, 100))).bad for kind in KINDS}
    (root / "said.json").write_text(json.dumps(said))


@needs_gcc
@pytest.mark.attack
def test_the_harness_notices_half_a_file_and_a_changed_one_of_somebody_else(tmp_path: Path) -> None:
    code = "import sys, pathlib; from tests.test_faults import try_clumsy_ones as t; t(pathlib.Path(sys.argv[1]))"
    done = python("-c", code, tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "said.json").read_text())
    for kind in ("killed", "torn", "no space", "full", "broken"):
        assert any("neither old nor new" in words for words in said["False"][kind]), kind
        assert any("somebody else's" in words for words in said["True"][kind]), kind


def test_the_committed_run_found_nothing() -> None:
    result = json.loads((RESULTS / "faults.json").read_text())
    assert {(tried["scenario"], tried["kind"]) for tried in result["results"]} == {
        (name, kind) for name in SCENARIOS for kind in KINDS
    }
    assert result["calls"] == sum(tried["calls"] for tried in result["results"])
    assert result["calls"] >= 2000
    assert result["bad"] == 0
    assert [tried["bad"] for tried in result["results"] if tried["bad"]] == []


def test_no_flipped_bit_of_a_model_gave_another_result() -> None:
    result = json.loads((RESULTS / "attacks_model_bits.json").read_text())
    assert sum(result["came"].values()) == result["cases"] >= 1000
    assert "other" not in result["came"]
