"""json in: a list of objects or of texts, or one object with such a list in it."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace

from strays.errors import DataError, NoRowsError, Note
from strays.tables.json_stream import JsonStream
from strays.tables.lines import Reading
from strays.tables.read_jsonl import Record, open_jsonl, record_table
from strays.tables.source import Source, open_binary
from strays.tables.table import LONGEST_ROW, Table, require_few_columns

IN_WORDS = {"list": "a list", "int": "a number", "float": "a number", "bool": "true or false", "NoneType": "null"}
MOST_LISTED = 5
LINE_ENDS = re.compile(r"[\r\n]+")


def open_json(source: Source, name: str) -> Table:
    """A row for every entry of the file's list; a text alone is a row with a column called text.

    A file of several objects, one a line, is read as the jsonl that it is.
    """
    if _is_jsonl(source):
        note = Note(f"{name}: holds one JSON object a line (jsonl), not one list, and is read as that.")
        return replace(open_jsonl(source, name), notes=(note,))
    key, others = _place_of_rows(source, name)

    def reading() -> Reading:
        stream = JsonStream(source, name)
        return Reading(_records(stream, key), lambda: stream.bytes_read)

    table = record_table(name, "json", reading)
    if key is None:
        return table
    passed_over = f"; what else it holds ({_listed(others)}) is passed over" if others else ""
    return replace(table, notes=(Note(f"{name}: its rows are the list {key!r:.60}{passed_over}."),))


def _records(stream: JsonStream, key: str | None) -> Iterator[Record]:
    first: type | None = None
    for number, member in enumerate((m for m in stream if m.in_list and m.key == key), 1):
        value = member.value
        first = first or type(value)
        if not isinstance(value, dict | str) or type(value) is not first:
            got = IN_WORDS.get(type(value).__name__, "a text" if isinstance(value, str) else "an object")
            raise DataError(
                f"{stream.name}, line {stream.line}: entry {number:,} of its list is {got}; expected objects such as "
                '{"text": "..."}, or texts, and all entries alike'
            )
        text = LINE_ENDS.sub(" ", member.text)  # none is inside a string
        yield ({"text": value}, f'{{"text": {text}}}') if isinstance(value, str) else (value, text)


def _place_of_rows(source: Source, name: str) -> tuple[str | None, list[str]]:
    """The key of the only list in the file's object, and the other keys; None where the file is the list."""
    lists: dict[str | None, bool] = {}  # whether they are lists of objects
    others: dict[str, None] = {}
    for member in JsonStream(source, name):
        if member.in_list:
            lists.setdefault(member.key, isinstance(member.value, dict))
            if member.key is None:
                return None, []
        else:
            others[str(member.key)] = None
        require_few_columns(len(lists) + len(others), name)
    if not lists and not others:
        raise NoRowsError(f"{name}: there are no rows in it; expected at least one")
    rows = [key for key, of_objects in lists.items() if of_objects] or list(lists)
    if len(rows) != 1 or (others and not lists[rows[0]]):
        got = f"an object of {_listed([str(key) for key in (*lists, *others)])}"
        raise DataError(
            f'{name}: is {got}; expected a list of objects, such as [{{"text": "..."}}], or an object with one such '
            'list in it. With pandas, write it with to_json(orient="records")'
        )
    return rows[0], [*(str(key) for key in lists if key != rows[0]), *others]


def _listed(keys: list[str]) -> str:
    shown = ", ".join(f"{key!r:.60}" for key in keys[:MOST_LISTED])
    return f"{shown} and {len(keys) - MOST_LISTED:,} more" if len(keys) > MOST_LISTED else shown


def _is_jsonl(source: Source) -> bool:
    """Whether the first line is an object by itself, and either not the only line or with a text in it."""
    try:
        with open_binary(source) as file:
            line = next((line for line in iter(lambda: file.readline(LONGEST_ROW), b"") if line.strip()), b"")
            more = line.endswith(b"\n") and any(block.strip() for block in iter(lambda: file.read(2**16), b""))
        first = json.loads(line)
    except (ValueError, RecursionError, OSError, EOFError, zlib.error):
        return False
    return isinstance(first, dict) and (more or any(isinstance(value, str) for value in first.values()))
