"""Does a stray that is repeated stay a stray? And do normal texts that are alike stay normal?

    python -m benchmarks.repeats --data DIR [--corpora NAME ...] [--seeds 0 1 2] [--methods auto nearest]
    python -m benchmarks.repeats --page            docs/repeats.md, from the rows alone

Without labels, on rows of the test splits, ranked as `scan` ranks a file:

    exact, paraphrased   600 to 2,000 normals, and strays of all kinds, 1 % of them, each 1 to 20 times: as it is, or
                         cut, reordered and with one word changed in turn
    hidden               0, 2 and 8 % of anomalies of half of the kinds among 3,000 training normals; fresh normals
                         against fresh anomalies of those kinds
    letters              single strays, and a normal text repeated until it is 6 % of the pile, as it is or paraphrased

Where the test split has fewer than 600 normals, some of the training split join them. AUC counts every copy as a row.
Appends to results/repeats.jsonl; finished rows are skipped. To compare versions, run this with another one's `src` on
the path and name it with --version.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import strays
from benchmarks.common import RESULTS, add_corpus_options, encoders_of
from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.errors import DataError, StraysWarning
from strays.jobs.metrics import auc
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.protocol import few_labels
from strays.studies.rows import Row, RowFile

COPIES = (1, 2, 3, 5, 10, 20)
POLLUTIONS = (0.0, 0.02, 0.08)
STRAYS, LETTERS, FEWEST_NORMALS = 0.01, 0.06, 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_options(parser)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="*", default=["auto", "nearest"])
    parser.add_argument("--version", default=strays.__version__)
    parser.add_argument("--out", default=RESULTS / "repeats.jsonl", type=Path)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        from benchmarks.repeats_page import write

        write(options.out)
        return
    warnings.simplefilter("ignore", StraysWarning)
    file = RowFile(options.out)
    done = {(row["version"], row["corpus"], row["seed"], row["method"]) for row in file.read()}
    for seed in options.seeds:
        for name, encoder in encoders_of(parser, options).items():
            for method in options.methods:
                if (options.version, name, seed, method) in done:
                    continue
                bench = Bench(load_corpus(name, data_folder(options.data)), encoder, method, seed)
                row: Row = {"version": options.version, "corpus": name, "seed": seed, "method": method}
                file.append(row | dict(bench.measure()))
                print(file.read()[-1], flush=True)


class Bench:
    """One corpus, one draw, one method."""

    def __init__(self, corpus: LabelledCorpus, encoder: str, method: str, seed: int) -> None:
        self.corpus, self.method, self.seed = corpus, method, seed
        self.encoder = load_encoder(encoder, precision="full")

    def measure(self) -> Iterator[tuple[str, object]]:
        """Every figure with its name."""
        rng = np.random.default_rng(self.seed)
        draw = few_labels(self.corpus, 0, 0.0, self.seed)
        presumed = draw.train.rows[: max(0, FEWEST_NORMALS - len(draw.test_normal))]
        normals = [self.corpus.texts[row] for row in [*draw.test_normal, *presumed]]
        others = np.array([*zip(draw.test_seen, draw.test_unseen, strict=False)] or draw.test_seen, dtype=int).ravel()
        strays_ = [self.corpus.texts[row] for row in others[: max(3, round(STRAYS * len(normals)))]]
        words = sorted({word for text in [*strays_, *normals[:300]] for word in text.split()})
        variants = [[text, *paraphrases(text, max(COPIES) - 1, words, rng)] for text in strays_]
        yield "n_normals", len(normals)
        yield "n_strays", len(strays_)
        for copies in COPIES:
            yield f"exact_{copies}", self.auc(normals, [text for text in strays_ for _ in range(copies)])
            yield f"paraphrased_{copies}", self.auc(normals, [text for of in variants for text in of[:copies]])
        n_letters = round(LETTERS / (1 - LETTERS) * len(normals))
        letters = [normals[0], *paraphrases(normals[0], n_letters - 1, words, rng)]
        yield "letters_exact", self.auc([*normals, *[normals[0]] * n_letters], strays_)
        yield "letters_paraphrased", self.auc([*normals, *letters], strays_)
        for pollution in POLLUTIONS:
            try:
                yield f"hidden_{pollution:g}", self.hidden(pollution)
            except DataError as error:
                print(f"omitted: {error}")

    def auc(self, normals: list[str], anomalies: list[str]) -> float:
        """Of a pile, ranked by a model fitted on it."""
        scores = self.fitted([*normals, *anomalies]).training_scores_
        return percent(scores[: len(normals)], scores[len(normals) :])

    def hidden(self, pollution: float) -> float:
        """Of fresh rows, ranked by a model fitted on a pile with a share of anomalies in it."""
        draw = few_labels(self.corpus, 0, pollution, self.seed)
        model = self.fitted([self.corpus.texts[row] for row in draw.train.rows])
        fresh = [
            model.anomaly_score([self.corpus.texts[i] for i in rows]) for rows in (draw.test_normal, draw.test_seen)
        ]
        return percent(*fresh)

    def fitted(self, texts: list[str]) -> TextOutlierDetector:
        """A model as `scan` fits it, but with a share held out once, which is faster than in turns."""
        model = TextOutlierDetector(self.encoder, self.method, held_out=0.05, keep_examples=0, random_state=self.seed)
        return model.fit(texts)


def percent(normals: np.ndarray, anomalies: np.ndarray) -> float:
    y = np.r_[np.ones(len(normals), dtype=int), -np.ones(len(anomalies), dtype=int)]
    return round(100 * auc(y, np.r_[normals, anomalies]), 3)


def paraphrases(text: str, n: int, words: list[str], rng: np.random.Generator) -> list[str]:
    """Variants of a text: without a tenth to a third of its words at one end, turned round, with one word changed."""
    out = []
    for i in range(n):
        parts = text.split()
        if len(parts) < 3 or i % 3 == 2:
            parts[rng.integers(len(parts))] = words[rng.integers(len(words))]
        elif i % 3 == 0:
            cut = max(1, int(len(parts) * rng.uniform(0.1, 0.34)))
            parts = parts[cut:] if rng.random() < 0.5 else parts[:-cut]
        else:
            turn = int(rng.integers(1, len(parts)))
            parts = parts[turn:] + parts[:turn]
        out.append(" ".join(parts))
    return out


if __name__ == "__main__":
    main()
