"""The log: a line of JSON for every event, on stderr. Facts about requests, never what they hold."""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO


class Log:
    """Writes events as lines of JSON; `requests=False` leaves out those of requests that went well."""

    def __init__(self, stream: TextIO | None = None, *, requests: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._requests = requests
        self._warned: set[tuple[str, int]] = set()

    def write(self, event: str, level: str = "info", **facts: Any) -> None:
        """Write one line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "level": level, "event": event, **facts}, default=str)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more, which is no reason to stop serving

    def warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """What strays warns of, once for every place that it comes from."""
        if (filename, lineno) not in self._warned:
            self._warned.add((filename, lineno))
            self.write("warning", "warning", message=str(message))

    def request(self, status: int, **facts: Any) -> None:
        """A request that was answered."""
        # 503: a probe that asks while a model is being loaded; nothing is wrong.
        level = "warning" if 400 <= status < 500 or status == 503 else "error" if status >= 500 else "info"
        if self._requests or level != "info":
            self.write("request", level, status=status, **facts)

    def error(self, event: str, error: BaseException, **facts: Any) -> None:
        """Something broke: what kind of error and where, but not its message, in which a text may stand."""
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
        self.write(event, "error", error=type(error).__name__, where=where[-12:], **facts)
