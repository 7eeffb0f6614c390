"""xlsx out: one sheet, a row at a time. Texts are written as texts, so that none is ever run as a formula.

Those that look like one are marked (quotePrefix), so that they stay texts when a cell is edited and left.
"""

from __future__ import annotations

import html
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from typing import IO, Any

import pyarrow as pa

from strays.errors import DataError
from strays.tables.safe_cells import runs
from strays.tables.values import cell_text, pieces

# What a sheet and a cell hold at most, and the whole numbers that a spreadsheet keeps exactly.
MOST_ROWS, MOST_CHARACTERS, MOST_EXACT = 2**20, 32_767, 10**15
BLOCK = 2**20
SHEET = "xl/worksheets/sheet1.xml"
DAY_ZERO = datetime(1899, 12, 30)
FIRST_DAY = datetime(1900, 3, 1)  # what is before it is a day off in some programs
STYLE, FORMULA_STYLE = {date: 1, datetime: 2}, 3
# Characters that XML does not have, line ends, which it changes, and what reads like one of them.
ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType='
    '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType='
    f'"application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/><Override '
    f'PartName="/{SHEET}" ContentType="{TYPE}.worksheet+xml"/><Override PartName="/xl/styles.xml" '
    f'ContentType="{TYPE}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="{OFFICE}/'
    'officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet name="strays" sheetId="1" '
    'r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="{OFFICE}/styles" '
    'Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts count="2"><numFmt numFmtId="164" '
    'formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="1"><font/></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill>'
    '<patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1">'
    '<xf/></cellStyleXfs><cellXfs count="4"><xf numFmtId="0" xfId="0"/><xf numFmtId="164" xfId="0" '
    'applyNumberFormat="1"/><xf numFmtId="165" xfId="0" applyNumberFormat="1"/><xf numFmtId="0" xfId="0" '
    'quotePrefix="1"/></cellXfs><cellStyles count="1">'
    '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}


@contextmanager
def xlsx_writer(file: IO[bytes], schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that writes record batches to a workbook; the same rows give the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PARTS.items():
            archive.writestr(_info(name), HEAD + content)
        with archive.open(_info(SHEET), "w", force_zip64=True) as sheet:
            n = 0

            def put(values: Any) -> None:
                nonlocal n
                n += 1
                if n > MOST_ROWS:
                    raise DataError(f"more than {MOST_ROWS - 1:,} rows, which no sheet holds; write csv or parquet")
                sheet.write(f"<row>{''.join(map(_cell, values))}</row>\n".encode())

            def write(batch: pa.RecordBatch) -> None:
                for rows in pieces(batch):
                    for values in rows:
                        put(values)

            sheet.write(f'{HEAD}<worksheet xmlns="{MAIN}"><sheetData>'.encode())
            put(schema.names)
            yield write
            sheet.write(b"</sheetData></worksheet>")


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int) and abs(value) < MOST_EXACT:
        return f"<c><v>{value}</v></c>"
    if isinstance(value, float):
        # A sheet has no number for NaN and infinity; they are written as csv has them.
        return f"<c><v>{value!r}</v></c>" if math.isfinite(value) else f'<c t="inlineStr"><is><t>{value!r}</t></is></c>'
    if type(value) in STYLE and (days := _days(value)) is not None:
        return f'<c s="{STYLE[type(value)]}"><v>{days!r}</v></c>'
    text = cell_text(value)
    if len(text.encode("utf-16-le", "surrogatepass")) > 2 * MOST_CHARACTERS:
        raise DataError(
            f"a text of {len(text):,} characters, and a cell holds {MOST_CHARACTERS:,}; write csv, jsonl or parquet"
        )
    style = f' s="{FORMULA_STYLE}"' if runs(text) else ""
    return f'<c{style} t="inlineStr"><is><t xml:space="preserve">{_xml(text)}</t></is></c>'


def _days(value: date | datetime) -> float | None:
    """The number that a date is in a sheet; None where it has none, or a time zone."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if moment.tzinfo is not None or moment < FIRST_DAY:
        return None
    since = moment - DAY_ZERO
    return since.days + since.seconds / 86_400 + since.microseconds / 86_400e6 if since.seconds else since.days


def _xml(text: str) -> str:
    escaped = html.escape(ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", text), quote=False)
    return escaped.replace("\n", "&#10;").replace("\t", "&#9;")


def count_xlsx_rows(path: str) -> int:
    """How many rows a workbook written here holds: its rows are its lines."""
    with zipfile.ZipFile(path) as archive, archive.open(SHEET) as sheet:
        return sum(block.count(b"\n") for block in iter(partial(sheet.read, BLOCK), b"")) - 2  # HEAD, and the names
