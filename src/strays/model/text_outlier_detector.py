"""TextOutlierDetector: an encoder, a detector and a calibration that know one another."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from strays.detectors import Detector
from strays.detectors.estimator import Estimator, clone
from strays.detectors.threads import few_threads
from strays.encoders import Encoder, Progress, load_encoder
from strays.encoders.base import check_embeddings, without_cache
from strays.encoders.cut_texts import gather_cut_texts
from strays.encoders.identity import EncoderIdentity
from strays.encoders.inputs import check_texts, require_same_index, warn_of_blank
from strays.errors import DataError, UsageError
from strays.model import fitting
from strays.model.calibrated import Calibrated
from strays.model.calibration import DEFAULT_THRESHOLD, Calibration, Threshold
from strays.model.cascade import Cascade, static_encoder_of
from strays.model.distinct_texts import DistinctTexts
from strays.model.examples import Examples
from strays.model.explanation import Explanation, explain_texts
from strays.model.form import COLUMNS, FormReader
from strays.model.labels import parse_labels
from strays.model.normal_parts import NormalParts
from strays.model.persistence import VERSION_LENGTH, ModelState, describe, fingerprint, load_state, save_state
from strays.model.scores import RawScores
from strays.model.scoring import anomaly_scores, embed, identity_of, require_same_encoder
from strays.model.text_scorer import TextScorer, with_form
from strays.model.tuning import TuningResult, require_tunable, tune_encoder


class TextOutlierDetector(Calibrated, Estimator):
    """Find the texts that do not belong.

    Parameters
    ----------
    encoder
        Name of an encoder ('default', 'bert', a Hugging Face id, a folder), or any object with encode(texts).
    detector
        Name of a detector ('auto' takes what labels there are, none to thousands; see DETECTORS), or such an object.
    held_out
        Share of the presumed normal texts that the detector does not see, to calibrate p-values and thresholds. None:
        a fifth; but few texts are all scored in turn by detectors fitted without them, and the model is fitted on all,
        where scores of different fits compare (not with networks).
    keep_examples
        How many normal texts and how many known anomalies the model keeps, and saves, to explain with; 0 keeps none.
    cascade
        Also fit a cheap head on a static encoder, distilled from this one, for strays.model.CascadeScorer;
        or the cheap encoder to fit it on, as an object.
    form
        Whether the form of a text counts besides its meaning (length, kinds of characters, ...); for 'auto' alone.
    tune
        Whether the encoder learns from known anomalies first, if that ranks held-out ones better; takes minutes and
        the extra torch. See model/tuning.py.
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
    form_
        What is known of the form of normal texts; None where it does not count.
    tuning_
        What came of tuning the encoder; None where that was not tried.
    cascade_
        The fitted head, where there is a cascade; None otherwise.
    training_scores_
        Anomaly scores of the texts given to fit, in their order; not saved.

    Examples
    --------
    Any object with `encode(texts)` is an encoder; this one counts letters:

    >>> class Letters:
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "aeioxz"] for text in texts], dtype=np.float32)
    >>> texts = [f"{how} {what}" for how in ("a", "one", "old", "red", "no") for what in ("road", "sea", "boat", "ox")]
    >>> model = TextOutlierDetector(Letters(), detector="nearest").fit([*texts, "zzz xxx zzz"])
    >>> int(model.training_scores_.argmax())  # the last one
    20
    >>> model.set_threshold(flag_rate=0.2).predict(["a green road", "xxx zzz"])
    array([ 1, -1])
    >>> model.explain("a red zzz").segments[0].text
    'zzz'
    """

    # Every score is the model's own; a cascade has estimates.
    estimates = False

    def __init__(
        self,
        encoder: str | Encoder = "default",
        detector: str | Detector = "auto",
        *,
        held_out: float | None = None,
        keep_examples: int = 1000,
        cascade: bool | Encoder = False,
        form: bool = True,
        tune: bool = False,
        random_state: int | None = 0,
    ) -> None:
        self.encoder = encoder
        self.detector = detector
        self.held_out = held_out
        self.keep_examples = keep_examples
        self.cascade = cascade
        self.form = form
        self.tune = tune
        self.random_state = random_state

    # ---- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str | None] | None = None,
        *,
        searched: Sequence[bool] | np.ndarray | None = None,
        embeddings: np.ndarray | None = None,
        threshold: Threshold | None = None,
        progress: Progress | None = None,
        fit_progress: Progress | None = None,
        tune_progress: Progress | None = None,
    ) -> Self:
        """Learn what is normal from texts and, where there are any, labels: 'normal', 'anomaly' or None for each.

        `texts` and `labels` are a list, an array, a column of a table, or anything else that goes over strings in
        order. `searched` says of each text whether its label comes from judging texts that ranked high, as at the
        review desk: anomalies found so are no sample of all. `embeddings` are the encoder's own, one row for each text,
        where they are at hand. `threshold` says what is flagged, where that is settled; see set_threshold. `progress`
        is called with (texts done, texts in all) while texts are encoded, `fit_progress` with (fits done, fits in all),
        `tune_progress` with (work done, work in all) while the encoder is tuned.
        """
        fitting.check_settings(self.held_out, self.keep_examples)
        require_same_index(texts, labels)
        texts = check_texts(texts)
        y = fitting.mark_found(parse_labels(labels, len(texts)), searched)
        warn_of_blank(texts)
        fitting.require_variety(texts, y)
        detector = fitting.make_detector(self.detector, self.random_state, len(COLUMNS) if self.form else 0)
        encoder = load_encoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        if self.tune:
            require_tunable(encoder)
        cheap = static_encoder_of(encoder) if self.cascade is True else (self.cascade or None)
        once = DistinctTexts.of(texts, y)
        given = None if embeddings is None else check_embeddings(embeddings, texts)[once.row]
        with gather_cut_texts():
            X = embed(encoder, once.texts, progress) if given is None else given
        fitting.require_different(X, encoder)
        with few_threads(len(X)):  # small products, which threads would only wait for
            once, X = once.with_classes(X)
            form = fitting.read_form(once.texts, X, once.y) if detector.n_form else None
        tuning, held_out, unseen = None, None, fitting.unseen_by(encoder, once.texts, once.y)
        if self.tune:
            rows, how = with_form(form, once.texts, X), (self.held_out, self.random_state, tune_progress)
            encoder, tuning, held_out = tune_encoder(encoder, detector, once.texts, rows, once.y, *how)
            X = X if held_out is None else embed(encoder, once.texts, progress)
        with few_threads(len(X)):
            rows = with_form(form, once.texts, X)
            how = (self.held_out, self.random_state, fit_progress)
            found = fitting.fit_and_hold_out(detector, rows, once.y, *how, held_out=held_out, unseen=unseen)
            scores = found.detector.anomaly_score(rows)
        # All at the end: a fit that is stopped leaves the model as it was.
        self.encoder_identity_, self._normal_parts_found = None, None
        self.encoder_, self.form_, self.tuning_, self.detector_ = encoder, form, tuning, found.detector
        self.training_scores_ = scores[once.place]
        self.calibration_ = Calibration.from_scores(found.held_out_scores, self.training_scores_)
        self.threshold_ = threshold or DEFAULT_THRESHOLD
        if threshold is None:
            self.calibration_.warn_if_too_few(int((once.y >= 0).sum()))
        self.examples_ = Examples.choose(once.texts, X, once.y, self.keep_examples)
        self.cascade_ = Cascade.fit(cheap, once.texts, *found.scores_as_if_unseen(scores, once.y)) if cheap else None
        self.summary_ = fitting.FitSummary.of(y, found)
        return self

    def fit_predict(
        self, texts: Sequence[str], labels: Sequence[str | None] | None = None, **options: Any
    ) -> np.ndarray:
        """Fit, and return +1 or -1 for each text given, -1 for flagged ones; takes the options of fit.

        Texts are scored as in `training_scores_`: by 'auto', as if the model had not seen them (a tuned encoder has).
        """
        self.fit(texts, labels, **options)
        self.warn_if_too_few()
        return np.where(self.flag(self.training_scores_).flagged, -1, 1)

    # ---- scoring -----------------------------------------------------------------------------------------------------

    def anomaly_score(
        self, texts: Sequence[str], *, embeddings: np.ndarray | None = None, progress: Progress | None = None
    ) -> np.ndarray:
        """One float for each text; higher is odder. A text's score does not depend on the others.

        `embeddings` are the encoder's own, as in fit. `progress` is called with (texts done, texts in all); equal texts
        count once.
        """
        self._require_fitted()
        texts = check_texts(texts)
        if embeddings is not None:
            return self._scorer.scores(texts, check_embeddings(embeddings, texts))
        require_same_encoder(self.encoder_, self.encoder_identity_, "model")
        with gather_cut_texts():
            return anomaly_scores(self.encoder_, self._scorer.scores, texts, progress)

    def raw_scores(self, texts: Sequence[str], *, progress: Progress | None = None) -> RawScores:
        """The anomaly scores as a scoring job takes them, from a model or from a cascade."""
        return RawScores(self.anomaly_score(texts, progress=progress))

    def explain(self, text: str, *, n_neighbours: int = 3) -> Explanation:
        """Why a text scores as it does: what its segments add, and the kept texts it is most like."""
        if not isinstance(text, str):
            found = f"{{text}} is of type {type(text).__name__}"
            raise DataError(f"{found}; expected a string. For several texts use explain_many(texts)", param="text")
        return self.explain_many([text], n_neighbours=n_neighbours)[0]

    def explain_many(
        self, texts: Sequence[str], *, n_neighbours: int = 3, progress: Progress | None = None
    ) -> list[Explanation]:
        """Like explain, for several texts, whose pieces are all encoded in one go."""
        self._require_fitted()

        def embed_and_score(pieces: list[str], whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            X = self._embed(pieces, progress)
            scores = self._scorer.part_scores(X)
            scores[whole] = self._scorer.scores([pieces[i] for i in np.flatnonzero(whole)], X[whole])
            return X, scores

        known = self.calibration_, self.threshold_, self.examples_, self._normal_parts()
        options: dict[str, Any] = {"n_neighbours": n_neighbours, "unusual_forms": self._scorer.unusual_forms}
        return explain_texts(check_texts(texts), embed_and_score, *known, **options)

    def info(self) -> dict[str, Any]:
        """What this model is, as plain data."""
        return describe(self._state())

    # ---- saving ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a folder of JSON and safetensors; an older model there is replaced."""
        save_state(path, self._state())

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        cascade: Encoder | None = None,
        device: str = "auto",
        cache: bool = True,
        allow_download: bool = False,
    ) -> Self:
        """Read a saved model.

        A model fitted with an encoder object of your own, or with one for its cascade, needs that again; device and
        cache are for the others, as in load_encoder. The encoder that a model names is looked for on this machine:
        strays' own folder, the hub's cache, a folder. The default encoder is fetched if it is missing, any other one
        only with `allow_download`, from the Hugging Face hub and without your token.
        """
        options: dict[str, Any] = {"device": device, "cache": cache, "allow_download": allow_download}
        state = load_state(path, encoder=encoder, cascade=cascade, **options)
        has_cascade, form = cascade or state.cascade_ is not None, state.form_ is not None
        model = cls(state.encoder_, clone(state.detector_), cascade=has_cascade, form=form)
        model.__dict__.update(vars(state))
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
    def fingerprint(self) -> str:
        """Hash of all that a score depends on; the threshold, which can be chosen anew, is no part of it."""
        return fingerprint(self._state())

    @property
    def encoder_identity(self) -> dict[str, Any]:
        """The encoder in use: its fingerprint, and the digests of its files."""
        return identity_of(self.encoder_).to_dict()

    @property
    def version(self) -> str:
        """The beginning of the fingerprint: what a saved model, a served one and a job are told apart by."""
        return self.fingerprint[:VERSION_LENGTH]

    # ---- inside ------------------------------------------------------------------------------------------------------

    encoder_identity_: EncoderIdentity | None = None
    form_: FormReader | None = None
    tuning_: TuningResult | None = None
    cascade_: Cascade | None = None
    _normal_parts_found: NormalParts | None = None

    def _state(self) -> ModelState:
        self._require_fitted()
        return ModelState(**{field.name: getattr(self, field.name) for field in fields(ModelState)})

    def _normal_parts(self) -> NormalParts:
        """What the parts of normal texts are like: found when first asked for, as their clauses must be scored."""
        if self._normal_parts_found is None:
            kept = self.examples_
            p_values = self.calibration_.p_value(self._scorer.scores(kept.texts, kept.X)) if kept.texts else np.empty(0)
            self._normal_parts_found = NormalParts.of(
                kept, p_values, lambda parts: self._scorer.part_scores(self._embed(parts))
            )
        return self._normal_parts_found

    @property
    def _scorer(self) -> TextScorer:
        return TextScorer(self.detector_, self.encoder_, self.form_)

    def _embed(self, texts: list[str], progress: Progress | None = None) -> np.ndarray:
        require_same_encoder(self.encoder_, self.encoder_identity_, "model")
        return embed(self.encoder_, texts, progress)

    def _require_fitted(self) -> None:
        if not hasattr(self, "detector_"):
            raise UsageError("this model is not fitted yet; call fit(texts) first, or load a saved model")
