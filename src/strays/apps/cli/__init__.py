"""The command line. A command reads options, calls one job, and shows what came of it; the jobs live elsewhere."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from strays import __version__
from strays.apps.cli.about import cache_clear, cache_info, encoders, info
from strays.apps.cli.common import in_options
from strays.apps.cli.models import evaluate, explain, fit, scan
from strays.apps.cli.pages import report, review
from strays.apps.cli.scoring import score
from strays.apps.cli.service import serve
from strays.apps.cli.studies import study
from strays.errors import StraysError, StraysWarning, UsageError

__all__ = ["app", "cache", "main"]

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
    help="What is kept on disk so that no text is encoded twice: show it, or remove it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (scan, fit, score, explain, evaluate, report, review, serve, study, encoders, info):
    app.command()(command)
cache.command("info")(cache_info)
cache.command("clear")(cache_clear)
app.add_typer(cache)


@app.callback(invoke_without_command=True)
def _version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if show:
        typer.echo(f"strays {__version__}")
        raise typer.Exit


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit: 0, 1 (could not do it) or 2 (called wrongly)."""
    from strays.apps.cli import terminal

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        terminal.say(f"warning: {in_options(str(message), _options())}", "yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StraysWarning)
        warnings.showwarning = show
        try:
            app(args=argv, prog_name="strays")
        except UsageError as error:
            terminal.say(f"error: {in_options(str(error), _options())}", "red")
            sys.exit(2)
        except StraysError as error:
            terminal.say(f"error: {error}", "red")
            sys.exit(1)
        except BrokenPipeError:
            sys.stderr.close()  # whoever read our output has gone; there is nobody to tell
            sys.exit(1)
        except OSError as error:
            terminal.say(f"error: could not read or write ({error})", "red")
            sys.exit(1)
        except KeyboardInterrupt:
            terminal.say("stopped")
            sys.exit(130)
    sys.exit(0)


def _options() -> set[str]:
    """Every option of every command."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {name for command in commands.values() for param in command.params for name in param.opts}
