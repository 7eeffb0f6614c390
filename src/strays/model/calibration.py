"""From scores to p-values, and from p-values to flags: the threshold rules.

    p(x) = (1 + how many of m held-out normals score at least T(x)) / (m + 1)

If the held-out rows are normal and a fresh normal text is like them, P(p <= a) <= a: flagging p <= a raises false
alarms on at most a share a of the normals (split conformal prediction; Vovk et al. 2005). Held-out rows that are
anomalies nobody has labelled, and score high, make the p-values larger, that is, more cautious.

Where normals are few, each is scored by a detector fitted on the others' folds, and fresh texts by one fitted on all
(cross-fitting). The detectors of the folds know a little less, so that distances from what is held out are a little
larger than from fresh texts: on the cautious side again. It takes scores that compare from fit to fit, so that networks
are not cross-fitted. benchmarks/validity.py measures both ways.

Of n texts scored together, with p_(1) <= ... <= p_(n), flagging those up to the last p_(k) <= q k / n makes at most a
share q of the flagged ones false, in expectation (Benjamini and Hochberg 1995; for p-values that share held-out rows,
Bates et al. 2023).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Literal

import numpy as np

from strays.detectors.array_spec import ArraySpec, check_arrays
from strays.detectors.sampling import evenly
from strays.errors import StraysWarning, UsageError
from strays.model.contamination import Contamination, estimate_contamination

Rule = Literal["max_false_alarms", "max_false_share", "flag_rate", "top"]
# Scores kept of a corpus, and texts held out of one: more change no threshold that matters.
MOST_KEPT = 100_000
# Scores tie that differ by less than this share of a typical one. A text's score does not depend on its batch, but kept
# scores may come from another processor or from version 0.1, and hundreds of equal texts must not be flagged for that.
TIED = 1e-5
# Held-out texts are too few for max_false_share where more than this share of a file would have to be odd.
MOST_ODD = 0.05


@dataclass(frozen=True)
class Threshold:
    """What a user wants flagged. Build it with `threshold`, which checks it.

    >>> print(threshold(flag_rate=0.1))
    the oddest 10 % of texts like those the model was fitted on
    >>> threshold(top=10).together
    True
    """

    rule: Rule
    value: float

    @property
    def together(self) -> bool:
        """Whether a text's flag depends on the others scored with it."""
        return self.rule in ("max_false_share", "top")

    def __str__(self) -> str:
        percent = f"{100 * self.value:.3g} %"
        if self.rule == "max_false_alarms":
            return f"at most {percent} of normal texts (p-value <= {self.value:.3g})"
        if self.rule == "max_false_share":
            return f"at most {percent} of the flagged texts are normal"
        if self.rule == "flag_rate":
            return f"the oddest {percent} of texts like those the model was fitted on"
        return f"the {self.value:.0f} oddest of the texts scored together"


# What is flagged unless the user chooses: at most 5 % false alarms, and nothing where texts are too few to tell that.
DEFAULT_THRESHOLD = Threshold("max_false_alarms", 0.05)


def threshold(
    *,
    max_false_alarms: float | None = None,
    max_false_share: float | None = None,
    flag_rate: float | None = None,
    top: int | None = None,
) -> Threshold:
    """A threshold from the one option that is given."""
    rules = {
        "max_false_alarms": max_false_alarms,
        "max_false_share": max_false_share,
        "flag_rate": flag_rate,
        "top": top,
    }
    given = {rule: value for rule, value in rules.items() if value is not None}
    if len(given) != 1:
        got = " and ".join(f"{{{rule}}}" for rule in given) or "none"
        one_of = ", ".join(f"{{{rule}}}" for rule in rules)
        raise UsageError(f"got {got}; give exactly one of {one_of}", param=tuple(rules))
    rule, value = next(iter(given.items()))
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{{{rule}}} is {value!r}; must be a number", param=rule)
    if rule == "top" and (value != int(value) or value < 0):
        raise UsageError(f"{{top}} is {value}; must be a whole number of texts, 0 or more", param="top")
    if rule != "top" and not 0 <= value <= 1:
        raise UsageError(f"{{{rule}}} is {value}; must be between 0 and 1", param=rule)
    return Threshold(rule, value)


@dataclass(frozen=True)
class Calibration:
    """Sorted scores of held-out normals, and of the whole corpus the model was fitted on.

    >>> held_out = np.arange(1, 100)  # 99 normal texts that the detector has not seen
    >>> calibration = Calibration.from_scores(held_out, corpus_scores=held_out)
    >>> calibration.p_value(np.array([50, 98, 200]))
    array([0.51, 0.03, 0.01])
    >>> calibration.flagged(threshold(max_false_alarms=0.05), np.array([50, 98, 200]))
    array([False,  True,  True])
    """

    normal_scores: np.ndarray
    corpus_scores: np.ndarray

    @classmethod
    def from_scores(cls, normal_scores: np.ndarray, corpus_scores: np.ndarray) -> Calibration:
        """From scores in any order."""
        return cls(np.sort(normal_scores), evenly(np.sort(corpus_scores), MOST_KEPT))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a model's folder."""
        return {"normal_scores": self.normal_scores, "corpus_scores": self.corpus_scores}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Calibration:
        """From what to_arrays gave."""
        sorted_scores = {name: ArraySpec((name,), ascending=True) for name in ("normal_scores", "corpus_scores")}
        check_arrays(arrays, sorted_scores)
        return cls(arrays["normal_scores"], arrays["corpus_scores"])

    @property
    def lowest_p_value(self) -> float:
        """No text can get a p-value below this; more held-out normals lower it."""
        return 1 / (len(self.normal_scores) + 1)

    @cached_property
    def _tie(self) -> float:
        """How far above a kept score another one still ties with it; the median, as a single score may be huge."""
        return TIED * float(np.median(np.abs(self.normal_scores))) if len(self.normal_scores) else 0.0

    def p_value(self, scores: np.ndarray) -> np.ndarray:
        """The share of fresh normal texts expected to score at least this high; ties count as at least."""
        m = len(self.normal_scores)
        at_least = m - np.searchsorted(self.normal_scores + self._tie, scores, side="left")
        return (1 + at_least) / (m + 1)

    def offset(self, wanted: Threshold, scores: np.ndarray) -> float:
        """The score above which texts are flagged; `scores` are those scored together, which some rules look at."""
        if wanted.rule == "max_false_alarms":
            m = len(self.normal_scores)
            return _score_exceeded_by(self.normal_scores, int(wanted.value * (m + 1) + 1e-9) - 1) + self._tie
        if wanted.rule == "max_false_share":
            p = np.sort(self.p_value(scores))
            few_enough = np.flatnonzero(p <= wanted.value * np.arange(1, len(p) + 1) / max(len(p), 1) + 1e-12)
            rate = float(p[few_enough[-1]]) if len(few_enough) else 0.0
            return self.offset(Threshold("max_false_alarms", rate), scores)
        if wanted.rule == "flag_rate":
            return (
                _score_exceeded_by(self.corpus_scores, int(wanted.value * len(self.corpus_scores) + 1e-9)) + self._tie
            )
        return _score_exceeded_by(np.sort(scores), int(wanted.value))

    def flagged(self, wanted: Threshold, scores: np.ndarray) -> np.ndarray:
        """Which texts are past the threshold; of ties at the edge of `top`, the first ones."""
        if wanted.rule == "top":
            flags = np.zeros(len(scores), dtype=bool)
            flags[np.argsort(-scores, kind="stable")[: int(wanted.value)]] = True
            return flags
        return scores > self.offset(wanted, scores)

    def warn_if_too_fine(self, wanted: Threshold) -> None:
        """Warn of a rule by which nothing can be flagged, as the held-out texts are too few to tell such odd ones."""
        if wanted.rule.startswith("max_") and wanted.value < self.lowest_p_value:
            message = (
                f"{{{wanted.rule}}}={wanted.value:g} is finer than {len(self.normal_scores)} held-out normal texts can "
                f"tell (no p-value is below {self.lowest_p_value:.2g}), so nothing will be flagged. Fit on more texts, "
                "allow more false alarms, or use {flag_rate}"
            )
            warnings.warn(StraysWarning(message, param=(wanted.rule, "flag_rate")), stacklevel=3)

    def warn_if_too_few(self, n_texts: int, *, own: bool = False) -> None:
        """Warn where the texts that a model was fitted on are too few for it to flag anything by default.

        `own`: any of these texts, which is compared with itself too and needs twice as many.
        """
        m, rate = len(self.normal_scores), DEFAULT_THRESHOLD.value
        fewest = {True: math.ceil(2 / rate - 1e-9) - 1, False: math.ceil(1 / rate - 1e-9) - 1}
        if m >= fewest[own] or (own and m < fewest[False]):  # of even fewer, fit has warned
            return
        per_held_out = max(1, round(n_texts / m))  # a network holds out a fifth
        needed = f"{per_held_out * fewest[False]} are needed for new texts, {per_held_out * fewest[True]} for these"
        which = "of them" if own else "text"
        message = (
            f"{n_texts} texts are too few to flag any {which} at {100 * rate:g} % false alarms: {needed}. Texts are "
            "ranked all the same; {flag_rate} flags a share of them"
        )
        warnings.warn(StraysWarning(message, param="flag_rate"), stacklevel=3)

    def warn_if_none_flagged(self, wanted: Threshold, scores: np.ndarray) -> None:
        """Warn where max_false_share flags none of the texts scored together: why, and what helps."""
        n, m, lowest = len(scores), len(self.normal_scores), self.lowest_p_value
        if wanted.rule != "max_false_share" or not wanted.value or not n or self.flagged(wanted, scores).any():
            return
        above_all = int((self.p_value(scores) <= lowest).sum())
        fewest = math.ceil(n * lowest / max(wanted.value, 1e-12) - 1e-9)
        found = estimate_contamination(above_all, n, m, lowest)
        if fewest > MOST_ODD * n or (found and found.beyond_chance):
            why = (
                f"with {m} held-out normal texts no p-value is below {lowest:.2g}, so at least {fewest} of these {n} "
                f"texts would have to be that odd for {100 * wanted.value:g} % of them to be false, and {above_all} "
                "are. Fit on more texts that are normal or labelled, allow a larger share, or use {max_false_alarms}"
            )
        else:
            why = (
                f"{above_all} of these {n} texts score above all {m} held-out texts, no more than chance explains. "
                "Either no text here is odd, or there are unlabelled strays among the held-out texts, as there always "
                "are where a file is compared with itself; more texts would not help. Fit on texts that are all "
                "normal, label the strays among them, or use {max_false_alarms} or {flag_rate}"
            )
        warnings.warn(
            StraysWarning(f"nothing is flagged: {why}", param=("max_false_alarms", "flag_rate")), stacklevel=3
        )

    def contamination(self, p_values: np.ndarray) -> Contamination | None:
        """The share of texts that are odd beyond chance, none of which the model was fitted on."""
        rate = DEFAULT_THRESHOLD.value
        n_flagged = int((p_values <= rate + 1e-12).sum())
        return estimate_contamination(n_flagged, len(p_values), len(self.normal_scores), rate)


def _score_exceeded_by(ascending: np.ndarray, count: int) -> float:
    """The score that at most `count` of these exceed; infinite where even none is too many, or all are few enough."""
    if count < 0:
        return float("inf")
    if count >= len(ascending):
        return float("-inf")
    return float(ascending[len(ascending) - 1 - count])
