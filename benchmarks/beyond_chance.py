"""How many rows are odd beyond chance? Intervals on piles with a known share of anomalies.

    python -m benchmarks.beyond_chance --data DIR [--corpora NAME ...]

A model fitted on other texts (`fitted`): on n normals, or on n normals and 4 % of anomalies that nobody has labelled.
It scores piles of fresh normals with 0 to 10 % anomalies, and `contamination` tells what share is odd beyond chance.
Counted: how often it claims any (`claims`; without anomalies at most 0.05), how often the interval holds the excess
(`held`; 0.9 is wanted, where the model's texts were clean), how often its low end is above the true share (`too_high`;
at most 0.05). The excess is the share of anomalies with a p-value up to 5 %, less what chance would flag of them:
anomalies that look normal are not in it.

A pile compared with itself (`alone`): its p-values say nothing, so three statistics of the shape of its scores are
tried. `tail`: what is above the 95 % point of a generalised Pareto tail fitted to the scores between their 50 and 90 %
points. `normal`: what is above the 99 % point of a normal distribution with the median and the lower spread of the
scores. `mixture`: how much better two normal distributions fit than one (BIC per row). `claims` counts how often each
is above the 95 % point of its values on the piles without anomalies of the corpora in CHOSEN_ON.

Rows go to results/beyond_chance.jsonl; finished corpora are skipped. Prints a summary, of the corpora that the level of
5 % was chosen on and of the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import genpareto, norm
from sklearn.mixture import GaussianMixture

from benchmarks.common import RESULTS
from benchmarks.validity import Kept, drawable
from strays import TextOutlierDetector
from strays.detectors import AutoDetector
from strays.encoders import load_encoder
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.rows import RowFile

CHOSEN_ON = ("banking", "csabstruct")
OTHERS = ("5.1", "5.2-ag", "5.2-rct", "5.2-yelp", "bbc", "polarity")
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)
# Texts to fit on and how many models, and the piles that each scores: rows and draws.
FITS, PILES, DRAWS = {300: 3, 2500: 1}, (300, 1000), 4
# Piles compared with themselves: rows and draws.
ALONE = {300: 5, 1000: 2}
HIDDEN, MOST_NORMALS, MOST_ANOMALIES = 0.04, 4000, 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=[*CHOSEN_ON, *OTHERS])
    parser.add_argument("--out", default=RESULTS / "beyond_chance.jsonl", type=Path)
    options = parser.parse_args()
    file = RowFile(options.out)
    done = {row["corpus"] for row in file.read()}
    encoder = load_encoder("default", precision="full")
    for name in options.corpora:
        if name in done:
            continue
        corpus = load_corpus(name, data_folder(options.data))
        normals, anomalies = drawable(corpus)
        normals, anomalies = normals[:MOST_NORMALS], anomalies[:MOST_ANOMALIES]
        X = embed(corpus, [*normals, *anomalies], encoder)
        for row in [*fitted(corpus.texts, X, normals, anomalies), *alone(X[normals], X[anomalies])]:
            file.append({"corpus": name, **row})
    for line in summary(file.read()):
        print(line)


def fitted(texts: Sequence[str], X: np.ndarray, normals: np.ndarray, anomalies: np.ndarray) -> Iterator[dict[str, Any]]:
    """Piles scored by models fitted on other texts; one row for each size, case and share."""
    for n_fit, models in FITS.items():
        sizes = [n for n in PILES if n_fit + n <= len(normals)]
        for case in ("clean", "polluted") if sizes else ():
            found: dict[tuple[int, float], list[dict[str, float]]] = {}
            for seed in range(models):
                rng = np.random.default_rng(seed)
                order, odd = rng.permutation(normals), rng.permutation(anomalies)
                hidden, odd = np.split(odd, [round(HIDDEN * n_fit) if case == "polluted" else 0])
                model = TextOutlierDetector(Kept(texts, X), keep_examples=0, random_state=seed)
                model.fit([texts[i] for i in [*order[:n_fit], *hidden]])
                p_normal, p_odd = (model.p_value([texts[i] for i in rows]) for rows in (order[n_fit:], odd))
                for n in sizes:
                    for share in SHARES:
                        for _ in range(DRAWS):
                            k = round(share * n)
                            piled = rng.permutation(p_normal)[: n - k], rng.permutation(p_odd)[:k]
                            found.setdefault((n, share), []).append(_interval(model, *piled))
            for (n, share), draws in found.items():
                place = {"pile": "fitted", "case": case, "n_fit": n_fit, "n": n, "share": share, "draws": len(draws)}
                yield place | {name: round(float(np.mean([draw[name] for draw in draws])), 4) for name in draws[0]}


def _interval(model: TextOutlierDetector, p_normal: np.ndarray, p_odd: np.ndarray) -> dict[str, float]:
    """What is said of a pile, and whether it is true."""
    n, share = len(p_normal) + len(p_odd), len(p_odd) / (len(p_normal) + len(p_odd))
    said = model.calibration_.contamination(np.r_[p_normal, p_odd])
    assert said is not None
    excess = max(0.0, (p_odd <= said.rate + 1e-12).sum() / n - said.rate * share) / (1 - said.rate)
    held = said.low - 0.5 / n <= excess <= said.high + 0.5 / n  # the ends are whole rows
    return {
        "claims": said.beyond_chance,
        "held": held,
        "too_high": said.low > share + 1e-9,
        "estimate": said.share,
        "low": said.low,
        "high": said.high,
        "excess": excess,
    }


def alone(normals: np.ndarray, anomalies: np.ndarray) -> Iterator[dict[str, Any]]:
    """The shape of the scores of piles compared with themselves; one row for each draw."""
    for n, draws in ALONE.items():
        for seed in range(draws if n <= len(normals) else 0):
            rng = np.random.default_rng(seed)
            order, odd = rng.permutation(len(normals)), rng.permutation(len(anomalies))
            for share in SHARES:
                k = round(share * n)
                X = np.r_[normals[order[: n - k]], anomalies[odd[:k]]]
                scores = AutoDetector().fit(X, np.zeros(n, dtype=int)).anomaly_score(X)
                yield {"pile": "alone", "n": n, "share": share, "seed": seed} | shape(scores)


def shape(scores: np.ndarray) -> dict[str, float]:
    """Three statistics that should be higher where there are anomalies among the scores."""
    middle, edge = np.quantile(scores, (0.5, 0.9))
    beyond = scores[scores > middle] - middle
    inside, n_outside = beyond[beyond <= edge - middle], int((beyond > edge - middle).sum())

    def misfit(parameters: np.ndarray) -> float:
        size, form = np.exp(parameters[0]), parameters[1]
        seen = genpareto.logpdf(inside, form, scale=size).sum()
        return float(-seen - n_outside * genpareto.logsf(edge - middle, form, scale=size))

    size, form = minimize(misfit, [np.log(inside.mean()), -0.1], method="Nelder-Mead").x
    tail = 0.5 * genpareto.sf(scores - middle, form, scale=np.exp(size))
    spread = (scores - middle) / (middle - np.quantile(scores, norm.cdf(-1)))
    one, two = (GaussianMixture(k, random_state=0).fit(scores[:, None]).bic(scores[:, None]) for k in (1, 2))
    found = {
        "tail": (tail <= 0.05).mean() - 0.05,
        "normal": (spread > norm.ppf(0.99)).mean() - 0.01,
        "mixture": (one - two) / len(scores),
    }
    return {name: round(float(value), 5) for name, value in found.items()}


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The figures, of the corpora chosen on and of the others."""
    for title, corpora in (("chosen on", CHOSEN_ON), ("others", OTHERS)):
        for case in ("clean", "polluted"):
            for share in SHARES:
                figures = "  ".join(f"{name} {value:.3f}" for name, value in means(rows, corpora, case, share).items())
                yield f"{title:9} {case:8} {share:4.0%}  {figures}"
    for name in ("tail", "normal", "mixture"):
        claims = [f"{value:.2f} at {share:.0%}" for share, value in claims_alone(rows, name).items()]
        yield f"others, alone, {name}: claims {', '.join(claims)}"


def means(rows: list[dict[str, Any]], corpora: tuple[str, ...], case: str, share: float) -> dict[str, float]:
    """Over all piles of these corpora with this share of anomalies."""
    piles = [row for row in rows if (row["pile"], row.get("case"), row["share"]) == ("fitted", case, share)]
    piles = [row for row in piles if row["corpus"] in corpora]
    draws = [row["draws"] for row in piles]
    names = ("claims", "held", "too_high", "estimate", "low", "high", "excess")
    return {name: float(np.average([row[name] for row in piles], weights=draws)) for name in names}


def claims_alone(rows: list[dict[str, Any]], name: str) -> dict[float, float]:
    """How often a statistic of the shape claims anomalies, by their share, on corpora its limit was not chosen on."""
    piles = [row for row in rows if row["pile"] == "alone"]
    clean = [row[name] for row in piles if row["corpus"] in CHOSEN_ON and row["share"] == 0]
    limit = np.quantile(clean, 0.95)
    others = [row for row in piles if row["corpus"] in OTHERS]
    return {share: float(np.mean([row[name] > limit for row in others if row["share"] == share])) for share in SHARES}


if __name__ == "__main__":
    main()
