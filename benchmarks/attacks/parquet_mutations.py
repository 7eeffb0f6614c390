"""Ways to damage a parquet file, and parquet files that are in order and yet strange: types, codecs, bombs."""

from __future__ import annotations

import datetime
import decimal
import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.attacks.mutating import Rng, flipped, pick
from benchmarks.attacks.table_mutations import HOSTILE_COLUMNS, base_rows

Mutation = Callable[[Rng], bytes]
MAGIC = b"PAR1"


def written(table: pa.Table, **options: Any) -> bytes:
    """A table as a parquet file."""
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def options(rng: Rng) -> dict[str, Any]:
    """Some way to write a file."""
    return {
        "compression": pick(rng, ["snappy", "zstd", "gzip", "brotli", "lz4", "none"]),
        "use_dictionary": bool(rng.random() < 0.5),
        "data_page_version": pick(rng, ["1.0", "2.0"]),
        "row_group_size": int(rng.integers(1, 50)),
        "write_statistics": bool(rng.random() < 0.7),
        "write_page_checksum": bool(rng.random() < 0.2),
        "store_schema": bool(rng.random() < 0.7),
        "data_page_size": pick(rng, [1, 100, 2**20]),
    }


def base(rng: Rng) -> bytes:
    """A file in order."""
    return written(pa.Table.from_pylist(base_rows(rng)), **options(rng))


def footer_start(data: bytes) -> int:
    """Where the description of a file begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def flip_footer(rng: Rng) -> bytes:
    data = base(rng)
    return flipped(rng, data, footer_start(data), len(data) - 8)


def flip_pages(rng: Rng) -> bytes:
    data = base(rng)
    return flipped(rng, data, 4, footer_start(data))


def flip_headers(rng: Rng) -> bytes:
    """The first bytes of the first pages, where their sizes and counts are."""
    data = base(rng)
    return flipped(rng, data, 4, min(40, footer_start(data)))


def footer_bytes(rng: Rng) -> bytes:
    """Bytes of the description set to the largest of a number written in 7-bit groups, or to anything."""
    data = bytearray(base(rng))
    start = footer_start(bytes(data))
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(start, len(data) - 8))
        piece = pick(
            rng, [b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x01", b"\0", rng.bytes(3)]
        )
        data[at : at + len(piece)] = piece
    return bytes(data)


def header_bytes(rng: Rng) -> bytes:
    """The same in the pages' headers: huge sizes and numbers of values."""
    data = bytearray(base(rng))
    at = int(rng.integers(4, min(60, footer_start(bytes(data)))))
    piece = pick(rng, [b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x01", rng.bytes(2)])
    data[at : at + len(piece)] = piece
    return bytes(data)


def grown(rng: Rng) -> bytes:
    """Bytes put into or taken out of the description, its length made right again."""
    data = base(rng)
    start, footer = footer_start(data), bytearray(data[footer_start(data) : -8])
    at = int(rng.integers(len(footer)))
    if rng.random() < 0.5:
        footer[at:at] = rng.bytes(int(rng.integers(1, 20)))
    else:
        del footer[at : at + int(rng.integers(1, 20))]
    return data[:start] + bytes(footer) + struct.pack("<I", len(footer)) + MAGIC


def wrong_length(rng: Rng) -> bytes:
    data = base(rng)
    length = pick(rng, [0, 1, 2**31 - 1, 2**32 - 1, len(data), len(data) - 8, 2**31])
    return data[:-8] + struct.pack("<I", length) + pick(rng, [MAGIC, MAGIC, b"PARE", b"PAR2", b"\0\0\0\0"])


def cut(rng: Rng) -> bytes:
    data = base(rng)
    at = int(rng.integers(len(data)))
    return pick(
        rng,
        [
            data[:at],
            data[at:],
            data[:at] + data[-100:],
            MAGIC * at,
            data + b"\0",
            data + data,
            b"PARE" + data[4:-4] + b"PARE",
        ],
    )


def pages_moved(rng: Rng) -> bytes:
    """The description of one file behind the pages of another."""
    first, second = base(rng), base(rng)
    return first[: footer_start(first)] + second[footer_start(second) :]


def strange_types(rng: Rng) -> bytes:
    """Columns of every type there is beside the texts."""
    n = int(rng.integers(1, 30))
    now = datetime.datetime(2026, 1, 1)
    texts = pa.array([f"text {i}" if i % 5 else None for i in range(n)])
    far = pa.array([2**62 - i for i in range(n)])
    columns: dict[str, Callable[[], pa.Array]] = {
        "decimal": lambda: pa.array([decimal.Decimal("1.5")] * n, pa.decimal128(38, 10)),
        "decimal256": lambda: pa.array([decimal.Decimal("1.5")] * n, pa.decimal256(70, 10)),
        "timestamp[us]": lambda: pa.array([now] * n, pa.timestamp("us", tz="Europe/Berlin")),
        "timestamp[ns]": lambda: pa.array([1700000000123456789] * n).cast(pa.timestamp("ns")),
        "far timestamp": lambda: far.cast(pa.timestamp("us")),
        "strange zone": lambda: far.cast(pa.timestamp("us", tz="No/Where")),
        "date": lambda: pa.array([2**31 - 1 - i for i in range(n)], pa.int32()).cast(pa.date32()),
        "time": lambda: pa.array([86399_999_999] * n).cast(pa.time64("us")),
        "late time": lambda: pa.array([2**60] * n).view(pa.time64("us")),
        "time[ns]": lambda: pa.array([123456789] * n).cast(pa.time64("ns")),
        "duration": lambda: far.cast(pa.duration("us")),
        "duration[ns]": lambda: far.cast(pa.duration("ns")),
        "list": lambda: pa.array([[i] * (i % 3) if i % 4 else None for i in range(n)]),
        "list of lists": lambda: pa.array([[["a"], None]] * n),
        "struct": lambda: pa.array([{"a": 1, "b": {"c": "x"}}] * n),
        "struct twice": lambda: pa.StructArray.from_arrays([texts, texts], names=["a", "a"]),
        "map": lambda: pa.array([[("k", 1), ("k", 2)]] * n, pa.map_(pa.string(), pa.int64())),
        "map of structs": lambda: pa.array(
            [[("k", {"a": 1})]] * n, pa.map_(pa.string(), pa.struct([("a", pa.int32())]))
        ),
        "binary": lambda: pa.array([b"\xff\0"] * n),
        "fixed": lambda: pa.array([b"abcd"] * n, pa.binary(4)),
        "bool": lambda: pa.array([True, None] * n)[:n],
        "null": lambda: pa.nulls(n),
        "half": lambda: pa.array(np.full(n, np.nan, np.float16)),
        "nan": lambda: pa.array([float("nan"), float("inf")] * n)[:n],
        "uint64": lambda: pa.array([2**64 - 1] * n, pa.uint64()),
        "dictionary": lambda: pa.array(["a", "b", None] * n)[:n].dictionary_encode(),
        "dictionary of numbers": lambda: pa.array([1, 2] * n)[:n].dictionary_encode(),
        "uuid": lambda: pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * n, pa.binary(16))),
        "json": lambda: pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * n)),
        "fixed list": lambda: pa.array([[1.0, 2.0]] * n, pa.list_(pa.float32(), 2)),
        "large list": lambda: pa.array([["a"]] * n, pa.large_list(pa.string())),
        "empty struct": lambda: pa.array([{}] * n, pa.struct([])),
    }
    as_text = pick(
        rng, [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.binary()]
    )
    text = texts.dictionary_encode().cast(as_text) if pa.types.is_dictionary(as_text) else texts.cast(as_text)
    names = [str(name) for name in rng.choice(list(columns), size=int(rng.integers(1, 4)), replace=False)]
    found = {"text": text, **{name: columns[name]() for name in names}}
    chosen = options(rng)
    try:
        return written(pa.table(found), **chosen)
    except pa.ArrowException:  # no such type in parquet
        return written(pa.table({"text": texts}), **chosen)


def strange_columns(rng: Rng) -> bytes:
    names = [pick(rng, HOSTILE_COLUMNS) for _ in range(int(rng.integers(0, 4)))] + ["text"] * int(rng.integers(3))
    if rng.random() < 0.05:
        names += [f"c{i}" for i in range(pick(rng, [3000, 20_000]))]
    return written(pa.table([pa.array(["a", "b"])] * len(names), names=names))


def not_utf8(rng: Rng) -> bytes:
    """Strings, and names of columns, that are none."""
    data = base(rng)
    for word in (b"text", b"cat", b"label", b"ARROW:schema"):
        if rng.random() < 0.5:
            data = data.replace(word, b"\xff\xfe" + word[2:])
    return data


def bomb(rng: Rng) -> bytes:
    """Little that becomes much: long equal texts, many equal rows, empty row groups, large pages."""
    how = int(rng.integers(5))
    codec = pick(rng, ["zstd", "gzip", "brotli"])
    if how == 0:  # one long text many times
        size = pick(rng, [10**4, 10**5, 10**6])
        long = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * size]))
        return written(pa.table({"text": long, "n": pa.array(range(2000))}), compression=codec, store_schema=False)
    if how == 1:  # one text longer than a row may be
        return written(
            pa.table({"text": ["x" * pick(rng, [10**7, 40_000_000])]}), compression=codec, use_dictionary=False
        )
    if how == 2:  # many rows in few bytes
        return written(pa.table({"text": pa.array(["a"] * 50_000).dictionary_encode()}), compression=codec)
    if how == 3:  # many row groups
        return written(pa.table({"text": ["a"] * 1000}), row_group_size=1)
    values = pa.array([[0] * 10_000_000])
    return written(pa.table({"text": ["a"], "n": values}), compression=codec, use_dictionary=False)


PARQUET: dict[str, Mutation] = {
    "parquet: bits of the footer": flip_footer,
    "parquet: bits of the pages": flip_pages,
    "parquet: bits of the pages' headers": flip_headers,
    "parquet: bytes of the footer": footer_bytes,
    "parquet: bytes of the pages' headers": header_bytes,
    "parquet: footer grown or shrunk": grown,
    "parquet: wrong length": wrong_length,
    "parquet: cut off": cut,
    "parquet: pages of another file": pages_moved,
    "parquet: strange types": strange_types,
    "parquet: strange columns": strange_columns,
    "parquet: not UTF-8": not_utf8,
}
PARQUET_BOMBS: dict[str, Mutation] = {"parquet: bomb": bomb}
