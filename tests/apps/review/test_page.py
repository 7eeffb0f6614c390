"""The desk's page in a real browser, against a real `strays review` process."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import farm_texts

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("playwright")
pytestmark = pytest.mark.browser

STRAYS = [
    f"{word} zzz qqq {word} xxyyzz" for word in ("stock", "quark", "fjord", "lymph", "vodka", "glyph", "waltz", "jumbo")
]
SECONDS = 1000


class Review:
    """A process of `strays review`, and the link it printed."""

    def __init__(self, file: Path, encoder: Path, port: int = 0) -> None:
        words = ["review", str(file), "--encoder", str(encoder), "--no-browser", "--port", str(port), "--who", "ana"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "strays", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.link = (self.process.stdout.readline() if self.process.stdout else "").strip()
        if not self.link.startswith("http"):
            self.process.kill()
            raise AssertionError(self.process.communicate()[1])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def __enter__(self) -> Review:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()


def write_csv(path: Path, texts: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    return path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def review(chromium: Browser, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Review]:
    """One desk for the tests that do not mind what others have judged there."""
    texts = farm_texts(360)  # many, as what a tab was given is nobody else's for two minutes
    for place, stray in enumerate(STRAYS):
        texts.insert(17 * place + 5, stray)
    texts += [STRAYS[-1]] * 2
    with Review(write_csv(tmp_path_factory.mktemp("desk") / "farm.csv", texts), tiny_bert) as running:
        yield running


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(viewport={"width": 1280, "height": 800})
    made.set_default_timeout(20 * SECONDS)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, review: Review) -> Page:
    return open_page(context, review.link)


def open_page(context: BrowserContext, link: str) -> Page:
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page broke: {error}"))
    page.goto(link)
    page.wait_for_selector("#judge .card[data-id]")
    return page


# The header that the page's requests carry, in JavaScript.
TOKEN = "Authorization: `Bearer ${localStorage.getItem('strays-token')}`"
STATE = f"fetch('/api/state', {{ headers: {{ {TOKEN} }} }}).then(a => a.json())"


def ask(page: Page, path: str) -> Any:
    return page.evaluate(f"path => fetch(path, {{ headers: {{ {TOKEN} }} }}).then(a => a.json())", path)


def present(page: Page) -> str:
    return page.locator("#judge .card").get_attribute("data-id") or ""


def press(page: Page, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def upcoming(page: Page, n: int = 8) -> list[str]:
    """The ids one sees by looking ahead; the present text is the present text again afterwards."""
    ids = [present(page)]
    for _ in range(n):
        page.keyboard.press("j")
        ids.append(present(page))
    press(page, "k" * n)
    return ids


def until(page: Page, true: str, arg: Any = None) -> None:
    """Wait for something to be true in the page (wait_for_function evaluates strings there, which the page forbids)."""
    end = time.monotonic() + 120
    while not page.evaluate(true, arg):
        assert time.monotonic() < end, f"still not true: {true}"
        page.wait_for_timeout(30)


def answer_with(page: Page, path: str, data: Any) -> None:
    """Let requests be answered with this instead of by the desk."""
    page.route(path, lambda route: route.fulfill(body=json.dumps(data), content_type="application/json"))


def wait_saved(page: Page) -> None:
    until(page, "document.getElementById('unsaved').textContent === '✓ saved'")


def wait_present(page: Page, id_: str) -> None:
    until(page, "id => document.querySelector('#judge .card')?.dataset.id === id", id_)


def encircle(page: Page, share: float) -> tuple[int, int]:
    """Select the left part of the map; how many texts it has, and how many of them are said to be judged already."""
    page.wait_for_selector("#canvas canvas")
    page.click("[data-mode=select]")
    page.click("#canvas button:has-text('⤢')")  # all of it: the present text may have been moved into view
    box = page.locator("#canvas").bounding_box()
    assert box
    left, top = box["x"] + 4, box["y"] + 50
    right, bottom = box["x"] + share * box["width"] - 4, box["y"] + box["height"] - 4
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in [(right, top), (right, bottom), (left, bottom), (left, top)]:
        page.mouse.move(x, y, steps=4)
        page.wait_for_timeout(60)  # moves within a frame are one to the page: no corner must get lost
    page.mouse.up()
    page.wait_for_selector("#map-detail .sample li")
    n, already = [*map(int, re.findall(r"\d+", page.locator("#map-detail h2").inner_text())), 0][:2]
    return n, already


def judge_as_another(page: Page, ids: list[int], verdict: str) -> None:
    """A verdict of somebody else, of which the page does not know yet."""
    given = {"ids": ids, "verdict": verdict, "who": "bob", "client": "bob"}
    page.evaluate(
        f"""given => fetch("/api/verdicts", {{
          method: "POST", headers: {{ "Content-Type": "application/json", {TOKEN} }}, body: JSON.stringify(given),
        }}).then(answer => {{ if (!answer.ok) throw answer.status; }})""",
        given,
    )


def wait_learnt(page: Page, generation: int) -> None:
    until(page, f"{STATE}.then(s => s.generation > {generation} && !s.refitting)")


# ---- judging ---------------------------------------------------------------------------------------------------------


def test_twenty_texts_are_judged_with_the_keyboard(page: Page) -> None:
    before = ask(page, "/api/state")
    ahead = upcoming(page)
    assert len(set(ahead)) == len(ahead)
    shown = []
    for _ in range(20):
        shown.append(present(page))
        odd = page.locator("#judge .text").inner_text().split()[-1] == "xxyyzz"
        press(page, "a" if odd else "n")
    assert len(set(shown)) == 20
    wait_saved(page)
    wait_learnt(page, before["generation"])
    assert shown[0] == ahead[0]
    asked = [str(item["id"]) for item in ask(page, "/api/queue?client=another&n=30")["items"]]
    events = ask(page, "/api/history?limit=20")["events"]
    assert [str(event["ids"][0]) for event in reversed(events)] == shown
    assert {event["who"] for event in events} == {"ana"}
    assert not set(asked) & set(shown)

    press(page, "u")
    wait_present(page, shown[-1])
    wait_saved(page)
    page.reload()
    page.wait_for_selector("#judge .card[data-id]")
    now = ask(page, "/api/state")["judged"]
    assert now["normal"] + now["anomaly"] == before["judged"]["normal"] + before["judged"]["anomaly"] + 19
    press(page, "l")
    page.wait_for_selector("#events li[data-key]")
    assert page.locator("#events li[data-key]").count() >= 20
    assert page.locator("#events li[data-key] s .badge").first.is_visible()


def test_a_refit_changes_what_comes_and_never_the_present_text(page: Page) -> None:
    until(page, f"{STATE}.then(s => !s.refitting)")
    state = ask(page, "/api/state")
    if state["fresh"]:  # of another test: let the model learn from them first
        press(page, "n" * (state["every"] - state["fresh"]))
        wait_saved(page)
        wait_learnt(page, state["generation"])
        page.reload()
        page.wait_for_selector("#judge .card[data-id]")
    generation, client = ask(page, "/api/state")["generation"], page.evaluate("sessionStorage.getItem('strays-client')")
    ahead = [str(item["id"]) for item in ask(page, f"/api/queue?client={client}&n=30")["items"]]
    assert upcoming(page) == ahead[:9]
    press(page, "anana")
    wait_saved(page)
    assert present(page) == ahead[5]
    press(page, "jjjj")  # one further on, which the desk does not promise to keep
    there, text = present(page), page.locator("#judge .text").inner_text()
    wait_learnt(page, generation)
    labels = ask(page, "/api/state")["learnt"]["n_labels"]
    until(page, f"document.getElementById('learning').textContent.startsWith('learnt from {labels} ')")
    page.wait_for_timeout(500)  # for what comes next
    assert (present(page), page.locator("#judge .text").inner_text()) == (there, text)
    now = ask(page, f"/api/texts/{there}")  # what the new model says of it
    facts = page.locator("#judge .facts").inner_text()
    assert (f"score {now['anomaly_score']:.2f}" in facts, f"rank {now['rank']:,}" in facts) == (True, True)
    press(page, "kkkk")
    after = upcoming(page)
    assert after[:5] == ahead[5:10]
    fresh = [str(item["id"]) for item in ask(page, f"/api/queue?client={client}&n=10")["items"]]
    assert fresh != ahead[5:15]
    assert after[5:] == [id_ for id_ in fresh if id_ not in after[:5]][:4]


def test_a_new_order_leaves_the_present_text_and_those_before_it(page: Page) -> None:
    before = upcoming(page, 2)
    press(page, "jjj")
    there, queue = present(page), ask(page, "/api/queue?client=third&n=14")
    answer_with(page, "**/api/queue*", queue)
    answer_with(page, "**/api/state", ask(page, "/api/state") | {"generation": 10_000})
    with page.expect_response("**/api/queue*"):
        pass  # the page sees that the model has learnt, and asks
    page.wait_for_timeout(200)
    assert present(page) == there
    shown = upcoming(page, 6)
    new = [id_ for item in queue["items"] if (id_ := str(item["id"])) not in (*before, there)]
    assert shown == [there, *new[:6]]


def test_a_verdict_shows_at_once_and_is_called_unsaved_until_the_desk_has_it(page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/verdicts", lambda route: held.append(route))
    before = present(page)
    # Within one task of the browser: nothing that is waited for can have come in between.
    after = page.evaluate(
        """() => {
          document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "n", bubbles: true}));
          return document.querySelector("#judge .card").dataset.id;
        }"""
    )
    assert after != before
    assert page.locator("#unsaved").inner_text() == "1 unsaved"
    assert "unsaved" in page.locator("#last").inner_text()
    page.wait_for_timeout(100)
    assert len(held) == 1
    held[0].continue_()
    wait_saved(page)
    assert "unsaved" not in page.locator("#last").inner_text()


def test_a_verdict_the_desk_refuses_is_shown_and_kept(page: Page) -> None:
    refusal = json.dumps({"error": {"code": "invalid", "message": "not like that"}})
    page.route(
        "**/api/verdicts", lambda route: route.fulfill(status=422, body=refusal, content_type="application/json")
    )
    before = present(page)
    press(page, "n")
    page.wait_for_selector("#outbox[open]")
    assert "not like that" in page.locator("#waiting").inner_text()
    page.unroute("**/api/verdicts")
    page.click("#send-again")
    wait_saved(page)
    page.click("#outbox form button:not([type=button])")
    assert ask(page, f"/api/texts/{before}")["label"] == "normal"


def test_the_key_after_an_undo_judges_the_text_that_came_back(page: Page) -> None:
    first = present(page)
    press(page, "n")
    wait_saved(page)
    second = present(page)
    page.route("**/api/undo", lambda route: (page.wait_for_timeout(300), route.continue_()))
    press(page, "ua")
    assert present(page) == second
    wait_saved(page)
    assert ask(page, f"/api/texts/{first}")["label"] == "anomaly"
    assert ask(page, f"/api/texts/{second}")["label"] is None
    assert present(page) == second


def test_the_last_text_comes_back_when_it_is_skipped(context: BrowserContext, tiny_bert: Path, tmp_path: Path) -> None:
    with Review(write_csv(tmp_path / "farm.csv", farm_texts(30)), tiny_bert) as running:
        page = open_page(context, running.link)
        there = present(page)
        ids = [item["id"] for item in ask(page, "/api/texts?limit=100")["items"]]
        judge_as_another(page, [id_ for id_ in ids if str(id_) != there], "normal")
        page.reload()
        wait_present(page, there)
        press(page, "s")
        wait_saved(page)
        wait_present(page, there)
        assert page.locator("#judge .asked").inner_text() == "Skipped before"
        press(page, "n")
        until(page, "document.querySelector('#judge .empty h2')?.textContent === 'All judged'")


def test_a_text_that_somebody_else_judges_meanwhile_stays_and_says_so(page: Page) -> None:
    there = present(page)
    judge_as_another(page, [int(there)], "anomaly")
    until(page, "document.querySelector('#judge .meanwhile').textContent === 'judged meanwhile by bob: ◆ anomaly'")
    assert present(page) == there
    press(page, "j")
    assert page.locator("#judge .meanwhile").inner_text() == ""
    press(page, "kn")  # one may still say otherwise
    wait_saved(page)
    assert ask(page, f"/api/texts/{there}")["label"] == "normal"


def test_what_may_be_hidden_is_told_until_no_text_is_left(page: Page) -> None:
    state = ask(page, "/api/state")
    judged = state["judged"]["normal"] + state["judged"]["anomaly"]
    assert state["n_open"] == state["n_texts"] - judged
    # Texts that came with a label and were judged all the same are in both counts.
    both = {"given": {"normal": state["n_texts"] - judged, "anomaly": 1}}
    state |= {"hidden": {"estimate": 3.0, "low": 1.0, "high": 9.0}} | both
    answer_with(page, "**/api/state", state)
    until(page, "document.getElementById('hidden').textContent.endsWith(', about 3 more (1 to 9)')")
    page.unroute("**/api/state")
    answer_with(page, "**/api/state", state | {"hidden": None, "no_estimate": "it takes 20 verdicts"})
    until(page, "document.getElementById('hidden').textContent.endsWith(' yet: it takes 20 verdicts')")
    page.unroute("**/api/state")
    answer_with(page, "**/api/state", state | {"n_open": 0})
    until(page, "document.getElementById('hidden').textContent.endsWith(' found')")


def test_a_fit_that_failed_is_told_and_the_work_goes_on(page: Page) -> None:
    state = ask(page, "/api/state") | {"trouble": "the model has not learnt from the last verdicts: too odd"}
    answer_with(page, "**/api/state", state)
    page.wait_for_selector("#trouble:not([hidden])")
    assert "too odd" in page.locator("#trouble").inner_text()
    before = present(page)
    press(page, "s")
    assert present(page) != before


def test_nothing_moves_when_an_explanation_arrives(page: Page) -> None:
    held: list[Route] = []
    page.route("**/why", lambda route: held.append(route))
    page.reload()
    page.wait_for_selector("#judge .card.waiting")
    places = """['article', '.text', '.facts', 'aside', 'aside h3:last-of-type'].map(
      (part) => JSON.stringify(document.querySelector(`#judge ${part}`).getBoundingClientRect()))"""
    before = page.evaluate(places)
    assert not page.locator("#judge mark").count()
    why = {
        "generation": 1,
        "what_is_odd": 'the odd part is "the words of a clause of some length, which is cut when ..."'
        + " and so on" * 6,
        "odd_all_over": False,
        "copies": "",
        "segments": [{"start": 0, "end": 5, "effect": 1.0}],
        "nearest_normals": [{"text": "a hen", "similarity": 0.5, "n_copies": 2}] * 3,
        "nearest_anomalies": [{"text": "a very long one " * 30, "similarity": 0.5, "n_copies": 0}],
    }
    for route in held:
        route.fulfill(body=json.dumps(why), content_type="application/json")
    page.wait_for_selector("#judge .card:not(.waiting) mark")
    assert page.evaluate(places) == before


def test_keys_are_left_alone_while_typing_with_ctrl_and_on_repeat(page: Page) -> None:
    before, count = present(page), ask(page, "/api/state")["last_event"]
    page.keyboard.press("Control+a")
    page.keyboard.press("Alt+n")
    page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'n', repeat: true, bubbles: true}))")
    assert present(page) == before
    press(page, "/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("nasu?m")
    assert page.input_value("#search") == "nasu?m"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.click("#open-name")
    page.keyboard.type("nan")
    page.keyboard.press("Enter")
    assert present(page) == before
    assert ask(page, "/api/state")["last_event"] == count
    press(page, "s")  # and a key that counts does count, under the name just typed
    wait_saved(page)
    assert ask(page, "/api/history?limit=1")["events"][0]["who"] == "nan"
    page.keyboard.press("Control+z")
    wait_present(page, before)


# ---- a desk that goes away -------------------------------------------------------------------------------------------


def test_no_acknowledged_verdict_is_lost_when_the_process_is_killed(
    context: BrowserContext, tiny_bert: Path, tmp_path: Path
) -> None:
    file, port = write_csv(tmp_path / "farm.csv", [*farm_texts(60), *STRAYS]), free_port()
    with Review(file, tiny_bert, port) as first:
        page = open_page(context, first.link)
        page.on("dialog", lambda dialog: dialog.accept())  # unsaved verdicts: leave all the same
        shown = []
        for key in "annan":
            shown.append(present(page))
            press(page, key)
        wait_saved(page)
        for key in "na":  # these are on their way, or not, when it dies
            shown.append(present(page))
            press(page, key)
        first.kill()
    shown.append(present(page))
    press(page, "n")
    page.wait_for_selector("#gone:not([hidden])")
    assert re.search(r"\d verdicts? not saved yet", page.locator("#gone").inner_text())
    assert "unsaved" in page.locator("#unsaved").inner_text()
    with Review(file, tiny_bert, port) as second:
        until(page, "document.getElementById('gone').textContent.includes('started anew')")
        page.goto(second.link)
        page.wait_for_selector("#judge .card[data-id]")
        wait_saved(page)
        events = ask(page, "/api/history")["events"]
        assert [(str(e["ids"][0]), e["verdict"][0]) for e in reversed(events)] == list(
            zip(shown, "annannan", strict=True)
        )
        assert page.locator("#gone").is_hidden()
        assert present(page) not in shown


# ---- who gets in -----------------------------------------------------------------------------------------------------


def test_the_token_reaches_no_other_server_and_leaves_the_address(context: BrowserContext, review: Review) -> None:
    token = review.link.partition("#token=")[2]
    page = open_page(context, review.link)
    assert token not in page.url
    assert context.cookies() == []
    heard: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
        page.go_back()
        page.wait_for_selector("#judge .card[data-id]")
    finally:
        other.shutdown()
        other.server_close()
    assert heard
    assert token not in "".join(heard)


def test_reloads_new_tabs_and_the_link_again(context: BrowserContext, review: Review) -> None:
    page = open_page(context, review.link)
    page.reload()
    page.wait_for_selector("#judge .card[data-id]")
    other = context.new_page()  # a bookmark, or the address typed again
    other.goto(f"{review.link.split('#')[0]}#browse")
    other.wait_for_selector("#rows li[data-key]")
    page.goto(review.link)  # the same page, and nothing is lost
    page.wait_for_selector("#judge .card[data-id]")
    assert "token" not in page.url


def test_a_browser_without_the_link_is_told_to_open_it(context: BrowserContext, review: Review) -> None:
    page = context.new_page()
    page.goto(review.link.split("#")[0])
    page.wait_for_selector("#gone:not([hidden])")
    assert "Open the link that strays review printed" in page.locator("#gone").inner_text()
    assert page.locator("#judge .card[data-id]").count() == 0
    page.goto(review.link)  # in the same tab: only what follows the # changes
    page.wait_for_selector("#judge .card[data-id]")
    assert page.locator("#gone").is_hidden()


# ---- looking around --------------------------------------------------------------------------------------------------


def test_texts_are_searched_filtered_and_judged_in_the_list(page: Page) -> None:
    rows = page.locator("#rows li[data-key]")
    press(page, "/")
    page.wait_for_selector("#rows li[data-key]")
    page.fill("#search", "JUMBO")
    until(page, "document.querySelectorAll('#rows li[data-key]').length === 1")
    assert "jumbo zzz" in rows.first.inner_text()
    page.keyboard.press("Enter")
    press(page, "a")
    assert "anomaly" in rows.first.inner_text()
    assert "jumbo" in page.locator("#browse-detail .text").inner_text()
    alike = page.locator("#browse-detail .facts span", has_text="like it")
    assert alike.inner_text() == "row 125 and 2 like it"
    assert alike.get_attribute("title") == "row 125\nrow 369\nrow 370\none verdict for all"
    wait_saved(page)
    assert [item["label"] for item in ask(page, "/api/texts?search=jumbo")["items"]] == ["anomaly"]
    page.click("#browse-detail .big.normal")
    wait_saved(page)
    assert [item["label"] for item in ask(page, "/api/texts?search=jumbo")["items"]] == ["normal"]
    assert "normal" in rows.first.inner_text()
    page.select_option("#label", "anomaly")
    page.wait_for_selector("#rows .empty")
    page.fill("#search", "")
    page.select_option("#label", "normal")
    until(page, "[...document.querySelectorAll('#rows li[data-key]')].some(row => row.textContent.includes('jumbo'))")
    assert set(rows.locator(".badge").all_text_contents()) == {"■ normal"}
    press(page, "u")
    page.fill("#search", "no text has this")
    page.wait_for_selector("#rows .empty")
    assert rows.count() == 0
    page.click("#rows .empty button")
    until(page, "document.querySelectorAll('#rows li[data-key]').length === 50")
    page.click("#rows .tail button")
    until(page, "document.querySelectorAll('#rows li[data-key]').length === 100")


def test_a_verdict_is_changed_in_the_list_of_what_is_judged(page: Page) -> None:
    there = present(page)
    press(page, "n")
    wait_saved(page)
    event = ask(page, "/api/history?limit=1")["events"][0]["event"]
    press(page, "l")
    page.click(f"#events li[data-key='{event}']")
    page.wait_for_selector("#judged-detail .card")
    press(page, "a")
    wait_saved(page)
    assert ask(page, f"/api/texts/{there}")["label"] == "anomaly"
    until(page, "document.querySelector('#events li').textContent.includes('anomaly')")


def test_a_region_of_the_map_is_judged_at_once_and_undone_at_once(page: Page) -> None:
    before = ask(page, "/api/state")
    press(page, "m")
    n, already = encircle(page, 0.5)
    n -= already  # these keep their verdicts
    assert 1 < n < before["n_texts"]
    posts: list[Any] = []
    page.on("request", lambda request: posts.append(request.post_data_json) if request.method == "POST" else None)
    page.keyboard.press("n")
    wait_saved(page)
    assert len(posts) == 1
    assert len(posts[0]["ids"]) == n
    judged = ask(page, "/api/state")["judged"]
    assert judged["normal"] == before["judged"]["normal"] + n
    press(page, "u")
    until(page, "document.getElementById('said').textContent.startsWith('Undone')")
    wait_saved(page)
    assert ask(page, "/api/state")["judged"] == before["judged"]
    page.keyboard.press("j")
    page.wait_for_selector("#map-detail .card .facts")


def test_a_region_leaves_verdicts_alone_that_were_given_since_the_map_was_drawn(
    context: BrowserContext, tiny_bert: Path, tmp_path: Path
) -> None:
    with Review(write_csv(tmp_path / "farm.csv", farm_texts(60)), tiny_bert) as running:
        page = open_page(context, running.link)
        press(page, "m")
        page.wait_for_selector("#canvas canvas")
        points = ask(page, "/api/map")
        at = zip(points["x"], points["y"], points["ids"], strict=True)
        inside = [id_ for x, y, id_ in at if 0.05 < x < 0.7 and 0.2 < y < 0.8]
        page.keyboard.press("Escape")
        while (mine := int(present(page))) not in inside:
            press(page, "j")
        press(page, "a")
        wait_saved(page)
        press(page, "m")
        n, _ = encircle(page, 0.8)
        assert n >= len(inside) > 5
        until(page, "document.querySelector('#map-detail h2').textContent.includes(', 1 judged already')")

        # What somebody else judges under the selection is seen, and kept even where it is not seen in time.
        theirs, late = [id_ for id_ in inside if id_ != mine][:2]
        judge_as_another(page, [theirs], "anomaly")
        until(page, "document.querySelector('#map-detail h2').textContent.includes(', 2 judged already')")
        page.route("**/api/map/values", lambda route: route.abort())
        judge_as_another(page, [late], "anomaly")
        page.keyboard.press("n")
        wait_saved(page)
        found = {item["id"]: item["label"] for item in ask(page, "/api/texts?label=anomaly")["items"]}
        assert found == dict.fromkeys([mine, theirs, late], "anomaly")
        assert ask(page, "/api/state")["judged"]["normal"] == n - 3

        # With the box ticked they change too.
        page.unroute("**/api/map/values")
        assert encircle(page, 0.8)[0] == n
        until(page, f"document.querySelector('#map-detail h2').textContent.includes(', {n} judged already')")
        page.click("#map-detail input[type=checkbox]")
        page.click("#map-detail .big.normal")
        wait_saved(page)
        assert ask(page, "/api/state")["judged"]["anomaly"] == 0


def test_a_map_of_a_sample_says_so(page: Page) -> None:
    answer_with(page, "**/api/state", ask(page, "/api/state") | {"n_texts": 30_000})
    until(page, "document.getElementById('count').textContent.includes('30,000')")
    press(page, "m")
    page.wait_for_selector("#map-part:not([hidden])")
    assert page.locator("#map-part").inner_text() == "368 of 30,000 texts are on the map; a region judges these."
    page.unroute("**/api/state")
    page.wait_for_selector("#map-part", state="hidden")


def test_a_map_that_is_being_made_is_waited_for(page: Page) -> None:
    page.route("**/api/map", lambda route: route.fulfill(status=202, body="{}", content_type="application/json"))
    press(page, "m")
    page.wait_for_selector("#canvas .empty")
    assert page.locator("#canvas .empty").inner_text() == "The map is being made…"
    page.unroute("**/api/map")
    page.wait_for_selector("#canvas canvas")


def test_a_row_that_nobody_chose_is_not_judged(page: Page) -> None:
    count = ask(page, "/api/state")["last_event"]
    page.click("nav [data-view=browse]")
    page.wait_for_selector("#rows li[data-key]")
    press(page, "n")
    page.wait_for_timeout(200)
    assert ask(page, "/api/state")["last_event"] == count
    press(page, "jn")
    wait_saved(page)
    assert ask(page, "/api/state")["last_event"] == count + 1


def test_two_tabs_are_asked_about_different_texts(context: BrowserContext, page: Page, review: Review) -> None:
    other = open_page(context, review.link)
    assert not set(upcoming(page, 1)) & set(upcoming(other, 1))
    # A duplicate of a tab brings a copy of its name along, and must not keep it.
    with context.expect_page() as opened:
        page.evaluate("window.open('/')")
    twin = opened.value
    twin.wait_for_selector("#judge .card[data-id]")
    name = "sessionStorage.getItem('strays-client')"
    until(twin, f"mine => {name} !== mine", page.evaluate(name))


def test_a_duplicate_of_a_tab_leaves_its_unsent_verdicts_alone(context: BrowserContext, page: Page) -> None:
    held: list[Route] = []
    page.route("**/api/verdicts", lambda route: held.append(route))
    there = present(page)
    press(page, "n")
    until(page, "document.getElementById('unsaved').textContent === '1 unsaved'")
    with context.expect_page() as opened:
        page.evaluate("window.open('/')")
    twin = opened.value
    twin.wait_for_selector("#judge .card[data-id]")
    name = "sessionStorage.getItem('strays-client')"
    until(twin, f"mine => {name} !== mine", page.evaluate(name))
    twin.wait_for_timeout(500)
    assert ask(twin, f"/api/texts/{there}")["label"] is None
    kept = twin.evaluate("Object.entries(sessionStorage).filter(([key]) => key !== 'strays-client')")
    assert [(key.split()[0], json.loads(value)["entries"]) for key, value in kept] == [("strays-unsaved", [])]
    held[0].continue_()
    wait_saved(page)
    assert ask(page, f"/api/texts/{there}")["label"] == "normal"


@pytest.mark.parametrize(("what", "format"), [("judged", "csv"), ("all", "jsonl")])
def test_labels_are_downloaded(page: Page, what: str, format: str) -> None:
    press(page, "a")
    wait_saved(page)
    page.click("#open-save")
    with page.expect_download() as started:
        page.click(f"#save [data-download*='what={what}'][data-download*='format={format}']")
    text = started.value.path().read_text(encoding="utf-8")
    rows = (
        list(csv.DictReader(text.splitlines())) if format == "csv" else [json.loads(line) for line in text.splitlines()]
    )
    assert len(rows) >= (360 if what == "all" else 1)
    assert any("anomaly" in row.values() for row in rows)


def test_the_model_is_saved_and_the_command_for_it_shown(page: Page) -> None:
    page.click("#open-save")
    page.click("#save-model")
    page.wait_for_selector("#save-command:not([hidden])")
    command = page.locator("#save-command code").inner_text()
    found = re.fullmatch(r"strays score more.csv --model (\S+) --out scored.csv", command)
    assert found
    assert (Path(found[1]) / "config.json").exists()


# ---- looks and access ------------------------------------------------------------------------------------------------


def test_a_phone_needs_no_scrolling_sideways(chromium: Browser, review: Review) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    page = open_page(context, review.link)
    wide = """[document.documentElement.scrollWidth,
      ...[...document.querySelectorAll(".view:not([hidden]) *, header *")].filter((part) => part.checkVisibility())
        .map((part) => part.getBoundingClientRect().right)]"""
    for view in ("judge", "browse", "map", "judged"):
        page.click(f"nav [data-view={view}]")
        page.wait_for_timeout(400)
        assert max(page.evaluate(wide)) <= 391, view
    page.click("nav [data-view=judge]")
    for button in page.locator("#judge [data-act]").all():
        box = button.bounding_box()
        assert box
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= 844
    before = present(page)
    page.tap("[data-act=skip]")
    assert present(page) != before
    context.close()


def test_every_button_has_a_name_and_the_focus_is_seen(page: Page) -> None:
    named = """[...document.querySelectorAll("button, a, input, select")].map((part) =>
      part.getAttribute("aria-label") || part.textContent.trim() || part.labels[0].textContent)"""
    assert all(page.evaluate(named))
    seen = {}
    for _ in range(18):
        page.keyboard.press("Tab")
        what = "[document.activeElement.textContent.trim(), getComputedStyle(document.activeElement).outlineStyle]"
        name, style = page.evaluate(f"document.activeElement === document.body ? ['', 'solid'] : {what}")
        seen[name] = style
    assert {"◆ Anomaly a", "■ Normal n", "Skip s", "Undo u", "Browse /", "Export", "?"} <= seen.keys()
    assert set(seen.values()) == {"solid"}, seen


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(chromium: Browser, review: Review, theme: str) -> None:
    context = chromium.new_context(color_scheme=theme)
    page = open_page(context, review.link)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.click("#theme")
    after = page.evaluate(colour)
    assert after != before
    page.reload()
    assert page.evaluate(colour) == after
    context.close()


# ---- texts that mean harm --------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">',
    "</script></title></textarea><svg onload=window.pwned=1>",
    "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}",
    "javascript:window.pwned=1",
    '"><iframe srcdoc="<script>parent.pwned=1</script>">',
    "right \u202eto left\u202c and \u2066isolated\u2069 \u200b\ufeff",
    "nul \u0000 bell \u0007 escape \u001b[31m red",
    "m" * 1_000_000,
    "z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034d"
    * 40,
    "<link rel=stylesheet href=http://example.org/x.css><b style=position:fixed;inset:0>over all</b>",
    "half a pair \ud83d and whole \U0001f600",
]


def test_hostile_texts_are_shown_as_texts_and_do_nothing(
    context: BrowserContext, tiny_bert: Path, tmp_path: Path, judge_all: Callable[[Page], list[str]]
) -> None:
    file = tmp_path / "hostile.jsonl"
    file.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in [*farm_texts(20), *HOSTILE]), encoding="utf-8"
    )
    with Review(file, tiny_bert) as running:
        page = context.new_page()
        trouble: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(running.link)
        page.wait_for_selector("#judge .card[data-id]")
        press(page, "/")
        until(page, "document.querySelectorAll('#rows li[data-key]').length === 32")
        page.keyboard.press("Enter")
        for _ in range(33):
            page.keyboard.press("j")
        page.wait_for_timeout(300)
        press(page, "m")
        page.wait_for_selector("#canvas canvas")
        for _ in range(32):
            page.keyboard.press("j")
            page.wait_for_timeout(20)
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        shown = judge_all(page)
        for text in HOSTILE[:6]:
            assert text in shown
        together = "\n".join(shown)
        for sign in ("RLO", "PDF", "LRI", "ZWSP", "BOM", "NUL", "BEL", "ESC", "\U0001f600"):
            assert sign in together
        assert "show more (1,000,000 characters)" in together
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x07\x1b]", together)
        assert page.locator("#judge .empty h2").inner_text() == "All judged"
        press(page, "l")
        until(page, "document.querySelectorAll('#events li[data-key]').length >= 32")
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert trouble == []
        origin = running.link.split("/#")[0]
        assert [url for url in asked if not url.startswith((origin, "data:"))] == []


def test_what_cannot_be_seen_is_a_sign_in_tips_too(context: BrowserContext, tiny_bert: Path, tmp_path: Path) -> None:
    odd = "right \u202eto left \u202eagain"
    with Review(
        write_csv(tmp_path / "turned.csv", [*farm_texts(20), odd, f"and {odd} {odd} 42"]), tiny_bert
    ) as running:
        page = open_page(context, running.link)
        press(page, "m")
        page.wait_for_selector("#canvas canvas")
        points, texts = ask(page, "/api/map"), ask(page, "/api/texts?limit=100")["items"]
        i = points["ids"].index(next(item["id"] for item in texts if item["text"] == odd))
        page.click("#canvas button:has-text('⤢')")
        box, margin = page.locator("#canvas").bounding_box(), 22
        assert box
        x, y = (
            box[at] + margin + points[at][i] * (box[size] - 2 * margin)
            for at, size in (("x", "width"), ("y", "height"))
        )
        page.mouse.move(x, y)
        until(page, "document.getElementById('canvas').textContent.includes('right ⟨RLO⟩to left ⟨RLO⟩again')")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        heard, titles = "", ""
        while page.locator("#judge .card").count():
            page.wait_for_selector("#judge .card:not(.waiting)")
            titles += "".join(page.evaluate("[...document.querySelectorAll('#judge [title]')].map(one => one.title)"))
            press(page, "n")
            heard += page.locator("#said").inner_text()
            wait_saved(page)
        assert "right ⟨RLO⟩to" in heard
        assert "right ⟨RLO⟩to" in titles
        assert "\u202e" not in heard + titles


@pytest.fixture
def judge_all() -> Callable[[Page], list[str]]:
    def judge(page: Page) -> list[str]:
        shown = []
        while page.locator("#judge .card").count():
            shown.append(page.locator("#judge .text").inner_text())
            press(page, "na"[len(shown) % 2])
            wait_saved(page)
            page.wait_for_timeout(50)
        return shown

    return judge


def test_the_whole_of_a_long_text_can_be_had(context: BrowserContext, tiny_bert: Path, tmp_path: Path) -> None:
    long = " ".join(["hay"] * 9_999 + ["needle"])
    with Review(write_csv(tmp_path / "long.csv", [*farm_texts(30), long]), tiny_bert) as running:
        page = open_page(context, running.link)
        press(page, "/")
        page.fill("#search", "needle")
        until(page, "document.querySelectorAll('#rows li[data-key]').length === 1")
        page.keyboard.press("Enter")
        page.click("#browse-detail .more")
        assert len(page.locator("#browse-detail .text").inner_text()) > 20_000
        with page.expect_download() as started:
            page.click("#browse-detail .more")
        assert started.value.path().read_text() == long
