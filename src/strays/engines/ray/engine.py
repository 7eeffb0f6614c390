"""The engine: rounds on a cluster, until nothing is left or the cluster has lost too many workers."""

from __future__ import annotations

import json
import socket
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from strays import __version__
from strays.encoders.cut_texts import report_cut_texts
from strays.engines.ray.connection import SECONDS_TO_ANSWER, connected, host_and_port
from strays.engines.ray.nodes import Actor, read_chunks, result_of
from strays.errors import ClusterError, StraysError, StraysWarning, UsageError, first_line
from strays.jobs.score import DoneChunk, Plan, Remaining, RowProgress, Scorer
from strays.jobs.score.plan import open_once

# A job is given up when so many rounds in a row lost a worker before the next chunk was done.
MOST_LOSSES = 3
SECONDS_TO_NOTICE = 60.0
# A file of more bytes counts as one with rows before it is read.
SMALL = 4096
# Cores of one actor: encoders that run a network use several; any other works on one core at a time.
CORES_OF_A_NETWORK = 4


class RayEngine:
    """Scores on a Ray cluster, with Ray Data.

    Parameters
    ----------
    address
        HOST:PORT of a cluster that this machine is a node of. None starts one on this machine that nobody else can
        reach, and stops it with the job. If this process has called ray.init() itself, that cluster is used.

    Examples
    --------
    >>> score_files(model, "texts/", "scored/", engine=RayEngine("10.0.0.1:6379"))  # doctest: +SKIP
    """

    pipes = False

    def __init__(self, address: str | None = None) -> None:
        if find_spec("ray") is None:
            words = "the {engine} ray needs Ray, which is not installed; install it with: pip install 'strays[ray]'"
            raise UsageError(words, param="engine")
        if address is not None:
            host_and_port(address)
        self.address = address
        self._ray: Any = None

    @contextmanager
    def ready(self) -> Iterator[Any]:
        """Ray, connected; within another call, the same."""
        if self._ray is not None:
            yield self._ray
            return
        with connected(self.address) as self._ray:
            try:
                yield self._ray
            finally:
                self._ray = None

    def run(self, model: Scorer, plan: Plan, left: Iterable[Remaining], progress: RowProgress) -> Iterator[DoneChunk]:
        """Every chunk that is left, done as planned, in order."""
        # By paths that do not depend on where a process runs, and without the tables that this process has opened.
        writer = plan.writer and replace(plan.writer, folder=str(Path(plan.writer.folder).absolute()))
        plan = replace(plan, writer=writer, tables={})
        rests = {rest.file.name: _seen_from_anywhere(rest) for rest in left if _may_have_rows(rest, plan)}
        if not rests:
            return
        with self.ready() as ray:
            sent, losses, told = ray.put(_ready_to_send(model)), 0, set[str]()
            while rests:
                try:
                    with closing(_round(ray, model, sent, plan, list(rests.values()))) as rows:
                        for answer, scores in rows:
                            for message, params in answer["warnings"]:
                                if message not in told:
                                    warnings.warn(StraysWarning(message, param=params), stacklevel=2)
                                told.add(message)
                            for facts in answer["cut"]:
                                report_cut_texts(*facts)
                            chunk = result_of(answer, scores)
                            progress.take(chunk.rows)
                            progress.finish()
                            losses, rests[chunk.file] = 0, rests[chunk.file].after(chunk)
                            yield chunk
                    return
                except ray.exceptions.RayTaskError as error:  # what a model of other people raises
                    raise error.cause if isinstance(error.cause, Exception) else error from None
                except ray.exceptions.RayError as error:
                    if "creation task" in first_line(error):
                        raise ClusterError(
                            f"a worker could not be started ({str(error).strip().splitlines()[-1]}); strays, and all "
                            "that the model needs, must be installed alike on every node"
                        ) from error
                    losses += 1
                    if losses == MOST_LOSSES:
                        raise ClusterError(
                            f"the cluster lost workers {losses} times before the next chunk of rows was done, the last "
                            f"time by: {first_line(error).rstrip('.')}. See that its nodes stay up and have memory for "
                            "the model and {part_rows} rows; run the job again to resume",
                            param="part_rows",
                        ) from error
                    going_on = StraysWarning("the cluster has lost a worker; going on with what is not done")
                    warnings.warn(going_on, stacklevel=2)
                    _wait_for_the_dead(ray)


def _round(
    ray: Any, model: Scorer, sent: Any, plan: Plan, rests: list[Remaining]
) -> Generator[tuple[dict[str, Any], bytes | None]]:
    """Score what is left with the nodes there are now; what the actors answer, in order."""
    data, pool = ray.data, pool_for([node["Resources"] for node in ray.nodes() if node["Alive"]], model)
    dataset = data.from_items([{"rest": i} for i in range(len(rests))], override_num_blocks=len(rests))
    context = dataset.context
    context.target_max_block_size = 1  # a chunk is a block of its own, and is handed on as soon as it is read
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    chunks = dataset.map_batches(
        read_chunks,
        fn_args=(plan, rests, __version__),
        batch_size=1,
        batch_format="pyarrow",
        num_cpus=0,  # all cores are the actors', who wait for little else
        compute=data.TaskPoolStrategy(size=min(pool.size, len(rests))),
    )
    with warnings.catch_warnings():
        # Ray would wait for ever for the place of a node that is gone; a new round does not. Up to Ray 2.63 this can
        # be said, with a warning that later it cannot.
        warnings.simplefilter("ignore")
        results = chunks.map_batches(
            Actor,
            fn_constructor_args=(sent, plan, rests, str(Path.cwd())),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
            compute=data.ActorPoolStrategy(size=pool.size, max_tasks_in_flight_per_actor=2),
            ray_remote_args_fn=lambda: {"max_restarts": 0, "max_task_retries": 0},
        )
    for batch in results.iter_batches(batch_size=1, batch_format="pyarrow"):
        for row in batch.to_pylist():
            yield json.loads(row["told"]), row["data"]


@dataclass(frozen=True)
class Pool:
    """How many actors there are, and what each holds of a node."""

    size: int
    cpus: int
    gpus: int | None = None


def pool_for(nodes: list[dict[str, float]], model: Scorer) -> Pool:
    """An actor for every GPU, where the encoder can use one; else all cores, in actors of as many as one can use."""
    device = next((str(e.device) for e in encoders_in(model) if hasattr(e, "device")), None)
    with_gpu = [node for node in nodes if node.get("GPU", 0) >= 1]
    if with_gpu and device in ("auto", "cuda"):
        each = min(int(node.get("CPU", 0) // int(node["GPU"])) for node in with_gpu)
        return Pool(sum(int(node["GPU"]) for node in with_gpu), max(each, 1), 1)
    if device not in (None, "auto", "cpu"):
        raise UsageError(
            f"{{device}} is {device!r}, and {len(with_gpu)} nodes of the cluster have GPUs, which Ray assigns; "
            "expected auto or cpu, or, if there are GPUs, cuda",
            param="device",
        )
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cores:
        raise ClusterError("no node of the cluster has a CPU to work with; start one with `ray start`")
    each = min(CORES_OF_A_NETWORK if device else 1, *cores)
    return Pool(sum(n // each for n in cores), each)


def encoders_in(model: Scorer) -> list[Any]:
    """The encoders of a model, also of one that a cascade is made of."""
    inner = getattr(model, "model", model)
    found = [getattr(inner, "encoder_", None), getattr(getattr(inner, "cascade_", None), "encoder", None)]
    return [encoder for encoder in found if encoder is not None]


def _may_have_rows(rest: Remaining, plan: Plan) -> bool:
    """Whether a file is worth a cluster; if it cannot be read, a reader will say so in its turn."""
    try:
        return rest.state[0] > SMALL or open_once(rest.file, in_folder=plan.in_folder, tables={}) is not None
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


def _seen_from_anywhere(rest: Remaining) -> Remaining:
    return replace(rest, file=replace(rest.file, path=str(Path(rest.file.path).absolute())))
