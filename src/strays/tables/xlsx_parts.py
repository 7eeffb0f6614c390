"""The parts of an Excel workbook (.xlsx): which sheets there are, the strings they share, and which numbers are dates.

A workbook is a zip archive of XML files. Both may be made to unpack to far more than they are, so sizes, the depth of
elements and what stands between two tags have limits, and document types, which define entities, are refused.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from xml.parsers import expat

from strays.tables.source import MOST_UNPACKED, UNPACKED_AT_LEAST
from strays.tables.table import LONGEST_ROW

BLOCK = 2**16
# A sheet is read a little at a time and may be packed tighter than strings, which are kept.
SHEET_UNPACKED = 100
DEEPEST_XML = 64
# Formats of numbers that are dates or times in every workbook, and what tells those that a workbook defines itself.
DATE_FORMATS = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
NOT_IN_FORMATS = re.compile(r'"[^"]*"|\\.|[_*].|\[(?!h|m|s)[^\]]*\]', re.IGNORECASE)
DATE_LETTERS = re.compile(r"[dmyhs]", re.IGNORECASE)
DURATION = re.compile(r"\[[hms]+\]", re.IGNORECASE)
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")

Attributes = dict[str, str]
Start = Callable[[str, Attributes], None]
End = Callable[[str], None]


class BadWorkbookError(Exception):
    """A workbook is not as it should be."""


@dataclass(frozen=True)
class Sheet:
    """A sheet's name, and the part that holds it."""

    name: str
    part: str
    hidden: bool


@dataclass
class Workbook:
    """An open workbook, of so many bytes: its sheets, and what cells refer to."""

    archive: zipfile.ZipFile
    size: int
    sheets: list[Sheet] = field(default_factory=list)
    since_1904: bool = False
    _parts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        main = next(iter(self._relations("", "officeDocument").values()), "xl/workbook.xml")
        self._parts = self._relations(main, "sharedStrings", "styles", by_type=True)
        parts = self._relations(main, "worksheet")

        def start(name: str, attributes: Attributes) -> None:
            if name == "workbookPr":
                self.since_1904 = attributes.get("date1904") in ("1", "true")
            if name == "sheet":
                id_ = next((value for key, value in attributes.items() if key.endswith(":id")), "")
                if id_ in parts:
                    hidden = attributes.get("state", "visible") != "visible"
                    self.sheets.append(Sheet(attributes.get("name", ""), parts[id_], hidden))

        self.parse(main, start)

    def _relations(self, of: str, *types: str, by_type: bool = False) -> dict[str, str]:
        """The parts that a part refers to, by their id or by their type."""
        folder, name = posixpath.split(of)
        found: dict[str, str] = {}

        def start(_: str, attributes: Attributes) -> None:
            kind = attributes.get("Type", "").rpartition("/")[2]
            if kind in types and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                found.setdefault(kind if by_type else attributes.get("Id", ""), target.lstrip("/"))

        part = posixpath.join(folder, "_rels", f"{name}.rels")
        if part in self.archive.NameToInfo:
            self.parse(part, start)
        return found

    def strings(self) -> list[str]:
        """The strings that cells refer to by number."""
        if "sharedStrings" not in self._parts:
            return []
        strings: list[str] = []
        text = Text()

        def start(name: str, _: Attributes) -> None:
            text.start(name)

        def end(name: str) -> None:
            text.end(name)
            if name == "si":
                strings.append(text.take())

        self.parse(self._parts["sharedStrings"], start, end, text.add)
        return strings

    def date_styles(self) -> set[int]:
        """The styles in which a number is a date or a time."""
        if "styles" not in self._parts:
            return set()
        own: dict[str, bool] = {}
        styles: list[bool] = []
        inside: list[str] = []

        def end(_: str) -> None:
            inside.pop()

        def start(name: str, attributes: Attributes) -> None:
            inside.append(name)
            if name == "numFmt":
                own[attributes.get("numFmtId", "")] = is_date_format(attributes.get("formatCode", ""))
            if name == "xf" and "cellXfs" in inside:
                format = attributes.get("numFmtId", "0")
                styles.append(own.get(format, format.isdecimal() and int(format[:9]) in DATE_FORMATS))

        self.parse(self._parts["styles"], start, end)
        return {number for number, is_date in enumerate(styles) if is_date}

    def parse(self, part: str, start: Start, end: End | None = None, text: Callable[[str], None] | None = None) -> None:
        """Go through all of a part."""
        for _ in self.parsing(part, start, end, text):
            pass

    def parsing(
        self,
        part: str,
        start: Start,
        end: End | None = None,
        text: Callable[[str], None] | None = None,
        times: int = MOST_UNPACKED,
    ) -> Iterator[None]:
        """Go through a part a block at a time, with functions that take tags and texts; names are without prefixes."""
        info = self.archive.getinfo(part)
        if info.file_size > max(times * self.size, UNPACKED_AT_LEAST):
            raise BadWorkbookError(f"{part} unpacks to more than {times} times the file's size")
        parser = expat.ParserCreate()
        parser.buffer_text = True
        depth, quiet = 0, 0

        def started(name: str, attributes: Attributes) -> None:
            nonlocal depth, quiet
            depth, quiet = depth + 1, 0
            if depth > DEEPEST_XML:
                raise BadWorkbookError(f"{part} has elements nested more than {DEEPEST_XML} deep")
            start(name.rpartition(":")[2], attributes)

        def ended(name: str) -> None:
            nonlocal depth, quiet
            depth, quiet = depth - 1, 0
            if end:
                end(name.rpartition(":")[2])

        def refuse(*_: object) -> None:
            raise BadWorkbookError(f"{part} has a document type")

        parser.StartElementHandler, parser.EndElementHandler = started, ended
        parser.StartDoctypeDeclHandler = refuse
        if text:
            parser.CharacterDataHandler = text
        with self.archive.open(info) as file:
            for block in iter(partial(file.read, BLOCK), b""):
                quiet += len(block)
                if quiet > LONGEST_ROW:
                    raise BadWorkbookError(f"{part} has more than {LONGEST_ROW:,} bytes between two tags")
                parser.Parse(block, False)
                yield
            parser.Parse(b"", True)
            yield


class Text:
    """Gathers the text of a string: all its runs, but not how it is pronounced."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.size, self.inside, self.phonetic = 0, False, False

    def start(self, name: str) -> None:
        """A tag begins."""
        self.phonetic = self.phonetic or name == "rPh"
        self.inside = name in ("t", "v") and not self.phonetic

    def end(self, name: str) -> None:
        """A tag ends."""
        self.inside = False
        self.phonetic = self.phonetic and name != "rPh"

    def add(self, piece: str) -> None:
        """A piece of text, which may belong to something else."""
        if self.inside:
            self.pieces.append(piece)
            self.size += len(piece)
            if self.size > LONGEST_ROW:
                raise BadWorkbookError(f"a text of more than {LONGEST_ROW:,} characters")

    def take(self) -> str:
        """What was gathered; the next text begins."""
        whole, self.pieces, self.size = "".join(self.pieces), [], 0
        return unescaped(whole)


def unescaped(text: str) -> str:
    """A text with characters that XML cannot hold, such as _x000D_, as what they are."""
    if "_x" not in text:
        return text
    text = ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_date_format(code: str) -> bool:
    """Whether a number in such a format is a date or a time of day; a duration is none.

    >>> [is_date_format(code) for code in ("yyyy-mm-dd", "General", '0.0 "days"', "[Red]0", "[h]:mm")]
    [True, False, False, False, False]
    """
    code = NOT_IN_FORMATS.sub("", code.partition(";")[0])
    return bool(DATE_LETTERS.search(code)) and not DURATION.search(code)
