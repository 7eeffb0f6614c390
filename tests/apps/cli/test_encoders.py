"""strays encoders: what there is, and getting one onto this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from strays.encoders import fetching, pinned, sources
from tests.apps.cli.conftest import Run


def test_encoders_are_listed_with_where_they_are(strays: Run, default_folder: Path) -> None:
    told = json.loads(strays("encoders", "--json").out)
    assert set(told) == {"default", "bert", "fast"}
    assert told["default"]["folder"] == str(default_folder)
    assert told["default"]["bytes"] > 90_000_000
    assert [told[name]["offline"] for name in ("default", "fast")] == [True, True]
    assert told["fast"]["folder"] is None  # not made yet
    words = " ".join(strays("encoders").out.split())
    assert "BERT-base-cased" in words
    assert re.search(r"384 dimensions \(91.\d MB in /", words)


@pytest.fixture
def tiny_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The default encoder is a tiny one, and not on this machine: it is in a folder that was carried here."""
    files = {}
    for name in pinned.FILES:
        path = tmp_path / "carried" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]" if name == "modules.json" else json.dumps({"file": name}))
        files[name] = pinned.PinnedFile(path.stat().st_size, pinned.digest(path))
    monkeypatch.setattr(pinned, "FILES", files)
    monkeypatch.setattr(sources, "bundled_folder", lambda: None)
    monkeypatch.setattr(sources, "_cached", lambda repo, revision: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    return tmp_path / "carried"


def test_the_default_encoder_is_carried_over(
    tiny_default: Path, own_cache: Path, tmp_path: Path, strays: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ran = strays("encoders", "get", "default")
    assert (ran.code, ran.out) == (1, "")
    assert "strays encoders get default --from FOLDER" in ran.err
    assert "not on this machine; fetched at its first use" in " ".join(strays("encoders").out.split())
    assert json.loads(strays("encoders", "--json").out)["fast"]["offline"] is False
    told = json.loads(strays("encoders", "get", "default", "--from", tiny_default, "--json").out)
    assert told["name"] == "default"
    assert Path(told["folder"]).is_relative_to(own_cache)
    assert json.loads(strays("encoders", "--json").out)["default"]["folder"] == told["folder"]
    ran = strays("encoders", "get", "default", "--to", tmp_path / "on")
    assert (ran.code, ran.out) == (0, "")
    assert f"in {tmp_path / 'on'}" in ran.err
    assert pinned.difference(tmp_path / "on") is None
    ran = strays("encoders", "get", "default", "--to", tmp_path)
    assert (ran.code, "expected a new or empty folder" in ran.err) == (2, True)
    # It is not cleared with what can be made again, unless that is asked for.
    ran = strays("cache", "clear")
    assert "Kept: encoders that were fetched" in ran.err
    assert json.loads(strays("cache", "info", "--json").out)["sizes"].keys() == {"strays-encoders"}
    assert json.loads(strays("cache", "clear", "--encoders", "--json").out)["bytes_freed"] > 0
    assert list(own_cache.iterdir()) == []


def test_a_bar_shows_how_far_a_download_is(strays: Run, tiny_default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal; elsewhere there is the one line."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def bring(folder: Path, progress: Callable[[int, int], None]) -> None:
        progress(5_000_000, 10_000_000)
        fetching.take(tiny_default, folder)

    monkeypatch.setattr(fetching, "_from_hub", bring)
    ran = strays("encoders", "get", "default")
    assert ran.code == 0, ran.err
    assert len(ran.err.splitlines()) == 2
    assert ran.err.startswith("the default encoder (all-MiniLM-L6-v2, 0 MB) is not on this machine; it is fetched once")
    strays("cache", "clear", "--encoders")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "5.0/10.0 MB" in strays("encoders", "get", "default").err


def test_what_get_cannot_do(strays: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = strays("encoders", "get", "bert", "--to", "folder")
    assert (ran.code, "error: --to and --from are for the default encoder" in ran.err) == (2, True)
    ran = strays("encoders", "get", "bert", "--revision", "../main")
    assert (ran.code, "error: --revision is '../main'; expected a commit" in ran.err) == (2, True)
    ran = strays("encoders", "get", "somebody/encoder")
    assert (ran.code, "could not get 'somebody/encoder'" in ran.err) == (1, True)
    monkeypatch.setenv("STRAYS_CACHE", "off")
    ran = strays("encoders", "get", "fast")
    assert (ran.code, "which is off, by STRAYS_CACHE" in ran.err) == (2, True)


def test_a_static_encoder_is_made_ready(strays: Run, tiny_bert: Path, own_cache: Path) -> None:
    told = json.loads(strays("encoders", "get", f"fast:{tiny_bert}", "--json").out)
    assert Path(told["folder"]).is_relative_to(own_cache)
    assert told["bytes"] > 0
