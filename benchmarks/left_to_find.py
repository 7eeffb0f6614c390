"""Is the desk right about how many anomalies are left? Small piles, judged from nothing.

    python -m benchmarks.left_to_find --data DIR [--corpora NAME ...] [--seeds 0 1 2]

A pile is 300 texts with 10 anomalies among them, like the bundled example, or 1,000 texts with 40, of every kind. The
corpus's own labels are the person, who judges what the desk asks, with a refit after every 10 verdicts. A row of
results/left_to_find.jsonl has every question's kind, p-value and answer, and, at each look, how many anomalies are left
and the p-values of the texts that nobody has judged, as in labelling.py. Finished rows are skipped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS
from benchmarks.labelling import spread
from benchmarks.more_labels import p_values
from strays.apps.review.questions import choose_questions
from strays.detectors import AutoDetector
from strays.detectors.base import FOUND
from strays.encoders import load_encoder
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.protocol import pile
from strays.studies.rows import Row, RowFile

CORPORA = ("5.1", "5.2-ag", "5.2-yelp", "5.2-rct", "banking", "bbc", "csabstruct", "newsgroups", "polarity")
# (normals, share of anomalies)
PILES = ((290, 10 / 300), (960, 0.04))
VERDICTS, EVERY, LOOKS = 160, 10, (20, 40, 60, 80, 120, 160)
RESULT = RESULTS / "left_to_find.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--normals", type=int, nargs="*", default=[normals for normals, _ in PILES])
    parser.add_argument("--out", default=RESULT, type=Path)
    options = parser.parse_args()
    encoder = load_encoder("default", precision="full")
    file = RowFile(options.out)
    done = {(row["corpus"], row["seed"], row["normals"]) for row in file.read()}
    for name in options.corpora:
        corpus = load_corpus(name, data_folder(options.data))
        for normals, share in PILES:
            for seed in options.seeds:
                if (name, seed, normals) not in done and normals in options.normals:
                    drawn = pile(corpus, share, seed, most_normals=normals)
                    X = encoder.encode([corpus.texts[row] for row in drawn.rows])
                    file.append({"corpus": name, "seed": seed, "normals": normals} | run(X, drawn.y, seed))
                    print(name, normals, seed, file.read()[-1]["found"], flush=True)


def run(X: np.ndarray, truth: np.ndarray, seed: int) -> Row:
    """One person through one pile."""
    y = np.zeros(len(X), dtype=int)
    judged: list[tuple[str, float, int]] = []
    found, open_ = {}, {}
    while True:
        scores = AutoDetector().fit(X, np.where(y < 0, FOUND, y)).anomaly_score(X)
        p_value = p_values(scores, y)
        if len(judged) in LOOKS:
            found[len(judged)] = int((y < 0).sum())
            open_[len(judged)] = spread(p_value[y == 0])
        if len(judged) >= VERDICTS:
            n_anomalies = int((truth < 0).sum())
            return {"n_texts": len(X), "n_anomalies": n_anomalies, "found": found, "judged": judged, "open": open_}
        answers, rng = [(why, bool(hit)) for why, _, hit in judged], np.random.default_rng([seed, len(judged)])
        for question in choose_questions(scores, X, y, y == 0, EVERY, answers=answers, rng=rng):
            y[question.place] = truth[question.place]
            judged.append((question.why, round(float(p_value[question.place]), 6), int(truth[question.place] < 0)))


if __name__ == "__main__":
    main()
