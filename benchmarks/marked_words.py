"""How many of the words that an explanation marks are function words?

    python -m benchmarks.marked_words --data DIR [--texts 40]

Models are fitted on training normals of a corpus without labels, and explain test texts of one clause, anomalies and
normals in equal numbers: their segments are single words. `before` marks every word with an effect above a share of the
largest, as version 0.1 did on its pages; `now` marks what `Explanation.strength` says. Function words are English ones
(`FUNCTION_WORDS`). `now_by_corpus_alone` leaves that list out, as it is for a language without one: words common in the
kept normal texts alone are not marked. Written to results/marked_words.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.common import write_json
from benchmarks.planted import draw
from strays import TextOutlierDetector
from strays.encoders import Encoder, load_encoder
from strays.model.common_words import FUNCTION_WORDS, all_common, common_words
from strays.model.explanation import FAINT, effects, pieces
from strays.model.segments import has_clauses, split
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus

TRAINED = 1000
CORPORA = ("5.1", "5.2-ag", "5.2-rct", "banking", "csabstruct", "polarity")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--texts", type=int, default=40)
    options = parser.parse_args()
    encoder = load_encoder("default")
    rows = []
    for name in CORPORA:
        corpus = load_corpus(name, data_folder(options.data))
        rows.append({"corpus": name, **measure(encoder, corpus, options.texts)})
        print(rows[-1], flush=True)
    write_json("marked_words.json", {"trained_on": TRAINED, "rows": rows})


def measure(encoder: Encoder, corpus: LabelledCorpus, n: int) -> dict[str, Any]:
    """How many words are marked in the texts of one corpus, by each rule, and how many of them are function words."""
    rng = np.random.default_rng(0)
    model = TextOutlierDetector(encoder).fit(draw(corpus, "train", True, rng)[:TRAINED])
    by_corpus = common_words(model.examples_.texts, function_words=frozenset())
    texts = []
    for normal in (True, False):
        one_clause = [t for t in draw(corpus, "test", normal, rng) if not has_clauses(t) and 2 <= len(split(t)) <= 24]
        texts += one_clause[: n // 2]
    marked: dict[str, list[str]] = {"before": [], "now": [], "now_by_corpus_alone": []}
    for text, explanation in zip(texts, model.explain_many(texts), strict=True):
        spans = split(text)
        scores = model.anomaly_score(pieces(text, spans))
        for rule, common in (("before", frozenset()), ("now_by_corpus_alone", by_corpus)):
            segments = effects(text, spans, scores, common)
            marked[rule] += [s.text for s in segments if 0 < s.effect >= FAINT * segments[0].effect]
        marked["now"] += [s.text for s in explanation.segments if explanation.strength(s) > 0]
    counts = {
        rule: {"marked": len(found), "function_words": sum(all_common(word, FUNCTION_WORDS) for word in found)}
        for rule, found in marked.items()
    }
    return {"texts": len(texts), **counts}


if __name__ == "__main__":
    main()
