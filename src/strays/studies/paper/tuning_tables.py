"""Tables of the search for settings: who won, where the paper's choice stands, what the winners gain on test sets."""

from __future__ import annotations

from itertools import product
from statistics import median

from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import (
    TITLES,
    ResultTable,
    RowsByStudy,
    comparisons,
    of_kind,
    points,
    same_runs,
    share,
    values,
    where,
)
from strays.studies.paper.tuning import GRIDS, PARAMETERS, is_printed, ranked, ranked_once
from strays.studies.rows import Row

NETWORKS = {name: TITLES[name].partition(",")[0] for name in GRIDS}
# Settings of a grid that are shown from its top.
BEST = 3


def searched(every: RowsByStudy) -> ResultTable | None:
    """One line for each search of a grid: its winner and where the paper's choice stands, by dev AUC."""
    lines = []
    for corpus, rows in of_kind(every, "tuning").items():
        for encoder, method in product(values(rows, "encoder"), GRIDS):
            own = where(rows, encoder=encoder)
            once = ranked_once(own, method)
            if once:
                order = ranked(own, method)
                place = {setting_words(row): f"{i} of {len(once)}" for i, row in enumerate(once, 1)}
                papers = next((row for row in order if is_printed(row, corpus)), None)
                lines.append(
                    [
                        corpus,
                        encoder,
                        NETWORKS[method],
                        setting_words(order[0]),
                        _dev_auc(order[0]),
                        place[setting_words(order[0])],
                        place[setting_words(papers)] if papers else "",
                        _dev_auc(papers) if papers else "",
                        f"{100 * median(row['auc'] for row in once):.1f}",
                        f"{sum('collapsed' in row for row in once)} of {len(once)}",
                    ]
                )
    header = [
        *("study", "encoder", "network", "winner", "its dev AUC", "its place after one training"),
        *("place of the paper's choice after one training", "its dev AUC", "median dev AUC", "collapsed"),
    ]
    title = "Winners of the grids: hidden size / latent size / batch size, and weight decay"
    return ResultTable(title, header, lines) if lines else None


def _dev_auc(row: Row) -> str:
    """AUC of one training, or mean (deviation) of several."""
    deviation = f" ({100 * row['spread']['auc']:.1f})" if "spread" in row else ""
    return f"{100 * row['auc']:.1f}{deviation}"


def setting_words(settings: Row) -> str:
    """Sizes and weight decay in short.

    >>> setting_words({"hidden_size": 256, "latent_size": 32, "batch_size": 128, "weight_decay": 1.0})
    '256 / 32 / 128, 1'
    """
    decay = settings.get("weight_decay")
    sizes = " / ".join(f"{settings[name]:g}" for name in PARAMETERS if name != "weight_decay")
    return sizes if decay is None else f"{sizes}, {decay:g}"


def gained(every: RowsByStudy) -> ResultTable | None:
    """Test AUC of the tuned networks less that with the paper's numbers, run by run, at the lowest and highest p."""
    lines = []
    tuned = {name: method.grid for name, method in METHODS.items() if method.grid}
    for study, rows in comparisons(every).items():
        pollutions = values(rows, "pollution")
        ends = dict.fromkeys((pollutions[0], pollutions[-1]))
        for encoder, (name, grid), p in product(values(rows, "encoder"), tuned.items(), ends):
            own = where(rows, encoder=encoder, pollution=p)
            if pairs := same_runs(where(own, method=name), where(own, method=grid)):
                cells = [points([ours[metric] - theirs[metric] for ours, theirs in pairs]) for metric in ("auc", "map")]
                lines.append([study, encoder, NETWORKS[grid], "" if p is None else share(p), *cells])
    header = ["study", "encoder", "network", "p", "test AUC", "test MAP"]
    title = "Tuned here less the paper's numbers on the test sets, in points, with 95 % intervals over runs"
    return ResultTable(title, header, lines) if lines else None


def best_settings(corpus: str, rows: list[Row]) -> list[ResultTable]:
    """For each method the best settings on the dev set, and where the paper's choice stands."""
    tables = []
    for encoder, method in product(values(rows, "encoder"), GRIDS):
        settings = ranked(where(rows, encoder=encoder), method)
        if not settings:
            continue
        names = [name for name in PARAMETERS if any(row[name] is not None for row in settings)]
        papers = [i for i, row in enumerate(settings) if is_printed(row, corpus)]
        places = {*range(min(BEST, len(settings))), *papers, len(settings) // 2, len(settings) - 1}
        lines = [
            [
                f"{i + 1}" + (", the paper's choice" if i in papers else ""),
                *(f"{settings[i][name]:g}" for name in names),
                f"{settings[i].get('trainings', 1)}",
                f"{100 * settings[i]['auc']:.1f}",
                f"{100 * settings[i]['map']:.1f}",
            ]
            for i in sorted(places)
        ]
        header = ["place", *(name.replace("_", " ") for name in names), "trainings", "dev AUC", "dev MAP"]
        title = f"{corpus}, {NETWORKS[method]}: {len(settings)} settings, encoder {encoder}"
        tables.append(ResultTable(title, header, lines))
    return tables
