"""Jobs ended by SIGKILL at random moments: what comes of them in the end is what an undisturbed one writes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import farm_texts
from tests.jobs.score.standin import everything_in, rows, write

REPO = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
]

# A process that loads the library once and has its children do the job; each writes down what it is asked to score.
FORKING = """
import os, random, signal, sys, time
import numpy as np
from tests.jobs.score.standin import StandIn
from strays.engines.local import LocalEngine
from strays.jobs.score import score_files

source, out, log, seed, kills = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
rule = {"top": 9} if "top" in out else {}

class Logging(StandIn):
    def anomaly_score(self, texts, *, progress=None):
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {texts[0].split()[-1]}\\n")
        time.sleep(0.002)
        return super().anomaly_score(texts)

def start():
    pid = os.fork()
    if pid == 0:
        score_files(Logging(**rule), source, out, part_rows=5, engine=LocalEngine())
        os._exit(0)
    return pid

def scored():
    return os.path.exists(log) and open(log).read().count("\\n")

def ends(pid):
    return os.waitpid(pid, 0)[1]

rng = random.Random(seed)
killed = 0
for turn in range(kills):
    before = scored()
    pid = start()
    if turn % 2:  # in the midst of scoring, wherever that is
        wanted, latest = before + rng.randint(1, 9), time.monotonic() + 5
        while scored() < wanted and time.monotonic() < latest:
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, 0.01))
    else:  # at any moment
        time.sleep(rng.uniform(0, 0.1))
    os.kill(pid, signal.SIGKILL)
    killed += os.WIFSIGNALED(ends(pid))
assert ends(start()) == 0
print(killed)
"""


@pytest.mark.parametrize(("out", "seed"), [("out/", 0), ("top/", 1), ("out.csv", 2), ("top.parquet", 3)])
def test_killed_again_and_again_the_output_is_the_same(tmp_path: Path, out: str, seed: int) -> None:
    source = write(tmp_path / "in.parquet", rows(600))
    (tmp_path / "killed").mkdir()
    (tmp_path / "undisturbed").mkdir()

    def job(place: str, kills: int) -> int:
        arguments = [str(source), f"{tmp_path}/{place}/{out}", str(tmp_path / f"{place}.log"), str(seed), str(kills)]
        command = [sys.executable, "-c", FORKING, *arguments]
        return int(subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout)

    job("undisturbed", 0)
    assert job("killed", 12) >= 10
    assert everything_in(tmp_path / "killed") == everything_in(tmp_path / "undisturbed")

    asked = [line.split() for line in (tmp_path / "killed.log").read_text().splitlines()]
    assert len({pid for pid, _ in asked}) > 3  # it was stopped while it scored
    for (pid, number), (next_pid, next_number) in pairwise(asked):
        step = int(next_number) - int(number)
        # The chunk in flight is scored again by the next process, any other once.
        assert step == 5 or (step == 0 and pid != next_pid)
    assert int(asked[-1][1]) == 595


def test_the_command_itself_killed(tmp_path: Path, tiny_bert: Path) -> None:
    from strays import TextOutlierDetector
    from strays.apps.cli import main

    TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(60)).save(tmp_path / "model")
    texts = farm_texts(384)
    for i in range(3):
        mine = [{"id": n, "text": f"{text} {n}"} for n, text in enumerate(texts[i::3] * 8)]
        write(tmp_path / "in" / f"{i}.parquet", mine)
    rng = random.Random(5)

    def command(out: str) -> list[str]:
        options = ["--model", f"{tmp_path}/model", "--out", f"{tmp_path}/{out}/", "--part-rows", "64"]
        return [sys.executable, "-m", "strays", "score", f"{tmp_path}/in", *options]

    with pytest.raises(SystemExit):
        main(command("undisturbed")[3:])
    manifest = tmp_path / "killed" / "_manifest.jsonl"
    kills = 0
    for _ in range(2):
        done = len(manifest.read_bytes().splitlines()) if manifest.exists() else 0
        process = subprocess.Popen(command("killed"), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if manifest.exists() and len(manifest.read_bytes().splitlines()) > done + 2:
                break
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        kills += process.wait() == -9
    assert kills == 2
    ran = subprocess.run(command("killed"), check=True, capture_output=True, text=True)
    assert "of them scored before" in ran.stderr
    assert everything_in(tmp_path / "killed") == everything_in(tmp_path / "undisturbed")
