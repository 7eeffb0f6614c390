"""Take pictures of pages in a browser, for the README: python docs/make_screenshots.py. Needs Chromium."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strays.encoders import load_encoder
from strays.jobs.corpus import read_texts
from strays.jobs.report.report import KEPT_EXAMPLES, Report
from strays.jobs.scan import scan_table
from strays.tables import open_table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
WIDTH, HEIGHT = 1040, 2400  # all of it in view, so that nothing scrolls while a picture is taken
VERDICTS, MOST_VERDICTS = 24, 60
MOST_BYTES = 300_000


@contextmanager
def browser() -> Iterator[Browser]:
    """The Chromium that is installed."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program)
        yield opened
        opened.close()


def example_report(page: Path) -> None:
    """The report of the example corpus with its known strays."""
    found = scan_table(
        open_table(str(EXAMPLES / "workshop.csv")),
        load_encoder(),
        "auto",
        known=read_texts(open_table(str(EXAMPLES / "workshop_known.txt")), "text"),
        keep_examples=KEPT_EXAMPLES,
    )
    Report.of(found, top=2).write(str(page))


def report_pictures(opened: Browser) -> None:
    """docs/report-light.png and docs/report-dark.png: the oddest texts and the map."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        example_report(page)
        for scheme in ("light", "dark"):
            tab = opened.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            tab.goto(page.as_uri())
            tab.wait_for_timeout(300)  # until the map is drawn
            point_at_the_oddest(tab)
            height = tab.evaluate("document.getElementById('scores').getBoundingClientRect().top")
            tab.screenshot(path=DOCS / f"report-{scheme}.png", clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
            tab.close()


def point_at_the_oddest(tab: Any) -> None:
    """Show the tip of the oddest text on the map."""
    data = tab.evaluate("JSON.parse(document.getElementById('map-data').textContent)")
    x, y = (data[axis][data["oddest"][0]] / data["grid"] for axis in "xy")
    box, margin = tab.locator("#map-here").bounding_box(), 22
    tab.mouse.move(
        *(
            box[at] + margin + share * (box[size] - 2 * margin)
            for at, size, share in zip("xy", ("width", "height"), (x, y), strict=True)
        )
    )
    tab.wait_for_timeout(200)


def desk_pictures(opened: Browser) -> None:
    """docs/desk-light.png, desk-dark.png and desk-map.png: the review desk after some verdicts."""
    with desk() as link:
        tab = opened.new_page(viewport={"width": 1200, "height": 720}, device_scale_factor=1.5, reduced_motion="reduce")
        tab.goto(link)
        tab.wait_for_selector("#judge .card[data-id]")
        judge(tab, VERDICTS)
        wait(tab)
        take(tab, "desk-light.png")
        tab.emulate_media(color_scheme="dark")
        take(tab, "desk-dark.png")
        tab.emulate_media(color_scheme="light")
        encircle(tab)
        take(tab, "desk-map.png")
        tab.close()


@contextmanager
def desk() -> Iterator[str]:
    """The link to a desk with a copy of the example, so that no project is left beside the original."""
    with tempfile.TemporaryDirectory() as folder:
        file = shutil.copy(EXAMPLES / "workshop.csv", folder)
        command = [sys.executable, "-m", "strays", "review", file, "--no-browser", "--who", "you"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
            try:
                yield process.stdout.readline().strip() if process.stdout else ""
            finally:
                process.terminate()


def judge(page: Page, n: int) -> None:
    """Give n verdicts, as the example's labels say, and more until a stray is to be judged."""
    with (EXAMPLES / "workshop_labels.csv").open(encoding="utf-8", newline="") as file:
        strays = {row["text"] for row in csv.DictReader(file) if row["label"] == "anomaly"}
    for given in range(MOST_VERDICTS):
        is_stray = page.locator("#judge .text").inner_text() in strays
        if given >= n and is_stray:
            return
        page.keyboard.press("a" if is_stray else "n")
        page.wait_for_timeout(250)


def wait(page: Page) -> None:
    """Until the model has learnt and the words are marked."""
    for _ in range(200):
        page.wait_for_timeout(100)
        if not page.locator("#learning.busy, .waiting .blank, #unsaved.waiting").count():
            break
    page.wait_for_timeout(7000)  # what was learnt is told for a while


def take(page: Page, name: str) -> None:
    """One picture."""
    page.screenshot(path=DOCS / name)
    size = (DOCS / name).stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{name} has {size:,} bytes; expected at most {MOST_BYTES:,}")


def encircle(page: Page) -> None:
    """Select a region of the map around its oddest texts."""
    page.keyboard.press("m")
    page.wait_for_selector("#canvas canvas")
    page.keyboard.press("e")
    box = page.locator("#canvas").bounding_box()
    if not box:
        raise SystemExit("there is no map")
    at = [(0.62, 0.40), (0.97, 0.40), (0.97, 0.97), (0.62, 0.97), (0.62, 0.40)]
    for step, (x, y) in enumerate(at):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=6)
        if step == 0:
            page.mouse.down()
    page.mouse.up()
    page.mouse.move(1, 1)
    page.wait_for_timeout(1500)


def main() -> None:
    """All pictures."""
    with browser() as opened:
        report_pictures(opened)
        desk_pictures(opened)


if __name__ == "__main__":
    main()
