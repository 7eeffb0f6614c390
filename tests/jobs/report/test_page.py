"""The page in a real browser: it asks for nothing, texts stay texts, and it can be read everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from strays.jobs.report.page import render
from strays.jobs.scan import Scan
from tests.conftest import farm_texts
from tests.jobs.report.conftest import facts_of, scan_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>window.pwned=1</script> win cash",
    "</script><script>window.pwned=2</script>",
    "<img src=x onerror=window.pwned=3>",
    "javascript:window.pwned=4",
    '"><svg onload=window.pwned=5>',
    "{{ 7 * 7 }} {% raw %} <!-- <style>*{display:none}</style>",
    "\u202egnp.exe\u2066 hidden \u200b\u200e marks",
    "nul \x00 and escape \x1b[31m and half \ud83d",
    "line\u2028para\u2029graph ]]> &lt;b&gt;",
    "a" + "\u0301" * 10_000,
    "x" * (1 << 20),
    "http://evil.example/ <link rel=stylesheet href=//evil.example/a.css>",
    "שלום עולם زبان",
]

Open = Callable[..., "Page"]


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a page made of facts; in the end there must have been no request, no message and no dialog."""
    heard: list[str] = []
    contexts = []

    def open_(facts: dict[str, Any], **options: Any) -> Page:
        file = tmp_path / "report.html"
        file.write_text(render(facts), encoding="utf-8")
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: heard.append(request.url))
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: heard.append(dialog.message))
        page.goto(file.as_uri())
        assert heard.pop(0) == file.as_uri()
        return page

    yield open_
    for context in contexts:
        context.close()
    assert heard == []


@pytest.fixture(scope="module")
def facts(labelled: Scan) -> dict[str, Any]:
    return facts_of(labelled, top=100)


@pytest.fixture(scope="module")
def hostile() -> dict[str, Any]:
    texts = farm_texts(60) + HOSTILE
    labels = [None] * 60 + ["anomaly", "normal"] * 6 + [None]
    return facts_of(scan_of(texts, labels), title="<script>window.pwned=9</script>", top=80, fitted_here=False)


def test_the_page_says_what_was_found(facts: dict[str, Any], open_page: Open) -> None:
    page = open_page(facts)
    assert page.title() == "The strays in texts.csv"
    assert page.locator(".card").count() == 100
    assert page.locator(".card .badge.normal").count() > 2
    assert "4 known anomalies are left out" in page.locator("#oddest").inner_text()
    assert page.locator("#quality .figures dd").first.inner_text() == f"{100 * facts['quality']['metrics']['map']:.1f}"
    assert page.locator("svg > title").count() == page.locator("svg > desc").count() == 5
    assert "125, 1 of them without a text" in page.locator("#about").inner_text()
    headings = page.evaluate("[...document.querySelectorAll('h1, h2')].map((h) => h.textContent)")
    assert len(headings) == 6


def test_odd_words_are_marked_and_copies_counted(open_page: Open) -> None:
    odd = "the cat sleeps in the barn, win cash"
    page = open_page(facts_of(scan_of([*farm_texts(120), odd, odd, odd]), top=3))
    card = page.locator(".card", has_text="win cash")
    assert card.locator("mark").all_inner_texts() == ["win cash"]
    assert card.locator(".text").inner_text() == f"{odd} and 2 like it"
    assert "Texts that are alike are shown once." in page.locator("#oddest .intro").inner_text()


def test_pointing_at_the_map_shows_the_text_and_clicking_keeps_it(facts: dict[str, Any], open_page: Open) -> None:
    page = open_page(facts)
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map-here").bounding_box()
    point = facts["map"]["oddest"][0]
    x, y = (facts["map"][axis][point] / facts["map"]["grid"] for axis in "xy")
    page.mouse.move(box["x"] + 22 + x * (box["width"] - 44), box["y"] + 22 + y * (box["height"] - 44))
    tip = page.locator("#map-here [role=status]")
    tip.wait_for(state="visible")
    assert facts["map"]["text"][point] in tip.inner_text()
    page.mouse.down()
    page.mouse.up()
    assert facts["map"]["text"][point] in page.locator("#picked").inner_text()
    assert page.locator("#picked a").get_attribute("href") == "#text-0"


def test_the_theme_follows_the_system_and_the_button(facts: dict[str, Any], open_page: Open) -> None:
    page = open_page(facts, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    corner = "[...document.querySelector('#map-here canvas').getContext('2d').getImageData(3, 3, 1, 1).data]"
    dark, dark_map = page.evaluate(background), page.evaluate(corner)
    page.locator("#theme").click()
    page.wait_for_timeout(100)
    light, light_map = page.evaluate(background), page.evaluate(corner)
    assert sum(map(int, re.findall(r"\d+", dark))) < 150 < 600 < sum(map(int, re.findall(r"\d+", light)))
    assert sum(dark_map[:3]) < 150 < 600 < sum(light_map[:3])
    page.locator("#theme").click()
    assert page.evaluate(background) == dark


@pytest.mark.parametrize("which", ["facts", "hostile"])
def test_a_phone_need_not_scroll_sideways(which: str, open_page: Open, request: pytest.FixtureRequest) -> None:
    page = open_page(
        request.getfixturevalue(which), viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    sizes = "[...document.querySelectorAll('p, li, dd')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
    assert min(page.evaluate(sizes)) >= 13


def test_it_prints_light_with_a_still_map(facts: dict[str, Any], open_page: Open) -> None:
    page = open_page(facts, color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".map-still svg").is_visible()
    assert not page.locator("#map-here").is_visible()
    assert not page.locator("nav").is_visible()


def test_hostile_texts_stay_texts(hostile: dict[str, Any], open_page: Open) -> None:
    page = open_page(hostile)
    page.wait_for_timeout(200)
    assert page.evaluate("window.pwned") is None
    assert page.title() == page.locator("h1").inner_text() == "<script>window.pwned=9</script>"
    assert page.locator(".card img, .card svg, .card script, .card a, .card style").count() == 0
    words = page.locator("#oddest").inner_text()
    assert "<script>window.pwned=1</script>" in re.sub(r"\s+", " ", words)
    assert "\u2039U+202E\u203agnp.exe" in words
    assert "{{ 7 * 7 }}" in words
    assert "1,048,576 characters" in words
    assert "9,995 more marks" not in words  # cut before that
    assert not set(page.content()) & set("\u202e\u2066\u200b\x00\x1b")
    heights = page.evaluate("[...document.querySelectorAll('.card')].map((card) => card.offsetHeight)")
    assert max(heights) < 700


def test_hostile_texts_on_the_map(hostile: dict[str, Any], open_page: Open) -> None:
    page = open_page(hostile)
    page.locator("#map").scroll_into_view_if_needed()
    page.locator("#map-here canvas").last.focus()
    for _ in range(len(hostile["map"]["x"])):
        page.keyboard.press("p")
        page.keyboard.press("Enter")
    assert page.evaluate("window.pwned") is None
    assert page.locator("#picked").is_visible()
    assert page.locator("#picked img, #picked script, #map-here img").count() == 0


def test_the_policy_allows_nothing_from_elsewhere(hostile: dict[str, Any], chromium: Browser, tmp_path: Path) -> None:
    html = render(hostile)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    (tmp_path / "page.html").write_text(html.replace("</body>", "<script>window.pwned=1</script></body>"))
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("window.pwned") is None
    page.close()


def test_without_scripts_the_still_map_is_there(facts: dict[str, Any], open_page: Open) -> None:
    page = open_page(facts, java_script_enabled=False)
    assert page.locator(".map-still svg").is_visible()
    assert not page.locator("#theme").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out(facts: dict[str, Any], open_page: Open, scheme: str) -> None:
    """WCAG AA: a contrast of at least 4.5 for every text."""
    page = open_page(facts, color_scheme=scheme)
    worst = page.evaluate("""() => {
      const rgba = (color) => color.match(/[\\d.]+/g).map(Number);
      const over = (top, under) => top.slice(0, 3).map((c, k) => c * (top[3] ?? 1) + under[k] * (1 - (top[3] ?? 1)));
      const own = (e) => rgba(getComputedStyle(e).backgroundColor);
      const behind = (e) => e ? over(own(e), behind(e.parentElement)) : [255, 255, 255];
      const light = (rgb) => rgb.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
      let worst = [99, ""];
      for (const e of document.querySelectorAll("body :not(script, style, svg, svg *)")) {
        if (!e.textContent.trim() || !e.offsetParent) continue;
        const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < worst[0]) worst = [contrast, e.outerHTML.slice(0, 80)];
      }
      return worst;
    }""")
    assert worst[0] >= 4.5, worst


@pytest.mark.filterwarnings("ignore:.*too few to flag")
@pytest.mark.parametrize("n", [3, 4])
def test_tiny_files_have_pages(n: int, open_page: Open) -> None:
    page = open_page(facts_of(scan_of(farm_texts(n), detector="centroid")))
    assert page.locator(".card").count() == n
