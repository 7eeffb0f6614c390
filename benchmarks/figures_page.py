"""docs/figures.md and the README's table of figures, from the results alone: `python -m benchmarks.figures_page`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from benchmarks import desk_page, no_labels_page, packages_page, published_page, tuning_page
from benchmarks.common import RESULTS, marked
from benchmarks.regret_cells import OWN, Cell, cells_of, read
from benchmarks.speed_page import REPO, results, table
from strays.studies.paper.printed import TABLES
from strays.studies.paper.registry import read_all

PAGE = REPO / "docs" / "figures.md"
README = REPO / "README.md"
CORPORA = {
    "5.1": "5.1, IMDB and WikiText strays",
    "5.2-ag": "5.2, AG news titles",
    "5.2-yelp": "5.2, Yelp reviews",
    "5.2-rct": "5.2, sentences of trial abstracts",
}
METHODS = {"auto": "`auto`", "auto, tuned": "`auto`, tuned", "logistic": "logistic regression"}
# Rows of the paper's table: study, our method, the paper's name for it, metric, and what the row is called.
PAPER_ROWS = [
    ("5.1", "ai-svdd", "AI-SVDD", "map", "5.1 (IMDB, WikiText strays): MAP of AI-SVDD"),
    ("5.1", "ai-svdd", "AI-SVDD", "auc", "5.1: AUC of AI-SVDD"),
    ("5.1", "centroid", "BERT-rank", "auc", "5.1: AUC of the distance to the centroid, which ignores labels"),
    ("5.2-ag", "ai-svdd", "AI-SVDD", "map", "5.2 (AG news titles): MAP of AI-SVDD"),
    ("5.2-ag", "ai-svdd", "AI-SVDD", "auc", "5.2: AUC of AI-SVDD"),
    ("5.2-ag", "centroid", "BERT-rank", "auc", "5.2: AUC of the distance to the centroid, which ignores labels"),
]


# ---- the default detector --------------------------------------------------------------------------------------------


@cache
def cells() -> list[Cell]:
    """The cells of the regret benchmark."""
    return cells_of(read(RESULTS / "regret"))


def regret(method: str, metric: str) -> list[float]:
    """By how many points a method is below the best single detector, cell by cell."""
    return [
        cell.values(metric)["auto"] + cell.regret(metric) - cell.values(metric)[method]
        for cell in cells()
        if method in cell.auc
    ]


def mean_and_worst(method: str) -> str:
    """The regret of a method in AUC points."""
    points = regret(method, "auc")
    return f"{fmean(points):.2f}, worst {max(points):.1f}"


def singles() -> list[str]:
    """The single detectors that every cell with known anomalies has."""
    return sorted(set.intersection(*(set(cell.auc) for cell in cells() if cell.known)) - set(OWN))


def quality(corpus: str, method: str, metric: str) -> str:
    """Mean (deviation) of a detector over the draws of a corpus of the paper, in percent; empty if not measured."""
    rows = results("auto_paper.json")["rows"]
    found = [row[metric] for row in rows if (row["corpus"], row["method"]) == (corpus, method)]
    return mean_and_deviation(found) if found else ""


def quality_table() -> str:
    """AUC and MAP of the default detector, with the encoder as it is and tuned, and of logistic regression."""
    pairs = [(method, metric) for method in METHODS for metric in ("auc", "map")]
    rows = [[name, *(quality(corpus, *pair) for pair in pairs)] for corpus, name in CORPORA.items()]
    head = [f"{metric} of {method}" for method in METHODS.values() for metric in ("AUC", "MAP")]
    return table(["", *head], rows)


def mean_and_deviation(values: list[float]) -> str:
    """As `92.9 (0.6)`, in percent."""
    percent = [100 * value for value in values]
    return f"{fmean(percent):.1f} ({pstdev(percent):.1f})"


# ---- false alarms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promises:
    """How the promised rates of false alarms were kept."""

    n: int
    above: int  # by more than two standard errors
    far_above: int  # by more than three
    polluted: float  # realised rate where 5 % were promised and 4 % of the texts were unlabelled anomalies
    sizes: tuple[int, int]  # fewest and most texts
    repeated: tuple[int, int]  # of the promises those with 30 % repeated texts, and how many of these were exceeded
    tuned: tuple[int, int]  # the same with a tuned encoder

    @property
    def by_chance(self) -> float:
        """How many of `n` exceed two standard errors by chance."""
        return 0.023 * self.n


def promises() -> Promises:
    """Counted from the rows of benchmarks.validity."""
    measured = list(map(json.loads, (RESULTS / "validity.jsonl").read_text().splitlines()))
    rows = [
        (row["case"], *promise)
        for row in measured
        for promise in zip(row["rates"], row["allowed"], row["realised"], row["error"], strict=True)
    ]
    clean = [(allowed, realised, error) for case, _, allowed, realised, error in rows if case != "polluted"]
    above, far_above = (sum(realised > allowed + n * error for allowed, realised, error in clean) for n in (2, 3))
    polluted = fmean(realised for case, rate, _, realised, _ in rows if case == "polluted" and rate == 0.05)
    sizes = min(row["n"] for row in measured), max(row["n"] for row in measured)

    def exceeded(of: str) -> tuple[int, int]:
        found = [realised > allowed + 2 * error for case, _, allowed, realised, error in rows if case == of]
        return len(found), sum(found)

    return Promises(len(clean), above, far_above, polluted, sizes, exceeded("repeated"), exceeded("tuned"))


def _of_tuned(kept: Promises) -> str:
    """How models with a tuned encoder kept their promises; nothing where none was measured."""
    n, exceeded = kept.tuned
    return f", and {n} about models with a tuned encoder, with {exceeded} exceeded" if n else ""


# ---- the paper -------------------------------------------------------------------------------------------------------


def paper_table() -> str:
    """AI-SVDD with strays' settings, and the figures the paper prints."""
    every = read_all(RESULTS / "paper")

    def ours(study: str, method: str, metric: str, pollution: float) -> str:
        key = {"encoder": "default", "method": method, "pollution": pollution}
        return mean_and_deviation([row[metric] for row in every[study] if key.items() <= row.items()])

    rows = [
        [
            name,
            *(ours(study, method, metric, p) for p in (0.0, 0.01, 0.08)),
            TABLES[study][printed][metric][-1].split()[0],
        ]
        for study, method, printed, metric, name in PAPER_ROWS
    ]
    return table(["known anomalies, share of the training normals", "0 %", "1 %", "8 %", "the paper at 8 %"], rows)


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    return f"{fmean(row[name] for row in rows):.0%}"


def _share_of_function_words(rows: list[dict[str, Any]], rule: str) -> float:
    n_marked = sum(int(row[rule]["marked"]) for row in rows)
    return sum(int(row[rule]["function_words"]) for row in rows) / max(1, n_marked)


# ---- the pages -------------------------------------------------------------------------------------------------------


def page() -> str:
    """What docs/figures.md should be."""
    kept, planted = promises(), results("planted.json")["rows"]
    auc, ap = regret("auto", "auc"), regret("auto", "ap")
    fit, ai_svdd = results("auto_speed.json"), results("fit_speed.json")
    *english, chinese = planted
    words = results("marked_words.json")["rows"]
    before, now, by_corpus = (_share_of_function_words(words, r) for r in ("before", "now", "now_by_corpus_alone"))
    desk, report = results("desk.json"), results("report.json")["page"]
    ratio = desk_page.ratio(desk_page.found_by(desk_page.rows()), "desk", "fixed")
    return f"""# What to expect

`make page` writes this page from the files in `benchmarks/results`. Each section names the command that makes its file
again; `make bench DATA=FOLDER` runs most of them. What was tried and did not help is in
[benchmarks/LOG.md](../benchmarks/LOG.md). The rows of `packages`, `auto_paper`, `planted`, `marked_words` and
`labelling` are of `auto` before it read the form of texts.

{packages_page.section()}
## Which detector?
The default, `auto`. A cell is a corpus, a number of known anomalies (0 to 300), clean or polluted training texts, and
kinds of anomalies that were seen or not. In each of {len(cells())} cells on eleven corpora we compared `auto` with the
best of {len(singles())} single detectors, which nobody knows beforehand. `auto` is {-fmean(auc):.2f} AUC points and
{-fmean(ap):.2f} points of average precision better on average, and {max(auc):.1f} AUC points worse in its worst cell
(`python -m benchmarks.regret`). Quality against the number of labels: [regret.md](regret.md).

With 8 % known anomalies, on the test splits of the paper's studies with the default encoder, mean (deviation) of 5
draws (`python -m benchmarks.auto_paper`):

{quality_table()}

{no_labels_page.section()}
{tuning_page.section()}
{published_page.section()}
## Are false alarms kept to the promised rate?
Of {kept.n} promised rates (0.1 to 10 %, {kept.sizes[0]} to {kept.sizes[1]:,} texts, eleven corpora) {kept.above} were
exceeded by more than two standard errors, where chance alone gives about {kept.by_chance:.0f}, and {kept.far_above} by
more than three. {kept.repeated[0]} of them are about piles in which 30 % of the texts are copies of others, with
{kept.repeated[1]} exceeded{_of_tuned(kept)}. With
4 % unlabelled anomalies among the texts, a promise of 5 % gave {100 * kept.polluted:.1f} % on average: fewer alarms,
not more (`python -m benchmarks.validity`).

## Does it find the words?
A foreign clause planted in an English text ranks first in {_mean(english, "found_first")} of the texts (mean of
{len(english)} pairs of corpora), and in {chinese["found_first"]:.0%} of Chinese texts. A clause is named as odd in
{_mean(english, "named")} of the English texts, and in {_mean(english, "named_rightly")} of these it is the planted one,
so that not every odd clause is named, but what is named can mostly be trusted. A clause is named in
{_mean(english, "named_in_normal")} of untouched normal texts. Of texts that are foreign as a whole,
{_mean(english, "odd_all_over")} are said to be odd all over (`python -m benchmarks.planted`).

Of the single words marked in texts of one clause, {before:.0%} were function words in version 0.1, and {now:.0%} are
now; {by_corpus:.0%} where only the normal texts tell which words are common, as in a language without a list
(`python -m benchmarks.marked_words`).

## Does reviewing pay?
On five corpora with 2 % anomalies, {desk_page.LAST} verdicts at the review desk found {ratio:.2f} times as many
anomalies as the first {desk_page.LAST} texts of a fixed ranking (`python -m benchmarks.labelling`). On
{desk["rows"]:,} texts the model learns from new verdicts in {desk["busy_refit_seconds"]["median"]:.1f} s on two cores
(`python -m benchmarks.desk`). Results by corpus: [review.md](review.md#figures).

A report of {report["rows"]:,} rows has {report["page_bytes"] / 1e6:.1f} MB and takes
{report["seconds_beyond_scoring"]:.0f} s in addition to scoring (`python -m benchmarks.report`).

## How fast is it?
Nearly all of the time goes into encoding; [speed.md](speed.md) has those figures. Fitting `auto` on 12,000 embeddings
takes {fit["ratio_median"]:.3f} of the time of PyOD {fit["machine"]["pyod"]}'s `LUNAR`
({fit["fit_seconds_median"]:.0f} s on two cores); it then scores {fit["scored_per_second_median"]:,.0f} embeddings a
second (`python -m benchmarks.auto_speed`). Fitting AI-SVDD takes {ai_svdd["ratio_median"]:.2f} of the time of PyOD's
`DeepSVDD` with the same layers, batches and epochs: the median of {len(ai_svdd["rounds"])} rounds on two cores
(`python -m benchmarks.fit_speed`).

## AI-SVDD and the paper
Test splits, default encoder, **our settings** (the defaults of `AISVDD`), mean (deviation) of 5 runs, each with its
own draw of anomalies and five trainings. The last column is what the paper prints for **its own settings and encoder**
(BERT-base-cased), on AG with three times as many training texts, so the two do not compare like with like.
[paper.md](paper.md) has all methods, corpora and encoders, also tuned by the paper's rule and with the numbers it
prints, and tests every statement of the paper that rows can test (`strays study`).

{paper_table()}
"""


def readme_rows() -> list[list[str]]:
    """The README's table: what was measured, strays, what it is compared with, and the benchmark."""
    encoding, gpu, big = results("encoding.json"), results("gpu.json"), results("big_file.json")["results"][-1]
    rates, fit = encoding["titles_per_second"], results("auto_speed.json")
    lunar = median(round_["lunar"] for round_ in fit["rounds"])
    kept, ratio = promises(), desk_page.ratio(desk_page.found_by(desk_page.rows()), "desk", "fixed")
    best = min(singles(), key=lambda method: fmean(regret(method, "auc")))
    st_gpu = max(gpu["sentence_transformers_by_batch_size"].values())
    st = max(rate for name, rate in rates.items() if name.startswith("sentence-transformers"))
    return [
        [
            "MAP, games among 20,000 package descriptions, ten known",
            packages_page.percent(packages_page.STORY, "ten", "map"),
            f"none known: {packages_page.percent(packages_page.STORY, 'none', 'map')}",
            "packages",
        ],
        [
            f"AUC points lost to the best of {len(singles())} detectors (-: gained)",
            mean_and_worst("auto"),
            f"`{best}`: {mean_and_worst(best)}",
            "regret",
        ],
        [
            f"false alarm rates exceeded by two standard errors, of {kept.n}",
            f"{kept.above}",
            f"by chance: {kept.by_chance:.0f}",
            "validity",
        ],
        [
            f"anomalies found in {desk_page.LAST} verdicts, five corpora",
            f"{ratio:.2f} times as many",
            "a fixed ranking",
            "labelling",
        ],
        [
            "titles encoded per second, two CPU cores",
            f"{rates['strays, as it comes']:,.0f}",
            f"sentence-transformers: {st:,.0f}",
            "encoding",
        ],
        [
            "the same with `--encoder fast`",
            f"{rates['fast, fresh titles']:,.0f}",
            f"model2vec: {rates['model2vec']:,.0f}",
            "encoding",
        ],
        [
            f"titles encoded per second, BERT-base, one {gpu['gpu']}",
            f"{gpu['titles_per_second']['encode']:,.0f}",
            f"sentence-transformers: {st_gpu:,.0f}",
            "gpu",
        ],
        [
            "fitting on 12,000 embeddings, two cores",
            f"{fit['fit_seconds_median']:.0f} s",
            f"PyOD's `LUNAR`: {lunar:.0f} s",
            "auto_speed",
        ],
        [
            f"`score` on {big['rows'] / 1e6:.0f} million rows, `fast`, two cores",
            f"{big['seconds'] / 60:.0f} min, {big['peak_memory_mb'] / 1000:.1f} GB",
            "",
            "big_file",
        ],
    ]


def with_figures(readme: str) -> str:
    """The README with the figures of its opening and its table of figures."""
    readme = marked(readme, "story", packages_page.story())
    return marked(readme, "figures", table(["", "strays", "compared with", "benchmark"], readme_rows()) + "\n")


def files() -> dict[Path, str]:
    """What the pages should be."""
    return {PAGE: page(), README: with_figures(README.read_text(encoding="utf-8"))}


def main() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
