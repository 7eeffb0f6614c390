"""What share does a cascade send to the transformer, how much of what the full model flags is among it, how fast is it?

    python -m benchmarks.cascade --data DIR [--corpora 5.1 5.2-ag 5.2-yelp] [--seeds 3] [--speed-only]

Models are fitted on all training normals of a corpus with 5 % of unlabelled anomalies, without labels and with 30 known
anomalies, and asked for a recall of 98 % of what they flag at 1 % (max_false_alarms and flag_rate). Judged on the test
split: all its normals and 5 % of anomalies, half of them of kinds never seen where there are several. Speed: raw texts
of the test split through the public functions, plain and by cascade in turn. Writes results/cascade.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, add_corpus_options, machine, seconds, write_json
from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.model.cascade_scorer import CascadeScorer
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import FewLabels, few_labels

POLLUTION, KNOWN, RATE, TESTED = 0.05, (0, 30), 0.01, 0.05
ALL = 1_000_000
TIMED, ROUNDS = 3000, 3


class ByText:
    """An encoder that looks up embeddings computed before."""

    def __init__(self, texts: Sequence[str], X: np.ndarray) -> None:
        self.row = {text: i for i, text in enumerate(texts)}
        self.X = X

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The rows of the texts."""
        return self.X[[self.row[text] for text in texts]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_options(parser)
    parser.set_defaults(corpora=["5.1", "5.2-ag", "5.2-yelp"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--out", default="cascade.json")
    parser.add_argument("--speed-only", action="store_true", help="keep the rows there are and time again")
    options = parser.parse_args()
    rows = json.loads((RESULTS / options.out).read_text())["rows"] if options.speed_only else []
    speed: list[dict[str, Any]] = []
    for name in options.corpora:
        corpus = load_corpus(name, data_folder(options.data))
        cells = [(seed, known) for seed in range(options.seeds) for known in KNOWN]
        for seed, known in [(0, KNOWN[-1])] if options.speed_only else cells:
            draw = few_labels(
                corpus, known, POLLUTION, seed, test=options.split, most_normals=ALL, most_tested=(ALL, ALL)
            )
            test = tested(draw)
            model = fitted(corpus, draw, test, seed)
            if not options.speed_only:
                rows += [
                    {"corpus": name, "seed": seed, "known": known, "split": options.split}
                    | measured(model, texts, rule)
                    for texts in [[corpus.texts[i] for i in test]]
                    for rule in ("max_false_alarms", "flag_rate")
                ]
                print(*rows[-2:], sep="\n", flush=True)
            if (seed, known) == (0, KNOWN[-1]):
                speed.append({"corpus": name, "known": known} | timed(model, [corpus.texts[i] for i in test][:TIMED]))
                print(speed[-1], flush=True)
            write_json(
                options.out,
                {
                    "what": "share of test texts sent to the transformer, recall of what the full model flags at 1 %, "
                    "texts a second, plain and by cascade",
                    "machine": machine("torch", "transformers", "tokenizers"),
                    "summary": summary(rows),
                    "speed": speed,
                    "rows": rows,
                },
            )


def tested(draw: FewLabels) -> np.ndarray:
    """All normals of the test split and 5 % of anomalies, half of them unseen where there are such."""
    n = round(TESTED * len(draw.test_normal))
    unseen = draw.test_unseen[: n // 2]
    return np.random.default_rng(0).permutation(np.r_[draw.test_normal, draw.test_seen[: n - len(unseen)], unseen])


def fitted(corpus: LabelledCorpus, draw: FewLabels, test: np.ndarray, seed: int) -> TextOutlierDetector:
    """A model with a cascade, whose transformer embeddings were computed before."""
    X = embed(corpus, [*draw.train.rows, *test], load_encoder("default", precision="full"))
    model = TextOutlierDetector(
        ByText(corpus.texts, X), cascade=load_encoder("fast"), keep_examples=0, random_state=seed
    )
    labels = ["anomaly" if y < 0 else None for y in draw.train.y]
    return model.fit([corpus.texts[i] for i in draw.train.rows], labels)


def measured(model: TextOutlierDetector, texts: list[str], rule: str) -> dict[str, Any]:
    """Share and recall of one rule on test texts."""
    wanted: dict[str, Any] = {rule: RATE}
    model.set_threshold(**wanted)
    scorer = CascadeScorer(model)
    full, found = model.score(texts), scorer.score(texts)
    if found.by_full is None:
        raise RuntimeError("a cascade says of every score whose it is")
    return {
        "rule": rule,
        "n": len(texts),
        "flagged": int(full.flagged.sum()),
        "caught": int((full.flagged & found.by_full).sum()),
        "share": round(float(found.by_full.mean()), 4),
        "expected_share": round(scorer.cut.share, 4),
        "held_out": scorer.cut.n_held_out,
    }


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recall over all flagged texts of all seeds, and the share sent: mean and spread."""
    out = []
    for key in dict.fromkeys((row["corpus"], row["known"], row["rule"]) for row in rows):
        cell = [row for row in rows if (row["corpus"], row["known"], row["rule"]) == key]
        flagged, shares = sum(row["flagged"] for row in cell), [row["share"] for row in cell]
        out.append(
            dict(zip(("corpus", "known", "rule"), key, strict=True))
            | {
                "flagged": flagged,
                "recall": round(sum(row["caught"] for row in cell) / max(flagged, 1), 4),
                "share": round(float(np.mean(shares)), 4),
                "share_deviation": round(float(np.std(shares)), 4),
            }
        )
    return out


def timed(model: TextOutlierDetector, texts: list[str]) -> dict[str, Any]:
    """Texts a second, plain and by cascade, in turn; the first pass of each only warms up."""
    kept, model.encoder_ = model.encoder_, load_encoder("default", cache=False)
    model.set_threshold(max_false_alarms=RATE)
    scorer = CascadeScorer(model)
    plain, cascade = [], []
    scorer.score(texts[:200])
    for _ in range(ROUNDS):
        plain.append(len(texts) / seconds(lambda: model.score(texts)))
        cascade.append(len(texts) / seconds(lambda: scorer.score(texts)))
    share = float(np.mean(scorer.score(texts).by_full))  # type: ignore[arg-type]
    model.encoder_ = kept
    return {
        "n": len(texts),
        "share": round(share, 4),
        "plain_per_second": [round(rate, 1) for rate in plain],
        "cascade_per_second": [round(rate, 1) for rate in cascade],
        "times_plain": round(median(c / p for c, p in zip(cascade, plain, strict=True)), 2),
    }


if __name__ == "__main__":
    main()
