"""Lines of a source, and rows of them put together to blocks; both of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from strays.errors import DataError
from strays.tables.limits import BLOCK_BYTES, LONGEST_ROW, ROWS_AT_ONCE
from strays.tables.source import Source, open_binary


class Meter:
    """How many bytes were read, and where the row at hand has to end, which readers move on behind every row."""

    __slots__ = ("limit", "read")

    def __init__(self) -> None:
        self.read, self.limit = 0, LONGEST_ROW


def lines(source: Source, name: str, meter: Meter) -> Iterator[str]:
    """Decoded lines, each with its line end; an error names the line, also of a row that has become too long."""
    number = 0
    try:
        with open_binary(source) as file:
            for number, raw in enumerate(iter(partial(file.readline, LONGEST_ROW + 1), b""), 1):
                meter.read += len(raw)
                if meter.read > meter.limit:
                    raise _too_long(name, number)
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        encoding = "UTF-16" if number == 1 and byte in (0xFE, 0xFF) else "WINDOWS-1252"
        raise DataError(
            f"{name}, line {number}: byte 0x{byte:02x} is not UTF-8. Expected UTF-8; convert the file first, for "
            f"example: iconv -f {encoding} -t UTF-8 FILE > NEW"
        ) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{name}: could not be read past line {number} ({error}); the file is cut off or damaged"
        ) from error


def _too_long(name: str, line: int) -> DataError:
    return DataError(
        f"{name}, line {line}: a row of more than {LONGEST_ROW:,} bytes; expected shorter ones. Look for a quote that "
        "is never closed or for missing line ends; if there are none, shorten the text"
    )


def blocks(rows: Iterator[Any], meter: Meter, most_rows: int = ROWS_AT_ONCE) -> Iterator[list[Any]]:
    """So many rows together that a batch is neither small nor large."""
    most_rows = max(1, min(most_rows, ROWS_AT_ONCE))
    block: list[Any] = []
    full = BLOCK_BYTES
    for row in rows:
        block.append(row)
        if len(block) == most_rows or meter.read >= full:
            yield block
            block, full = [], meter.read + BLOCK_BYTES
    if block:
        yield block
