"""Titles a second: `fast` from nothing and once it knows the words, and sentence-transformers with the same MiniLM.

    python -m benchmarks.fast_speed --data DIR [--n 40000]

AG news titles, each encoder in turn, three rounds. Writes results/fast_speed.json; sentence-transformers takes part
where it is installed.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.common import machine, seconds, write_json
from strays.encoders import load_encoder
from strays.encoders.sources import bundled_folder
from strays.evaluation.corpora import data_folder, load_corpus

ROUNDS, BY_TRANSFORMER = 3, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--n", type=int, default=40_000)
    options = parser.parse_args()
    texts = load_corpus("5.2-ag", data_folder(options.data)).texts[: options.n]
    load_encoder("fast").encode(["distilled before the clock starts"])
    theirs = sentence_transformer()
    rates: dict[str, list[float]] = {"fast_cold": [], "fast": [], "sentence_transformers": []}
    for _ in range(ROUNDS):
        fast = load_encoder("fast")
        fast.encode([""])
        for case in ("fast_cold", "fast"):
            rates[case].append(len(texts) / seconds(lambda: fast.encode(texts)))  # noqa: B023
        if theirs:
            few = texts[:BY_TRANSFORMER]
            rates["sentence_transformers"].append(len(few) / seconds(lambda: theirs.encode(few)))  # noqa: B023
    typical = {case: round(median(found), 1) for case, found in rates.items() if found}
    result: dict[str, Any] = {
        "what": f"AG titles a second; {len(texts)} for fast, {BY_TRANSFORMER} for the transformer",
        "machine": machine("tokenizers", "numpy", "torch"),
        "rounds": {case: [round(rate, 1) for rate in found] for case, found in rates.items()},
        "median": typical,
    }
    if theirs:
        result["times_sentence_transformers"] = {
            case: round(typical[case] / typical["sentence_transformers"], 1) for case in ("fast_cold", "fast")
        }
    write_json("fast_speed.json", result)
    print(result)


def sentence_transformer() -> Any:
    """The same model in sentence-transformers, or None where that is not installed."""
    if find_spec("sentence_transformers") is None:
        return None
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(bundled_folder()), device="cpu")
    model.encode(["a"])
    return model


if __name__ == "__main__":
    main()
