"""What a job reads: a file, a folder of files of rows, or a folder of documents; and about how many rows there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from strays.errors import DataError, Note, UsageError
from strays.files import real_path
from strays.tables.delimiter import DELIMITERS, delimiter_note, find_delimiter, parse_delimiter
from strays.tables.documents import is_document, state_of, visible_files
from strays.tables.formats import EXPECTED, FOREIGN, FORMATS, checked_format, ending_of, format_of
from strays.tables.lines import Lines
from strays.tables.read import require_format
from strays.tables.source import GZIP_MAGIC, require_file

# How much of a file of lines tells how long its lines are.
SAMPLE = 2**20
LINES = ("csv", "tsv", "jsonl", "txt")
# A folder whose every file is one text.
DOCUMENTS = "documents"
# Documents that come with data.
BESIDE_DATA = ("readme", "license", "licence", "notice", "changelog", "citation")


@dataclass(frozen=True)
class InputFile:
    """A file of a job: its path, and its name within the job (in a folder the relative path, with slashes).

    >>> _ = Path("texts.csv").write_text("text")
    >>> file = find_files("texts.csv").files[0]
    >>> file.format, file.delimiter, file.state()[0]
    ('csv', ',', 4)
    """

    name: str
    path: str
    format: str
    # What separates its values, where that is how they are separated, and its sheet, where one is named.
    delimiter: str | None = None
    sheet: str | None = None
    # In a folder of documents, whether every file is one, whatever its name.
    every_file: bool = False

    def state(self) -> tuple[int, int]:
        """Size in bytes and time of the last change: while both stay, the file counts as the same."""
        try:
            if self.format == DOCUMENTS:
                return state_of(self.path)
            stat = Path(self.path).stat()
        except OSError as error:
            raise DataError(f"{self.path}: is gone ({error.strerror}); put it back") from error
        return stat.st_size, stat.st_mtime_ns

    def about_rows(self) -> int | None:
        """How many rows there are, from parquet's own count or from the first lines; None where only reading tells."""
        try:
            if self.format == "parquet":
                import pyarrow.parquet as pq

                return int(pq.read_metadata(self.path).num_rows)
            if self.format not in LINES:
                return None
            with Path(self.path).open("rb") as file:
                sample = file.read(SAMPLE)
        except (OSError, pa.ArrowException):
            return None  # whatever is wrong with it, reading will tell
        lines = sample.count(b"\n")
        if sample.startswith(GZIP_MAGIC) or not lines:
            return None
        return round(lines * Path(self.path).stat().st_size / len(sample))


@dataclass(frozen=True)
class InputFiles:
    """The files of a job in order, and the names of those beside them that are of no known format.

    >>> for name in ("b.jsonl", "a.csv", "README.md"):
    ...     Path(name).touch()
    >>> found = find_files(".")
    >>> [file.name for file in found.files], found.ignored
    (['a.csv', 'b.jsonl'], ['README.md'])
    """

    files: list[InputFile]
    ignored: list[str]
    notes: tuple[Note, ...] = ()


def find_files(
    path: str, format: str | None = None, *, delimiter: str | None = None, sheet: str | None = None
) -> InputFiles:
    """A file by itself, a folder of documents as one, or all files of rows under a folder, sorted by name.

    With a format given, every file is read as that.
    """
    require_format(format, (*FORMATS, DOCUMENTS))
    delimiter = parse_delimiter(delimiter) if delimiter is not None else None
    if not Path(path).exists():
        raise DataError(f"{path}: no such file or folder")
    if not Path(path).is_dir():
        if format == DOCUMENTS:
            raise UsageError(f"{path}: is a file, and {{format}} {DOCUMENTS} is for folders", param="format")
        require_file(Path(path))
        found = [(Path(path).name, path, checked_format(path, Path(path), format))]
        ignored: list[str] = []
    else:
        names = visible_files(path)
        if format == DOCUMENTS or (format is None and _are_documents(path, names)):
            if delimiter or sheet:
                raise UsageError(
                    f"{path}: is a folder of documents; omit {{delimiter}} and {{sheet}}", param=("delimiter", "sheet")
                )
            return InputFiles([InputFile(real_path(path).name, path, DOCUMENTS, every_file=format == DOCUMENTS)], [])
        told = {name: _format_in_folder(name, format) for name in names}
        found = [(name, str(Path(path, name)), format_) for name, format_ in told.items() if format_]
        ignored = [name for name, format_ in told.items() if not format_]
        if not found:
            raise DataError(
                f"{path}: no file in this folder ends in {EXPECTED} (or .gz); give the {{format}} of its files, or "
                f"{DOCUMENTS} if each is one text",
                param="format",
            )
    files, notes = [], []
    for name, whole, format_ in found:
        separator = _delimiter_of(whole, format_, delimiter)
        if separator and not delimiter and separator != DELIMITERS[format_]:
            notes.append(delimiter_note(whole, separator))
        files.append(InputFile(name, whole, format_, separator or delimiter, sheet))
    return InputFiles(files, ignored, tuple(notes[:1]))


def _delimiter_of(path: str, format: str, asked: str | None) -> str | None:
    """What separates a file's values, where that is how they are separated."""
    if format not in DELIMITERS or asked:
        return asked
    return find_delimiter(Lines(Path(path), path), DELIMITERS[format])


def _format_in_folder(name: str, asked: str | None) -> str | None:
    """The format that a file of rows in a folder is read as; None where it is passed over."""
    if asked:
        return None if ending_of(name) in FOREIGN else asked
    return None if is_document(name) else _told(name)


def _told(name: str) -> str | None:
    try:
        return format_of(name)
    except DataError:
        return None


def _are_documents(folder: str, names: list[str]) -> bool:
    """Whether a folder holds documents rather than files of rows; an error where it holds both."""
    documents = [name for name in names if is_document(name)]
    rows = [name for name in names if not is_document(name) and _told(name)]
    meant = [name for name in documents if not Path(name).name.casefold().startswith(BESIDE_DATA)]
    if rows and meant:
        raise UsageError(
            f"{folder}: holds files of rows, such as {rows[0]:.100}, and documents, such as {meant[0]:.100}; expected "
            f"one kind. Give {DOCUMENTS} as {{format}} to take every file for one text, txt to take every line for "
            "one, or name a folder with one kind in it",
            param="format",
        )
    return bool(documents) and not rows
