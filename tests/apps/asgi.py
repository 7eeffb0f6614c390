"""ASGI apps without a server: an event loop in a thread, a client for an app in it, and single calls by hand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, in a thread of its own: after tests that drive a browser, a loop is running in this one."""
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(lambda: asyncio.run(asyncio.wait_for(coroutine, 60))).result()


class Loop:
    """An event loop in a thread, until closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop; its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class InProcess(httpx.BaseTransport):
    """Requests go to an app in a loop; from any thread, many at once."""

    def __init__(self, app: Any, loop: Loop) -> None:
        self._transport, self._loop = httpx.ASGITransport(app, raise_app_exceptions=False), loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        parts = list(request.stream)

        async def ask() -> httpx.Response:
            asked = httpx.Request(request.method, request.url, headers=request.headers, stream=_Parts(parts))
            answer = await self._transport.handle_async_request(asked)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        return self._loop.run(ask())


class _Parts(httpx.AsyncByteStream):
    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


@contextmanager
def client_of(app: Any, base_url: str, headers: dict[str, str] | None = None) -> Iterator[httpx.Client]:
    """A client of an app, in a loop of its own."""
    loop = Loop()
    with httpx.Client(transport=InProcess(app, loop), base_url=base_url, headers=headers) as client:
        yield client
    loop.close()


@dataclass
class Exchange:
    """A request sent by hand, and what came back.

    parts   the parts of the body that arrive; the last one ends it only if it is `whole`
    leaves  whether the client leaves after that; otherwise it stays, silent
    """

    method: str = "GET"
    path: str = "/"
    headers: dict[str, str] = field(default_factory=dict)
    parts: Iterable[bytes] = ()
    whole: bool = True
    leaves: bool = False
    query: str = ""
    status: int | None = None
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    n_read: int = 0

    @property
    def scope(self) -> dict[str, Any]:
        return {
            "type": "http",
            "method": self.method,
            "path": self.path,
            "query_string": self.query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()],
            "client": ("10.0.0.1", 5),
            "state": {},
        }

    @property
    def code(self) -> tuple[int | None, str]:
        """The status and the error code."""
        assert set(json.loads(self.body)) == {"error"}
        return self.status, json.loads(self.body)["error"]["code"]

    async def with_app(self, app: Any) -> Exchange:
        """Send the request to an app."""
        left = list(self.parts) or ([b""] if self.whole else [])

        async def receive() -> dict[str, Any]:
            if left:
                part = left.pop(0)
                self.n_read += len(part)
                return {"type": "http.request", "body": part, "more_body": bool(left) or not self.whole}
            if not self.leaves:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                assert self.status is None, "answered twice"
                self.status, self.answer_headers = message["status"], list(message["headers"])
            else:
                self.body += message.get("body", b"")

        await app(self.scope, receive, send)
        return self


def exchange(app: Any, method: str = "GET", path: str = "/", **more: Any) -> Exchange:
    """Send one request to an app by hand."""
    return run(Exchange(method, path, **more).with_app(app))


class Inner:
    """An app that answers 200, and notes what reaches it."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope)
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"public")]})
        await send({"type": "http.response.body", "body": b"inner"})
