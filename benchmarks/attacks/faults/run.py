"""A fault at every file-system call of a command, one run for each call, as SQLite is tested.

A process does the command in a folder of its own and is killed at its n-th call, or that call fails. Then the next
command must find the old state or the new one, and files of somebody else's beside must be as they were; the command,
run again, must end in the new state with nothing left over. This process imports everything once and forks, so that a
run takes milliseconds. The disk is memory (/dev/shm): what a power cut does to bytes that were not synced is not tried.

    python -m benchmarks.attacks.faults.run
    python -m benchmarks.attacks.faults.run --scenario save --kind killed --call 17
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.attacks.faults.scenarios import SCENARIOS, Scenario, as_plain
from benchmarks.attacks.faults.shim import KINDS, Shim, start_again_with_shim
from benchmarks.common import machine, write_json
from strays.errors import StraysError

SECONDS = 120
MOST_SHOWN = 20


@dataclass
class Tried:
    """What came of a fault at every call: how many calls, what the next command found, and what must not be."""

    calls: int = 0
    found: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)


def in_child(work: Callable[[Callable[[Any], None]], Any]) -> tuple[int, list[Any]]:
    """Do something in a process of its own: its exit status, and what it says on the way and in the end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)

        def say(what: Any) -> None:
            os.write(writing, json.dumps(what).encode() + b"\n")

        status = 1
        try:
            warnings.simplefilter("ignore")
            say(work(say))
            status = 0
        except BaseException:
            say(traceback.format_exc()[-2000:])
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = [json.loads(line) for line in pipe]
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def done(work: Callable[[Callable[[Any], None]], Any]) -> Any:
    """The same for what must not fail."""
    status, said = in_child(work)
    if status:
        raise RuntimeError(said[-1] if said else f"the process ended with {status}")
    return said[-1]


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of every file, and of every link where it points to."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def _without_repeats(name: str, file: tuple[int, bytes]) -> tuple[int, set[bytes] | bytes]:
    """A file; a manifest may say twice that a chunk is done, where an error came between its record and its file."""
    return (file[0], set(file[1].splitlines())) if name.endswith("_manifest.jsonl") else file


class Faults:
    """All faults of one scenario."""

    def __init__(self, scenario: Scenario, root: Path) -> None:
        self.scenario, self.case, self.template = scenario, root / "case", root / "template"
        self.shim = Shim()
        self.template.mkdir(parents=True)
        done(lambda say: scenario.set_up(self.template))
        self.theirs = {name: tree(self.template)[name] for name in (*scenario.others, "letter.txt")}
        self._fresh()
        self.before = done(lambda say: scenario.look(self.case))
        self._fresh()
        for module in done(lambda say: self._modules_of_work()):  # once, so that not every run imports them
            with suppress(ImportError):
                importlib.import_module(module)
        self.after = done(lambda say: scenario.look(self.case))
        self.whole = tree(self.case)
        if self.before == self.after:
            raise ValueError(f"{scenario.name}: it changes nothing")

    def _fresh(self) -> None:
        shutil.rmtree(self.case, ignore_errors=True)
        shutil.copytree(self.template, self.case, symlinks=True)

    def _modules_of_work(self) -> list[str]:
        before = set(sys.modules)
        self.scenario.work(self.case, lambda: None)
        return sorted(set(sys.modules) - before)

    def try_all(self, kind: str, calls: Iterator[int]) -> Tried:
        """A run for every call."""
        tried = Tried()
        for call in calls:
            state, words = self.try_one(kind, call)
            if state == "not reached":
                break
            tried.calls += 1
            tried.found[state] += 1
            if state == "bad":
                tried.bad.append(f"call {call}, {words}")
        return tried

    def try_one(self, kind: str, call: int) -> tuple[str, str]:
        """One run: what the next command found (old, new, between), and the call that was hit."""
        self._fresh()
        status, said = in_child(lambda say: self._disturbed(kind, call, say))
        acknowledged = said.count("acknowledged")
        ended = said[-1] if said and isinstance(said[-1], dict) else None
        if ended and not ended["hit"]:
            return "not reached", ""
        words = f"{ended['hit'] if ended else kind}: "
        if ended is None and status != -signal.SIGKILL:
            return "bad", f"{words} the process ended with {status}: {said[-1:]}"
        if ended and ended["error"] == "other":
            return "bad", f"{words} {ended['words']}"
        try:
            found, once_more = done(lambda say: self._next_commands())
        except RuntimeError as error:
            return "bad", f"{words} afterwards: {error}"
        now = tree(self.case)
        lost = [name for name, was in self.theirs.items() if now.get(name) != was]
        if lost:
            return "bad", f"{words} changed files of somebody else's: {lost}"
        if not self.scenario.is_good(found, self.before, self.after, acknowledged, kind):
            return "bad", f"{words} neither old nor new: {found!r:.500}"
        if ended and ended["error"] == "none" and found != self.after and "cache" not in self.scenario.name:
            return "bad", f"{words} it said that it was done, and was not: {found!r:.500}"
        if not self.scenario.is_settled(found, once_more, self.after):
            return "bad", f"{words} run again, it gave {once_more!r:.500}"
        if more := set(now) ^ set(self.whole):
            return "bad", f"{words} left over or missing after it was run again: {sorted(more)[:5]}"
        changed = [
            name for name in now if _without_repeats(name, now[name]) != _without_repeats(name, self.whole[name])
        ]
        if self.scenario.same_bytes and changed:
            return "bad", f"{words} run again, it gave other bytes in {changed}"
        return self.scenario.state(found, self.before, self.after), words

    def _disturbed(self, kind: str, call: int, say: Callable[[Any], None]) -> dict[str, str]:
        error, words = "none", ""
        self.shim.arm(self.case, kind, call)
        try:
            self.scenario.work(self.case, lambda: say("acknowledged"))
        except (StraysError, OSError) as failed:  # what the command line tells in one line
            error, words = "told", str(failed)
        except BaseException:
            error, words = "other", traceback.format_exc()[-1500:]
        _, hit = self.shim.disarm()
        return {"hit": hit, "error": error, "words": words}

    def _next_commands(self) -> tuple[Any, Any]:
        found = as_plain(self.scenario.look(self.case))
        self.scenario.work(self.case, lambda: None)
        return found, self.scenario.look(self.case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scenario", choices=list(SCENARIOS), action="append")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--call", type=int, help="only this call")
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    start_again_with_shim()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as root:
        results = []
        for name in args.scenario or list(SCENARIOS):
            faults = Faults(SCENARIOS[name], Path(root, name.replace(" ", "-")))
            for kind in args.kind or KINDS:
                start = time.perf_counter()
                calls = iter([args.call]) if args.call else iter(range(1, 10**9, args.every))
                tried = faults.try_all(kind, calls)
                seconds = round(time.perf_counter() - start)
                print(f"{name}, {kind}: {tried.calls} calls, {dict(tried.found)}, {seconds} s", flush=True)
                for words in tried.bad[:MOST_SHOWN]:
                    print(f"  {words}", flush=True)
                results.append({"scenario": name, "kind": kind} | vars(tried))
    if args.out:
        results = _beside_earlier(args.out, results)
    total, bad = sum(r["calls"] for r in results), sum(len(r["bad"]) for r in results)
    print(f"{total} calls, {bad} of them bad")
    if args.out:
        write_json(args.out, {"machine": machine(), "calls": total, "bad": bad, "results": results})
    sys.exit(1 if bad else 0)


def _beside_earlier(path: Path, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """These results, and of an earlier run those of other scenarios."""
    again = {result["scenario"] for result in results}
    earlier = json.loads(path.read_text())["results"] if path.exists() else []
    whole = [result for result in earlier if result["scenario"] not in again] + results
    return sorted(whole, key=lambda result: list(SCENARIOS).index(result["scenario"]))


if __name__ == "__main__":
    main()
