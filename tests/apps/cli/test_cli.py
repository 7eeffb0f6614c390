"""The commands as a user calls them, on a tiny encoder; errors by their exit code and message."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

from strays.apps.cli import app, cache, main
from tests.conftest import farm_texts

SPAM = ["win big cash now click here", "free cash win now", "click here to win free cash", "cash cash cash now"]
COMMANDS = ["scan", "fit", "score", "explain", "evaluate", "report", "review", "serve", "study", "encoders", "info"]
CACHE_COMMANDS = ["info", "clear"]


@dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def strays(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args: object, stdin: bytes | None = None) -> Ran:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as exit_:
            main([str(arg) for arg in args])
        captured = capfd.readouterr()
        return Ran(exit_.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [{"id": f"{i:03}", "text": text, "label": "normal"} for i, text in enumerate(farm_texts(80))]
    rows += [{"id": f"x{i}", "text": text, "label": "anomaly"} for i, text in enumerate(SPAM)]
    rows.insert(10, {"id": "empty", "text": "  ", "label": ""})
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, ["id", "text", "label"])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def model(file: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> Path:
    folder = file.parent / "model"
    ran = strays("fit", file, "--model", folder, "--encoder", tiny_bert, "--label-column", "label")
    assert ran.code == 0, ran.err
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---- each command does its job ---------------------------------------------------------------------------------------


def test_scan_shows_the_oddest_rows(file: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    ran = strays("scan", file, "--encoder", tiny_bert, "--top", 5)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"The 5 oddest of 85 rows in {file}"
    assert len(lines) == 7
    assert "1 rows without a text passed through unscored" in ran.err


def test_scan_learns_from_known_anomalies_and_marks_them(
    file: Path, tiny_bert: Path, strays: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "known.txt").write_text(f"{SPAM[0]}\nan anomaly that is in no row\n")
    ran = strays("scan", file, "--encoder", tiny_bert, "--known", tmp_path / "known.txt", "--json", "--top", 100)
    report = json.loads(ran.out)
    assert report["detector"] == "auto"
    assert report["fitted_on"]["n_anomaly"] == 2
    assert [row["row"] for row in report["oddest"] if row["label"]] == [82]
    assert len(report["oddest"]) == 84
    scores = [row["anomaly_score"] for row in report["oddest"]]
    assert scores == sorted(scores, reverse=True)


def test_scan_writes_all_rows_with_its_scores(file: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    out = file.parent / "out.csv"
    ran = strays("scan", file, "--encoder", tiny_bert, "--out", out, "--json", "--top", 3, "--flag-rate", 0.1)
    assert ran.code == 0, ran.err
    rows = rows_of(out)
    assert [row["id"] for row in rows] == [row["id"] for row in rows_of(file)]
    assert sum(row["flagged"] == "true" for row in rows) == 8  # a tenth of 84 texts
    oddest = json.loads(ran.out)["oddest"][0]
    assert float(rows[oddest["row"] - 1]["anomaly_score"]) == oddest["anomaly_score"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "tsv", "csv.gz"])
def test_score_keeps_every_column_and_the_order(
    file: Path, model: Path, strays: Callable[..., Ran], ending: str
) -> None:
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


def test_scored_parquet_has_types_and_nulls(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
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


def test_score_agrees_with_the_python_face(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    from strays import TextOutlierDetector

    out = file.parent / "out.csv"
    strays("score", file, "--model", model, "--out", out, "--max-false-alarms", 0.2)
    rows = [row for row in rows_of(out) if row["anomaly_score"]]
    scored = TextOutlierDetector.load(model).set_threshold(max_false_alarms=0.2).score([row["text"] for row in rows])
    assert [float(row["anomaly_score"]) for row in rows] == pytest.approx(scored.anomaly_score.tolist(), rel=1e-5)
    assert [row["flagged"] == "true" for row in rows] == scored.flagged.tolist()


def test_score_top_flags_exactly_so_many(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    out = file.parent / "out.csv"
    ran = strays("score", file, "--model", model, "--out", out, "--top", 7, "--json")
    told = json.loads(ran.out)
    assert told.pop("rows_per_second") > 0
    counts = {"n_rows": 85, "n_without_text": 1, "n_flagged": 7, "n_files": 1, "n_parts": 1}
    assert told == {"out": str(out), **counts, "n_resumed_rows": 0, "n_remade": 0, "ignored": []}
    rows = [row for row in rows_of(out) if row["anomaly_score"]]
    flagged = sorted((float(row["anomaly_score"]) for row in rows if row["flagged"] == "true"), reverse=True)
    assert flagged == sorted((float(row["anomaly_score"]) for row in rows), reverse=True)[:7]


def test_score_writes_parts_and_goes_on(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    (file.parent / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        (file.parent / "in" / name).write_bytes(file.read_bytes())
    (file.parent / "in" / "notes.md").touch()
    command = ["score", file.parent / "in", "--model", model, "--out", file.parent / "out", "--part-rows", 50]
    first = strays(*command)
    assert first.code == 0, first.err
    assert "170 rows to" in first.err
    assert "4 parts of 2 files, checked: as many rows out as in" in first.err
    assert "1 files of other kinds were left out: notes.md" in first.err
    assert "all 170 rows were in" in strays(*command).err
    (file.parent / "out" / "a-00000.csv").unlink()
    ran = strays(*command)
    assert "120 of them scored before" in ran.err
    assert "1 parts of the earlier run were gone" in ran.err
    refused = strays(*command, "--top", 5)
    assert (refused.code, "this one has top=5" in refused.err) == (2, True)
    told = json.loads(strays(*command, "--top", 5, "--restart", "--json").out)
    assert (told["n_parts"], told["n_flagged"], told["n_resumed_rows"]) == (4, 5, 0)
    assert strays("score", "-", "--model", model, "--out", f"{file.parent}/new/", stdin=b"a").code == 2


def test_a_stopped_score_says_how_to_go_on(
    file: Path, model: Path, strays: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("strays.model.TextOutlierDetector.anomaly_score", stop)
    ran = strays("score", file, "--model", model, "--out", file.parent / "out.csv")
    assert (ran.code, "the same command goes on" in ran.err) == (130, True)


def test_sigterm_stops_a_score_as_ctrl_c_does_and_then_ends_the_process(
    file: Path, model: Path, strays: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))  # stands for the end
    try:
        monkeypatch.setattr(
            "strays.model.TextOutlierDetector.anomaly_score",
            lambda *_, **__: signal.raise_signal(signal.SIGTERM),
        )
        ran = strays("score", file, "--model", model, "--out", file.parent / "out.csv")
        assert ran.err == "stopped; the same command goes on from what is finished\n"
        assert ended == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_false_share_looks_at_the_whole_file(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
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


def test_stdin_to_stdout(model: Path, strays: Callable[..., Ran]) -> None:
    ran = strays("score", "-", "--model", model, "--out", "-", stdin=b"the cat sleeps\nwin cash now\n")
    assert [json.loads(line)["text"] for line in ran.out.splitlines()] == ["the cat sleeps", "win cash now"]
    ran = strays("score", "-", "--model", model, "--out", "-", stdin=b'id,text\n1,"a cat, a dog"\n')
    assert ran.out.splitlines()[0] == "id,text,anomaly_score,p_value,flagged"
    ran = strays("score", "-", "--model", model, "--out", "-", "--format", "tsv", stdin=b"n\twords\n1\tthe cat\n")
    assert ran.out.startswith("n\twords\tanomaly_score")


def test_evaluate_gives_the_papers_metrics(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    ran = strays("evaluate", file, "--model", model, "--label-column", "label", "--json")
    result = json.loads(ran.out)
    assert result["metrics"]["n"] == 84
    assert result["metrics"]["n_anomalies"] == 4
    assert 0.9 < result["metrics"]["auc"] <= 1
    assert set(result["metrics"]) >= {"map", "recall_at_5", "auc", "fpr_at_80_tpr"}
    words = strays("evaluate", file, "--model", model, "--label-column", "label").out
    assert "MAP" in words
    assert "Recall@5" in words


def test_info_and_fit_say_what_a_model_is(model: Path, strays: Callable[..., Ran], tiny_bert: Path) -> None:
    info = json.loads(strays("info", model, "--json").out)
    assert info["encoder"]["name"] == str(tiny_bert)
    counts = {"n_texts": 84, "n_normal": 80, "n_anomaly": 4, "n_unlabelled": 0, "n_held_out": 80, "n_folds": 10}
    assert info["fitted_on"] == counts
    words = " ".join(strays("info", model).out.split())
    assert info["detector"]["says"] in words
    assert "80 normal or unlabelled texts, in 10 turns, for p-values down to 0.012" in words


def test_explain_shows_words_and_neighbours(model: Path, strays: Callable[..., Ran], monkeypatch) -> None:
    text = f"{farm_texts(1)[0]}, {SPAM[0]}"
    ran = strays("explain", "--model", model, text)
    assert ran.code == 0
    for words in ("what raises the score", "presumed normal most like it", "known anomalies most like it", "p-value"):
        assert words in ran.out
    told = json.loads(strays("explain", text, "--model", model, "--json").out)
    assert told["text"] == text
    assert told["segments"][0].keys() == {"start", "end", "text", "effect"}
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))
    assert json.loads(strays("explain", "-", "--model", model, "--json").out) == told


def test_scan_writes_a_report_beside_the_ranking(file: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    page = file.parent / "report.html"
    ran = strays("scan", file, "--encoder", tiny_bert, "--report", page, "--top", 3)
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 5
    assert f"The report is {page}" in ran.err
    html = page.read_text()
    assert html.count('<li class="card') == 50
    assert "No text has a label" in html


def test_report_fits_on_the_file_or_takes_a_model(
    file: Path, model: Path, tiny_bert: Path, strays: Callable[..., Ran]
) -> None:
    page, labels = file.parent / "report.html", ("--label-column", "label")
    ran = strays(
        "report", file, "--out", page, "--encoder", tiny_bert, *labels, "--top", 5, "--title", "Farm & co", "--json"
    )
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    assert (facts["n_rows"], facts["n_without_text"], len(facts["oddest"])) == (85, 1, 5)
    assert (facts["quality"]["by"], facts["fitted_here"]) == ("models fitted without the text", True)
    assert "map" not in facts
    assert "<h1><bdi>Farm &amp; co</bdi></h1>" in page.read_text()
    ran = strays("report", file, "--out", page, "--model", model, *labels, "--flag-rate", 0.1, "--json")
    facts = json.loads(ran.out)
    evaluated = json.loads(strays("evaluate", file, "--model", model, *labels, "--json").out)
    assert facts["quality"]["metrics"] == pytest.approx(evaluated["metrics"])
    assert facts["flagged_are"].startswith("the highest-scoring share 0.1")
    assert "the curves flatter it" in page.read_text()
    ran = strays("report", file, "--out", "-", "--model", model, "--top", 0)
    assert ran.out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--out", "nowhere/page.html"), 1, "there is no folder nowhere; make it first"),
        (("--out", "."), 1, "is a folder; expected the name of a file"),
        (("--out", "texts.csv"), 2, "is the input itself"),
        (
            ("--out", "page.html", "--model", "m", "--known", "k", "--max-length", 9),
            2,
            "--model and --known, --max-len",
        ),
        (("--out", "page.html", "--label-column", "nope"), 1, "there is no column 'nope'"),
        (("--out", "page.html", "--flag-rate", 3), 2, "must be between 0 and 1"),
    ],
)
def test_report_refuses_before_the_work(
    file: Path, strays: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, options: tuple, code: int, says: str
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setattr("strays.model.TextOutlierDetector._encode", lambda *_: pytest.fail("went to work"))
    ran = strays("report", "texts.csv", *options)
    assert ran.code == code
    assert says in ran.err
    assert not (file.parent / "page.html").exists()


def test_a_report_and_rows_need_files_of_their_own(file: Path, strays: Callable[..., Ran]) -> None:
    ran = strays("scan", file, "--report", file.parent / "a.csv", "--out", file.parent / "a.csv")
    assert (ran.code, "the rows are written there too" in ran.err) == (2, True)


def test_fit_keeps_no_texts_where_none_are_wanted(
    file: Path, tiny_bert: Path, strays: Callable[..., Ran], tmp_path: Path
) -> None:
    model = tmp_path / "silent"
    assert strays("fit", file, "--model", model, "--encoder", tiny_bert, "--keep-examples", 0).code == 0
    assert "most like it" not in strays("explain", "--model", model, SPAM[0]).out


def test_encoders_are_listed(strays: Callable[..., Ran]) -> None:
    assert set(json.loads(strays("encoders", "--json").out)) == {"default", "bert", "fast"}
    assert "BERT-base-cased" in strays("encoders").out


def test_cache_is_shown_and_cleared(own_cache: Path, strays: Callable[..., Ran]) -> None:
    from strays.encoders.cache import EmbeddingCache

    assert json.loads(strays("cache", "info", "--json").out)["bytes"] == 0
    assert "0 bytes freed" in strays("cache", "clear").err
    EmbeddingCache().put("f" * 64, farm_texts(30), np.ones((30, 8), np.float32))
    (own_cache / "strays-models" / "one").mkdir(parents=True)
    (own_cache / "strays-models" / "one" / "weights").write_bytes(bytes(1000))
    (own_cache / "diary.txt").write_text("not ours")
    told = json.loads(strays("cache", "info", "--json").out)
    assert told["folder"] == str(own_cache)
    assert told["embeddings"] == {"f" * 64: 30}
    assert told["max_bytes_of_embeddings"] == 4 * 10**9
    assert told["sizes"]["strays-models"] == 1000
    assert told["bytes"] == sum(told["sizes"].values())
    words = strays("cache", "info").out
    for expected in ("30 embeddings", "4.0 GB of embeddings", "1.0 kB"):
        assert expected in words
    ran = strays("cache", "clear", "--json")
    assert json.loads(ran.out) == {"folder": str(own_cache), "bytes_freed": told["bytes"]}
    assert [path.name for path in own_cache.iterdir()] == ["diary.txt"]
    assert not EmbeddingCache().get("f" * 64, farm_texts(30))[0].any()


def test_fit_replaces_an_older_model(file: Path, model: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    ran = strays("fit", file, "--model", model, "--encoder", tiny_bert, "--detector", "lof", "--seed", 3)
    assert ran.code == 0
    assert json.loads(strays("info", model, "--json").out)["detector"]["name"] == "lof"


# ---- called wrongly, or given what cannot be done --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["scan", "none.csv"], 1, "none.csv: no such file"),
        (["scan", "texts.csv", "--text-column", "txt"], 1, "no column 'txt'"),
        (["scan", "texts.csv", "--label-column", "lbl"], 1, "no column 'lbl'"),
        (["scan", "texts.csv", "--label-column", "id"], 1, "row 1: the label in column 'id' is '000'"),
        (["scan", "texts.csv", "--detector", "svdd"], 2, "no detector is called 'svdd'"),
        (["scan", "texts.csv", "--pooling", "max"], 2, "error: --pooling is 'max'; expected"),
        (["scan", "texts.csv", "--precision", "int4"], 2, "error: --precision is 'int4'; expected"),
        (["scan", "texts.csv", "--max-length", "2"], 2, "error: --max-length is 2; expected"),
        (["scan", "texts.csv", "--known", "none.txt"], 1, "none.txt: no such file"),
        (["scan", "texts.csv", "--strict"], 1, "row 11: there is no text"),
        (["scan", "texts.csv", "--out", "texts.csv"], 2, "is the input itself"),
        (["scan", "texts.csv", "--out", "out.txt"], 2, "cannot write txt"),
        (["scan", "texts.csv", "--out", "no/folder/out.csv"], 1, "there is no folder no/folder"),
        (["scan", "texts.csv", "--seed", "-1"], 2, "--seed"),
        (["scan", "texts.csv", "--device", "toaster"], 2, "device 'toaster' cannot be used here"),
        (["scan"], 2, "Missing argument"),
        (["scan", "texts.csv", "--no-such-option"], 2, "No such option"),
        (["scan", "texts.csv", "--format", "xls"], 2, "no such format"),
        (["fit", "texts.csv"], 2, "--model"),
        (["score", "texts.csv", "--model", "none", "--out", "o.csv"], 1, "no such model folder"),
        (["info", "none"], 1, "no such model folder"),
        (["dance"], 2, "No such command"),
        (["cache", "dance"], 2, "No such command"),
    ],
)
def test_errors_say_what_and_exit_with_1_or_2(
    file: Path,
    strays: Callable[..., Ran],
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(file.parent)
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    encoder = ["--encoder", tiny_bert] if args[0] in ("scan", "fit") and len(args) > 1 else []
    ran = strays(*args, *encoder)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before


RULES = ["max_false_alarms", "max_false_share", "flag_rate"]
FLAGGING = {
    "scan": RULES,
    "fit": RULES,
    "score": [*RULES, "top"],
    "report": RULES,
    "serve": RULES,
}


def test_the_commands_that_flag_are_those() -> None:
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        assert {p.name for p in command.params} & set(RULES) == set(FLAGGING.get(name, [])) - {"top"}


@pytest.mark.parametrize(("command", "rule"), [(name, rule) for name, rules in FLAGGING.items() for rule in rules])
def test_a_threshold_that_cannot_be_is_told_by_its_option(
    file: Path, strays: Callable[..., Ran], command: str, rule: str
) -> None:
    """Also before anything is looked at: there is no such model or encoder."""
    call = [command] if command == "serve" else [command, file]
    call += ["--encoder", "none/such"] if command in ("scan", "fit", "report") else []
    call += ["--model", file.parent / "none"] if command in ("fit", "score", "serve") else []
    call += ["--out", file.parent / "out.html"] if command in ("report", "score") else []
    option = f"--{rule.replace('_', '-')}"
    bad = ["-1"] if rule == "top" else ["2", "-0.5", "nan", "inf"]
    for value in bad:
        ran = strays(*call, option, value)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: {option} is {value}"), ran.err
        assert not re.search(r"\w_\w", ran.err)
    other = next(other for other in RULES if other != rule)
    ran = strays(*call, option, 1, f"--{other.replace('_', '-')}", 0.1)
    assert (ran.code, ran.out) == (2, "")
    assert re.match(r"error: got --[\w-]+ and --[\w-]+; expected at most one of --max-false-alarms, ", ran.err), ran.err
    assert ("--top" in ran.err) == (command == "score")
    assert not re.search(r"\w_\w", ran.err)


def test_warnings_and_what_a_cascade_cannot_are_told_by_options(
    file: Path, tiny_bert: Path, strays: Callable[..., Ran]
) -> None:
    fit = ("fit", file, "--model", file.parent / "m", "--encoder", tiny_bert, "--cascade", "--max-false-share", 0.001)
    ran = strays(*fit)
    assert ran.code == 0, ran.err
    assert "warning: --max-false-share=0.001 is finer than" in ran.err
    assert "or use --flag-rate" in " ".join(ran.err.split())
    score = ("score", file, "--model", file.parent / "m", "--out", file.parent / "out.csv")
    ran = strays(*score)
    assert ran.code == 0, ran.err
    assert "allow a larger share, or use --max-false-alarms" in " ".join(ran.err.split())
    score = (*score, "--cascade")
    for rule, options in (("--max-false-share", ()), ("--top", ("--top", 3))):
        ran = strays(*score, *options)
        assert ran.code == 2
        assert f"error: {rule} looks at the scores of all texts" in ran.err
        assert "use --max-false-alarms or --flag-rate" in " ".join(ran.err.split())
    ran = strays(*score, "--flag-rate", 0.1, "--recall", 2)
    assert (ran.code, "error: --recall is 2; must be strictly between 0 and 1" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("text,label\na,anomaly\nb,anomaly\nc,anomaly\n", "all 3 texts are labelled anomaly"),
        ("text,label\na,\n", "got 1 texts"),
        ("text,label\na,\nb,\n", "got 2 texts"),
        ("text,label\na,\na,\na,\na,\n", "1 of them normal or unlabelled and different"),
        ("text,label\n,\n ,\n", "no row has a text in column 'text'"),
        ("text,label\na,odd\nb,\n", "row 1: the label in column 'label' is 'odd'"),
    ],
)
def test_corpora_that_cannot_be_fitted(
    tmp_path: Path, strays: Callable[..., Ran], tiny_bert: Path, rows: str, message: str
) -> None:
    (tmp_path / "t.csv").write_text(rows)
    model = tmp_path / "m"
    ran = strays("fit", tmp_path / "t.csv", "--model", model, "--label-column", "label", "--encoder", tiny_bert)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert not model.exists()


def test_a_file_that_was_scored_already_is_not_scored_over(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    out = file.parent / "out.csv"
    strays("score", file, "--model", model, "--out", out)
    ran = strays("score", out, "--model", model, "--out", file.parent / "again.csv")
    assert ran.code == 1
    assert "already has a column 'anomaly_score'" in ran.err


def test_an_error_late_in_the_file_leaves_no_output(file: Path, model: Path, strays: Callable[..., Ran]) -> None:
    rows = "text\n" + "".join(f"{text}\n" for text in farm_texts(300) * 10)
    (file.parent / "late.csv").write_bytes(rows.encode() + b"caf\xe9\n")
    ran = strays("score", file.parent / "late.csv", "--model", model, "--out", file.parent / "out.csv")
    assert ran.code == 1
    assert "late.csv, line 3002: byte 0xe9 is not UTF-8" in ran.err
    assert not (file.parent / "out.csv").exists()


def test_strange_texts_are_scored(model: Path, tmp_path: Path, strays: Callable[..., Ran]) -> None:
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


def test_hostile_texts_cannot_reach_the_terminal(tmp_path: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    texts = [*farm_texts(20), "\x1b]0;owned\x07 \x1b[2J", "\u202etxet desrever", "[red]not markup[/red]", "a\rb\nc"]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = strays("scan", tmp_path / "t.jsonl", "--encoder", tiny_bert, "--top", 30).out
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)
    assert "[red]not markup[/red]" in out
    assert "a b c" in out


def test_a_warning_is_a_line_not_a_traceback(tmp_path: Path, tiny_bert: Path, strays: Callable[..., Ran]) -> None:
    (tmp_path / "t.txt").write_text("\n".join(f"肝硬化是什么病 {chr(97 + i % 26)}" for i in range(26)))
    ran = strays("scan", tmp_path / "t.txt", "--encoder", tiny_bert)
    assert ran.code == 0
    assert "warning: most of these texts are in Chinese script" in ran.err
    assert "UserWarning" not in ran.err


# ---- studies ---------------------------------------------------------------------------------------------------------


def test_study_shows_tables_keeps_rows_and_writes_the_page(tmp_path: Path, strays: Callable[..., Ran]) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'strays[study]'")
    ran = strays("study", "case-2", "case-3", "--out", tmp_path / "rows", "--page", tmp_path / "page.md")
    assert ran.code == 0
    assert "case-2: 200 draws" in ran.out
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["case-2.jsonl", "case-3.jsonl"]
    page = (tmp_path / "page.md").read_text()
    assert "### II. Three maps" in page
    (tmp_path / "page.md").unlink()
    assert strays("study", "--out", tmp_path / "rows", "--page", tmp_path / "page.md").code == 0
    assert (tmp_path / "page.md").read_text() == page
    as_json = json.loads(strays("study", "case-3", "--out", tmp_path / "rows", "--json").out)
    assert as_json["case-3"][0]["header"] == ["centre", "mean (deviation)"]


def test_a_stopped_study_says_that_its_rows_are_kept(
    tmp_path: Path, strays: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from strays.studies.paper import cases

    def stop_at_the_third(draw: int) -> dict:
        if draw == 2:
            raise KeyboardInterrupt
        return {"blind": 1.0, "blind_without_anomalies": 1.0, "taught": 0.5}

    monkeypatch.setattr(cases.CASES[2], "compute", stop_at_the_third)
    ran = strays("study", "case-3", "--out", tmp_path)
    assert (ran.code, "the same command goes on from there" in ran.err) == (130, True)
    assert len((tmp_path / "case-3.jsonl").read_text().splitlines()) == 2


def test_study_lists_and_refuses(tmp_path: Path, strays: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRAYS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "tuning-5.2-yelp" in strays("study", "--list").out
    assert "5.3" in json.loads(strays("study", "--list", "--json").out)
    for args, code, words in (
        ([], 2, "which study? Expected all, or some of 5.1,"),
        (["5.9"], 2, "no study is called '5.9'"),
        (["5.1"], 2, "Name it with --data or the environment variable STRAYS_DATA"),
        (["5.1", "--data", "nowhere"], 2, "nowhere: no such folder"),
        (["5.1", "--data", "."], 1, "which holds the corpus of 5.1"),
        (["case-1", "--page", "page.html"], 2, "ends in .md"),
        (["--page", "page.md"], 2, "study holds no rows to make a page of"),
    ):
        ran = strays("study", *args)
        assert (ran.code, words in ran.err) == (code, True), ran.err
    assert list(tmp_path.iterdir()) == []


# ---- the whole program -----------------------------------------------------------------------------------------------


def test_help_and_import_load_neither_torch_nor_transformers() -> None:
    program = """
import sys
import strays
from strays.apps.cli import main
for args in (["--help"], ["scan", "--help"], ["--version"], ["encoders"]):
    try:
        main(args)
    except SystemExit:
        pass
loaded = {"torch", "transformers", "sklearn"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_the_installed_command_runs() -> None:
    command = [sys.executable, "-m", "strays", "--version"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("strays ")


@pytest.mark.parametrize("command", [*COMMANDS, *(f"cache {name}" for name in CACHE_COMMANDS)])
def test_every_command_and_option_has_help(command: str, strays: Callable[..., Ran]) -> None:
    import typer

    words = command.split()
    ran = strays(*words, "--help")
    assert ran.code == 0
    found = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]
    assert found.help
    for param in found.params:
        assert getattr(param, "help", None), f"{command} {param.name} has no help"


def test_all_commands_are_known_to_these_tests() -> None:
    assert [c.name or c.callback.__name__ for c in app.registered_commands] == COMMANDS
    assert [group.name or group.typer_instance.info.name for group in app.registered_groups] == ["cache"]
    assert [c.name for c in cache.registered_commands] == CACHE_COMMANDS
