"""A scoring job on a Ray cluster: the only file that imports ray.

Readers on the nodes stream the files that are left, cut into chunks; actors that hold the model score the chunks and
write their parts. The driver gets what came of them, in order, and alone writes the manifest. A chunk travels as one
value, so that nothing cuts it, and errors as plain data behind the chunks before them, so that a job ends as it would
in one process. A worker that is lost ends one round; the next begins with what the manifest does not have.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from strays import __version__, errors
from strays.encoders.cores import usable_cores
from strays.errors import ClusterError, DataError, StraysError, StraysWarning, UsageError, first_line
from strays.scoring.job import Job
from strays.scoring.manifest import NAME, Part
from strays.scoring.rows import Scorer, encoders_in, without_cache
from strays.scoring.steps import Rest, Scored, Steps, Work, open_input
from strays.tables import Chunk, InputFile

PIP = "pip install 'strays[ray]'"
# Cores of one actor: encoders that run a network use several; any other works on one core at a time.
CORES_OF_A_NETWORK = 4
# A job is given up when so many rounds in a row lost a worker before the next chunk was done.
MOST_LOSSES = 3
SECONDS_TO_ANSWER, SECONDS_TO_NOTICE = 10.0, 60.0
# A file of more bytes counts as one with rows before it is read.
SMALL = 4096
# What a client of gRPC says first, with an empty frame of settings, and the kind of frame that a server answers with.
HTTP2_SETTINGS = b"\x04"
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0" + HTTP2_SETTINGS + b"\0" * 5
# Without it Ray takes 127.0.0.1 for a name of the network's address.
LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What stops a job.
STOPS = (signal.SIGINT, signal.SIGTERM)


class RayEngine:
    """Scores on a Ray cluster, with Ray Data: `score_files(..., engine=RayEngine("10.0.0.1:6379"))`.

    Parameters
    ----------
    address
        HOST:PORT of a cluster that this machine is a node of. None: one that is started on this machine, reachable from
        nowhere else, and ended with the job. Where this process has called ray.init() itself, that cluster is used.
    """

    def __init__(self, address: str | None = None) -> None:
        if find_spec("ray") is None:
            raise UsageError(f"the engine ray needs Ray, which is not installed; get it with: {PIP}")
        if address is not None:
            _host_and_port(address)
        self.address = address
        self._ray: Any = None

    @contextmanager
    def ready(self) -> Iterator[Any]:
        """Ray, connected; within another call, the same."""
        if self._ray is not None:
            yield self._ray
            return
        with _connected(self.address) as self._ray:
            try:
                yield self._ray
            finally:
                self._ray = None

    def run(self, job: Job, steps: Steps, left: Callable[[], Iterable[Rest]]) -> Iterator[Scored | Part]:
        """What came of every chunk that is left, in order; see strays.scoring.Engine."""
        steps = _written_from_anywhere(steps)
        rests = [rest for rest in left() if _may_have_rows(rest, steps)]
        if not rests:
            return
        with self.ready() as ray:
            model, losses, told = ray.put(_ready_to_send(job.model)), 0, set[str]()
            while rests:
                try:
                    with closing(_round(ray, job.model, model, steps, rests)) as lines:
                        for line, scores in lines:
                            for words in sorted(set(line["warnings"]) - told):
                                warnings.warn(words, StraysWarning, stacklevel=2)
                            told.update(line["warnings"])
                            result = _result(line, scores)
                            job.progress.take(result.rows if isinstance(result, Part) else len(result.scores))
                            job.progress.finish()
                            losses = 0
                            yield result
                    return
                except ray.exceptions.RayTaskError as error:  # what a model of other people raises
                    raise error.cause if isinstance(error.cause, Exception) else error from None
                except ray.exceptions.RayError as error:
                    if "creation task" in first_line(error):
                        raise ClusterError(
                            f"a worker could not be started ({str(error).strip().splitlines()[-1]}); expected strays, "
                            "and all that the model needs, to be installed alike on every node"
                        ) from error
                    losses += 1
                    if losses == MOST_LOSSES:
                        raise ClusterError(
                            f"the cluster lost workers {losses} times before the next chunk of rows was done, the last "
                            f"time by: {first_line(error).rstrip('.')}. See that its nodes stay up and have memory for "
                            "the model and --part-rows rows; the same command goes on from what is done"
                        ) from error
                    warnings.warn(
                        "the cluster has lost a worker; going on with what is not done", StraysWarning, stacklevel=2
                    )
                    _wait_for_the_dead(ray)
                    rests = [rest for rest in left() if _may_have_rows(rest, steps)]


# ---- the driver ------------------------------------------------------------------------------------------------------


def _round(
    ray: Any, model: Scorer, sent: Any, steps: Steps, rests: list[Rest]
) -> Generator[tuple[dict[str, Any], np.ndarray]]:
    """Score what is left with the nodes there are now; chunks come back in order."""
    data, pool = ray.data, _pool([node["Resources"] for node in ray.nodes() if node["Alive"]], model)
    lines = [{"rest": json.dumps(asdict(_seen_from_anywhere(rest)))} for rest in rests]
    dataset = data.from_items(lines, override_num_blocks=len(lines))
    context = dataset.context
    context.target_max_block_size = 1  # a chunk is a block of its own, and is handed on as soon as it is read
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    chunks = dataset.map_batches(
        _read,
        fn_args=(steps, __version__),
        batch_size=1,
        batch_format="pyarrow",
        num_cpus=0,  # all cores are the actors', who wait for little else
        compute=data.TaskPoolStrategy(size=min(pool.size, len(lines))),
    )
    with warnings.catch_warnings():
        # Ray would wait for ever for the place of a node that is gone; a new round does not. Up to Ray 2.63 this can
        # be said, with a warning that later it cannot.
        warnings.simplefilter("ignore")
        results = chunks.map_batches(
            _Actor,
            fn_constructor_args=(sent, steps, str(Path.cwd())),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
            compute=data.ActorPoolStrategy(size=pool.size, max_tasks_in_flight_per_actor=2),
            ray_remote_args_fn=lambda: {"max_restarts": 0, "max_task_retries": 0},
        )
    for batch in results.iter_batches(batch_size=1, batch_format="pyarrow"):
        for told, scores in zip(batch["told"].to_pylist(), batch["scores"], strict=True):
            yield json.loads(told), np.frombuffer(scores.as_buffer() or b"", "<f8")


@dataclass(frozen=True)
class Pool:
    """How many actors there are, and what each holds of a node."""

    size: int
    cpus: int
    gpus: int | None = None


def _pool(nodes: list[dict[str, float]], model: Scorer) -> Pool:
    """An actor for every GPU, where the encoder can use one; else all cores, in actors of as many as one can use."""
    device = next((str(e.device) for e in encoders_in(model) if hasattr(e, "device")), None)
    with_gpu = [node for node in nodes if node.get("GPU", 0) >= 1]
    if with_gpu and device in ("auto", "cuda"):
        each = min(int(node.get("CPU", 0) // int(node["GPU"])) for node in with_gpu)
        return Pool(sum(int(node["GPU"]) for node in with_gpu), max(each, 1), 1)
    if device not in (None, "auto", "cpu"):
        raise UsageError(
            f"device is {device!r}, and {len(with_gpu)} nodes of the cluster have GPUs, which Ray deals out; expected "
            "auto or cpu, or, where there are some, cuda"
        )
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise ClusterError("no node of the cluster has a CPU to work with; start one with: ray start --address ...")
    each = min(CORES_OF_A_NETWORK if device else 1, *cores)
    return Pool(sum(n // each for n in cores), each)


def _may_have_rows(rest: Rest, steps: Steps) -> bool:
    """Whether a file is worth a cluster; where it cannot be read, a reader will say so in its turn."""
    try:
        return rest.state[0] > SMALL or open_input(rest.file, in_folder=steps.in_folder) is not None
    except StraysError:
        return True


def _wait_for_the_dead(ray: Any) -> None:
    """Wait until the cluster knows which of its nodes are gone, as it would give them work again."""
    deadline = time.monotonic() + SECONDS_TO_NOTICE
    while time.monotonic() < deadline and not all(_answers(node) for node in ray.nodes() if node["Alive"]):
        time.sleep(0.5)


def _answers(node: dict[str, Any]) -> bool:
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), SECONDS_TO_ANSWER).close()
    except OSError:
        return False
    return True


def _ready_to_send(model: Scorer) -> Scorer:
    """See that static encoders have their tables, so that these travel and are not made anew on every node."""
    from strays.encoders.static import StaticEncoder

    for encoder in encoders_in(model):
        if isinstance(encoder, StaticEncoder):
            _ = encoder.dimension
    return model


def _seen_from_anywhere(rest: Rest) -> Rest:
    """The same, by a path that does not depend on where a process runs."""
    return replace(rest, file=replace(rest.file, path=str(Path(rest.file.path).absolute())))


def _written_from_anywhere(steps: Steps) -> Steps:
    """The same, with a folder that does not depend on where a process runs."""
    return replace(steps, parts=steps.parts and replace(steps.parts, folder=str(Path(steps.parts.folder).absolute())))


def _result(line: dict[str, Any], scores: np.ndarray) -> Scored | Part:
    if "error" in line:
        raise _error(line["error"], line["says"])
    return Part(**line["part"]) if "part" in line else Scored(line["entry"], scores)


# ---- the nodes -------------------------------------------------------------------------------------------------------

FIELDS = pa.schema(
    [
        ("rest", pa.string()),
        ("number", pa.int64()),
        ("first_row", pa.int64()),
        ("last", pa.bool_()),
        ("rows", pa.large_binary()),
        ("told", pa.string()),
    ]
)


def _read(batch: pa.Table, steps: Steps, version: str) -> Iterator[pa.Table]:
    """Read files in chunks, one a row; behind those of a file that cannot be read on, a row that says why."""
    for line in batch["rest"].to_pylist():
        try:
            rest = _rest(line)
            _require_same_here(rest, version)
            for work in steps.works(rest):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, work.chunk.rows.schema) as writer:
                    writer.write_table(work.chunk.rows)
                yield _one(line, work.number, work.chunk.first_row, work.chunk.last, sink.getvalue(), None)
        except (StraysError, OSError) as error:
            yield _one(line, None, None, None, None, json.dumps(_in_words(error)))


def _rest(line: str) -> Rest:
    told = json.loads(line)
    return Rest(**told | {"file": InputFile(**told["file"]), "state": tuple(told["state"])})


def _one(*values: Any) -> pa.Table:
    return pa.Table.from_arrays(
        [
            _bytes(value) if isinstance(value, pa.Buffer) else pa.array([value], field.type)
            for value, field in zip(values, FIELDS, strict=True)
        ],
        schema=FIELDS,
    )


def _bytes(data: pa.Buffer) -> pa.Array:
    """One value of bytes, which are not copied."""
    ends = np.array([0, data.size], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(ends), data])


class _Actor:
    """Holds the model and finishes chunks."""

    def __init__(self, model: Any, steps: Steps, folder: str) -> None:
        import ray

        self._steps = steps
        if Path(folder).is_dir():  # an encoder may be named by a path from there
            os.chdir(folder)
        self._model = ray.get(model)
        without_cache(self._model)

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        for i in range(len(batch)):
            scores = None
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", StraysWarning)
                try:
                    told, scores = self._finish(batch.slice(i, 1))
                except (StraysError, OSError) as error:
                    told = _in_words(error)
            told["warnings"] = [str(warning.message) for warning in said]
            yield pa.table(
                {"told": pa.array([json.dumps(told)]), "scores": pa.array([scores], pa.large_binary())},
            )

    def _finish(self, row: pa.Table) -> tuple[dict[str, Any], bytes | None]:
        if row["told"][0].is_valid:
            return json.loads(row["told"][0].as_py()), None
        if self._steps.parts and not (Path(self._steps.parts.folder) / NAME).exists():
            raise _not_seen(self._steps.parts.folder)
        rows = pa.ipc.open_stream(row["rows"][0].as_buffer()).read_all()
        chunk = Chunk(row["first_row"][0].as_py(), rows, row["last"][0].as_py())
        done = self._steps.finish(self._model, Work(_rest(row["rest"][0].as_py()), row["number"][0].as_py(), chunk))
        if isinstance(done, Part):
            return {"part": asdict(done)}, None
        return {"entry": done.entry}, np.ascontiguousarray(done.scores, "<f8").tobytes()


def _require_same_here(rest: Rest, version: str) -> None:
    """Raise unless this node has the strays and sees the file that the job began with."""
    if __version__ != version:
        raise ClusterError(
            f"the node {platform.node()} has strays {__version__}, expected {version} as where the job was started"
        )
    if not Path(rest.file.path).exists():
        raise _not_seen(rest.file.path)
    if rest.file.state() != rest.state:
        raise DataError(
            f"{rest.file.path}: is not of the size and time that it had when the job began, or the node "
            f"{platform.node()} has another file there; files must stay as they are, on a path that all nodes see"
        )


def _not_seen(path: str) -> DataError:
    return DataError(f"the node {platform.node()} does not see {path}; files must be on a path that all nodes see")


def _in_words(error: StraysError | OSError) -> dict[str, Any]:
    if isinstance(error, OSError):
        return {"error": "OSError", "says": [error.errno, error.strerror or str(error), error.filename]}
    return {"error": type(error).__name__, "says": str(error)}


def _error(kind: str, says: Any) -> Exception:
    if kind == "OSError":
        return OSError(*says)
    return getattr(errors, kind, StraysError)(says)


# ---- the connection --------------------------------------------------------------------------------------------------


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(f"address is {address!r}; expected HOST:PORT, as `ray start --head` prints it")
    return host.strip("[]"), int(port)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected and quiet; where this process was connected already, it stays so."""
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at the import; nothing is sent anywhere
    import ray

    with ExitStack() as stack:
        if address is not None and ray.is_initialized() and ray.get_runtime_context().gcs_address != address:
            raise UsageError(
                f"this process is connected to Ray at {ray.get_runtime_context().gcs_address} and the address is "
                f"{address}; leave one of them away"
            )
        if not ray.is_initialized():
            if address is None or _host_and_port(address)[0] in LOOPBACK:
                stack.enter_context(_on_loopback())
            if address is not None:
                _require_answer(address)
            try:
                stack.callback(ray.shutdown)
                quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
                with _stops_held():
                    if address is not None:
                        ray.init(address, **quiet)
                    else:
                        ray.init("local", num_cpus=usable_cores(), include_dashboard=False, **quiet)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise ClusterError(f"{address or 'Ray on this machine'}: {first_line(error)}") from error
            reached = [node["NodeManagerAddress"] for node in ray.nodes()]
            if address is None and not set(reached) <= set(LOOPBACK):
                raise ClusterError(f"Ray listens on {', '.join(reached)}, expected on 127.0.0.1 only; name an address")
        import ray.data

        stack.enter_context(_quiet(ray))
        yield ray


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Have Ray use 127.0.0.1 and no other address: its ports run code for whoever reaches them."""
    from ray._private import ray_constants

    before, was = {name: os.environ.get(name) for name in LOOPBACK_ONLY}, ray_constants.ENABLE_RAY_CLUSTER
    os.environ.update(LOOPBACK_ONLY)  # for the processes that it starts
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = was
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _stops_held() -> Iterator[None]:
    """Have SIGTERM and Ctrl-C wait until Ray has started, and then do what they did before; the second does not wait.

    Of a start that is broken off processes would be left. Ray would also take SIGTERM for itself, and end the process
    with a traceback and a code of its own.
    """
    from ray._private import utils

    if threading.current_thread() is not threading.main_thread():  # the only one that may say what signals do
        yield
        return
    before, setter = {number: signal.getsignal(number) for number in STOPS}, utils.set_sigterm_handler
    held: list[int] = []

    def hold(number: int, _: object) -> None:
        held.append(number)
        if len(held) > 1:
            release()

    def release() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if held:
            last = held[-1]
            held.clear()
            signal.raise_signal(last)

    for number in STOPS:
        signal.signal(number, hold)
    utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = setter
        release()


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Keep what Ray says of itself off the terminal, and off stdout, where results are; its log files have it all."""
    worker, log = ray._private.worker, logging.getLogger("ray.data")
    was, level = worker.print_to_stdstream, log.level
    worker.print_to_stdstream = lambda *_, **__: None
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)
        worker.print_to_stdstream = was


def _require_answer(address: str) -> None:
    """Raise if nothing like a cluster answers; Ray itself would go on asking for minutes."""
    try:
        with socket.create_connection(_host_and_port(address), SECONDS_TO_ANSWER) as line:
            line.settimeout(SECONDS_TO_ANSWER)
            line.sendall(HTTP2_HELLO)
            if line.recv(9)[3:4] != HTTP2_SETTINGS:
                raise ConnectionError("what answers is no cluster")
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster answers there ({first_line(error)}); start one with `ray start --head`, or "
            "leave the address away for one on this machine"
        ) from error
