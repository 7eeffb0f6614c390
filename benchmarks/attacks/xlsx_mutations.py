"""Ways to damage a workbook: its zip archive, the XML in it, and what the XML says."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable

import pyarrow as pa

from benchmarks.attacks.mutating import Rng, pick
from benchmarks.attacks.table_mutations import HOSTILE_CELLS, HOSTILE_COLUMNS, base_rows, cut, flip, junk, splice
from strays.tables.write_xlsx import SHEET, xlsx_writer

STRINGS = "xl/sharedStrings.xml"
HOSTILE_XML = (
    '<row r="999999999999"><c r="A1"><v>1</v></c></row>',
    '<row><c r="ZZZ1"><v>1</v></c></row>',
    '<row><c r="A1:B2" t="s"><v>0</v></c></row>',
    '<row><c t="s"><v>99999999999999999999</v></c></row>',
    '<row><c t="s"><v>-1</v></c></row>',
    '<row><c t="s"><v>²</v></c></row>',
    '<row><c s="1"><v>1e308</v></c><c s="2"><v>-5</v></c><c s="99999"><v>3</v></c></row>',
    '<row><c s="1"><v>nan</v></c><c><v>inf</v></c><c><v>0x10</v></c></row>',
    '<row><c t="d"><v>9999-99-99</v></c></row>',
    '<row><c t="b"><v>7</v></c><c t="e"><v>#REF!</v></c></row>',
    '<row><c t="inlineStr"><is><t>_xD800_ _x0000_ _xZZZZ_</t></is></c></row>',
    '<row><c t="str"><v>' + "x" * 300_000 + "</v></c></row>",
    "<row>" + '<c t="str"><v>a</v></c>' * 6000 + "</row>",
    "<row><row><row><c><v>1</v></c></row></row></row>",
    "<c><v>1</v></c>",
    "<a>" * 500 + "</a>" * 500,
    "&lol;",
    "<![CDATA[<row>]]>",
)
DOCTYPES = (
    '<!DOCTYPE x [<!ENTITY lol "lol"><!ENTITY l2 "&lol;&lol;&lol;&lol;">]>',
    '<!DOCTYPE x SYSTEM "file:///etc/passwd">',
    '<!DOCTYPE x [<!ENTITY lol SYSTEM "file:///etc/passwd">]>',
    '<?xml version="1.0" encoding="utf-7"?>',
)


def base(rng: Rng) -> bytes:
    """A workbook as people have it."""
    rows = pa.Table.from_pylist(base_rows(rng))
    data = io.BytesIO()
    with xlsx_writer(data, rows.schema) as write:
        for batch in rows.to_batches():
            write(batch)
    return data.getvalue()


def _parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(parts: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return data.getvalue()


def _archive(rng: Rng) -> bytes:
    return pick(rng, [flip, cut, splice, junk])(rng, base(rng), "xlsx")


def _part(rng: Rng) -> bytes:
    """The XML of one part, damaged, gone or twice."""
    parts = _parts(base(rng))
    name = pick(rng, sorted(parts))
    how = int(rng.integers(4))
    if how == 0:
        del parts[name]
    elif how == 1:
        parts[name] = parts[pick(rng, sorted(parts))]
    else:
        parts[name] = pick(rng, [flip, cut, splice, junk])(rng, parts[name], "xlsx")
    return _packed(parts)


def _cells(rng: Rng) -> bytes:
    """Hostile rows, names and cells amid others, some of which share strings that are not there."""
    parts = _parts(base(rng))
    lines = parts[SHEET].split(b"\n")
    for _ in range(int(rng.integers(1, 4))):
        lines.insert(int(rng.integers(1, len(lines))), pick(rng, HOSTILE_XML).encode())
    parts[SHEET] = b"\n".join(lines)
    if rng.random() < 0.3:
        value = pick(rng, [*HOSTILE_COLUMNS, *HOSTILE_CELLS]).encode("utf-8", "replace")
        parts[SHEET] = parts[SHEET].replace(b">text<", b">" + value + b"<", 1)
    if rng.random() < 0.3:
        parts[SHEET] = pick(rng, DOCTYPES).encode() + parts[SHEET].partition(b"?>")[2]
    return _packed(parts)


def _bomb(rng: Rng) -> bytes:
    """Few bytes that unpack to many: rows, cells, strings, text, attributes, depth."""
    size = pick(rng, [10**7, 10**8, 10**9])
    start, block = pick(
        rng,
        [
            (b"<worksheet><sheetData>", b"<row/>"),
            (b"<worksheet><sheetData><row>", b"<c><v>1</v></c>"),
            (b'<worksheet><sheetData><row><c t="str"><v>', b"x"),
            (b'<worksheet><sheetData a="', b"x"),
            (b"<worksheet>", b"<a>"),
            (b"<worksheet>", b" "),
            (b"<sst>", b"<si/>"),
            (b"<sst><si><t>", b"x"),
        ],
    )
    parts = _parts(base(rng))
    relation = b'<Relationship Id="rId9" Type="x/sharedStrings" Target="sharedStrings.xml"/></Relationships>'
    rels = "xl/_rels/workbook.xml.rels"
    parts[rels] = parts[rels].replace(b"</Relationships>", relation)
    name = STRINGS if start.startswith(b"<sst") else SHEET
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for part, content in parts.items():
            if part != name:
                archive.writestr(part, content)
        with archive.open(name, "w", force_zip64=True) as file:
            file.write(start)
            million = block * (10**6 // len(block))
            for _ in range(size // 10**6):
                file.write(million)
    return data.getvalue()


def _lying_sizes(rng: Rng) -> bytes:
    """A directory that tells other sizes than there are."""
    data = bytearray(_packed({**_parts(base(rng)), STRINGS: zlib.compress(b"x" * 1000)}))
    at = data.rfind(b"PK\x01\x02")
    for _ in range(int(rng.integers(1, 4))):
        place = at + int(rng.integers(16, 46))
        data[place : place + 1] = rng.bytes(1)
    return bytes(data)


XLSX: dict[str, Callable[[Rng], bytes]] = {
    "xlsx: archive": _archive,
    "xlsx: part": _part,
    "xlsx: cells": _cells,
    "xlsx: sizes": _lying_sizes,
}
# Of these few are made, since they take long.
XLSX_BOMBS: dict[str, Callable[[Rng], bytes]] = {"xlsx: bomb": _bomb}
