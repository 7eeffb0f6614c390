"""What format a file has, by its name and by its first bytes, and what to do with files that cannot be read."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from strays.errors import DataError
from strays.tables.encodings import MOST_BYTES, encoding_of, wrong_encoding
from strays.tables.source import Source, first_bytes

# Files of rows. A folder of documents has the format `documents`, see folder.py.
FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "xlsx", "txt")
ENDINGS = {"ndjson": "jsonl", "pq": "parquet", "tab": "tsv", "xlsm": "xlsx"}
EXPECTED = ".csv, .tsv, .json, .jsonl, .parquet, .xlsx or .txt"
SAVE_AS = "save it as .xlsx or csv"


@dataclass(frozen=True)
class Kind:
    """A kind of file: what it is called, its format if it is one that is read, and else what to do with it."""

    name: str
    format: str | None = None
    remedy: str = ""


PARQUET = Kind("a parquet file", "parquet")
XLSX = Kind("an Excel workbook (.xlsx)", "xlsx")
XLS = Kind("an old (.xls) or password-protected Excel workbook", remedy=f"open it in a spreadsheet and {SAVE_AS}")
ODS = Kind("an OpenDocument file", remedy=f"open it and {SAVE_AS}, or a text as .txt")
DOCX = Kind("a Word document", remedy="save it as plain text (.txt); a folder of such files is read as well")
PDF = Kind("a PDF file", remedy="save its text as .txt, for example with pdftotext; a folder of such files is read")
ZIP = Kind("a zip archive", remedy="unpack it first, and give the file or the folder in it")
BROKEN_ZIP = Kind("a zip archive or workbook that is cut off or damaged", remedy="copy or download it again")
# What other names tell.
FOREIGN = {
    "xls": XLS,
    "xlsb": XLS,
    "ods": ODS,
    "odt": ODS,
    "doc": DOCX,
    "docx": DOCX,
    "rtf": DOCX,
    "pdf": PDF,
    "zip": ZIP,
}
# What first bytes tell.
MAGIC = {
    b"PAR1": PARQUET,
    b"%PDF": PDF,
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": XLS,
    b"ARROW1": Kind("an Arrow or Feather file", remedy="write it as parquet"),
    b"SQLite format 3\0": Kind("an SQLite database", remedy="export a table of it as csv"),
    b"BZh": Kind("a bzip2 file", remedy="unpack it first, with bunzip2"),
    b"\xfd7zXZ\0": Kind("an xz file", remedy="unpack it first, with unxz"),
    b"\x28\xb5\x2f\xfd": Kind("a zstd file", remedy="unpack it first, with unzstd"),
    b"7z\xbc\xaf\x27\x1c": Kind("a 7z archive", remedy="unpack it first"),
    b"\x89PNG": Kind("an image", remedy="give a file of texts"),
    b"\xff\xd8\xff": Kind("an image", remedy="give a file of texts"),
    b"{\\rtf": DOCX,
}
HTML = Kind("a web page (HTML)", remedy=f"it may be a download that failed; if it holds a table, open it and {SAVE_AS}")
ZIP_MAGIC = b"PK\x03\x04"
# Entries of a zip archive that are looked at to tell what it is.
MOST_ENTRIES = 10_000


def format_of(path: str) -> str:
    """The format that a file's name tells."""
    ending = ending_of(path)
    ending = ENDINGS.get(ending, ending)
    if ending in FORMATS:
        return ending
    if kind := FOREIGN.get(ending):
        raise DataError(f"{path}: {kind.name} cannot be read; {kind.remedy}")
    raise DataError(
        f"{path}: its name does not tell its format; expected it to end in {EXPECTED} (and .gz), or the format given "
        "as {format}",
        param="format",
    )


def ending_of(path: str) -> str:
    """How a file's name ends, without .gz."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1][1:] if suffixes else ""


def checked_format(path: str, source: Source, format: str | None) -> str:
    """The format of a file, as asked or as its name tells; an error where its first bytes tell another."""
    kind = kind_of(source, path)
    if kind is None and (encoding := encoding_of(first_bytes(source, path, MOST_BYTES))):
        raise wrong_encoding(path, encoding)
    told = format
    if told is None:
        try:
            told = format_of(path)
        except DataError:
            if kind is None or FOREIGN.get(ending_of(path)) is kind:
                raise
    if kind is None and told == "xlsx":
        raise DataError(
            f"{path}: is no Excel workbook, as its first bytes tell; if it is text, give its format, such as csv, as "
            "{format}, or open it in a spreadsheet and save it again",
            param="format",
        )
    if kind is None or (told and kind.format == told):
        return told or format_of(path)
    if told and (kind, told) in ((HTML, "txt"), (BROKEN_ZIP, "xlsx")):
        return told  # lines of HTML may be the texts, and what is wrong with a workbook is told when it is read
    as_what = f"not {told}" if told else "and its name does not tell that"
    if not kind.format:
        raise DataError(f"{path}: is {kind.name}, {as_what}; {kind.remedy}")
    raise DataError(f"{path}: is {kind.name}, {as_what}; give {kind.format} as {{format}}", param="format")


def kind_of(source: Source, name: str) -> Kind | None:
    """What the first bytes tell of a file, unpacked where it is gzip-compressed; None where they tell nothing."""
    start = first_bytes(source, name, MOST_BYTES)
    if start.startswith(ZIP_MAGIC):
        return _kind_of_zip(source)
    found = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if found or not start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        return found
    return HTML


def _kind_of_zip(source: Source) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            names = archive.namelist()[:MOST_ENTRIES]
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, UnicodeDecodeError):
        return BROKEN_ZIP
    if any(name.startswith("word/") for name in names):
        return DOCX
    if any(name.startswith("xl/") for name in names):
        return XLS if "xl/workbook.bin" in names else XLSX
    return ODS if "content.xml" in names and "mimetype" in names else ZIP
