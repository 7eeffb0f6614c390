"""docs/repeats.md from the rows of benchmarks.repeats."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.common import RESULTS
from benchmarks.repeats import COPIES, POLLUTIONS
from strays.studies.rows import RowFile

PAGE = Path(__file__).parent.parent / "docs" / "repeats.md"
HEAD = """# Repeated texts

A stray that is repeated, a spam campaign or a pasted template, has its copies as nearest neighbours. A detector that
takes them for company calls it the most normal text of the pile. strays counts equal texts once, and represents a small
group of nearly equal ones by one of them. [How](../src/strays/detectors/copies.py).

The line is a twentieth of the pile: a text, or a group of nearly equal texts, that makes up 5 % of the rows or more
(and at least 6 rows) is a class of normal texts, such as form letters or greetings. So is a group of which you labelled
a text normal. "Nearly equal" is as the encoder sees it: nearer to each other than nearly all texts of the pile are to
any other.

`python -m benchmarks.repeats --data DIR` measures it without labels on ten corpora, in {rows} runs; means over the
seeds, then over the corpora. AUC in percent; every copy is a row.

It has a price. Normal texts that have few others like them, such as mails of one list, no longer vouch for each other
either. The last table shows what that costs.
"""


def write(rows_at: Path) -> None:
    """Write the page."""
    PAGE.write_text(page(rows_at))


def page(rows_at: Path) -> str:
    """The page, from the rows alone."""
    rows = RowFile(rows_at).read()
    found: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        for name, value in row.items():
            if name.startswith(("exact", "paraphrased", "letters", "hidden")):
                found[row["method"], row["version"]][row["corpus"]][name].append(float(value))
    mean = {
        who: {corpus: {name: float(np.mean(v)) for name, v in values.items()} for corpus, values in by_corpus.items()}
        for who, by_corpus in sorted(found.items(), reverse=True)
    }
    parts = [HEAD.format(rows=len(rows))]
    for kind in ("exact", "paraphrased"):
        words = "as they are" if kind == "exact" else "cut, reordered, one word changed"
        parts += [f"## Strays repeated: {words}\n", _table(mean, [f"{kind}_{n}" for n in COPIES], "copies")]
    parts += [
        "## Hidden anomalies of one kind\nA share of unlabelled anomalies of half of the kinds in the training pile; "
        "fresh normals against fresh anomalies of\nthose kinds.\n",
        _table(mean, [f"hidden_{share:g}" for share in POLLUTIONS], "share"),
        "## Normal texts that are alike\nSingle strays, and one normal text repeated until it is 6 % of the pile.\n",
        _table(mean, ["letters_exact", "letters_paraphrased"], "letters"),
        "## By corpus\n`auto`, this version less the one before it, in AUC points.\n",
        _by_corpus(mean),
        _speed(),
    ]
    return "\n".join(parts)


def _speed() -> str:
    measured = json.loads((RESULTS / "repeats_speed.json").read_text())
    now, before = (measured["seconds"]["repeated"][version]["cpu"] for version in ("now", "before"))
    return (
        f"## Speed\nFitting on {measured['rows']:,} titles, half of them repeats, and ranking them all, with the "
        f"encoder `fast`,\ntakes {now:.0f} s of processor time, {now / before:.2f} times what 0.1 takes, because equal "
        "texts are encoded once\n(`python -m benchmarks.repeats_speed`).\n"
    )


Means = dict[tuple[str, str], dict[str, dict[str, float]]]


def _table(mean: Means, names: list[str], what: str) -> str:
    heads = [name.partition("_")[2] for name in names]
    lines = [f"| {what} | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    for (method, version), corpora in mean.items():
        values = [np.mean([of[name] for of in corpora.values() if name in of]) for name in names]
        lines.append(f"| `{method}`, {version} | {' | '.join(f'{value:.1f}' for value in values)} |")
    return "\n".join(lines) + "\n"


def _by_corpus(mean: Means) -> str:
    names = ["paraphrased_1", "paraphrased_20", *(f"hidden_{share:g}" for share in POLLUTIONS), "letters_paraphrased"]
    now, before = [of for (method, _), of in mean.items() if method == "auto"][:2]
    lines = [f"| corpus | {' | '.join(name.replace('_', ' ') for name in names)} |", "| --- " * (len(names) + 1) + "|"]
    for corpus in sorted(now):
        cells = [
            now[corpus][n] - before[corpus][n] if n in now[corpus] and n in before[corpus] else None for n in names
        ]
        lines.append(f"| {corpus} | {' | '.join('' if cell is None else f'{cell:+.1f}' for cell in cells)} |")
    return "\n".join(lines) + "\n"
