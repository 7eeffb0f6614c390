"""The desk as its page uses it: over HTTP, with a tiny encoder, in this process but for the command itself."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import strays.apps.review
from strays.apps.cli import main
from strays.jobs.columns import NormalValues
from strays.tables import open_table
from tests.apps.review.conftest import SPAM, LocalDesk, Served, ids, wait
from tests.conftest import farm_texts

PAGE = Path(strays.apps.review.__file__).parent
OpenLocal = Callable[..., LocalDesk]
HOSTILE = [
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    "\u202ereversed",
    "nul \x00 byte",
    "\x1b[2J escape",
    "🐈 cat, 🐕 dog and the word odd",
    "line\nbreak\rand\ttab",
    "word " * 210_000,
    " " * 6000 + "far behind",
]


def of_one_generation(desk: LocalDesk) -> tuple | None:
    """What is flagged, what is not, and the state, unless a fit has come in between."""
    before = desk.get("state")
    flagged, rest = (desk.get("texts", flagged=value) for value in ("true", "false"))
    return (flagged, rest, before) if desk.get("state")["generation"] == before["generation"] else None


def test_a_session_from_the_first_text_to_the_saved_model(open_local: OpenLocal, farm_csv: Path) -> None:
    desk = open_local(farm_csv, every=3, who="login")
    state = desk.get("state")
    assert (state["n_texts"], state["n_rows"], state["generation"], state["last_event"]) == (64, 65, 0, 0)
    assert state["project"] == f"{farm_csv}.strays"
    spam = [desk.get("texts", search=text.upper())["items"][0]["id"] for text in SPAM]
    double = desk.get("texts", search=farm_texts(1)[0])["items"][0]
    assert (double["n_rows"], double["rows"]) == (2, [1, 65])

    # Two clients are asked different texts; a verdict gives the next ones and what has come of it.
    a, b = desk.get("queue", client="a"), desk.get("queue", client="b", n=5)
    assert len(ids(a)) == 10
    assert len(ids(b)) == 5
    assert not set(ids(a)[:2]) & set(ids(b))
    first = next(id_ for id_ in ids(a) if id_ not in spam)
    done = desk.judge([first], "normal")
    assert (done["event"], done["n"], done["state"]["judged"]["normal"]) == (1, 1, 1)
    assert ids(done["queue"])[:2] == [id_ for id_ in ids(a) if id_ not in (first, *ids(b)[:2])][:2]

    # The model learns, and the queue changes behind what is shown.
    of_map = ids(desk.judge(spam[:3], "anomaly", client="map")["queue"])[:2]
    state = wait(lambda: (s := desk.get("state"))["generation"] > 0 and s)
    assert (state["learnt"]["n_labels"], state["trouble"], state["found"]) == (4, None, 3)
    assert "known" in state["learnt"]["says"]
    queue = desk.get("queue", client="a")
    assert queue["generation"] == state["generation"]
    assert ids(queue)[:2] == [id_ for id_ in ids(done["queue"]) if id_ not in (*spam[:3], *of_map)][:2]

    # Undo is of the caller's last action, a group at once.
    undone = desk.undo(client="map")
    assert (undone["undone"]["ids"], undone["undone"]["verdict"]) == (spam[:3], "anomaly")
    assert undone["state"]["found"] == 0
    assert desk.undo(client="nobody")["undone"] is None
    desk.judge(spam[:3], "anomaly", client="map")

    # A name that was not given is that of the command line; history tells all.
    desk.judge([spam[3]], "skip", who="", client="b")
    events = desk.get("history")["events"]
    assert [(e["verdict"], e["n"], e["who"], e["undone"]) for e in events] == [
        ("skip", 1, "login", False),
        ("anomaly", 3, "ada", False),
        ("anomaly", 3, "ada", True),
        ("normal", 1, "ada", False),
    ]
    assert events[0]["text"] == SPAM[3]
    assert desk.get("history", before=events[1]["event"], limit=1)["events"] == events[2:3]
    past = desk.get(f"texts/{spam[0]}")
    assert past["label"] == "anomaly"
    assert [(e["verdict"], e["undone"]) for e in past["history"]] == [("anomaly", False), ("anomaly", True)]

    # Lists.
    total = {
        label: desk.get("texts", label=label)["total"]
        for label in ("any", "none", "judged", "normal", "anomaly", "skip")
    }
    assert total == {"any": 64, "none": 59, "judged": 4, "normal": 1, "anomaly": 3, "skip": 1}
    assert ids(desk.get("texts", sort="recent", limit=1)) == [spam[3]]
    by_row = desk.get("texts", sort="row", offset=60)["items"]
    assert [item["text"] for item in by_row] == SPAM
    ranks = [item["rank"] for item in desk.get("texts", limit=64)["items"]]
    assert ranks == list(range(1, 65))
    flagged, rest, state = wait(lambda: of_one_generation(desk))
    assert flagged["total"] == state["n_flagged"] == 64 - rest["total"]

    # The map.
    points = wait(lambda: (answer := desk.http.get("/api/map")).status_code == 200 and answer.json())
    assert set(points) == {"generation", "ids", "x", "y", "value", "mark"}
    assert {len(points[key]) for key in ("ids", "x", "y", "value", "mark")} == {64}
    assert all(0 <= v <= 1 for key in ("x", "y", "value") for v in points[key])
    mark = dict(zip(points["ids"], desk.get("map/values")["mark"], strict=True))
    assert [mark[id_] for id_ in spam[:3]] == ["anomaly"] * 3

    # The model is saved beside, and scores other files.
    assert desk.http.post("/api/model", json={}).status_code == 202
    save = wait(lambda: (s := desk.get("state")["save"])["state"] != "working" and s)
    assert (save["state"], save["folder"]) == ("done", f"{farm_csv}.model")
    out = farm_csv.parent / "scored.csv"
    with pytest.raises(SystemExit) as exit_:
        main(["score", str(farm_csv), "--model", save["folder"], "--out", str(out)])
    assert (exit_.value.code, len(out.read_text().splitlines())) == (0, 66)


@pytest.mark.filterwarnings("ignore:.*longer than the encoder")
@pytest.mark.filterwarnings("ignore:.*holds a NUL")
def test_explanations_fit_the_text_as_javascript_counts(open_local: OpenLocal, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*farm_texts(40), *HOSTILE]))
    desk = open_local(file)
    for text in HOSTILE:
        item = next(i for i in desk.get("texts", limit=100)["items"] if i["text"] == text[:20_000])
        assert item["length"] == len(text)
        why = desk.get(f"texts/{item['id']}/why")
        assert len(why["nearest_normals"]) == 3
        units = text.encode("utf-16-le")
        for segment in why["segments"]:
            piece = units[2 * segment["start"] : 2 * segment["end"]].decode("utf-16-le")
            assert piece.strip() == piece != ""
            assert 0 <= segment["effect"] <= 1
        full = desk.http.get(f"/api/texts/{item['id']}/full")
        assert full.content.decode() == text
        assert full.headers["content-type"] == "text/plain; charset=utf-8"
        assert full.headers["content-disposition"].startswith("attachment")
    cat = desk.get("texts", search="🐈")["items"][0]
    pieces = desk.get(f"texts/{cat['id']}/why")["segments"]
    units = cat["text"].encode("utf-16-le")
    shown = [units[2 * s["start"] : 2 * s["end"]].decode("utf-16-le") for s in pieces]
    assert shown == ["🐈 cat,", "🐕 dog and the word odd"]

    # In csv no text is a formula, in jsonl every text is exact.
    desk.judge([item["id"] for item in desk.get("texts", limit=100, sort="row")["items"]][-9:], "anomaly", who="=who")
    (tmp_path / "out.csv").write_bytes(desk.http.get("/api/export").content)
    rows = open_table(str(tmp_path / "out.csv")).read().to_pylist()
    assert [row["text"].lstrip("'") for row in rows] == HOSTILE
    assert rows[0]["text"].startswith("'=")
    assert {row["who"] for row in rows} == {"'=who"}
    lines = [json.loads(line) for line in desk.http.get("/api/export?format=jsonl").text.splitlines()]
    assert [line["text"] for line in lines] == HOSTILE
    assert set(lines[0]) == {"text", "label", "anomaly_score", "p_value", "n_rows", "rows", "who", "at"}


def test_an_export_can_be_fitted_on(open_local: OpenLocal, farm_csv: Path, tiny_bert: Path) -> None:
    desk = open_local(farm_csv)
    items = desk.get("texts", sort="row", limit=100)["items"]
    desk.judge([item["id"] for item in items[:20]], "normal")
    desk.judge([item["id"] for item in items[60:63]], "anomaly")
    desk.judge([items[63]["id"]], "skip")
    for what, format, n in (("judged", "jsonl", 23), ("all", "csv", 64)):
        path, model = farm_csv.parent / f"{what}.{format}", farm_csv.parent / what
        path.write_bytes(desk.http.get("/api/export", params={"what": what, "format": format}).content)
        with pytest.raises(SystemExit) as exit_:
            main(f"fit {path} --label-column label --model {model} --encoder {tiny_bert}".split())
        assert exit_.value.code == 0
        fitted_on = json.loads((model / "config.json").read_text())["summary"]
        assert (fitted_on["n_texts"], fitted_on["n_normal"], fitted_on["n_anomaly"]) == (n, 20, 3)


def test_two_desks_on_one_project_see_each_other(open_local: OpenLocal, farm_csv: Path) -> None:
    one, two = open_local(farm_csv), open_local(f"{farm_csv}.strays", encoder=False)
    id_ = ids(one.get("queue", client="a"))[0]
    one.judge([id_], "anomaly", client="a")
    assert two.get("state")["found"] == 1
    assert two.get(f"texts/{id_}")["label"] == "anomaly"
    assert two.undo(client="a")["undone"]["ids"] == [id_]
    assert one.get("state")["found"] == 0


def test_a_project_is_reopened_alone_and_with_a_changed_file(
    open_local: OpenLocal, farm_csv: Path, tiny_bert: Path, capfd: pytest.CaptureFixture
) -> None:
    desk = open_local(farm_csv)
    items = desk.get("texts", sort="row", limit=100)["items"]
    desk.judge([items[0]["id"], items[60]["id"]], "anomaly")
    desk.end()

    text = farm_csv.read_text()
    farm_csv.rename(farm_csv.with_name("away.csv"))
    alone = open_local(f"{farm_csv}.strays", encoder=False)
    state = alone.get("state")
    assert (state["n_texts"], state["n_rows"], state["found"], state["file"]) == (64, 65, 2, str(farm_csv))
    assert state["learnt"]["n_labels"] == 2
    alone.end()

    gone, new = items[0]["text"], "a text that was not there"
    farm_csv.write_text(text.replace(f"{gone}\n", "") + f"{new}\n")
    changed = open_local(farm_csv, encoder=False)
    state = changed.get("state")
    assert (state["n_texts"], state["n_rows"], state["found"]) == (64, 64, 1)
    assert changed.get("texts", search=gone)["total"] == 0
    assert changed.get("texts", search=new)["items"][0]["rows"] == [64]
    assert changed.http.get(f"/api/texts/{items[0]['id']}").status_code == 404
    assert changed.get("history")["events"][0]["ids"] == [items[0]["id"], items[60]["id"]]
    changed.end()
    farm_csv.write_text(text)  # the verdict on what was gone holds when it comes back
    back = open_local(farm_csv, encoder=False)
    assert back.get(f"texts/{items[0]['id']}")["label"] == "anomaly"
    back.end()

    other = [f"{farm_csv}", "--encoder", str(tiny_bert), "--max-length", "8"]
    for args, words in (
        (other, "was made with the encoder"),
        ([f"{farm_csv}.strays", "--text-column", "text"], "is a project, which has no columns"),
        ([f"{farm_csv}.strays", "--project", "else.strays"], "is a project already"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["review", *args, "--no-browser"])
        assert exit_.value.code == 2
        assert words in capfd.readouterr().err
    with sqlite3.connect(f"{farm_csv}.strays") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(SystemExit) as exit_:
        main(["review", str(farm_csv), "--no-browser"])
    assert exit_.value.code == 1
    assert "format 99 by a newer strays" in capfd.readouterr().err


def test_labels_known_texts_and_a_model_to_start_from(open_local: OpenLocal, tmp_path: Path, tiny_bert: Path) -> None:
    file = tmp_path / "t.csv"
    rows = [(text, "normal" if i < 5 else "") for i, text in enumerate(farm_texts(40))] + [(SPAM[0], "Anomaly ")]
    file.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    with pytest.raises(SystemExit):
        main(f"fit {file} --label-column label --model {tmp_path / 'm'} --encoder {tiny_bert}".split())
    known = [SPAM[1], farm_texts(40)[-1]]
    model = str(tmp_path / "m")
    desk = open_local(file, label_column="label", known=known, model=model, encoder=False)
    state = desk.get("state")
    assert (state["given"], state["n_texts"], state["n_rows"]) == ({"normal": 5, "anomaly": 3}, 42, 41)
    assert desk.get("texts", search=SPAM[1])["items"][0]["rows"] == []
    desk.end()
    again = open_local(f"{file}.strays", encoder=False)  # the model is remembered
    assert again.get("state")["given"] == {"normal": 5, "anomaly": 3}


def test_rows_are_called_by_their_ids(open_local: OpenLocal, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    file, texts = tmp_path / "t.csv", farm_texts(40)
    rows = [(f"Ref-{i}", text, "farm") for i, text in enumerate(texts)]
    rows += [("", SPAM[0], "Spam"), ("<b>x</b>\u202e", texts[0], "FARM "), ("z; 9", texts[1], "")]
    file.write_text("key,text,kind\n" + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    normal = NormalValues("kind", ("farm",))
    desk = open_local(file, id_column="key", normal=normal)
    assert desk.get("state")["given"] == {"normal": 40, "anomaly": 1}
    items = desk.get("texts", sort="row", limit=100)["items"]
    assert [item["names"] for item in items[:3]] == [["Ref-0", "<b>x</b>\u202e"], ["Ref-1", "z; 9"], ["Ref-2"]]
    assert [item["names"] for item in items[40:]] == [[None]]
    for search, found in (("ref-7", [7]), ("<B>X", [0]), ("z; 9", [1]), ("ref-41", [])):
        assert [item["id"] for item in desk.get("texts", search=search)["items"]] == [items[i]["id"] for i in found]
    desk.judge([items[1]["id"], items[40]["id"]], "anomaly")
    assert desk.get("history")["events"][0]["names"] == ["Ref-1", "z; 9"]
    exported = [json.loads(line) for line in desk.http.get("/api/export?format=jsonl").text.splitlines()]
    assert [row["ids"] for row in exported] == [["Ref-1", "z; 9"], [None]]
    (tmp_path / "out.csv").write_bytes(desk.http.get("/api/export").content)
    assert open_table(str(tmp_path / "out.csv")).read().column("ids").to_pylist() == ["Ref-1; z; 9", ""]
    desk.end()

    for again in (open_local(file, encoder=False), open_local(f"{file}.strays", encoder=False)):  # it is remembered
        assert again.get("texts", sort="row")["items"][2]["names"] == ["Ref-2"]
        again.end()
    for option in (("--id-column", "key"), ("--normal", "kind=farm")):
        with pytest.raises(SystemExit) as exit_:
            main(["review", f"{file}.strays", *option, "--no-browser"])
        assert (exit_.value.code, "which has no columns" in capfd.readouterr().err) == (2, True)


@pytest.mark.process
def test_the_command_serves_on_its_port_until_it_is_stopped(
    serve: Callable[..., Served], farm_csv: Path, tiny_bert: Path, capfd: pytest.CaptureFixture
) -> None:
    known = farm_csv.with_name("known.txt")
    known.write_text(f"{SPAM[1]}\n")
    desk = serve(farm_csv, "--every", 3, "--who", "login", "--known", known)
    state = desk.get("state")
    assert (state["project"], state["every"], state["given"]["anomaly"]) == (f"{farm_csv}.strays", 3, 1)
    assert state["save"]["folder"] == f"{farm_csv}.model"
    id_ = ids(desk.get("queue", client="a"))[0]
    desk.judge([id_], "anomaly", who="")
    assert desk.get("history")["events"][0]["who"] == "login"

    # Another process on the same project sees it, and is seen.
    other = serve(f"{farm_csv}.strays", encoder=False)
    assert other.get(f"texts/{id_}")["label"] == "anomaly"
    assert other.undo(who="login")["undone"]["ids"] == [id_]
    assert desk.get("state")["found"] == 1
    other.end()

    port = desk.base.rpartition(":")[2]
    with pytest.raises(SystemExit) as exit_:
        main(["review", str(farm_csv), "--no-browser", "--port", port, "--encoder", str(tiny_bert)])
    captured = capfd.readouterr()
    assert (exit_.value.code, captured.out) == (2, "")
    assert f"port {port} cannot be used (Address already in use)" in captured.err
    code, rest, err = desk.end()
    assert (code, rest) == (130, "")
    assert "Traceback" not in err
    assert not any(text in err for text in farm_texts(60))
    assert desk.token not in err
    again = serve(farm_csv, "--port", port)
    assert again.base == f"http://127.0.0.1:{port}"
    assert httpx.get(again.link).status_code == 200


def test_what_is_called_wrongly(tmp_path: Path, tiny_bert: Path, capfd: pytest.CaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("text\na\nb\nc\nd\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    for args, code, words in (
        (["none.csv"], 1, "none.csv: no such file"),
        (["-"], 2, "texts from stdin need a file"),
        ([tmp_path / "t.csv", "--project", tmp_path / "t.csv"], 1, "is not a project of strays review"),
        ([tmp_path / "t.csv", "--detector", "svdd"], 2, "no detector is called 'svdd'"),
        ([tmp_path / "t.csv", "--model", tmp_path / "none"], 1, "no such model folder"),
        ([tmp_path / "t.csv", "--encoder", tmp_path / "folder"], 1, "holds no model"),
        ([tmp_path / "t.csv", "--save-model", tmp_path / "folder"], 1, "with other things in it"),
        ([tmp_path / "t.csv", "--every", 0], 2, "--every"),
        ([tmp_path / "t.csv", "--port", 70000], 2, "--port"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["review", *map(str, args), "--no-browser"])
        assert (exit_.value.code, words in (err := capfd.readouterr().err)) == (code, True), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "t.csv"]


def test_a_missing_extra_is_answered_with_the_command(
    farm_csv: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(SystemExit) as exit_:
        main(["review", str(farm_csv)])
    assert exit_.value.code == 1
    assert "pip install 'strays[review]'" in capfd.readouterr().err
    assert not Path(f"{farm_csv}.strays").exists()


def test_no_script_of_the_page_can_make_markup_of_a_text() -> None:
    files = [*PAGE.glob("*.js"), PAGE / "page.html"]
    assert len(files) > 10
    for path in files:
        code = path.read_text(encoding="utf-8")
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "http://",
            "https://",
        ):
            assert way not in code.replace("http://www.w3.org/2000/svg", ""), f"{path.name} has {way}"
        assert not re.search(r"\son\w+=|style=", code) or path.suffix == ".js", "the page's policy forbids these"


@pytest.mark.skipif(sys.platform == "win32", reason="another idea of modes")
@pytest.mark.parametrize(("mode", "made"), [(0o600, 0o600), (0o644, 0o640), (0o664, 0o660)])
def test_a_project_is_no_more_open_than_its_file(open_local: OpenLocal, farm_csv: Path, mode: int, made: int) -> None:
    """It holds all the texts, and so does its log."""
    farm_csv.chmod(mode)
    before = os.umask(0o002)
    try:
        open_local(farm_csv)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in farm_csv.parent.glob(f"{farm_csv.name}.strays*")}
    assert modes == dict.fromkeys([f"{farm_csv.name}.strays{what}" for what in ("", "-wal", "-shm")], made)
