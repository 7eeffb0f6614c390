"""Copies at the desk: equal texts are asked about once, of near copies one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.apps.review.conftest import LocalDesk, ids, make_desk, queue, work
from tests.conftest import farm_texts

STRAY = "win big cash now click here"
# To an encoder that reads words in any order they are one text.
ALIKE = [STRAY, "click here now win big cash", "here now click cash big win"]


def test_one_verdict_counts_for_all_rows_of_a_text(open_local: Callable[..., LocalDesk], tmp_path: Path) -> None:
    file = tmp_path / "farm.csv"
    file.write_text("\n".join(["text", STRAY, *farm_texts(60), *[STRAY] * 9]))
    desk = open_local(file)
    [item] = desk.get("texts", search=STRAY)["items"]
    assert (item["n_rows"], item["rows"]) == (10, [1, *range(62, 71)])

    def asked() -> list[int]:
        return ids(desk.get("queue", client="a", n=100))

    def exported() -> list[tuple[str, int]]:
        lines = map(json.loads, desk.http.get("/api/export?format=jsonl").text.splitlines())
        return [(line["label"], line["n_rows"]) for line in lines]

    assert asked().count(item["id"]) == 1
    desk.judge([item["id"]], "anomaly")
    assert item["id"] not in asked()
    assert exported() == [("anomaly", 10)]
    assert desk.get("state")["found"] == 1
    desk.http.post("/api/undo", json={"who": "ada", "client": "a"})
    assert (asked()[0], exported()) == (item["id"], [])
    desk.judge([item["id"]], "anomaly")
    desk.end()
    desk = open_local(file)
    assert (exported(), item["id"] in asked()) == ([("anomaly", 10)], False)


def test_near_copies_are_asked_about_one_after_the_other(tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "farm.strays", [*farm_texts(200), *ALIKE], quick=False)
    scores = desk.snapshot.generation.ranking.anomaly_score
    assert np.ptp(scores[-3:]) < 1e-12
    alike = {201, 202, 203}
    [first] = alike & set(ids(queue(desk, "a", 100)))
    desk.judge([first], "anomaly", "ada", "a")
    assert not alike & set(ids(queue(desk, "a", 50)))
    # Not even where more questions are made before the model has learnt that.
    now = desk.snapshot
    desk.replace_questions(now.generation.with_questions(now.verdicts, desk.learner))
    assert not alike & set(ids(queue(desk, "b", 50)))
    others = [id_ for id_ in ids(queue(desk, "a", 20)) if id_ not in alike][:4]
    desk.judge(others, "normal", "ada", "a")
    work(desk)
    assert desk.snapshot.generation.number == 1
    assert alike & set(ids(queue(desk, "c", 100)))
    # Where nothing else is left, all of them are asked about.
    desk.judge(set(range(1, 201)), "normal", "ada", "a")
    assert set(ids(queue(desk, "c", 5))) == alike - {first}
