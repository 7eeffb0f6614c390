"""JSON in, JSON out: every row keeps its own text, to which the scores are added."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.errors import DataError
from strays.jobs.score import write_scored
from strays.model.scores import Scores
from strays.tables import open_table
from tests.jobs.score.standin import StandIn, Stop, run, stopping

LINES = [
    '{"text": "one", "n": 1e999, "m": -1e999}',
    '{"text":"two","n":0.1234567890123456789012345678901234567890,"z":1,"a":2}',
    '{"n": 1, "n": 2, "text": "first", "text": "three"}',
    '{"text": "four", "half": "\\ud83d", "other": "\\uDE00x", "whole": "\\ud83d\\ude00"}',
    '  {"a": 123456789012345678901234567890, "text": "five", "b": 1.0, "c": 1e2, "d": -0.0}\t ',
    '{ "text" : "six" , "\\u006eested" : { "x" : [ 1 , 1 , {} ] , "x" : 3 } }',
    '{"text": null}',
    "{ }",
    '{"text": "caf\\u00e9 caf\u00e9 \\/ /", "tab": "\\t"}\r',
]


def parts_of(line: str) -> tuple[str, dict]:
    """A written line without what was added to it, and what that was."""
    at = line.rindex('"anomaly_score"')
    before = line[:at]
    end = line.rindex("}")
    head = before.removesuffix(", ") if before.strip() != "{" else before
    return head + line[end:], json.loads("{" + line[at : end + 1])


def check(written: str, expected: list[str]) -> None:
    found = [parts_of(line) for line in written.removesuffix("\n").split("\n")]
    assert [line for line, _ in found] == expected
    assert all(list(added) == ["anomaly_score", "p_value", "flagged"] for _, added in found)
    for line, added in found:
        assert (added["anomaly_score"] is None) == (not json.loads(line).get("text"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes("\n".join([*LINES, ""]).encode())
    return path


@pytest.mark.parametrize("part_rows", [2, 100])
@pytest.mark.parametrize("rule", [{}, {"top": 2}])
@pytest.mark.parametrize("out", ["out.jsonl", "out/", "out.json"])
def test_every_other_byte_is_as_it_was(source: Path, tmp_path: Path, out: str, rule: dict, part_rows: int) -> None:
    run(source, f"{tmp_path}/{out}", StandIn(**rule), part_rows=part_rows)
    if out == "out/":
        written = "".join(path.read_bytes().decode() for path in sorted((tmp_path / "out").glob("in-*.jsonl")))
    else:
        written = (tmp_path / out).read_bytes().decode()
    if out == "out.json":
        assert len(json.loads(written)) == len(LINES)
        written = written.removeprefix("[\n").removesuffix("\n]\n").replace(",\n", "\n")
    check(written, LINES)


def test_a_stopped_job_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run(source, tmp_path / "out.jsonl", stopping(StandIn(), 2), part_rows=2)
    run(source, tmp_path / "out.jsonl", part_rows=2)
    check((tmp_path / "out.jsonl").read_bytes().decode(), LINES)


def test_through_a_pipe_and_sorted(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sort in (False, True):
        stdout = io.BytesIO()
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(source.read_bytes())))
        monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=stdout))
        run("-", "-", sort=sort, format="jsonl")
        found = [parts_of(line) for line in stdout.getvalue().decode().removesuffix("\n").split("\n")]
        assert sorted(line for line, _ in found) == sorted(LINES)
        scores = [added["anomaly_score"] for _, added in found if added["anomaly_score"] is not None]
        assert (scores == sorted(scores, reverse=True)) == sort
        if not sort:
            assert [line for line, _ in found] == LINES


def test_a_folder_of_files_to_one_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "in" / name).write_bytes(source.read_bytes())
    run(tmp_path / "in", tmp_path / "out.jsonl")
    check((tmp_path / "out.jsonl").read_bytes().decode(), LINES * 2)
    table = open_table(str(tmp_path / "in"))
    n = len(LINES) * 2
    write_scored(table, str(tmp_path / "scan.jsonl"), Scores(np.full(n, 0.5), np.full(n, 0.5), np.ones(n, dtype=bool)))
    assert [parts_of(line)[0] for line in (tmp_path / "scan.jsonl").read_bytes().decode().split("\n")[:-1]] == LINES * 2


def test_files_of_two_formats_still_go_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "one"}\n')
    (tmp_path / "in" / "b.csv").write_text("text\ntwo\n")
    run(tmp_path / "in", tmp_path / "out.jsonl")
    assert [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["one", "two"]


@pytest.mark.parametrize("out", ["out.json", "out.jsonl"])
def test_entries_of_a_json_list(tmp_path: Path, out: str) -> None:
    entries = [line.strip() for line in LINES]
    broken = [entry.replace(" : ", " :\n") for entry in entries]  # one entry over several lines becomes one line
    (tmp_path / "in.json").write_bytes(f'{{"rows": [\n{",".join(broken)}]}}'.encode())
    run(tmp_path / "in.json", tmp_path / out)
    written = (tmp_path / out).read_bytes().decode()
    if out == "out.json":
        written = written.removeprefix("[\n").removesuffix("\n]\n").replace(",\n", "\n")
    check(written, [entry.replace(" : ", " : ") for entry in entries])
    (tmp_path / "in.json").write_text('["one \\ud83d", "two"]')
    run(tmp_path / "in.json", tmp_path / out)
    assert '{"text": "one \\ud83d", "anomaly_score": 0.' in (tmp_path / out).read_text()


def test_a_key_that_is_to_be_added_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one"}\n{"text": "two", "anomaly\\u005fscore": 1}\n')
    with pytest.raises(DataError, match="already has a column 'anomaly_score'"):
        run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    numbers = [math.nan, math.inf, -math.inf, None, 1.5]
    table = pa.table({"text": list("abcde"), "x": numbers, "list": [[number] for number in numbers]})
    pq.write_table(table, tmp_path / "in.parquet")
    for out in ("out.jsonl", "out.csv", "out.xlsx"):
        run(tmp_path / "in.parquet", tmp_path / out)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    words = ["NaN", "Infinity", "-Infinity", None, 1.5]
    assert [row["x"] for row in rows] == words
    assert [row["list"] for row in rows] == [[word] for word in words]
    assert [float(row["x"]) for row in rows if row["x"]][1:] == [math.inf, -math.inf, 1.5]
    assert open_table(str(tmp_path / "out.csv")).read().column("x").to_pylist() == ["nan", "inf", "-inf", "", "1.5"]
    cells = open_table(str(tmp_path / "out.xlsx")).read().column("x").to_pylist()
    assert [str(cell) for cell in cells] == ["nan", "inf", "-inf", "None", "1.5"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{}", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "}"]), JSON, max_size=3), min_size=1, max_size=6),
    st.sampled_from([None, (",", ":")]),
    st.booleans(),
)
def test_any_objects(tmp_path_factory: pytest.TempPathFactory, objects: list[dict], separators, ascii_: bool) -> None:
    place = tmp_path_factory.mktemp("any")
    texts = [
        json.dumps({"text": f"t{i}", **one}, separators=separators, ensure_ascii=ascii_)
        for i, one in enumerate(objects)
    ]
    lines = [text for text in texts if "NaN" not in text and "Infinity" not in text] or ['{"text": "x"}']
    (place / "in.jsonl").write_bytes("\n".join([*lines, ""]).encode())
    run(place / "in.jsonl", place / "out.jsonl")
    check((place / "out.jsonl").read_bytes().decode(), lines)
