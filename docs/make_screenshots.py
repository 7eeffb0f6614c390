"""Take pictures of pages in a browser, for the README: python docs/make_screenshots.py. Needs Chromium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strays.corpus import read_texts
from strays.encoders import load_encoder
from strays.report.job import KEPT_EXAMPLES, write_report
from strays.scanning import scan_table
from strays.tables import open_table

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
WIDTH, HEIGHT = 1040, 2400  # all of it in view, so that nothing scrolls while a picture is taken


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

    def quiet(what: str) -> Any:
        return nullcontext(lambda done, total=None: None)

    found = scan_table(
        open_table(str(EXAMPLES / "workshop.csv")),
        load_encoder(),
        "auto",
        known=read_texts(open_table(str(EXAMPLES / "workshop_known.txt")), "text"),
        keep_examples=KEPT_EXAMPLES,
        progress=quiet,
    )
    write_report(found, str(page), fitted_here=True, top=2, progress=quiet)


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


def main() -> None:
    """All pictures."""
    with browser() as opened:
        report_pictures(opened)


if __name__ == "__main__":
    main()
