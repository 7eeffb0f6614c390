"""The entries of a JSON file's list, one at a time, however long the list is.

A file is one list, or one object with a list in it. An entry is decoded from a window of the text, which grows until
the entry fits and never beyond the longest row.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from strays.errors import DataError, first_line
from strays.tables.encodings import not_utf8
from strays.tables.read_jsonl import no_constant, sound
from strays.tables.source import Source, open_binary
from strays.tables.table import LONGEST_ROW

BLOCK = 2**18
# An error this close to the end of the window may come from where the window ends.
NEAR_END = 64
DECODER = json.JSONDecoder(parse_constant=no_constant)
BLANKS = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Member:
    """An entry of a list, or something else in the file's object, under its key; a file that is a list has no key.

    `text` is the value as it stands in the file.
    """

    key: str | None
    value: Any
    text: str
    in_list: bool


class JsonStream:
    """Iterates over the entries of the lists at the top of a JSON file, and what stands beside them."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self.bytes_read = 0
        self._text, self._at, self._line, self._ended = "", 0, 1, False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def __iter__(self) -> Iterator[Member]:
        try:
            with open_binary(self.source) as self._file:
                yield from self._members()
        except UnicodeDecodeError as error:
            raise not_utf8(self.name, error) from error
        except (EOFError, OSError, zlib.error) as error:
            what = f"could not be read past line {self._line} ({error}); the file is cut off or damaged"
            raise DataError(f"{self.name}: {what}") from error

    _file: IO[bytes]

    @property
    def line(self) -> int:
        """The line on which the last entry ends."""
        return self._line + self._text.count("\n", 0, self._at)

    def _members(self) -> Iterator[Member]:
        if self._next() == "[":
            yield from self._entries(None)
        elif self._next() == "{":
            self._take("{")
            while self._next() != "}":
                key, _ = self._value()
                if not isinstance(key, str):
                    raise self._error("an object's key is no string")
                self._take(":")
                if self._next() == "[":
                    yield from self._entries(key)
                else:
                    yield Member(key, *self._value(), in_list=False)
                self._separator("}")
            self._take("}")
        else:
            raise self._error("it begins with neither [ nor {")
        if self._next():
            raise self._error("there is more after its end")

    def _entries(self, key: str | None) -> Iterator[Member]:
        self._take("[")
        while self._next() != "]":
            yield Member(key, *self._value(), in_list=True)
            self._separator("]")
        self._take("]")

    def _separator(self, end: str) -> None:
        """Go past a comma, which something must follow, unless this is the end."""
        if self._next() != end:
            self._take(",")
            if self._next() == end:
                raise self._error(f"a comma before {end}")

    def _next(self) -> str:
        """The next character that is no blank; nothing at the end."""
        while True:
            blanks = BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def _take(self, character: str) -> None:
        if self._next() != character:
            raise self._error(f"expected {character}, got {self._next()!r}")
        self._at += 1

    def _value(self) -> tuple[Any, str]:
        """The next value, and its text."""
        self._next()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
                may_go_on = isinstance(value, int | float) and end > len(self._text) - NEAR_END
                if self._ended or not may_go_on:
                    if end - self._at > LONGEST_ROW:
                        raise self._too_long()
                    text = self._text[self._at : end]
                    value = sound(value, text)
                    self._at = end
                    return value, text
            except json.JSONDecodeError as error:
                cut_off = error.pos > len(self._text) - NEAR_END or error.msg.startswith("Unterminated")
                if self._ended or not cut_off:
                    raise self._error(error.msg, self._text.count("\n", self._at, error.pos)) from error
            except (ValueError, RecursionError) as error:
                raise self._error(first_line(error)) from error
            if len(self._text) - self._at > LONGEST_ROW:
                raise self._too_long()
            self._read()

    def _read(self) -> None:
        """Drop what is done with, and read as much as is there, so that no entry is decoded many times."""
        self._line += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :], 0
        block = self._file.read(max(BLOCK, len(self._text)))
        self.bytes_read += len(block)
        self._ended = not block
        self._text += self._decode(block, self._ended)

    def _error(self, why: str, lines: int = 0) -> DataError:
        return DataError(
            f"{self.name}, line {self.line + lines}: not JSON ({why:.200}); expected one list of objects, such as "
            '[{"text": "..."}, {"text": "..."}]'
        )

    def _too_long(self) -> DataError:
        return DataError(
            f"{self.name}, line {self.line}: an entry of more than {LONGEST_ROW:,} bytes; expected shorter ones. Look "
            "for a quote that is never closed; if there is none, shorten the text"
        )
