"""Runs cases in child processes, so that a crash is noticed, belongs to a case, and does not end the run.

A child does one case after another and tells of each through a pipe, when it starts and when it ends. One that dies or
takes too long is replaced, and the case it was at is a crash or a timeout. What a case is made of follows from the seed
and its number alone, so that `--only N` does it again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.attacks import watch
from benchmarks.common import machine, write_json
from strays.errors import StraysError, StraysWarning

FINE = ("worked", "refused")
FAILURES = (
    "other exception",
    "warning",
    "wrong result",
    "unclear error",
    "left over",
    "crash",
    "timeout",
    "read outside",
    "wrote outside",
    "code executed",
    "network",
    "memory",
)
# An error that fills a screen tells a user nothing.
LONGEST_ERROR = 2000
MARK = "canary-7f3a91c2"


class WrongResultError(Exception):
    """A hostile file was taken, and what came of it breaks a promise."""


class LeftOverError(Exception):
    """Files were left that nobody asked for."""


@dataclass
class Outcome:
    """What became of a case."""

    number: int
    kind: str
    outcome: str = ""
    words: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0
    found: list[tuple[str, str]] = field(default_factory=list)


class Attack(ABC):
    """A way to make hostile files and to use them. `root` holds everything; `outside` is where nobody may look."""

    name: ClassVar[str]
    # Memory that a case may take: so many bytes, and so many for every byte of its files.
    allowance: ClassVar[int]
    per_byte: ClassVar[int] = 20
    seconds: ClassVar[float] = 30.0

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.seed = root, seed
        self.outside = root / "outside"
        root.mkdir(parents=True, exist_ok=True)
        self.may_read: tuple[str, ...] = ()

    @abstractmethod
    def kinds(self) -> list[str]:
        """Names of the mutations."""

    @abstractmethod
    def make(self, kind: str, rng: np.random.Generator, folder: Path) -> str:
        """Write the files of a case into a folder, and say more of what they are."""

    @abstractmethod
    def use(self, folder: Path) -> None:
        """Do with them what users do; StraysError where they are refused."""

    def warm_up(self) -> None:  # noqa: B027 - most need none
        """Called in each child before its first case: libraries set buffers aside anew in a process that was forked."""

    def check_error(self, error: StraysError, folder: Path) -> None:  # noqa: B027 - most say enough
        """Raise where an error does not say what it should."""

    def kind_of(self, number: int) -> str:
        """Which mutation a case is."""
        kinds = self.kinds()
        return kinds[number % len(kinds)]

    # ---- one case ----------------------------------------------------------------------------------------------------

    def run(self, number: int) -> Outcome:
        """Make the case and use it."""
        folder = self.root / "case"
        for place in (folder, self.outside):  # nothing of one case is there in the next
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        (self.outside / "canary.txt").write_text(MARK)
        outcome = Outcome(number, self.kind_of(number))
        more = self.make(outcome.kind, np.random.default_rng([self.seed, number]), folder)
        size = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
        start, before = time.perf_counter(), watch.start_measuring()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", StraysWarning)
            with watch.watching((str(folder), str(self.root / "cache")), self.may_read) as watched:
                outcome.outcome, outcome.words = self._try(folder)
        outcome.seconds = round(time.perf_counter() - start, 3)
        grown = watch.peak() - before
        outcome.megabytes = round(grown / 1e6, 1)
        outcome.found = watched.found
        if grown > self.allowance + self.per_byte * size:
            outcome.found.append(("memory", f"{grown / 1e6:.0f} MB for {size} bytes"))
        if (self.outside / "touched").exists():
            outcome.found.append(("code executed", "the canary was touched"))
        if MARK in outcome.words:
            outcome.found.append(("read outside", "the mark of a file outside is in the message"))
        if outcome.found and outcome.outcome in FINE:
            outcome.outcome, outcome.words = outcome.found[0][0], f"{outcome.found} after: {outcome.words}"
        if outcome.outcome not in FINE:
            outcome.words = f"{more}: {outcome.words}"
        outcome.words = outcome.words[:3000]
        return outcome

    def _try(self, folder: Path) -> tuple[str, str]:
        try:
            self.use(folder)
        except StraysError as error:
            try:
                if not str(error).strip() or len(str(error)) > LONGEST_ERROR:
                    raise WrongResultError(f"a message of {len(str(error))} characters")
                self.check_error(error, folder)
            except WrongResultError as unclear:
                return "unclear error", f"{unclear}: {error!r:.500}"
            return "refused", f"{type(error).__name__}: {error}"
        except WrongResultError as error:
            return "wrong result", str(error)
        except LeftOverError as error:
            return "left over", str(error)
        except Warning as error:
            return "warning", "".join(traceback.format_exception(error))[-1500:]
        except BaseException as error:
            return "other exception", f"{error!r:.300}\n" + "".join(traceback.format_exception(error))[-1500:]
        return "worked", ""

    # ---- many cases --------------------------------------------------------------------------------------------------

    def run_all(self, numbers: Iterable[int]) -> Iterator[Outcome]:
        """The outcomes of cases, each done in a child process."""
        left = list(numbers)
        while left:
            for outcome in self._child(left):
                left.remove(outcome.number)
                yield outcome

    def _child(self, numbers: list[int]) -> Iterator[Outcome]:
        """The outcomes that one child gives; where it fails, also that of the case it was at."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            self._work(numbers, writing)
        os.close(writing)
        at: int | None = None
        waiting, failed = b"", "crash"
        while True:
            if not select.select([reading], [], [], self.seconds + 10)[0]:
                failed = "timeout"
                os.kill(child, signal.SIGKILL)
                break
            block = os.read(reading, 1 << 16)
            if not block:
                break
            *lines, waiting = (waiting + block).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if "start" in told:
                    at = told["start"]
                else:
                    at = None
                    yield Outcome(**told)
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if at is not None:
            words = f"the process ended with {os.waitstatus_to_exitcode(status)}"
            yield Outcome(at, self.kind_of(at), failed, words, self.seconds if failed == "timeout" else 0.0)

    def _work(self, numbers: list[int], pipe: int) -> None:
        """Do cases until all are done, and end the process."""
        try:
            room = watch.address_space() + 4 * self.allowance + (2 << 30)
            resource.setrlimit(resource.RLIMIT_AS, (room, room))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            self.warm_up()
            watch.install()
            for number in numbers:
                os.write(pipe, json.dumps({"start": number}).encode() + b"\n")
                outcome = self.run(number)
                data = memoryview(json.dumps(asdict(outcome)).encode() + b"\n")
                while data:
                    data = data[os.write(pipe, data) :]
        except BaseException:
            traceback.print_exc()
            os._exit(70)
        os._exit(0)


def summarise(outcomes: list[Outcome]) -> dict[str, Any]:
    """Counts by outcome and by kind, and the most that a case took."""
    counts = Counter(outcome.outcome for outcome in outcomes)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        kinds[outcome.kind][outcome.outcome] += 1
    return {
        "cases": len(outcomes),
        "outcomes": {name: counts[name] for name in (*FINE, *FAILURES)},
        "kinds": {kind: dict(sorted(found.items())) for kind, found in sorted(kinds.items())},
        "peak_megabytes": max(outcome.megabytes for outcome in outcomes),
        "median_milliseconds": round(1000 * float(np.median([outcome.seconds for outcome in outcomes])), 1),
        "slowest_seconds": max(outcome.seconds for outcome in outcomes),
    }


def prepare_environment(root: Path) -> None:
    """A cache of the run's own, and no network."""
    os.environ["STRAYS_CACHE"] = str(root / "cache")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HOME"] = str(root / "cache" / "hub")
    (root / "cache").mkdir(parents=True, exist_ok=True)


def main(attack: type[Attack]) -> None:
    """The command line of an attack."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="do these cases alone, and tell all of them")
    parser.add_argument("--keep", action="store_true", help="keep the last case's files")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="strays-attack-"))
    start = time.perf_counter()
    try:
        prepare_environment(root)
        made = attack(root, options.seed)
        outcomes = []
        numbers = range(options.n) if options.only is None else options.only
        for outcome in made.run_all(numbers):
            outcomes.append(outcome)
            if options.only is not None or outcome.outcome not in FINE:
                print(f"{outcome.number} {outcome.kind}: {outcome.outcome} {outcome.seconds} s {outcome.megabytes} MB")
                print("   ", outcome.words.replace("\n", "\n    "), flush=True)
            elif len(outcomes) % 500 == 0:
                print(f"{len(outcomes)} cases, {time.perf_counter() - start:.0f} s", flush=True)
    finally:
        if options.keep:
            print(root)
        else:
            shutil.rmtree(root, ignore_errors=True)
    result = summarise(outcomes)
    if options.only is None:
        took = {"seed": options.seed, "minutes": round((time.perf_counter() - start) / 60, 1)}
        on = {"machine": machine("pyarrow", "safetensors", "numpy", "onnxruntime", "tokenizers")}
        bound = {"memory_allowed": f"{made.allowance / 1e6:.0f} MB + {made.per_byte} x the files' size"}
        write_json(f"attacks_{attack.name}.json", result | bound | took | on)
    print(json.dumps(result["outcomes"]))
