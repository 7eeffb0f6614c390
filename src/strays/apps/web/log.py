"""The log: one line of JSON per event, on stderr. Facts about requests, never their content.

A thread of its own writes the lines, so that nobody else waits for whoever reads them. If they are read too slowly or
not at all, lines are dropped and counted, and the log says how many as soon as it flows again.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

# Lines that wait to be written; of some 300 bytes each.
MOST_WAITING = 5000


class Log:
    """Write events as lines of JSON; `requests=False` omits successful requests.

    >>> log = Log(sys.stdout, requests=False)
    >>> log.request(200, path="/health")
    >>> log.request(429, path="/v1/score")
    >>> log.flush()  # doctest: +ELLIPSIS
    {"time": ..., "level": "warning", "event": "request", "status": 429, "path": "/v1/score"}
    """

    def __init__(
        self, stream: TextIO | None = None, *, requests: bool = True, most_waiting: int = MOST_WAITING
    ) -> None:
        self._stream, self._requests = stream or sys.stderr, requests
        self._warned: set[tuple[str, int]] = set()
        self._most_waiting = most_waiting
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._writing = False
        self._dropped, self._untold = 0, 0
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        """How many lines nobody will read."""
        return self._dropped

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Have one line written; facts that are None are omitted. Returns at once, whoever reads the log."""
        line = _line(event, level, facts)
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                self._drop(1)
                return
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_lines, name="strays-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def warning(self, message: Warning | str, category: type, filename: str, lineno: int, *_: Any, **__: Any) -> None:
        """Write a warning, once for each place in the code; called in place of warnings.showwarning."""
        if (filename, lineno) not in self._warned:
            self._warned.add((filename, lineno))
            self.write("warning", "warning", message=str(message))

    def request(self, status: int, **facts: Any) -> None:
        """Write what became of a request."""
        # 503 is no error: a probe asks while a model is being loaded.
        level = "warning" if 400 <= status < 500 or status == 503 else "error" if status >= 500 else "info"
        if self._requests or level != "info":
            self.write("request", level, status=status, **facts)

    def error(self, event: str, error: BaseException, **facts: Any) -> None:
        """Write the type of an unexpected error and where it came from, but not its message: it may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
        self.write(event, "error", error=type(error).__name__, where=where[-12:], **facts)

    def flush(self, seconds: float = 1.0) -> None:
        """Wait until all is written, for so long at most: somebody may have stopped reading."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._writing), seconds)

    def _drop(self, n: int) -> None:
        self._dropped += n
        self._untold += n

    def _write_lines(self) -> None:
        """What the thread does: write all that waits, then say how many lines came after it and had no room."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                lines, self._waiting = self._waiting, []
                untold, self._untold = self._untold, 0
                self._writing = True
            n_written = self._put(lines)
            is_told = not untold or self._put([_line("log_lines_dropped", "warning", {"lines": untold})])
            with self._changed:
                self._writing = False
                self._drop(len(lines) - n_written)
                self._untold += 0 if is_told else untold
                self._changed.notify_all()

    def _put(self, lines: list[str]) -> int:
        """Write lines, for as long as that takes; how many could be written."""
        try:
            # Not through the stream: the interpreter waits for its lock when it ends.
            number = self._stream.fileno()
        except (OSError, ValueError):
            number = None
        for i, line in enumerate(lines):
            try:
                if number is None:
                    self._stream.write(line)
                    self._stream.flush()
                else:
                    _write_all(number, line.encode())
            except (OSError, ValueError):  # closed, or the disk is full, which is no reason to stop serving
                return i
        return len(lines)


def _line(event: str, level: str, facts: dict[str, Any]) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return json.dumps({"time": now, "level": level, "event": event, **known}, default=str) + "\n"


def _write_all(number: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(number, data) :]
        except BlockingIOError:  # whoever shares it has made it so
            time.sleep(0.02)
