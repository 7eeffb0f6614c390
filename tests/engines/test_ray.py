"""Scoring on a Ray cluster of two nodes: what comes out is what one process writes, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import strays
from strays.engines.local import LocalEngine
from strays.engines.ray import RayEngine
from strays.engines.ray.connection import on_loopback, stops_held
from strays.engines.ray.nodes import Actor, read_chunks, require_same_here
from strays.engines.ray.pool import Pool, pool_for
from strays.errors import ClusterError, DataError, StraysWarning, UsageError
from strays.jobs.score import Plan, Remaining, RowProgress, ScoreSummary, score_files
from strays.jobs.score.write import ChunkWriter
from strays.tables import InputFile
from tests.conftest import farm_texts
from tests.jobs.score.standin import StandIn, everything_in, rows, write

REPO = Path(__file__).parents[2]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'strays[ray]'")
pytestmark = [
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of all kinds, one of them in a folder of its own and one without rows."""
    source = tmp_path / "in"
    write(source / "a.parquet", [*rows(24, "a"), {"id": "none", "text": None}])
    write(source / "b.csv", rows(13, "b"))
    write(source / "deep" / "c.jsonl", rows(30, "c"))
    (source / "deep" / "d.txt").write_text("".join(f"line {i}\n" for i in range(12)))
    (source / "empty.csv").write_text("id,text\n")
    return source


class Slow(StandIn):
    """Takes its time, so that something can happen meanwhile."""

    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        time.sleep(0.1)
        return super().anomaly_score(texts)


class Stop(BaseException):
    """Stands for whatever ends a process."""


def on_ray(source: Path, out: str | Path, model: StandIn | None = None, **options) -> ScoreSummary:
    return run(source, out, model, engine=RayEngine(), **options)


def run(source: Path, out: str | Path, model: StandIn | None = None, **options) -> ScoreSummary:
    return score_files(
        model or StandIn(), str(source), str(out), **{"part_rows": 10, "engine": LocalEngine()} | options
    )


def when_done(rows: int, what: Callable[[], object]) -> RowProgress:
    """Does something once, when so many rows are done."""
    waiting = [what]

    @contextmanager
    def bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
        yield lambda done, total: waiting.pop()() if waiting and done >= rows else None

    return RowProgress(bar)


def stop() -> None:
    raise Stop


# ---- the same as one process ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("out", "rule"), [("out/", {}), ("out/", {"top": 7}), ("out.csv", {"max_false_share": 0.4})])
def test_the_output_is_that_of_the_local_engine(
    two_nodes, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, rule: dict
) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path("in") if out == "out/" else write(Path("a.parquet"), rows(35, "a"))
    for place in ("local", "ray"):
        Path(place).mkdir()
    expected = run(source, f"local/{out}", StandIn(**rule))
    got = on_ray(source, f"ray/{out}", StandIn(**rule))
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "local")
    assert {**vars(got), "rows_per_second": 0} == {**vars(expected), "rows_per_second": 0}
    assert got.rows_per_second > 0
    if out == "out/":  # where nothing is left to do, no cluster is asked
        monkeypatch.setattr("strays.engines.ray.engine.connected", None)
        assert on_ray(source, f"ray/{out}", StandIn(**rule)).n_resumed_rows == 80


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
        (tmp_path / "out" / f".b-00003.parquet.{os.getppid()}.part").write_text("half")  # as a killed worker leaves it
        two_nodes.remove_node(third, allow_graceful=False)

    with pytest.warns(StraysWarning, match="lost a worker"):
        on_ray(source, f"{tmp_path}/out/", Slow(), progress=when_done(150, kill))
    assert everything_in(tmp_path / "out") == everything_in(tmp_path / "whole")


DRIVER = """
import sys
from strays.engines.ray import RayEngine
from strays.jobs.score import score_files
from tests.engines.test_ray import Slow
score_files(Slow(), sys.argv[1], sys.argv[2], part_rows=10, engine=RayEngine(sys.argv[3]))
"""


def test_the_driver_killed_midway_is_gone_on_from(two_nodes, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", rows(600, "a"))
    run(source, f"{tmp_path}/whole/")
    manifest = tmp_path / "out" / "manifest.jsonl"
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stops_wait_until_ray_has_started_but_only_once(number: signal.Signals) -> None:
    from ray._private import utils

    def stop(*_: object) -> None:
        raise Stop

    before, reached = signal.signal(number, stop), []
    try:
        with pytest.raises(Stop), stops_held():
            utils.set_sigterm_handler(signal.SIG_DFL)  # as Ray does
            signal.raise_signal(number)
            reached.append("the end")
        with pytest.raises(Stop), stops_held():
            signal.raise_signal(number)
            signal.raise_signal(number)
            reached.append("nothing")
        assert signal.getsignal(number) is stop
        with stops_held():
            reached.append("this")
        assert reached == ["the end", "this"]
    finally:
        signal.signal(number, before)


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


def test_a_model_that_the_nodes_cannot_make_is_told_of(two_nodes, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", rows(20, "a"))
    with pytest.raises(ClusterError, match=r"could not be started \(ImportError: no such package.*on every node"):
        on_ray(source, f"{tmp_path}/out/", Unmakeable())


def fail_to_make() -> None:
    raise ImportError("no such package")


class Unmakeable(StandIn):
    def __reduce__(self):
        return fail_to_make, ()


class Dying(StandIn):
    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        os._exit(1)


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
        assert everything_in(tmp_path / "local")["manifest.jsonl"] == everything_in(tmp_path / "ray")["manifest.jsonl"]
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


def test_a_node_that_does_not_see_the_files_says_so(tmp_path: Path) -> None:
    there = InputFile("a.csv", str(write(tmp_path / "a.csv", rows(3))), "csv")
    rest = Remaining(there, there.state())
    require_same_here(rest, strays.__version__)
    with pytest.raises(ClusterError, match=r"has strays .*, expected 0\.0"):
        require_same_here(rest, "0.0")
    with pytest.raises(DataError, match="has another file there"):
        require_same_here(Remaining(there, (0, 0)), strays.__version__)
    import pyarrow as pa

    plan = Plan("text", 10, strict=False, in_folder=False, writer=ChunkWriter(f"{tmp_path}/none", {}, None, False))
    lines = [json.dumps(asdict(r)) for r in (rest, Remaining(InputFile("b", "/none/b", "csv"), (0, 0)))]
    first, second = read_chunks(pa.table({"rest": lines}), plan, strays.__version__)
    assert "does not see /none/b; files must be on a path" in second["told"][0].as_py()
    actor = Actor.__new__(Actor)
    actor._plan = plan
    (told,) = actor(first)
    assert f"does not see {tmp_path}/none" in json.loads(told["told"][0].as_py())["says"][0]


# ---- how it is called ------------------------------------------------------------------------------------------------


def test_pipes_are_refused(folder: Path, tmp_path: Path) -> None:
    for source, out in ((folder / "b.csv", "-"), (Path("-"), tmp_path / "out.csv")):
        with pytest.raises(UsageError, match="a cluster works on files that its nodes see"):
            on_ray(source, out)


def test_addresses_that_cannot_be(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    for address in ("auto", "ray://127.0.0.1:10001", "127.0.0.1", "127.0.0.1:x"):
        with pytest.raises(UsageError, match="expected HOST:PORT"):
            RayEngine(address)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            line, _ = server.accept()
            line.recv(99)
            line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            line.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match=r"no Ray cluster answers there .what answers is no cluster"):
            run(folder, f"{tmp_path}/out/", engine=RayEngine(address))
        thread.join()
    start = time.monotonic()
    with pytest.raises(ClusterError, match=r"no Ray cluster answers there .*Connection refused.*ray start --head"):
        run(folder, f"{tmp_path}/out/", engine=RayEngine(address))
    assert time.monotonic() - start < 5

    def other_version(*_: object, **__: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with: Ray 1")

    monkeypatch.setattr("strays.engines.ray.connection._require_answer", lambda address: None)
    monkeypatch.setattr(ray, "init", other_version)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with pytest.raises(ClusterError, match="Version mismatch"):
        run(folder, f"{tmp_path}/out/", engine=RayEngine(address))


@pytest.mark.parametrize("out", ["out/", "out.csv"])
def test_nothing_is_written_or_thrown_away_before_the_cluster_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, out: str
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    source = write(tmp_path / "in" / "a.csv", rows(35, "a")).parent
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    there = tmp_path / "there"
    there.mkdir()

    def ask(**options) -> None:
        with pytest.raises(ClusterError, match="no Ray cluster answers there"):
            run(source, f"{there}/{out}", engine=RayEngine(address), **options)

    ask()
    assert not any(there.iterdir())
    with pytest.raises(Stop):
        run(source, f"{there}/{out}", progress=when_done(20, stop))
    begun = everything_in(there)
    assert len(begun) > 1
    for options in ({}, {"restart": True}):
        ask(**options)
        assert everything_in(there) == begun
    run(source, f"{there}/{out}")
    if out == "out/":  # where nothing is left to do, no cluster is asked
        assert run(source, f"{there}/{out}", engine=RayEngine(address)).n_resumed_rows == 35


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strays.engines.ray.engine.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'strays\[ray\]'"):
        RayEngine()


class WithEncoder(StandIn):
    def __init__(self, **encoder: str) -> None:
        super().__init__()
        self.encoder_ = type("Encoder", (), encoder)()


def test_how_many_actors_there_are() -> None:
    network, nodes = WithEncoder(device="auto"), [{"CPU": 9.0}, {"CPU": 6.0}, {"memory": 1.0}]
    assert pool_for(nodes, StandIn()) == Pool(15, 1)
    assert pool_for(nodes, network) == Pool(3, 4)
    assert pool_for([{"CPU": 1.0}, *nodes], network) == Pool(16, 1)
    with_gpu = [*nodes, {"CPU": 16.0, "GPU": 2.0}]
    assert pool_for(with_gpu, network) == Pool(2, 8, 1)
    assert pool_for(with_gpu, WithEncoder(device="cpu")) == Pool(7, 4)
    for device, there in (("cuda", nodes), ("cuda:1", with_gpu)):
        with pytest.raises(UsageError, match="expected auto or cpu, or, where there are some, cuda"):
            pool_for(there, WithEncoder(device=device))
    with pytest.raises(ClusterError, match="no node of the cluster has a CPU"):
        pool_for([{"memory": 1.0}], StandIn())


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
    manifest, deadline = tmp_path / "out" / "manifest.jsonl", time.monotonic() + 240
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
    assert said == "stopped; the same command goes on from what is finished\n"
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


def test_options_that_do_not_go_together(capfd: pytest.CaptureFixture) -> None:
    from strays.apps.cli import main

    for options, words in (
        (["--address", "127.0.0.1:6379"], "give --engine ray with it"),
        (["--engine", "spark"], "no such engine: 'spark'"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["score", "in.csv", "--model", "m", "--out", "out/", *options])
        assert exit_.value.code == 2
        assert words in capfd.readouterr().err
