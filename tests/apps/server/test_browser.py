"""What a real browser can be made to send by pages of other sites."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.apps.server.conftest import Service

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


class Blank(BaseHTTPRequestHandler):
    """A page with nothing on it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other_site() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Blank) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()


def test_pages_of_other_sites_get_nothing(start: Callable[..., Service], chromium: Browser, other_site: str) -> None:
    server = start(listens=True)
    page = chromium.new_page()
    ask = """async ([base, path, options]) => {
        try { return (await fetch(base + path, options)).status; } catch { return "refused"; }
    }"""
    for home in (other_site, "about:blank", "data:text/html,hello"):
        page.goto(home)
        for path in ("/health", "/metrics", "/v1/model"):
            assert page.evaluate(ask, [server.base, path, {}]) == "refused"
            assert page.evaluate(ask, [server.base, path, {"mode": "no-cors"}]) in (0, "refused")
        for kind in ("text/plain", "application/json"):
            call = {"method": "POST", "body": '{"texts": ["a"]}', "headers": {"content-type": kind}}
            assert page.evaluate(ask, [server.base, "/v1/score", call]) == "refused"
            assert page.evaluate(ask, [server.base, "/v1/score", {**call, "mode": "no-cors"}]) in (0, "refused")
    assert {line["status"] for line in server.requests()} == {403}
    answer = page.goto(f"{server.base}/v1/model")  # typed by a person
    assert answer is not None
    assert answer.status == 200
    page.close()
