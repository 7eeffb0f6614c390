"""What the command line shows: tables, progress, and texts made safe to print."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table as RichTable

    from strays.jobs.corpus import Corpus
    from strays.model import TextOutlierDetector

MOST_CHARACTERS = 2000
# The progress bars that are open; the last is shown.
_bars: list[Progress] = []


def printable(text: str) -> str:
    """A text on one line in which nothing can move the cursor, change colours or reverse the reading direction."""
    text = " ".join(text[:MOST_CHARACTERS].split())
    # Cc: control characters, escape among them. Cf: direction overrides and other invisible marks. Cs: half characters.
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\u200d" else c for c in text)


def p_value_words(p: float) -> str:
    """A p-value with as many digits as it carries."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def show_ranking(
    rows: list[dict[str, Any]], title: str, console: Console | None = None, *, id_column: str | None = None
) -> None:
    """The oddest rows on stdout (or another console), one a line; the text takes the width that is left.

    A row is called by its id where there is an `id_column`, else by its number. Rows like it are counted behind it.
    """
    from strays.jobs.columns import shortened, shortened_apart

    console = console or Console(highlight=False, soft_wrap=True)
    most = console.width // 3  # the text needs the room
    heading = shortened(printable(id_column), most) if id_column else "row"
    names = shortened_apart([printable(row["id"]) if row.get("id") else str(row["row"]) for row in rows], most)
    width = max(map(cell_len, [heading, *names, " " * 3]))
    console.print(Text(printable(title), "bold"))
    console.print(Text(f"{_right(heading, width)}  score  p-value         text", "dim"))
    for row, name in zip(rows, names, strict=True):
        known = row["label"] == "anomaly"
        mark, style = ("known", "cyan") if known else ("flag", "red") if row["flagged"] else ("", "")
        line = Text.assemble(
            (_right(name, width), "dim"),
            f"  {row['anomaly_score']:5.2f}  {p_value_words(row['p_value']):>7}  ",
            (f"{mark:<6}", style),
            printable(row["text"]),
        )
        alike = f" (and {row['n_alike']:,} like it)" if row["n_alike"] else ""
        line.truncate(max(console.width - len(alike), 1), overflow="ellipsis")
        console.print(line.append(alike, "dim"))


def _right(words: str, width: int) -> str:
    """Words at the right of a column, by the room they take on a terminal."""
    return " " * (width - cell_len(words)) + words


def show_explanation(explanation: dict[str, Any], console: Console | None = None) -> None:
    """A text with what raises its score marked, the strongest segments, and the texts it is like."""
    console = console or Console(highlight=False)
    segments = explanation["segments"]
    line, at = Text(), 0
    for segment in sorted(segments, key=lambda segment: segment["start"]):
        line.append(_in_line(explanation["text"][at : segment["start"]]))
        line.append(_in_line(segment["text"]), _mark_style(segment["strength"]))
        at = segment["end"]
    line.append(_in_line(explanation["text"][at:]))
    console.print(line)
    console.print(Text(printable(explanation["in_words"]), "bold"))
    for words in filter(None, (explanation["what_is_odd"], explanation["copies"])):
        console.print(Text(printable(words)))
    raising = [segment for segment in segments if segment["strength"] > 0][:5]
    if raising and not explanation["odd_parts"]:
        console.print(Text("\nwhat raises the score, and by how much", "dim"))
        for segment in raising:
            console.print(Text.assemble(f"{segment['effect']:+6.2f}  ", printable(segment["text"])))
    for title, neighbours in (
        ("texts presumed normal most like it", explanation["nearest_normals"]),
        ("known anomalies most like it", explanation["nearest_anomalies"]),
    ):
        if neighbours:
            console.print(Text(f"\n{title}, and how much (1: the same)", "dim"))
        for neighbour in neighbours:
            copies = f" (and {neighbour['n_copies']} more like it)" if neighbour["n_copies"] else ""
            line = Text.assemble(f"{neighbour['similarity']:6.2f}  ", printable(neighbour["text"]), (copies, "dim"))
            console.print(line)


def _in_line(piece: str) -> str:
    """A piece made safe, with the spaces at its ends that keep it apart from the next."""
    inner = printable(piece)
    if not inner:
        return " " if piece else ""
    return f"{' ' * piece[0].isspace()}{inner}{' ' * piece[-1].isspace()}"


def _mark_style(strength: float) -> str:
    if strength <= 0:
        return ""
    return "bold white on red" if strength == 1 else "red" if strength > 0.5 else "yellow"


def show_facts(facts: dict[str, str], title: str) -> None:
    """Names and values, one a line."""
    table = _table(title, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(printable(value)))
    Console().print(table)


def show_table(header: list[str], rows: list[list[str]], title: str) -> None:
    """A table on stdout; what several rows share in their first column is written once."""
    table = _table(title)
    for i, name in enumerate(header):
        table.add_column(Text(printable(name)), justify="left" if i < 2 else "right", overflow="fold")
    above = None
    for row in rows:
        shown = ["" if row[0] == above else row[0], *row[1:]]
        table.add_row(*(Text(printable(cell)) for cell in shown))
        above = row[0]
    Console().print(table)


def _table(title: str, **options: Any) -> RichTable:
    from rich.table import Table as RichTable

    return RichTable(title=Text(printable(title)), title_justify="left", title_style="bold", box=None, **options)


def facts_of(fitted: TextOutlierDetector) -> dict[str, str]:
    """What a model is, in words by heading."""
    facts = fitted.info()
    fitted_on = facts["fitted_on"]
    tuning = f", {facts['tuning']['says']}" if facts["tuning"] else ""
    return {
        "encoder": f"{facts['encoder']['name']}{tuning}",
        "detector": f"{facts['detector']['name']}: {facts['detector']['says']}",
        "fitted on": f"{fitted_on['n_texts']:,} texts: {fitted_on['n_normal']:,} normal, {fitted_on['n_anomaly']:,} "
        f"anomalies, {fitted_on['n_unlabelled']:,} unlabelled",
        "held out": f"{fitted_on['n_held_out']:,} normal or unlabelled texts"
        + (f", in {fitted_on['n_folds']} turns" if fitted_on["n_folds"] else "")
        + f", for p-values down to {facts['lowest_p_value']:.2g}",
        "flags": facts["flags"],
        "version": facts["version"],
    } | ({"cascade": promise_in_words(facts["cascade"])} if facts["cascade"] else {})


def runs_on(fitted: TextOutlierDetector) -> str:
    """What runs the encoder, in words to put behind its name; nothing for encoders of other people."""
    found = getattr(fitted.encoder_, "runs_on", None)
    return f" on {found}" if found else ""


def promise_in_words(cut: dict[str, Any]) -> str:
    """What a cascade promises."""
    return (
        f"{cut['expected_share']:.1%} of such texts, among them {cut['recall']:.3g} of those it would flag, as told by "
        f"{cut['n_held_out']:,} held-out texts"
    )


def say(message: str, style: str = "") -> None:
    """A line on stderr."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(printable(message), style))


def say_without_text(n: int) -> None:
    """Say how many rows had no text, where there were any."""
    if n:
        say(f"{n:,} rows without a text passed through unscored.", "yellow")


def say_of_tuning(model: TextOutlierDetector, corpus: Corpus) -> None:
    """Say what came of tuning the encoder, or that it may help."""
    from strays.encoders.library_errors import TORCH_PIP
    from strays.jobs.advice import advise_tuning

    if model.tuning_:
        say(f"The encoder was {model.tuning_}.")
    elif advice := advise_tuning(model, corpus):
        needed = f" It needs PyTorch: {TORCH_PIP}." if advice.needs_torch else ""
        minutes = f"{advice.minutes:,} minute{'s' * (advice.minutes != 1)}"
        say(f"{advice}: --tune may help, and takes about {minutes} on this machine's processor.{needed}")


def print_json(value: Any) -> None:
    """To stdout, for machines."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def progress_bar(what: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A function to call with (done, in all or None); shows a bar on stderr, and only on a terminal.

    Speed and time left are those of the last minute. A bar that is open already is hidden meanwhile.
    """

    def ignore(done: int, total: int | None = None) -> None:
        pass

    if not sys.stderr.isatty():
        yield ignore
        return
    from rich import progress as rich

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.DownloadColumn() if in_bytes else rich.MofNCompleteColumn(),
        rich.TransferSpeedColumn() if in_bytes else rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=60,
    )
    with _alone(bar):
        task = bar.add_task(what, total=None, rate="")
        started = False

        def update(done: int, total: int | None = None) -> None:
            nonlocal started
            if not started:  # what was done before the bar was opened says nothing of the speed
                started = True
                bar.reset(task, completed=done, total=total)
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, completed=done, total=total, rate=f"{speed:,.0f}/s" if speed and speed >= 1 else "")

        yield update


@contextmanager
def _alone(bar: Progress) -> Iterator[None]:
    """Show a bar, and none below it: two would be drawn over each other."""
    if _bars:
        _bars[-1].stop()
    _bars.append(bar)
    try:
        with bar:
            yield
    finally:
        _bars.remove(bar)
        if _bars:
            _bars[-1].start()
