"""What a report says, as plain data: the page is drawn from it, and --json prints it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np

from strays import __version__
from strays.encoders import Progress
from strays.jobs.alike import rows_alike
from strays.jobs.report.curves import curves, measured, sample_to_measure, why_no_curves
from strays.jobs.report.points import points
from strays.jobs.report.safe import cut
from strays.jobs.report.scored_texts import ScoredTexts
from strays.jobs.scan import Scan
from strays.jobs.score import OpenProgress, no_bar
from strays.model import TextOutlierDetector
from strays.model.examples import Neighbour
from strays.model.explanation import Explanation, rank_in_words
from strays.model.labels import WORD, parse_labels
from strays.model.scoring import embed

SCORE_BINS, P_VALUE_BINS = 48, 20
# Rates of false alarms at which found and expected alarms are compared.
RATES = (0.01, 0.05, 0.1)
# Characters of an odd text that are shown and explained, and of a text like it.
SHOWN, NEIGHBOUR_SHOWN = 1000, 160
NEIGHBOURS = 2


def facts(
    found: Scan, *, top: int = 50, title: str | None = None, random_state: int = 0, progress: OpenProgress = no_bar
) -> dict[str, Any]:
    """All that a report says of a scanned file."""
    scored, fitted_here = ScoredTexts.of(found), found.fitted_here
    groups = found.oddest(top, known=not fitted_here)  # what the model was told of is no find
    oddest = np.array([group[0] for group in groups], dtype=int)
    with progress("explaining") as show:
        explained = explain(found.model, scored, oddest, show)
    for said, (_, *alike) in zip(explained, groups, strict=True):
        said |= rows_alike(scored.rows[alike].tolist())
    with progress("measuring") as show:
        quality = _quality(found, scored, random_state, show)
    with progress("drawing the map") as show:
        map_ = points(found.model, scored, oddest, random_state, show)
    return {
        **head(found, scored, title),
        "scores": score_histogram(found.model, scored),
        "p_values": p_value_histogram(found.model, scored, fitted_here) | _beyond_chance(found),
        "oddest": explained,
        "n_known_left_out": int((scored.y < 0).sum()) if fitted_here else 0,
        "quality": quality,
        "map": map_,
    }


def head(found: Scan, scored: ScoredTexts, title: str | None) -> dict[str, Any]:
    """What was scanned, and with what."""
    info = found.model.info()
    return {
        "title": title or f"The strays in {found.file.rpartition('/')[2]}",
        "file": found.file,
        "made": datetime.now().astimezone().isoformat(timespec="minutes"),
        "strays_version": __version__,
        "n_rows": found.corpus.n_rows,
        "n_texts": len(scored.texts),
        "n_without_text": found.corpus.n_without_text,
        "id_column": found.corpus.id_column,
        "n_flagged": int(scored.flagged.sum()),
        "n_labelled": {name: int((scored.y == sign).sum()) for sign, name in WORD.items() if name},
        "flagged_are": info["flags"],
        "encoder": info["encoder"]["name"],
        "detector": {"name": info["detector"]["name"], "says": info["detector"]["says"]},
        "fitted_here": found.fitted_here,
        "fitted_on": info["fitted_on"],
        "lowest_p_value": info["lowest_p_value"],
    }


def score_histogram(model: TextOutlierDetector, scored: ScoredTexts) -> dict[str, Any]:
    """How many texts score how high, how many of them are flagged, and the score that is flagged above."""
    counts, edges = np.histogram(scored.score, bins=SCORE_BINS)
    flagged, _ = np.histogram(scored.score[scored.flagged], bins=edges)
    offset = model.calibration_.offset(model.threshold_, scored.score)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "flagged": flagged.tolist(),
        "threshold": offset if math.isfinite(offset) else None,
    }


def p_value_histogram(model: TextOutlierDetector, scored: ScoredTexts, fitted_here: bool) -> dict[str, Any]:
    """How p-values are spread, beside the even spread they would have were all texts normal, and what that says."""
    counts, edges = np.histogram(scored.p_value, bins=P_VALUE_BINS, range=(0, 1))
    n = len(scored.p_value)
    alarms = [
        {"rate": rate, "found": int((scored.p_value <= rate + 1e-12).sum()), "expected": rate * n}
        for rate in RATES
        if rate >= model.calibration_.lowest_p_value
    ]
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "expected": n / P_VALUE_BINS,
        "alarms": alarms,
        # Compared with the file's own texts, strays among them, p-values are spread evenly whatever there is.
        "against_own_texts": fitted_here,
        # Where not, texts that a detector was fitted on score lower than fresh ones.
        "as_if_fresh": not fitted_here or model.detector_.left_out_scores,
    }


def _beyond_chance(found: Scan) -> dict[str, Any]:
    """What share of the rows is odd beyond chance, and that in words, where it can be told."""
    share = found.contamination
    return {"beyond_chance": asdict(share) | {"in_words": str(share)} if share else None}


def explain(
    model: TextOutlierDetector, scored: ScoredTexts, which: np.ndarray, progress: Progress
) -> list[dict[str, Any]]:
    """Some texts with what raises their scores and what they are like."""
    texts = [cut(scored.texts[i], SHOWN) for i in which]
    explanations = model.explain_many(texts, n_neighbours=NEIGHBOURS, progress=progress)
    flagged = {text for text, is_flagged in zip(scored.texts, scored.flagged, strict=True) if is_flagged}
    return [
        {
            "row": int(scored.rows[i]) + 1,
            "id": cut(scored.ids[i] or "", SHOWN) or None if scored.ids else None,
            "anomaly_score": float(scored.score[i]),
            "p_value": float(scored.p_value[i]),
            "in_words": rank_in_words(float(scored.p_value[i])),
            "flagged": bool(scored.flagged[i]),
            "label": WORD[int(scored.y[i])],
            "n_characters": len(scored.texts[i]),
            "is_cut": len(scored.texts[i]) > SHOWN,
            "what_is_odd": explanation.what_is_odd(),
            "odd_all_over": explanation.odd_all_over,
            "copies": explanation.copies(),
            "pieces": pieces_of(explanation),
            "nearest_normals": _neighbours(explanation.nearest_normals, flagged),
            "nearest_anomalies": _neighbours(explanation.nearest_anomalies, set()),
        }
        for i, explanation in zip(which, explanations, strict=True)
    ]


def pieces_of(explanation: Explanation) -> list[dict[str, Any]]:
    """A text in pieces, in order, each with its effect (None between segments) and a strength from 0 to 1."""
    text, at = explanation.text, 0
    found: list[tuple[str, float | None, float]] = []
    for segment in sorted(explanation.segments, key=lambda segment: segment.start):
        found.append((text[at : segment.start], None, 0.0))
        found.append((segment.text, segment.effect, explanation.strength(segment)))
        at = segment.end
    found.append((text[at:], None, 0.0))
    return [dict(zip(("text", "effect", "strength"), piece, strict=True)) for piece in found if piece[0]]


def _neighbours(neighbours: Sequence[Neighbour], flagged: set[str]) -> list[dict[str, Any]]:
    return [
        asdict(neighbour) | {"text": cut(neighbour.text, NEIGHBOUR_SHOWN), "flagged": neighbour.text in flagged}
        for neighbour in neighbours
    ]


def _quality(found: Scan, scored: ScoredTexts, random_state: int, progress: Progress) -> dict[str, Any]:
    """Curves where labels allow them, from scores that are fair; else why not."""
    y = parse_labels(found.corpus.labels, len(found.corpus.labels)) if found.fitted_here else scored.y
    if why_not := why_no_curves(y):
        return {"why_not": why_not}
    if not found.fitted_here:
        return {"by": "the model", **curves(scored.y, scored.score)}
    chosen = sample_to_measure(y)
    texts = [found.corpus.texts[i] for i in chosen]
    X = embed(found.model.encoder_, texts, progress)
    result = measured(found.model.detector_, texts, X, y[chosen], random_state=random_state)
    return {"by": "models fitted without the text", "n_fitted_on": len(chosen), **result}
