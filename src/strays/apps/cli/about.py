"""Commands that tell what there is: encoders, info, cache info, cache clear."""

from __future__ import annotations

from typing import Annotated

import typer

from strays.apps.cli.common import facts_of, print_json
from strays.apps.cli.options import Json


def encoders(as_json: Json = False) -> None:
    """List the encoders that have names, and say how to use others."""
    from strays.apps.cli import terminal
    from strays.encoders.sources import NAMED, bundled_folder

    there = bundled_folder() is not None
    rows = {
        name: {
            "about": known.about,
            "hub_id": known.repo,
            "revision": known.revision,
            "offline": name in ("default", "fast") and there,
        }
        for name, known in NAMED.items()
    }
    if as_json:
        print_json(rows)
        return
    facts = {
        name: f"{row['about']} ({'installed' if row['offline'] else 'fetched from the hub on first use'})"
        for name, row in rows.items()
    }
    terminal.show_facts(
        facts | {"org/name": "any Hugging Face model, at --revision", "folder": "any model saved on disk"},
        "Encoders for --encoder",
    )


def info(model: Annotated[str, typer.Argument(help="Folder of the model.")], as_json: Json = False) -> None:
    """Say what a saved model is: encoder, detector, what it was fitted on, what it flags."""
    from strays.apps.cli import terminal
    from strays.model import TextOutlierDetector

    fitted = TextOutlierDetector.load(model)
    if as_json:
        print_json({"model": model, **fitted.info()})
        return
    terminal.show_facts(facts_of(fitted), model)


def cache_info(as_json: Json = False) -> None:
    """Say where the cache is, how large it is and may grow, and what it holds."""
    from strays.apps.cli import terminal
    from strays.encoders.cache import EmbeddingCache

    found = EmbeddingCache().info()
    if as_json:
        print_json(found.to_dict())
        return
    terminal.show_facts(found.to_words(), str(found.folder))


def cache_clear(as_json: Json = False) -> None:
    """Remove all that is kept; the next job encodes its texts again."""
    from strays.apps.cli import terminal
    from strays.encoders.cache import cache_folder, clear, size_in_words

    freed = clear()
    if as_json:
        print_json({"folder": str(cache_folder()), "bytes_freed": freed})
        return
    terminal.say(f"{size_in_words(freed)} freed in {cache_folder()}.")
