"""Jobs on files and folders: same rows whatever the cuts, going on after a stop, and refusals that say why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strays.engines.local import LocalEngine
from strays.errors import DataError, UsageError
from strays.jobs.score import RowProgress, ScoreSummary, score_files
from strays.tables import open_table
from tests.jobs.score.standin import StandIn, everything_in, read_parts, rows, write


class Stop(BaseException):
    """Stands for whatever ends a process."""


class Stopping(StandIn):
    """Fails when it is asked for one call more than allowed."""

    def __init__(self, calls: int, **rule: float) -> None:
        super().__init__(**rule)
        self.calls = calls

    def anomaly_score(self, texts: list[str], *, progress: object = None):
        if len(self.asked) == self.calls:
            raise Stop
        return super().anomaly_score(texts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 25, 13 and 30 rows, one of them in a folder of its own; and some that are no input."""
    source = tmp_path / "in"
    write(source / "a.parquet", rows(25, "a"))
    write(source / "b.csv", rows(13, "b"))
    write(source / "deep" / "c.jsonl", rows(30, "c"))
    (source / "_SUCCESS").touch()
    (source / ".hidden.csv").write_text("text\nno\n")
    (source / "readme.md").write_text("no")
    (source / "empty.csv").write_text("id,text\n")
    return source


ALL = [row["id"] for mark, n in (("a", 25), ("b", 13), ("c", 30)) for row in rows(n, mark)]


def run(source: Path, out: str | Path, model: StandIn | None = None, **options) -> ScoreSummary:
    return score_files(
        model or StandIn(), str(source), str(out), **{"part_rows": 10, "engine": LocalEngine()} | options
    )


# ---- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, {"top": 7}, {"max_false_share": 0.4}])
def test_a_folder_becomes_parts_beside_a_manifest(folder: Path, tmp_path: Path, rule: dict) -> None:
    out = tmp_path / "out"
    summary = run(folder, f"{out}/", model := StandIn(**rule))
    assert [row["id"] for row in read_parts(out)] == ALL
    visible = [name for name in everything_in(out) if not name.startswith(".")]
    assert visible == [
        *(f"a-0000{i}.parquet" for i in range(3)),
        *(f"b-0000{i}.csv" for i in range(2)),
        *(f"deep/c-0000{i}.jsonl" for i in range(3)),
        "manifest.jsonl",
    ]
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
    names = ["manifest.jsonl", "x.csv-00000.parquet", "x.jsonl-00000.parquet", "y-00000.parquet"]
    assert list(everything_in(tmp_path / "out")) == names


def test_a_small_job_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    make = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", lambda path, *a, **k: (made.append(path), make(path, *a, **k)))
    run(write(tmp_path / "t.csv", rows(10)), tmp_path / "out.csv")
    assert made == [tmp_path]  # by write()
    run(tmp_path / "t.csv", tmp_path / "out.csv", part_rows=9)
    assert made[-1].name == ".out.csv.strays"
    assert not made[-1].exists()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    part_rows=st.integers(1, 12),
    kinds=st.lists(st.sampled_from(["csv", "parquet", "jsonl"]), min_size=4, max_size=4),
    stops=st.lists(st.integers(0, 4), max_size=6),
    together=st.booleans(),
    to_file=st.booleans(),
)
def test_any_cut_and_any_stops_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, sizes, part_rows, kinds, stops, together, to_file
) -> None:
    place = tmp_path_factory.mktemp("cut")
    kinds = kinds[:1] * 4 if to_file else kinds
    for i, (size, kind) in enumerate(zip(sizes, kinds, strict=False)):
        write(place / "in" / f"{i}.{kind}", rows(size, f"{i}-"))
    rule = {"top": 3} if together else {}
    name = "out.csv" if to_file else "out/"
    for calls in stops:
        try:
            run(place / "in", place / name, stopped := Stopping(calls, **rule), part_rows=part_rows)
        except Stop:
            assert len(stopped.asked) == calls
    run(place / "in", f"{place}/{name}", StandIn(**rule), part_rows=part_rows)
    (place / "again").mkdir()
    run(place / "in", f"{place}/again/{name}", StandIn(**rule), part_rows=part_rows)
    if to_file:
        assert (place / name).read_bytes() == (place / "again" / name).read_bytes()
        assert [row["id"] for row in open_table(str(place / name)).read().to_pylist()] == [
            row["id"] for i, size in enumerate(sizes) for row in rows(size, f"{i}-")
        ]
    else:
        assert everything_in(place / name) == everything_in(place / "again" / name)
        assert len(read_parts(place / name)) == sum(sizes)


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
def test_a_stopped_job_goes_on_and_a_finished_one_does_nothing(folder: Path, tmp_path: Path, rule: dict) -> None:
    out = f"{tmp_path}/out/"
    with pytest.raises(Stop):
        run(folder, out, Stopping(4, **rule))
    summary = run(folder, out, rest := StandIn(**rule))
    assert (summary.n_rows, summary.n_resumed_rows) == (68, 35)
    assert rest.n_asked == 33
    before = everything_in(tmp_path / "out")
    again = run(folder, out, nothing := StandIn(**rule))
    assert nothing.asked == []
    assert (again.n_rows, again.n_resumed_rows, again.n_flagged) == (68, 68, summary.n_flagged)
    assert again.rows_per_second is None
    assert everything_in(tmp_path / "out") == before


def test_one_file_goes_on_from_its_kept_scores(tmp_path: Path) -> None:
    source = write(tmp_path / "t.parquet", rows(35))
    with pytest.raises(Stop):
        run(source, tmp_path / "out.parquet", Stopping(2))
    assert not (tmp_path / "out.parquet").exists()
    assert (tmp_path / ".out.parquet.strays" / "manifest.jsonl").exists()
    assert run(source, tmp_path / "out.parquet", rest := StandIn()).n_resumed_rows == 20
    assert rest.n_asked == 15
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 35
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "t.parquet"]


def test_a_part_that_is_gone_or_cut_off_is_made_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for rule in ({}, {"top": 7}):
        run(folder, f"{out}/", StandIn(**rule), restart=True)
        before = everything_in(out)
        (out / "a-00001.parquet").unlink()
        (out / "b-00000.csv").write_text("id,text\n")
        summary = run(folder, f"{out}/", again := StandIn(**rule))
        assert (summary.n_remade, again.n_asked) == (2, 0 if rule else 20)
        after = everything_in(out)
        assert {name: after[name] for name in after if name != "manifest.jsonl"} == {
            name: before[name] for name in before if name != "manifest.jsonl"
        }


def test_kept_scores_that_are_damaged_are_made_again(tmp_path: Path) -> None:
    source = write(tmp_path / "t.csv", rows(40))
    with pytest.raises(Stop):
        run(source, tmp_path / "out.csv", Stopping(3))
    scores = tmp_path / ".out.csv.strays" / ".scores.f64"
    data = bytearray(scores.read_bytes())
    data[100] ^= 1  # in the second chunk
    scores.write_bytes(data[:-8])  # and the third is cut off
    run(source, tmp_path / "out.csv", again := StandIn())
    assert again.n_asked == 30
    run(source, tmp_path / "whole.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_half_a_line_and_left_overs_do_not_count(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(folder, f"{out}/")
    before = everything_in(out)
    lines = (out / "manifest.jsonl").read_bytes().splitlines(keepends=True)
    (out / "manifest.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:-9])
    (out / "deep" / f".c-00001.jsonl.{os.getppid()}.part").write_text(
        "half"
    )  # by a process number that is in use again
    run(folder, f"{out}/", again := StandIn())
    assert again.n_asked == 68 - 35
    assert everything_in(out) == before
    (out / "manifest.jsonl").write_bytes(lines[0][:20])
    run(folder, f"{out}/", anew := StandIn())
    assert anew.n_asked == 68
    assert everything_in(out) == before


def test_a_corrupt_file_stops_the_job_and_the_rest_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strays.tables.lines.ROWS_AT_ONCE", 1)
    good = (folder / "b.csv").read_bytes()
    (folder / "b.csv").write_bytes(good.replace(b"text b number 11", b"caf\xe9"))
    with pytest.raises(DataError, match=r"b\.csv, line 13: byte 0xe9.*\. What is done \(4 chunks.*run the job again"):
        run(folder, out := f"{tmp_path}/out/")
    kept = everything_in(tmp_path / "out")
    assert [name for name in kept if name[0] in "ab"] == [*(f"a-0000{i}.parquet" for i in range(3)), "b-00000.csv"]
    (folder / "b.csv").write_bytes(good)
    run(folder, out, rest := StandIn())
    assert rest.n_asked == 33  # the first ten rows of b.csv were read again, found the same, and kept
    assert [row["id"] for row in read_parts(tmp_path / "out")] == ALL
    (folder / "deep" / "d.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"d\.parquet: not readable as parquet"):
        run(folder, out)


def test_files_may_be_added_and_touched(folder: Path, tmp_path: Path) -> None:
    out = f"{tmp_path}/out/"
    run(folder, out)
    os.utime(folder / "a.parquet")
    write(folder / "a0.csv", rows(5, "n"))
    summary = run(folder, out, new := StandIn())
    assert (new.n_asked, summary.n_rows) == (5, 73)
    with pytest.raises(Stop):  # before the flags are given, also where they wait for all rows
        run(folder, f"{tmp_path}/top/", Stopping(5, top=3))
    write(folder / "a00.csv", rows(5, "m"))
    assert run(folder, f"{tmp_path}/top/", StandIn(top=3)).n_rows == 78
    write(folder / "z.csv", rows(5, "z"))
    with pytest.raises(DataError, match=r"z\.csv: is new, and the earlier run flagged rows"):
        run(folder, f"{tmp_path}/top/", StandIn(top=3))


@pytest.mark.parametrize("out", ["out.csv", "out/"])
def test_a_file_that_grows_meanwhile_is_refused(tmp_path: Path, out: str) -> None:
    source = write(tmp_path / "t.csv", rows(25))

    class Growing(StandIn):
        def flag(self, scores):
            with source.open("a") as file:
                file.write("26,one more\n")
            return super().flag(scores)

    with pytest.raises(DataError, match=r"t\.csv: changed while it was being read"):
        run(source, f"{tmp_path}/{out}", Growing())
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(DataError, match=r"rows 21 to 25, which are scored already, are no longer the same"):
        run(source, f"{tmp_path}/{out}")


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(folder: Path, tmp_path: Path) -> str:
    with pytest.raises(Stop):
        run(folder, f"{tmp_path}/out/", Stopping(6))
    return f"{tmp_path}/out/"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: write(f / "a.parquet", rows(24, "a")), r"a\.parquet: has changed .*rows 21 to 25, which are scored"),
        (lambda f: write(f / "a.parquet", rows(26, "a")), r"a\.parquet: has changed .*rows 21 to 25"),
        (lambda f: write(f / "a.parquet", rows(25, "x")), r"a\.parquet: has changed .*rows 1 to 10"),
        (lambda f: write(f / "b.csv", rows(10, "b")), r"b\.csv: has changed .*rows 1 to 10"),
        (lambda f: (f / "b.csv").write_text("id,text\n"), r"b\.csv: has changed .*rows 1 to 10"),
        (lambda f: (f / "b.csv").unlink(), r"b\.csv: rows of this file were scored .*put it back"),
        (lambda f: (f / "b.csv").rename(f / "bb.csv"), r"b\.csv: rows of this file were scored"),
    ],
)
def test_changed_input_is_refused(folder: Path, stopped: str, change: Callable, words: str) -> None:
    change(folder)
    before = everything_in(Path(stopped))
    with pytest.raises(DataError, match=words) as refused:
        run(folder, stopped)
    assert {"out", "restart"} <= set(refused.value.params)
    assert everything_in(Path(stopped)) == before
    run(folder, stopped, restart=True)
    assert len(read_parts(Path(stopped))) == run(folder, stopped).n_rows


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (StandIn("two"), {}, r"the model, cascade or recall \(their hash\) one, this one has two"),
        (StandIn(max_false_alarms=0.2), {}, "the threshold max_false_alarms=0.1, this one has max_false_alarms=0.2"),
        (StandIn(top=2), {}, "this one has top=2"),
        (StandIn(), {"part_rows": 11}, "part_rows 10, this one has 11"),
        (StandIn(), {"out_format": "csv"}, "out_format None, this one has csv"),
        (StandIn(), {"safe_cells": True}, "safe_cells False, this one has True"),
        (StandIn(), {"text_column": "id"}, "text_column text, this one has id"),
    ],
)
def test_another_job_in_the_same_place_is_refused(folder: Path, stopped: str, model, options, words) -> None:
    before = everything_in(Path(stopped))
    with pytest.raises(UsageError, match=words) as refused:
        run(folder, stopped, model, **options)
    assert {"out", "restart"} <= set(refused.value.params)
    assert everything_in(Path(stopped)) == before


def test_restart_removes_only_what_the_manifest_lists(folder: Path, stopped: str) -> None:
    (Path(stopped) / "mine.txt").write_text("keep")
    run(folder, stopped, StandIn("two"), out_format="jsonl", restart=True)
    names = everything_in(Path(stopped))
    assert names["mine.txt"] == b"keep"
    assert {name.rpartition(".")[2] for name in names} == {"txt", "jsonl"}


def test_parts_that_were_written_but_not_noted_do_not_stay(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(folder, f"{out}/")
    kept = ("mine-00000.csv", "a-0.csv", "a-00000.txt", "a-00000.jsonl", "deep/a-00000.csv")
    for name in ("a-00003.parquet", "deep/c-00007.jsonl", *kept):
        (out / name).write_text("x")
    run(folder, f"{out}/", nothing := StandIn())
    assert nothing.asked == []
    left = set(everything_in(out))
    assert left >= set(kept)
    assert not left & {"a-00003.parquet", "deep/c-00007.jsonl"}
    assert len(left) == 8 + 1 + len(kept)


def test_a_manifest_cannot_point_outside_its_folder(folder: Path, stopped: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    manifest = Path(stopped) / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"a-00000.parquet"', '"../precious"'))
    with pytest.raises(DataError, match="outside its folder"):
        run(folder, stopped, restart=True)
    assert precious.exists()


def test_two_at_once_are_refused(folder: Path, tmp_path: Path) -> None:
    out = f"{tmp_path}/out/"

    class Meanwhile(StandIn):
        def anomaly_score(self, texts: list[str], *, progress: object = None):
            if not self.asked:
                with pytest.raises(UsageError, match="another process is writing this output"):
                    run(folder, out)
            return super().anomaly_score(texts)

    run(folder, out, Meanwhile())
    assert len(read_parts(tmp_path / "out")) == 68


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
            r"b\.jsonl.* differ from those of .*Write to a folder: a name for out that ends in a slash",
        ),
        ("in", "-", UsageError, "a folder cannot be read from or written to a pipe"),
        ("in.csv", "in.csv", UsageError, "is the input itself"),
        ("in.csv", "out", DataError, "its name does not tell its format"),
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
    write(tmp_path / "blank" / "a.csv", [{"text": 1}]).write_text("text\n")
    write(tmp_path / "scored" / "a.csv", [{"text": 1, "p_value": 0.1}])
    write(tmp_path / "other" / "a.csv", [{"title": "a"}])
    write(tmp_path / "other" / "b.csv", [{"text": "a"}])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txtx").touch()
    with pytest.raises(error, match=words):
        run(Path(source), out)


# ---- disks -----------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from pathlib import Path
from tests.jobs.score.standin import StandIn
from strays.engines.local import LocalEngine
from strays.errors import DataError
from strays.engines.local import LocalEngine
from strays.jobs.score import score_files
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    score_files(StandIn(), sys.argv[1], sys.argv[2], part_rows=10, engine=LocalEngine())
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource.setrlimit")
@pytest.mark.parametrize(("out", "limit"), [("out/", 1300), ("out.csv", 1000)])
def test_when_no_more_can_be_written_what_is_done_is_kept(tmp_path: Path, out: str, limit: int) -> None:
    source = write(tmp_path / "t.csv", rows(100))
    command = [sys.executable, "-c", LIMITED, str(source), f"{tmp_path}/{out}", str(limit)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert "File too large" in ran.stdout, ran.stdout + ran.stderr
    assert "is kept in" in ran.stdout
    assert "run the job again to resume" in ran.stdout
    summary = run(source, f"{tmp_path}/{out}", rest := StandIn())
    assert 0 < summary.n_resumed_rows == 100 - rest.n_asked
    (tmp_path / "whole").mkdir()
    run(source, f"{tmp_path}/whole/{out}")
    whole = everything_in(tmp_path / "whole")
    assert {name: data for name, data in everything_in(tmp_path).items() if name in whole} == whole


def test_a_full_disk(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("may not mount a small disk here")
    try:
        source = write(tmp_path / "t.csv", rows(3000))
        with pytest.raises(DataError, match=r"No space left on device.*is kept in .*run the job again") as full:
            run(source, f"{small}/out/", part_rows=100)
        assert str(small) in str(full.value)
        assert not list((small / "out").glob(".*.part"))
        done = len(list((small / "out").glob("t-*.csv")))
        assert done > 2
        subprocess.run(["mount", "-o", "remount,size=4m", small], check=True)
        assert run(source, f"{small}/out/", part_rows=100).n_resumed_rows in (100 * done, 100 * (done - 1))
        assert len(read_parts(small / "out")) == 3000
    finally:
        subprocess.run(["umount", small], check=True)


# ---- progress --------------------------------------------------------------------------------------------------------


def test_progress_counts_rows_and_starts_where_it_goes_on(folder: Path, stopped: str) -> None:
    from contextlib import contextmanager

    shown: list[tuple[str, int, int | None]] = []

    @contextmanager
    def bar(title: str):
        yield lambda done, total: shown.append((title, done, total))

    run(folder, stopped, progress=RowProgress(bar))
    assert shown[0][:2] == ("scoring", 48)
    assert shown[-1][1] == 68
    assert [done for _, done, _ in shown] == sorted(done for _, done, _ in shown)


def test_an_encoder_moves_the_bar_within_a_chunk() -> None:
    from contextlib import contextmanager

    shown: list[tuple[int, int | None]] = []

    @contextmanager
    def bar(title: str):
        yield lambda done, total: shown.append((done, total))

    progress = RowProgress(bar)
    with progress.bar("scoring", 100, 150):
        progress.take(40)
        progress.within(5, 10)
        progress.finish()
        progress.take(20)
        progress.finish()
    assert shown == [(100, 150), (120, 150), (140, 150), (160, 160)]
    assert progress.rows_per_second > 0
