from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.errors import DataError, UsageError
from strays.tables import open_table, open_writer, texts_of
from strays.tables.table import LONGEST_ROW

ROWS = [
    {"id": "007", "text": "plain words"},
    {"id": "1.50", "text": 'a "quoted", broken\nline'},
    {"id": "", "text": "emoji 🐈 and العربية and 中文"},
]


def write(path: Path, rows: list[dict]) -> Path:
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import csv

        separator = "\t" if name.endswith(".tsv") else ","
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
            writer.writeheader()
            writer.writerows(rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


FILES = ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.csv.gz", "t.jsonl.gz", "t.parquet.gz"]


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    table = open_table(str(write(tmp_path / name, ROWS)))
    assert table.columns == ["id", "text"]
    assert table.read().to_pylist() == ROWS
    assert table.read().to_pylist() == ROWS  # and again
    assert table.text_column() == "text"


@pytest.mark.parametrize("name", FILES)
def test_every_format_from_stdin(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(tmp_path / name, ROWS).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert open_table("-").read().to_pylist() == ROWS


@pytest.mark.filterwarnings("ignore:.*holds a NUL")
def test_txt_is_one_text_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"first, with a comma\r\n\n  \nlast \x00 one"
    (tmp_path / "t.txt").write_bytes(data)
    table = open_table(str(tmp_path / "t.txt"))
    assert table.read().column("text").to_pylist() == ["first, with a comma", "", "  ", "last \x00 one"]
    assert list(table.texts("text")) == [["first, with a comma", None, None, "last \x00 one"]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert open_table("-").format == "txt"


def test_byte_order_mark_is_no_part_of_a_column_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("\ufefftext\nhello\n".encode())
    assert open_table(str(tmp_path / "t.csv")).columns == ["text"]


def test_csv_with_semicolons(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id;text\n1;"a; b, c"\n2;d\n')
    assert open_table(str(tmp_path / "t.csv")).read().to_pylist() == [
        {"id": "1", "text": "a; b, c"},
        {"id": "2", "text": "d"},
    ]


def test_blank_csv_lines_are_rows_only_where_a_row_is_one_value(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("text\na\n\nb\n")
    assert open_table(str(tmp_path / "one.csv")).read().column("text").to_pylist() == ["a", "", "b"]
    (tmp_path / "two.csv").write_text("id,text\n1,a\n\n2,b\n")
    assert open_table(str(tmp_path / "two.csv")).read().num_rows == 2


def test_jsonl_keeps_plain_types_and_carries_the_rest_as_json(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "n": 1, "x": 1.5, "b": True, "mixed": 1, "nested": {"k": [1]}, "big": 2**70, "none": None},
        {"text": "b", "n": 2, "x": 2.5, "b": False, "mixed": "one", "nested": None, "big": 1},
        {"text": "c", "late": "x"},
    ]
    table = open_table(str(write(tmp_path / "t.jsonl", rows)))
    types = {field.name: str(field.type) for field in table.schema}
    assert types | {"n": "int64", "x": "double", "b": "bool", "mixed": "string", "none": "null"} == types
    with open_writer(str(tmp_path / "out.jsonl"), table.schema) as put:
        for batch in table.batches():
            put(batch)
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    everything = {key: None for row in rows for key in row}
    assert out == [everything | row for row in rows]


def test_half_a_surrogate_pair_does_not_stop_a_job(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "half \\ud83d pair", "k\\ud800": 1}\n')
    table = open_table(str(tmp_path / "t.jsonl"))
    assert table.read().to_pylist() == [{"text": "half ? pair", "k?": 1}]


def test_a_text_of_a_megabyte(tmp_path: Path) -> None:
    long = "word " * 250_000
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        table = open_table(str(write(tmp_path / name, [{"text": long}])))
        assert table.read().column("text").to_pylist() == [long]


def test_more_rows_than_one_batch(tmp_path: Path) -> None:
    rows = [{"id": str(i), "text": f"text {i}"} for i in range(5000)]
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        table = open_table(str(write(tmp_path / name, rows)))
        assert len(list(table.batches())) > 1
        assert table.read().to_pylist() == rows


# ---- which column ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("id,Text", "a,b", "Text"),
        ("review", "x", "review"),
        ("id,review,stars", "17,nice place,4.5", "review"),
        ("n,title", "1e5,hello", "title"),
    ],
)
def test_the_text_column_is_found_where_only_one_can_be_it(tmp_path: Path, header: str, row: str, column: str) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    assert open_table(str(tmp_path / "t.csv")).text_column() == column


def test_the_label_column_is_not_the_text_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("body,label\nhello,normal\n")
    assert open_table(str(tmp_path / "t.csv")).text_column(besides=("label",)) == "body"


def test_an_ambiguous_or_wrong_text_column_lists_the_columns(tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "t.csv", [{"title": "a", "body": "b"}])))
    with pytest.raises(DataError, match=r"several columns could hold the texts.*'title', 'body'.*text_column"):
        table.text_column()
    with pytest.raises(DataError, match=r"no column 'txt'.*'title', 'body'"):
        table.text_column("txt")
    assert table.text_column("body") == "body"
    numbers = open_table(str(write(tmp_path / "t.parquet", [{"n": 1}])))
    with pytest.raises(DataError, match="no column holds texts"):
        numbers.text_column()
    with pytest.raises(DataError, match="holds int64, not texts alone"):
        numbers.text_column("n")


@pytest.mark.parametrize("type_", [pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_all_of_arrows_string_types_are_texts(tmp_path: Path, type_: pa.DataType) -> None:
    batch = pa.record_batch([pa.array(["a", None, " "]).cast(type_)], names=["s"])
    assert texts_of(batch, "s") == ["a", None, None]


# ---- what bad input gets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"", "the file is empty"),
        ("t.csv", b"text\n", "no rows"),
        ("t.csv", b"\n\n", "the file is empty"),
        ("t.jsonl", b"\n\n", "no rows"),
        ("t.csv", b"id,text\n1,a\n2\n", r"line 3: 1 values, expected 2"),
        ("t.csv", b"id,text\n1,a\n2,b,c\n", r"line 3: 3 values, expected 2"),
        ("t.csv", b'id,text\n1,"a\n2,b\n', "line 3: not readable as csv"),
        ("t.csv", b"a,a\n1,2\n", "two columns are called 'a'"),
        ("t.csv", b"text\ncaf\xe9\n", r"line 2: byte 0xe9 is not UTF-8.*iconv"),
        ("t.txt", b"ok\n\xff\n", "line 2: byte 0xff"),
        ("t.txt", "hello".encode("utf-16"), "iconv -f UTF-16"),
        ("t.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        ("t.jsonl", b'{"text": NaN}\n', "line 1: not JSON .NaN is not JSON"),
        ("t.jsonl", b'{"text": "a"}\n["b"]\n', "line 2: a JSON list; expected an object"),
        ("t.jsonl", b"[" * 100_000 + b"\n", "line 1: not JSON"),
        ("t.parquet", b"PAR1 nonsense", "not readable as parquet"),
        ("t.csv.gz", gzip.compress(b"text\n" + b"words\n" * 1000, mtime=0)[:-12], "cut off or damaged"),
        ("t.doc", b"text", "a Word document cannot be read; save it as plain text"),
        ("t", b"text", "does not tell its format"),
    ],
)
def test_bad_files_are_refused_with_their_name(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        open_table(str(tmp_path / name)).read()
    assert name in str(error.value)


def test_texts_that_are_not_all_strings_are_refused(tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "t.jsonl", [{"text": "a"}, {"text": 7}])))
    for asked in (None, "text"):
        with pytest.raises(DataError, match="column 'text' holds values of several kinds, not texts alone"):
            table.text_column(asked)


def test_gzip_with_flipped_bytes(tmp_path: Path) -> None:
    data = gzip.compress(b"text\n" + b"".join(b"words %d\n" % i for i in range(5000)))
    for position in range(20, len(data), len(data) // 9):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        (tmp_path / "t.csv.gz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"t\.csv\.gz"):
            open_table(str(tmp_path / "t.csv.gz")).read()


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    import os
    import threading

    os.mkfifo(tmp_path / "t.csv")
    writer = threading.Thread(target=(tmp_path / "t.csv").write_text, args=("text\nfrom a pipe\n",))
    writer.start()
    assert open_table(str(tmp_path / "t.csv")).read().to_pylist() == [{"text": "from a pipe"}]
    writer.join()


def test_parquet_with_two_columns_of_one_name_and_with_broken_strings(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), tmp_path / "two.parquet")
    with pytest.raises(DataError, match="two columns are called 'text'"):
        open_table(str(tmp_path / "two.parquet"))
    broken = pa.array([b"caf\xe9"]).view(pa.string()) if hasattr(pa.Array, "view") else None
    pq.write_table(pa.table({"text": broken}), tmp_path / "bytes.parquet")
    with pytest.raises(DataError, match="not UTF-8"):
        list(open_table(str(tmp_path / "bytes.parquet")).texts("text"))


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", ROWS * 100)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"t\.parquet: not readable as parquet.*cut off or damaged"):
        open_table(str(path)).read()


def test_parquet_damaged_in_the_middle(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [{"text": f"some words {i * 7919}"} for i in range(5000)])
    data = bytearray(path.read_bytes())
    data[200:4000] = bytes(3800)
    path.write_bytes(data)
    with pytest.raises(DataError, match="cut off or damaged"):
        open_table(str(path)).read()


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_table(str(tmp_path / "none.csv"))
    with pytest.raises(DataError, match="no file in this folder ends in"):
        open_table(str(tmp_path))
    with pytest.raises(UsageError, match="no such format: 'xls'"):
        open_table("t.xls", "xls")


def test_empty_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="nothing in it"):
        open_table("-")


@pytest.mark.filterwarnings("ignore:.*holds a NUL")
@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=8),
    name=st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.csv.gz"]),
)
def test_what_is_written_is_read_again(tmp_path_factory, texts: list[str], name: str) -> None:
    path = str(tmp_path_factory.mktemp("t") / name)
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with open_writer(path, schema) as put:
        put(pa.record_batch([pa.array([str(i) for i in range(len(texts))]), pa.array(texts)], schema=schema))
    assert open_table(path).read().column("text").to_pylist() == texts


# ---- files that somebody made on purpose -----------------------------------------------------------------------------


def bomb(start: bytes, block: bytes, megabytes: int) -> bytes:
    """Gzip data of so many megabytes of one block, made quickly."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    blocks = (packer.compress(block * (10**6 // len(block))) for _ in range(megabytes))
    return b"".join([packer.compress(start), *blocks, packer.flush()])


LINE = b"x" * 999 + b"\n"


@pytest.mark.parametrize(
    ("name", "start", "block"),
    [
        ("t.txt.gz", b"", b"x"),
        ("t.csv.gz", b'text\n"', LINE),
        ("t.jsonl.gz", b'{"text": "', b"x"),
        ("t.csv", b"text\n", b"x"),
        ("t.csv", b'text\n"', LINE),
    ],
)
def test_a_row_without_an_end(tmp_path: Path, name: str, start: bytes, block: bytes) -> None:
    """Data of 200 MB, packed, or just too long for a row: neither is held in memory."""
    plain = start + block * (LONGEST_ROW // len(block) + 1)
    (tmp_path / name).write_bytes(bomb(start, block, 200) if name.endswith(".gz") else plain)
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"{name}, line \d+: a row of more than 16,777,216 bytes.*shorten the text"):
        open_table(str(tmp_path / name))
    assert tracemalloc.get_traced_memory()[1] < 10 * LONGEST_ROW
    tracemalloc.stop()


def test_parquet_that_gzip_makes_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bomb(b"PAR1", b"\0", 100)
    (tmp_path / "t.parquet.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"t\.parquet\.gz: unpacks to more than 20 times its size; unpack it first"):
        open_table(str(tmp_path / "t.parquet.gz"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(DataError, match="stdin: unpacks to more than 20 times its size"):
        open_table("-")


def test_damaged_gzip_data_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(b"text\nhello\n")[:-9]
    (tmp_path / "t.parquet.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"t\.parquet\.gz: the gzip data is cut off"):
        open_table(str(tmp_path / "t.parquet.gz"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(DataError, match="stdin: "):
        open_table("-")


def test_long_rows_make_small_batches(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes((b"x" * 10**6 + b"\n") * 50)
    assert [len(batch) for batch in open_table(str(tmp_path / "t.txt")).batches()] == [17, 17, 16]


def test_parquet_with_one_long_text_many_times(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"text": long}), tmp_path / "t.parquet", store_schema=False)
    table = open_table(str(tmp_path / "t.parquet"))
    assert max(batch.nbytes for batch in table.batches()) < 2**25
    assert sum(len(batch) for batch in table.batches()) == 2000


def test_a_row_of_parquet_that_is_too_long(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "x" * (LONGEST_ROW + 1)]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="has a row of more than 16,777,216 bytes"):
        open_table(str(tmp_path / "t.parquet")).read()
    pq.write_table(pa.table({"text": ["a"], "n": [[0] * 3_000_000]}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 10_000
    with pytest.raises(DataError, match="has a row of more than 16,777,216 bytes"):
        open_table(str(tmp_path / "t.parquet"))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", b",".join(b"c%d" % i for i in range(6000)) + b"\n" + b"," * 5999 + b"\n"),
        ("t.jsonl", b"".join(b'{"k%d": 1}\n' % i for i in range(6000))),
    ],
)
def test_too_many_columns(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=f"{name}: more than 5,000 columns"):
        open_table(str(tmp_path / name))


def test_json_that_is_nested_too_deep_to_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a", "n": ' + "[" * 99 + "]" * 99 + "}\n")
    with open_writer(str(tmp_path / "o.jsonl"), (table := open_table(str(path))).schema) as write:
        for batch in table.batches():
            write(batch)
    assert json.loads((tmp_path / "o.jsonl").read_text()) == json.loads(path.read_text())
    path.write_text('{"text": "a", "n": ' + "[" * 500 + "]" * 500 + "}\n")
    with pytest.raises(DataError, match=r"line 1: not JSON \(nested more than 100 deep\)"):
        open_table(str(path))


def test_errors_list_few_columns(tmp_path: Path) -> None:
    header = ",".join(["x" * 10_000, *(f"c{i}" for i in range(100))])
    (tmp_path / "t.csv").write_text(f"{header}\n{'a,' * 100}a\n")
    table = open_table(str(tmp_path / "t.csv"))
    for ask in (None, "nothing"):
        with pytest.raises(DataError, match="'c18' and 81 more") as error:
            table.text_column(ask)
        assert len(str(error.value)) < 1000


def test_parquet_with_names_that_are_not_utf8(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"], "label": ["b"]}), tmp_path / "t.parquet", store_schema=False)
    data = (tmp_path / "t.parquet").read_bytes().replace(b"label", b"\xff\xfeabe")
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"t\.parquet: not readable as parquet"):
        open_table(str(tmp_path / "t.parquet"))
