"""What tuning the encoder gains: models with and without `tune`, on the same texts, labels and fresh texts.

    python -m benchmarks.tuning --data DIR [--corpora NAME ...] [--known 30 100 300] [--seeds 3]
    python -m benchmarks.tuning --data DIR --choose         other ways to tune, on dev splits

A cell is a corpus, a number of known anomalies beside 3,000 presumed normal texts, and a seed. Known are half of the
kinds of anomalies, equally often, and fresh ones of these and of the others are ranked among fresh normals; or, with
300 known, all kinds as they come (`kinds` is "all"); with 100, once more with 8 % of the presumed normal texts hidden
anomalies of the same kinds (`pollution`). Average precision is that of a test set with 5 % anomalies, `ap20`
with 20 %. Appends to results/tuning.jsonl, or with --choose to results/tuning_choice.jsonl; finished cells are skipped.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common import RESULTS, add_corpus_options, encoders_of, seconds
from benchmarks.regret import quality
from strays import TextOutlierDetector
from strays.detectors import AutoDetector
from strays.encoders import load_encoder
from strays.encoders.transformer import TransformerEncoder
from strays.errors import DataError, StraysWarning
from strays.model.fitting import hold_out, read_form
from strays.model.form import COLUMNS
from strays.model.text_scorer import with_form
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus
from strays.studies.protocol import FewLabels, few_labels
from strays.studies.rows import Row, RowFile

KNOWN = (30, 100, 300)
# The share of hidden anomalies, and the number of known ones that it is tried with.
HIDDEN, WITH_HIDDEN = 0.08, 100
# What --choose tries: constants of tuning, tuning_steps and trainable_bert that differ from those in use. The older
# ways all take 120 steps, whatever is known.
ALWAYS_120 = {"STEPS_OF_ONE": 120}
CHOICES: dict[str, dict[str, Any]] = {
    "in use": {},
    "40 steps": {"STEPS_OF_ONE": 40, "MOST_STEPS": 40},
    "120 steps": ALWAYS_120,
    "without contrastive": ALWAYS_120 | {"OBJECTIVE": ("cross-entropy", "hypersphere")},
    "cross-entropy and contrastive": ALWAYS_120 | {"OBJECTIVE": ("cross-entropy", "contrastive")},
    "cross-entropy": ALWAYS_120 | {"OBJECTIVE": ("cross-entropy",)},
    "bc-loss": ALWAYS_120 | {"OBJECTIVE": ("bc-loss",)},
    "a third of the rate": ALWAYS_120 | {"RATE": 5e-4},
    "two thirds fixed, without contrastive": ALWAYS_120
    | {"OBJECTIVE": ("cross-entropy", "hypersphere"), "FIXED": 2 / 3},
}
# How many texts it looks at: presumed normal ones, and fresh ones of each label.
TO_CHOOSE: dict[str, Any] = {"most_normals": 1500, "most_tested": (500, 250)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_corpus_options(parser)
    parser.add_argument("--known", type=int, nargs="*", default=KNOWN)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--out", type=Path, help="another file for the rows")
    options = parser.parse_args()
    file = RowFile(options.out or RESULTS / ("tuning_choice.jsonl" if options.choose else "tuning.jsonl"))
    for name, encoder in encoders_of(parser, options).items():
        run(load_corpus(name, data_folder(options.data)), encoder, file, options.known, options.seeds, options.choose)


def run(
    corpus: LabelledCorpus, encoder: str, file: RowFile, known: Sequence[int], seeds: int, choose: bool = False
) -> None:
    """Measure all cells of one corpus that have no rows yet."""
    done = {(row["corpus"], row["kinds"], row["known"], row["pollution"], row["seed"]) for row in file.read()}
    split = "dev" if choose else "test"
    for seed in range(seeds):
        hidden = [(n, "half", HIDDEN) for n in known if n == WITH_HIDDEN and not choose]
        for n, kinds, pollution in [(max(known), "all", 0.0), *((n, "half", 0.0) for n in known), *hidden]:
            if (corpus.name, kinds, n, pollution, seed) in done or (kinds == "all" and len(corpus.kinds) == 1):
                continue
            try:
                sizes = TO_CHOOSE if choose else {}
                draw = few_labels(corpus, n, pollution, seed, test=split, all_kinds=kinds == "all", **sizes)
            except DataError as error:
                print(f"left out: {error}")
                continue
            cell: Row = {"corpus": corpus.name, "kinds": kinds, "known": n, "pollution": pollution, "seed": seed}
            cell["split"] = split
            for row in (other_ways if choose else measured)(corpus, draw, encoder, seed):
                file.append(cell | row)
            print(cell, flush=True)


def measured(corpus: LabelledCorpus, draw: FewLabels, encoder: str, seed: int) -> Iterator[Row]:
    """What fresh texts get from a model without and with tuning, and how long its fit takes."""
    texts = [corpus.texts[i] for i in draw.train.rows]
    labels = ["anomaly" if y < 0 else None for y in draw.train.y]
    row: Row = {}
    for name, tune in (("plain", False), ("tuned", True)):
        model = TextOutlierDetector(load_encoder(encoder), tune=tune, random_state=seed)
        row[f"seconds_{name}"] = round(seconds(lambda model=model: model.fit(texts, labels)), 1)  # type: ignore[misc]

        def score(rows: np.ndarray, model: TextOutlierDetector = model) -> np.ndarray:
            return model.anomaly_score([corpus.texts[i] for i in rows])

        row |= {f"{metric}_{name}": value for metric, value in qualities(draw, score).items()}
        if model.tuning_:
            row |= {"share": model.tuning_.share, "judged": [model.tuning_.auc, model.tuning_.auc_tuned]}
    yield row


def qualities(draw: FewLabels, score: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
    """AUC and average precision of fresh anomalies of kinds seen and unseen among fresh normals."""
    normal = score(draw.test_normal)
    found: dict[str, float] = {}
    for kind, rows in (("seen", draw.test_seen), ("unseen", draw.test_unseen)):
        if len(rows):
            anomaly = score(rows)
            found |= {f"{metric}_{kind}": value for metric, value in quality(normal, anomaly)}
            found[f"ap20_{kind}"] = dict(quality(normal, anomaly, 0.2))["ap"]
    return found


# ---- other ways to tune ----------------------------------------------------------------------------------------------


def other_ways(corpus: LabelledCorpus, draw: FewLabels, encoder: str, seed: int) -> Iterator[Row]:
    """A row for each way to tune and each share of it, and one without, all learnt from the same texts."""
    from strays.encoders import trainable_bert
    from strays.model import tuning, tuning_steps

    loaded = load_encoder(encoder)
    assert isinstance(loaded, TransformerEncoder)
    y, rest = draw.train.y, np.setdiff1d(np.arange(len(draw.train.y)), hold_out(draw.train.y, None, seed))
    rows = np.r_[draw.train.rows[rest], draw.test_normal, draw.test_seen, draw.test_unseen]
    texts, y = [corpus.texts[i] for i in rows], y[rest]
    at = {int(row): i for i, row in enumerate(rows)}
    ids = [tuning._cut(of_text) for of_text in loaded.token_ids(texts)]
    X = np.concatenate([loaded.encode(texts[i : i + 2048]) for i in range(0, len(texts), 2048)])
    form = with_form(read_form(texts[: len(y)], X[: len(y)], y), texts, X)[:, X.shape[1] :]
    normal, known = np.flatnonzero(y >= 0)[: tuning.MOST_NORMAL], np.flatnonzero(y < 0)

    def ranked(X: np.ndarray) -> dict[str, float]:
        rows = np.hstack([X, form])
        detector = AutoDetector(form_columns=len(COLUMNS)).fit(rows[: len(y)], y)
        score = detector.anomaly_score(rows[len(y) :])
        return qualities(draw, lambda asked: score[[at[int(i)] - len(y) for i in asked]])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StraysWarning)
        yield {"way": "none", "share": 0.0} | ranked(X)
        for way, constants in CHOICES.items():
            with ExitStack() as patched:
                for constant, value in constants.items():
                    module = next(m for m in (tuning, tuning_steps, trainable_bert) if hasattr(m, constant))
                    patched.enter_context(patch.object(module, constant, value))
                bert = loaded.trainable()
                states = bert.lower(ids)
                steps, half_batch = tuning.steps_for(len(known)), tuning.HALF_BATCH
                tuning_steps.tune(bert, states, normal, known, steps=steps, half_batch=half_batch, seed=seed)
                for share in tuning.SHARES:
                    yield {"way": way, "share": share} | ranked(bert.embedded(states, share))


if __name__ == "__main__":
    main()
