"""Mutated model folders: loading one either says clearly what is wrong with it, or gives a model that works.

Worked means: loaded; every score finite and every p-value in (0, 1]; flags, explanations, thresholds and the cascade
work; saved and loaded again it gives the same scores. Refused means a StraysError at loading or scoring.

    python -m benchmarks.attacks.models --n 10000 --seed 0
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.attacks.array_mutations import ARRAY_MUTATIONS
from benchmarks.attacks.config_mutations import CONFIG_MUTATIONS
from benchmarks.attacks.file_mutations import ENCODER_MUTATIONS, FILE_MUTATIONS
from benchmarks.attacks.mutating import pick
from benchmarks.attacks.runner import Attack, WrongResultError, main
from benchmarks.attacks.saved import CASCADE, ENCODER, Saved, save_all
from strays.encoders import Encoder
from strays.encoders.distill import distil
from strays.errors import StraysWarning
from strays.model import TextOutlierDetector
from strays.model.cascade_scorer import CascadeScorer

ASKED = ["the cat eats on the roof", "stocks fell again", "the the the", "", "a goat, a hen; and a \ud800 surrogate"]
MUTATIONS = ARRAY_MUTATIONS | CONFIG_MUTATIONS | FILE_MUTATIONS | ENCODER_MUTATIONS
# Of models whose encoder is a folder, which take longer to load.
SHARE_WITH_FILES = 0.06


class Models(Attack):
    """Model folders, damaged."""

    name: ClassVar = "models"
    allowance: ClassVar = 50_000_000

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.encoder: Encoder | None = None
        self.cascade: Encoder | None = None
        child = os.fork()  # fitting starts threads, which a process that is to fork should not have
        if not child:
            try:
                save_all(root)
            finally:
                os._exit(0 if (root / "saved" / "fast").exists() else 1)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the models could not be made")
        self.made = [Saved.read(folder) for folder in sorted((root / "saved").iterdir())]
        self.by_object = [saved for saved in self.made if saved.by_object]
        self.with_files = [saved for saved in self.made if not saved.by_object]
        self.may_read = (str(root / "encoder"),)

        distil(root / "encoder", "mean")  # PyTorch's first run imports much, and makes a folder of its own
        self.warm_up()  # everything that is imported on use is imported before the first case

    def warm_up(self) -> None:
        """Use every model undamaged: buffers of the linear algebra libraries are no memory of the first case."""
        NearestNeighbors().fit(np.eye(8)).kneighbors()  # as for a model of 0.1, or with an array missing
        for saved in self.made:
            saved.write(self.root / "warm" / "model")
            self._pass(saved)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StraysWarning)
                self.use(self.root / "warm")

    def kinds(self) -> list[str]:
        """Names of the mutations."""
        return list(MUTATIONS)

    def make(self, kind: str, rng: np.random.Generator, folder: Path) -> str:
        """Write a damaged model."""
        with_files = kind in ENCODER_MUTATIONS or rng.random() < SHARE_WITH_FILES
        saved = pick(rng, self.with_files if with_files else self.by_object)
        self._pass(saved)
        if kind == "settings of the encoder" and rng.random() < 0.5:
            self.encoder = None
        words = MUTATIONS[kind](rng, saved, folder / "model", self.outside)
        return f"{saved.name} {words}"

    def _pass(self, saved: Saved) -> None:
        """Which encoder objects are passed when the model is loaded."""
        self.encoder = ENCODER if saved.by_object else None
        self.cascade = CASCADE if saved.by_object else None

    def use(self, folder: Path) -> None:
        """Load the model and do with it all that one can."""
        model = TextOutlierDetector.load(folder / "model", encoder=self.encoder, cascade=self.cascade, device="cpu")
        scores = self._scores(model)
        model.info()
        _ = model.fingerprint
        model.predict(ASKED[:1])
        model.decision_function(ASKED[:2])
        explained = model.explain(ASKED[0])
        explained.to_dict()
        numbers = [explained.anomaly_score, explained.p_value, *(segment.effect for segment in explained.segments)]
        numbers += [n.similarity for n in (*explained.nearest_normals, *explained.nearest_anomalies)]
        if not np.isfinite(numbers).all():
            raise WrongResultError(f"an explanation of {numbers}")
        if model.cascade_ is not None and not model.threshold_.together:
            found = CascadeScorer(model).score(ASKED)
            if not np.isfinite(found.anomaly_score).all():
                raise WrongResultError(f"cascade scores {found.anomaly_score}")
        model.save(folder / "again")
        again = TextOutlierDetector.load(folder / "again", encoder=self.encoder, cascade=self.cascade, device="cpu")
        if not np.array_equal(self._scores(again), scores):
            raise WrongResultError("saved and loaded again, it scores differently")
        for rule in ({"top": 2}, {"max_false_share": 0.5}, {"flag_rate": 0.5}, {"max_false_alarms": 0.5}):
            again.set_threshold(**rule).score(ASKED)

    def _scores(self, model: TextOutlierDetector) -> np.ndarray:
        found = model.score(ASKED)
        if found.anomaly_score.shape != (len(ASKED),) or not np.isfinite(found.anomaly_score).all():
            raise WrongResultError(f"scores {found.anomaly_score}")
        if not ((found.p_value > 0) & (found.p_value <= 1)).all():
            raise WrongResultError(f"p-values {found.p_value}")
        if found.flagged.dtype != bool or found.flagged.shape != (len(ASKED),):
            raise WrongResultError(f"flags {found.flagged}")
        return found.anomaly_score


if __name__ == "__main__":
    main(Models)
