"""What the benchmarks share."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from strays.studies.corpora import CORPORA, FURTHER_CORPORA

RESULTS = Path(__file__).parent / "results"


def machine(*packages: str) -> dict[str, Any]:
    """What a timing was taken on."""
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def add_corpus_options(parser: argparse.ArgumentParser) -> None:
    """--data, --corpora and --encoder, as `encoders_of` reads them."""
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=[*CORPORA, *FURTHER_CORPORA])
    parser.add_argument("--encoder", action="append", default=[], metavar="CORPUS=NAME", help="default for the others")


def encoders_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, str]:
    """The encoder of every corpus asked for."""
    given = dict(pair.partition("=")[::2] for pair in options.encoder)
    if not set(given) <= set(options.corpora):
        parser.error(f"--encoder names {', '.join(given)}; expected corpora of {', '.join(options.corpora)}")
    return {name: given.get(name, "default") for name in options.corpora}


def marked(page: str, name: str, lines: str) -> str:
    """A page with these lines between its marks <!-- name --> and <!-- /name -->."""
    found, n = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m: m[1] + lines + m[2], page, flags=re.DOTALL
    )
    if n != 1:
        raise ValueError(f"the page has {n} places marked {name}; expected one")
    return found


def write_json(name: str, value: Any) -> None:
    """Write a result, as data."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(value, indent=2) + "\n")
