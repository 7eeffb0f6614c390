"""What the page shows of a snapshot, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strays.apps.review.estimate import NoEstimate, RemainingAnomalies
from strays.apps.review.questions import WHY
from strays.apps.review.snapshot import Snapshot
from strays.apps.review.store import Entry

SHOWN_CHARACTERS = 20_000
# Of what the file calls a row; the page shows less of it.
SHOWN_OF_ID = 1000
# The names that verdicts are counted under.
COUNTED = {"normal": "normal", "anomaly": "anomaly", "skipped": "skip"}


def state(now: Snapshot) -> dict[str, Any]:
    """How far the work is."""
    project, verdicts, ranking = now.project, now.verdicts, now.generation.ranking
    people = sorted(verdicts.n_by.items(), key=lambda item: -item[1])
    return {
        "file": project.settings.get("file"),
        "project": str(project.path),
        "n_texts": len(project),
        "n_rows": project.n_rows,
        "judged": {name: verdicts.n_judged.get(verdict, 0) for name, verdict in COUNTED.items()},
        "given": project.n_given,
        "found": int((verdicts.y < 0).sum()),
        "hidden": vars(now.remaining) if isinstance(now.remaining, RemainingAnomalies) else None,
        "no_estimate": now.remaining.why if isinstance(now.remaining, NoEstimate) else None,
        "generation": now.generation.number,
        "refitting": now.refitting,
        "trouble": now.trouble,
        "fresh": now.n_fresh,
        "every": project.every,
        "learnt": {
            "n_labels": ranking.n_labels,
            "seconds": round(ranking.seconds, 3),
            "says": ranking.model.detector_.describe(),
        },
        "threshold": str(ranking.model.threshold_),
        "n_flagged": int(ranking.flagged.sum()),
        "encoder": project.settings["encoder"]["name"],
        "detector": project.settings["detector"],
        "last_event": verdicts.history.last,
        "people": [{"who": who, "n": n} for who, n in people if n > 0],
        "n_open": int((verdicts.y == 0).sum()),
    }


def queue(now: Snapshot, asked: Mapping[int, str | None]) -> dict[str, Any]:
    """A client's next questions: places, and why each is asked about."""
    return {
        "generation": now.generation.number,
        "items": [item(now, place, why) for place, why in asked.items()],
        "left": int(now.verdicts.is_open.sum()) + len(now.verdicts.skipped),
    }


def item(now: Snapshot, place: int, why: str | None = None) -> dict[str, Any]:
    """A text and what is known of it."""
    entry, event, ranking = now.project.entries[place], now.verdicts.standing.get(place), now.generation.ranking
    kind = why or now.why(place)
    return {
        "id": now.project.ids[place],
        "text": entry.text[:SHOWN_CHARACTERS],
        "length": len(entry.text),
        "n_rows": entry.n_rows,
        "rows": list(entry.rows),
        "names": row_names(entry),
        "anomaly_score": float(ranking.anomaly_score[place]),
        "p_value": float(ranking.p_value[place]),
        "flagged": bool(ranking.flagged[place]),
        "rank": int(now.generation.rank[place]),
        "label": event.verdict if event else None,
        "given": entry.given,
        "why": {"kind": kind, "words": WHY.get(kind, kind)} if kind else None,
    }


def row_names(entry: Entry) -> list[str | None]:
    """What the file calls the first rows that have a text."""
    return [id_ and id_[:SHOWN_OF_ID] for id_ in entry.ids]
