"""The program as a whole: what it loads, and that every command and option has help."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from strays.apps.cli import app
from tests.apps.cli.conftest import Run

COMMANDS = ["scan", "fit", "score", "explain", "evaluate", "report", "review", "serve", "study", "info"]
GROUPS = {"cache": ["info", "clear"], "encoders": ["get"]}


@pytest.mark.process
def test_the_installed_command_runs() -> None:
    command = [sys.executable, "-m", "strays", "--version"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran.stdout.startswith("strays ")


@pytest.mark.parametrize(
    "command", [*COMMANDS, *GROUPS, *(f"{group} {name}" for group, names in GROUPS.items() for name in names)]
)
def test_every_command_and_option_has_help(command: str, strays: Run) -> None:

    words = command.split()
    ran = strays(*words, "--help")
    assert ran.code == 0
    found = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]
    assert found.help
    for param in found.params:
        assert getattr(param, "help", None), f"{command} {param.name} has no help"


def test_all_commands_are_known_to_these_tests() -> None:
    assert [c.name or c.callback.__name__ for c in app.registered_commands] == COMMANDS
    groups = {group.typer_instance.info.name: group.typer_instance for group in app.registered_groups}
    assert {name: [c.name for c in group.registered_commands] for name, group in groups.items()} == GROUPS
