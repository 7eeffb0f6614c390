"""What runs on the nodes: readers that cut files into chunks, actors that score these; and how results come back.

What readers and actors hand on is a table of one row for each chunk: what is told of it, as JSON, and bytes.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from strays import __version__, errors
from strays.encoders.cut_texts import gather_cut_texts
from strays.errors import ClusterError, DataError, StraysError, StraysWarning
from strays.jobs.score import Plan, Remaining, ScoredChunk, Task, WrittenChunk
from strays.jobs.score.manifest import NAME
from strays.model.scores import RawScores
from strays.tables import Chunk


def read_chunks(batch: pa.Table, plan: Plan, rests: list[Remaining], version: str) -> Iterator[pa.Table]:
    """Read files in chunks, one a row; behind those of a file that cannot be read on, a row that says why."""
    for which in batch["rest"].to_pylist():
        try:
            require_same_here(rests[which], version)
            for task in plan.tasks([rests[which]]):
                chunk, sink = task.chunk, pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, chunk.rows.schema) as writer:
                    writer.write_table(chunk.rows)
                place = {"rest": which, "number": task.number, "first_row": chunk.first_row, "last": chunk.last}
                yield _row(place, memoryview(sink.getvalue()))
        except (StraysError, OSError) as error:
            yield _row(_error_to_plain(error))


def _row(told: dict[str, Any], data: bytes | memoryview | None = None) -> pa.Table:
    return pa.table({"told": [json.dumps(told)], "data": pa.array([data], pa.large_binary())})


class Actor:
    """Holds the model and finishes chunks."""

    def __init__(self, model: Any, plan: Plan, rests: list[Remaining], folder: str) -> None:
        import ray

        self._plan, self._rests = plan, rests
        if Path(folder).is_dir():  # an encoder may be named by a path from there
            os.chdir(folder)
        sent = ray.get(model)
        # Locks of a cache do not hold on a disk that nodes share.
        self._model = sent.without_cache() if hasattr(sent, "without_cache") else sent

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        """What came of every chunk, one a row, with scores that are not written yet."""
        for told, data in zip(batch["told"].to_pylist(), batch["data"], strict=True):
            with warnings.catch_warnings(record=True) as caught, gather_cut_texts(warn=False) as cut:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", StraysWarning)
                try:
                    result, scores = self._finish(json.loads(told), data.as_buffer())
                except (StraysError, OSError) as error:
                    result, scores = _error_to_plain(error), None
            said = {"warnings": [_words(warning.message) for warning in caught], "cut": cut.facts()}
            yield _row(result | said, scores)

    def _finish(self, told: dict[str, Any], data: pa.Buffer | None) -> tuple[dict[str, Any], bytes | None]:
        if "error" in told:
            return told, None
        if self._plan.writer and not (Path(self._plan.writer.folder) / NAME).exists():
            raise _not_seen(self._plan.writer.folder)
        rest, rows = self._rests[told["rest"]], pa.ipc.open_stream(data).read_all()
        chunk = Chunk(told["first_row"], rows, told["last"])
        done = self._plan.finish(self._model, Task(rest.file, rest.state, told["number"], chunk))
        if isinstance(done, WrittenChunk):
            return {"written": asdict(done)}, None
        return {"scored": done.facts()}, done.scores.to_bytes()


def require_same_here(rest: Remaining, version: str) -> None:
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


def _error_to_plain(error: StraysError | OSError) -> dict[str, Any]:
    if isinstance(error, OSError):
        return {"error": "OSError", "says": [error.errno, error.strerror or str(error), error.filename]}
    return {"error": type(error).__name__, "says": _words(error)}


def _words(error: Any) -> tuple[str, list[str]]:
    """The message of an error or a warning of strays, and the parameters that it names."""
    return error.message, list(error.params)


def result_of(told: dict[str, Any], scores: bytes | None) -> ScoredChunk | WrittenChunk:
    """The chunk that an actor's answer tells of; raises what went wrong there."""
    if "written" in told:
        return WrittenChunk(**told["written"])
    if scores is not None:
        return ScoredChunk(**told["scored"], scores=RawScores.from_bytes(scores, told["scored"]["rows"]))
    if told["error"] == "OSError":
        raise OSError(*told["says"])
    message, params = told["says"]
    raise getattr(errors, told["error"], StraysError)(message, param=params)
