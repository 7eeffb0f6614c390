"""Tokenizing in processes of their own, for a GPU that would else wait: Python's lock lets one thread through at once.

A worker is this module run as a program. It is told a tokenizer, then lists of texts as lines of JSON, and answers each
with how many tokens every text has, which texts were cut, and all ids, as int32. It imports neither torch nor
transformers.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from itertools import chain, cycle
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING

import numpy as np

from strays.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PIPE_BYTES = 2**20
HEAD = struct.Struct("=qq")  # texts, tokens
# How many tokens each text has, the ids of all of them in one row, and which texts go on beyond their last token.
Tokenized = tuple[np.ndarray, np.ndarray, np.ndarray]


class TokenizerWorkers:
    """Some processes that tokenize; they end with this object.

    `tokenizer` is the tokenizer as JSON, without padding and with its truncation set.
    """

    def __init__(self, tokenizer: str, n: int) -> None:
        self._tokenizer, self._n = tokenizer, n
        self._processes: list[subprocess.Popen[bytes]] = []
        self._one_at_a_time = Lock()
        self.close = weakref.finalize(self, _end, self._processes)

    @property
    def busy(self) -> bool:
        """Whether another call is still being read."""
        return self._one_at_a_time.locked()

    def tokenize(self, lists: Iterable[list[str]]) -> Generator[Tokenized, None, None]:
        """Each list of texts, tokenized.

        Lists are sent ahead, one to every process, and answers read when they are needed: no thread has to wait for
        them, and take Python's lock from the one that keeps the GPU busy. A process gets its next list when its answer
        is read, so that the two never wait for one another.
        """
        with self._one_at_a_time:
            waiting: deque[subprocess.Popen[bytes]] = deque()
            try:
                self._start()
                turn = cycle(self._processes)
                for texts in lists:
                    if len(waiting) == self._n:
                        yield _receive(waiting.popleft())
                    worker = next(turn)
                    _send(worker, texts)
                    waiting.append(worker)
                while waiting:
                    yield _receive(waiting.popleft())
            except (OSError, EOFError) as error:
                _end(self._processes)
                raise EncoderError("a tokenizer process ended unexpectedly; run the command again") from error
            finally:
                if waiting:  # answers nobody has read would be taken for those of the next call
                    _end(self._processes)

    def _start(self) -> None:
        if self._processes:
            return
        way = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": os.pathsep.join(way)}
        for _ in range(self._n):
            process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-P", "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._processes.append(process)
            _widen(process)
            _send(process, self._tokenizer)


def _widen(process: subprocess.Popen[bytes]) -> None:
    """Let a process leave its answer and go on to read, where the system allows it."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        for stream in filter(None, (process.stdin, process.stdout)):
            fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _send(process: subprocess.Popen[bytes], value: object) -> None:
    if process.stdin is not None:
        process.stdin.write(json.dumps(value).encode("ascii") + b"\n")
        process.stdin.flush()


def _receive(process: subprocess.Popen[bytes]) -> Tokenized:
    n_texts, n_tokens = HEAD.unpack(_read(process.stdout, HEAD.size))
    numbers = np.frombuffer(_read(process.stdout, 4 * (2 * n_texts + n_tokens)), dtype=np.int32).astype(np.int64)
    return numbers[:n_texts], numbers[2 * n_texts :], numbers[n_texts : 2 * n_texts] > 0


def _read(stream: IO[bytes] | None, size: int) -> bytes:
    data = stream.read(size) if stream is not None else b""
    if len(data) < size:
        raise EOFError
    return data


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        process = processes.pop()
        process.kill()
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout)):
            with suppress(OSError):  # what was not sent yet has nowhere to go
                stream.close()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more requests."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.loads(requests.readline()))
    for line in requests:
        lengths, flat, is_cut = tokenize(tokenizer, json.loads(line))
        parts = [part.astype(np.int32).tobytes() for part in (lengths, is_cut, flat)]
        answers.write(HEAD.pack(len(lengths), len(flat)) + b"".join(parts))
        answers.flush()


def tokenize(tokenizer: Tokenizer, texts: list[str]) -> Tokenized:
    """Texts by a tokenizer with its truncation set."""
    found = tokenizer.encode_batch_fast(texts)
    ids = [of_text.ids for of_text in found]
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
    most = (tokenizer.truncation or {}).get("max_length", 0)
    is_cut = lengths >= most  # where that is so, the tokenizer says whether there was more
    for i in np.flatnonzero(is_cut).tolist():
        is_cut[i] = bool(found[i].overflowing)
    return lengths, flat, is_cut


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):  # whoever asked has gone
        serve(sys.stdin.buffer, sys.stdout.buffer)
