"""What the pollution of the training set does to each method, from the lowest p to the highest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from strays.studies.paper import printed
from strays.studies.paper.evidence import Rows, figure
from strays.studies.paper.methods import METHODS
from strays.studies.paper.summary import TITLES, ResultTable, RowsByStudy, interval, values
from strays.studies.rows import Row


@dataclass(frozen=True)
class Trend:
    """How a method changes from p = 0 to the highest p, seed by seed: mean difference and its 95 % half width.

    >>> trend = Trend("5.1", "default", "lof", "auc", change=-0.021, half_width=0.004)
    >>> trend.verdict, str(trend)
    ('falls', '-2.10 ± 0.40')
    """

    study: str
    encoder: str
    method: str
    metric: str
    change: float
    half_width: float

    @property
    def verdict(self) -> str:
        """'rises' or 'falls' where the interval leaves out zero; of one run nothing can be said."""
        if self.half_width == float("inf"):
            return "one run"
        if abs(self.change) <= self.half_width:
            return "no clear change"
        return "rises" if self.change > 0 else "falls"

    def __str__(self) -> str:
        return f"{100 * self.change:+.2f} ± {100 * self.half_width:.2f}"


def trends(study: str, rows: list[Row], metric: str) -> list[Trend]:
    """The trend of every method and encoder that has rows at both ends."""
    found = []
    pollutions = [p for p in values(rows, "pollution") if p is not None]
    for encoder, method in product(values(rows, "encoder"), METHODS) if len(pollutions) > 1 else ():
        last, first = (figure(study, metric, method, p) for p in (pollutions[-1], pollutions[0]))
        if differences := (last - first).samples(Rows({study: rows}, {}, encoder)):
            found.append(Trend(study, encoder, method, metric, *interval(differences)))
    return found


def trend_table(compared: RowsByStudy) -> ResultTable:
    """What p does to each method and encoder, in our rows and in the paper's tables."""
    lines = []
    for study, rows in compared.items():
        for of_map, of_auc in zip(trends(study, rows, "map"), trends(study, rows, "auc"), strict=True):
            paper = printed.TABLES[study].get(METHODS[of_map.method].printed or "", {})
            line = [study, TITLES[of_map.method], of_map.encoder]
            for trend in (of_map, of_auc):
                ends = [float(cell.split()[0]) for cell in paper.get(trend.metric, [])]
                line += [str(trend), trend.verdict, f"{ends[-1] - ends[0]:+.1f}" if ends else ""]
            lines.append(line)
    header = ["study", "method", "encoder", "MAP", "", "paper's", "AUC", "", "paper's"]
    return ResultTable(
        "Change from the lowest to the highest p, in points, with its 95 % interval over runs", header, lines
    )
