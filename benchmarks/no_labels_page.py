"""The section of docs/figures.md on what the form of texts adds, from the rows of benchmarks.no_labels."""

from __future__ import annotations

from statistics import fmean

from benchmarks.common import RESULTS
from benchmarks.no_labels import ALL_BUT, by_corpus, is_damaged
from benchmarks.speed_page import results, table
from strays.studies.rows import Row, RowFile

METHODS = {"nearest": "nearest normals", "meaning": "`auto`, `form=False`", "auto": "`auto`"}


def section() -> str:
    """What is ranked better and worse, and what a corpus that had no part in choosing gets."""
    rows = RowFile(RESULTS / "no_labels.jsonl").read()
    choice = results("no_labels_choice.json")
    reverse = [row for row in rows if row["normal"].startswith(ALL_BUT)]
    straight = [row for row in rows if row not in reverse]
    lines = []
    for corpus in sorted({row["corpus"] for row in rows}):
        of = [row for row in straight if row["corpus"] == corpus]
        lines.append([corpus, *_figures(of)])
    lines.append(["mean of the corpora", *_figures(straight)])
    lines.append(["one class odd among all others", *_figures(reverse)])
    off_subject = [row for row in rows if not is_damaged(row)]
    n_classes, n_reverse = (len({(row["corpus"], row["normal"]) for row in of}) for of in (straight, reverse))
    head = ["corpus", *METHODS.values(), *METHODS.values(), "damaged: `form=False`", "`auto`"]
    return f"""## What does the form add?
Without labels, every class of eleven corpora in turn as the normal one, {n_classes} classes, and in the last line
{n_reverse} of them as the odd one among all others, in piles of up to 1,000 texts with nothing, 2 % of all other kinds
or 5 % of one other kind hidden among them. AUC of fresh texts of other kinds
and of what is hidden, in percent; then average precision (AP) at 5 % anomalies; then AUC of damaged texts of the normal
class itself: words shuffled, letters replaced, cut off, markup, capitals, wrong encoding, repetition, numbers
({len(off_subject)} and {len(rows) - len(off_subject)} rankings; `python -m benchmarks.no_labels`):

{table(head, lines)}

These rows also chose how much the form counts, and how much the distances beyond the nearest texts do. Chosen without
the corpus that is judged, each in turn, `auto` has {_three(choice["left_out_mean"])};
without form it has {_three(choice["without_form"])}. The price is average
precision where the other kinds are about another subject: a normal text of an odd form, such as a listing in a
newsgroup, may come before them. `form=False` avoids that. Scoring keeps {_speed("default")} of its speed with the
default encoder, and {_speed("fast")} with `fast` (`python -m benchmarks.form_speed`).
"""


def _speed(encoder: str) -> str:
    """The least share of the speed without form that is kept."""
    return f"{min(row['ratio'] for row in results('form_speed.json')['rows'] if row['encoder'] == encoder):.0%}"


def _three(figures: dict[str, float]) -> str:
    return f"{figures['auc']:.1f} AUC, {figures['ap']:.1f} AP and {figures['damaged']:.1f} on damaged texts"


def _figures(rows: list[Row]) -> list[str]:
    asked = [(metric, method, False) for metric in ("auc", "ap") for method in METHODS]
    asked += [("auc", method, True) for method in ("meaning", "auto")]
    means = [fmean(by_corpus(rows, f"{metric}_{method}", damaged=is_so).values()) for metric, method, is_so in asked]
    return [f"{value:.1f}" for value in means]
