"""The map component by itself: what the mouse, fingers and keys do, and that many points stay fluid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from strays.jobs.report.page import map_script

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SIZE, MARGIN = (600, 400), 22
# A corner each, and one in the middle.
CORNERS = {"x": [0, 1, 0, 1, 0.5], "y": [0, 0, 1, 1, 0.5], "value": [0, 0.2, 0.4, 0.6, 1], "mark": [""] * 5}


def at(x: float, y: float) -> tuple[float, float]:
    """Where a place is on the page while the whole map is shown."""
    return MARGIN + x * (SIZE[0] - 2 * MARGIN), MARGIN + y * (SIZE[1] - 2 * MARGIN)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 640, "height": 480})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(
        "<!doctype html><style>body { margin: 0 } #map { width: 600px; height: 400px; --map-bg: #ffffff; "
        "--map-high: #000080; --map-low: #ccddee; --map-mid: #6688aa; --map-anomaly: #ff0000 }</style>"
        "<div id=map></div>"
    )
    page.add_script_tag(content=map_script())
    yield page
    page.close()
    assert errors == []


def make(page: Page, points: dict[str, Any], options: str = "") -> None:
    page.evaluate(
        f"""(points) => {{
          window.picked = []; window.chosen = [];
          window.map = new StraysMap(document.getElementById("map"), {{
            ...points, text: (i) => `text <b>${{i}}</b>`, onPick: (i) => picked.push(i),
            onSelect: (indices) => chosen.push([...indices]), {options} }});
        }}""",
        points,
    )


def pixel(page: Page, x: float, y: float) -> list[int]:
    page.wait_for_timeout(60)
    script = f"[...document.querySelector('canvas').getContext('2d').getImageData({x}, {y}, 1, 1).data].slice(0, 3)"
    return page.evaluate(script)


def test_points_are_drawn_where_they_are_in_their_colours(page: Page) -> None:
    make(page, CORNERS)
    assert pixel(page, *at(0, 0)) == pytest.approx([0xCC, 0xDD, 0xEE], abs=6)
    assert pixel(page, *at(0.5, 0.5)) == [0, 0, 0x80]
    assert pixel(page, *at(0.25, 0.5)) == [255, 255, 255]
    page.evaluate("map.setValues([1, 0, 0, 0, 0], ['', '', '', '', 'anomaly'])")
    assert pixel(page, *at(0, 0)) == [0, 0, 0x80]
    x, y = at(0.5, 0.5)
    assert [255, 0, 0] in [pixel(page, x + step, y) for step in range(5, 9)]  # the outline of the mark


def test_hovering_shows_the_text_as_text(page: Page) -> None:
    make(page, CORNERS)
    tip = page.locator("[role=status]")
    assert not tip.is_visible()
    page.mouse.move(*at(1, 1))
    tip.wait_for(state="visible")
    assert tip.inner_text() == "text <b>3</b>"
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SIZE[0]
    page.mouse.move(*at(0.25, 0.5))
    tip.wait_for(state="hidden")


def test_clicking_picks_and_dragging_does_not(page: Page) -> None:
    make(page, CORNERS)
    page.mouse.click(*at(0.5, 0.5))
    assert page.evaluate("picked") == [4]
    page.mouse.move(*at(0.5, 0.5))
    page.mouse.down()
    page.mouse.move(at(0.5, 0.5)[0] + 60, at(0.5, 0.5)[1], steps=4)
    page.mouse.up()
    assert page.evaluate("picked") == [4]
    assert pixel(page, at(0.5, 0.5)[0] + 60, at(0.5, 0.5)[1]) == [0, 0, 0x80]


def test_the_wheel_zooms_around_the_pointer(page: Page) -> None:
    make(page, CORNERS)
    page.mouse.move(*at(0.5, 0.5))
    page.mouse.wheel(0, -400)
    page.wait_for_function("map.zoom > 1.3")
    assert pixel(page, *at(0.5, 0.5)) == [0, 0, 0x80]
    assert pixel(page, *at(0, 0)) == [255, 255, 255]
    page.get_by_role("button", name="Show all").click()
    assert pixel(page, *at(0, 0)) != [255, 255, 255]


def test_a_map_in_a_long_page_lets_it_scroll_until_clicked(page: Page) -> None:
    make(page, CORNERS, 'wheel: "engaged"')
    page.evaluate("document.body.style.height = '3000px'")
    page.mouse.move(*at(0.3, 0.5))
    page.mouse.wheel(0, 100)
    page.wait_for_function("scrollY === 100")
    assert page.evaluate("map.zoom") == 1
    page.mouse.wheel(0, -100)
    page.wait_for_function("scrollY === 0")
    page.mouse.click(*at(0.3, 0.5))
    page.mouse.wheel(0, -100)
    page.wait_for_function("map.zoom > 1.1")
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("way", ["shift", "mode"])
def test_encircling_selects(page: Page, way: str) -> None:
    make(page, CORNERS)
    if way == "mode":
        page.evaluate("map.setMode('select')")
    else:
        page.keyboard.down("Shift")
    page.mouse.move(*at(-0.03, -0.03))
    page.mouse.down()
    for corner in ((0.6, -0.03), (0.6, 0.6), (-0.03, 0.6)):
        page.mouse.move(*at(*corner), steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.evaluate("chosen") == [[0, 4]]
    faint = pixel(page, *at(1, 1))
    assert min(faint) > 200
    assert pixel(page, *at(0.5, 0.5)) == [0, 0, 0x80]
    page.evaluate("map.clearSelection()")
    assert pixel(page, *at(1, 1)) != faint
    page.evaluate("map.select([3])")
    assert min(pixel(page, *at(0.5, 0.5))) > 200


def test_without_a_taker_there_is_no_selecting(page: Page) -> None:
    make(page, CORNERS, "onSelect: undefined")
    page.evaluate("map.setMode('select')")
    assert page.evaluate("map.mode") == "pan"


def test_keys_walk_from_odd_to_plain(page: Page) -> None:
    make(page, CORNERS)
    page.keyboard.press("Tab")
    page.keyboard.press("n")
    assert page.evaluate("map.focused") == 4
    page.keyboard.press("p")
    assert page.evaluate("map.focused") == 3
    assert page.locator("[role=status]").inner_text() == "text <b>3</b>"
    page.keyboard.press("Enter")
    assert page.evaluate("picked") == [3]
    page.keyboard.press("+")
    assert page.evaluate("map.zoom") > 1
    page.keyboard.press("0")
    assert page.evaluate("map.zoom") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("map.focused") == -1
    assert page.locator("canvas").last.get_attribute("aria-label").startswith("Map of the texts")


def test_a_focused_point_is_brought_into_view(page: Page) -> None:
    make(page, CORNERS)
    page.evaluate("map.zoomBy(20); map.focus(0)")
    assert page.evaluate("map._place(0)") == [SIZE[0] / 2, SIZE[1] / 2]


def test_two_fingers_zoom(chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 640, "height": 480}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.set_content(
        "<meta name=viewport content='width=device-width'><div id=map style='width:600px;height:400px'></div>"
    )
    page.add_script_tag(content=map_script())
    make(page, CORNERS)
    fingers = context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[int, int]) -> None:
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (280, 200), (320, 200))
    for step in range(1, 11):
        touch("touchMove", (280 - 10 * step, 200), (320 + 10 * step, 200))
    touch("touchEnd")
    assert page.evaluate("map.zoom") > 2
    page.evaluate("map.reset()")
    page.touchscreen.tap(300, 200)
    page.wait_for_function("picked.length === 1")
    context.close()


def test_a_map_follows_its_containers_size_and_goes_away_whole(page: Page) -> None:
    make(page, CORNERS)
    page.evaluate("document.getElementById('map').style.width = '300px'")
    page.wait_for_function("document.querySelector('canvas').width === 300")
    page.evaluate("map.destroy()")
    assert page.evaluate("document.getElementById('map').childElementCount") == 0
    page.evaluate("document.getElementById('map').style.width = '500px'")
    page.wait_for_timeout(50)


def test_sharp_screens_get_more_pixels(chromium: Browser) -> None:
    context = chromium.new_context(viewport={"width": 640, "height": 480}, device_scale_factor=2)
    page = context.new_page()
    page.set_content("<div id=map style='width:600px;height:400px'></div>")
    page.add_script_tag(content=map_script())
    make(page, CORNERS)
    assert page.evaluate("document.querySelector('canvas').width") == 1200
    context.close()


@pytest.mark.parametrize("n", [0, 1])
def test_no_points_and_one(page: Page, n: int) -> None:
    make(page, {key: values[:n] for key, values in CORNERS.items()})
    page.locator("canvas").last.focus()
    page.keyboard.press("n")
    page.mouse.click(*at(0, 0))
    assert page.evaluate("picked") == list(range(n))


def test_twenty_thousand_points_stay_fluid(page: Page) -> None:
    """The canvas is asked a few times a frame, not for every point; pointing looks at points nearby, not at all."""
    rng = np.random.default_rng(0)
    many = {key: rng.uniform(size=20_000).round(4).tolist() for key in ("x", "y", "value")}
    make(page, json.loads(json.dumps({**many, "mark": [""] * 20_000})))
    asked = page.evaluate(
        """() => {
          map.panBy(3, 2);
          map._draw();
          const pen = CanvasRenderingContext2D.prototype;
          let calls = 0;
          for (const name of Object.getOwnPropertyNames(pen)) {
            const method = Object.getOwnPropertyDescriptor(pen, name).value;
            if (typeof method !== "function") continue;
            pen[name] = function (...given) { calls += 1; return method.apply(this, given); };
          }
          map.panBy(3, 2);
          map._draw();
          return calls;
        }"""
    )
    assert 1 <= asked < 20
    looked_at = page.evaluate(
        """() => {
          let reads = 0;
          map.points.cells = new Proxy(map.points.cells, { get(cells, k) { reads += 1; return cells[k]; } });
          for (let k = 0; k < 1000; k += 1) map.hit(k % 600, k % 400);
          return reads / 1000;
        }"""
    )
    assert 1 < looked_at < 1000
