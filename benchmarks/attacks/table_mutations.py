"""Ways to damage a file of lines: csv, tsv, json, jsonl and txt. Each takes the file's bytes and gives others."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from benchmarks.attacks.mutating import Rng, flipped, pick

Mutation = Callable[[Rng, bytes, str], bytes]

HOSTILE_COLUMNS = (
    "__proto__",
    "constructor",
    "=cmd|' /C calc'!A0",
    "a\0b",
    "a\nb",
    'a"b',
    "anomaly_score",
    "p_value",
    "flagged",
    "scored_by",
    "",
    " ",
    "text",
    "TEXT",
    "\u202etxet",
    "x" * 100_000,
    "../../etc/passwd",
    "\ufeff",
    "\ud7ff",
)
HOSTILE_CELLS = (
    "=1+1",
    '"',
    '""',
    '"""',
    "\0",
    "\r",
    "\n",
    "\r\n\r\n",
    ",",
    ";",
    "\t",
    "\x1a",
    "\x85",
    "\u2028",
    "\ufeff",
    "x" * 300_000,
    '"' + "a,b\n" * 5000,
    "1e999",
    "-" + "9" * 5000,
    "NaN",
    "\x1b[2J",
    "\U0001d4b3" * 1000,
)
HOSTILE_JSON = (
    "1e400",
    "-1e400",
    "9" * 4000,
    "9" * 5000,
    "-" + "9" * 100,
    "NaN",
    "Infinity",
    "1e-400",
    "[" * 500 + "]" * 500,
    "[" * 900 + "]" * 900,
    "[" * 5000 + "]" * 5000,
    "[" * 200_000,
    '{"a":' * 400 + "1" + "}" * 400,
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    '{"\\ud800": 1}',
    "{}",
    "[]",
    '{"": {"": []}}',
    "true",
    "null",
    "0.1",
    "9223372036854775808",
    "-9223372036854775809",
    "1" + "0" * 308 + ".5",
    '"' + "x" * 300_000 + '"',
)


def flip(rng: Rng, data: bytes, format: str) -> bytes:
    return flipped(rng, data, 0, len(data))


def cut(rng: Rng, data: bytes, format: str) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def splice(rng: Rng, data: bytes, format: str) -> bytes:
    """A piece of it put elsewhere in it."""
    a, b, at = sorted(int(i) for i in rng.integers(len(data) + 1, size=3))
    piece = data[a:b]
    return pick(rng, [data[:a] + data[b:], data[:at] + piece + data[at:], piece + data, data + piece])


def junk(rng: Rng, data: bytes, format: str) -> bytes:
    """Any bytes, in it or instead of it."""
    more = rng.bytes(int(rng.integers(1, 3000)))
    at = int(rng.integers(len(data) + 1))
    return pick(rng, [more, data[:at] + more + data[at:], more + data, data + more])


def lines_moved(rng: Rng, data: bytes, format: str) -> bytes:
    lines = data.split(b"\n")
    for _ in range(int(rng.integers(1, 6))):
        i, j = (int(i) for i in rng.integers(len(lines), size=2))
        how = int(rng.integers(4))
        if how == 0:
            lines.insert(i, lines[j])
        elif how == 1 and len(lines) > 1:
            del lines[i]
        elif how == 2:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = b""
    return b"\n".join(lines)


def hostile_cell(rng: Rng, data: bytes, format: str) -> bytes:
    """A hostile value amid the text, quoted or not."""
    lines = data.split(b"\n")
    i = int(rng.integers(len(lines)))
    cell = pick(rng, HOSTILE_CELLS).encode()
    at = int(rng.integers(len(lines[i]) + 1))
    lines[i] = lines[i][:at] + cell + lines[i][at:]
    return b"\n".join(lines)


def hostile_json(rng: Rng, data: bytes, format: str) -> bytes:
    """A hostile value under some key, or as a line; in formats other than jsonl it is only an odd text."""
    lines = [line for line in data.split(b"\n") if line]
    i, value = int(rng.integers(len(lines))), pick(rng, HOSTILE_JSON)
    key = pick(rng, ["text", "n", "more", ""])
    lines[i] = pick(rng, [f'{{"{key}": {value}}}', f'{{"text": "a", "{key}": {value}}}', value]).encode()
    return b"\n".join(lines) + b"\n"


def quotes(rng: Rng, data: bytes, format: str) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 8))):
        out.insert(int(rng.integers(len(out) + 1)), ord(pick(rng, ['"', '"', "'", "\\"])))
    return bytes(out)


def nulls(rng: Rng, data: bytes, format: str) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 20))):
        at = int(rng.integers(len(out) + 1))
        out[at:at] = pick(rng, [b"\0", b"\0" * 100, b"\r", b"\x1a", b"\x0b", b"\x0c", b"\x1c"])
    return bytes(out)


def other_encoding(rng: Rng, data: bytes, format: str) -> bytes:
    text = data.decode("utf-8", "replace")
    encoding = pick(
        rng, ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "cp1252", "shift_jis", "utf-8-sig", "cp037"]
    )
    encoded = text.encode(encoding, "replace")
    lone = b"\xed\xa0\x80"  # a lone surrogate as some programs write it
    overlong = b"\xc0\xaf"
    at = int(rng.integers(len(data) + 1))
    return pick(
        rng,
        [encoded, encoded, data[:at] + lone + data[at:], data[:at] + overlong + data[at:], b"\xef\xbb\xbf" * 2 + data],
    )


def columns(rng: Rng, data: bytes, format: str) -> bytes:
    """Names of columns: hostile, twice, none, very many."""
    names = [pick(rng, HOSTILE_COLUMNS) for _ in range(int(rng.integers(1, 5)))]
    names += ["text"] * int(rng.integers(3))
    if rng.random() < 0.15:
        names += [f"c{i}" for i in range(pick(rng, [3000, 20_000, 100_000]))]
    if format in ("json", "jsonl"):
        rows: list[dict[str, object]] = [dict.fromkeys(names, "a b c"), dict.fromkeys(names[::-1], 1), {}]
        if rng.random() < 0.15:  # every line has keys of its own
            rows = [{"text": "a", **{f"k{i}-{j}": 1 for j in range(5)}} for i in range(3000)]
        return (json.dumps(rows) if format == "json" else "".join(json.dumps(row) + "\n" for row in rows)).encode()
    separator = "\t" if format == "tsv" else ","
    quoted = [f'"{name}"' if rng.random() < 0.5 else name for name in names]
    row = separator.join("v" for _ in names)
    return (separator.join(quoted) + "\n" + f"{row}\n" * 3).encode("utf-8", "replace")


def little(rng: Rng, data: bytes, format: str) -> bytes:
    """Nearly nothing."""
    first = data.split(b"\n")[0]
    return pick(
        rng,
        [
            b"",
            b"\n",
            b"\n" * 10000,
            first,
            first + b"\n",
            b" ",
            b"\xef\xbb\xbf",
            b"\x00",
            b",",
            b",\n,\n",
            b'""\n""\n',
            b"{}\n",
            b"{}\n{}\n",
            b"[]\n",
            b"null\n",
            b'"',
            b"text\n",
            b"text\n\n",
            b"\r",
            b"\r\r\r",
            b'{"text": null}\n',
            b";\n;\n",
        ],
    )


def long(rng: Rng, data: bytes, format: str) -> bytes:
    """Very long lines and values, up to past what a row may have."""
    size = pick(rng, [10**5, 10**6, 10**7, 17_000_000, 40_000_000])
    if format == "jsonl":
        value = pick(
            rng,
            [f'"{"x" * size}"', f"[{'[],' * (size // 30)}[]]", f'"{"é" * (size // 2)}"', f"[{'0,' * (size // 20)}0]"],
        )
        return data + f'{{"text": {value}}}\n{{"text": "a", "n": {value}}}\n'.encode()
    body = pick(rng, ["x" * size, "x y\n" * (min(size, 10**6) // 4), "\U0001d4b3" * (size // 4), '""' * (size // 2)])
    return data + pick(rng, [f'"{body}","{body}"\n', f'"{body}\n', body, f"{body}\n{body}\n"]).encode()


ON_LINES: dict[str, Mutation] = {
    "bits": flip,
    "cut off": cut,
    "spliced": splice,
    "junk": junk,
    "lines moved": lines_moved,
    "hostile cell": hostile_cell,
    "hostile json": hostile_json,
    "quotes": quotes,
    "nulls": nulls,
    "another encoding": other_encoding,
    "columns": columns,
    "nearly nothing": little,
}
# Of these few are made, since they take long.
LARGE: dict[str, Mutation] = {"long": long}


def base_rows(rng: np.random.Generator) -> list[dict[str, object]]:
    """Rows as people have them."""
    words = [
        "the cat sleeps",
        'a "quoted" word',
        "two\nlines",
        "comma, separated",
        "emoji 🐈",
        "العربية",
        "=1+1",
        "",
        "\ttab",
    ]
    return [
        {"id": f"{i:03}", "text": f"{pick(rng, words)} {i}" if i % 7 else pick(rng, words), "n": i, "label": None}
        for i in range(int(rng.integers(1, 40)))
    ]
