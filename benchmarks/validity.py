"""Are there as few false alarms as promised? Models fitted on n texts, judged on normal texts they never saw.

    python -m benchmarks.validity --data DIR [--corpora NAME ...] [--sizes 60 ...] [--encoder 5.3=FOLDER]
    python -m benchmarks.validity --data DIR --tuned       with an encoder that has learnt from labels

For every corpus, n from 60 to 12,000, without labels, with 10 known anomalies, with 4 % of anomalies nobody has
labelled, and with 30 % of the texts copies of others: fit the whole model (`auto`, calibration and all) on several
draws, and count how many fresh normal texts have a p-value of at most 0.1, 1, 5 and 10 %. Where texts are repeated,
30 % of those judged are copies of texts the model was fitted on. With --tuned, the encoder learns from 100 known
anomalies beside 2,000 texts first. Appends to results/validity.jsonl; finished rows are skipped.

A promise of a with m held-out texts allows floor(a (m + 1)) / (m + 1). Each draw's rate varies by chance, like a beta
variable for the held-out texts and a binomial one for those judged; `error` is that deviation for the mean of draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS, add_corpus_options, encoders_of
from strays import TextOutlierDetector
from strays.encoders import Encoder, load_encoder
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.rows import RowFile

RATES = (0.001, 0.01, 0.05, 0.1)
# Texts to fit on, and how many draws.
SIZES = {60: 20, 200: 10, 600: 4, 2000: 2, 12_000: 2}
JUDGED = 3000
KNOWN, HIDDEN, REPEATED = 10, 0.04, 0.3
CASES = ("unlabelled", "known", "polluted", "repeated")
# Where tuning is used, so that it could spoil the p-values.
TUNED, TUNED_ON, TUNED_SIZE, TUNED_KNOWN = "tuned", ("csabstruct", "5.2-rct", "polarity"), 2000, 100


class Kept:
    """An encoder of the texts of one corpus, whose embeddings X were computed before; other rows are NaN."""

    def __init__(self, texts: Sequence[str], X: np.ndarray) -> None:
        self.X, self.row = X, {texts[row]: row for row in np.flatnonzero(~np.isnan(X[:, 0])).tolist()}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One row for each text."""
        return self.X[[self.row[text] for text in texts]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_options(parser)
    parser.add_argument("--sizes", type=int, nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--tuned", action="store_true", help="the case `tuned` alone; needs the extra torch")
    parser.add_argument("--out", default=RESULTS / "validity.jsonl", type=Path)
    options = parser.parse_args()
    if options.tuned:
        options.corpora = [name for name in TUNED_ON if name in options.corpora]
        options.sizes = [TUNED_SIZE]
    file = RowFile(options.out)
    done = {(row["corpus"], row["n"], row["case"]) for row in file.read()}
    for name, encoder in encoders_of(parser, options).items():
        corpus = load_corpus(name, data_folder(options.data))
        normals, anomalies = drawable(corpus)
        if options.tuned:
            used: Encoder = load_encoder(encoder)
        else:
            X = embed(corpus, [*normals, *anomalies], load_encoder(encoder, precision="full"))
            used = Kept(corpus.texts, X)
        for wanted, draws in ((n, SIZES[n]) for n in options.sizes):
            n = min(wanted, len(normals) - max(200, len(normals) // 5))
            for case in (TUNED,) if options.tuned else CASES:
                if (name, n, case) in done:
                    continue
                done.add((name, n, case))
                row = {"corpus": name, "encoder": Path(encoder).name, "n": n, "case": case, "draws": draws}
                file.append(row | realised(corpus.texts, used, normals, anomalies, n, case, draws))
                print(file.read()[-1], flush=True)


def drawable(corpus: LabelledCorpus, most: int = 16_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows of normals of all splits and of some anomalies, in an order that is random and the same everywhere."""
    rng = np.random.default_rng(0)
    normals = rng.permutation(np.flatnonzero(corpus.label == corpus.spec.normal))[:most]
    anomalies = rng.permutation(np.flatnonzero(np.isin(corpus.label, corpus.kinds)))[: round(HIDDEN * 12_000)]
    return normals, anomalies


def realised(
    texts: Sequence[str], encoder: Encoder, normals: np.ndarray, anomalies: np.ndarray, n: int, case: str, draws: int
) -> dict[str, object]:
    """The mean share of fresh normals at or below each rate, with what was allowed and the error of chance."""
    rates: list[list[float]] = []
    held_out: list[int] = []
    shares: list[float] = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        order = rng.permutation(normals)
        seen, fresh = order[:n], order[n : n + JUDGED]
        if case == "repeated":
            once = seen[round(REPEATED * n) :]
            seen = np.r_[once, rng.choice(once, n - len(once))]
            fresh = np.r_[fresh, rng.choice(once, round(REPEATED / (1 - REPEATED) * len(fresh)))]
        others = rng.permutation(anomalies)
        extra = {"known": KNOWN, "polluted": round(HIDDEN * n), TUNED: TUNED_KNOWN}.get(case, 0)
        rows = np.r_[seen, others[:extra]]
        labels = [None] * n + ["anomaly" if case in ("known", TUNED) else None] * extra
        model = TextOutlierDetector(encoder, keep_examples=0, tune=case == TUNED, random_state=seed)
        p = model.fit([texts[i] for i in rows], labels).p_value([texts[i] for i in fresh])
        rates.append([float((p <= rate + 1e-12).mean()) for rate in RATES])
        held_out.append(model.summary_.n_held_out)
        shares.append(model.tuning_.share if model.tuning_ else 0.0)
    judged, mean = len(fresh), np.mean(rates, axis=0).tolist()
    # Of each draw, as tuned models hold out fewer texts than others.
    m = np.array(held_out)[:, None]
    a = np.floor(np.array(RATES) * (m + 1) + 1e-9) / (m + 1)
    allowed = a.mean(axis=0).tolist()
    errors = np.sqrt((a * (1 - a) * (1 / (m + 2) + 1 / judged)).mean(axis=0) / draws).tolist()
    return {
        "held_out": held_out[-1],
        "judged": judged,
        "rates": list(RATES),
        "allowed": [round(a, 6) for a in allowed],
        "realised": [round(r, 6) for r in mean],
        "error": [round(e, 6) for e in errors],
        **({"shares": shares, "held_out": held_out} if case == TUNED else {}),
    }


if __name__ == "__main__":
    main()
