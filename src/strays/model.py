"""TextOutlierDetector: an encoder, a detector and a calibration that know one another."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from strays import __version__
from strays.arrays import whole_number
from strays.calibration import MOST_KEPT, Calibration, threshold
from strays.cascade import Cascade, static_encoder_of
from strays.detectors import DETECTORS, Detector, detector_class
from strays.encoders import Encoder, StreamingEncoder, load_encoder
from strays.encoders.base import check_texts
from strays.encoders.settings import EncoderSettings
from strays.errors import DataError, ModelError, StraysWarning, UsageError
from strays.explain import Examples, Explanation, effects, pieces, split
from strays.labels import parse_labels
from strays.persistence import load_folder, save_folder

# Fewer different texts than this leave nothing to compare a text with.
FEWEST_TEXTS = 3
# Up to this many presumed normal texts all are held out in turn, in folds; of more, a share is held out once for all.
MOST_IN_FOLDS = 2000
HELD_OUT = 0.2
# Texts that are scored together; their embeddings are then forgotten.
SCORED_AT_ONCE = 8192


@dataclass(frozen=True)
class Scores:
    """What a model says of texts scored together, one entry each."""

    anomaly_score: np.ndarray
    p_value: np.ndarray
    flagged: np.ndarray
    # Which scores are the model's own, where the others are a cascade's estimates.
    by_full: np.ndarray | None = None


@dataclass(frozen=True)
class FitSummary:
    """What a model was fitted on. Its p-values rest on `n_held_out` texts: a share, or all in `n_folds` turns."""

    n_texts: int
    n_normal: int
    n_anomaly: int
    n_unlabelled: int
    n_held_out: int
    n_folds: int = 0


class TextOutlierDetector(BaseEstimator):
    """Find the texts that do not belong.

    Parameters
    ----------
    encoder
        Name of an encoder ('default', 'bert', a Hugging Face id, a folder), or any object with encode(texts).
    detector
        Name of a detector ('auto' takes what labels there are, none to thousands; others: see DETECTORS), or a detector
        object.
    held_out
        Share of the presumed normal texts that the detector does not see, to calibrate p-values and thresholds. None:
        a fifth; but few texts are all scored in turn by detectors fitted without them, and the model is fitted on all,
        where scores of different fits compare (not with networks).
    keep_examples
        How many normal texts and how many known anomalies the model keeps, and saves, to explain with; 0 keeps none.
    cascade
        Also fit a cheap head on a static encoder, distilled from this one, for scoring by strays.triage.CascadeScorer;
        or the cheap encoder to fit it on, as an object.
    random_state
        Seed of everything random: the same seed, texts and labels give the same scores.

    Attributes
    ----------
    encoder_, detector_
        The encoder and the fitted detector in use.
    calibration_
        Sorted scores of held-out normals and of the corpus.
    threshold_
        What is flagged; see set_threshold.
    examples_
        Texts kept to explain with.
    summary_
        How many texts of each kind the model was fitted on.
    cascade_
        The fitted head, where there is a cascade; None otherwise.
    training_scores_
        Anomaly scores of the texts given to fit, in their order; not saved.
    """

    def __init__(
        self,
        encoder: str | Encoder = "default",
        detector: str | Detector = "auto",
        *,
        held_out: float | None = None,
        keep_examples: int = 1000,
        cascade: bool | Encoder = False,
        random_state: int | None = 0,
    ) -> None:
        self.encoder = encoder
        self.detector = detector
        self.held_out = held_out
        self.keep_examples = keep_examples
        self.cascade = cascade
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str | None] | None = None,
        *,
        embeddings: np.ndarray | None = None,
    ) -> Self:
        """Learn what is normal from texts and, where there are any, labels: 'normal', 'anomaly' or None for each.

        `embeddings` are the encoder's own, one row for each text, where they are at hand.
        """
        if self.held_out is not None and not 0 < self.held_out < 1:
            raise UsageError(f"held_out is {self.held_out}; expected a share between 0 and 1, or None")
        if self.keep_examples < 0:
            raise UsageError(f"keep_examples is {self.keep_examples}; expected 0 or more")
        self._expected_fingerprint = None
        texts = check_texts(texts)
        y = parse_labels(labels, len(texts))
        _require_variety(texts, y)
        detector = self._make_detector()
        self.encoder_ = load_encoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        triage = static_encoder_of(self.encoder_) if self.cascade is True else (self.cascade or None)
        X = self._encode(texts) if embeddings is None else _one_for_each(embeddings, texts)
        if not np.ptp(X, axis=0).any():
            raise DataError(
                f"the encoder {self.encoder_!r} cannot tell these texts apart: all {len(texts)} get one embedding. "
                "Choose an encoder made for their language"
            )

        normals = np.random.default_rng(self.random_state).permutation(np.flatnonzero(y >= 0))
        if self.held_out is None and len(normals) <= MOST_IN_FOLDS and detector.comparable_fits:
            folds = _folds(X, normals, 10 if len(normals) <= MOST_IN_FOLDS // 4 else 5)
            in_turn = [_fit_without(detector, X, y, fold).anomaly_score(X[fold]) for fold in folds]
            self.detector_, n_folds = detector.fit(X, y), len(folds)
            held_out, normal_scores = np.concatenate(folds), np.concatenate(in_turn)
        else:
            wanted = math.floor((self.held_out or HELD_OUT) * len(normals))
            held_out = normals[: min(max(1, wanted), len(normals) - 2, MOST_KEPT)]
            self.detector_, n_folds = _fit_without(detector, X, y, held_out), 0
            normal_scores = self.detector_.anomaly_score(X[held_out])
        self.training_scores_ = self.detector_.anomaly_score(X)
        self.calibration_ = Calibration.from_scores(normal_scores, self.training_scores_)
        self.threshold_ = self.calibration_.default_threshold()
        self.examples_ = Examples.choose(texts, X, y, self.keep_examples)
        self.cascade_ = None
        if triage:
            scores, honest = self.training_scores_.copy(), (y >= 0) & detector.left_out_scores
            if not detector.left_out_scores:
                scores[held_out], honest[held_out] = normal_scores, True
            self.cascade_ = Cascade.fit(triage, texts, scores, honest)
        self.summary_ = FitSummary(
            n_texts=len(texts),
            n_normal=int((y > 0).sum()),
            n_anomaly=int((y < 0).sum()),
            n_unlabelled=int((y == 0).sum()),
            n_held_out=len(normal_scores),
            n_folds=n_folds,
        )
        return self

    def _make_detector(self) -> Detector:
        if isinstance(self.detector, str):
            detector = detector_class(self.detector)()
        elif isinstance(self.detector, Detector):
            detector = clone(self.detector)
        else:
            raise UsageError(
                f"detector is {self.detector!r:.80}; expected one of {', '.join(DETECTORS)}, or an object from "
                "strays.detectors"
            )
        if "random_state" in detector.get_params() and detector.random_state is None:
            detector.set_params(random_state=self.random_state)
        return detector

    # ---- scoring -----------------------------------------------------------------------------------------------------

    def score(self, texts: Sequence[str]) -> Scores:
        """Anomaly scores, p-values and flags in one go; the texts are encoded once."""
        return self.judge(self.anomaly_score(texts))

    def judge(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""
        self._require_fitted()
        flagged = self.calibration_.flagged(self.threshold_, scores)
        if self.threshold_.rule == "max_false_share" and len(scores) and not flagged.any():
            fewest = self.calibration_.fewest_flagged(self.threshold_, len(scores))
            warnings.warn(
                f"nothing is flagged: with {self.summary_.n_held_out} held-out normal texts no p-value is below "
                f"{self.calibration_.lowest_p_value:.2g}, so that at least {fewest} of these {len(scores)} texts would "
                f"have to be that odd for {self.threshold_.value:g} of them to be false. Fit on more texts, allow a "
                "larger share, or use max_false_alarms",
                StraysWarning,
                stacklevel=2,
            )
        return Scores(scores, self.calibration_.p_value(scores), flagged)

    def anomaly_score(self, texts: Sequence[str]) -> np.ndarray:
        """One float for each text; higher is odder. A text's score does not depend on the others."""
        self._require_fitted()
        texts = check_texts(texts)
        self.detector_.scoring_device = getattr(self.encoder_, "scoring_device", "cpu")
        distinct = list(dict.fromkeys(texts))
        scores = np.empty(len(distinct))
        for rows, part in self._scored(distinct):
            scores[rows] = part
        if len(distinct) == len(texts):
            return scores
        score = dict(zip(distinct, scores.tolist(), strict=True))
        return np.array([score[text] for text in texts])

    def p_value(self, texts: Sequence[str]) -> np.ndarray:
        """The share of fresh normal texts expected to score at least as high as each text."""
        return self.score(texts).p_value

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """+1 for normal texts, -1 for flagged ones."""
        return np.where(self.score(texts).flagged, -1, 1)

    def score_samples(self, texts: Sequence[str]) -> np.ndarray:
        """The negated anomaly score; lower is odder, as in scikit-learn."""
        return -self.anomaly_score(texts)

    def decision_function(self, texts: Sequence[str]) -> np.ndarray:
        """The threshold minus the anomaly score; negative is flagged."""
        scores = self.anomaly_score(texts)
        return self.calibration_.offset(self.threshold_, scores) - scores

    def explain(self, text: str, *, n_neighbours: int = 3) -> Explanation:
        """Why a text scores as it does: what its segments add, and the kept texts it is most like."""
        return self.explain_many([text], n_neighbours=n_neighbours)[0]

    def explain_many(self, texts: Sequence[str], *, n_neighbours: int = 3) -> list[Explanation]:
        """Like explain, for several texts, whose pieces are all encoded in one go."""
        self._require_fitted()
        texts = check_texts(texts)
        if not all(text.strip() for text in texts):
            raise DataError("there is no text to explain; expected one that is not blank")
        spans = [split(text) for text in texts]
        parts = [[text, *pieces(text, of)] for text, of in zip(texts, spans, strict=True)]
        if not parts:
            return []
        X = self._encode([piece for part in parts for piece in part])
        ends = np.cumsum([len(part) for part in parts])[:-1]
        both = zip(np.split(X, ends), np.split(self._scores_of(X), ends), strict=True)
        return [
            self._explanation(text, of, x, scores, n_neighbours)
            for text, of, (x, scores) in zip(texts, spans, both, strict=True)
        ]

    def _explanation(
        self, text: str, spans: list[tuple[int, int]], X: np.ndarray, scores: np.ndarray, n_neighbours: int
    ) -> Explanation:
        """From the embeddings and scores of a text and then its pieces."""
        flagged = self.calibration_.flagged(self.threshold_, scores[:1])[0]
        return Explanation(
            text,
            anomaly_score=float(scores[0]),
            p_value=float(self.calibration_.p_value(scores[:1])[0]),
            flagged=None if self.threshold_.together else bool(flagged),
            segments=effects(text, spans, scores[1:]),
            nearest_normals=self.examples_.nearest(X[0], anomalies=False, n=n_neighbours, besides=text),
            nearest_anomalies=self.examples_.nearest(X[0], anomalies=True, n=n_neighbours, besides=text),
        )

    def set_threshold(
        self,
        *,
        max_false_alarms: float | None = None,
        max_false_share: float | None = None,
        flag_rate: float | None = None,
        top: int | None = None,
    ) -> Self:
        """Choose what is flagged, without fitting again. Give one of:

        max_false_alarms
            The highest share of normal texts that may be flagged.
        max_false_share
            The highest share of the flagged texts that may be normal, in expectation, among texts scored together.
        flag_rate
            The share of texts to flag, were they all like the corpus the model was fitted on.
        top
            How many of the texts scored together to flag, the highest-scoring ones.
        """
        self._require_fitted()
        self.threshold_ = threshold(
            max_false_alarms=max_false_alarms, max_false_share=max_false_share, flag_rate=flag_rate, top=top
        )
        lowest = self.calibration_.lowest_p_value
        if self.threshold_.rule.startswith("max_") and 0 < self.threshold_.value < lowest:
            warnings.warn(
                f"{self.threshold_.rule}={self.threshold_.value:g} is finer than {self.summary_.n_held_out} held-out "
                f"normal texts can tell (no p-value is below {lowest:.2g}), so nothing will be flagged. Fit on more "
                "texts, allow more false alarms, or use flag_rate or top",
                StraysWarning,
                stacklevel=2,
            )
        return self

    def info(self) -> dict[str, Any]:
        """What this model is, as plain data."""
        self._require_fitted()
        settings = getattr(self.encoder_, "pinned", None)
        return {
            "version": self.version,
            "encoder": settings.to_dict() if settings else {"name": type(self.encoder_).__name__},
            "detector": {
                "name": _registered_name(self.detector_),
                "params": _plain_params(self.detector_),
                "says": self.detector_.describe(),
            },
            "fitted_on": asdict(self.summary_),
            "lowest_p_value": self.calibration_.lowest_p_value,
            "threshold": asdict(self.threshold_),
            "flags": str(self.threshold_),
            "cascade": self._cascade_info(),
        }

    def _cascade_info(self) -> dict[str, Any] | None:
        """What a cascade would do with the present threshold, as plain data."""
        if self.cascade_ is None or self.threshold_.together:
            return None
        cut = self.cascade_.cut(self.calibration_.offset(self.threshold_, np.empty(0)))
        return {"recall": cut.recall, "expected_share": cut.share, "n_held_out": cut.n_held_out}

    # ---- saving ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a folder of JSON and safetensors; an older model there is replaced."""
        self._require_fitted()
        name = _registered_name(self.detector_)
        if name not in DETECTORS:
            raise ModelError(f"a {name} cannot be saved; expected one of {', '.join(DETECTORS)}")
        save_folder(path, {"strays_version": __version__} | self._config(), self._arrays())

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        cascade: Encoder | None = None,
        device: str = "auto",
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Read a saved model.

        A model fitted with an encoder object of your own, or with one for its cascade, needs that again; device and
        progress are for the others, as in load_encoder.
        """
        config, arrays = load_folder(path)
        try:
            _check_config(config)
            settings = config["encoder"]["settings"]
            if encoder is None and settings is None:
                raise ModelError(
                    "was fitted with an encoder object, which is not saved; pass it: load(..., encoder=...)"
                )
            detector = detector_class(config["detector"]["name"])(**config["detector"]["params"])
            state, examples, calibration, head = (
                {key.removeprefix(place): a for key, a in arrays.items() if key.startswith(place)}
                for place in ("detector/", "examples/", "calibration/", "cascade/")
            )
            if encoder is None:
                # Models older than the choice of a precision are of full precision.
                asked = EncoderSettings(**{"precision": "full", **settings})
                encoder = load_encoder(**asked.to_dict(), device=device, progress=progress)
            model = cls(
                encoder=encoder,
                detector=detector,
                held_out=config["held_out"],
                keep_examples=config["keep_examples"],
                cascade=cascade or config.get("cascade") is not None,
                random_state=config["random_state"],
            )
            model.encoder_ = encoder
            model.detector_ = clone(detector).set_state(state)
            model.calibration_ = Calibration.from_arrays(calibration)
            model.threshold_ = threshold(**{config["threshold"]["rule"]: config["threshold"]["value"]})
            model.summary_ = FitSummary(**config["summary"])
            model.examples_ = Examples.from_arrays(examples, model.detector_.n_features_in_)
            model.cascade_ = _load_cascade(config.get("cascade"), cascade, head)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelError(f"{path}: the model's files do not fit together ({error!r:.300}); fit it again") from error
        model._expected_fingerprint = config["encoder"].get("fingerprint")
        return model

    @property
    def estimates(self) -> bool:
        """No: every score is the model's own; a cascade has estimates."""
        return False

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on; the threshold, which can be chosen anew, is no part of it."""
        self._require_fitted()
        config = {key: value for key, value in self._config().items() if key != "threshold"}
        hashed = hashlib.sha256(json.dumps(config, sort_keys=True, default=repr).encode())
        for name, array in sorted(self._arrays().items()):
            hashed.update(f"{name} {array.dtype} {array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()

    @property
    def version(self) -> str:
        """The beginning of the fingerprint: what a saved model, a served one and a job are told apart by."""
        return self.fingerprint[:16]

    # ---- inside ------------------------------------------------------------------------------------------------------

    _expected_fingerprint: str | None = None
    cascade_: Cascade | None = None

    def _config(self) -> dict[str, Any]:
        encoder = _what_encoder(self.encoder_)
        return {
            "encoder": encoder | {"fingerprint": self._expected_fingerprint or encoder["fingerprint"]},
            "cascade": _what_encoder(self.cascade_.encoder) if self.cascade_ else None,
            "detector": {"name": _registered_name(self.detector_), "params": _plain_params(self.detector_)},
            "held_out": self.held_out,
            "keep_examples": self.keep_examples,
            "random_state": None if self.random_state is None else int(self.random_state),
            "threshold": asdict(self.threshold_),
            "summary": asdict(self.summary_),
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"detector/{name}": array for name, array in self.detector_.get_state().items()}
        arrays |= {f"examples/{name}": array for name, array in self.examples_.to_arrays().items()}
        if self.cascade_:
            arrays |= {f"cascade/{name}": array for name, array in self.cascade_.to_arrays().items()}
        return arrays | {f"calibration/{name}": array for name, array in self.calibration_.to_arrays().items()}

    def _encode(self, texts: list[str]) -> np.ndarray:
        self._require_same_encoder()
        return _one_for_each(np.asarray(self.encoder_.encode(texts)), texts)

    def _scored(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, scores of these texts); the detector works on some rows while the next are encoded."""
        if len(texts) <= SCORED_AT_ONCE:  # nothing comes next, and a thread of its own costs more than these rows
            yield from ((rows, self._scores_of(X)) for rows, X in self._embedded(texts))
            return
        with ThreadPoolExecutor(1) as beside:
            under_way: deque[tuple[np.ndarray, Future[np.ndarray]]] = deque()
            for rows, X in self._embedded(texts):
                under_way.append((rows, beside.submit(self._scores_of, X)))
                if len(under_way) > 2:  # so that few embeddings are in memory
                    rows, part = under_way.popleft()
                    yield rows, part.result()
            for rows, part in under_way:
                yield rows, part.result()

    def _embedded(self, texts: list[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, embeddings of these texts), some thousand at a time, in the order that is fastest."""
        if not isinstance(self.encoder_, StreamingEncoder):
            for start in range(0, len(texts), SCORED_AT_ONCE):
                block = texts[start : start + SCORED_AT_ONCE]
                yield np.arange(start, start + len(block)), self._encode(block)
            return
        self._require_same_encoder()
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for part in self.encoder_.stream(texts):
            parts.append(part)
            if sum(len(rows) for rows, _ in parts) >= SCORED_AT_ONCE:
                yield _gathered(parts, texts)
                parts = []
        if parts:
            yield _gathered(parts, texts)

    def _scores_of(self, X: np.ndarray) -> np.ndarray:
        """The detector's scores of embeddings."""
        if X.shape[1] != self.detector_.n_features_in_:
            raise ModelError(
                f"the encoder {self.encoder_!r:.200} gives embeddings of {X.shape[1]} numbers, but this model was "
                f"fitted on {self.detector_.n_features_in_}. Use the same encoder, or fit again"
            )
        return self.detector_.anomaly_score(X)

    def _require_same_encoder(self) -> None:
        expected = self._expected_fingerprint
        if expected is not None and getattr(self.encoder_, "fingerprint", None) != expected:
            raise ModelError(
                f"the encoder {self.encoder_!r:.200} is not the one this model was fitted with (its weights or "
                "settings differ), so scores would mean nothing. Use the same encoder, or fit again"
            )

    def _require_fitted(self) -> None:
        if not hasattr(self, "detector_"):
            raise UsageError("this model is not fitted yet; call fit(texts) first, or load a saved model")


def _check_config(config: dict[str, Any]) -> None:
    """Raise unless what a saved model says of itself could have been written by save."""
    held_out, seed, summary = config["held_out"], config["random_state"], config["summary"]
    if held_out is not None and not (isinstance(held_out, float) and 0 < held_out < 1):
        raise ModelError(f"held_out is {held_out!r:.60}; expected a share between 0 and 1, or nothing. Fit it again")
    if seed is not None and not whole_number(seed, high=2**64):
        raise ModelError(f"random_state is {seed!r:.60}; expected a whole number or nothing. Fit it again")
    counts = {"keep_examples": config["keep_examples"], **summary}
    for name, value in counts.items():
        if not whole_number(value, high=2**63):
            raise ModelError(f"{name!r:.60} is {value!r:.60}; expected a whole number of texts. Fit it again")
    for part in filter(None, (config["encoder"], config.get("cascade"))):
        settings, fingerprint = part["settings"], part["fingerprint"]
        # An encoder that is found by its name is used only if it is the one the model was fitted with.
        if not isinstance(fingerprint, str if settings is not None else str | None):
            raise ModelError(f"an encoder's fingerprint is {fingerprint!r:.60}; expected its hash. Fit it again")


def _what_encoder(encoder: Encoder) -> dict[str, Any]:
    settings = getattr(encoder, "pinned", None)
    return {
        "settings": settings.to_dict() if settings else None,
        "fingerprint": getattr(encoder, "fingerprint", None),
    }


def _load_cascade(saved: dict[str, Any] | None, given: Encoder | None, arrays: dict[str, np.ndarray]) -> Cascade | None:
    if saved is None:
        return None
    if given is None and saved["settings"] is None:
        raise ModelError(
            "its cascade was fitted with an encoder object, which is not saved; pass it: load(..., cascade=...)"
        )
    encoder = given or load_encoder(**EncoderSettings(**saved["settings"]).to_dict())
    return Cascade.from_arrays(encoder, arrays, saved["fingerprint"])


def _gathered(parts: list[tuple[np.ndarray, np.ndarray]], texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if len(parts) > 1:  # else copying takes longer than scoring on a GPU
        parts = [(np.concatenate([rows for rows, _ in parts]), np.concatenate([X for _, X in parts]))]
    rows, X = parts[0]
    return rows, _finite(X, texts, rows)


def _one_for_each(X: np.ndarray, texts: list[str]) -> np.ndarray:
    if X.ndim != 2 or len(X) != len(texts):
        raise DataError(f"the encoder gave shape {X.shape} for {len(texts)} texts; expected one row for each")
    return _finite(X, texts, np.arange(len(texts)))


def _finite(X: np.ndarray, texts: list[str], rows: np.ndarray) -> np.ndarray:
    """The embeddings of some rows' texts; an error where there is a number missing."""
    if not np.isfinite(X.sum(dtype=np.float64)):  # no number that is none gets lost in a sum
        bad = rows[~np.isfinite(X).all(axis=1)].min()
        raise DataError(f"the encoder gave NaN or infinity for text {bad} ({texts[bad]!r:.60})")
    return X


def _folds(X: np.ndarray, rows: np.ndarray, k: int) -> list[np.ndarray]:
    """The rows dealt into k parts, so that what is left without one of them is never all equal.

    Rows unlike the commonest one are dealt first; where there is only one such row, it stays in every fit.
    """
    _, which, counts = np.unique(X[rows], axis=0, return_inverse=True, return_counts=True)
    unlike = which.reshape(-1) != counts.argmax()
    dealt = np.r_[rows[unlike], rows[~unlike]] if unlike.sum() > 1 else rows[~unlike]
    k = min(k, len(dealt))
    return [dealt[i::k] for i in range(k)]


def _fit_without(detector: Detector, X: np.ndarray, y: np.ndarray, held_out: np.ndarray) -> Detector:
    seen = np.ones(len(X), dtype=bool)
    seen[held_out] = False
    return clone(detector).fit(X[seen], y[seen])


def _require_variety(texts: list[str], y: np.ndarray) -> None:
    presumed_normal = {text for text, label in zip(texts, y, strict=True) if label >= 0}
    if texts and not presumed_normal:
        raise DataError(
            f"all {len(texts)} texts are labelled anomaly; expected normal or unlabelled texts too, to learn from"
        )
    if len(presumed_normal) < FEWEST_TEXTS:
        raise DataError(
            f"got {len(texts)} texts, {len(presumed_normal)} of them normal or unlabelled and different from one "
            f"another; expected at least {FEWEST_TEXTS} such texts to tell what is normal, better a hundred"
        )


def _registered_name(detector: Detector) -> str:
    path = f"{type(detector).__module__}:{type(detector).__name__}"
    return next((name for name, known in DETECTORS.items() if known == path), type(detector).__name__)


def _plain_params(detector: Detector) -> dict[str, Any]:
    params = detector.get_params()
    if isinstance(params.get("random_state"), np.random.RandomState):
        params["random_state"] = None
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in params.items()}
