"""What `strays serve` refuses before it listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from strays.apps.cli import main

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*args: object, token: str | None = None) -> tuple[int, str]:
        monkeypatch.delenv("STRAYS_TOKEN", raising=False)
        if token is not None:
            monkeypatch.setenv("STRAYS_TOKEN", token)
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--port", "0", *map(str, args)])
        return ended.value.code, capfd.readouterr().err

    return run


def test_other_machines_need_a_token(run: Run, model_folder: Path, tmp_path: Path) -> None:
    code, words = run("--model", model_folder, "--host", "0.0.0.0")
    assert code == 2
    assert "token" in words
    code, words = run("--model", model_folder, token="short")
    assert code == 2
    assert "the token in STRAYS_TOKEN has 5 characters" in words
    code, _ = run("--model", model_folder, "--token-file", tmp_path / "none")
    assert code == 2


def test_names_of_hosts(run: Run, model_folder: Path) -> None:
    code, words = run("--model", model_folder, "--host", "no.such.host.example", token="x" * 16)
    assert code == 2
    assert "--host" in words
    code, words = run("--model", model_folder, "--allow-host", "https://odd.example.org")
    assert code == 2
    assert "expected a host name" in words


def test_models_that_are_none(run: Run, model_folder: Path, tmp_path: Path) -> None:
    code, words = run("--model", tmp_path)
    assert code == 1
    assert "config.json is missing" in words
    code, words = run("--model", f"a={model_folder}", "--model", f"a={model_folder}")
    assert code == 2
    assert "two models" in words
    assert "--model NAME=DIR" in words
