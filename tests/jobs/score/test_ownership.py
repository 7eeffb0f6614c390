"""What a job finds in its output folder: its own parts, proved by their digests, and other people's files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attacks.manifest_bits import flip_bits
from benchmarks.common import RESULTS

from strays.errors import DataError, StraysWarning
from strays.jobs.score.manifest import NAME
from strays.model import RawScores
from tests.jobs.score.standin import StandIn, Stop, everything_in, read_parts, rows, run, stopping, write

# Names that look like those of parts of in.csv, and are not.
LOOK_ALIKE = ("in-20240101.csv", "in-000001.csv", "in-1.csv", "deep/in-00000.csv", "in-00000.csv.bak")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.csv", rows(35))


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"mine: {name}")


def stay(folder: Path, *names: str) -> bool:
    return all((folder / name).read_text() == f"mine: {name}" for name in names)


# ---- other people's files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("finished", [False, True])
def test_files_whose_names_look_like_parts_are_left_alone(
    source: Path, tmp_path: Path, rule: dict, restart: bool, finished: bool
) -> None:
    out = tmp_path / "out"
    if finished:
        run(source, out, StandIn(**rule))
    else:
        with pytest.raises(Stop):
            run(source, out, stopping(StandIn(**rule), 2))
    put(out, *LOOK_ALIKE, "sorting/mine.csv", "manifest.jsonl")
    run(source, out, StandIn(**rule), restart=restart)
    assert stay(out, *LOOK_ALIKE, "sorting/mine.csv", "manifest.jsonl")
    assert len(read_parts(out)) == 35


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
@pytest.mark.parametrize("restart", [False, True])
def test_a_part_never_takes_the_name_of_a_file_that_is_not_ours(
    source: Path, tmp_path: Path, rule: dict, restart: bool
) -> None:
    out = tmp_path / "out"
    with pytest.raises(Stop):
        run(source, out, stopping(StandIn(**rule), 2))
    put(out, "in-00003.csv")
    before = everything_in(out)
    with pytest.raises(DataError, match=r"in-00003\.csv: .*not written by this job.*[Mm]ove it away") as refused:
        run(source, out, model := StandIn(**rule), restart=restart)
    assert "out" in refused.value.params
    assert model.asked == []
    assert everything_in(out) == before
    (out / "in-00003.csv").unlink()
    run(source, out, StandIn(**rule), restart=restart)
    assert len(read_parts(out)) == 35


def test_a_file_that_takes_the_name_meanwhile_stays_too(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    class Meanwhile(StandIn):
        def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
            if len(self.asked) == 2:
                put(out, "in-00002.csv")
            return super().anomaly_score(texts)

    with pytest.raises(DataError, match=r"in-00002\.csv: .*not written by this job.* is kept in"):
        run(source, out, Meanwhile())
    assert stay(out, "in-00002.csv")
    (out / "in-00002.csv").unlink()
    assert run(source, out).n_resumed_rows == 20
    run(source, tmp_path / "whole")
    assert everything_in(out) == everything_in(tmp_path / "whole")


@pytest.mark.parametrize("name", ["_manifest.jsonl", "manifest.jsonl"])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "data", [b"one line", b'{"mine": 1}', b'{"mine": 1}\n', b"{}\n{}\n", b"\n", b'{"strays_job', b"\xff\xfe", b"[1]\n"]
)
def test_a_manifest_of_somebody_else_is_not_touched(
    source: Path, tmp_path: Path, name: str, restart: bool, data: bytes
) -> None:
    (tmp_path / "out").mkdir()
    manifest = tmp_path / "out" / name
    manifest.write_bytes(data)
    with pytest.raises(DataError, match=rf"{name}(, line 1)?: is not a manifest of strays"):
        run(source, tmp_path / "out", restart=restart)
    assert everything_in(tmp_path / "out") == {name: data}


@pytest.mark.parametrize("n_bytes", [0, 40, 200])
def test_a_job_that_was_killed_in_its_first_line_begins_anew(source: Path, tmp_path: Path, n_bytes: int) -> None:
    run(source, tmp_path / "out/")
    before = everything_in(tmp_path / "out")
    for path in (tmp_path / "out").glob("in-*"):
        path.unlink()
    (tmp_path / "out" / NAME).write_bytes(before[NAME][:n_bytes])
    run(source, tmp_path / "out/")
    assert everything_in(tmp_path / "out") == before


def test_a_part_that_cannot_be_read_is_not_taken_for_a_changed_one(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(source, tmp_path / "out/")
    before = everything_in(tmp_path / "out")

    def denied(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched, pytest.raises(DataError, match=r"in-00000.* could not be read"):
        patched.setattr("strays.jobs.score.part_files.sha256", denied)
        run(source, tmp_path / "out/")
    assert everything_in(tmp_path / "out") == before


def test_a_manifest_that_is_a_link_is_not_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").touch()
    (tmp_path / "out" / NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(DataError, match=NAME):
        run(source, tmp_path / "out")
    assert (tmp_path / "precious").read_bytes() == b""


# ---- parts that are ours, and no longer as we wrote them -------------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, {"top": 7}])
@pytest.mark.parametrize("restart", [False, True])
def test_a_part_changed_in_place_is_noticed_and_kept_aside(
    source: Path, tmp_path: Path, rule: dict, restart: bool
) -> None:
    """The same length and even the same time: its digest tells."""
    out = tmp_path / "out"
    run(source, out, StandIn(**rule))
    before, part = everything_in(out), out / "in-00001.csv"
    times = part.stat()
    changed = part.read_bytes().replace(b"false", b"FALSE", 1)
    part.write_bytes(changed)
    os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.warns(StraysWarning, match=r"in-00001\.csv.*changed.*_in-00001\.csv\.changed"):
        summary = run(source, out, StandIn(**rule), restart=restart)
    after = everything_in(out)
    assert after.pop("_in-00001.csv.changed") == changed
    assert {name: after[name] for name in after if name != NAME} == {n: before[n] for n in before if n != NAME}
    assert summary.n_remade == (0 if restart else 1)


# ---- the input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out", "out.csv"])
@pytest.mark.parametrize("rule", [{}, {"top": 7}])
def test_an_input_changed_with_its_size_and_time_kept_is_noticed(
    source: Path, tmp_path: Path, out: str, rule: dict
) -> None:
    with pytest.raises(Stop):
        run(source, tmp_path / out, stopping(StandIn(**rule), 2))
    before, times = source.read_bytes(), source.stat()

    def change(old: bytes, new: bytes) -> None:
        source.write_bytes(before.replace(old, new))
        os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))

    change(b"text  number 5\r\n", b"text  number X\r\n")
    with pytest.raises(DataError, match=r"in\.csv: has changed .*rows 1 to 10, which are scored already"):
        run(source, tmp_path / out, StandIn(**rule))
    change(b"", b"")
    assert run(source, tmp_path / out, StandIn(**rule)).n_resumed_rows == 20


@pytest.mark.parametrize(("out", "rule"), [("out.csv", {}), ("out.csv", {"top": 7}), ("out", {"top": 7})])
@pytest.mark.parametrize("part_rows", [10, 100])
def test_an_input_changed_between_scoring_and_writing_is_noticed(
    source: Path, tmp_path: Path, out: str, rule: dict, part_rows: int
) -> None:
    before, times = source.read_bytes(), source.stat()

    class Changing(StandIn):
        def anomaly_score(self, texts: list[str], *, progress: object = None) -> np.ndarray:
            if texts[-1].endswith(" 34"):  # the last chunk
                source.write_bytes(before.replace(b"text  number 5\r\n", b"text  number X\r\n"))
                os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
            return super().anomaly_score(texts)

    with pytest.raises(DataError, match=r"in\.csv: changed while it was being read"):
        run(source, tmp_path / out, Changing(**rule), part_rows=part_rows)
    assert not (tmp_path / "out.csv").exists()
    assert not list(tmp_path.glob("out/in-*"))


# ---- chunks do not depend on where a job was stopped -----------------------------------------------------------------


class ByBatch(StandIn):
    """A score depends on all texts that are scored with it, as rounding may make it."""

    def raw_scores(self, texts: list[str], *, progress: object = None) -> RawScores:
        shift = int.from_bytes(repr(texts).encode()[-7:]) % 997 * 1e-6 + len(texts) * 1e-4
        return RawScores(super().raw_scores(texts).anomaly_score * 0.5 + shift)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("out", ["out", "out.csv"])
@pytest.mark.parametrize("stops", [[1], [0, 2, 1], [3, 3], [6]])
def test_rows_are_scored_in_the_same_company_wherever_a_job_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, out: str, stops: list[int]
) -> None:
    monkeypatch.setattr("strays.tables.lines.ROWS_AT_ONCE", 4)  # what is read at once is no chunk
    source = write(tmp_path / f"in.{kind}", [*rows(40), {"id": "none", "text": ""}, *rows(27, "more")])
    for calls in stops:
        with pytest.raises(Stop):
            run(source, tmp_path / out, stopping(ByBatch(), calls), part_rows=9)
    if (gone := tmp_path / "out" / f"in-00000.{kind}").exists():
        gone.unlink()  # a part in the midst is made again alone
    run(source, tmp_path / out, ByBatch(), part_rows=9)
    (tmp_path / "whole").mkdir()
    run(source, tmp_path / "whole" / out, ByBatch(), part_rows=9)
    expected = everything_in(tmp_path / "whole")
    found = {name: data for name, data in everything_in(tmp_path).items() if name in expected}
    assert {n: d for n, d in found.items() if NAME not in n} == {n: d for n, d in expected.items() if NAME not in n}


# ---- a damaged manifest ----------------------------------------------------------------------------------------------


def test_a_flipped_bit_in_a_manifest_is_refused_or_repaired(tmp_path: Path) -> None:
    came = flip_bits(tmp_path, 40, seed=3)
    assert set(came) == {"refused", "repaired"}


def test_the_committed_run_of_flipped_bits_found_nothing() -> None:
    result = json.loads((RESULTS / "attacks_manifest_bits.json").read_text())
    assert result["cases"] == 1000
    assert set(result["came"]) <= {"refused", "repaired", "same"}
