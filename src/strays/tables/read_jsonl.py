"""jsonl in, one object a line: what fits no one Arrow type is carried as its JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from strays.errors import DataError, first_line
from strays.tables.lines import Lines, Reading, row_table
from strays.tables.source import Source
from strays.tables.table import BLOCK_CELLS, JSON_ROW, JSON_TEXT, Table, require_few_columns
from strays.tables.values import as_json

# An object, and its text as it stands in the file, on one line.
Record = tuple[dict[str, Any], str]
# What can be read must be written again, and Python's own limit is that of its stack.
DEEPEST_JSON = 100
ARROW_TYPES = {"NoneType": pa.null(), "str": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}


def open_jsonl(source: Source, name: str) -> Table:
    """An object a line; a column for every key that any of them has."""

    def records(lines: Lines) -> Iterator[Record]:
        for number, line in enumerate(lines, 1):
            lines.end_row()
            if not line.strip():
                continue
            try:
                record = sound(json.loads(line, parse_constant=no_constant), line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{name}, line {number}: not JSON ({first_line(error):.200}); expected one object a line"
                ) from error
            if not isinstance(record, dict):
                hint = "; a file that is one list is read as json ({format})" if number == 1 else ""
                raise DataError(
                    f"{name}, line {number}: a JSON {type(record).__name__}; expected an object such as "
                    f'{{"text": "..."}} on every line{hint}',
                    param="format",
                )
            yield record, line.removesuffix("\n")

    def reading() -> Reading:
        lines = Lines(source, name)
        return Reading(records(lines), lambda: lines.bytes_read)

    return record_table(name, "jsonl", reading)


def record_table(name: str, format: str, reading: Callable[[], Reading]) -> Table:
    """A table of objects (Record); columns and their types are known only when all have been seen: they are read twice.

    Columns hold what Arrow has for a value; the table's `verbatim` also has the objects' own texts.
    """
    kinds: dict[str, set[str]] = {}
    for record, _ in reading().rows:
        for key, value in record.items():
            kinds.setdefault(key, set()).add(_kind(value))
        require_few_columns(len(kinds), name)
    schema = pa.schema([_json_field(key, found) for key, found in kinds.items()])

    def columns(block: list[Record]) -> Iterator[list[Any]]:
        for field in schema:
            values = [record.get(field.name) for record, _ in block]
            if field.metadata == JSON_TEXT:
                values = [None if value is None else _json_text(value) for value in values]
            yield values

    def columns_and_texts(block: list[Record]) -> Iterator[list[Any]]:
        yield from columns(block)
        yield [text for _, text in block]

    most_rows = BLOCK_CELLS // max(len(schema), 1)
    verbatim = row_table(name, format, schema.append(JSON_ROW), reading, columns_and_texts, most_rows)
    return replace(row_table(name, format, schema, reading, columns, most_rows), verbatim=verbatim)


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a number too large to be one
        return json.dumps(as_json(value), ensure_ascii=False)


def sound(value: Any, text: str) -> Any:
    """A value that can be written again, read from this text; ValueError where it cannot."""
    if text.count("[") + text.count("{") > DEEPEST_JSON and _depth(value) > DEEPEST_JSON:
        raise ValueError(f"nested more than {DEEPEST_JSON} deep")
    if "\\ud" in text.lower():  # half a surrogate pair fits in no UTF-8 file; it becomes a question mark
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def no_constant(constant: str) -> None:
    """Refuse NaN and infinity, which Python takes for JSON."""
    raise ValueError(f"{constant} is not JSON")


def _depth(value: Any) -> int:
    """How deep lists and objects are nested in one another."""
    depth, level = 0, [value]
    while level:
        inner = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level, depth = [part for parts in inner for part in parts if isinstance(part, dict | list)], depth + 1
    return depth


def _kind(value: Any) -> str:
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    return type(value).__name__ if fits else "big"


def _json_field(name: str, kinds: set[str]) -> pa.Field:
    kind, *others = sorted(kinds - {"NoneType"}) or ["NoneType"]
    if kind in ARROW_TYPES and not others:
        return pa.field(name, ARROW_TYPES[kind])
    return pa.field(name, pa.string(), metadata=JSON_TEXT)
