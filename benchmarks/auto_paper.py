"""`auto` and logistic regression on the paper's cells with most labels: p = 8 %, test splits, five draws.

    python -m benchmarks.auto_paper --data DIR

Writes results/auto_paper.json: AUC and MAP of every run, by the default encoder.
"""

from __future__ import annotations

import argparse
from statistics import fmean, pstdev

from benchmarks.common import write_json
from strays.detectors import detector_class
from strays.encoders import load_encoder
from strays.jobs.metrics import auc, mean_average_precision
from strays.studies.corpora import data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import POLLUTIONS, RUNS, pollute
from strays.studies.rows import Row

CORPORA = ("5.1", "5.2-ag", "5.2-yelp", "5.2-rct")
METHODS = ("auto", "logistic")


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
            for seed, draw in draws.items():
                detector = detector_class(method)().fit(X[draw.train.rows], draw.train.y)
                score = detector.anomaly_score(X[draw.test.rows])
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


if __name__ == "__main__":
    main()
