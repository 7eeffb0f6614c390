"""Take docs/desk-light.png, desk-dark.png and desk-map.png: the review desk on the example, after some verdicts.

Run as python docs/make_screenshots.py; needs a browser (apt-get install chromium) and the extras review and dev.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
VERDICTS, MOST_VERDICTS = 16, 60
MOST_BYTES = 300_000


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
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright, desk() as link:
        browser = playwright.chromium.launch(executable_path=program)
        size = {"width": 1200, "height": 720}
        page = browser.new_page(viewport=size, device_scale_factor=1.5, reduced_motion="reduce")
        page.goto(link)
        page.wait_for_selector("#judge .card[data-id]")
        judge(page, VERDICTS)
        wait(page)
        take(page, "desk-light.png")
        page.emulate_media(color_scheme="dark")
        take(page, "desk-dark.png")
        page.emulate_media(color_scheme="light")
        encircle(page)
        take(page, "desk-map.png")
        browser.close()


if __name__ == "__main__":
    main()
