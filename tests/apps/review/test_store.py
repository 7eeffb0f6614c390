"""The project file: nothing that was said is lost, and everything that was said counts as it should."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strays.apps.review.history import History, Judgement
from strays.apps.review.store import Entry, LabelStore
from strays.errors import DataError, UsageError

TEXTS = ["a", "b", "c", "d"]
PEOPLE = [("ada", "tab 1"), ("ada", "tab 2"), ("bob", "tab 1")]


def entries(*texts: str) -> list[Entry]:
    return [Entry(text, 1, (row,)) for row, text in enumerate(texts, 1)]


@pytest.fixture
def store(tmp_path: Path) -> LabelStore:
    store = LabelStore(tmp_path / "x.strays")
    store.put_texts(entries(*TEXTS))
    return store


def history_of(store: LabelStore) -> History:
    return History().add(store.events())


def standing(store: LabelStore) -> dict[int, str]:
    return {id_: event.verdict for id_, event in history_of(store).standing(store.texts()).items()}


def test_ids_stay_with_their_texts_and_go_with_their_column(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "y.strays")
    named = [Entry("a", 2, (1, 3), ids=("k1", None)), Entry("b", 1, (2,), ids=("k2\ud800",))]
    store.put_texts(named)
    assert list(store.texts().values()) == named
    store.put_texts(entries("a", "b"))
    assert [entry.ids for entry in store.texts().values()] == [(), ()]


def test_a_project_of_the_first_format_gets_ids_and_sums(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "y.strays")
    store.put_texts(entries("a", "b"))
    store.close()
    with sqlite3.connect(tmp_path / "y.strays") as db:
        db.execute("ALTER TABLE texts DROP COLUMN ids")
        db.execute("DROP TABLE sums")
        db.execute("PRAGMA user_version = 1")
    store = LabelStore(tmp_path / "y.strays")
    assert list(store.texts().values()) == entries("a", "b")
    store.put_texts([Entry("a", 1, (1,), ids=("k1",))])
    store.close()
    store = LabelStore(tmp_path / "y.strays")
    assert [entry.ids for entry in store.texts().values()] == [("k1",)]
    store.close()


class Simple:
    """What the store should say, as plainly as possible: all actions, of which some are struck out."""

    def __init__(self) -> None:
        self.actions: list[dict] = []

    def judge(self, ids: list[int], verdict: str, caller: tuple[str, str]) -> None:
        self.actions.append({"ids": ids, "verdict": verdict, "caller": caller})

    def undo(self, caller: tuple[str, str]) -> bool:
        who, client = caller
        mine = [
            i
            for i, action in enumerate(self.actions)
            if action["caller"][1] == client and (client or action["caller"][0] == who)
        ]
        if mine:
            del self.actions[mine[-1]]
        return bool(mine)

    def standing(self) -> dict[int, str]:
        return {id_: action["verdict"] for action in self.actions for id_ in action["ids"]}


judging = st.tuples(
    st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4, unique=True),
    st.sampled_from(["normal", "anomaly", "skip"]),
)
steps = st.lists(st.tuples(st.sampled_from(PEOPLE), st.none() | judging, st.integers(0, 1)), max_size=25)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_any_sequence_of_verdicts_and_undos_is_as_a_simple_model_says(
    steps: list, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("p") / "x.strays"
    desks = [LabelStore(path), LabelStore(path)]  # two processes' connections
    desks[0].put_texts(entries(*TEXTS))
    simple, seen = Simple(), History()
    for caller, judged, which in steps:
        if judged:
            desks[which].commit_verdict({id_: Judgement() for id_ in judged[0]}, judged[1], *caller)
            simple.judge(*judged, caller)
        else:
            assert (desks[which].commit_undo(*caller) is not None) == simple.undo(caller)
        seen = seen.add(desks[0].events(seen.last))  # taken in bit by bit
    assert standing(desks[1]) == simple.standing()
    assert {id_: event.verdict for id_, event in seen.standing(range(1, 5)).items()} == simple.standing()
    for desk in desks:
        desk.close()
    assert standing(LabelStore(path)) == simple.standing()
    assert len(LabelStore(path).events()) == len(history_of(LabelStore(path)).events) + sum(
        event.verdict == "undo" for event in LabelStore(path).events()
    )


def test_an_event_keeps_who_when_and_what_the_model_said(store: LabelStore) -> None:
    store.commit_verdict({2: Judgement(0.01, 3.5, "odd"), 3: Judgement()}, "anomaly", "ada", "tab")
    store.commit_undo("ada", "tab")
    event, undo = store.events()
    assert event.judgements == {2: Judgement(0.01, 3.5, "odd"), 3: Judgement()}
    assert (event.verdict, event.who, event.client, event.undoes) == ("anomaly", "ada", "tab", None)
    assert event.at.endswith("+00:00")
    assert (undo.verdict, undo.undoes, undo.judgements) == ("undo", event.id, {})
    assert store.events(event.id) == [undo]


@pytest.mark.parametrize(
    "text",
    ["\ud800 half", "nul \x00", "é\u0301\u202e", "👩‍👩‍👧", "x" * 1_000_000, "'; DROP TABLE texts; --", "=1+1", " a "],
)
def test_any_text_comes_back_as_it_went_in(tmp_path: Path, text: str) -> None:
    store = LabelStore(tmp_path / "x.strays")
    store.put_texts(entries(text, "other"))
    store.close()
    assert [entry.text for entry in LabelStore(tmp_path / "x.strays").texts().values()] == [text, "other"]


def test_a_changed_file_keeps_ids_verdicts_and_labels(store: LabelStore) -> None:
    (a, b, *_), before = list(store.texts()), store.texts()
    store.put_texts([Entry("b", 2, (1, 4), "anomaly"), Entry("e", 1, (2,))])
    store.commit_verdict({b: Judgement()}, "normal", "ada", "")
    texts = store.texts()
    assert [entry.text for entry in texts.values()] == ["b", "e"]
    assert texts[b] == Entry("b", 2, (1, 4), "anomaly")
    assert a not in texts
    store.put_texts(entries("a", "b", "c", "d"))
    assert store.texts()[a] == before[a]
    assert store.texts()[b].given == "anomaly"  # once given, it stays
    assert standing(store) == {b: "normal"}


def test_known_texts_stay_shown(store: LabelStore) -> None:
    store.put_texts([*entries("a"), Entry("z", 0, (), "anomaly", known=True)])
    store.put_texts(entries("a", "b"))
    assert [entry.text for entry in store.texts().values()] == ["a", "b", "z"]


def test_settings_are_kept(store: LabelStore) -> None:
    store.set(encoder={"name": "default"}, detector="auto")
    store.set(detector="lof")
    assert store.settings()["encoder"] == {"name": "default"}
    assert store.settings()["detector"] == "lof"


def test_two_threads_and_two_connections_lose_nothing(store: LabelStore) -> None:
    other = LabelStore(store.path)

    def judge(desk: LabelStore, who: str) -> None:
        for i in range(50):
            desk.commit_verdict({1 + i % 4: Judgement()}, "normal", who, "")

    threads = [
        threading.Thread(target=judge, args=(desk, f"{i}")) for i, desk in enumerate((store, store, other, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.id for event in other.events()] == list(range(1, 201))


@pytest.mark.process
def test_another_process_that_closes_the_project_takes_nothing_from_ours(store: LabelStore) -> None:
    """A process that is the last to close the file removes the write-ahead log: ours must be seen to use it."""
    code = (
        "import sys; from strays.apps.review.store import LabelStore\n"
        "store = LabelStore(sys.argv[1]); print(len(store.events())); store.close()"
    )

    def events_elsewhere() -> int:
        return int(subprocess.run([sys.executable, "-c", code, store.path], check=True, capture_output=True).stdout)

    LabelStore(store.path).close()  # nor does a second one in this process
    assert events_elsewhere() == 0
    store.commit_verdict({1: Judgement()}, "normal", "", "")
    assert (events_elsewhere(), len(store.events())) == (1, 1)


def test_what_is_no_verdict_is_refused(store: LabelStore) -> None:
    with pytest.raises(UsageError, match="verdict is 'maybe'; expected one of normal, anomaly, skip"):
        store.commit_verdict({1: Judgement()}, "maybe", "", "")
    with pytest.raises(DataError, match="could not be read or written"):  # half an event is none
        store.commit_verdict({1: Judgement(), 2: Judgement(object())}, "normal", "", "")  # type: ignore[arg-type]
    assert store.events() == []


def test_files_that_are_not_ours_are_refused_and_left_alone(tmp_path: Path) -> None:
    newer, other, table = (tmp_path / name for name in ("newer.strays", "other.db", "table.csv"))
    LabelStore(newer).close()
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 3")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE events (id)")
    table.write_text("text\na\n")
    before = {path: path.read_bytes() for path in (newer, other, table)}
    for path, words in (
        (newer, "format 3 by a newer strays; this one reads up to 2. Update it"),
        (other, "a database of something else"),
        (table, "is not a project of strays review"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "x.strays", "there is no folder"),
    ):
        with pytest.raises(DataError, match=words):
            LabelStore(path)
    assert {path: path.read_bytes() for path in before} == before


def test_a_damaged_file_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.strays"
    store = LabelStore(path)
    store.put_texts(entries(*(f"text {i}" for i in range(1000))))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 : 3 * 4096] = b"\xff" * (2 * 4096)
    path.write_bytes(data)
    with pytest.raises(DataError, match="the project is damaged"):
        LabelStore(path).texts()
