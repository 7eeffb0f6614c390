"""Files and folders in, one file or a folder of parts out, or an error that says why not."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from strays.errors import DataError, UsageError
from strays.jobs.score import WrittenChunk
from strays.jobs.score.to_folder import part_stems
from strays.tables import in_order, open_table
from tests.jobs.score.standin import ALL, Estimating, StandIn, everything_in, read_parts, rows, run, write


@pytest.mark.parametrize("rule", [{}, {"top": 7}, {"max_false_share": 0.4}])
def test_a_folder_becomes_parts_beside_a_manifest(folder: Path, tmp_path: Path, rule: dict) -> None:
    out = tmp_path / "out"
    summary = run(folder, f"{out}/", model := StandIn(**rule))
    assert [row["id"] for row in read_parts(out)] == ALL
    assert [name for name in everything_in(out) if not name.startswith("_")] == [
        *(f"a-0000{i}.parquet" for i in range(3)),
        *(f"b-0000{i}.csv" for i in range(2)),
        *(f"deep/c-0000{i}.jsonl" for i in range(3)),
    ]
    bookkeeping = ["_manifest.jsonl", "_scores.f64"] if rule else ["_manifest.jsonl"]
    assert [name for name in everything_in(out) if name.startswith("_")] == bookkeeping
    assert (summary.n_rows, summary.n_parts, summary.n_files, summary.n_resumed_rows) == (68, 8, 4, 0)
    assert summary.ignored == ("readme.md",)
    assert summary.rows_per_second > 0
    flagged = sum(str(row["flagged"]).lower() == "true" for row in read_parts(out))
    assert flagged == summary.n_flagged
    assert flagged == model.flag(StandIn().anomaly_score([f"text {i[0]} number {i[1:]}" for i in ALL])).flagged.sum()


@pytest.mark.parametrize("name", ["all.parquet", "all.csv", "all.jsonl.gz"])
@pytest.mark.parametrize("rule", [{}, {"top": 7}])
def test_a_folder_of_one_kind_becomes_one_file(tmp_path: Path, name: str, rule: dict) -> None:
    for mark in "ab":
        write(tmp_path / "in" / f"{mark}.csv", rows(25, mark))
    summary = run(tmp_path / "in", tmp_path / name, StandIn(**rule))
    table = open_table(str(tmp_path / name)).read()
    assert table.column("id").to_pylist() == [row["id"] for mark in "ab" for row in rows(25, mark)]
    assert (summary.n_rows, summary.n_parts) == (50, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "in"])


@pytest.mark.parametrize("name", ["ranked.parquet", "ranked.csv", "ranked.jsonl.gz"])
@pytest.mark.parametrize("part_rows", [10, 100])
@pytest.mark.parametrize("model", [StandIn(), StandIn(top=7), Estimating()])
def test_one_file_can_have_the_oddest_rows_first(tmp_path: Path, name: str, part_rows: int, model: StandIn) -> None:
    """Ties stay in the order of the file, and rows without a text come last."""
    some = [row | {"text": "" if i % 9 == 4 else f"text {i % 20}"} for i, row in enumerate(rows(45))]
    write(tmp_path / "in" / "a.csv", some[:25])
    write(tmp_path / "in" / "b.csv", some[25:])
    plain, ranked = tmp_path / f"plain.{name.partition('.')[2]}", tmp_path / name
    as_read = run(tmp_path / "in", plain, model, part_rows=part_rows)
    assert run(tmp_path / "in", ranked, model, part_rows=part_rows, sort=True).n_flagged == as_read.n_flagged
    rows_as_read = open_table(str(plain)).read().to_pylist()

    def oddness(row: dict) -> float:
        return -float(row["anomaly_score"]) if row["anomaly_score"] not in ("", None) else float("inf")

    assert open_table(str(ranked)).read().to_pylist() == sorted(rows_as_read, key=oddness)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, plain.name, "in"])


def test_rows_that_do_not_fit_into_memory_are_sorted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "t.parquet", rows(500))
    run(source, tmp_path / "a.parquet", sort=True)
    small = partial(in_order, most_bytes=2_000)
    monkeypatch.setattr("strays.jobs.score.rows.in_order", small)
    run(source, tmp_path / "b.parquet", sort=True)
    assert pq.read_table(tmp_path / "a.parquet") == pq.read_table(tmp_path / "b.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "t.parquet"]


def test_parts_cannot_be_sorted(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder.*sort cannot order them; name one file for out"):
        run(folder, f"{tmp_path / 'out'}/", sort=True)
    assert not (tmp_path / "out").exists()


def test_rows_without_a_text_pass_through_unscored(tmp_path: Path) -> None:
    write(tmp_path / "t.csv", [{"id": i, "text": "some" if i % 2 else " "} for i in range(30)])
    write(tmp_path / "u.csv", [{"id": i, "text": ""} for i in range(3)])
    summary = run(tmp_path / "t.csv", tmp_path / "out.jsonl", model := StandIn())
    assert model.asked == [["some"] * 5] * 3
    assert summary.n_without_text == 15
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["anomaly_score"] is None for row in out] == [True, False] * 15
    assert run(tmp_path / "u.csv", tmp_path / "out.jsonl", nothing := StandIn()).n_without_text == 3
    assert nothing.asked == []


def test_parts_in_another_format_and_files_named_alike(tmp_path: Path) -> None:
    write(tmp_path / "in" / "x.csv", rows(3, "p"))
    write(tmp_path / "in" / "x.jsonl", rows(3, "q"))
    write(tmp_path / "in" / "y.csv", rows(3, "r"))
    run(tmp_path / "in", tmp_path / "out", out_format="parquet")
    names = ["_manifest.jsonl", "x.csv-00000.parquet", "x.jsonl-00000.parquet", "y-00000.parquet"]
    assert list(everything_in(tmp_path / "out")) == names


@pytest.mark.parametrize(("name", "format"), [("t.csv", "csv"), ("t.parquet", "parquet"), ("t.txt", "parquet")])
def test_a_name_without_an_extension_is_a_folder(tmp_path: Path, name: str, format: str) -> None:
    source = tmp_path / name
    if name == "t.txt":
        source.write_text("some\nlines\n")
    else:
        write(source, rows(2))
    assert run(source, tmp_path / "scored").n_parts == 1
    assert set(everything_in(tmp_path / "scored")) == {f"t-00000.{format}", "_manifest.jsonl"}
    run(source, tmp_path / "other", out_format="jsonl")
    assert (tmp_path / "other" / "t-00000.jsonl").exists()


def test_names_that_parts_cannot_be_told_apart_by() -> None:
    assert part_stems(["a/x.csv", "y.csv.gz", ".z"], []) == {"a/x.csv": "a/x", "y.csv.gz": "y", ".z": ".z"}
    earlier = WrittenChunk("x.csv", 1, 1, 0, 1, True, "", 0, out="x.csv-00000.csv", bytes=1, sha256="", flagged=0)
    with pytest.raises(DataError, match=r"^x\.csv and x\.csv\.csv: their names are too alike"):
        part_stems(["x", "x.csv", "x.csv.csv"], [earlier])


def test_a_small_job_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    make = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", lambda path, *a, **k: (made.append(path), make(path, *a, **k)))
    run(write(tmp_path / "t.csv", rows(10)), tmp_path / "out.csv")
    assert ".out.csv.strays" not in {path.name for path in made}
    run(tmp_path / "t.csv", tmp_path / "out.csv", part_rows=9)
    assert ".out.csv.strays" in {path.name for path in made}
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "out.csv"}


@pytest.mark.parametrize(
    ("source", "out", "error", "words"),
    [
        ("none", "out/", DataError, "none: no such file or folder"),
        ("in", "in/out/", UsageError, "is inside the input"),
        ("in", "in", UsageError, "is the input itself"),
        ("in", "no/such/out/", DataError, "there is no folder .*no/such"),
        ("in", "full/", DataError, "a folder with other things in it"),
        ("in", "in.csv/", DataError, "is a file; expected the name of a folder"),
        (
            "in",
            "all.csv",
            DataError,
            r"b\.jsonl.* differ from those of .*Score them to a folder: a name for out that ends in a slash",
        ),
        ("-", "out/", UsageError, "a folder cannot be written from a pipe"),
        ("in.csv", "in.csv", UsageError, "is the input itself"),
        ("in.csv", "out.odd", DataError, "its name does not tell its format"),
        ("in.csv", "name", DataError, "name: is a file; expected the name of a folder"),
        ("full", "out/", DataError, "no file in this folder ends in"),
        ("blank", "out/", DataError, "no rows in any of its files"),
        ("scored", "out/", DataError, "already has a column 'p_value'"),
        ("other", "out/", DataError, "there is no column 'title'"),
        ("in", "/proc/out/", DataError, "/proc/out: could not be made"),
    ],
)
def test_what_cannot_be_done(folder: Path, tmp_path: Path, monkeypatch, source, out, error, words) -> None:
    monkeypatch.chdir(tmp_path)
    write(folder / "b.jsonl", [{"id": 3, "text": "x"}])
    (folder / "b.csv").unlink()
    write(tmp_path / "in.csv", rows(3))
    (tmp_path / "name").touch()
    write(tmp_path / "blank" / "a.csv", [{"text": 1}]).write_text("text\n")
    write(tmp_path / "scored" / "a.csv", [{"text": 1, "p_value": 0.1}])
    write(tmp_path / "other" / "a.csv", [{"title": "a"}])
    write(tmp_path / "other" / "b.csv", [{"text": "a"}])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txtx").touch()
    with pytest.raises(error, match=words):
        run(Path(source), out)
