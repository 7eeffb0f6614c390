"""How many anomalies does a person find who judges 200 texts at the desk? The corpus's own labels are the person.

    python -m benchmarks.labelling --data DIR [--corpora NAME ...] [--seeds 10 11 12]

A pile is all normals of a corpus, at most 9,800, and anomalies of every kind, 2 % of the pile; `email-160` is mails cut
to 160 characters, where spam comes in groups and its form tells it. Three ways through it:

    fixed    the oddest first, ranked once without labels
    oddest   the oddest first, ranked again by a refit after every 5 verdicts
    desk     what the desk asks: the same refits, and its mix of questions

The person waits for every refit. At the real desk one goes on judging meanwhile, and sees two texts that were chosen
before it.

Appends to results/labelling.jsonl the anomalies found after 50, 100, 150 and 200 verdicts, and for the desk also every
question's kind, p-value and answer, and how the p-values of the rest are spread, from which the desk estimates how many
anomalies are still hidden. Finished rows are skipped.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS
from strays.apps.review.learner import Learner, Ranking
from strays.apps.review.questions import Question, choose_questions, near_copies
from strays.encoders import Encoder, load_encoder
from strays.model.labels import WORD
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.protocol import LabelledRows, pile
from strays.studies.rows import Row, RowFile

CUT_MAILS = "email-160"
CORPORA = ("5.2-ag", "5.2-rct", "5.2-yelp", "newsgroups", "banking")
WAYS = ("fixed", "oddest", "desk")
SHARE, VERDICTS, EVERY = 0.02, 200, 5
LOOKS = (50, 100, 150, 200)
# Of the logarithm of a p-value: twenty a decade.
BINS = np.linspace(-5, 0, 101)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    parser.add_argument("--seeds", type=int, nargs="*", default=[10, 11, 12])
    parser.add_argument("--out", default=RESULTS / "labelling.jsonl", type=Path)
    options = parser.parse_args()
    encoder = load_encoder("default", precision="full")
    file = RowFile(options.out)
    done = {(row["corpus"], row["seed"], row["way"]) for row in file.read()}
    for seed in options.seeds:
        for name in options.corpora:
            corpus = load(name, data_folder(options.data))
            for way in WAYS:
                if (name, seed, way) not in done:
                    start = time.perf_counter()
                    row = run(corpus, pile(corpus, SHARE, seed), encoder, way, seed)
                    took = round(time.perf_counter() - start, 1)
                    file.append({"corpus": name, "seed": seed, "way": way} | row | {"seconds": took})
                    print(file.read()[-1], flush=True)


def load(name: str, folder: Path) -> LabelledCorpus:
    """A corpus, with its texts cut where its name says so."""
    if name != CUT_MAILS:
        return load_corpus(name, folder)
    mails = load_corpus("email", folder)
    return replace(mails, texts=[text[:160] for text in mails.texts])


def run(corpus: LabelledCorpus, drawn: LabelledRows, encoder: Encoder, way: str, seed: int) -> Row:
    """One person through one pile."""
    texts = [corpus.texts[row] for row in drawn.rows]
    learner = Learner(texts, encoder.encode(texts), encoder, random_state=seed)
    y = np.zeros(len(texts), dtype=int)
    ranking = learner.learn([None] * len(y))
    judged: list[tuple[str, float, int]] = []
    found: dict[int, int] = {}
    open_: dict[int, list[int]] = {}
    while len(judged) < VERDICTS:
        for question in choose(way, ranking, learner.X, y, [(why, bool(hit)) for why, _, hit in judged], seed):
            y[question.place] = drawn.y[question.place]
            judged.append((question.why, round(float(ranking.p_value[question.place]), 6), int(y[question.place] < 0)))
        if way != "fixed":
            ranking = learner.learn([WORD[int(label)] for label in y], y != 0)
        if len(judged) in LOOKS:
            found[len(judged)] = sum(hit for _, _, hit in judged)
            open_[len(judged)] = spread(ranking.p_value[y == 0])
    row: Row = {"n_texts": len(texts), "n_anomalies": int((drawn.y < 0).sum()), "found": found}
    return row | ({"judged": judged, "open": open_} if way == "desk" else {})


def spread(p: np.ndarray) -> list[int]:
    """How many p-values are in each of BINS, the lowest first."""
    return [int(count) for count in np.histogram(np.log10(p), BINS)[0]]


def choose(
    way: str, ranking: Ranking, X: np.ndarray, y: np.ndarray, answers: list[tuple[str, bool]], seed: int
) -> list[Question]:
    """The next questions."""
    if way == "desk":
        rng = np.random.default_rng([seed, int((y != 0).sum())])
        score, none = ranking.anomaly_score, np.zeros(len(y), dtype=bool)
        later = near_copies(score, y == 0, none) if ranking.model.detector_.copies_tie else None
        form = ranking.unusual_form
        return choose_questions(score, X, y, y == 0, EVERY, answers=answers, rng=rng, later=later, form=form)
    order = np.argsort(-ranking.anomaly_score, kind="stable")
    return [Question(int(row), "odd") for row in order[y[order] == 0][:EVERY]]


if __name__ == "__main__":
    main()
