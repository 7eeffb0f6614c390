"""Errors and warnings: the exit code, the message, and that it speaks of options."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
import typer

import strays
from strays.apps.cli import app
from tests.apps.cli.conftest import Run

RULES = ["max_false_alarms", "max_false_share", "flag_rate"]
FLAGGING = {
    "scan": RULES,
    "fit": RULES,
    "score": [*RULES, "top"],
    "evaluate": [*RULES, "top"],
    "report": RULES,
    "serve": RULES,
}


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["scan", "none.csv"], 1, "none.csv: no such file"),
        (["scan", "texts.csv", "--text-column", "txt"], 1, "no column 'txt'"),
        (["scan", "texts.csv", "--label-column", "lbl"], 1, "no column 'lbl'"),
        (["scan", "texts.csv", "--label-column", "id"], 1, "row 1: the label in column 'id' is '000'"),
        (["scan", "texts.csv", "--detector", "svdd"], 2, "no detector is called 'svdd'"),
        (["scan", "texts.csv", "--pooling", "max"], 2, "error: --pooling is 'max'; expected"),
        (["scan", "texts.csv", "--precision", "int4"], 2, "error: --precision is 'int4'; expected"),
        (["scan", "texts.csv", "--max-length", "2"], 2, "error: --max-length is 2; expected"),
        (["scan", "texts.csv", "--known", "none.txt"], 1, "none.txt: no such file; --known expects a file"),
        (["scan", "texts.csv", "--strict"], 1, "row 11: there is no text"),
        (["scan", "texts.csv", "--out", "texts.csv"], 2, "is the input itself"),
        (["scan", "texts.csv", "--out", "out.txt"], 2, "cannot write txt"),
        (["scan", "texts.csv", "--out", "no/folder/out.csv"], 1, "there is no folder no/folder"),
        (["scan", "texts.csv", "--seed", "-1"], 2, "--seed"),
        (["scan", "texts.csv", "--device", "toaster"], 2, "error: --device is 'toaster', which "),
        (["scan"], 2, "Missing argument"),
        (["scan", "texts.csv", "--no-such-option"], 2, "No such option"),
        (["scan", "texts.csv", "--format", "xls"], 2, "no such format"),
        (["fit", "texts.csv"], 2, "--model"),
        (["score", "texts.csv", "--model", "none", "--out", "o.csv"], 1, "no such model folder"),
        (["info", "none"], 1, "no such model folder"),
        (["dance"], 2, "No such command"),
        (["cache", "dance"], 2, "No such command"),
    ],
)
def test_errors_say_what_and_exit_with_1_or_2(
    file: Path,
    strays: Run,
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(file.parent)
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    encoder = ["--encoder", tiny_bert] if args[0] in ("scan", "fit") and len(args) > 1 else []
    ran = strays(*args, *encoder)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == before


def test_the_commands_that_flag_are_those() -> None:
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        assert {p.name for p in command.params} & set(RULES) == set(FLAGGING.get(name, [])) - {"top"}
        assert ("Which threshold?" in (command.epilog or "")) == (name in FLAGGING)


@pytest.mark.parametrize(("command", "rule"), [(name, rule) for name, rules in FLAGGING.items() for rule in rules])
def test_a_threshold_that_cannot_be_is_told_by_its_option(file: Path, strays: Run, command: str, rule: str) -> None:
    """Also before anything is looked at: there is no such model or encoder."""
    call = [command] if command == "serve" else [command, file]
    call += ["--encoder", "none/such"] if command in ("scan", "fit", "report") else []
    call += ["--model", file.parent / "none"] if command in ("fit", "score", "serve", "evaluate") else []
    call += ["--out", file.parent / "out.html"] if command in ("report", "score") else []
    option = f"--{rule.replace('_', '-')}"
    bad = ["-1"] if rule == "top" else ["2", "-0.5", "nan", "inf"]
    for value in bad:
        ran = strays(*call, option, value)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: {option} is {value}"), ran.err
        assert not re.search(r"\w_\w", ran.err)
    other = next(other for other in RULES if other != rule)
    ran = strays(*call, option, 1, f"--{other.replace('_', '-')}", 0.1)
    assert (ran.code, ran.out) == (2, "")
    assert re.match(r"error: got --[\w-]+ and --[\w-]+; expected at most one of --max-false-alarms, ", ran.err), ran.err
    assert ("--top" in ran.err) == (command in ("score", "evaluate"))
    assert not re.search(r"\w_\w", ran.err)


def test_warnings_and_what_a_cascade_cannot_are_told_by_options(file: Path, tiny_bert: Path, strays: Run) -> None:
    fit = ("fit", file, "--model", file.parent / "m", "--encoder", tiny_bert, "--cascade", "--max-false-share", 0.001)
    ran = strays(*fit)
    assert ran.code == 0, ran.err
    assert "warning: --max-false-share=0.001 is finer than" in ran.err
    assert "or use --flag-rate" in " ".join(ran.err.split())
    score = ("score", file, "--model", file.parent / "m", "--out", file.parent / "out.csv")
    ran = strays(*score)
    assert ran.code == 0, ran.err
    assert "allow a larger share, or use --max-false-alarms" in " ".join(ran.err.split())
    score = (*score, "--cascade")
    for rule, options in (("--max-false-share", ()), ("--top", ("--top", 3))):
        ran = strays(*score, *options)
        assert ran.code == 2
        assert f"error: {rule} looks at the scores of all texts" in ran.err
        assert "use --max-false-alarms or --flag-rate" in " ".join(ran.err.split())
    ran = strays(*score, "--flag-rate", 0.1, "--recall", 2)
    assert (ran.code, "error: --recall is 2; must be strictly between 0 and 1" in ran.err) == (2, True)


# Strings outside the command line that name an option, and why they may.
MAY_NAME_OPTIONS = {
    "apps/review/database.py": "comments in SQL",
    "apps/server/middleware.py": "an answer over HTTP, about what the operator can do",
}


def test_no_message_outside_the_command_line_names_an_option() -> None:
    """Messages name parameters in braces, and the command line renders them as options."""
    commands = typer.main.get_command(app).commands.values()
    options = {name for command in commands for param in command.params for name in param.opts if name[:2] == "--"}
    source = Path(strays.__file__).parent
    naming = set()
    for path in source.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docs)
        if any(options & set(re.findall(r"--[a-z-]+", text)) for text in strings if isinstance(text, str)):
            naming.add(path.relative_to(source).as_posix())
    assert {name for name in naming if not name.startswith("apps/cli/")} == set(MAY_NAME_OPTIONS)


# What each command needs before its options are looked at; nothing of it is there.
CALLS = {
    "scan": ["t.csv"],
    "fit": ["t.csv", "--model", "m"],
    "score": ["t.csv", "--model", "m", "--out", "o.csv"],
    "explain": ["--model", "m", "--text", "a"],
    "report": ["t.csv", "--out", "p.html"],
    "evaluate": ["t.csv", "--model", "m", "--label-column", "label"],
    "review": ["t.csv", "--no-browser"],
    "serve": ["--model", "m"],
    "study": ["--list"],
}
NUMBERS = {int: ["9" * 400, "9" * 5000, str(2**63), f"-{'9' * 400}"], float: ["nan", "inf", "-inf", "1e400"]}


def numeric_options() -> list[tuple[str, str, type]]:
    found = []
    for command, made in typer.main.get_command(app).commands.items():
        for name, param in inspect.signature(made.callback).parameters.items() if made.callback else ():
            kinds = {param.annotation, *get_args(param.annotation)}
            kinds |= {each for kind in kinds for each in get_args(kind)}  # Annotated[int | None, ...]
            found += [(command, f"--{name.replace('_', '-')}", kind) for kind in NUMBERS if kind in kinds]
    return found


def test_all_commands_with_numbers_are_tried() -> None:
    assert {command for command, _, _ in numeric_options()} <= set(CALLS)
    assert len(numeric_options()) > 30


@pytest.mark.parametrize(("command", "option", "kind"), numeric_options())
def test_a_number_that_no_option_means(strays: Run, command: str, option: str, kind: type) -> None:
    for number in [*NUMBERS[kind], "x", ""]:
        ran = strays(command, *CALLS[command], option, number)
        assert ran.code == 2, number
        assert option in ran.err
        assert "Traceback" not in ran.err


def test_links_in_a_circle_are_told_wherever_a_path_is_given(file: Path, tmp_path: Path, strays: Run) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(tmp_path / "back")
    (tmp_path / "back").symlink_to(circle)
    for call in (
        ["score", file, "--model", circle, "--out", tmp_path / "out.csv"],
        ["scan", circle, "--encoder", circle],
        ["fit", file, "--model", circle / "m", "--encoder", circle],
        ["info", circle],
        ["review", circle, "--no-browser"],
        ["serve", "--model", circle],
    ):
        ran = strays(*call)
        assert ran.code in (1, 2), call
        assert "circle" in ran.err
        assert "Traceback" not in ran.err
