"""Every single detector and `auto` on every corpus, with 0 to 300 known anomalies, clean and polluted: how much worse
than the best single method is `auto`?

    python -m benchmarks.regret --data DIR [--corpora NAME ...] [--seeds 3] [--encoder 5.3=FOLDER]
    python -m benchmarks.regret --page          docs/regret.md and its figures, from the rows alone

Appends to results/regret/CORPUS.jsonl; finished rows are skipped. A cell is a corpus, a number of known anomalies, a
share of unlabelled anomalies, and test anomalies of kinds seen or unseen; its value is the mean over the seeds. Regret
is the best single method's value less `auto`'s. Average precision is that of a test set with 5 % anomalies. `auto` is
what users get: it reads the form of the texts, too; single methods and "auto, form=False" see embeddings alone.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.common import RESULTS, add_corpus_options, encoders_of
from benchmarks.regret_cells import LEARN_FROM_LABELS, WITHOUT_FORM
from strays.detectors import DETECTORS, detector_class
from strays.encoders import load_encoder
from strays.errors import DataError, StraysWarning
from strays.model.fitting import read_form
from strays.model.form import COLUMNS
from strays.model.text_scorer import with_form
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.embeddings import embed
from strays.studies.protocol import FewLabels, few_labels
from strays.studies.rows import Row, RowFile

# (known anomalies, share of unlabelled anomalies among the training normals)
CELLS = [*((n, 0.0) for n in (0, 1, 5, 10, 50, 100, 300)), (0, 0.02), (0, 0.08), (10, 0.08), (100, 0.08)]
PREVALENCE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_options(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=[*DETECTORS, WITHOUT_FORM])
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--out", default=str(RESULTS / "regret"), type=Path)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        from benchmarks.regret_page import write

        write(options.out)
        return
    folder = data_folder(options.data)
    for name, encoder in encoders_of(parser, options).items():
        run(
            load_corpus(name, folder),
            encoder,
            options.methods,
            range(options.seeds),
            options.split,
            options.out,
        )


def run(corpus: LabelledCorpus, encoder: str, methods: list[str], seeds: range, split: str, out: Path) -> None:
    """Measure the methods on all cells of one corpus that have no rows yet."""
    file = RowFile(out / f"{corpus.name}.jsonl")
    done = {(row["seed"], row["known"], row["pollution"], row["method"]) for row in file.read()}
    drawn: dict[tuple[int, int, float], FewLabels] = {}
    for seed in seeds:
        for known, pollution in CELLS:
            try:
                drawn[seed, known, pollution] = few_labels(corpus, known, pollution, seed, test=split)
            except DataError as error:
                print(f"left out: {error}")
    loaded = load_encoder(encoder, precision="full")
    X = embed(corpus, {row for draw in drawn.values() for row in draw.rows}, loaded)
    for (seed, known, pollution), draw in drawn.items():
        for method in methods:
            if (seed, known, pollution, method) in done:
                continue
            # What no label changes is measured once, without labels.
            if known and method not in LEARN_FROM_LABELS:
                continue
            row: Row = {"corpus": corpus.name, "encoder": Path(encoder).name, "fingerprint": loaded.fingerprint[:12]}
            row |= {"method": method, "seed": seed, "known": known, "pollution": pollution, "split": split}
            file.append(row | measure(method, corpus.texts, X, draw, seed))
        print(corpus.name, seed, known, pollution, flush=True)


def measure(method: str, texts: list[str], X: np.ndarray, draw: FewLabels, seed: int) -> Row:
    """Fit one method on one draw and measure it on both kinds of test anomalies."""
    detector = detector_class("auto" if method == WITHOUT_FORM else method)()
    if "random_state" in detector.get_params():
        detector.set_params(random_state=seed)
    train, form = draw.train, None
    if method == "auto":
        detector.set_params(form_columns=len(COLUMNS))
        form = read_form([texts[i] for i in train.rows], X[train.rows], train.y)

    def seen(rows: np.ndarray) -> np.ndarray:
        return with_form(form, [texts[i] for i in rows], X[rows])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)
        detector.fit(seen(train.rows), train.y)
    normal = detector.anomaly_score(seen(draw.test_normal))
    result: Row = {"n": len(train.rows), "seen_kinds": len(draw.seen)}
    for kind, rows in (("seen", draw.test_seen), ("unseen", draw.test_unseen)):
        if len(rows):
            found = quality(normal, detector.anomaly_score(seen(rows)))
            result |= {f"{metric}_{kind}": value for metric, value in found}
    return result


def quality(normal: np.ndarray, anomaly: np.ndarray, prevalence: float = PREVALENCE) -> list[tuple[str, float]]:
    """AUC, and average precision as if 5 % of the rows, or another share of them, were anomalies."""
    score = np.r_[normal, anomaly]
    truth = np.r_[np.zeros(len(normal)), np.ones(len(anomaly))]
    weight = np.where(truth == 1, prevalence / len(anomaly), (1 - prevalence) / len(normal))
    ap = average_precision_score(truth, score, sample_weight=weight)
    return [("auc", round(float(roc_auc_score(truth, score)), 6)), ("ap", round(float(ap), 6))]


if __name__ == "__main__":
    main()
