"""Plots as SVG, written out of plain facts. Colours are classes that the page's style gives, so light and dark work.

Every plot has a title and a description, so that it can be listened to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

# Small, so that letters stay readable where a phone shrinks the plot.
WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 24, 40
SQUARE = 300
# A bar for a single text can still be seen beside one for thousands.
LEAST_BAR = 1.5
# Colours on the still map.
SHADES = 8

Scale = Callable[[float], float]


def scores(facts: dict[str, Any]) -> str:
    """How many texts score how high; flagged ones in the colour of what is odd, the threshold as a line."""
    edges, counts, flagged = facts["edges"], facts["counts"], facts["flagged"]
    x, y = _scale(edges[0], edges[-1], LEFT, WIDTH - RIGHT), _scale(0, _top(counts), HEIGHT - BOTTOM, TOP)
    bars = []
    for low, high, n, odd in zip(edges, edges[1:], counts, flagged, strict=False):
        if not n:
            continue
        says = f"{n:,} texts score {_number(low)} to {_number(high)}" + (f", {odd:,} of them flagged" if odd else "")
        bars.append(_bar(x(low), x(high), y(0), y(n), "plain", says))
        if odd:
            bars.append(_bar(x(low), x(high), y(0), y(odd), "odd", says))
    line = []
    if facts["threshold"] is not None and edges[0] <= facts["threshold"] <= edges[-1]:
        at = x(facts["threshold"])
        anchor, gap = ("end", -6) if at > WIDTH * 0.6 else ("start", 6)
        line = [
            f'<path class="threshold" d="M{at:.1f} {TOP - 8}V{HEIGHT - BOTTOM}"/>',
            f'<text class="strong" x="{at + gap:.1f}" y="{TOP}" text-anchor="{anchor}">'
            f"flagged above {_number(facts['threshold'])}</text>",
        ]
    says = f"Histogram of {sum(counts):,} scores from {_number(edges[0])} to {_number(edges[-1])}; "
    says += f"{sum(flagged):,} texts are flagged."
    axes = [*_x_axis(x, edges[0], edges[-1], "anomaly score (higher is odder)"), *_y_axis(y, _top(counts), "texts")]
    return _svg("Scores", says, [*axes, *bars, *line])


def p_values(facts: dict[str, Any]) -> str:
    """How p-values are spread; a level line says how they would be, were all texts normal."""
    counts, edges, expected = facts["counts"], facts["edges"], facts["expected"]
    top = _top([*counts, expected])
    x, y = _scale(0, 1, LEFT, WIDTH - RIGHT), _scale(0, top, HEIGHT - BOTTOM, TOP)
    bars = [
        _bar(x(low), x(high), y(0), y(n), "plain", f"{n:,} texts have p-values from {low:.2f} to {high:.2f}")
        for low, high, n in zip(edges, edges[1:], counts, strict=False)
        if n
    ]
    level = y(expected)
    line = [
        f'<path class="expected" d="M{LEFT} {level:.1f}H{WIDTH - RIGHT}"/>',
        f'<text x="{WIDTH - RIGHT}" y="{TOP - 11}" text-anchor="end">dashed: if all were normal</text>',
    ]
    says = f"Histogram of p-values in {len(counts)} equal steps: {counts[0]:,} texts in the lowest one, where "
    says += f"{expected:,.0f} would be expected were all texts normal."
    axes = [*_x_axis(x, 0, 1, "p-value (lower is odder)"), *_y_axis(y, top, "texts")]
    return _svg("p-values", says, [*axes, *bars, *line])


def roc(facts: dict[str, Any]) -> str:
    """The ROC curve, with the diagonal that a blind ranking would give."""
    says = f"ROC curve; the area under it is {facts['metrics']['auc']:.3f}, where a blind ranking has 0.5."
    straight = "".join(f"{'ML'[k > 0]}{_at(a, b)}" for k, (a, b) in enumerate(facts["roc"]))
    chance = f"M{_at(0, 0)}L{_at(1, 1)}"
    return _curve("ROC curve", says, straight, chance, "normal texts flagged", "anomalies found")


def precision_recall(facts: dict[str, Any]) -> str:
    """Precision over recall, in steps, with the level that a blind ranking would have."""
    share = facts["share_of_anomalies"]
    says = f"Precision-recall curve; average precision is {facts['metrics']['map']:.3f}, where a blind ranking has "
    says += f"{share:.3f}."
    corners = facts["precision_recall"]
    # Each precision holds from the recall before it on: the area under the steps is the average precision.
    steps = [f"M{_at(0, corners[0][1])}"]
    for corner in corners:
        px, py = _at(*corner).split()
        steps.append(f"V{py}H{px}")
    chance = f"M{_at(0, share)}L{_at(1, share)}"
    across, up = "anomalies found (recall)", "of the flagged, anomalies (precision)"
    return _curve("Precision and recall", says, "".join(steps), chance, across, up)


def still_map(facts: dict[str, Any]) -> str:
    """The map as a picture that stands still, for paper and for browsers without scripts."""
    width, height, margin = 720, 400, 12
    step = [min(SHADES - 1, int(value * SHADES)) for value in facts["value"]]
    dots: dict[str, list[str]] = {f"shade-{k}": [] for k in range(SHADES)}
    dots |= {"flagged": [], "normal": [], "anomaly": []}
    for k, mark in enumerate(facts["mark"]):
        px = margin + (width - 2 * margin) * facts["x"][k] / facts["grid"]
        py = margin + (height - 2 * margin) * facts["y"][k] / facts["grid"]
        dots[mark or f"shade-{step[k]}"].append(f"M{px:.0f} {py:.0f}h0")  # a line of no length is a dot
    size = 2.5 if len(step) > 5000 else 4 if len(step) > 800 else 6
    paths = [
        f'<path class="{name}" stroke-width="{size if "shade" in name else max(5, size)}" d="{"".join(path)}"/>'
        for name, path in dots.items()
        if path
    ]
    says = f"Map of {len(step):,} texts; texts that are alike lie close together, and darker ones are odder."
    return _svg("Map of the texts", says, paths, width, height)


def _curve(title: str, says: str, path: str, chance: str, across: str, up: str) -> str:
    x, y = _scale(0, 1, LEFT, SQUARE + LEFT), _scale(0, 1, SQUARE + TOP, TOP)
    axes = [*_x_axis(x, 0, 1, across, SQUARE + TOP, LEFT + SQUARE), *_y_axis(y, 1, up, LEFT + SQUARE, share=True)]
    drawn = [f'<path class="expected" d="{chance}"/>', f'<path class="curve" d="{path}"/>']
    return _svg(title, says, [*axes, *drawn], LEFT + SQUARE + RIGHT, TOP + SQUARE + BOTTOM)


def _at(x: float, y: float) -> str:
    return f"{LEFT + SQUARE * x:.1f} {TOP + SQUARE * (1 - y):.1f}"


def _svg(title: str, says: str, parts: Sequence[str], width: int = WIDTH, height: int = HEIGHT) -> str:
    about = f"<title>{escape(title)}</title><desc>{escape(says)}</desc>"
    return f'<svg viewBox="0 0 {width} {height}" role="img">{about}{"".join(parts)}</svg>'


def _bar(left: float, right: float, base: float, top: float, kind: str, says: str) -> str:
    top = min(top, base - LEAST_BAR)
    gap = min(1.0, (right - left) / 6)
    return (
        f'<rect class="{kind}" x="{left + gap / 2:.2f}" y="{top:.2f}" width="{max(0.5, right - left - gap):.2f}" '
        f'height="{base - top:.2f}"><title>{escape(says)}</title></rect>'
    )


def _x_axis(
    x: Scale, low: float, high: float, name: str, base: float = HEIGHT - BOTTOM, right: float = WIDTH - RIGHT
) -> list[str]:
    words = [(f"{x(at):.1f}", base + 16, _number(at)) for at in ticks_between(low, high)]
    words.append((f"{(LEFT + right) / 2:.0f}", base + 34, escape(name)))
    texts = [f'<text x="{across}" y="{down:.0f}" text-anchor="middle">{word}</text>' for across, down, word in words]
    return [f'<path class="axis" d="M{LEFT} {base}H{right}"/>', *texts]


def _y_axis(y: Scale, top: float, name: str, right: float = WIDTH - RIGHT, *, share: bool = False) -> list[str]:
    parts = []
    for at in ticks_between(0, top, most=5 if share else 4):
        if at and (share or at == int(at)):
            parts.append(f'<path class="grid" d="M{LEFT} {y(at):.1f}H{right}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{_number(at)}</text>')
    return [*parts, f'<text x="{LEFT - 34}" y="{TOP - 11}">{escape(name)}</text>']


def _scale(low: float, high: float, first: float, last: float) -> Scale:
    """From values to places on the plot, straight."""
    per_unit = (last - first) / ((high - low) or 1)
    return lambda value: first + (value - low) * per_unit


def ticks_between(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) from low to high, `most` of them or fewer."""
    span = high - low
    if not span > 0:
        return [low]
    power = 10 ** math.floor(math.log10(span / most))
    step = next(s * power for s in (1, 2, 5, 10, 20) if span / (s * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 10) for k in range(first, last + 1)]


def _top(counts: Sequence[float]) -> float:
    return max(*counts, 1) * 1.06


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
