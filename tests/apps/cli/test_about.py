"""What commands say of a model and a text, and of what there is: evaluate, explain, info, cache."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.apps.cli.conftest import SPAM, Run
from tests.conftest import farm_texts

RULES = ("max_false_alarms", "max_false_share", "flag_rate", "top")


def test_evaluate_gives_the_papers_metrics(file: Path, model: Path, strays: Run) -> None:
    ran = strays("evaluate", file, "--model", model, "--label-column", "label", "--json")
    result = json.loads(ran.out)
    assert result["metrics"]["n"] == 84
    assert result["metrics"]["n_anomalies"] == 4
    assert 0.9 < result["metrics"]["auc"] <= 1
    assert set(result["metrics"]) >= {"map", "recall_at_5", "auc", "fpr_at_80_tpr"}
    words = strays("evaluate", file, "--model", model, "--label-column", "label").out
    assert "MAP" in words
    assert "Recall@5" in words


def test_evaluate_says_where_the_model_was_fitted_on_the_same_texts(
    file: Path, model: Path, strays: Run, tmp_path: Path
) -> None:
    call = ("--model", model, "--label-column", "label")
    assert json.loads(strays("evaluate", file, *call, "--json").out)["fitted_on_these"]
    assert "the figures too good" in " ".join(strays("evaluate", file, *call).out.split())
    shared = [(text, "normal") for text in farm_texts(30)]  # some texts of another file may be the same
    rows = [*shared, *((f"a calf {i} runs", "normal") for i in range(30)), (SPAM[0], "anomaly")]
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in rows))
    assert not json.loads(strays("evaluate", tmp_path / "new.jsonl", *call, "--json").out)["fitted_on_these"]


def test_evaluate_says_what_thresholds_would_find(file: Path, model: Path, strays: Run) -> None:
    call = ("evaluate", file, "--model", model, "--label-column", "label")
    result = json.loads(strays(*call, "--top", 6, "--json").out)
    chosen = result["chosen"]
    assert (chosen["rule"], chosen["value"], chosen["flagged"]) == ("top", 6, 6)
    assert (chosen["found"] + chosen["missed"], chosen["false_alarms"] + chosen["passed"]) == (4, 80)
    assert result["thresholds"][-1] == chosen
    values = {rule: [t["value"] for t in result["thresholds"] if t["rule"] == rule] for rule in RULES}
    assert values["max_false_alarms"] == [0.02, 0.05, 0.1]  # 80 held-out texts cannot tell 0.01
    for rule in RULES:
        flagged = [t["flagged"] for t in result["thresholds"] if t["rule"] == rule]
        assert flagged == sorted(flagged)
    for one in result["thresholds"]:
        assert one["flagged"] == one["found"] + one["false_alarms"]
        assert one["recall"] == one["found"] / 4
    table = strays(*call, "--flag-rate", 0.03).out
    assert "--max-false-share" in table
    assert "0.03 *" in table
    usual = json.loads(strays(*call, "--max-false-alarms", 0.05, "--json").out)
    assert sum(t == usual["chosen"] for t in usual["thresholds"]) == 1


def test_evaluate_tells_normals_that_are_unlike_those_fitted_on(model: Path, strays: Run, tmp_path: Path) -> None:
    rows = [(text, "normal") for text in (*farm_texts(60), *(f"interest rates rise {i} again" for i in range(40)))]
    lines = [json.dumps({"text": text, "label": label}) for text, label in (*rows, (SPAM[0], "anomaly"))]
    (tmp_path / "drift.jsonl").write_text("\n".join(lines))
    call = ("evaluate", tmp_path / "drift.jsonl", "--model", model, "--label-column", "label")
    assert 0.2 < json.loads(strays(*call, "--json").out)["normals_beyond_chance"]["low"] < 0.4
    assert "odder than those the model was fitted on" in " ".join(strays(*call).out.split())


def test_info_and_fit_say_what_a_model_is(model: Path, strays: Run, tiny_bert: Path) -> None:
    info = json.loads(strays("info", model, "--json").out)
    assert info["encoder"]["name"] == str(tiny_bert)
    counts = {"n_texts": 84, "n_normal": 80, "n_anomaly": 4, "n_unlabelled": 0, "n_held_out": 80, "n_folds": 10}
    assert info["fitted_on"] == counts
    words = " ".join(strays("info", model).out.split())
    assert info["detector"]["says"] in words
    assert "80 normal or unlabelled texts, in 10 turns, for p-values down to 0.012" in words


def test_explain_shows_words_and_neighbours(model: Path, strays: Run, monkeypatch) -> None:
    text = f"{farm_texts(1)[0]}, {SPAM[0]}"
    ran = strays("explain", "--model", model, text)
    assert ran.code == 0
    for words in ("what raises the score", "presumed normal most like it", "known anomalies most like it", "p-value"):
        assert words in ran.out
    told = json.loads(strays("explain", text, "--model", model, "--json").out)
    assert told["text"] == text
    assert told["segments"][0].keys() == {"start", "end", "text", "effect", "strength"}
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))
    assert json.loads(strays("explain", "-", "--model", model, "--json").out) == told


def test_a_cache_that_is_off_is_said_to_be(strays: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    assert "off, by STRAYS_CACHE" in " ".join(strays("cache", "info").out.split())
    assert json.loads(strays("cache", "info", "--json").out)["folder"] is None
    assert "off" in strays("cache", "clear").err
    assert list(tmp_path.iterdir()) == []


def test_cache_is_shown_and_cleared(own_cache: Path, strays: Run) -> None:
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
