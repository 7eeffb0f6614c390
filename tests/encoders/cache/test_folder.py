from __future__ import annotations

from pathlib import Path

import pytest

from strays.encoders.cache import cache_folder, cache_size, clear, size_in_words
from strays.encoders.cache.folder import CONTENTS, ENCODERS, sizes
from strays.errors import UsageError
from strays.files import REMOVED


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("STRAYS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "strays"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "strays"


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("0", 0),
        ("0GB", 0),
        ("500MB", 500 * 10**6),
        ("500 mb", 500 * 10**6),
        (" 8GB ", 8 * 10**9),
        ("8g", 8 * 10**9),
        ("1.5G", 1_500_000_000),
        ("2GiB", 2 * 2**30),
        ("1T", 10**12),
        ("123456789", 123456789),
        ("123456789B", 123456789),
        ("", 4 * 10**9),
    ],
)
def test_sizes_as_people_write_them(monkeypatch: pytest.MonkeyPatch, given: str, size: int) -> None:
    monkeypatch.setenv("STRAYS_CACHE_SIZE", given)
    assert cache_size() == size


@pytest.mark.parametrize(
    "given", ["much", "-1GB", "8XB", "1e9", "nan", "GB", "8 G B", "٣GB", "8iB", "1,5GB", "9" * 400]
)
def test_what_is_no_size_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("STRAYS_CACHE_SIZE", given)
    with pytest.raises(UsageError, match=r"STRAYS_CACHE_SIZE is .*; expected a size such as 500MB or 8GB, or 0"):
        cache_size()


@pytest.mark.parametrize("given", ["1", "9MB", "17TB", "9" * 20])
def test_sizes_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("STRAYS_CACHE_SIZE", given)
    with pytest.raises(UsageError, match="expected 10MB to 16TB, or 0"):
        cache_size()


def test_clearing_removes_what_is_ours_and_nothing_else(tmp_path: Path) -> None:
    for name in (*CONTENTS, f"{REMOVED}{'0' * 32}", "photos", f"{REMOVED}photos"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_bytes(bytes(100))
    (tmp_path / "letter.txt").write_text("dear")
    assert sizes(tmp_path) == dict.fromkeys(CONTENTS, 100)
    assert clear(tmp_path) == 100 * len(CONTENTS)  # what was fetched stays
    theirs = [f"{REMOVED}photos", "letter.txt", "photos"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*theirs, ENCODERS]
    assert (clear(tmp_path), clear(tmp_path, encoders=True)) == (0, 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == theirs
    assert clear(tmp_path, encoders=True) == clear(tmp_path / "nowhere") == 0


def test_sizes_in_words() -> None:
    words = [size_in_words(n) for n in (0, 999, 1000, 2_340_000, 4 * 10**9, 10**13)]
    assert words == ["0 bytes", "999 bytes", "1.0 kB", "2.3 MB", "4.0 GB", "10.0 TB"]
