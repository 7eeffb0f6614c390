"""strays score."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.apps.cli.conftest import SPAM, Run, rows_of
from tests.conftest import farm_texts


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "tsv", "csv.gz"])
def test_score_keeps_every_column_and_the_order(file: Path, model: Path, strays: Run, ending: str) -> None:
    from strays.tables import open_table

    out = file.parent / f"out.{ending}"
    ran = strays("score", file, "--model", model, "--out", out)
    assert ran.code == 0, ran.err
    table = open_table(str(out)).read()
    assert table.column_names == ["id", "text", "label", "anomaly_score", "p_value", "flagged"]
    assert table.column("id").to_pylist() == [row["id"] for row in rows_of(file)]
    assert table.column("id").to_pylist()[0] == "000"
    assert "85 rows to" in ran.err
    assert "1 rows without a text" in ran.err


def test_scored_parquet_has_types_and_nulls(file: Path, model: Path, strays: Run) -> None:
    out = file.parent / "out.parquet"
    strays("score", file, "--model", model, "--out", out)
    table = pq.read_table(out)
    assert [str(table.schema.field(name).type) for name in ("anomaly_score", "p_value", "flagged")] == [
        "double",
        "double",
        "bool",
    ]
    empty = table.slice(10, 1).to_pylist()[0]
    assert (empty["anomaly_score"], empty["p_value"], empty["flagged"]) == (None, None, None)
    assert table.column("anomaly_score").null_count == 1


def test_score_agrees_with_the_python_face(file: Path, model: Path, strays: Run) -> None:
    from strays import TextOutlierDetector

    out = file.parent / "out.csv"
    strays("score", file, "--model", model, "--out", out, "--max-false-alarms", 0.2)
    rows = [row for row in rows_of(out) if row["anomaly_score"]]
    scored = TextOutlierDetector.load(model).set_threshold(max_false_alarms=0.2).score([row["text"] for row in rows])
    assert [float(row["anomaly_score"]) for row in rows] == pytest.approx(scored.anomaly_score.tolist(), rel=1e-5)
    assert [row["flagged"] == "true" for row in rows] == scored.flagged.tolist()


def test_score_top_flags_exactly_so_many(file: Path, model: Path, strays: Run) -> None:
    out = file.parent / "out.csv"
    ran = strays("score", file, "--model", model, "--out", out, "--top", 7, "--json")
    told = json.loads(ran.out)
    assert told.pop("rows_per_second") > 0
    counts = {"n_rows": 85, "n_without_text": 1, "n_flagged": 7, "n_files": 1, "n_parts": 1}
    assert told == {"out": str(out), **counts, "n_resumed_rows": 0, "n_remade": 0, "ignored": [], "beyond_chance": None}
    rows = [row for row in rows_of(out) if row["anomaly_score"]]
    flagged = sorted((float(row["anomaly_score"]) for row in rows if row["flagged"] == "true"), reverse=True)
    assert flagged == sorted((float(row["anomaly_score"]) for row in rows), reverse=True)[:7]


def test_score_says_what_share_is_odd_beyond_chance(model: Path, strays: Run, tmp_path: Path) -> None:
    texts = [*farm_texts(60), *(f"interest rates rise {i} again" for i in range(40))]
    (tmp_path / "new.txt").write_text("\n".join(texts))
    call = ("score", tmp_path / "new.txt", "--model", model, "--out", tmp_path / "out.csv")
    found = json.loads(strays(*call, "--json").out)["beyond_chance"]
    assert 0.2 < found["low"] < found["share"] < found["high"] < 0.5
    assert "% of the rows (" in strays(*call).err
    (tmp_path / "new.txt").write_text("\n".join(farm_texts(60)))
    assert "No more rows are odd than among texts like those the model was fitted on" in strays(*call).err


def test_score_writes_parts_and_goes_on(file: Path, model: Path, strays: Run) -> None:
    (file.parent / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        (file.parent / "in" / name).write_bytes(file.read_bytes())
    (file.parent / "in" / "README.md").touch()
    command = ["score", file.parent / "in", "--model", model, "--out", file.parent / "out", "--part-rows", 50]
    first = strays(*command)
    assert first.code == 0, first.err
    assert "170 rows to" in first.err
    assert "4 parts of 2 files; row counts match" in first.err
    assert "1 files of other formats were ignored: README.md" in first.err
    assert "all 170 rows were in" in strays(*command).err
    (file.parent / "out" / "a-00000.csv").unlink()
    ran = strays(*command)
    assert "120 of them scored before" in ran.err
    assert "1 parts of the earlier run were missing" in ran.err
    refused = strays(*command, "--top", 5)
    assert (refused.code, "this one has top=5" in refused.err) == (2, True)
    told = json.loads(strays(*command, "--top", 5, "--restart", "--json").out)
    assert (told["n_parts"], told["n_flagged"], told["n_resumed_rows"]) == (4, 5, 0)
    assert strays("score", "-", "--model", model, "--out", f"{file.parent}/new/", stdin=b"a").code == 2


def test_a_stopped_score_says_how_to_go_on(
    file: Path, model: Path, strays: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("strays.model.TextOutlierDetector.anomaly_score", stop)
    ran = strays("score", file, "--model", model, "--out", file.parent / "out.csv")
    assert (ran.code, "run the same command again to resume" in ran.err) == (130, True)


def test_sigterm_stops_a_score_as_ctrl_c_does_and_then_ends_the_process(
    file: Path, model: Path, strays: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))  # stands for the end
    try:
        monkeypatch.setattr(
            "strays.model.TextOutlierDetector.anomaly_score",
            lambda *_, **__: signal.raise_signal(signal.SIGTERM),
        )
        ran = strays("score", file, "--model", model, "--out", file.parent / "out.csv")
        assert ran.err == "interrupted; run the same command again to resume\n"
        assert ended == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_false_share_looks_at_the_whole_file(file: Path, model: Path, strays: Run) -> None:
    from scipy.stats import false_discovery_control

    (file.parent / "few.txt").write_text("\n".join(farm_texts(10) + SPAM))
    out = file.parent / "out.csv"
    assert strays("score", file.parent / "few.txt", "--model", model, "--out", out, "--max-false-share", 0.5).code == 0
    rows = rows_of(out)
    expected = false_discovery_control([float(row["p_value"]) for row in rows]) <= 0.5 + 1e-9
    assert [row["flagged"] == "true" for row in rows] == expected.tolist()
    assert expected.any()
    ran = strays("fit", file, "--model", file.parent / "m", "--encoder", "none/such/folder", "--max-false-share", 3)
    assert (ran.code, "must be between 0 and 1" in ran.err) == (2, True)


def test_stdin_to_stdout(model: Path, strays: Run) -> None:
    ran = strays("score", "-", "--model", model, "--out", "-", stdin=b"the cat sleeps\nwin cash now\n")
    assert [json.loads(line)["text"] for line in ran.out.splitlines()] == ["the cat sleeps", "win cash now"]
    ran = strays("score", "-", "--model", model, "--out", "-", stdin=b'id,text\n1,"a cat, a dog"\n')
    assert ran.out.splitlines()[0] == "id,text,anomaly_score,p_value,flagged"
    ran = strays("score", "-", "--model", model, "--out", "-", "--format", "tsv", stdin=b"n\twords\n1\tthe cat\n")
    assert ran.out.startswith("n\twords\tanomaly_score")


def test_a_file_that_was_scored_already_is_not_scored_over(file: Path, model: Path, strays: Run) -> None:
    out = file.parent / "out.csv"
    strays("score", file, "--model", model, "--out", out)
    ran = strays("score", out, "--model", model, "--out", file.parent / "again.csv")
    assert ran.code == 1
    assert "already has a column 'anomaly_score'" in ran.err


def test_an_error_late_in_the_file_leaves_no_output(file: Path, model: Path, strays: Run) -> None:
    rows = "text\n" + "".join(f"{text}\n" for text in farm_texts(300) * 10)
    (file.parent / "late.csv").write_bytes(rows.encode() + b"caf\xe9\n")
    ran = strays("score", file.parent / "late.csv", "--model", model, "--out", file.parent / "out.csv")
    assert ran.code == 1
    assert "late.csv, line 3002: byte 0xe9 is not UTF-8" in ran.err
    assert not (file.parent / "out.csv").exists()


def test_strange_texts_are_scored(model: Path, tmp_path: Path, strays: Run) -> None:
    texts = [
        "word " * 210_000,
        "nul \x00 here",
        "🐈 emoji",
        "\u202eright to left שלום",
        "\x1b[31mred\x1b[0m",
        "[bold]markup[/]",
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    ran = strays("score", tmp_path / "t.jsonl", "--model", model, "--out", tmp_path / "o.jsonl")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == texts
    assert all(row["anomaly_score"] is not None for row in rows)
