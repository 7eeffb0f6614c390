"""Text that is not UTF-8: which encoding its bytes tell, and how to convert it.

UTF-16 and UTF-32 without a mark are, letter by letter, valid UTF-8 with NULs in between, so that only the place of the
NULs, and of other bytes that text has none of, tells them from a file that can be read.
"""

from __future__ import annotations

import codecs
import warnings
from collections import Counter

from strays.errors import DataError, StraysWarning

# The longer marks first: that of UTF-16LE begins that of UTF-32LE.
MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32LE",
    codecs.BOM_UTF32_BE: "UTF-32BE",
    codecs.BOM_UTF16_LE: "UTF-16LE",
    codecs.BOM_UTF16_BE: "UTF-16BE",
}
# How many bytes tell what a file is, at least and at most.
FEWEST, MOST_BYTES = 8, 4096
# How many bytes of a line, or what share of NULs in it, tell that it is in another encoding than the lines before it: a
# short line may hold some by itself.
FEWEST_OF_LINE, NULS_OF_LINE = 32, 0.4
# The share of first or second bytes that are below a space, as those of most alphabets are in UTF-16, from which it is
# that, and by how much it must be the larger share of the two.
SHARE, LARGER = 0.5, 0.2


def encoding_of(start: bytes) -> str | None:
    """UTF-16 or UTF-32, if the first bytes of a file are in it, as iconv calls it.

    >>> encoding_of("a cat".encode("utf-16-le")), encoding_of("кот и кит".encode("utf-16-be")), encoding_of(b"a cat")
    ('UTF-16LE', 'UTF-16BE', None)
    """
    marked = next((encoding for mark, encoding in MARKS.items() if start.startswith(mark)), None)
    if marked or b"\0" not in start:
        return marked
    units = len(start) // 4
    if len(start) < FEWEST:
        return None
    nuls = [start[place::4].count(0) for place in range(4)]
    if nuls[3] >= units and nuls[2] >= 0.9 * units and nuls[0] < units:
        return "UTF-32LE"
    if nuls[0] >= units and nuls[1] >= 0.9 * units and nuls[3] < units:
        return "UTF-32BE"
    even, odd = _share_of_one_script(start[0::2]), _share_of_one_script(start[1::2])
    if odd >= max(SHARE, even + LARGER):
        return "UTF-16LE"
    return "UTF-16BE" if even >= max(SHARE, odd + LARGER) else None


def _share_of_one_script(half: bytes) -> float:
    """The share of bytes that are the upper half of letters of most alphabets, and in UTF-8 of none."""
    counts = Counter(half)
    rare = sum(n for byte, n in counts.items() if byte < 0x20 and byte not in b"\t\n\r") / len(half)
    most, n = counts.most_common(1)[0]
    return max(rare, n / len(half) if most < 0x20 else 0)  # the Indian scripts are where a tab and line ends are


def convert(encoding: str) -> str:
    """A command that turns a file into UTF-8."""
    return f"iconv -f {encoding} -t UTF-8 FILE > NEW"


def wrong_encoding(place: str, encoding: str) -> DataError:
    """The error for a file in UTF-16 or UTF-32."""
    return DataError(
        f"{place}: is text in {encoding}. Expected UTF-8; convert it first, for example: {convert(encoding)}"
    )


def not_utf8(place: str, error: UnicodeDecodeError) -> DataError:
    """The error for bytes that are no text in UTF-8; most such files are in the encoding that Windows uses."""
    return DataError(
        f"{place}: byte 0x{error.object[error.start]:02x} is not UTF-8. Expected UTF-8; convert the file first, for "
        f"example: {convert('WINDOWS-1252')}"
    )


def check_nul(place: str, line: bytes, *, warn: bool) -> None:
    """Raise for a line with a NUL in it that is in UTF-16, and else, if asked to, warn of the NUL."""
    tells = len(line) >= FEWEST_OF_LINE or line.count(0) >= NULS_OF_LINE * len(line)
    if tells and encoding_of(line[:MOST_BYTES]):  # which of them is uncertain: the line before ends inside a character
        raise DataError(
            f"{place}: is in UTF-16 or UTF-32, and what is before it is not; write the whole file as UTF-8. Some "
            "programs append to a file in another encoding than it has"
        )
    if not warn:
        return
    words = f"{place}: holds a NUL character, which is read as it is. If the file's NULs mean nothing, remove them: "
    warnings.warn(StraysWarning(f"{words}tr -d '\\000' < FILE > NEW"), stacklevel=2)
