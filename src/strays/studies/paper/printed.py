"""The figures the paper prints, in percent. printed.csv has its tables: mean (deviation) of its five runs."""

from __future__ import annotations

import csv
from pathlib import Path

METRICS = {"map": "MAP", "recall_at_5": "Recall@5", "auc": "AUC"}

# Section 5.1, in the text: false positive rate at 80 % true positive rate, p = 8 %.
FPR_AT_80_TPR = {"5.1": {"BERT-rank": 24, "OC-SVDD": 19, "AI-SVDD": 6}}

# Supplement, case study II: hypersphere size, and anomaly / normal ratio of mean squared distances, for each objective.
CASE_2 = {"eq1": (3.35, 2.0), "eq4": (0.94, 2.8), "ai-svdd": (0.96, 3.48)}


def _tables() -> dict[str, dict[str, dict[str, list[str]]]]:
    tables: dict[str, dict[str, dict[str, list[str]]]] = {}
    with Path(__file__).with_name("printed.csv").open(encoding="utf-8", newline="") as file:
        for study, method, metric, *figures in list(csv.reader(file))[1:]:
            tables.setdefault(study, {}).setdefault(method, {})[metric] = figures
    return tables


# Study -> method -> metric -> "mean (deviation)" for p = 0, 1, 2, 4 and 8 %; 5.3, which has no pollution, has one.
TABLES = _tables()
