"""Which of the paper's statements hold in the rows: a table of verdicts."""

from __future__ import annotations

from strays.studies.paper.evidence import encoders_of
from strays.studies.paper.judgement import Readings, printed_figures
from strays.studies.paper.statements import STATEMENTS
from strays.studies.paper.summary import ResultTable, RowsByStudy, first_encoders


def verdicts(every: RowsByStudy) -> ResultTable:
    """Every statement that these rows can test, one a line."""
    first = Readings(every)
    others = {encoder: Readings(every, encoder) for encoder in sorted(set().union(*map(encoders_of, every.values())))}
    lines = []
    for statement in STATEMENTS:
        if judged := first.judge(statement):
            as_printed = first.judge_as_printed(statement) if statement.has_networks else None
            elsewhere = [
                f"{encoder}: {found.in_words}"
                for encoder, readings in others.items()
                if encoder not in first.tuned.encoders(statement.studies)
                and (found := readings.judge(statement))
                and all(found.findings)
            ]
            lines.append(
                [
                    statement.place,
                    statement.words,
                    judged.in_words,
                    judged.figures,
                    printed_figures(statement),
                    as_printed.verdict if as_printed else "",
                    "; ".join(elsewhere),
                ]
            )
    header = ["where", "the paper says", "verdict", "figures", "printed", "with the paper's numbers", "other encoders"]
    title = f"The paper's statements, with 95 % intervals over the runs; {first_encoders(every)}"
    return ResultTable(title, header, lines)
