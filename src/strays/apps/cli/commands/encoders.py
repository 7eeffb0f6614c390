"""strays encoders: the encoders that have names."""

from __future__ import annotations

from strays.apps.cli.options import Json


def encoders(as_json: Json = False) -> None:
    """List the encoders that have names, and how to use others."""
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
        terminal.print_json(rows)
        return
    facts = {
        name: f"{row['about']} ({'installed' if row['offline'] else 'downloaded on first use'})"
        for name, row in rows.items()
    }
    terminal.show_facts(
        facts | {"org/name": "any Hugging Face model, at --revision", "folder": "any model saved on disk"},
        "Encoders for --encoder",
    )
