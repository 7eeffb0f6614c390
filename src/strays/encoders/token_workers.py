"""Tokenizing in processes of their own, for a GPU that would else wait: Python's lock lets one thread through at once.

A worker is this module run as a program. It is told a tokenizer, then lists of texts as lines of JSON, and answers each
with how many tokens every text has and all their ids, as int32. It imports neither torch nor transformers.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import IO

import numpy as np

from strays.errors import EncoderError

HEAD = struct.Struct("=qq")  # texts, tokens
Tokenized = tuple[np.ndarray, np.ndarray]


class TokenWorkers:
    """Some processes that tokenize; `tokenize` may be called from as many threads at once. They end with this object.

    `tokenizer` is the tokenizer as JSON, without padding and with its truncation set.
    """

    def __init__(self, tokenizer: str, n: int) -> None:
        self.n = n
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        package = Path(__file__).parents[2]
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
        environment["PYTHONPATH"] = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        processes = []
        for _ in range(n):
            process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            _send(process, tokenizer)
            processes.append(process)
            self._free.put(process)
        self.close = weakref.finalize(self, _end, processes)

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """How many tokens each text has, and the ids of all of them in one row."""
        worker = self._free.get()
        try:
            _send(worker, list(texts))
            answer = worker.stdout
            n_texts, n_tokens = HEAD.unpack(_read(answer, HEAD.size))
            numbers = np.frombuffer(_read(answer, 4 * (n_texts + n_tokens)), dtype=np.int32).astype(np.int64)
        except (OSError, EOFError) as error:
            raise EncoderError("a process that tokenizes has ended; run the command again") from error
        finally:
            self._free.put(worker)
        return numbers[:n_texts], numbers[n_texts:]


def _send(process: subprocess.Popen[bytes], value: object) -> None:
    if process.stdin is not None:
        process.stdin.write(json.dumps(value).encode("ascii") + b"\n")
        process.stdin.flush()


def _read(stream: IO[bytes] | None, size: int) -> bytes:
    data = stream.read(size) if stream is not None else b""
    if len(data) < size:
        raise EOFError
    return data


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # what was not sent yet has nowhere to go
                if stream is not None:
                    stream.close()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more requests."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.loads(requests.readline()))
    for line in requests:
        ids = [found.ids for found in tokenizer.encode_batch_fast(json.loads(line))]
        lengths = np.fromiter(map(len, ids), dtype=np.int32, count=len(ids))
        flat = np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=int(lengths.sum()))
        answers.write(HEAD.pack(len(lengths), len(flat)) + lengths.tobytes() + flat.tobytes())
        answers.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):  # whoever asked has gone
        serve(sys.stdin.buffer, sys.stdout.buffer)
