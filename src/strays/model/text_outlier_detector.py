"""TextOutlierDetector: an encoder, a detector and a calibration that know one another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from strays.detectors import DETECTORS, Detector, detector_class
from strays.encoders import Encoder, Progress, load_encoder
from strays.encoders.base import check_texts, without_cache
from strays.encoders.checked import one_for_each
from strays.errors import DataError, ModelError, StraysWarning, UsageError
from strays.model.calibration import Calibration, threshold
from strays.model.cascade import Cascade, static_encoder_of
from strays.model.explanation import Examples, Explanation, effects, pieces, split
from strays.model.fitting import fit_and_hold_out, require_variety
from strays.model.labels import parse_labels
from strays.model.persistence import FitSummary, Parts, detector_config, fingerprint, load_parts, save_parts
from strays.model.scores import RawScores, Scores
from strays.model.scoring import anomaly_scores, embed

__all__ = ["FitSummary", "Scores", "TextOutlierDetector"]


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
        Also fit a cheap head on a static encoder, distilled from this one, for strays.model.CascadeScorer;
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
        progress: Progress | None = None,
    ) -> Self:
        """Learn what is normal from texts and, where there are any, labels: 'normal', 'anomaly' or None for each.

        `embeddings` are the encoder's own, one row for each text, where they are at hand. `progress` is
        called with (texts done, texts in all) while they are encoded.
        """
        if self.held_out is not None and not 0 < self.held_out < 1:
            raise UsageError(f"held_out is {self.held_out}; expected a share between 0 and 1, or None")
        if self.keep_examples < 0:
            raise UsageError(f"keep_examples is {self.keep_examples}; expected 0 or more")
        self._expected_fingerprint = None
        texts = check_texts(texts)
        y = parse_labels(labels, len(texts))
        require_variety(texts, y)
        detector = self._make_detector()
        self.encoder_ = load_encoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        triage = static_encoder_of(self.encoder_) if self.cascade is True else (self.cascade or None)
        X = self._encode(texts, progress) if embeddings is None else one_for_each(embeddings, texts)
        if not np.ptp(X, axis=0).any():
            raise DataError(
                f"the encoder {self.encoder_!r} cannot tell these texts apart: all {len(texts)} get one embedding. "
                "Choose an encoder made for their language"
            )

        fitted = fit_and_hold_out(detector, X, y, self.held_out, self.random_state)
        self.detector_ = fitted.detector
        self.training_scores_ = self.detector_.anomaly_score(X)
        self.calibration_ = Calibration.from_scores(fitted.held_out_scores, self.training_scores_)
        self.threshold_ = self.calibration_.default_threshold()
        self.examples_ = Examples.choose(texts, X, y, self.keep_examples)
        self.cascade_ = None
        if triage:
            scores, honest = self.training_scores_.copy(), (y >= 0) & detector.left_out_scores
            if not detector.left_out_scores:
                scores[fitted.held_out], honest[fitted.held_out] = fitted.held_out_scores, True
            self.cascade_ = Cascade.fit(triage, texts, scores, honest)
        self.summary_ = FitSummary(
            n_texts=len(texts),
            n_normal=int((y > 0).sum()),
            n_anomaly=int((y < 0).sum()),
            n_unlabelled=int((y == 0).sum()),
            n_held_out=len(fitted.held_out_scores),
            n_folds=fitted.n_folds,
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

    def score(self, texts: Sequence[str], *, progress: Progress | None = None) -> Scores:
        """Anomaly scores, p-values and flags in one go; the texts are encoded once."""
        return self.flag(self.anomaly_score(texts, progress=progress))

    def flag(self, scores: np.ndarray) -> Scores:
        """The p-values and flags of texts whose anomaly scores are known."""
        self._require_fitted()
        flagged = self.calibration_.flagged(self.threshold_, scores)
        if self.threshold_.rule == "max_false_share" and self.threshold_.value and len(scores) and not flagged.any():
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

    def anomaly_score(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """One float for each text; higher is odder. A text's score does not depend on the others.

        `progress` is called with (texts done, texts in all); equal texts count once.
        """
        self._require_fitted()
        texts = check_texts(texts)
        self._require_same_encoder()
        return anomaly_scores(self.encoder_, self._scores_of, texts, progress)

    def raw_scores(self, texts: Sequence[str], *, progress: Progress | None = None) -> RawScores:
        """The anomaly scores as a scoring job takes them, from a model or from a cascade."""
        return RawScores(self.anomaly_score(texts, progress=progress))

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

    def explain_many(
        self, texts: Sequence[str], *, n_neighbours: int = 3, progress: Progress | None = None
    ) -> list[Explanation]:
        """Like explain, for several texts, whose pieces are all encoded in one go."""
        self._require_fitted()
        texts = check_texts(texts)
        if not all(text.strip() for text in texts):
            raise DataError("there is no text to explain; expected one that is not blank")
        spans = [split(text) for text in texts]
        parts = [[text, *pieces(text, of)] for text, of in zip(texts, spans, strict=True)]
        if not parts:
            return []
        X = self._encode([piece for part in parts for piece in part], progress)
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
        if self.threshold_.rule.startswith("max_") and self.threshold_.value < lowest:
            warnings.warn(
                f"{self.threshold_.rule}={self.threshold_.value:g} is finer than {self.summary_.n_held_out} held-out "
                f"normal texts can tell (no p-value is below {lowest:.2g}), so nothing will be flagged. Fit on more "
                "texts, allow more false alarms, or use flag_rate",
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
            "detector": detector_config(self.detector_) | {"says": self.detector_.describe()},
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
        save_parts(path, self._parts())

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        cascade: Encoder | None = None,
        device: str = "auto",
        cache: bool = True,
    ) -> Self:
        """Read a saved model.

        A model fitted with an encoder object of your own, or with one for its cascade, needs that again; device and
        cache are for the others, as in load_encoder.
        """
        parts = load_parts(path, encoder=encoder, cascade=cascade, device=device, cache=cache)
        model = cls(
            encoder=parts.encoder,
            detector=clone(parts.detector),
            held_out=parts.held_out,
            keep_examples=parts.keep_examples,
            cascade=cascade or parts.cascade is not None,
            random_state=parts.random_state,
        )
        model.encoder_ = parts.encoder
        model.detector_ = parts.detector
        model.calibration_ = parts.calibration
        model.threshold_ = parts.threshold
        model.summary_ = parts.summary
        model.examples_ = parts.examples
        model.cascade_ = parts.cascade
        model._expected_fingerprint = parts.expected_fingerprint
        return model

    def without_cache(self) -> Self:
        """The same model with encoders that keep no embeddings: for a server, or for nodes that share a disk."""
        self._require_fitted()
        model = self.with_encoder(without_cache(self.encoder_))
        model.cascade_ = self.cascade_ and replace(self.cascade_, encoder=without_cache(self.cascade_.encoder))
        return model

    def with_encoder(self, encoder: Encoder) -> Self:
        """The same model with another object of the same encoder."""
        model = copy(self)
        model.encoder_ = encoder
        if self.encoder is self.encoder_:
            model.encoder = encoder
        return model

    @property
    def estimates(self) -> bool:
        """No: every score is the model's own; a cascade has estimates."""
        return False

    @property
    def fingerprint(self) -> str:
        """Hash of all that a score depends on; the threshold, which can be chosen anew, is no part of it."""
        self._require_fitted()
        return fingerprint(self._parts())

    @property
    def version(self) -> str:
        """The beginning of the fingerprint: what a saved model, a served one and a job are told apart by."""
        return self.fingerprint[:16]

    # ---- inside ------------------------------------------------------------------------------------------------------

    _expected_fingerprint: str | None = None
    cascade_: Cascade | None = None

    def _parts(self) -> Parts:
        return Parts(
            encoder=self.encoder_,
            expected_fingerprint=self._expected_fingerprint,
            detector=self.detector_,
            calibration=self.calibration_,
            threshold=self.threshold_,
            examples=self.examples_,
            cascade=self.cascade_,
            summary=self.summary_,
            held_out=self.held_out,
            keep_examples=self.keep_examples,
            random_state=self.random_state,
        )

    def _encode(self, texts: list[str], progress: Progress | None = None) -> np.ndarray:
        self._require_same_encoder()
        return embed(self.encoder_, texts, progress)

    def _scores_of(self, X: np.ndarray) -> np.ndarray:
        """The detector's scores of embeddings."""
        if X.shape[1] != self.detector_.n_features_in_:
            raise ModelError(
                f"the encoder {self.encoder_!r:.200} gives embeddings of {X.shape[1]} numbers, but this model was "
                f"fitted on {self.detector_.n_features_in_}. Use the same encoder, or fit again"
            )
        return self.detector_.anomaly_score(X, device=getattr(self.encoder_, "scoring_device", "cpu"))

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
