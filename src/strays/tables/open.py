"""A table from what a user names: a file, stdin, a folder of documents, or a folder of files with the same columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from strays.errors import DataError, NoRowsError, Note
from strays.tables.documents import find_documents, open_documents
from strays.tables.folder import DOCUMENTS, InputFile, InputFiles, find_files
from strays.tables.formats import FORMATS
from strays.tables.read import open_file, require_format
from strays.tables.table import Table


def open_table(
    path: str,
    format: str | None = None,
    *,
    text_column: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> Table:
    r"""The table in a file, in a folder, or on stdin ('-').

    A format is told by a file's name, or on stdin by its first bytes, where text_column helps to recognise csv. The
    delimiter of csv is told by its first rows, and the first sheet of xlsx is read, unless they are given. Of a folder
    of documents (format `documents`) every file is a row with the columns file and text.

    >>> _ = Path("people.csv").write_text("id;remark\n1;likes tea, not milk\n")
    >>> open_table("people.csv").read().to_pylist()
    [{'id': '1', 'remark': 'likes tea, not milk'}]
    """
    require_format(format, (*FORMATS, DOCUMENTS))
    if path == "-" or not Path(path).is_dir():
        if format == DOCUMENTS:
            find_files(path, format)  # says that a file is none
        return open_file(path, format, text_column=text_column, delimiter=delimiter, sheet=sheet)
    found = find_files(path, format, delimiter=delimiter, sheet=sheet)
    return open_input(found.files[0]) if found.files[0].format == DOCUMENTS else _joined(path, found)


def open_input(file: InputFile) -> Table:
    """The table in a file of a job."""
    if file.format == DOCUMENTS:
        return open_documents(find_documents(file.path, every=file.every_file))
    return open_file(file.path, file.format, delimiter=file.delimiter, sheet=file.sheet)


def _joined(path: str, found: InputFiles) -> Table:
    """The rows of all files, one file after the other."""
    tables = []
    for file in found.files:
        try:
            tables.append(open_input(file))
        except NoRowsError:
            continue
    if not tables:
        raise NoRowsError(f"{path}: there are no rows in any of its files; expected at least one")
    first = tables[0]
    for table in tables[1:]:
        require_alike(table, first, "Give one file at a time, or the same columns to all")
    ignored = [Note(f"{path}: {len(found.ignored):,} files of other formats were ignored.")] if found.ignored else []
    notes = (Note(f"{path}: the rows of {len(tables):,} files are read."), *ignored, *found.notes, *first.notes)
    texts = [table.verbatim for table in tables if table.verbatim]
    return Table(
        path,
        first.format,
        first.schema,
        partial(_batches_of, tables),
        first.delimiter,
        notes,
        Table(path, first.format, texts[0].schema, partial(_batches_of, texts)) if len(texts) == len(tables) else None,
    )


def _batches_of(tables: list[Table], first_row: int) -> Iterator[pa.RecordBatch]:
    """The rows of tables, one after the other, from one on."""
    skip = first_row
    for table in tables:
        for batch in table.batches():
            if skip < len(batch):
                yield batch.slice(skip)
            skip = max(0, skip - len(batch))


def require_alike(table: Table, first: Table, remedy: str, *, param: str | tuple[str, ...] = ()) -> None:
    """Raise unless a table has the columns of another, so that one table or file can hold both."""
    if not table.schema.equals(first.schema):
        raise DataError(
            f"{table.name}: its columns or their types differ from those of {first.name}; got {_words(table)}, "
            f"expected {_words(first)}. {remedy}",
            param=param,
        )


def _words(table: Table) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in table.schema)
