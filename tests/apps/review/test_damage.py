"""Projects that are damaged, odd or hostile: a clear error, and never other verdicts than were given."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from strays.apps.review.history import Judgement
from strays.apps.review.open_project import last_port, open_desk
from strays.apps.review.store import Entry, LabelStore
from strays.errors import StraysError
from strays.jobs.score import no_bar


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "pile.strays"
    store = LabelStore(path)
    store.put_texts([Entry(f"text {i}", 1, (i,), ids=(f"k{i}",)) for i in range(1, 30)])
    store.set(encoder={"name": "default"}, detector="auto", file="pile.csv", port=8000)
    for text in (3, 4, 5):
        store.commit_verdict({text: Judgement(0.01, 1.5, "odd")}, "anomaly", "ada", "tab")
    store.commit_undo("ada", "tab")
    store.close()
    return path


def change(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE texts SET text = x'00' WHERE id = 7",
        "UPDATE texts SET given = 'normal' WHERE id = 7",
        "UPDATE texts SET n_rows = 2 WHERE id = 7",
        "UPDATE events SET verdict = 'normal' WHERE id = 1",
        "UPDATE events SET who = 'bob' WHERE id = 1",
        "DELETE FROM events WHERE id = 4",
        "DELETE FROM judgements WHERE event = 2",
        "UPDATE judgements SET p_value = 0.02 WHERE event = 1",
        "UPDATE settings SET value = '\"lof\"' WHERE name = 'detector'",
        "DELETE FROM texts WHERE id = 29",
        "UPDATE sums SET total = total + 1 WHERE name = 'events'",
        "DELETE FROM sums WHERE name = 'events'",
    ],
)
def test_any_row_that_is_not_as_it_was_written(project: Path, statement: str) -> None:
    change(project, statement)
    with pytest.raises(StraysError, match=r"the project is damaged .* Put back an earlier copy"):
        LabelStore(project)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder", 5),
        ("encoder", {}),
        ("encoder", {"name": 5}),
        ("encoder", {"name": "default", "more": 1}),
        ("encoder", {"name": "default", "max_length": -1}),
        ("encoder", ["default"]),
        ("detector", "no-such"),
        ("detector", {"a": 1}),
        ("fingerprint", 7),
        ("model", 7),
        ("model", ["x"]),
        ("model", "//host/share"),
        ("model", "a\0b"),
        ("id_column", []),
        ("port", "x"),
        ("port", 10**30),
        ("port", -1),
        ("file", None),
        ("content", {}),
    ],
)
def test_odd_settings_of_somebody_elses(project: Path, name: str, value: object) -> None:
    store = LabelStore(project)
    store.set(**{name: value})
    store.close()
    for use in (lambda: last_port(str(project), None), lambda: open_desk(str(project), progress=no_bar)):
        with pytest.raises(StraysError, match=f"the project is damaged .its setting '{name}' is "):
            use()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE texts SET rows = '{}' WHERE id = 7",
        "UPDATE texts SET rows = 'x' WHERE id = 7",
        "UPDATE texts SET rows = '[\"a\"]' WHERE id = 7",
        "UPDATE texts SET ids = '[1]' WHERE id = 7",
        "UPDATE texts SET text = 'a string' WHERE id = 7",
        "UPDATE texts SET text = x'ff' WHERE id = 7",
        "UPDATE texts SET given = 'odd' WHERE id = 7",
        "UPDATE texts SET n_rows = -1 WHERE id = 7",
        "UPDATE texts SET known = 7 WHERE id = 7",
        "UPDATE events SET verdict = 'maybe' WHERE id = 1",
        "UPDATE events SET verdict = 'undo' WHERE id = 1",
        "UPDATE events SET who = x'ff' WHERE id = 1",
        "UPDATE events SET at = x'00' WHERE id = 1",
        "UPDATE events SET undoes = 4 WHERE id = 3",
        "UPDATE events SET undoes = 99 WHERE id = 4",
        "UPDATE judgements SET event = 99 WHERE event = 2",
        "UPDATE judgements SET text = 999 WHERE event = 2",
        "UPDATE judgements SET p_value = 'low' WHERE event = 2",
        "UPDATE settings SET value = '{' WHERE name = 'port'",
        "UPDATE settings SET value = x'ff' WHERE name = 'port'",
    ],
)
def test_odd_rows_of_somebody_elses(project: Path, default_folder: Path, statement: str) -> None:
    """With sums that are right: whoever changes a project on purpose can make those."""
    change(project, statement, "PRAGMA user_version = 1", "DROP TABLE sums")
    with pytest.raises(StraysError, match="the project is damaged"):
        open_desk(str(project), progress=no_bar)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM texts; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
    ],
)
def test_a_project_brings_nothing_that_runs(project: Path, statement: str) -> None:
    change(project, statement)
    with pytest.raises(StraysError, match="holds more than a project of strays review does"):
        LabelStore(project)


def test_what_is_written_stays_sound(project: Path) -> None:
    for _ in range(3):
        store = LabelStore(project)
        store.commit_verdict({9: Judgement(float("nan"), None, None), 10: Judgement()}, "normal", "b\u00f6b", "")
        store.commit_undo("b\u00f6b", "")
        store.put_texts([Entry("half \ud83d", 1, (1,)), Entry("text 7", 2, (2, 3), "anomaly", known=True)])
        store.set(port=9, more=json.dumps("x"))
        store.close()
    assert len(LabelStore(project).events()) == 10
