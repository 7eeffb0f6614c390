"""Single flipped bits in saved models: each is refused, or changes nothing. Never another result.

A bit of the config or of the arrays, drawn by turns, in a model of every detector.

    python -m benchmarks.attacks.model_bits --n 1000 --seed 0
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.attacks.bits import flip_one, options
from benchmarks.attacks.saved import CASCADE, ENCODER, ODD, TEXTS, save_all
from benchmarks.common import machine, write_json
from strays.errors import ModelError
from strays.model import TextOutlierDetector
from strays.model.folder import ARRAYS, CONFIG

ASKED = [*TEXTS[:5], *ODD, "", "nothing like the others"]


def result_of(folder: Path) -> list[bytes | str]:
    """All that a model says of some texts, bit for bit, and what it says of itself."""
    by_object = folder.name not in ("bert", "fast")
    model = TextOutlierDetector.load(
        folder, encoder=ENCODER if by_object else None, cascade=CASCADE if by_object else None, device="cpu"
    )
    found = model.score(ASKED)
    arrays = [found.anomaly_score, found.p_value, found.flagged]
    return [*(np.asarray(array).tobytes() for array in arrays), model.fingerprint, str(model.threshold_)]


def flip_bits(root: Path, n: int, seed: int, names: list[str] | None = None) -> Counter[str]:
    """What became of so many flipped bits: refused, same or other."""
    rng = np.random.default_rng(seed)
    folders = [path for path in sorted((root / "saved").iterdir()) if names is None or path.name in names]
    right = {folder.name: result_of(folder) for folder in folders}
    came: Counter[str] = Counter()
    for i in range(n):
        folder = folders[int(rng.integers(len(folders)))]
        case = root / "case" / folder.name
        shutil.copytree(folder, case, dirs_exist_ok=True)
        flip_one(case / (CONFIG, ARRAYS)[i % 2], rng)
        try:
            came["same" if result_of(case) == right[folder.name] else "other"] += 1
        except ModelError:
            came["refused"] += 1
    return came


def main() -> None:
    """Fit the models, flip bits, write what became of them."""
    args = options(__doc__)
    with tempfile.TemporaryDirectory() as root:
        save_all(Path(root))
        came = flip_bits(Path(root), args.n, args.seed)
    print(dict(came))
    write_json("attacks_model_bits.json", {"machine": machine(), "cases": args.n, "seed": args.seed, "came": came})


if __name__ == "__main__":
    main()
