"""Options that several commands have, groups of them that a command takes as one parameter, and what they name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from strays.detectors import DETECTORS
from strays.errors import DataError, Note, UsageError

if TYPE_CHECKING:
    from strays.model import TextOutlierDetector
    from strays.tables import Table

File = Annotated[
    str,
    Argument(
        metavar="FILE",
        help="csv, tsv, json, jsonl, parquet, xlsx or txt (one text per line), also .gz; a folder of such files, or of "
        "documents (one file is one text); - reads stdin.",
    ),
]
Model = Annotated[str, Option("--model", help="Folder of the model.", metavar="DIR")]
TextColumn = Annotated[
    str | None,
    Option(help="Column with the texts. Default: told by names and contents, or an error if that is not clear."),
]
IdColumn = Annotated[
    str | None,
    Option(help="Column to call rows by. Default: one named id, if it tells all rows apart; else row numbers."),
]
Known = Annotated[str | None, Option(help="File of texts known to be anomalies.", metavar="FILE")]
Strict = Annotated[bool, Option("--strict", help="Fail on rows without a text instead of passing them through.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
OutFormat = Annotated[
    str | None,
    Option(help="csv, tsv, json, jsonl, parquet or xlsx. Default: told by the output's name."),
]
Sort = Annotated[bool, Option("--sort", help="Write the rows to --out oddest first; rows without a text come last.")]
SafeCells = Annotated[
    bool,
    Option(
        "--safe-cells",
        help="In csv and tsv, put an apostrophe before whatever a spreadsheet would run as a formula, also one that "
        "takes another delimiter.",
    ),
]
EncoderName = Annotated[
    str, Option("--encoder", help="default, fast, bert, a Hugging Face id, or a folder; see strays encoders.")
]
Precision = Annotated[
    str | None,
    Option(help="full or int8. Default: int8 on a CPU, if its embeddings are close enough to the exact ones."),
]
Device = Annotated[str, Option(help="auto, cpu, cuda or mps.")]
AllowDownload = Annotated[
    bool,
    Option(
        "--allow-download",
        help="Download the encoder that a model or project names, if it is not on this machine; without your token.",
    ),
]
DetectorName = Annotated[str, Option("--detector", help=f"{', '.join(DETECTORS)}.")]
Form = Annotated[
    bool,
    Option(
        "--form/--no-form",
        help="Let the form of a text count besides its meaning: length, kinds of characters, repetition, rare letters. "
        "For the detector auto.",
    ),
]
Tune = Annotated[
    bool,
    Option(
        "--tune",
        help="Let the encoder learn from the known anomalies first, if that ranks held-out ones better. Takes minutes "
        "and strays[torch].",
    ),
]
# Seeds of NumPy's generators, and what any option may be.
LARGEST_SEED, LARGEST_NUMBER = 2**32 - 1, 2**53
Seed = Annotated[int, Option(help="Seed of all random numbers.", min=0, max=LARGEST_SEED)]
Port = Annotated[int, Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)]


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read."""

    format: Annotated[
        str | None,
        Option(
            help="Format of FILE: csv, tsv, json, jsonl, parquet, xlsx, txt, or documents for a folder in which every "
            "file is one text. Default: told by its name."
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        Option(help="Delimiter of csv, such as ; or | or tab. Default: told by the first rows.", metavar="CHARACTER"),
    ] = None
    sheet: Annotated[str | None, Option(help="Sheet of xlsx. Default: the first.", metavar="NAME")] = None


@dataclass(frozen=True)
class EncoderOptions:
    """How an encoder that is named is to be used."""

    revision: Annotated[str | None, Option(help="Commit or tag of the encoder on the Hugging Face hub.")] = None
    pooling: Annotated[str | None, Option(help="mean or cls. Default: the encoder's own setting.")] = None
    normalize: Annotated[
        bool | None,
        Option("--normalize/--no-normalize", help="Scale embeddings to length 1. Default: the encoder's own setting."),
    ] = None
    max_length: Annotated[int | None, Option(help="Truncate texts after this many tokens.")] = None


TopFlagged = Annotated[int | None, Option(help="Flag the K highest-scoring rows.", metavar="K")]

# Shown below the help of every command with a threshold; \b keeps the lines as they are.
WHICH_THRESHOLD = """\b
Which threshold? What are you doing:
  exploring              --top: scan shows the oddest rows, score flags them
  scoring by a model of  --max-false-alarms: the share of normal texts that
  normal texts           you accept as false alarms (default 0.05)
  checking every alarm   --max-false-share: the share of the flagged rows
                         that you accept as normal. Needs a model fitted on
                         texts that are all normal, or strays with labels:
                         with unlabelled strays it may flag nothing
  a fixed workload       --flag-rate: the oddest share of texts like those
                         the model was fitted on, odd or not
"""


@dataclass(frozen=True)
class LabelOptions:
    """Where labels come from: a column of words, or a column of categories of which some are normal."""

    label_column: Annotated[str | None, Option(help="Column with the labels: normal, anomaly, or empty.")] = None
    normal: Annotated[
        list[str] | None,
        Option(
            help="Label rows by a column of categories: rows with VALUE are normal, rows with another one anomalies. "
            "Repeat it for several values.",
            metavar="COLUMN=VALUE",
        ),
    ] = None

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The columns that hold them."""
        return (self.label_column, *(pair.partition("=")[0] for pair in self.normal or ()))

    def given(self) -> dict[str, Any]:
        """As the jobs take them."""
        from strays.jobs.columns import NormalValues

        return {"label_column": self.label_column, "normal": NormalValues.parse(self.normal) if self.normal else None}


@dataclass(frozen=True)
class FlaggingRules:
    """What is flagged: at most one rule is given."""

    max_false_alarms: Annotated[
        float | None, Option(help="Flag at most this share of normal texts.", metavar="SHARE")
    ] = None
    max_false_share: Annotated[
        float | None,
        Option(
            help="Flag as many rows as possible with at most this share of them normal; see below for what it needs.",
            metavar="SHARE",
        ),
    ] = None
    flag_rate: Annotated[
        float | None,
        Option(help="Flag this share of texts like those the model was fitted on, odd or not.", metavar="SHARE"),
    ] = None

    def given(self, **others: float | None) -> dict[str, Any]:
        """The rule that is asked for, if any; what cannot be is refused now rather than after the work."""
        from strays.model.calibration import threshold

        rules = vars(self) | others
        found = given(**rules)
        if len(found) > 1:
            raise UsageError(f"got {named(found, ' and ')}; expected at most one of {named(rules)}")
        if found:
            threshold(**found)
        return found


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command with every field of its groups of options as a parameter of its own, as typer needs them.

    What it writes is for nobody who may not read the files of texts that it is given.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: p.annotation for name, p in signature.parameters.items() if is_dataclass(p.annotation)
    }
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @functools.wraps(command)
    def run(**options: Any) -> None:
        _require_usual_numbers(options)
        from strays.files import private_like

        made = {name: groups[name](**{field: options.pop(field) for field in fields[name]}) for name in groups}
        with private_like(options.get("file") or "-"), private_like(options.get("known") or "-"):
            command(**options, **made)

    alone = [fields[name].values() if name in fields else [p] for name, p in signature.parameters.items()]
    as_options = [p.replace(kind=p.KEYWORD_ONLY) for parameters in alone for p in parameters]
    run.__signature__ = signature.replace(parameters=as_options)  # type: ignore[attr-defined]
    return run


def _require_usual_numbers(options: dict[str, Any]) -> None:
    """Raise for a whole number that no option means: libraries fail on such ones, each in its own way."""
    for name, value in options.items():
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise UsageError(f"{{{name}}} is a number of {len(str(abs(value)))} digits; must be smaller", param=name)


def epilog(command: Callable[..., None]) -> str | None:
    """What stands below the options in a command's help: which threshold to choose, where it has thresholds."""
    return WHICH_THRESHOLD if "flagging" in inspect.signature(command).parameters else None


def given(**options: Any) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def named(parameters: Iterable[str], between: str = ", ") -> str:
    """What the command line calls parameters."""
    return between.join(f"--{parameter.replace('_', '-')}" for parameter in parameters)


def loaded_model(folder: str, device: str, allow_download: bool, rules: dict[str, Any]) -> TextOutlierDetector:
    """A saved model, with the threshold that is asked for, if any."""
    from strays.model import TextOutlierDetector

    model = TextOutlierDetector.load(folder, device=device, allow_download=allow_download)
    return model.set_threshold(**rules) if rules else model


def opened(
    file: str, reading: ReadOptions, text_column: str | None, besides: tuple[str | None, ...]
) -> tuple[Table, str]:
    """The table that a user names and its column of texts; how they were found is said where it was not told.

    `besides` are columns that hold something else.
    """
    from strays.tables import open_table

    table = open_table(file, **vars(reading), text_column=text_column)
    for note in table.notes:
        tell(note)
    column = table.choose_text_column(text_column, besides=besides)
    if chosen := column.note():
        tell(chosen)
    return table, column.name


def tell(note: Note) -> None:
    """Say a note on stderr, in the words of the command line."""
    from strays.apps.cli import terminal

    terminal.say(note.named(lambda name: named([name])))


def known_texts(file: str | None, text_column: str | None) -> list[str]:
    """The texts of the file of known anomalies, if there is one."""
    from strays.jobs.corpus import read_texts
    from strays.tables import open_table

    if file is None:
        return []
    if file != "-" and not Path(file).exists():
        raise DataError(
            f"{file}: no such file; --known expects a file of known anomalies, such as a txt with one a line"
        )
    table = open_table(file, text_column=text_column)
    return read_texts(table, table.text_column(text_column if text_column in table.columns else None))
