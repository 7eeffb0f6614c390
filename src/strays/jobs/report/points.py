"""The map of a corpus as plain data: which texts are on it, where each lies, and what is said when it is pointed at."""

from __future__ import annotations

from typing import Any

import numpy as np

from strays.detectors.sampling import evenly
from strays.encoders import Progress
from strays.jobs.report.layout import layout
from strays.jobs.report.safe import one_line, short_id
from strays.jobs.report.scored_texts import ScoredTexts
from strays.model import TextOutlierDetector
from strays.model.labels import WORD
from strays.model.scoring import embed

# Points that stay fluid in a browser, and that a reader can still tell apart.
MOST_POINTS = 20_000
# Of those, at most so many for labelled texts, and so many for flagged ones; the others are spread over the file.
MOST_LABELLED, MOST_FLAGGED = 4000, 4000
# Characters of a text shown when it is pointed at, fewer where all of them together take more bytes than a page has.
SHOWN, MOST_BYTES = 160, 4_000_000
# Characters of what the file calls a row.
ID_SHOWN = 40
# Places are whole numbers up to this, which is finer than a screen.
GRID = 9999


def points(
    model: TextOutlierDetector, scored: ScoredTexts, oddest: np.ndarray, random_state: int, progress: Progress
) -> dict[str, Any]:
    """The map: parallel lists with an entry for each point, in the file's order."""
    chosen = on_the_map(scored, oddest)
    X = embed(model.encoder_, [scored.texts[i] for i in chosen], progress)
    at = np.rint(layout(X, random_state=random_state) * GRID).astype(int)
    place = {int(i): k for k, i in enumerate(chosen)}
    return {
        "n_texts": len(scored.texts),
        "grid": GRID,
        "x": at[:, 0].tolist(),
        "y": at[:, 1].tolist(),
        "value": (np.rint(100 * shade(scored.score)[chosen]) / 100).tolist(),
        "mark": [WORD[int(scored.y[i])] or ("flagged" if scored.flagged[i] else "") for i in chosen],
        "score": [float(f"{scored.score[i]:.4g}") for i in chosen],
        "p_value": [float(f"{scored.p_value[i]:.3g}") for i in chosen],
        "row": (scored.rows[chosen] + 1).tolist(),
        "id": [short_id(scored.ids[i] or "", ID_SHOWN) for i in chosen] if scored.ids else None,
        "text": short_texts([scored.texts[i] for i in chosen]),
        "oddest": [place[int(i)] for i in oddest],
    }


def on_the_map(scored: ScoredTexts, oddest: np.ndarray) -> np.ndarray:
    """Which texts: all, or the oddest, the labelled and the flagged ones and an even sample of the others."""
    n = len(scored.texts)
    if n <= MOST_POINTS:
        return np.arange(n)
    flagged = np.flatnonzero(scored.flagged)
    flagged = flagged[np.argsort(-scored.score[flagged], kind="stable")][:MOST_FLAGGED]
    labelled = evenly(np.flatnonzero(scored.y), MOST_LABELLED)
    first = np.unique(np.concatenate([oddest[:MOST_POINTS], flagged, labelled]))
    others = np.setdiff1d(np.arange(n), first)
    return np.sort(np.concatenate([first, evenly(others, max(0, MOST_POINTS - len(first)))]))


def shade(score: np.ndarray) -> np.ndarray:
    """Scores as places between 0 and 1 on a colour ramp; a few extreme ones do not take it all for themselves."""
    low, high = np.quantile(score, [0.02, 0.998]) if len(score) else (0, 1)
    return np.clip((score - low) / max(high - low, 1e-12), 0, 1)


def short_texts(texts: list[str]) -> list[str]:
    """The beginnings of texts, made dull, that together stay within a page's bytes."""
    short = [one_line(text, SHOWN) for text in texts]
    size = sum(len(text.encode("utf-8")) for text in short)
    if size <= MOST_BYTES:
        return short
    return [one_line(text, max(20, SHOWN * MOST_BYTES // size)) for text in short]
