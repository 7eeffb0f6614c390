"""How long the paper's studies take on this machine: a sample of each study's cells, timed and multiplied.

    python -m benchmarks.paper_time --data DIR --chinese ENCODER [--one-in 53] [--studies 5.1 tuning-5.1 ...]

Embeddings are taken from the cache where they are there: encoding is not counted. Cells of tuned methods need the rows
of the tuning, which are read from results/paper, and every study is timed with as many trainings as its rows there
have. Writes results/paper_time.json; studies that are not asked for keep
what it says of them.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial

from benchmarks.common import RESULTS, machine, seconds, write_json
from strays.encoders import load_encoder
from strays.studies.paper.registry import read_all, studies
from strays.studies.paper.study import Cell, Setting

# Cells are sampled from groups that agree in these fields.
ALIKE = ("method", "choice")
# The default of --one-in is a prime: it goes over every size of a grid, whose cells come in order.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--chinese", help="the encoder of 5.3")
    parser.add_argument("--one-in", type=int, default=53, help="of each method and choice, time one cell in so many")
    parser.add_argument("--studies", nargs="*", default=[name for name in studies() if not name.startswith("case-")])
    options = parser.parse_args()
    path = RESULTS / "paper_time.json"
    found = json.loads(path.read_text())["studies"] if path.exists() else {}
    for name in options.studies:
        study = studies()[name]
        encoder = load_encoder(options.chinese if study.corpora == ("5.3",) else "default", precision="full")
        rows = read_all(RESULTS / "paper")[name]
        parts = [part for row in rows for part in (row, *row.values()) if isinstance(part, dict)]
        trainings = max(part.get("trainings", 1) for part in parts)
        setting = Setting(RESULTS / "paper", options.data, encoder, trainings=trainings)
        compute = study.prepare(setting)()
        groups: dict[tuple[object, ...], list[Cell]] = {}
        for cell in study.cells(setting):
            groups.setdefault(tuple(cell.get(field) for field in ALIKE), []).append(cell)
        total = 0.0
        for cells in groups.values():
            timed = cells[:: min(options.one_in, len(cells))]
            total += len(cells) * sum(seconds(partial(compute, cell)) for cell in timed) / len(timed)
        found[name] = {"rows": len(study.cells(setting)), "seconds": round(total)}
        print(name, found[name], f"load {os.getloadavg()[0]:.1f}", flush=True)
        write_json(
            path.name,
            {
                "what": "seconds to compute all rows of a study with one encoder, without encoding, from a sample",
                "machine": machine("numpy"),
                "studies": {name: found[name] for name in studies() if name in found},
            },
        )


if __name__ == "__main__":
    main()
