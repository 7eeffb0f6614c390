"""Seven published data sets by the split of MCA2 (arXiv 2601.17786, Table 1): with no anomaly known, and with ten.

    python -m benchmarks.published --data DIR

`RandomState(seed)` shuffles the normal texts, of which the first 70 % are trained on; the others and all anomalies are
ranked, for the seeds 41 to 45. With ten known, these are the first ten anomalies that the same generator shuffles, and
they are not ranked. DIR has the folder `published`; it is for reporting, and nothing is chosen on it.

Appends to results/published.jsonl, each row with the version and commit it was made by; finished cells of this version
and commit are skipped.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS
from strays import TextOutlierDetector, __version__
from strays.detectors import NearestNormals
from strays.encoders import load_encoder
from strays.jobs.metrics import auc
from strays.studies.corpora import data_folder
from strays.studies.rows import Row, RowFile
from strays.tables import open_table

# Our files, and what the paper's table calls them.
SETS = {
    "nlpadbench_bbc": "BBC",
    "tad_email_spam": "Email",
    "tad_smsspam": "SMS",
    "tad_olid": "OLID",
    "tad_hate_speech": "Hate",
    "tad_covid_fake": "COVID",
    "tad_liar2": "LIAR2",
}
SEEDS, TRAIN_SHARE, KNOWN = range(41, 46), 0.7, (0, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--out", default=RESULTS / "published.jsonl", type=Path)
    options = parser.parse_args()
    made_by = f"{__version__} {commit()}"
    file = RowFile(options.out)
    done = {(row["set"], row["seed"], row["known"]) for row in file.read() if row["made_by"] == made_by}
    encoder = load_encoder("default")
    for name in SETS:
        table = open_table(str(data_folder(options.data) / "published" / f"{name}.parquet")).read()
        texts, label = table.column("text").to_pylist(), np.array(table.column("label").to_pylist())
        X = encoder.encode(texts)
        for seed in SEEDS:
            for known in KNOWN:
                if (name, seed, known) not in done:
                    row = measured(texts, X, label == "anomaly", seed, known)
                    file.append({"set": name, "seed": seed, "known": known, "made_by": made_by} | row)
        print(name, flush=True)


def measured(texts: list[str], X: np.ndarray, is_anomaly: np.ndarray, seed: int, known: int) -> Row:
    """AUCs of one split: of a model, and of the distance to the nearest normals, which learns from no label."""
    rng = np.random.RandomState(seed)
    normals, anomalies = np.flatnonzero(~is_anomaly), np.flatnonzero(is_anomaly)
    rng.shuffle(normals)
    rng.shuffle(anomalies)
    n = int(TRAIN_SHARE * len(normals))
    train, test = np.r_[normals[:n], anomalies[:known]], np.r_[normals[n:], anomalies[known:]]
    mixed = np.random.default_rng(seed).permutation(len(train))
    train, y = train[mixed], np.where(is_anomaly[test], -1, 1)
    labels = ["anomaly" if is_anomaly[i] else None for i in train]
    model = TextOutlierDetector(load_encoder("default"), random_state=seed)
    model.fit([texts[i] for i in train], labels, embeddings=X[train])
    scores = {"auto": model.anomaly_score([texts[i] for i in test], embeddings=X[test])}
    if not known:
        plain = TextOutlierDetector(load_encoder("default"), form=False, random_state=seed)
        plain.fit([texts[i] for i in train], embeddings=X[train])
        scores["auto, form=False"] = plain.anomaly_score([texts[i] for i in test], embeddings=X[test])
        scores["nearest"] = NearestNormals().fit(X[train]).anomaly_score(X[test])
    return {"n": len(train), "tested": len(test)} | {name: round(auc(y, score), 6) for name, score in scores.items()}


def commit() -> str:
    """The commit of the code that is run, marked if there are changes."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


if __name__ == "__main__":
    main()
