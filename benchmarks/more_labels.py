"""Do more labels ever hurt? A detector with ten known anomalies, and after 50, 100 and 200 verdicts at the desk.

    python -m benchmarks.more_labels --data DIR [--corpora NAME ...] [--seeds 1 2] [--before ../before/src]

A pile is 2,000 normals with 8 % anomalies of every kind among them. Three fifths of it are at the desk, where ten
anomalies are known; the corpus's own labels are the person, who judges what the desk asks, with a refit after every 10
verdicts. The rest is fresh: the desk has never seen it. AUC, MAP and the share of normals above the 80 % of anomalies
that rank highest (fpr80) are of

    fresh      the fresh rows
    unjudged   the rows at the desk that nobody has judged in the end, the same ones at every look

The second favours the first look: the desk asks about whatever later models rank high, so that the anomalies left are
those which they rank low. --before names the source of an earlier version, which fits on the same labels: `git worktree
add ../before v0.1`.

Appends to results/more_labels.jsonl; finished rows are skipped. A row also has what the estimate of hidden anomalies
rests on, as in labelling.py.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS
from benchmarks.labelling import spread
from strays.apps.review.learner import MEMORY
from strays.apps.review.questions import choose_questions
from strays.detectors import AutoDetector
from strays.detectors.base import FOUND
from strays.encoders import load_encoder
from strays.jobs.metrics import auc, fpr_at_tpr, mean_average_precision
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.protocol import pile
from strays.studies.rows import Row, RowFile

CORPORA = ("5.1", "5.2-ag", "5.2-rct", "banking", "csabstruct", "polarity")
SHARE, MOST_NORMALS, AT_DESK = 0.08, 2000, 0.6
KNOWN, VERDICTS, EVERY = 10, 200, 10
LOOKS = (0, 50, 100, 200)
RESULT = RESULTS / "more_labels.jsonl"
# (rows and labels to fit on, rows to score) -> scores
Scores = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
EARLIER = """
import sys, numpy, strays
from strays.detectors import AutoDetector
assert strays.__file__.startswith(sys.argv[3]), strays.__file__
given = numpy.load(sys.argv[1])
numpy.save(sys.argv[2], AutoDetector().fit(given["X"], given["y"]).anomaly_score(given["rows"]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--before", type=Path, help="the folder src of an earlier version")
    parser.add_argument("--out", default=RESULT, type=Path)
    options = parser.parse_args()
    versions: dict[str, Scores] = {"now": scores_now}
    if options.before:
        versions["before"] = partial(scores_before, options.before.resolve())
    encoder = load_encoder("default", precision="full")
    file = RowFile(options.out)
    for seed in options.seeds:
        for name in options.corpora:
            corpus = load_corpus(name, data_folder(options.data))
            if (name, seed) not in {(row["corpus"], row["seed"]) for row in file.read()}:
                drawn = pile(corpus, SHARE, seed, most_normals=MOST_NORMALS)
                X = encoder.encode([corpus.texts[row] for row in drawn.rows])
                file.append({"corpus": name, "seed": seed} | run(X, drawn.y, versions, seed))
                print(name, seed, file.read()[-1]["quality"], flush=True)


def run(X: np.ndarray, truth: np.ndarray, versions: dict[str, Scores], seed: int) -> Row:
    """One person through one pile, and what each version makes of the labels at each look."""
    here = at_desk(truth)
    desk, fresh, truth, answer = X[here], X[~here], truth[here], truth[~here]
    y = np.zeros(len(desk), dtype=int)
    y[np.flatnonzero(truth < 0)[:KNOWN]] = -1
    labels, open_ = {0: y.copy()}, {}
    judged: list[tuple[str, float, int]] = []
    while len(judged) < VERDICTS:
        scores = AutoDetector(memory=MEMORY).fit(desk, y).anomaly_score(desk)
        p_value = p_values(scores, y)
        if len(judged) in LOOKS[1:]:
            labels[len(judged)], open_[len(judged)] = y.copy(), spread(p_value[y == 0])
        answers, rng = [(why, bool(hit)) for why, _, hit in judged], np.random.default_rng([seed, len(judged)])
        for question in choose_questions(scores, desk, y, y == 0, EVERY, answers=answers, rng=rng):
            y[question.place] = FOUND if truth[question.place] < 0 else 1
            judged.append((question.why, round(float(p_value[question.place]), 6), int(truth[question.place] < 0)))
    labels[VERDICTS] = y
    last = AutoDetector(memory=MEMORY).fit(desk, y).anomaly_score(desk)
    open_[VERDICTS] = spread(p_values(last, y)[y == 0])
    rows, answer = np.vstack([fresh, desk[y == 0]]), np.r_[answer, truth[y == 0]]
    quality: dict[str, dict[str, Row]] = {version: {} for version in versions}
    for version, score in versions.items():
        for look, given in labels.items():
            at = score(desk, given, rows)
            parts = {"fresh": slice(None, len(fresh)), "unjudged": slice(len(fresh), None)}
            quality[version][str(look)] = {name: measures(answer[part], at[part]) for name, part in parts.items()}
    found = {str(look): int((given < 0).sum()) - KNOWN for look, given in labels.items() if look}
    n_anomalies = int((truth < 0).sum()) - KNOWN
    row: Row = {"n_texts": len(desk), "n_anomalies": n_anomalies, "found": found, "quality": quality}
    return row | {"judged": judged, "open": open_}


def at_desk(truth: np.ndarray) -> np.ndarray:
    """Which rows are at the desk: the same share of the normals and of the anomalies."""
    here = np.zeros(len(truth), dtype=bool)
    for label in (1, -1):
        rows = np.flatnonzero(truth == label)
        here[rows[: round(AT_DESK * len(rows))]] = True
    return here


def p_values(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By rank among the rows presumed normal, whose scores are left-out ones."""
    normal = np.sort(scores[y >= 0])
    return (1 + len(normal) - np.searchsorted(normal, scores, side="left")) / (1 + len(normal))


def measures(y: np.ndarray, scores: np.ndarray) -> Row | None:
    """In percent; None where fewer than five anomalies are left, as they would say nothing."""
    if (y < 0).sum() < 5:
        return None
    found = {"auc": auc(y, scores), "map": mean_average_precision(y, scores), "fpr80": fpr_at_tpr(y, scores)}
    return {name: round(100 * value, 2) for name, value in found.items()}


def scores_now(X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """By this version, which tells the anomalies found at the desk from the first ten."""
    return AutoDetector().fit(X, y).anomaly_score(rows)


def scores_before(source: Path, X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """By the version whose source this is."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = f"{folder}/given.npz", f"{folder}/scores.npy"
        np.savez(given, X=X, y=np.sign(y), rows=rows)
        env = {**os.environ, "PYTHONPATH": str(source)}
        subprocess.run([sys.executable, "-W", "ignore", "-c", EARLIER, given, out, str(source)], env=env, check=True)
        scores: np.ndarray = np.load(out)
        return scores


if __name__ == "__main__":
    main()
