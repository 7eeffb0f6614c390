"""`auto`, also with a tuned encoder, and logistic regression on the paper's cells with most labels: p = 8 %, test
splits, five draws.

    python -m benchmarks.auto_paper --data DIR

Writes results/auto_paper.json: AUC and MAP of every run, by the default encoder. Needs the extra torch, for tuning.
"""

from __future__ import annotations

import argparse
import warnings
from statistics import fmean, pstdev

import numpy as np

from benchmarks.common import write_json
from strays import TextOutlierDetector
from strays.detectors import detector_class
from strays.encoders import LoadedEncoder, load_encoder
from strays.errors import StraysWarning
from strays.jobs.metrics import auc, mean_average_precision
from strays.model.labels import WORD
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import POLLUTIONS, RUNS, Scenario, pollute
from strays.studies.rows import Row

CORPORA = ("5.1", "5.2-ag", "5.2-yelp", "5.2-rct")
TUNED = "auto, tuned"
METHODS = ("auto", "logistic", TUNED)
# Tuning takes minutes, so only two corpora have it.
TUNED_ON = ("5.1", "5.2-rct")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    options = parser.parse_args()
    encoder = load_encoder("default", precision="full")
    rows: list[Row] = []
    for name in CORPORA:
        corpus = load_corpus(name, data_folder(options.data))
        draws = {seed: pollute(corpus, max(POLLUTIONS), seed) for seed in range(RUNS)}
        X = embed(corpus, {row for draw in draws.values() for row in draw.rows}, encoder)
        for method in METHODS:
            if method == TUNED and name not in TUNED_ON:
                continue
            for seed, draw in draws.items():
                score = scores(method, corpus, draw, X, encoder, seed)
                found = {"auc": auc(draw.test.y, score), "map": mean_average_precision(draw.test.y, score)}
                rows.append({"corpus": name, "method": method, "seed": seed, **found})
            runs = [row for row in rows if (row["corpus"], row["method"]) == (name, method)]
            words = (
                f"{metric} {100 * fmean(v):.1f} ({100 * pstdev(v):.1f})"
                for metric in ("auc", "map")
                for v in [[row[metric] for row in runs]]
            )
            print(name, method, *words, flush=True)
    write_json("auto_paper.json", {"pollution": max(POLLUTIONS), "fingerprint": encoder.fingerprint[:12], "rows": rows})


def scores(
    method: str, corpus: LabelledCorpus, draw: Scenario, X: np.ndarray, encoder: LoadedEncoder, seed: int
) -> np.ndarray:
    """Of the test texts of a draw: by a model as a user has it, or by a detector alone, which sees embeddings X."""
    if method == "logistic":
        return detector_class(method)().fit(X[draw.train.rows], draw.train.y).anomaly_score(X[draw.test.rows])
    model = TextOutlierDetector(encoder, tune=method == TUNED, random_state=seed)
    texts, asked = ([corpus.texts[i] for i in part.rows] for part in (draw.train, draw.test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)
        model.fit(texts, [WORD[int(y)] for y in draw.train.y], embeddings=X[draw.train.rows])
    return model.anomaly_score(asked, embeddings=None if method == TUNED else X[draw.test.rows])


if __name__ == "__main__":
    main()
