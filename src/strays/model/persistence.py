"""A fitted model to a config and arrays, and back. folder.py writes and reads these as the two files of a folder.

Only classes from the registry DETECTORS are built, and every value is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from strays import __version__
from strays.detectors import DETECTORS, Detector, detector_class
from strays.encoders import Encoder, Fetch, LoadedEncoder, load_encoder
from strays.encoders.identity import EncoderIdentity
from strays.encoders.low_rank import LowRankUpdates
from strays.encoders.settings import EncoderSettings, whole_number
from strays.errors import LoadingError, ModelError
from strays.model.calibration import Calibration, Threshold, threshold
from strays.model.cascade import Cascade
from strays.model.examples import Examples
from strays.model.fitting import FitSummary
from strays.model.folder import load_folder, save_folder
from strays.model.form import COLUMNS, FormReader
from strays.model.scoring import identity_of
from strays.model.tuning import TuningResult

# How much of a fingerprint tells models apart for people.
VERSION_LENGTH = 16


@dataclass(frozen=True)
class ModelState:
    """All that a fitted model is made of: the attributes of a TextOutlierDetector."""

    encoder_: Encoder
    # Where the model was saved: the encoder it was fitted with.
    encoder_identity_: EncoderIdentity | None
    detector_: Detector
    calibration_: Calibration
    threshold_: Threshold
    examples_: Examples
    form_: FormReader | None
    tuning_: TuningResult | None
    cascade_: Cascade | None
    summary_: FitSummary
    held_out: float | None
    keep_examples: int
    random_state: int | None


def save_state(path: str | Path, state: ModelState) -> None:
    """Write a model's folder; an older model there is replaced."""
    name = detector_config(state.detector_)["name"]
    if name not in DETECTORS:
        raise ModelError(f"a {name} cannot be saved; expected one of {', '.join(DETECTORS)}")
    save_folder(path, {"strays_version": __version__} | _config(state), _arrays(state))


def load_state(
    path: str | Path,
    *,
    encoder: Encoder | None = None,
    cascade: Encoder | None = None,
    device: str = "auto",
    cache: bool = True,
    allow_download: bool = False,
) -> ModelState:
    """Read a model's folder. `encoder` and `cascade` are objects for a model that was fitted with such.

    The encoders that it names are looked for on this machine only, unless `allow_download`.
    """
    fetch = Fetch.ALLOWED if allow_download else Fetch.NEVER
    config, arrays = load_folder(path)
    try:
        _check_config(config)
        settings = config["encoder"]["settings"]
        if encoder is None and settings is None:
            raise ModelError("was fitted with an encoder object, which is not saved; pass it: load(..., encoder=...)")
        detector = detector_class(config["detector"]["name"])(**config["detector"]["params"])
        fitted, examples, calibration, form, head, learnt = (
            {key.removeprefix(place): a for key, a in arrays.items() if key.startswith(place)}
            for place in ("detector/", "examples/", "calibration/", "form/", "cascade/", "tuning/")
        )
        if encoder is None:
            # Models older than the choice of a precision are of full precision.
            asked = EncoderSettings.from_dict({"precision": "full", **settings})
            encoder = load_encoder(**vars(asked), device=device, cache=cache, fetch=fetch)
        if learnt:
            updated = getattr(encoder, "updated", None)
            if updated is None:
                raise ModelError("its encoder is tuned, and only updates of it are saved; load it without encoder=...")
            try:
                encoder = updated(LowRankUpdates.from_arrays(learnt))
            except LoadingError as error:
                raise ModelError(f"{error}; fit it again") from error
        detector.set_state(fitted)
        return ModelState(
            encoder_=encoder,
            encoder_identity_=EncoderIdentity.from_dict(config["encoder"]),
            detector_=detector,
            calibration_=Calibration.from_arrays(calibration),
            threshold_=threshold(**{config["threshold"]["rule"]: config["threshold"]["value"]}),
            summary_=FitSummary(**config["summary"]),
            examples_=Examples.from_arrays(examples, detector.n_features_in_ - detector.n_form),
            form_=_load_form(detector.n_form, form),
            tuning_=_load_tuning(config.get("tuning")),
            cascade_=_load_cascade(config.get("cascade"), cascade, head, fetch),
            held_out=config["held_out"],
            keep_examples=config["keep_examples"],
            random_state=config["random_state"],
        )
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{path}: the model's files do not fit together ({error!r:.300}); fit it again") from error


def fingerprint(state: ModelState) -> str:
    """Hash of all that a score depends on; the threshold, which can be chosen anew, is no part of it."""
    config = {key: value for key, value in _config(state).items() if key != "threshold"}
    hashed = hashlib.sha256(json.dumps(config, sort_keys=True, default=repr).encode())
    for name, array in sorted(_arrays(state).items()):
        hashed.update(f"{name} {array.dtype} {array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def describe(state: ModelState) -> dict[str, Any]:
    """What a model is, as plain data for people to read."""
    settings = getattr(state.encoder_, "pinned", None)
    says = state.detector_.describe()
    if getattr(state.encoder_, "updates", None):
        says += "; the encoder has learnt from these texts before"
    return {
        "version": fingerprint(state)[:VERSION_LENGTH],
        "encoder": settings.to_dict() if settings else {"name": type(state.encoder_).__name__},
        "detector": detector_config(state.detector_) | {"says": says},
        "fitted_on": asdict(state.summary_),
        "lowest_p_value": state.calibration_.lowest_p_value,
        "threshold": asdict(state.threshold_),
        "flags": str(state.threshold_),
        "tuning": asdict(state.tuning_) | {"says": str(state.tuning_)} if state.tuning_ else None,
        "cascade": _cascade_promise(state),
    }


def detector_config(detector: Detector) -> dict[str, Any]:
    """A detector's name, the registered one where it has one, and its parameters, as plain data.

    A parameter that version 0.1 did not have is named only where it is not the default: a model of 0.1 stays the same.
    """
    path = f"{type(detector).__module__}:{type(detector).__name__}"
    params = detector.get_params()
    if isinstance(params.get("random_state"), np.random.RandomState):
        params["random_state"] = None
    if not params.get("form_columns", 1):
        del params["form_columns"]
    return {
        "name": next((name for name, known in DETECTORS.items() if known == path), type(detector).__name__),
        "params": {key: value.item() if isinstance(value, np.generic) else value for key, value in params.items()},
    }


def _cascade_promise(state: ModelState) -> dict[str, Any] | None:
    """What a cascade would do with the present threshold."""
    if state.cascade_ is None or state.threshold_.together:
        return None
    cut = state.cascade_.cut(state.calibration_.offset(state.threshold_, np.empty(0)))
    return {"recall": cut.recall, "expected_share": cut.share, "n_held_out": cut.n_held_out}


def _config(state: ModelState) -> dict[str, Any]:
    cascade = state.cascade_
    tuning = {"tuning": asdict(state.tuning_)} if state.tuning_ else {}
    return {
        "encoder": _encoder_config(state.encoder_, state.encoder_identity_),
        "cascade": _encoder_config(cascade.encoder, cascade.expected) if cascade else None,
        "detector": detector_config(state.detector_),
        "held_out": state.held_out,
        "keep_examples": state.keep_examples,
        "random_state": None if state.random_state is None else int(state.random_state),
        "threshold": asdict(state.threshold_),
        "summary": asdict(state.summary_),
        **tuning,
    }


def _encoder_config(encoder: Encoder, saved: EncoderIdentity | None) -> dict[str, Any]:
    """The encoder's settings and identity: the saved one, so that a model stays the same, or else today's.

    What was made from the encoder's files is recorded too; it need not be the same on another machine.
    """
    settings = getattr(encoder, "pinned", None)
    kept = saved
    if kept is None or kept.fingerprint is None:
        kept = identity_of(encoder)
        if isinstance(encoder, LoadedEncoder):
            kept = replace(kept, files=encoder.files | encoder.made_files)
    return {"settings": settings.to_dict() if settings else None} | kept.to_dict()


def _arrays(state: ModelState) -> dict[str, np.ndarray]:
    arrays = {f"detector/{name}": array for name, array in state.detector_.get_state().items()}
    arrays |= {f"examples/{name}": array for name, array in state.examples_.to_arrays().items()}
    if state.form_:
        arrays |= {f"form/{name}": array for name, array in state.form_.to_arrays().items()}
    if updates := getattr(state.encoder_, "updates", None):
        arrays |= {f"tuning/{name}": array for name, array in updates.to_arrays().items()}
    if state.cascade_:
        arrays |= {f"cascade/{name}": array for name, array in state.cascade_.to_arrays().items()}
    return arrays | {f"calibration/{name}": array for name, array in state.calibration_.to_arrays().items()}


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
        settings, found = part["settings"], part["fingerprint"]
        # An encoder that is found by its name is used only if it is the one the model was fitted with.
        if not isinstance(found, str if settings is not None else str | None):
            raise ModelError(f"an encoder's fingerprint is {found!r:.60}; expected its hash. Fit it again")
        files = part.get("files", {})  # version 0.1 recorded none
        if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
            raise ModelError(f"an encoder's files are {files!r:.60}; expected a digest for each. Fit it again")


def _load_form(n_columns: int, arrays: dict[str, np.ndarray]) -> FormReader | None:
    if n_columns not in (0, len(COLUMNS)):
        raise ModelError(f"its detector takes {n_columns} columns of the form; expected {len(COLUMNS)}. Fit it again")
    return FormReader.from_arrays(arrays) if n_columns else None


def _load_tuning(saved: dict[str, Any] | None) -> TuningResult | None:
    if saved is None:
        return None
    found = TuningResult(**saved)
    counts = all(whole_number(n, high=2**63) for n in (found.n_normal, found.n_known))
    shares = ((found.share, 1), (found.auc, 100), (found.auc_tuned, 100))
    if not counts or not all(isinstance(value, float) and 0 <= value <= most for value, most in shares):
        raise ModelError(f"what it says of its tuning is {saved!r:.100}; expected counts and shares. Fit it again")
    return found


def _load_cascade(
    saved: dict[str, Any] | None, given: Encoder | None, arrays: dict[str, np.ndarray], fetch: Fetch
) -> Cascade | None:
    if saved is None:
        return None
    if given is None and saved["settings"] is None:
        raise ModelError(
            "its cascade was fitted with an encoder object, which is not saved; pass it: load(..., cascade=...)"
        )
    encoder = (
        given or load_encoder(**vars(EncoderSettings.from_dict(saved["settings"])), fetch=fetch).without_warnings()
    )
    return Cascade.from_arrays(encoder, arrays, EncoderIdentity.from_dict(saved))
