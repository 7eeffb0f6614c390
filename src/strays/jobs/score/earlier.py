"""Jobs that earlier versions of strays began: their manifests have another name and format, and no digests."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from strays import __version__
from strays.errors import StraysWarning, UsageError
from strays.files import lock, replace_file, sha256
from strays.jobs.score.chunks import WrittenChunk
from strays.jobs.score.entries import (
    FORMAT_VERSION,
    KeptScores,
    chunk_line,
    parse,
    read_entries,
    to_chunk,
    to_line,
    unusable,
)
from strays.jobs.score.manifest import NAME, SCORES, SORTING, UPGRADED_FROM

# What versions up to the development of 0.2 called their files.
EARLIER_NAME, EARLIER_SCORES, EARLIER_SORTING = "manifest.jsonl", ".scores.f64", "sorting"
EARLIER_FORMATS = (1, 2)


def is_begun(folder: Path) -> bool:
    """Whether a job of this or an earlier version was begun in a folder."""
    return any(os.path.lexists(folder / name) for name in (NAME, EARLIER_NAME))


def upgrade(folder: Path, *, estimates: bool, in_output: bool = True) -> None:
    """Replace the manifest of an earlier version by one of this, so that the job can be resumed.

    A part counts as written if it has the size that was recorded. Scores that the first format kept do not say which
    model they are from, so that they are made again where that is to be told (`estimates`).
    """
    older = folder / EARLIER_NAME
    if not os.path.lexists(older):
        return
    if os.path.lexists(folder / NAME):
        _finish(folder / NAME, older)
        return
    if older.is_symlink() or not older.is_file():
        raise unusable(older, "is not a manifest of strays; move it away")
    with older.open("r+b") as file:
        if not lock(file):
            raise UsageError(
                f"{folder}: another process is writing this output; wait for it, or choose another {{out}}", param="out"
            )
        header, done = _read(file.read(), older)
        version = header.pop("strays_version", None)
        if header.pop("strays_job") == 1 and estimates:
            done = [chunk for chunk in done if not isinstance(chunk, KeptScores)]
        if any(isinstance(chunk, KeptScores) for chunk in done) and (folder / EARLIER_SCORES).exists():
            (folder / EARLIER_SCORES).rename(folder / SCORES)
        if not in_output and (folder / EARLIER_SORTING).is_dir():
            (folder / EARLIER_SORTING).rename(folder / SORTING)
        if version != __version__:
            words = (
                f"{folder}: was begun by strays {version}; what that has scored is kept, and may differ in last digits"
            )
            warnings.warn(StraysWarning(words), stacklevel=2)
        now = {"strays_job": FORMAT_VERSION, "strays_version": __version__}
        with replace_file(folder / NAME) as new:
            new.write(to_line(now | header | {UPGRADED_FROM: sha256(older)}))
            new.writelines(map(chunk_line, done))
        older.unlink()


def _finish(manifest: Path, older: Path) -> None:
    """Remove the older manifest of a process that was killed before it did so; any other file of this name stays."""
    header = parse(manifest.read_bytes().partition(b"\n")[0]) or {}
    if UPGRADED_FROM in header and older.is_file() and header[UPGRADED_FROM] == sha256(older):
        read_entries(manifest.read_bytes(), manifest)
        older.unlink()


def _read(data: bytes, path: Path) -> tuple[dict[str, Any], list[KeptScores | WrittenChunk]]:
    """The header and the chunks of a manifest of an earlier format."""
    first, *lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1] or [b""]
    header = parse(first)
    if header is None or type(header.get("strays_job")) is not int:
        raise unusable(path, "is not a manifest of strays; move it away")
    if header["strays_job"] not in EARLIER_FORMATS:
        raise unusable(path, f"was written in format {header['strays_job']}, which this version does not know", 1)
    done = []
    for number, line in enumerate(lines, 2):
        entry = parse(line)
        if entry is None:
            raise unusable(path, "is damaged; remove the folder", number)
        if entry.get("kind") == "scores" and type(entry.get("rows")) is int:
            entry.setdefault("bytes", 8 * entry["rows"])
        elif entry.get("kind") == "part":
            entry["sha256"] = _digest(path.parent, entry)
        done.append(to_chunk(entry, path, number))
    return header, done


def _digest(folder: Path, entry: dict[str, Any]) -> str:
    """The digest of a part that is there and as long as recorded; none of any other, which is then no part."""
    try:
        path = folder / str(entry["out"])
        return sha256(path) if path.stat().st_size == entry["bytes"] else ""
    except (KeyError, OSError, ValueError):
        return ""
