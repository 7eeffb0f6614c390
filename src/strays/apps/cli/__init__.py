"""The command line. A command reads its options, calls one job, and shows the result; the jobs are in strays.jobs."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from strays import __version__
from strays.apps.cli.commands.cache import cache_clear, cache_info
from strays.apps.cli.commands.encoders import encoders, encoders_get
from strays.apps.cli.commands.evaluate import evaluate
from strays.apps.cli.commands.explain import explain
from strays.apps.cli.commands.fit import fit
from strays.apps.cli.commands.info import info
from strays.apps.cli.commands.report import report
from strays.apps.cli.commands.review import review
from strays.apps.cli.commands.scan import scan
from strays.apps.cli.commands.score import score
from strays.apps.cli.commands.serve import serve
from strays.apps.cli.commands.study import study
from strays.apps.cli.options import epilog, ungrouped
from strays.errors import Download, StraysError, StraysWarning, UsageError

__all__ = ["app", "main"]

app = typer.Typer(
    name="strays",
    help="Find the texts that do not belong. Scores point up: higher is odder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
cache = typer.Typer(
    name="cache",
    help="Show or empty the cache of embeddings, which saves encoding a text twice.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (scan, fit, score, explain, evaluate, report, review, serve, study, info):
    app.command(epilog=epilog(command))(ungrouped(command))
cache.command("info")(cache_info)
cache.command("clear")(cache_clear)
app.add_typer(cache)
named_encoders = typer.Typer(name="encoders", invoke_without_command=True, rich_markup_mode=None)
named_encoders.callback()(encoders)
named_encoders.command("get")(encoders_get)
app.add_typer(named_encoders)


@app.callback(invoke_without_command=True)
def _version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if show:
        typer.echo(f"strays {__version__}")
        raise typer.Exit


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 success, 1 failure, 2 usage error, 130 interrupted."""
    shown: set[str] = set()

    def show(message: StraysWarning, *_: Any, **__: Any) -> None:
        words = _in_options(message)
        if words not in shown:  # a file that is read twice has the same faults twice
            shown.add(words)
            if isinstance(message, Download):
                from strays.apps.cli import terminal

                _say(words)
                message.show_on(terminal.progress_bar("fetching", in_bytes=True))
            else:
                _say(f"warning: {words}", "yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StraysWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            app(args=argv, prog_name="strays")
        except StraysError as error:
            _say(f"error: {_in_options(error)}", "red")
            sys.exit(2 if isinstance(error, UsageError) else 1)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output is gone; there is nobody to tell
            sys.exit(1)
        except OSError as error:
            _say(f"error: could not read or write ({error})", "red")
            sys.exit(1)
        except KeyboardInterrupt:
            _say("interrupted")
            sys.exit(130)
    sys.exit(0)


def _say(message: str, style: str = "") -> None:
    from strays.apps.cli import terminal  # which loads rich

    terminal.say(message, style)


def _in_options(message: StraysError | StraysWarning) -> str:
    """A message in the words of the command line: parameters as options, other names as they are."""
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    # A name that is an argument of another command, such as the model of `info`, is still an option of this one.
    params = [param for command in commands for param in command.params if param.opts[0].startswith("-")]
    options = {param.name: param.opts[0] for param in params}
    return message.named(lambda name: options.get(name, name))
