"""Models in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strays.model import TextOutlierDetector


def facts_of(fitted: TextOutlierDetector) -> dict[str, str]:
    """What a model is, in words by heading."""
    facts = fitted.info()
    fitted_on = facts["fitted_on"]
    return {
        "encoder": f"{facts['encoder']['name']}",
        "detector": f"{facts['detector']['name']}: {facts['detector']['says']}",
        "fitted on": f"{fitted_on['n_texts']:,} texts: {fitted_on['n_normal']:,} normal, {fitted_on['n_anomaly']:,} "
        f"anomalies, {fitted_on['n_unlabelled']:,} unlabelled",
        "held out": f"{fitted_on['n_held_out']:,} normal or unlabelled texts"
        + (f", in {fitted_on['n_folds']} turns" if fitted_on["n_folds"] else "")
        + f", for p-values down to {facts['lowest_p_value']:.2g}",
        "flags": facts["flags"],
        "version": facts["version"],
    } | ({"cascade": promise_in_words(facts["cascade"])} if facts["cascade"] else {})


def runs_on(fitted: TextOutlierDetector) -> str:
    """What runs the encoder, in words to put behind its name; nothing for encoders of other people."""
    found = getattr(fitted.encoder_, "runs_on", None)
    return f" on {found}" if found else ""


def promise_in_words(cut: dict[str, Any]) -> str:
    """What a cascade promises."""
    return (
        f"{cut['expected_share']:.1%} of such texts, among them {cut['recall']:.3g} of those it would flag, as told by "
        f"{cut['n_held_out']:,} held-out texts"
    )
