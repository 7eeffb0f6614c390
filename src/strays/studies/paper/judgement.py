"""A statement judged by rows.

Both networks stand with the settings that the paper's rule of tuning found here. Where there are no such rows, they
stand with the settings that the paper prints, and the verdict says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from strays.studies.paper.evidence import AS_PRINTED, TUNED, Rows
from strays.studies.paper.parts import Finding, NotAll, Part, Statement
from strays.studies.paper.rules import FAILS, HOLDS, UNCLEAR
from strays.studies.paper.summary import RowsByStudy

# A statement with more parts than this is shown by counts.
SHOWN = 4


@dataclass(frozen=True)
class Judged:
    """What came out for a statement: a finding for each part, nothing where a part has no rows."""

    statement: Statement
    findings: Sequence[Finding | None]
    # Parts for which there are no tuned rows.
    fallen_back: int = 0

    @property
    def verdict(self) -> str:
        """Holds where every part does; fails where one is contrary by more than so many parts are by chance."""
        if all(finding and finding.verdict == HOLDS for finding in self.findings):
            return HOLDS
        contrary = any(finding.is_contrary(len(self.findings)) for finding in self.findings if finding)
        return FAILS if contrary else UNCLEAR

    @property
    def in_words(self) -> str:
        """The verdict, and whether the networks have the paper's settings for want of others."""
        if not self.fallen_back:
            return self.verdict
        return f"{self.verdict} ({'' if self.fallen_back == self.of_networks else 'partly '}paper's numbers)"

    @property
    def of_networks(self) -> int:
        """How many of the findings are about OC-SVDD or AI-SVDD, which have settings to tune."""
        return sum(finding.part.has_networks for finding in self.findings if finding)

    @property
    def figures(self) -> str:
        """The figures with their intervals; of many parts how many hold, and which do not."""
        if len(self.findings) <= SHOWN and all(finding.text for finding in self.findings if finding):
            return _listed(self.findings, self.statement.parts)
        count = Counter(finding.verdict if finding else "" for finding in self.findings)
        words = [
            f"of {len(self.findings)} parts {count[HOLDS] or 'none'} hold{'s' if count[HOLDS] < 2 else ''}",
            f"{count[FAILS]} do{'es' if count[FAILS] == 1 else ''} not ({self._contrary()})" if count[FAILS] else "",
            f"{count[UNCLEAR]} unclear" if count[UNCLEAR] else "",
            f"{count['']} without rows" if count[""] else "",
        ]
        return ", ".join(filter(None, words))

    def _contrary(self) -> str:
        """The parts that do not hold; of many how many in each group."""
        found = [finding.part for finding in self.findings if finding and finding.verdict == FAILS]
        if len(found) < SHOWN or not any(part.group for part in found):
            return "; ".join(part.label for part in found)
        return ", ".join(f"{group} {n}" for group, n in Counter(part.group for part in found).most_common())


class Readings:
    """The rows of one encoder, or of the first of each study, with tuned networks and with the paper's numbers."""

    def __init__(self, every: RowsByStudy, encoder: str | None = None) -> None:
        self.tuned, self.as_printed = Rows(every, TUNED, encoder), Rows(every, AS_PRINTED, encoder)

    def judge(self, statement: Statement) -> Judged | None:
        """Part by part, with tuned networks where there are rows of them; nothing where no part has rows."""
        tuned = [part.judge(self.tuned) for part in statement.parts]
        found = [one or part.judge(self.as_printed) for one, part in zip(tuned, statement.parts, strict=True)]
        fallen_back = sum(one is None and other is not None for one, other in zip(tuned, found, strict=True))
        return Judged(statement, found, fallen_back) if any(found) else None

    def judge_as_printed(self, statement: Statement) -> Judged | None:
        """With the settings that the paper prints."""
        found = [part.judge(self.as_printed) for part in statement.parts]
        return Judged(statement, found) if any(found) else None


def printed_figures(statement: Statement) -> str:
    """What the paper's own means say: its figures, or how many of many parts they bear out."""
    found = [finding for part in statement.parts if (finding := part.in_paper())]
    if len(found) < len(statement.parts):
        return ""
    if len(found) <= SHOWN and all(finding.text for finding in found):
        return _listed(found, statement.parts)
    return f"{sum(finding.verdict == HOLDS for finding in found)} of {len(found)}"


def _listed(findings: Sequence[Finding | None], parts: Sequence[Part | NotAll]) -> str:
    """Figures by name, without the words that end all names; a single figure has none."""
    names = [re.split(r" (?!%)", part.label) for part in parts]
    while all(names) and len({name[-1] for name in names}) == 1:
        names = [name[:-1] for name in names]
    figures = [finding.text if finding else "no rows" for finding in findings]
    return "; ".join(": ".join(filter(None, (" ".join(name), text))) for name, text in zip(names, figures, strict=True))
