"""The log: one line of JSON per event, on stderr. Facts about requests, never their content."""

from __future__ import annotations

import json
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO


class Log:
    """Write events as lines of JSON; `requests=False` omits successful requests.

    >>> log = Log(sys.stdout, requests=False)
    >>> log.request(200, path="/health")
    >>> log.request(429, path="/v1/score")  # doctest: +ELLIPSIS
    {"time": ..., "level": "warning", "event": "request", "status": 429, "path": "/v1/score"}
    """

    def __init__(self, stream: TextIO | None = None, *, requests: bool = True) -> None:
        self._stream, self._requests = stream or sys.stderr, requests
        self._warned: set[tuple[str, int]] = set()

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Write one line; facts that are None are omitted."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        known = {name: fact for name, fact in facts.items() if fact is not None}
        line = json.dumps({"time": now, "level": level, "event": event, **known}, default=str)
        with suppress(OSError, ValueError):  # nobody reads it any more, which is no reason to stop serving
            self._stream.write(line + "\n")
            self._stream.flush()

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
