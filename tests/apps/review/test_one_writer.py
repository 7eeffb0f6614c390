"""One writer, and snapshots that never mix: whatever threads and processes do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strays.apps.review.desk import Desk
from strays.apps.review.refit import RefitWorker
from strays.apps.review.snapshot import Snapshot
from strays.apps.review.views import queue as queue_view
from strays.apps.review.views import state as state_view
from strays.model.labels import LABELS
from tests.apps.review.conftest import make_desk, state, wait, work
from tests.conftest import farm_texts

SECONDS = 60


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> Iterator[tuple[threading.Event, Any]]:
    """A method that tells when it is entered and waits, inside the block, until it is let go."""
    method, entered, let_go = getattr(owner, name), threading.Event(), threading.Event()

    def waiting(*args: Any, **options: Any) -> Any:
        entered.set()
        assert let_go.wait(SECONDS)
        return method(*args, **options)

    monkeypatch.setattr(owner, name, waiting)
    try:
        yield entered, let_go
    finally:
        let_go.set()


def check(now: Snapshot) -> None:
    """All parts of a snapshot are of one moment."""
    project, verdicts = now.project, now.verdicts
    standing = verdicts.history.standing(project.ids)
    assert dict(verdicts.standing) == {project.place(id_): event for id_, event in standing.items()}
    y = np.zeros(len(project), dtype=int)
    for place, event in verdicts.standing.items():
        y[place] = LABELS.get(event.verdict, 0)
    assert verdicts.y.tolist() == y.tolist()
    assert sum(verdicts.n_judged.values()) == sum(verdicts.n_by.values()) == len(standing)
    assert set(verdicts.skipped) == {place for place, event in verdicts.standing.items() if event.verdict == "skip"}
    if not now.refitting:  # the ranking is that of the labels that were tried
        assert now.generation.ranking.n_labels == np.count_nonzero(now.tried)
    assert now.generation.rank[now.generation.order].tolist() == list(range(1, len(project) + 1))
    shown, asked = state_view(now), queue_view(now, dict.fromkeys(range(5)))
    assert shown["n_open"] == asked["left"] + shown["judged"]["skipped"] - len(verdicts.skipped)
    assert {item["label"] for item in asked["items"]} == {
        standing[id_].verdict if id_ in standing else None for id_ in project.ids[:5]
    }


def judge_many(desk: Desk, who: str, ids: list[int]) -> int:
    """A verdict on each text; every fifth is taken back. How many stand."""
    for i, id_ in enumerate(ids):
        desk.judge([id_], ("normal", "anomaly", "skip")[i % 3], who, who)
        if i % 5 == 4:
            assert desk.undo(who, who)["ids"] == [id_]
    return len(ids) - len(ids) // 5


def test_verdicts_of_many_threads_on_two_desks_are_each_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "x.strays"
    desks = [make_desk(path, farm_texts(200)), make_desk(path, farm_texts(200))]
    share = [list(range(1 + 25 * i, 26 + 25 * i)) for i in range(8)]
    with ThreadPoolExecutor(8) as people:
        n = list(people.map(judge_many, [desks[i % 2] for i in range(8)], [f"person {i}" for i in range(8)], share))
    desks.append(make_desk(path, farm_texts(200)))  # and who opens the project afterwards sees the same
    for desk in desks:
        now = desk.refresh()
        check(now)
        assert dict(now.verdicts.n_by) == {f"person {i}": count for i, count in enumerate(n)}
        assert len(now.verdicts.history.events) == 200
        assert len(now.verdicts.history.undone) == 200 - sum(n)
        assert now.verdicts.labels == desks[0].snapshot.verdicts.labels


def test_readers_see_whole_snapshots_while_people_judge_and_the_model_learns(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "x.strays", farm_texts(100), every=2)
    worker, done, seen = RefitWorker(desk), threading.Event(), []

    def read() -> None:
        while not done.is_set():
            seen.append(desk.refresh())
            check(seen[-1])

    worker.start()
    with ThreadPoolExecutor(4) as people:
        reading = [people.submit(read), people.submit(read)]
        judging = [
            people.submit(judge_many, desk, who, ids) for who, ids in (("a", [*range(1, 51)]), ("b", [*range(51, 101)]))
        ]
        for one in judging:
            one.result(SECONDS)
        done.set()
        for one in reading:
            one.result(SECONDS)
    wait(lambda: not desk.snapshot.is_fit_due and not desk.snapshot.refitting)
    worker.close()
    check(desk.snapshot)
    assert desk.snapshot.generation.number > 1
    assert len({now.verdicts.history.last for now in seen}) > 1
    assert state(desk)["judged"] == {"normal": 28, "anomaly": 26, "skipped": 26}


def test_no_change_overwrites_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path / "x.strays")
    with ThreadPoolExecutor(2) as threads, held(monkeypatch, Snapshot, "add") as (entered, let_go):
        judging = threads.submit(desk.judge, [1], "anomaly", "ada", "a")
        assert entered.wait(SECONDS)
        failing = threads.submit(desk.report_failure, "a fit has failed")
        assert not wait_for([failing], timeout=0.1).done  # it waits for its turn
        let_go.set()
        assert judging.result(SECONDS)["n"] == 1
        failing.result(SECONDS)
    assert (desk.snapshot.trouble, desk.snapshot.verdicts.labels[0]) == ("a fit has failed", "anomaly")


def test_what_one_holds_does_not_change(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "x.strays")
    desk.judge([1], "anomaly", "ada", "a")
    now = desk.snapshot
    before, labels = state_view(now), now.verdicts.labels
    desk.judge([1, 2, 3, 4, 5, 6], "normal", "ada", "a")
    work(desk)
    assert (state_view(now), now.verdicts.labels) == (before, labels)
    assert (desk.snapshot.generation.number, now.generation.number) == (1, 0)
    check(now)
    for array in (now.verdicts.y, now.verdicts.is_open):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_who_reads_does_not_wait_for_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path / "x.strays")
    with ThreadPoolExecutor(1) as person, held(monkeypatch, desk.store, "commit_verdict") as (entered, let_go):
        judging = person.submit(desk.judge, [1], "anomaly", "ada", "a")
        assert entered.wait(SECONDS)
        assert state(desk)["found"] == 0  # what is not on the disk does not count yet
        let_go.set()
        assert judging.result(SECONDS)["n"] == 1
    assert state(desk)["found"] == 1


def test_a_verdict_during_a_fit_does_not_wait_and_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path / "x.strays")
    desk.judge([1, 2, 3, 4, 5], "normal", "ada", "a")
    with ThreadPoolExecutor(1) as worker, held(monkeypatch, desk.learner, "learn") as (entered, let_go):
        fitting = worker.submit(work, desk)
        assert entered.wait(SECONDS)
        desk.judge([6, 7], "anomaly", "bob", "b")
        desk.judge([1], "anomaly", "bob", "b")
        assert (state(desk)["refitting"], state(desk)["found"], state(desk)["fresh"]) == (True, 3, 3)
        let_go.set()
        fitting.result(SECONDS)
    now = desk.snapshot
    assert (now.generation.number, now.generation.ranking.n_labels, now.n_fresh) == (1, 5, 3)
    assert now.verdicts.labels[:7] == ["anomaly", *["normal"] * 4, "anomaly", "anomaly"]
    assert not set(now.generation.why) & {5, 6}  # what was judged meanwhile is not asked


def test_a_verdict_during_a_fit_that_fails_counts_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path / "x.strays")
    learn: Callable[..., Any] = desk.learner.learn

    def fail(labels: Any, searched: Any) -> Any:
        desk.judge([6], "anomaly", "ada", "a")
        raise MemoryError("too little")

    monkeypatch.setattr(desk.learner, "learn", fail)
    desk.judge([1, 2, 3, 4, 5], "normal", "ada", "a")
    work(desk)
    now = desk.snapshot
    assert (now.n_fresh, now.generation.number, now.refitting) == (1, 0, False)
    assert "MemoryError: too little" in now.trouble
    monkeypatch.setattr(desk.learner, "learn", learn)
    desk.judge([7, 8, 9, 10], "normal", "ada", "a")
    work(desk)
    assert (desk.snapshot.generation.ranking.n_labels, desk.snapshot.trouble) == (10, None)


def test_the_worker_survives_what_goes_wrong_beside_a_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = make_desk(tmp_path / "x.strays")
    with ExitStack() as stack:
        worker = RefitWorker(desk)
        stack.callback(worker.close)
        monkeypatch.setattr(desk.store, "checkpoint", lambda: 1 / 0)
        worker.start()
        desk.judge([1], "normal", "ada", "a")
        wait(lambda: "ZeroDivisionError" in (desk.snapshot.trouble or ""))
        monkeypatch.undo()
        desk.judge([2, 3, 4, 5], "normal", "ada", "a")
        wait(lambda: desk.snapshot.generation.number == 1)
        assert desk.snapshot.trouble is None
