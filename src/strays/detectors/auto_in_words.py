"""What the score of the default detector is made of, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping


def in_words(shares: Mapping[str, float], n_known: int, auc: float, auc_of_distances: float, n_set_aside: int) -> str:
    """Which parts make the score, by their shares of it, and why: the attributes of an AutoDetector.

    >>> in_words({"nearest": 0.7, "field": 0.3, "kernel": 0, "linear": 0}, 0, float("nan"), float("nan"), 0)
    'distance to the nearest normal texts (70%) and how settled with normal texts the surroundings are (30%); no ...'
    """
    share = {part: f"{value:.0%}" for part, value in shares.items()}
    distances = (
        f"distance to the nearest normal texts ({share['nearest']}) and how settled with normal texts the "
        f"surroundings are ({share['field']})"
    )
    if share.get("form", "0%") != "0%":
        distances += f", and how unusual the form of the text is ({share['form']})"
    if not n_known:
        return f"{distances}; no anomalies are known"
    sentence = (
        f"{distances}; likeness to the {n_known:,} known anomalies, by resemblance ({share['kernel']}) and by a linear "
        f"classifier ({share['linear']}), because a known anomaly, left out, ranks above {auc:.0f} % of the normal "
        f"texts with them and above {auc_of_distances:.0f} % without"
    )
    if n_set_aside:
        sentence += f"; {n_set_aside:,} texts presumed normal were set aside for looking like known anomalies"
    return sentence
