"""Single flipped bits in the manifests of scoring jobs: an error, a repair, or nothing. Never another result.

A bit of the manifest of a job that was finished, or stopped in its midst: to a folder of parts, flagged row by row or
all rows together, and to one file. Then the job is run again, and its output compared byte for byte with that of a job
that nobody disturbed. A file of somebody else's, named like a part, must stay as it is.

    python -m benchmarks.attacks.manifest_bits --n 1000 --seed 0
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attacks.bits import flip_one, options
from benchmarks.attacks.tables import StandIn
from benchmarks.common import machine, write_json
from strays.engines.local import LocalEngine
from strays.errors import StraysError, StraysWarning
from strays.jobs.score import score_files
from strays.jobs.score.manifest import NAME
from strays.model import RawScores
from strays.model.calibration import Threshold

ROWS, PART_ROWS = 60, 10
FOREIGN = "in-20240101.csv"
CASES = [("out/", False, 3), ("out/", False, None), ("out/", True, 3), ("out/", True, None), ("out.csv", False, 3)]


class Stopped(BaseException):
    """Stands for what ends a process."""


class Scorer(StandIn):
    """A stand-in for a model that ends the process after so many chunks."""

    def __init__(self, together: bool, stop_after: int | None = None) -> None:
        self.left = stop_after
        self.threshold_ = Threshold("top", 7) if together else StandIn.threshold_

    def raw_scores(self, texts: Sequence[str], *, progress: object = None) -> RawScores:
        """Scores, as long as the process goes on."""
        if self.left == 0:
            raise Stopped
        self.left = None if self.left is None else self.left - 1
        return super().raw_scores(texts)


@dataclass(frozen=True)
class JobCase:
    """A job, stopped or finished, and what it writes when nobody disturbs it."""

    source: Path
    begun: Path
    out: str
    together: bool
    expected: dict[str, bytes]

    @classmethod
    def make(cls, root: Path, out: str, together: bool, stop_after: int | None) -> JobCase:
        """Run the job, undisturbed and as far as asked."""
        source = root / "in.csv"
        source.write_text("id,text\n" + "".join(f"{i},text number {i}\n" for i in range(ROWS)))
        whole = Path(tempfile.mkdtemp(dir=root))
        score(source, whole / out, Scorer(together))
        begun = Path(tempfile.mkdtemp(dir=root))
        with suppress(Stopped):
            score(source, begun / out, Scorer(together, stop_after))
        if out.endswith("/"):
            (begun / out / FOREIGN).write_text("somebody's own")
        return cls(source, begun, out, together, results_in(whole))

    def run(self, place: Path) -> str:
        """Run the job again on a damaged copy: refused, repaired, same or other."""
        manifest = next(place.rglob(NAME))
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", StraysWarning)
                score(self.source, place / self.out, Scorer(self.together))
        except StraysError as error:
            return "refused" if str(manifest) in str(error) else "unclear error"
        foreign = place / self.out / FOREIGN
        if self.out.endswith("/") and foreign.read_text() != "somebody's own":
            return "foreign file changed"
        if results_in(place) != self.expected:
            return "other"
        return "repaired" if warned else "same"


def score(source: Path, out: Path, model: Scorer) -> None:
    """Run a job."""
    name = f"{out}/" if not out.suffix else str(out)
    score_files(model, str(source), name, part_rows=PART_ROWS, engine=LocalEngine())


def results_in(place: Path) -> dict[str, bytes]:
    """The files with scores, by name."""
    names = {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}
    return {n: path.read_bytes() for n, path in names.items() if path.name[0] not in "._" and path.name != FOREIGN}


def flip_bits(root: Path, n: int, seed: int) -> Counter[str]:
    """What became of so many flipped bits."""
    rng = np.random.default_rng(seed)
    cases = [JobCase.make(root, *case) for case in CASES]
    came: Counter[str] = Counter()
    for i in range(n):
        case = cases[i % len(cases)]
        place = root / "case"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(case.begun, place)
        flip_one(next(place.rglob(NAME)), rng)
        came[case.run(place)] += 1
    return came


def main() -> None:
    """Flip bits, write what became of them."""
    args = options(__doc__)
    with tempfile.TemporaryDirectory() as root:
        came = flip_bits(Path(root), args.n, args.seed)
    print(dict(came))
    write_json("attacks_manifest_bits.json", {"machine": machine(), "cases": args.n, "seed": args.seed, "came": came})


if __name__ == "__main__":
    main()
