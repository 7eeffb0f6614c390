"""Scoring on a Ray cluster of two nodes: what comes out is what one process writes, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from strays.engines import RayEngine
from strays.engines.ray.connection import on_loopback
from strays.errors import ClusterError, DataError, StraysWarning
from strays.jobs.score import ScoreSummary
from strays.jobs.score.part_files import path_aside
from tests.conftest import farm_texts
from tests.jobs.score.standin import Estimating, StandIn, Stop, everything_in, rows, run, stop, when_done, write

REPO = Path(__file__).parents[2]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'strays[ray]'")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(sys.platform == "win32", reason="Ray's test cluster does not run on Windows"),
    # Ray sets options of its own that it has deprecated, and leaves sockets to the garbage collector.
    pytest.mark.filterwarnings(
        r"ignore::DeprecationWarning:ray\..*",
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    ),
]


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[object]:
    """Two nodes of one core on this machine, and this process connected to them."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, on_loopback():
        patch.setenv("PYTHONPATH", f"{REPO}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")  # for the stand-ins
        node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 * 2**20}
        quick_to_notice = {"_system_config": {"health_check_period_ms": 1000}}
        nodes = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False} | quick_to_notice)
        nodes.add_node(**node)
        nodes.one_more = lambda: nodes.add_node(**node)
        ray.init(nodes.address, log_to_driver=False, logging_level="CRITICAL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from ray.data import DataContext

            DataContext.get_current()  # warns once of what it sets itself
        yield nodes
        ray.shutdown()
        nodes.shutdown()


class Slow(StandIn):
    """Takes its time, so that something can happen meanwhile."""

    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        time.sleep(0.1)
        return super().anomaly_score(texts)


def on_ray(source: Path, out: str | Path, model: StandIn | None = None, **options) -> ScoreSummary:
    return run(source, out, model, engine=RayEngine(), **options)


# ---- the same as one process ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "model"), [("out/", StandIn), ("out/", partial(StandIn, top=7)), ("out.csv", Estimating)]
)
def test_the_output_is_that_of_the_local_engine(
    two_nodes, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, model: Callable[[], StandIn]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path("in") if out == "out/" else write(Path("a.parquet"), rows(35, "a"))
    for place in ("local", "ray"):
        Path(place).mkdir()
    expected = run(source, f"local/{out}", model())
    got = on_ray(source, f"ray/{out}", model())
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "local")
    assert {**vars(got), "rows_per_second": 0} == {**vars(expected), "rows_per_second": 0}
    assert got.rows_per_second > 0
    if out == "out/":  # where nothing is left to do, no cluster is asked
        monkeypatch.setattr("strays.engines.ray.engine.connected", None)
        assert on_ray(source, f"ray/{out}", model()).n_resumed_rows == 80


def test_a_job_goes_from_one_engine_to_the_other(two_nodes, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stop):
        on_ray(folder, f"{out}/", progress=when_done(35, stop))
    (out / "a-00001.parquet").unlink()
    shutil.copytree(out, tmp_path / "ray")
    expected, got = run(folder, f"{out}/"), on_ray(folder, f"{tmp_path}/ray/")
    assert expected.n_remade == got.n_remade == 1
    assert 0 < expected.n_resumed_rows == got.n_resumed_rows < 80
    assert everything_in(tmp_path / "ray") == everything_in(out)
    assert got.n_rows == 80


# ---- what dies -------------------------------------------------------------------------------------------------------


def test_a_node_killed_midway_loses_and_doubles_nothing(two_nodes, folder: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "many" / "a.csv", rows(400, "a")).parent
    write(source / "b.parquet", rows(300, "b"))
    run(source, f"{tmp_path}/whole/")
    third = two_nodes.one_more()

    def kill() -> None:
        path_aside(tmp_path / "out", "b-00003.parquet").write_text("half")  # as a killed worker leaves it
        two_nodes.remove_node(third, allow_graceful=False)

    with pytest.warns(StraysWarning, match="lost a worker"):
        on_ray(source, f"{tmp_path}/out/", Slow(), progress=when_done(150, kill))
    assert everything_in(tmp_path / "out") == everything_in(tmp_path / "whole")


DRIVER = """
import sys
from strays.engines import RayEngine
from strays.jobs.score import score_files
from tests.engines.test_ray_cluster import Slow
score_files(Slow(), sys.argv[1], sys.argv[2], part_rows=10, engine=RayEngine(sys.argv[3]))
"""


@pytest.mark.process
def test_the_driver_killed_midway_is_gone_on_from(two_nodes, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", rows(600, "a"))
    run(source, f"{tmp_path}/whole/")
    manifest = tmp_path / "out" / "_manifest.jsonl"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(source), f"{tmp_path}/out/", two_nodes.address], cwd=REPO
    )
    deadline = time.monotonic() + 60
    while not (manifest.exists() and manifest.read_bytes().count(b"\n") > 6) and time.monotonic() < deadline:
        time.sleep(0.02)
    driver.kill()
    assert driver.wait() == -9
    assert on_ray(source, f"{tmp_path}/out/").n_resumed_rows in range(50, 590)
    assert everything_in(tmp_path / "out") == everything_in(tmp_path / "whole")


class Dying(StandIn):
    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        os._exit(1)


def test_workers_that_die_again_and_again_end_the_job(
    two_nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strays.engines.ray.engine.MOST_LOSSES", 2)
    source = write(tmp_path / "a.csv", rows(20, "a"))
    with (
        pytest.raises(ClusterError, match=r"lost workers 2 times .*run the job again"),
        pytest.warns(StraysWarning, match="lost a worker"),
    ):
        on_ray(source, f"{tmp_path}/out/", Dying())


def fail_to_make() -> None:
    raise ImportError("no such package")


class Unmakeable(StandIn):
    def __reduce__(self):
        return fail_to_make, ()


def test_a_model_that_the_nodes_cannot_make_is_told_of(two_nodes, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", rows(20, "a"))
    with pytest.raises(ClusterError, match=r"could not be started \(ImportError: no such package.*on every node"):
        on_ray(source, f"{tmp_path}/out/", Unmakeable())


# ---- what goes wrong -------------------------------------------------------------------------------------------------


class Failing(Slow):
    """Says something at first, and then fails, as a model of other people may."""

    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        warnings.warn("these texts are strange", StraysWarning, stacklevel=2)
        if texts[0].startswith("line"):
            raise ArithmeticError("of a model of other people")
        return super().anomaly_score(texts)


def test_errors_are_those_of_the_local_engine_and_what_is_done_is_kept(two_nodes, folder: Path, tmp_path: Path) -> None:
    texts = (folder / "b.csv").read_bytes()

    def both(options: dict) -> str:
        said = []
        for name, engine in (("local", run), ("ray", on_ray)):
            out = tmp_path / name
            if out.exists():
                subprocess.run(["rm", "-r", str(out)], check=True)
            with pytest.raises(DataError) as raised:
                engine(folder, f"{out}/", **options)
            said.append(str(raised.value).replace(str(out), "OUT"))
        assert said[0] == said[1]
        assert (
            everything_in(tmp_path / "local")["_manifest.jsonl"] == everything_in(tmp_path / "ray")["_manifest.jsonl"]
        )
        return said[0]

    assert "a.parquet, row 25" in both({"strict": True})  # told by an actor
    (folder / "b.csv").write_bytes(texts.replace(b"text b number 11", b"caf\xe9"))
    assert "byte 0xe9" in both({"part_rows": 5})  # told by a reader


def test_other_errors_and_warnings_of_a_model_arrive(two_nodes, folder: Path, tmp_path: Path) -> None:
    with (
        pytest.warns(StraysWarning, match="these texts are strange") as warned,
        pytest.raises(ArithmeticError, match="of a model of other people"),
    ):
        on_ray(folder, f"{tmp_path}/out/", Failing(), part_rows=5)
    assert len(warned) == 1


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.process
def test_the_command_on_a_cluster_of_its_own(tmp_path: Path, tiny_bert: Path) -> None:
    from strays import TextOutlierDetector

    TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(60)).save(tmp_path / "model")
    write(tmp_path / "in.csv", [{"id": i, "text": text} for i, text in enumerate(farm_texts(300))])

    def score(out: str, *options: str) -> subprocess.CompletedProcess:
        command = ["score", "in.csv", "--model", "model", "--out", out, "--part-rows", "64", *options]
        return subprocess.run([sys.executable, "-m", "strays", *command], capture_output=True, text=True, cwd=tmp_path)

    assert score("local/").returncode == 0
    ran = score("ray/", "--engine", "ray", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["n_rows"] == 300
    assert ran.stderr == ""
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "local")


LATE = """
import threading, time
from strays.engines.ray.connection import connected

def ask():
    time.sleep(2)
    print(len(ray.nodes()))

try:
    with connected(None) as ray:
        threading.Thread(target=ask, daemon=True).start()
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("went on")
"""


@pytest.mark.process
def test_a_job_broken_off_waits_for_threads_that_still_ask_ray() -> None:
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1\nwent on\n", "", 0)


@pytest.mark.process
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_the_command_ended_midway_takes_its_cluster_with_it(
    stop: signal.Signals, code: int, tmp_path: Path, tiny_bert: Path, own_cache: Path
) -> None:
    import psutil  # Ray brings it

    from strays import TextOutlierDetector

    TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(60)).save(tmp_path / "model")
    texts = [f"{text} {i}" for i, text in enumerate(farm_texts(384) * 100)]
    write(tmp_path / "in.csv", [{"text": text} for text in texts])
    command = [sys.executable, "-m", "strays", "score", "in.csv", "--model", "model", "--part-rows", "256", "--out"]
    manifest, deadline = tmp_path / "out" / "_manifest.jsonl", time.monotonic() + 240
    # A terminal's Ctrl-C goes to all processes of a group.
    options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([*command, "out/", "--engine", "ray"], **options) as process:
        try:
            while not (manifest.exists() and manifest.read_bytes().count(b"\n") > 2):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline, "it did not begin"
                time.sleep(0.02)
            (os.killpg if stop == signal.SIGINT else os.kill)(process.pid, stop)
            _, said = process.communicate(timeout=240)
        finally:
            process.kill()
    assert said == "interrupted; run the same command again to resume\n"
    assert process.returncode == code

    def cache_of(other: psutil.Process) -> str | None:
        try:
            return other.environ().get("STRAYS_CACHE") if other.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    assert not [other for other in psutil.process_iter() if cache_of(other) == str(own_cache)]
    done = manifest.read_bytes()
    assert 2 < done.count(b"\n") < 100
    subprocess.run([*command, "out/"], cwd=tmp_path, check=True, capture_output=True)
    assert manifest.read_bytes().startswith(done)
    assert manifest.read_bytes().count(b"\n") == 151
