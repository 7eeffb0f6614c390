"""Tune an encoder on the labels that there are, and decide by labels that were held out how far to trust it.

An encoder says what a text is about, which need not be what tells normal texts from anomalies: whether a sentence
reports a result or a method, say. Where anomalies are known, its upper layers can learn that from them
(tuning_steps.py). It may also forget what it knew and needs: where the known anomalies are few, or stand out already.

So half of the texts and labels tune it first, and the other half judge: the model's own detector, fitted on the first
half, ranks the known anomalies of the second among the presumed normal texts, with none of the tuning, a half of it,
and all of it. Then the halves change places; where few anomalies are known, once more with other halves. What ranks
them best is then learnt from all, unless that is hardly better than nothing or may be chance: then nothing is. The
texts that p-values rest on have no part in any of this.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from strays.detectors import Detector
from strays.detectors.estimator import clone
from strays.detectors.sampling import evenly
from strays.detectors.threads import few_threads
from strays.encoders import Encoder, Progress
from strays.encoders.library_errors import running
from strays.encoders.low_rank import LowRankUpdates
from strays.errors import StraysWarning, UsageError
from strays.model.fitting import hold_out
from strays.model.form import text_hashes

if TYPE_CHECKING:
    from strays.encoders.trainable_bert import States, TrainableBert
    from strays.encoders.transformer import TransformerEncoder

# Fewer known anomalies or presumed normal texts than this cannot both teach and judge.
FEWEST_KNOWN, FEWEST_NORMAL = 20, 40
# Of more presumed normal texts and known anomalies, evenly spaced ones are learnt from; and tokens of a text at most.
MOST_NORMAL, MOST_KNOWN, LONGEST = 2000, 1000, 128
# How much of the tuning may be used, and the least it must gain on average: of an AUC of 1, and in standard errors.
SHARES, LEAST_GAIN, SURE = (0.5, 1.0), 0.01, 1.5
# Few known anomalies are learnt in few steps: so many times the root of their number, and so many at most. A step sees
# so many presumed normal texts, and as many known anomalies. Chosen on dev splits; see benchmarks/LOG.md.
STEPS_OF_ONE, MOST_STEPS, HALF_BATCH = 7, 120, 16
# Up to so many known anomalies, halves are drawn twice.
FEW_KNOWN = 150
# For an estimate of the time: how often a model's layers are passed through by a token of every text, and of a text of
# a step, and what a core can do.
TO_LOOK_AT, TO_LEARN, CHARACTERS_OF_TOKEN, OPERATIONS_PER_SECOND = 3, 2, 4.5, 7e10


@dataclass(frozen=True)
class TuningResult:
    """What came of it: a `share` of what was learnt is used, 0 for none.

    `auc` is how many percent of the presumed normal texts a held-out known anomaly ranks above without tuning, and
    `auc_tuned` with the best share of it.

    >>> print(TuningResult(2000, 300, 1.0, 80.5, 91.2))
    tuned on 2,000 texts and 300 known anomalies: the AUC of held-out ones rises from 80.5 to 91.2
    >>> print(TuningResult(2000, 30, 0.0, 97.3, 97.1))
    not tuned: the AUC of held-out known anomalies is 97.3, and with tuning 97.1
    """

    n_normal: int
    n_known: int
    share: float
    auc: float
    auc_tuned: float

    def __str__(self) -> str:
        if not self.share:
            without = f"the AUC of held-out known anomalies is {self.auc:.1f}"
            return f"not tuned: {without}, and with tuning {self.auc_tuned:.1f}"
        part = "half as far as it could be, " if self.share < 1 else ""
        texts = f"{self.n_normal:,} texts and {self.n_known:,} known anomalies"
        rise = f"the AUC of held-out ones rises from {self.auc:.1f} to {self.auc_tuned:.1f}"
        return f"tuned {part}on {texts}: {rise}"


def require_tunable(encoder: Encoder) -> TransformerEncoder:
    """The encoder, if it is one that can be tuned here."""
    found = require_transformer(encoder)
    found.require_trainable()
    return found


def require_transformer(encoder: Encoder) -> TransformerEncoder:
    """The encoder, if it is of the kind that can be tuned."""
    from strays.encoders.transformer import TransformerEncoder

    if not isinstance(encoder, TransformerEncoder):
        raise UsageError(
            f"{{tune}} needs a transformer that strays loads by name or from a folder; got {encoder!r:.60}",
            param="tune",
        )
    return encoder


def can_be_tuned(encoder: Encoder) -> bool:
    """Whether an encoder is of a kind that can be tuned, and is not tuned yet."""
    return bool(getattr(encoder, "can_learn", False))


def steps_for(n_known: int) -> int:
    """How many steps learn from so many known anomalies."""
    return min(MOST_STEPS, round(STEPS_OF_ONE * math.sqrt(n_known)))


def rounds_for(n_known: int) -> int:
    """How often the texts are cut into halves to judge by."""
    return 2 if n_known <= FEW_KNOWN else 1


def seconds_to_tune(encoder: Encoder, texts: Sequence[str], n_known: int) -> float:
    """About how long the encoder would be tuned on some of these texts, on the processor."""
    from strays.encoders.runtimes.base import usable_cores

    config = require_transformer(encoder).config
    tokens = min(LONGEST, 2 + sum(map(len, texts)) / (CHARACTERS_OF_TOKEN * len(texts)))
    n_known = min(n_known, MOST_KNOWN)
    rounds = rounds_for(n_known)
    learnt = (2 * rounds * steps_for(n_known // 2) + steps_for(n_known)) * 2 * HALF_BATCH
    passes = TO_LEARN * learnt + TO_LOOK_AT * rounds * min(len(texts), MOST_NORMAL + MOST_KNOWN)
    operations = 24 * tokens * passes * config.num_hidden_layers * config.hidden_size**2
    return operations / (OPERATIONS_PER_SECOND * usable_cores())


def tune_encoder(
    encoder: Encoder,
    detector: Detector,
    texts: Sequence[str],
    rows: np.ndarray,
    y: np.ndarray,
    share: float | None,
    random_state: int | None,
    progress: Progress | None = None,
) -> tuple[Encoder, TuningResult | None, np.ndarray | None]:
    """The encoder as the labels y of texts tune it, what came of that, and the rows of texts that it has not seen.

    `rows` are what the detector sees of the texts before: embeddings, and columns of the form. `share` of the presumed
    normal texts is held out for the detector to be calibrated by; they are no part of what decides, either. With too
    few known anomalies nothing is tried. An encoder that is better as it is comes back, and all rows are as they were.
    """
    trainable = require_tunable(encoder)
    n_known, held_out = int((y < 0).sum()), hold_out(y, share, random_state)
    n_normal = int((y >= 0).sum()) - len(held_out)
    if n_known < FEWEST_KNOWN or n_normal < FEWEST_NORMAL:
        few = f"{n_known} known anomal{'y is' if n_known == 1 else 'ies are'}"
        few = few if n_known < FEWEST_KNOWN else f"{n_normal} normal texts besides those held out are"
        expected = FEWEST_KNOWN if n_known < FEWEST_KNOWN else FEWEST_NORMAL
        said = f"{few} too few to tune the encoder on; it stays as it is. Expected at least {expected}"
        warnings.warn(StraysWarning(said), stacklevel=3)
        return encoder, None, None
    rest = np.setdiff1d(np.arange(len(y)), held_out)
    normal, known = evenly(rest[y[rest] >= 0], MOST_NORMAL), evenly(rest[y[rest] < 0], MOST_KNOWN)
    used = np.r_[normal, known]
    rounds = rounds_for(len(known))
    tell = _Stages(progress, 2 + 4 * rounds)
    ids = [_cut(of_text) for of_text in trainable.token_ids([texts[i] for i in used.tolist()])]
    rng = np.random.default_rng(random_state)
    halves = [_halves(len(normal), len(known), rng) for _ in range(rounds)]
    bert = trainable.trainable()
    with running(trainable.folder):
        states = bert.lower(ids, tell.next())
        X = bert.embedded(states, 0.0)
        form = rows[used][:, X.shape[1] :]
        work = _Work(bert, states, X, form, y[used], detector, int(rng.integers(2**31)))
        above = np.mean([work.judged_in_turn(half, tell) for half in halves], axis=0)
        used_share, mean = chosen(above), (100 * above.mean(axis=0)).round(2).tolist()
        auc_tuned = mean[1 + SHARES.index(used_share)] if used_share else max(mean[1:])
        found = TuningResult(len(normal), len(known), used_share, mean[0], auc_tuned)
        if not used_share:
            tell.next()(1, 1)
            return encoder, found, None
        learnt = work.learnt(np.arange(len(used)), tell.next()).scaled(used_share)
        updates = LowRankUpdates(learnt, text_hashes([texts[i] for i in used.tolist()]))
    return trainable.updated(updates), found, held_out


def chosen(above: np.ndarray) -> float:
    """The share of the tuning to use, from the share of the normal texts that each known anomaly ranks above: without
    tuning, and with each of SHARES.
    """
    gain = above[:, 1:] - above[:, :1]
    best = int(gain.mean(axis=0).argmax())
    error = gain[:, best].std() / np.sqrt(len(gain))
    return SHARES[best] if gain[:, best].mean() > max(LEAST_GAIN, SURE * error) else 0.0


@dataclass(frozen=True, eq=False)
class _Work:
    """Texts as what an encoder's lower layers make of them, embeddings X before, columns of form, and labels."""

    bert: TrainableBert
    states: States
    X: np.ndarray
    form: np.ndarray
    y: np.ndarray
    detector: Detector
    seed: int

    def learnt(self, of: np.ndarray, progress: Progress) -> LowRankUpdates:
        """What the encoder learns from some of the texts."""
        from strays.model.tuning_steps import tune

        normal, known = of[self.y[of] >= 0], of[self.y[of] < 0]
        steps, seed = steps_for(len(known)), self.seed
        tune(self.bert, self.states, normal, known, steps=steps, half_batch=HALF_BATCH, seed=seed, progress=progress)
        return self.bert.updates()

    def judged_in_turn(self, half: np.ndarray, tell: _Stages) -> np.ndarray:
        """What share of the normal texts each known one ranks above, as `judged` by the half it is not in."""
        above = np.empty((len(half), 1 + len(SHARES)))
        for i in (0, 1):
            by = np.flatnonzero(half != i)
            above[by[self.y[by] < 0]] = self.judged(np.flatnonzero(half == i), by, tell)
        return above[self.y < 0]

    def judged(self, of: np.ndarray, by: np.ndarray, tell: _Stages) -> np.ndarray:
        """What share of the normal texts among `by` each known one ranks above (known ones, 1 + SHARES): without what
        is learnt from `of`, and with SHARES of it.
        """
        found = [self._above(self.X, of, by)]
        self.learnt(of, tell.next())
        done = tell.next()
        for i, share in enumerate(SHARES):
            found.append(self._above(self.bert.embedded(self.states, share), of, by))
            done(i + 1, len(SHARES))
        return np.column_stack(found)

    def _above(self, X: np.ndarray, of: np.ndarray, by: np.ndarray) -> np.ndarray:
        rows = np.hstack([X, self.form])
        with few_threads(len(of)):
            scores = clone(self.detector).fit(rows[of], self.y[of]).anomaly_score(rows[by])
        known, normals = scores[self.y[by] < 0], np.sort(scores[self.y[by] >= 0])
        below = np.searchsorted(normals, known, "left") + np.searchsorted(normals, known, "right")
        return np.asarray(below / (2 * len(normals)))


class _Stages:
    """Progress of several stages that take about equally long."""

    def __init__(self, progress: Progress | None, n: int) -> None:
        self._progress, self._n, self._at = progress, n, -1

    def next(self) -> Progress:
        """The progress of the next stage."""
        self._at += 1
        at = self._at

        def tell(done: int, total: int) -> None:
            if self._progress:
                self._progress(round(100 * (at + done / total)), 100 * self._n)

        return tell


def _halves(n_normal: int, n_known: int, rng: np.random.Generator) -> np.ndarray:
    """The half, 0 or 1, of normal texts and of the known anomalies behind them, each cut in two at random."""
    half = np.empty(n_normal + n_known, dtype=int)
    for part in (np.arange(n_normal), n_normal + np.arange(n_known)):
        half[rng.permutation(part)] = np.arange(len(part)) % 2
    return half


def _cut(ids: list[int]) -> list[int]:
    """The first LONGEST tokens at most, with the one that marks the end; a text without any is read as one."""
    return (ids or [0]) if len(ids) <= LONGEST else [*ids[: LONGEST - 1], ids[-1]]
