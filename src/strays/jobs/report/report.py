"""A report: what was found in a file, why, and how far to trust it, as one page of HTML or as JSON."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

from strays.errors import DataError, UsageError
from strays.jobs.report.facts import facts
from strays.jobs.report.page import render, require_jinja
from strays.jobs.scan import Scan
from strays.tables import complete_file

# The oddest texts shown where nobody says how many, and the texts of each kind a model keeps to compare them with.
SHOWN_TEXTS, KEPT_EXAMPLES = 50, 2000
# More do not make a page any more.
MOST_SHOWN = 1000


@dataclass(frozen=True, repr=False)
class Report:
    """A report about a scanned file, from the `facts` it states. A notebook shows the page.

    >>> import pyarrow as pa
    >>> from strays.jobs.report import Report
    >>> from strays.jobs.scan import scan_table
    >>> from strays.tables import Table
    >>> class Letters:
    ...     def encode(self, texts):
    ...         return [[text.count(letter) for letter in "aeinorst"] for text in texts]
    >>> texts = [f"{animal} number {n}" for animal in ("cat", "dog", "hen") for n in range(20)]
    >>> scan = scan_table(Table.of(pa.table({"text": [*texts, "zzz"]}), "animals"), Letters(), "lof")
    >>> report = Report.of(scan, top=1)
    >>> report
    <Report: 61 texts of animals, 1 shown>
    >>> report.html()[:15]
    '<!doctype html>'
    >>> report.facts["oddest"][0]["row"]
    61
    """

    facts: dict[str, Any]

    @classmethod
    def of(cls, scan: Scan, **options: Any) -> Self:
        """Gather what there is to say of a scan; takes the options of `strays.jobs.report.facts.facts`."""
        return cls(facts(scan, **options))

    def html(self) -> str:
        """The page. It is one file: styles, scripts and data are in it."""
        return render(self.facts)

    def json(self) -> str:
        """The facts as JSON, all but the map's long lists."""
        said = {key: value for key, value in self.facts.items() if key != "map"}
        return json.dumps(said, indent=2, ensure_ascii=False)

    def write(self, path: str) -> None:
        """Write the page to a file; '-' is stdout. The file is complete or not there at all."""
        page = self.html().encode("utf-8")
        with complete_file(path) as file:
            file.write(page)

    def open(self) -> None:
        """Show the page in a browser, from a temporary file."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8", delete=False) as file:
            file.write(self.html())
        webbrowser.open(Path(file.name).as_uri())

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as a notebook shows it."""
        style = "width: 100%; height: 600px; border: 0"
        return f'<iframe srcdoc="{escape(self.html())}" sandbox="allow-scripts" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {self.facts['n_texts']:,} texts of {self.facts['file']}, {len(self.facts['oddest'])} shown>"


def check_page(out: str, source: str, *, besides: str | None = None) -> None:
    """Raise, before any work is done, if the page could not be written where it is wanted, beside other output."""
    require_jinja()
    target = Path(out)
    if besides is not None and (out == besides or target.absolute() == Path(besides).absolute()):
        raise UsageError(f"{out}: the rows are written there too; name another file for the page")
    if out == "-":
        return
    if target.is_dir():
        raise DataError(f"{out}: is a folder; expected the name of a file for the page")
    if not target.absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {target.parent}; make it first")
    if target.exists() and Path(source).exists() and target.samefile(source):
        raise UsageError(f"{out}: is the input itself; write to another file")
