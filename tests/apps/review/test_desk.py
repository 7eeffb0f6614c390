"""The desk without a server: what is asked, what is learnt, what stays where it was."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strays.apps.review.desk import Desk
from strays.apps.review.project import UnknownTextError
from strays.apps.review.questions import WHY, Question
from strays.apps.review.queue import LEASE_SECONDS
from strays.apps.review.refit import RefitWorker
from strays.apps.review.store import LabelStore
from strays.apps.review.views import item as shown
from strays.errors import UsageError
from tests.apps.review.conftest import ids, make_desk, queue, state, wait, work
from tests.conftest import farm_texts


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path / "farm.strays")


@pytest.fixture(autouse=True)
def oddest_first(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, bool]]]:
    """Questions in the order of the scores, and the answers that were given; questions.py has its own tests."""
    given = []

    def questions(scores: np.ndarray, X: Any, y: Any, open_: np.ndarray, n: int, *, answers: Any, **_: Any) -> Any:
        given.append(answers)
        order = np.argsort(-scores, kind="stable")
        return [Question(int(row), "odd") for row in order[open_[order]][:n]]

    monkeypatch.setattr("strays.apps.review.generation.choose_questions", questions)
    return given


def test_a_fresh_desk_asks_for_the_oddest_first(desk: Desk) -> None:
    asked = queue(desk, "a", 3)
    assert (asked["generation"], asked["left"], ids(asked)) == (0, 40, [1, 2, 3])
    first = asked["items"][0]
    assert first["why"] == {"kind": "odd", "words": WHY["odd"]}
    assert (first["rank"], first["rows"], first["n_rows"], first["label"], first["given"]) == (1, [1], 1, None, None)
    assert (first["text"], first["length"]) == (farm_texts(1)[0], len(farm_texts(1)[0]))


def test_judged_texts_are_not_asked_again_and_skipped_ones_last(desk: Desk) -> None:
    desk.judge([1], "normal", "ada", "a")
    desk.judge([2], "skip", "ada", "a")
    assert ids(queue(desk, "a", 3)) == [3, 4, 5]
    desk.judge([2 + i for i in range(2, 39)], "normal", "ada", "a")
    assert ids(queue(desk, "a", 5)) == [3, 2]
    assert queue(desk, "a", 5)["left"] == 2
    desk.judge([3], "skip", "ada", "a")
    assert ids(queue(desk, "a", 5)) == [2, 3]  # the one skipped longest ago first
    desk.judge([2], "skip", "ada", "a")
    assert ids(queue(desk, "a", 5)) == [3, 2]
    desk.judge([2, 3], "anomaly", "ada", "a")
    assert queue(desk, "a", 5) == {"generation": 0, "items": [], "left": 0}


def test_given_labels_are_learnt_and_not_asked(tmp_path: Path) -> None:
    texts = farm_texts(10)
    desk = make_desk(tmp_path / "x.strays", texts, given={texts[0]: "anomaly", texts[3]: "normal"})
    assert desk.learner.learnt == [["anomaly", None, None, "normal", *[None] * 6]]
    assert 1 not in ids(queue(desk, "a", 20))
    now = state(desk)
    assert (now["given"], now["found"], now["judged"]["anomaly"]) == ({"normal": 1, "anomaly": 1}, 1, 0)
    desk.judge([1], "normal", "ada", "a")  # people know better
    assert (desk.snapshot.verdicts.labels[0], state(desk)["found"]) == ("normal", 0)
    desk.judge([4, 5], "normal", "ada", "a")
    assert np.flatnonzero(desk.snapshot.verdicts.searched).tolist() == [0, 4]  # the fourth came with its label
    desk.undo("ada", "a")
    desk.undo("ada", "a")
    desk.judge([1], "skip", "ada", "a")
    assert desk.snapshot.verdicts.labels[0] == "anomaly"
    assert 1 not in ids(queue(desk, "a", 20))


def test_every_five_verdicts_the_model_learns(desk: Desk) -> None:
    for id_ in range(1, 5):
        desk.judge([id_], "normal", "ada", "a")
    desk.judge([40], "skip", "ada", "a")
    work(desk)
    assert (state(desk)["generation"], state(desk)["fresh"]) == (0, 4)
    desk.judge([10], "anomaly", "ada", "a")
    work(desk)
    now = state(desk)
    assert (now["generation"], now["fresh"], now["learnt"]["n_labels"]) == (1, 0, 5)
    assert shown(desk.snapshot, 10)["rank"] == 1  # the one after the anomaly, as this learner has it


def test_a_refit_changes_only_what_comes_behind(desk: Desk) -> None:
    shown = ids(queue(desk, "a", 10))[:2]
    desk.judge([30, 31, 32, 33, 34], "anomaly", "ada", "map")
    work(desk)
    asked = queue(desk, "a", 10)
    assert asked["generation"] == 1
    assert ids(asked)[:3] == [*shown, 35]
    assert ids(queue(desk, "new", 1)) == [35]  # the two before are a's
    judged = desk.judge([shown[0]], "normal", "ada", "a")
    assert judged["n"] == 1
    assert ids(queue(desk, "a", 10))[0] == shown[1]


def test_verdicts_given_while_a_fit_runs_count_for_the_next(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = desk.learner.learn

    def slow(labels: list[str | None], searched: Any) -> Any:
        if len(desk.learner.learnt) == 1:
            desk.judge([6, 7], "normal", "ada", "a")
            assert state(desk)["refitting"]
        return learn(labels, searched)

    monkeypatch.setattr(desk.learner, "learn", slow)
    desk.judge([1, 2, 3, 4, 5], "normal", "ada", "a")
    work(desk)
    assert (state(desk)["fresh"], state(desk)["generation"], len(desk.learner.learnt)) == (2, 1, 2)
    desk.judge([8, 9, 10], "normal", "ada", "a")
    work(desk)
    assert desk.learner.learnt[-1].count("normal") == 10


def test_undo_is_the_callers_own_and_of_a_group_at_once(desk: Desk) -> None:
    desk.judge([1, 2, 3], "anomaly", "ada", "a")
    desk.judge([1], "normal", "bob", "b")
    assert desk.undo("ada", "a") == {"ids": [1, 2, 3], "verdict": "anomaly", "text": farm_texts(1)[0]}
    assert state(desk)["judged"] == {"normal": 1, "anomaly": 0, "skipped": 0}
    assert desk.undo("ada", "a") is None
    assert desk.undo("bob", "") is None
    assert state(desk)["people"] == [{"who": "bob", "n": 1}]
    assert desk.undo("robert", "b")["ids"] == [1]  # the same tab, whatever its person is called now
    assert desk.snapshot.verdicts.labels == [None] * 40


def test_an_undone_text_comes_back_first(desk: Desk) -> None:
    first = ids(queue(desk, "a", 5))
    desk.judge([first[0]], "anomaly", "ada", "a")
    queue(desk, "a", 5)
    desk.undo("ada", "a")
    assert ids(queue(desk, "a", 5)) == first


def test_what_was_learnt_and_undone_is_unlearnt_at_once(desk: Desk) -> None:
    desk.judge([1, 2, 3, 4], "anomaly", "ada", "a")
    desk.judge([5], "anomaly", "ada", "a")
    work(desk)
    desk.undo("ada", "a")
    work(desk)
    assert desk.learner.learnt[-1] == ["anomaly"] * 4 + [None] * 36
    desk.judge([6], "anomaly", "ada", "a")
    desk.undo("ada", "a")  # never learnt, so that there is nothing to unlearn
    work(desk)
    assert (len(desk.learner.learnt), state(desk)["fresh"]) == (3, 0)


def test_a_fit_that_fails_keeps_the_ranking_and_says_so(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "x.strays", farm_texts(6))
    desk.judge([1, 2, 3, 4, 5, 6], "anomaly", "ada", "a")
    work(desk)
    now = state(desk)
    assert "all texts are labelled anomaly" in now["trouble"]
    assert (now["generation"], now["refitting"], now["fresh"]) == (0, False, 0)
    work(desk)
    assert len(desk.learner.learnt) == 2  # not tried again before something changes
    desk.undo("ada", "a")
    work(desk)
    assert (state(desk)["trouble"], state(desk)["generation"]) == (None, 1)


def test_a_project_in_which_all_is_judged_anomaly_opens(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "x.strays", farm_texts(6))
    desk.judge(list(range(1, 7)), "anomaly", "ada", "a")
    again = make_desk(tmp_path / "x.strays", farm_texts(6))
    assert "all texts are labelled anomaly" in state(again)["trouble"]
    assert state(again)["found"] == 6


def test_another_process_is_seen(desk: Desk) -> None:
    other = make_desk(desk.store.path)
    other.judge([1, 2, 3, 4, 5], "normal", "bob", "b")
    assert ids(queue(desk, "a", 2)) == [6, 7]
    assert state(desk)["judged"]["normal"] == 5
    work(desk)
    assert state(desk)["generation"] == 1
    assert other.undo("bob", "b")["ids"] == [1, 2, 3, 4, 5]
    assert state(desk)["judged"]["normal"] == 0


def test_two_clients_get_different_texts_until_a_lease_ends(tmp_path: Path) -> None:
    now = [0.0]
    desk = make_desk(tmp_path / "x.strays", clock=lambda: now[0])
    a, b = ids(queue(desk, "a", 10)), ids(queue(desk, "b", 10))
    # What a looks at is not for b, but what comes later in a's queue may be: a tab that was closed holds back little.
    assert (a[:3], b[:3]) == ([1, 2, 3], [3, 4, 5])
    assert ids(queue(desk, "a", 10))[:4] == [1, 2, 5, 6]
    now[0] += LEASE_SECONDS - 1
    assert ids(queue(desk, "b", 10)) == b
    now[0] += 2
    later = ids(queue(desk, "b", 20))
    assert later[:2] == b[:2]
    assert set(a) <= set(later)


def test_a_verdict_remembers_what_the_model_said_and_why_it_was_asked(desk: Desk) -> None:
    item = queue(desk, "a", 5)["items"][1]
    desk.judge([item["id"], 30], "anomaly", "ada", "a")
    (event,) = LabelStore(desk.store.path).events()
    assert event.judgements[item["id"]].p_value == item["p_value"]
    assert event.judgements[item["id"]].anomaly_score == item["anomaly_score"]
    assert event.judgements[item["id"]].why == "odd"
    assert event.judgements[30].why is None  # nobody asked about it
    assert shown(desk.snapshot, item["id"] - 1)["why"]["kind"] == "odd"


def test_what_each_kind_of_question_found_is_told_to_the_next(desk: Desk, oddest_first: list) -> None:
    asked = ids(queue(desk, "a", 6))
    desk.judge(asked[:2], "anomaly", "ada", "a")
    desk.judge([asked[2], 30], "normal", "ada", "a")  # nobody had asked about 30
    desk.judge(asked[3:4], "skip", "ada", "a")
    desk.judge(asked[4:6], "anomaly", "ada", "a")
    desk.undo("ada", "a")
    desk.judge([31], "normal", "ada", "a")
    work(desk)
    assert oddest_first[0] == []
    assert oddest_first[-1] == [("odd", True), ("odd", True), ("odd", False)]


def test_questions_that_run_short_are_made_anew(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "x.strays", farm_texts(300), every=1000)
    desk.judge(list(range(1, 96)), "normal", "ada", "map")
    assert ids(queue(desk, "a", 10)) == list(range(96, 106))  # by rank, where there are no questions left
    work(desk)
    assert len(desk.snapshot.generation.questions) == 100
    assert desk.snapshot.generation.number == 0
    assert desk.snapshot.generation.questions[0].place == 95


def test_the_estimate_of_what_is_hidden_follows_the_verdicts(desk: Desk) -> None:
    assert state(desk)["hidden"] is None
    assert state(desk)["no_estimate"].startswith("it takes 20 verdicts")
    asked = ids(queue(desk, "a", 30))
    desk.judge(asked[:10], "anomaly", "ada", "a")
    desk.judge(asked[10:], "normal", "ada", "a")
    work(desk)
    assert set(state(desk)["hidden"]) == {"estimate", "low", "high"}
    assert state(desk)["no_estimate"] is None


def test_unknown_texts_are_refused_before_anything_is_written(desk: Desk) -> None:
    with pytest.raises(UnknownTextError, match="no text has the id 41"):
        desk.judge([1, 41], "normal", "ada", "a")
    with pytest.raises(UsageError, match="ids is empty"):
        desk.judge([], "normal", "ada", "a")
    assert desk.store.events() == []


def test_the_worker_fits_in_its_own_thread_and_stops(desk: Desk) -> None:
    worker = RefitWorker(desk)
    worker.start()
    desk.judge([1, 2, 3, 4, 5], "normal", "ada", "a")
    wait(lambda: desk.snapshot.generation.number)
    worker.close()
    desk.judge([6, 7, 8, 9, 10], "normal", "ada", "a")
    assert "strays-refits" not in {thread.name for thread in threading.enumerate()}
    assert desk.snapshot.generation.number == 1


def test_a_real_learner_moves_what_is_like_an_anomaly_up(tmp_path: Path) -> None:
    texts = [*farm_texts(60), *(f"{text} cash" for text in farm_texts(5))]
    desk = make_desk(tmp_path / "x.strays", texts, quick=False)
    before = [shown(desk.snapshot, place)["rank"] for place in range(63, 65)]
    desk.judge([61, 62, 63], "anomaly", "ada", "a")
    desk.judge([1, 2], "normal", "ada", "a")
    work(desk)
    assert state(desk)["trouble"] is None
    assert state(desk)["learnt"]["n_labels"] == 5
    assert sum(shown(desk.snapshot, place)["rank"] for place in range(63, 65)) < sum(before)


def test_texts_that_nobody_asked_about_say_nothing_of_the_hidden(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "farm.strays", farm_texts(200))
    for item in queue(desk, "a", 15)["items"]:
        desk.judge([item["id"]], "normal", "ada", "a")
    work(desk)
    asked_about = "it takes 20 verdicts on texts that the desk asked about, and there are 15"
    assert state(desk)["no_estimate"] == asked_about
    desk.judge(range(100, 160), "anomaly", "ada", "map")
    work(desk)
    assert state(desk)["no_estimate"] == asked_about


def test_a_verdict_on_many_can_leave_those_alone_that_have_one(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "p.strays")
    a, b, c, d = desk.project.ids[:4]
    desk.judge([a], "anomaly", "ada", "1")
    desk.judge([b], "skip", "ada", "1")
    done = desk.judge([a, b, c], "normal", "bob", "2", too=False)
    assert (done["n"], done["kept"]) == (2, [a])
    assert desk.snapshot.verdicts.labels[:4] == ["anomaly", "normal", "normal", None]
    last = state(desk)["last_event"]
    assert desk.judge([a, b], "anomaly", "bob", "2", too=False) == {"event": None, "n": 0, "kept": [a, b]}
    assert state(desk)["last_event"] == last
    assert desk.judge([a, d], "normal", "bob", "2")["n"] == 2
    assert desk.snapshot.verdicts.labels[:4] == ["normal"] * 4
    # One undo takes back what was written, and nothing else.
    desk.undo("bob", "2")
    desk.undo("bob", "2")
    assert desk.snapshot.verdicts.labels[:4] == ["anomaly", None, None, None]
