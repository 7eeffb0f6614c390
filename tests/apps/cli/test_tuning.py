"""--tune: what is said of it, and that nothing is half done."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from strays.encoders.runtimes import devices
from strays.model import tuning
from tests.apps.cli.conftest import Run
from tests.conftest import CATS, DEEDS, PLACES, needs_torch


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """280 texts, 40 of which are known for anomalies for no reason that could be found."""
    texts = [f"the {c} {d} {p}" for c in CATS for d in DEEDS for p in PLACES][:280]
    known = np.random.default_rng(0).permutation(280) < 40
    path = tmp_path / "labelled.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text", "label"])
        writer.writerows((text, "anomaly" if odd else "") for text, odd in zip(texts, known, strict=True))
    return path


def test_fit_and_scan_say_when_it_may_help(labelled: Path, tiny_bert: Path, strays: Run, tmp_path: Path) -> None:
    options = ("--label-column", "label", "--encoder", tiny_bert)
    for ran in (strays("fit", labelled, "--model", tmp_path / "m", *options), strays("scan", labelled, *options)):
        assert "The 40 known anomalies, each left out, have an AUC of " in ran.err
        assert "--tune may help, and takes about 1 minute" in ran.err
        assert ("pip install 'strays[torch]'" in ran.err) != devices.has_torch()


@pytest.mark.parametrize("options", [("--detector", "lof"), ("--encoder", "fast"), ()])
def test_it_is_not_said_where_it_cannot_help(
    options: tuple[str, ...], labelled: Path, tiny_bert: Path, strays: Run, tmp_path: Path, default_folder: Path
) -> None:
    if not options:  # 19 known anomalies are too few
        labelled.write_text(labelled.read_text().replace(",anomaly", ",", 21))
    given = ("--label-column", "label", "--encoder", tiny_bert, *options)
    ran = strays("fit", labelled, "--model", tmp_path / "m", *given)
    assert ran.code == 0, ran.err
    assert "--tune" not in ran.err


def test_without_the_extra_nothing_is_done(
    labelled: Path, tiny_bert: Path, strays: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strays.encoders.transformer.has_torch", lambda: False)
    model = tmp_path / "m"
    ran = strays("fit", labelled, "--model", model, "--label-column", "label", "--encoder", tiny_bert, "--tune")
    assert (ran.code, ran.out) == (2, "")
    assert "--tune needs PyTorch and transformers, which are not installed: pip install 'strays[torch]'" in ran.err
    assert not model.exists()


@needs_torch
def test_what_came_of_it_is_said(
    labelled: Path, tiny_bert: Path, strays: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "MOST_STEPS", 3)
    given = ("--label-column", "label", "--encoder", tiny_bert, "--tune")
    monkeypatch.setattr(tuning, "chosen", lambda above: 0.0)
    ran = strays("fit", labelled, "--model", tmp_path / "plain", *given)
    assert "The encoder was not tuned: the AUC of held-out known anomalies is " in ran.err
    monkeypatch.setattr(tuning, "chosen", lambda above: 0.5)
    ran = strays("fit", labelled, "--model", tmp_path / "tuned", *given)
    assert "The encoder was tuned half as far as it could be, on 192 texts and 40 known anomalies" in ran.err
    facts = json.loads(strays("info", tmp_path / "tuned", "--json").out)
    assert facts["tuning"]["share"] == 0.5
    assert "tuned half as far" in strays("info", tmp_path / "tuned").out
    scored = strays("score", labelled, "--model", tmp_path / "tuned", "--out", "-")
    assert scored.code == 0, scored.err


@needs_torch
def test_ctrl_c_leaves_nothing(
    labelled: Path, tiny_bert: Path, strays: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strays.model import tuning_steps

    def stopped(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning_steps, "tune", stopped)
    model = tmp_path / "m"
    ran = strays("fit", labelled, "--model", model, "--label-column", "label", "--encoder", tiny_bert, "--tune")
    assert ran.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["labelled.csv"]
