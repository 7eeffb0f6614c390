"""The Ray engine without a cluster: what its readers and actors do, what it makes of a loss, and how it is called."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import strays
from strays.engines import LocalEngine, RayEngine
from strays.engines.ray.connection import stops_held
from strays.engines.ray.engine import Pool, pool_for
from strays.engines.ray.nodes import Actor, read_chunks, require_same_here
from strays.errors import ClusterError, DataError, StraysWarning, UsageError
from strays.jobs.score import Plan, Remaining, Scorer
from strays.jobs.score.plan import ChunkWriter
from strays.tables import InputFile
from tests.jobs.score.standin import Estimating, StandIn, Stop, everything_in, rows, run, stop, when_done, write

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'strays[ray]'")
pytestmark = [
    # Ray sets options of its own that it has deprecated, and leaves sockets to the garbage collector.
    pytest.mark.filterwarnings(
        r"ignore::DeprecationWarning:ray\..*",
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    ),
]


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Readers and actors work in this process; after so many chunks each, rounds lose a worker."""
    losses: list[int] = []

    @contextmanager
    def connected(address: str | None) -> Iterator[Any]:
        yield ray

    def one_round(_: Any, model: Scorer, sent: Scorer, plan: Plan, rests: list[Remaining]) -> Iterator[tuple]:
        actor, left = Actor(sent, plan, rests, str(Path.cwd())), losses.pop(0) if losses else sys.maxsize
        for chunk in read_chunks(pa.table({"rest": range(len(rests))}), plan, rests, strays.__version__):
            if left == 0:
                raise ray.exceptions.RayError("a worker is gone")
            left -= 1
            for answer in actor(chunk):
                yield from ((json.loads(row["told"]), row["data"]) for row in answer.to_pylist())

    for name, here in (("put", lambda model: model), ("get", lambda model: model), ("nodes", list)):
        monkeypatch.setattr(ray, name, here)
    monkeypatch.setattr("strays.engines.ray.engine.connected", connected)
    monkeypatch.setattr("strays.engines.ray.engine._round", one_round)
    return losses


# ---- the same as one process, whatever is lost -----------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out/", "out.csv"])
@pytest.mark.parametrize("model", [StandIn, partial(StandIn, top=7), Estimating])
@pytest.mark.parametrize("losses", [[], [0], [3, 0, 1, 0, 2]])
def test_what_is_lost_is_done_again_and_nothing_else(
    lose: list[int], folder: Path, tmp_path: Path, out: str, model: Callable[[], StandIn], losses: list[int]
) -> None:
    source = folder if out == "out/" else write(tmp_path / "t.csv", rows(75))
    for place in ("local", "ray"):
        (tmp_path / place).mkdir()
    run(source, f"{tmp_path}/local/{out}", alone := model())
    lose.extend(losses)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", StraysWarning)
        run(source, f"{tmp_path}/ray/{out}", there := model(), engine=RayEngine())
    assert [str(warning.message)[:29] for warning in warned] == ["the cluster has lost a worker"] * len(losses)
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "local")
    assert there.asked == alone.asked


def test_a_job_with_a_part_missing_in_its_midst_goes_on(lose: list[int], folder: Path, tmp_path: Path) -> None:
    for place, engine in (("local", LocalEngine()), ("ray", RayEngine())):
        out = tmp_path / place
        lose.clear()
        with pytest.raises(Stop):
            run(folder, f"{out}/", progress=when_done(58, stop), engine=engine)
        (out / "a-00001.parquet").unlink()
        lose[:] = [1, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StraysWarning)
            summary = run(folder, f"{out}/", model := StandIn(), engine=engine)
        assert (summary.n_rows, summary.n_remade, model.n_asked) == (80, 1, 80 - summary.n_resumed_rows)
    assert everything_in(tmp_path / "ray") == everything_in(tmp_path / "local")


def test_a_cluster_that_only_loses_workers_ends_the_job(lose: list[int], folder: Path, tmp_path: Path) -> None:
    lose.extend([2, 0, 1, 0, 0, 0])
    with (
        pytest.raises(ClusterError, match=r"lost workers 3 times .*memory for the model and part_rows rows") as raised,
        pytest.warns(StraysWarning, match="lost a worker"),
    ):
        run(folder, f"{tmp_path}/out/", engine=RayEngine())
    assert raised.value.params == ("part_rows",)
    assert run(folder, f"{tmp_path}/out/").n_resumed_rows == 25  # three chunks


# ---- what goes wrong -------------------------------------------------------------------------------------------------


class Doubting(StandIn):
    def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
        warnings.warn(StraysWarning("{recall} is strange", param="recall"), stacklevel=2)
        return super().anomaly_score(texts)


def test_errors_and_warnings_are_those_of_the_local_engine(lose: list[int], folder: Path, tmp_path: Path) -> None:
    said = []
    for place, engine in (("local", LocalEngine()), ("ray", RayEngine())):
        with pytest.warns(StraysWarning) as warned, pytest.raises(DataError) as raised:
            run(folder, f"{tmp_path}/{place}/", Doubting(), engine=engine, strict=True)
        assert {warning.message.params for warning in warned} == {("recall",)}
        said.append((raised.value.message.replace(f"{tmp_path}/{place}", "OUT"), raised.value.params))
    assert said[0] == said[1]
    assert "a.parquet, row 25: there is no text, which {strict}" in said[0][0]
    assert said[0][1] == ("strict",)


def test_a_node_that_does_not_see_the_files_says_so(tmp_path: Path) -> None:
    there = InputFile("a.csv", str(write(tmp_path / "a.csv", rows(3))), "csv")
    rest = Remaining(there, there.state())
    require_same_here(rest, strays.__version__)
    with pytest.raises(ClusterError, match=r"has strays .*, expected 0\.0"):
        require_same_here(rest, "0.0")
    with pytest.raises(DataError, match="has another file there"):
        require_same_here(Remaining(there, (0, 0)), strays.__version__)
    plan = Plan("text", 10, strict=False, in_folder=False, writer=ChunkWriter(f"{tmp_path}/none", {}, None, False))
    rests = [rest, Remaining(InputFile("b", "/none/b", "csv"), (0, 0))]
    first, second = read_chunks(pa.table({"rest": [0, 1]}), plan, rests, strays.__version__)
    assert "does not see /none/b; files must be on a path" in second["told"][0].as_py()
    actor = Actor.__new__(Actor)
    actor._plan = plan
    (told,) = actor(first)
    assert f"does not see {tmp_path}/none" in json.loads(told["told"][0].as_py())["says"][0]


# ---- how it is called ------------------------------------------------------------------------------------------------


def test_pipes_are_refused(folder: Path, tmp_path: Path) -> None:
    for source, out in ((folder / "b.csv", "-"), (Path("-"), tmp_path / "out.csv")):
        with pytest.raises(UsageError, match="a cluster works on files that its nodes see"):
            run(source, out, engine=RayEngine())


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
    with pytest.raises(ClusterError, match=r"no Ray cluster answers there .*Connection refused.*ray start --head"):
        run(folder, f"{tmp_path}/out/", engine=RayEngine(address))

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
        with pytest.raises(UsageError, match="expected auto or cpu, or, if there are GPUs, cuda"):
            pool_for(there, WithEncoder(device=device))
    with pytest.raises(ClusterError, match="no node of the cluster has a CPU"):
        pool_for([{"memory": 1.0}], StandIn())


def test_options_that_do_not_go_together(capfd: pytest.CaptureFixture) -> None:
    from strays.apps.cli import main

    for options, words in (
        (["--address", "127.0.0.1:6379"], "--address works only with --engine ray"),
        (["--engine", "spark"], "no such engine: 'spark'"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["score", "in.csv", "--model", "m", "--out", "out/", *options])
        assert exit_.value.code == 2
        assert words in capfd.readouterr().err
