"""What runs on the nodes: readers that cut files into chunks, actors that score these; and how results come back."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from strays import __version__, errors
from strays.errors import ClusterError, DataError, StraysError, StraysWarning
from strays.jobs.score import Plan, Remaining, ScoredChunk, Task, WrittenChunk
from strays.jobs.score.manifest import NAME
from strays.model.scores import RawScores
from strays.tables import Chunk, InputFile

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


def read_chunks(batch: pa.Table, plan: Plan, version: str) -> Iterator[pa.Table]:
    """Read files in chunks, one a row; behind those of a file that cannot be read on, a row that says why."""
    for line in batch["rest"].to_pylist():
        try:
            rest = _remaining(line)
            require_same_here(rest, version)
            for task in plan.tasks([rest]):
                chunk, sink = task.chunk, pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, chunk.rows.schema) as writer:
                    writer.write_table(chunk.rows)
                yield _one(line, task.number, chunk.first_row, chunk.last, sink.getvalue(), None)
        except (StraysError, OSError) as error:
            yield _one(line, None, None, None, None, json.dumps(_error_to_plain(error)))


def _remaining(line: str) -> Remaining:
    told = json.loads(line)
    return Remaining(**told | {"file": InputFile(**told["file"]), "state": tuple(told["state"])})


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


class Actor:
    """Holds the model and finishes chunks."""

    def __init__(self, model: Any, plan: Plan, folder: str) -> None:
        import ray

        self._plan = plan
        if Path(folder).is_dir():  # an encoder may be named by a path from there
            os.chdir(folder)
        sent = ray.get(model)
        # Locks of a cache do not hold on a disk that nodes share.
        self._model = sent.without_cache() if hasattr(sent, "without_cache") else sent

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        """What came of every chunk, one a row: what is told of it as JSON, and scores that are not written yet."""
        for i in range(len(batch)):
            scores = None
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", StraysWarning)
                try:
                    told, scores = self._finish(batch.slice(i, 1))
                except (StraysError, OSError) as error:
                    told = _error_to_plain(error)
            told["warnings"] = [_words(warning.message) for warning in caught]
            yield pa.table({"told": [json.dumps(told)], "scores": pa.array([scores], pa.large_binary())})

    def _finish(self, row: pa.Table) -> tuple[dict[str, Any], bytes | None]:
        if row["told"][0].is_valid:
            return json.loads(row["told"][0].as_py()), None
        if self._plan.writer and not (Path(self._plan.writer.folder) / NAME).exists():
            raise _not_seen(self._plan.writer.folder)
        rows = pa.ipc.open_stream(row["rows"][0].as_buffer()).read_all()
        chunk = Chunk(row["first_row"][0].as_py(), rows, row["last"][0].as_py())
        rest = _remaining(row["rest"][0].as_py())
        done = self._plan.finish(self._model, Task(rest.file, rest.state, row["number"][0].as_py(), chunk))
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


def result_of(row: dict[str, Any]) -> ScoredChunk | WrittenChunk:
    """The chunk that a row of an actor's answer tells of, with `told` parsed; raises what went wrong there."""
    told = row["told"]
    if "error" in told:
        raise _error_of(told["error"], told["says"])
    if "written" in told:
        return WrittenChunk(**told["written"])
    facts = told["scored"]
    return ScoredChunk(**facts, scores=RawScores.from_bytes(row["scores"], facts["rows"]))


def _error_of(kind: str, says: list[Any]) -> Exception:
    if kind == "OSError":
        return OSError(*says)
    message, params = says
    return getattr(errors, kind, StraysError)(message, param=params)
