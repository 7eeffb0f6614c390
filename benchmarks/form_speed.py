"""How much of its speed scoring keeps when the form of the texts counts: models with and without, in turn.

    python -m benchmarks.form_speed --data DIR [--rounds 7]

AG's titles and sentences of trial abstracts, with the default encoder and with `fast`, without the cache. Processor
time, since other programs may run. Writes results/form_speed.json.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import machine, write_json
from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.studies.corpora import data_folder, load_corpus

CORPORA = ("5.2-ag", "5.2-rct")
# Texts scored by the encoder.
SCORED = {"default": 3000, "fast": 20_000}
FITTED_ON = 3000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rows = []
    for name in CORPORA:
        corpus = load_corpus(name, data_folder(options.data))
        texts = [corpus.texts[i] for i in np.random.default_rng(0).permutation(len(corpus.texts))]
        for encoder, n in SCORED.items():
            rows.append({"corpus": name, "encoder": encoder} | measured(texts, encoder, n, options.rounds))
            print(rows[-1], flush=True)
    write_json("form_speed.json", {"machine": machine("numpy", "onnxruntime"), "rows": rows})


def measured(texts: list[str], encoder: str, n: int, rounds: int) -> dict[str, Any]:
    """Texts a second of processor time without and with form, and how the two compare in each round."""
    loaded = load_encoder(encoder, cache=False)
    models = {form: TextOutlierDetector(loaded, form=form).fit(texts[:FITTED_ON]) for form in (False, True)}
    fresh = texts[FITTED_ON:][:n]
    took: dict[bool, list[float]] = {False: [], True: []}
    for i in range(rounds):
        for form in (False, True) if i % 2 else (True, False):
            start = time.process_time()
            models[form].anomaly_score(fresh)
            took[form].append(time.process_time() - start)
    ratios = [without / with_form for without, with_form in zip(took[False], took[True], strict=True)]
    return {
        "texts": len(fresh),
        "without": round(len(fresh) / median(took[False])),
        "with": round(len(fresh) / median(took[True])),
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


if __name__ == "__main__":
    main()
