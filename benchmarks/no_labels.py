"""Without labels: every class of every corpus in turn as the normal one, and as the odd one among all others, ranked by
meaning and form, by meaning alone, and by distance to the nearest normals.

    python -m benchmarks.no_labels --data DIR [--corpora FILE ...]
    python -m benchmarks.no_labels --data DIR --choose        the constants without labels, by leaving each corpus out

A cell is a class that is taken for normal, or all classes but one, and what is hidden among up to 1,000 of these texts,
on which the models are fitted: nothing, 2 % of all other kinds, 5 % of one other kind, twice, or 2 % damaged texts.
Fresh normals are ranked against fresh texts of all other kinds and against damaged normals, and the rows of the pile
against what is hidden in it. Only rows of the training and dev splits are read.

Appends to results/no_labels.jsonl; finished cells are skipped. `--choose` writes results/no_labels_choice.json: for
each corpus the constants that are best on all others, and what these give on it.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common import RESULTS, write_json
from benchmarks.regret import quality
from strays.detectors import AutoDetector, NearestNormals, form_part, mixture
from strays.encoders import load_encoder
from strays.model.fitting import read_form
from strays.model.form import COLUMNS
from strays.studies.corpora import data_folder
from strays.studies.rows import Row, RowFile
from strays.tables import open_table

CORPORA = (
    "ag_news_titles",
    "banking77",
    "bbc_news",
    "csabstruct",
    "email_spamassassin",
    "imdb_wiki_full",
    "imdb_wiki_short",
    "newsgroups20",
    "rct_pmc_sentences",
    "rt_polarity",
    "yelp_short",
)
# Of a class: texts in the pile, fresh ones, and fresh ones of other kinds; and the fewest that make a class.
PILE, FRESH, FEWEST_FRESH, FEWEST = 1000, 300, 100, 250
MIXED, OF_ONE_KIND, DAMAGED = 0.02, 0.05, 0.02
ALL_BUT = "all but "


def always(share: float) -> tuple[float, float]:
    """An AGREEMENT by which such a share is taken of what the second distance may count, however far they agree."""
    return -1e6, 1e6 / share - 1e6


# What --choose looks at, in which module; what is measured counts by these weights.
GRID: dict[str, tuple[ModuleType, tuple[Any, ...]]] = {
    "MOST_SECOND": (mixture, (0.5, 1.0)),
    "AGREEMENT": (mixture, (always(1e-6), always(0.5), always(1), (0.4, 0.8), (0.5, 0.7), (0.5, 0.9))),
    "RARITY": (form_part, (0.0, 0.5)),
    "TAIL": (form_part, (0.0, 0.4)),
    "MANY": (form_part, (0.001, 90.0)),
}
WEIGHTS = {"auc": 1.0, "ap": 0.25, "damaged": 0.125}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--corpora", nargs="*", default=CORPORA)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--out", default=RESULTS / "no_labels.jsonl", type=Path)
    options = parser.parse_args()
    folder = data_folder(options.data)
    if options.choose:
        choose(
            [
                measured
                for name in options.corpora
                for cell in cells_of(folder, name)
                for measured in with_constants(cell)
            ]
        )
        return
    file = RowFile(options.out)
    done = {row["corpus"] for row in file.read()}
    for name in options.corpora:
        if name not in done:
            for row in [row for cell in cells_of(folder, name) for row in measure(cell)]:
                file.append(row)
            print(name, flush=True)


# ---- the cells -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Texts with their embeddings."""

    texts: list[str]
    X: np.ndarray

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.texts + other.texts, np.vstack([self.X, other.X]))

    def take(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows([self.texts[i] for i in rows], self.X[rows])


@dataclass(frozen=True)
class Cell:
    """A pile of which some rows are hidden anomalies, fresh normals, and fresh anomalies by what they are."""

    corpus: str
    normal: str
    hidden: str
    pile: Rows
    is_hidden: np.ndarray
    fresh: Rows
    anomalies: dict[str, Rows] = field(default_factory=dict)


def cells_of(folder: Path, name: str) -> Iterator[Cell]:
    """Every class of a corpus as the normal one, and as the odd one, with everything that may be hidden."""
    encoder = load_encoder("default")
    table = open_table(str(folder / f"{name}.parquet")).read()
    texts, labels, split = (np.array(table.column(c).to_pylist(), dtype=object) for c in ("text", "label", "split"))
    label = np.array([coarse(name, of) for of in labels])
    key = np.array([int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) for text in texts])
    order = np.argsort(key)
    for normal, is_normal in tasks(name, label, split == "train"):
        kind_of = np.where(is_normal, normal, label)
        of = {
            part: {kind: order[(split == part)[order] & (kind_of == kind)[order]] for kind in np.unique(kind_of)}
            for part in ("train", "dev")
        }
        drawn = draw(name, normal, of)
        used = np.unique(np.concatenate(list(drawn.values())))
        used = used[np.argsort([len(texts[i]) for i in used], kind="stable")]
        X = np.concatenate([encoder.encode(list(texts[used[i : i + 1024]])) for i in range(0, len(used), 1024)])
        place = {int(row): i for i, row in enumerate(used)}
        rows = {what: Rows([str(texts[i]) for i in at], X[[place[int(i)] for i in at]]) for what, at in drawn.items()}
        rng = np.random.default_rng(0)
        damaged = [damage(text, rng, i) for i, text in enumerate(rows["fresh"].texts[: FRESH // 2])]
        spoilt = [
            damage(text, rng, 3 * i + 1)
            for i, text in enumerate(rows["pile"].texts[: max(3, round(DAMAGED * len(drawn["pile"])))])
        ]
        rows |= {"damaged": Rows(damaged, encoder.encode(damaged)), "2 % damaged": Rows(spoilt, encoder.encode(spoilt))}
        other = {"other kinds": rows["other kinds"]}
        for hidden in ["nothing", *(what for what in rows if "%" in what)]:
            pile = rows["pile"] if hidden == "nothing" else rows["pile"] + rows[hidden]
            mixed = np.random.default_rng(1).permutation(len(pile.texts))
            against = {"damaged": rows["damaged"]} if hidden == "2 % damaged" else other
            against = against | {"damaged": rows["damaged"]} if hidden == "nothing" else against
            yield Cell(
                name, str(normal), hidden, pile.take(mixed), mixed >= len(rows["pile"].texts), rows["fresh"], against
            )


def coarse(name: str, label: str) -> str:
    """The class of a row: intents by their first word, and the longer encyclopedia sentences with the others."""
    if name == "banking77":
        return label.partition("_")[0]
    return {"wiki_51_60": "wiki"}.get(label, label)


def tasks(name: str, label: np.ndarray, is_train: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """What is normal, in words and by row: classes that are large enough, and all classes but such a one.

    Of the twenty newsgroups every other one.
    """
    found, count = np.unique(label[is_train], return_counts=True)
    large = found[count >= FEWEST][:: 2 if name == "newsgroups20" else 1]
    for kind in large:
        yield str(kind), label == kind
    for kind in large if len(found) > 2 else ():
        yield f"{ALL_BUT}{kind}", label != kind


def draw(name: str, normal: str, of: dict[str, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Rows for the pile, of fresh normals, of other kinds, and to hide."""
    train, dev = of["train"], of["dev"]
    others = [kind for kind in train if kind != normal]
    pile, spare = np.split(train[normal], [min(PILE, len(train[normal]))])
    fresh = np.r_[dev[normal], spare][:FRESH]
    if len(fresh) < FEWEST_FRESH:
        pile, fresh = pile[: -FRESH // 2], np.r_[fresh, pile[-FRESH // 2 :]]
    other = evenly([dev[kind] for kind in others])[:FRESH]
    in_train = evenly([train[kind] for kind in others])
    if len(other) < FEWEST_FRESH:
        other = np.r_[other, in_train[-200:]]
    drawn = {"pile": pile, "fresh": fresh, "other kinds": other}
    drawn["2 % of all kinds"] = np.setdiff1d(in_train[:200], other)[: max(3, round(MIXED * len(pile)))]
    seed = int(hashlib.sha256(f"{name}{normal}".encode()).hexdigest()[:8], 16)
    for kind in np.random.default_rng(seed).permutation([kind for kind in others if len(train[kind]) >= 100])[:2]:
        drawn[f"5 % {kind}"] = np.setdiff1d(train[kind], other)[: round(OF_ONE_KIND * len(pile))]
    return drawn


def evenly(classes: Sequence[np.ndarray]) -> np.ndarray:
    """All rows, the first of every class, then the second, and so on."""
    longest = max(len(rows) for rows in classes)
    return np.array([rows[i] for i in range(longest) for rows in classes if i < len(rows)], dtype=int)


def damage(text: str, rng: np.random.Generator, how: int) -> str:
    """A text with its words shuffled, letters replaced, the end cut off, markup in it, all in capitals, in the wrong
    encoding, repeating itself, or with numbers for words.
    """
    words = text.split()
    match how % 8:
        case 0:
            rng.shuffle(words)
            return " ".join(words)
        case 1:
            return "".join(c if rng.random() > 0.15 else chr(97 + rng.integers(26)) for c in text)
        case 2:
            return text[: max(4, len(text) // 5)]
        case 3:
            return "".join(f"<p>{word}</p>" if rng.random() < 0.2 else f"{word} " for word in words)
        case 4:
            return text.upper() + "!!!"
        case 5:
            return text.encode("utf-8").decode("latin-1").replace(" ", "\u00a0") + " ï»¿Ã©"
        case 6:
            return " ".join((words[:3] or ["a"]) * (2 + len(words) // 3))
        case _:
            return " ".join(str(rng.integers(10**6)) if rng.random() < 0.4 else word for word in words)


# ---- measuring -------------------------------------------------------------------------------------------------------


def measure(cell: Cell) -> Iterator[Row]:
    """One row for each kind of anomaly that the cell tells from normals."""
    reader = read_form(cell.pile.texts, cell.pile.X, np.zeros(len(cell.pile.texts)))

    def with_form(rows: Rows) -> np.ndarray:
        return np.hstack([rows.X, reader.columns(rows.texts).astype(np.float32)])

    fitted = {
        "auto": (AutoDetector(form_columns=len(COLUMNS)).fit(with_form(cell.pile)), with_form),
        "meaning": (AutoDetector().fit(cell.pile.X), lambda rows: rows.X),
        "nearest": (NearestNormals().fit(cell.pile.X), lambda rows: rows.X),
    }
    sets = {what: (cell.fresh, rows) for what, rows in cell.anomalies.items()}
    if cell.is_hidden.any():
        sets["the pile"] = (
            cell.pile.take(np.flatnonzero(~cell.is_hidden)),
            cell.pile.take(np.flatnonzero(cell.is_hidden)),
        )
    for what, (normals, anomalies) in sets.items():
        row: Row = {"corpus": cell.corpus, "normal": cell.normal, "hidden": cell.hidden, "ranked": what}
        for method, (detector, seen) in fitted.items():
            found = quality(detector.anomaly_score(seen(normals)), detector.anomaly_score(seen(anomalies)))
            row |= {f"{metric}_{method}": value for metric, value in found}
        yield row


def is_damaged(row: Row) -> bool:
    """Whether a row is of damaged texts."""
    return "damaged" in (row["ranked"], row["hidden"][4:])


def by_corpus(rows: Sequence[Row], metric: str, *, damaged: bool) -> dict[str, float]:
    """The mean of a metric over the cells of each corpus, in percent."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if is_damaged(row) == damaged:
            values[row["corpus"]].append(100 * row[metric])
    return {corpus: float(np.mean(of)) for corpus, of in values.items()}


# ---- choosing --------------------------------------------------------------------------------------------------------


def with_constants(cell: Cell) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    """Every choice of the constants, and the rows it gives; copies are taken for what they are themselves."""
    reader = read_form(cell.pile.texts, cell.pile.X, np.zeros(len(cell.pile.texts)))
    detector = AutoDetector().fit(cell.pile.X)
    sets = {"fresh": cell.fresh, "the pile": cell.pile, **cell.anomalies}
    columns = {what: reader.columns(rows.texts).astype(np.float32) for what, rows in sets.items()}
    seen = {what: detector._standardised(detector._features(rows.X)) for what, rows in sets.items()}
    Z = (cell.pile.X - cell.pile.X.mean(axis=0)).astype(np.float64)
    part = form_part.FormPart.of(columns["the pile"])
    for values in itertools.product(*(of for _, of in GRID.values())):
        constants = dict(zip(GRID, values, strict=True))
        with ExitStack() as patched:
            for name, value in constants.items():
                patched.enter_context(patch.object(GRID[name][0], name, value))
            trust, weights = form_part.trust_in_form(Z), mixture.distances_alone(seen["the pile"])
            score = {what: seen[what] @ weights + trust * part.at(columns[what]) for what in sets}
        pairs = {what: (score["fresh"], score[what]) for what in cell.anomalies}
        if cell.is_hidden.any():
            pairs["the pile"] = score["the pile"][~cell.is_hidden], score["the pile"][cell.is_hidden]
        named = {"corpus": cell.corpus, "normal": cell.normal, "hidden": cell.hidden}
        yield constants, [named | {"ranked": what} | dict(quality(*pair)) for what, pair in pairs.items()]


def choose(measured: Sequence[tuple[dict[str, Any], list[Row]]]) -> None:
    """Write the best constants on all corpora but one, for each, and on all."""
    rows: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for constants, found in measured:
        rows[tuple(constants.values())] += found
    figures = {
        values: {
            "auc": by_corpus(of, "auc", damaged=False),
            "ap": by_corpus(of, "ap", damaged=False),
            "damaged": by_corpus(of, "auc", damaged=True),
        }
        for values, of in rows.items()
    }
    corpora = sorted(next(iter(figures.values()))["auc"])

    def best_on(some: Sequence[str]) -> tuple[Any, ...]:
        return max(figures, key=lambda v: sum(WEIGHTS[m] * np.mean([figures[v][m][c] for c in some]) for m in WEIGHTS))

    def entry(values: tuple[Any, ...], some: Sequence[str]) -> dict[str, Any]:
        return {
            "constants": dict(zip(GRID, values, strict=True)),
            **{metric: round(float(np.mean([figures[values][metric][c] for c in some])), 2) for metric in WEIGHTS},
        }

    left_out = {corpus: entry(best_on([c for c in corpora if c != corpus]), [corpus]) for corpus in corpora}
    now = tuple(getattr(module, name) for name, (module, _) in GRID.items())
    none = next(values for values in figures if values[:4] == (mixture.MOST_SECOND, mixture.AGREEMENT, 0.0, 0.0))
    mean = {metric: round(float(np.mean([of[metric] for of in left_out.values()])), 2) for metric in WEIGHTS}
    result = {
        "left_out": left_out,
        "left_out_mean": mean,
        "all": entry(best_on(corpora), corpora),
        "without_form": entry(none, corpora),
    }
    write_json("no_labels_choice.json", result | ({"chosen": entry(now, corpora)} if now in figures else {}))


if __name__ == "__main__":
    main()
