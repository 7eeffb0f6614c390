"""Interrupted jobs resume and give the same bytes; what cannot be resumed is refused and left alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strays.errors import DataError, StraysWarning, UsageError
from strays.jobs.score.entries import parse, to_line
from strays.jobs.score.manifest import Manifest
from strays.jobs.score.part_files import PartFiles
from strays.tables import open_table
from tests.jobs.score.standin import (
    ALL,
    Estimating,
    StandIn,
    Stop,
    everything_in,
    read_parts,
    rows,
    run,
    stopping,
    write,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    part_rows=st.integers(1, 12),
    kinds=st.lists(st.sampled_from(["csv", "parquet", "jsonl"]), min_size=4, max_size=4),
    stops=st.lists(st.integers(0, 4), max_size=6),
    model=st.sampled_from([StandIn, partial(StandIn, top=3), Estimating]),
    to_file=st.booleans(),
)
def test_any_cut_and_any_stops_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, sizes, part_rows, kinds, stops, model, to_file
) -> None:
    place = tmp_path_factory.mktemp("cut")
    kinds = kinds[:1] * 4 if to_file else kinds
    for i, (size, kind) in enumerate(zip(sizes, kinds, strict=False)):
        write(place / "in" / f"{i}.{kind}", rows(size, f"{i}-"))
    name = "out.csv" if to_file else "out/"
    for calls in stops:
        try:
            run(place / "in", place / name, stopped := stopping(model(), calls), part_rows=part_rows)
        except Stop:
            assert len(stopped.asked) == calls
    run(place / "in", f"{place}/{name}", model(), part_rows=part_rows)
    (place / "again").mkdir()
    run(place / "in", f"{place}/again/{name}", model(), part_rows=part_rows)
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
        run(folder, out, stopping(StandIn(**rule), 4))
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
        run(source, tmp_path / "out.parquet", stopping(StandIn(), 2))
    assert not (tmp_path / "out.parquet").exists()
    assert (tmp_path / ".out.parquet.strays" / "_manifest.jsonl").exists()
    assert run(source, tmp_path / "out.parquet", rest := StandIn()).n_resumed_rows == 20
    assert rest.n_asked == 15
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 35
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "t.parquet"]


def test_a_job_that_was_stopped_while_it_sorted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "t.parquet", rows(35))

    def stopped(batches: Iterator, places: object, folder: Path) -> Iterator:
        (folder / "half.arrow").write_bytes(b"half")
        shutil.copytree(folder, folder.with_name("left"))  # as if the process was killed
        yield next(batches)
        raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr("strays.jobs.score.rows.in_order", stopped)
        run(source, tmp_path / "out.csv", sort=True)
    assert list((tmp_path / ".out.csv.strays" / "_sorting").iterdir())
    assert run(source, tmp_path / "out.csv", rest := StandIn(), sort=True).n_resumed_rows == 35
    assert rest.n_asked == 0
    scores = [float(row["anomaly_score"]) for row in open_table(str(tmp_path / "out.csv")).read().to_pylist()]
    assert scores == sorted(scores, reverse=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "t.parquet"]


def test_a_part_that_is_gone_or_cut_off_is_made_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for rule in ({}, {"top": 7}):
        run(folder, f"{out}/", StandIn(**rule), restart=True)
        before = everything_in(out)
        (out / "a-00001.parquet").unlink()
        (out / "b-00000.csv").write_text("id,text\n")
        with pytest.warns(StraysWarning, match=r"b-00000\.csv: was changed .* kept as _b-00000\.csv\.changed"):
            summary = run(folder, f"{out}/", again := StandIn(**rule))
        assert (summary.n_remade, again.n_asked) == (2, 0 if rule else 20)
        (out / "_b-00000.csv.changed").unlink()
        after = everything_in(out)
        assert {name: after[name] for name in after if name != "_manifest.jsonl"} == {
            name: before[name] for name in before if name != "_manifest.jsonl"
        }


def test_which_model_gave_a_score_is_kept_with_it(tmp_path: Path) -> None:
    source = write(tmp_path / "t.csv", [*rows(24), {"id": "none", "text": ""}, *rows(20, "more")])
    with pytest.raises(Stop):
        run(source, tmp_path / "out.jsonl", stopping(Estimating(), 3))
    assert run(source, tmp_path / "out.jsonl", Estimating()).n_resumed_rows == 30
    found = open_table(str(tmp_path / "out.jsonl")).read().to_pylist()
    raw = Estimating().raw_scores([row["text"] for row in found])
    for row, score, by_full in zip(found, raw.anomaly_score, raw.by_full, strict=True):
        expected = (None, None) if row["id"] == "none" else (score, "full" if by_full else "fast")
        assert (row["anomaly_score"], row["scored_by"]) == expected


def test_kept_scores_that_are_damaged_are_made_again(tmp_path: Path) -> None:
    source = write(tmp_path / "t.csv", rows(40))
    with pytest.raises(Stop):
        run(source, tmp_path / "out.csv", stopping(StandIn(), 3))
    scores = tmp_path / ".out.csv.strays" / "_scores.f64"
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
    lines = (out / "_manifest.jsonl").read_bytes().splitlines(keepends=True)
    (out / "_manifest.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:-9])
    left = out / "deep" / f".strays-{'0' * 32}"  # by a process of another machine
    left.mkdir(0o700)
    record = {"strays_workspace": left.name, "replaces": "c-00001.jsonl", "host": "another"}
    (left / "owner").write_text(json.dumps(record) + "\n")
    (left / "new").write_text("half")
    run(folder, f"{out}/", again := StandIn())
    assert again.n_asked == 68 - 35
    assert everything_in(out) == before
    (out / "_manifest.jsonl").write_bytes(b"")  # killed before it wrote the first line
    for path in out.rglob("*-0000*"):
        path.unlink()
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
        run(folder, f"{tmp_path}/top/", stopping(StandIn(top=3), 5))
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


def test_parts_that_were_written_but_not_recorded_do_not_stay(folder: Path, tmp_path: Path) -> None:
    """A cluster writes some ahead of the manifest; until they are recorded they do not have their names."""
    out = tmp_path / "out"
    run(folder, f"{out}/")
    before = everything_in(out)
    for name in ("a-00003.parquet", "deep/c-00007.jsonl"):
        (out / "_unfinished" / name).parent.mkdir(parents=True, exist_ok=True)
        (out / "_unfinished" / name).write_text("x")
    run(folder, f"{out}/", nothing := StandIn())
    assert nothing.asked == []
    assert everything_in(out) == before
    assert not (out / "_unfinished").exists()


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
def test_a_part_that_was_recorded_and_not_yet_named_gets_its_name(folder: Path, tmp_path: Path, rule: dict) -> None:
    out = tmp_path / "out"
    run(folder, f"{out}/", StandIn(**rule))
    before = everything_in(out)
    (out / "_unfinished" / "deep").mkdir(parents=True)
    for name in ("a-00001.parquet", "deep/c-00002.jsonl"):
        (out / name).rename(out / "_unfinished" / name)
    assert run(folder, f"{out}/", nothing := StandIn(**rule)).n_remade == 0
    assert nothing.asked == []
    assert everything_in(out) == before


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
@pytest.mark.parametrize("stopped_at", ["place", "_put"])
def test_a_run_stopped_when_it_records_a_part_leaves_what_a_whole_one_does(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: dict, stopped_at: str
) -> None:
    """Ctrl-C between the line in the manifest and the part's name loses no part; before the line, that part alone."""
    owner = PartFiles if stopped_at == "place" else Manifest
    as_before, calls = getattr(owner, stopped_at), []

    def stop(*given: object) -> None:
        calls.append(given)
        if len(calls) == 8:
            raise Stop
        as_before(*given)

    monkeypatch.setattr(owner, stopped_at, stop)
    out = tmp_path / "out"
    with pytest.raises(Stop):
        run(folder, f"{out}/", StandIn(**rule))
    monkeypatch.undo()
    n_recorded = (out / "_manifest.jsonl").read_bytes().count(b"\n")
    assert not (out / "_unfinished").exists()
    summary = run(folder, f"{out}/", StandIn(**rule))
    assert summary.n_remade == 0
    assert n_recorded > 7 or stopped_at == "_put"
    run(folder, f"{tmp_path}/again/", StandIn(**rule))
    assert everything_in(out) == everything_in(tmp_path / "again")
    assert (out / "_manifest.jsonl").read_bytes() == (tmp_path / "again" / "_manifest.jsonl").read_bytes()


def altered(manifest: Path, line: int, **values: object) -> None:
    """Change what a line says, with its check sum."""
    lines = manifest.read_bytes().splitlines(keepends=True)
    entry = parse(lines[line]) | values
    lines[line] = to_line({key: value for key, value in entry.items() if key != "check"})
    manifest.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("out", "model"), [("out", StandIn), ("out", partial(StandIn, top=7)), ("out.csv", Estimating)]
)
def test_a_job_with_a_manifest_of_the_format_before_is_resumed(
    tmp_path: Path, out: str, model: Callable[[], StandIn]
) -> None:
    """That had no digests and no check sums, and files of other names."""
    source = write(tmp_path / "t.csv", rows(45))
    with pytest.raises(Stop):
        run(source, tmp_path / out, stopping(model(), 3))
    place = next(tmp_path.rglob("_manifest.jsonl")).parent
    entries = [parse(line) for line in (place / "_manifest.jsonl").read_bytes().splitlines()]
    without = [{key: value for key, value in entry.items() if key not in ("check", "sha256")} for entry in entries]
    lines = [json.dumps(entry | ({"strays_job": 2} if i == 0 else {})) + "\n" for i, entry in enumerate(without)]
    (place / "manifest.jsonl").write_text("".join(lines))
    (place / "_manifest.jsonl").unlink()
    if (place / "_scores.f64").exists():
        (place / "_scores.f64").rename(place / ".scores.f64")
    assert run(source, tmp_path / out, rest := model()).n_resumed_rows == 30
    assert rest.n_asked == 15
    run(source, tmp_path / f"whole-{out}", model())
    if out == "out.csv":
        assert (tmp_path / out).read_bytes() == (tmp_path / f"whole-{out}").read_bytes()
        assert not place.exists()
    else:
        found, expected = everything_in(tmp_path / out), everything_in(tmp_path / f"whole-{out}")
        assert found.keys() == expected.keys()
        assert {n: found[n] for n in found if n[0] != "_"} == {n: expected[n] for n in found if n[0] != "_"}


@pytest.mark.parametrize("restart", [False, True])
def test_a_manifest_of_another_format_is_refused(folder: Path, stopped: str, restart: bool) -> None:
    altered(Path(stopped) / "_manifest.jsonl", 0, strays_job=4)
    before = everything_in(Path(stopped))
    with pytest.raises(DataError, match=r"in format 4 by strays .*; this version reads format 3\..* another out"):
        run(folder, stopped, restart=restart)
    assert everything_in(Path(stopped)) == before


@pytest.mark.parametrize(
    "line", [b"{nonsense\n", b"[]\n", b'{"kind": "part"}\n', b'{"check": 1}\n', b"[" * 9999 + b"\n"]
)
def test_what_damaged_lines_of_a_manifest_spoke_of_is_done_again(folder: Path, stopped: str, line: bytes) -> None:
    manifest = Path(stopped) / "_manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join([*lines[:2], line, *lines[3:]]))
    with pytest.warns(StraysWarning, match=r"_manifest\.jsonl: is damaged in line 3; .* is done again"):
        summary = run(folder, stopped, model := StandIn())
    assert model.n_asked == 10 + 20  # of the line that is damaged, and what was left
    assert summary.n_rows == 68
    assert [row["id"] for row in read_parts(Path(stopped))] == ALL
    run(folder, stopped, nothing := StandIn())
    assert nothing.asked == []


@pytest.mark.parametrize("values", [{"kind": "other"}, {"rows": "ten"}, {"rows": -1}, {"out": None}, {"more": 1}])
def test_a_manifest_that_is_not_as_strays_writes_it_is_refused(folder: Path, stopped: str, values: dict) -> None:
    altered(Path(stopped) / "_manifest.jsonl", 3, **values)
    with pytest.raises(DataError, match=r"_manifest\.jsonl, line 4: is not as strays writes it.*another out"):
        run(folder, stopped)


def test_a_manifest_cannot_point_outside_its_folder(folder: Path, stopped: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("x")
    altered(Path(stopped) / "_manifest.jsonl", 1, out="../precious")
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


# ---- disks -----------------------------------------------------------------------------------------------------------


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """As on a disk that is full: files cannot grow above a size."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource.setrlimit")
@pytest.mark.parametrize(("out", "limit"), [("out/", 1300), ("out.csv", 1000)])
def test_when_no_more_can_be_written_what_is_done_is_kept(tmp_path: Path, out: str, limit: int) -> None:
    source = write(tmp_path / "t.csv", rows(100))
    with no_file_above(limit), pytest.raises(DataError, match=r"File too large.* is kept in .*run the job again to"):
        run(source, f"{tmp_path}/{out}")
    summary = run(source, f"{tmp_path}/{out}", rest := StandIn())
    assert 0 < summary.n_resumed_rows == 100 - rest.n_asked
    (tmp_path / "whole").mkdir()
    run(source, f"{tmp_path}/whole/{out}")
    whole = everything_in(tmp_path / "whole")
    assert {name: data for name, data in everything_in(tmp_path).items() if name in whole} == whole


@pytest.mark.process
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
