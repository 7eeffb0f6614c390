"""What people said, as a file: csv for spreadsheets, jsonl for machines; `strays fit` reads both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from strays.apps.review.snapshot import Snapshot
from strays.tables import complete_file, open_writer

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("label", pa.string()),
        ("anomaly_score", pa.float64()),
        ("p_value", pa.float64()),
        ("n_rows", pa.int64()),
        ("rows", pa.string()),
        ("ids", pa.string()),
        ("who", pa.string()),
        ("at", pa.string()),
    ]
)
ROWS_AT_ONCE = 2048


def write_labels(now: Snapshot, path: str, *, what: str, format: str) -> None:
    """Write the texts that people judged, or all, with their labels and present scores; jsonl is exact.

    In csv, cells that a spreadsheet would run are disarmed, and half characters become question marks.
    """
    rows = list(_rows(now, everything=what == "all"))
    schema = SCHEMA if now.project.has_ids else SCHEMA.remove(SCHEMA.get_field_index("ids"))
    if format == "jsonl":
        with complete_file(path) as file:
            file.writelines(_line(row) for row in rows)
        return
    with open_writer(path, schema, "csv", safe_cells=True) as write:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            cells = [_cells(row) for row in rows[start : start + ROWS_AT_ONCE]]
            write(pa.RecordBatch.from_pylist(cells, schema))


def _rows(now: Snapshot, everything: bool) -> Iterator[dict[str, Any]]:
    labels, ranking, entries = now.verdicts.labels, now.generation.ranking, now.project.entries
    judged = {place: event for place, event in now.verdicts.standing.items() if event.verdict != "skip"}
    for place in range(len(labels)) if everything else sorted(judged):
        event = judged.get(place)
        yield {
            "text": entries[place].text,
            "label": labels[place],
            "anomaly_score": float(ranking.anomaly_score[place]),
            "p_value": float(ranking.p_value[place]),
            "n_rows": entries[place].n_rows,
            "rows": list(entries[place].rows),
            **({"ids": list(entries[place].ids)} if now.project.has_ids else {}),
            "who": event.who if event else None,
            "at": event.at if event else None,
        }


def _line(row: dict[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half a character, which only an escape can hold
        return json.dumps(row).encode("ascii") + b"\n"


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    cells = row | {"rows": " ".join(map(str, row["rows"]))}
    if "ids" in row:
        cells["ids"] = "; ".join(id_ or "" for id_ in row["ids"])
    return {
        name: value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value
        for name, value in cells.items()
    }
