"""Does a text's embedding depend on its batch? How many differ and by how much, and what it costs that none does.

    python -m benchmarks.encoder_batches --data DIR [--encoders int8 ...] [--no-costs]

Each encoder is run in two ways: `mixed`, batches padded to their longest text, as 0.1 made them, and `alike`, padding
that depends on the text alone. Texts are encoded together, and again in batches of 1, 7 and 64 and in another order.
Costs are seconds of processor time, `alike` by `mixed`, the lowest of some rounds of each: other work on the machine
does not count. Rounds of 64 texts are what a busy server encodes at a time. Updates results/encoder_batches.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, machine, write_json
from strays.encoders import load_encoder
from strays.encoders.base import LoadedEncoder
from strays.studies.corpora import data_folder, load_corpus

ENCODERS: dict[str, dict[str, str]] = {
    "int8": {"precision": "int8"},
    "float32": {"precision": "full"},
    "torch": {"runtime": "torch"},
}
WAYS = {"mixed": True, "alike": False}
# Corpora and texts of each that are encoded offline: titles, sentences of abstracts, long posts.
CORPORA = {"5.2-ag": 1280, "csabstruct": 640, "newsgroups": 128}
ROUNDS = 3
RESULT = "encoder_batches.json"


def pieces(texts: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def set_way(encoder: LoadedEncoder, way: str) -> None:
    encoder._tokenizer.mixed = WAYS[way]  # type: ignore[attr-defined]


def differences(encoder: LoadedEncoder, texts: list[str], rng: np.random.Generator) -> dict[str, Any]:
    """How many of the embeddings differ in some batch from those of all texts together, and by how much at most."""
    together = encoder.encode(texts)
    differs, largest = np.zeros(len(texts), dtype=bool), 0.0
    order = rng.permutation(len(texts))
    shuffled = np.empty_like(together)
    shuffled[order] = encoder.encode([texts[i] for i in order])
    others = [np.vstack([encoder.encode(part) for part in pieces(texts, size)]) for size in (1, 7, 64)]
    for other in (shuffled, *others):
        differs |= (other != together).any(axis=1)
        largest = max(largest, float(np.abs(other - together).max()))
    return {"differ": int(differs.sum()), "of": len(texts), "largest": largest}


def processor_seconds(encoder: LoadedEncoder, texts: list[str], size: int) -> float:
    start = time.process_time()
    for part in pieces(texts, size):
        encoder.encode(part)
    return time.process_time() - start


def cost(encoder: LoadedEncoder, texts: list[str], size: int) -> float:
    """Processor time of `alike` by that of `mixed`; the ways take turns."""
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(ROUNDS):
        for way in list(WAYS)[:: 1 if turn % 2 else -1]:
            set_way(encoder, way)
            found[way].append(processor_seconds(encoder, texts, size))
    return min(found["alike"]) / min(found["mixed"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--encoders", nargs="*", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--no-costs", action="store_true", help="only compare")
    parser.add_argument("--compared", type=int, default=448, metavar="N", help="texts to compare")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    corpora = {}
    for name, n in CORPORA.items():
        texts = load_corpus(name, data_folder(options.data)).texts
        corpora[name] = [texts[i] for i in rng.permutation(len(texts))[:n]]
    mixed = [text for texts in corpora.values() for text in texts]
    compared = [mixed[i] for i in rng.permutation(len(mixed))[: options.compared]]
    for name in options.encoders:
        encoder = load_encoder("default", cache=False, **ENCODERS[name]).without_warnings()  # type: ignore[arg-type]
        encoder.encode(["loaded before the clock starts"])
        found: dict[str, Any] = {}
        for way in WAYS:
            set_way(encoder, way)
            found[way] = differences(encoder, compared, rng)
        if not options.no_costs:
            found["cost"] = {
                corpus: {"offline": cost(encoder, texts, len(texts)), "rounds_of_64": cost(encoder, texts, 64)}
                for corpus, texts in corpora.items()
            }
        print(name, found, flush=True)
        path = RESULTS / RESULT
        earlier = json.loads(path.read_text())["encoders"] if path.exists() else {}
        about = machine("onnxruntime", "torch", "tokenizers", "numpy")
        write_json(RESULT, {"machine": about, "encoders": earlier | {name: found}})


if __name__ == "__main__":
    main()
