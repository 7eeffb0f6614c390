"""strays encoders: the encoders that have names."""

from __future__ import annotations

from strays.apps.cli import options as opt


def encoders(as_json: opt.Json = False) -> None:
    """List the encoders that have names, and how to use others."""
    from strays.apps.cli import terminal
    from strays.encoders.sources import NAMED, bundled_folder

    offline = ("default", "fast") if bundled_folder() is not None else ()
    if as_json:
        rows = {name: {"about": e.about, "hub_id": e.repo, "revision": e.revision} for name, e in NAMED.items()}
        terminal.print_json({name: row | {"offline": name in offline} for name, row in rows.items()})
        return
    where = {name: "installed" if name in offline else "downloaded on first use" for name in NAMED}
    facts = {name: f"{encoder.about} ({where[name]})" for name, encoder in NAMED.items()}
    facts |= {"org/name": "any Hugging Face model, at --revision", "folder": "any model saved on disk"}
    terminal.show_facts(facts, "Encoders for --encoder")
