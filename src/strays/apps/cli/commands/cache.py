"""strays cache: what is kept on disk so that no text is encoded twice."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from strays.apps.cli import options as opt


def cache_info(as_json: opt.Json = False) -> None:
    """Show where the cache is, its size and limit, and what it holds."""
    from strays.apps.cli import terminal
    from strays.encoders.cache import EmbeddingCache

    found = EmbeddingCache().info()
    if as_json:
        terminal.print_json(found.to_dict())
    else:
        terminal.show_facts(found.to_words(), str(found.folder or "no folder"))


def cache_clear(
    encoders: Annotated[
        bool, Option("--encoders", help="Remove the encoders that were fetched, too: they must be fetched again.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Empty the cache; the next job encodes its texts again. Encoders that were fetched stay."""
    from strays.apps.cli import terminal
    from strays.encoders.cache import EmbeddingCache, cache_folder, clear, size_in_words

    freed, folder = clear(encoders=encoders), cache_folder()
    if as_json:
        terminal.print_json({"folder": None if folder is None else str(folder), "bytes_freed": freed})
    elif folder is None:
        terminal.say("The cache is off, by STRAYS_CACHE.")
    else:
        terminal.say(f"{size_in_words(freed)} freed in {folder}.")
        if left := EmbeddingCache().info().n_bytes:
            terminal.say(f"Kept: encoders that were fetched ({size_in_words(left)}); --encoders removes them, too.")
