"""Ten examples find the rest: one section of Debian's packages hidden among the others, by their descriptions alone.

    python -m benchmarks.packages [--dump FILE] [--sections NAME ...] [--seeds 0 1 2] [--ways none ten desk half]
    python -m benchmarks.packages --write FOLDER

The texts are the one-line descriptions in apt's own lists, as `apt-cache dumpavail` prints them: --dump reads such a
file, else the command is run, and where there is none the benchmark says so and ends. No text is kept here.

A pile is 19,000 descriptions of other sections and 1,000 of one section, the strays, or all where it has fewer.
Descriptions that occur twice count once; those of several sections are omitted. Each seed draws another pile and
another ten strays that are known. Four ways through a pile:

    none   `strays scan`, as it comes
    ten    the same with the ten as `--known`
    desk   a person who starts with the ten judges 60 texts at the review desk; the section is the person
    half   the same with every other text of the pile; the others, which the desk never saw, are ranked before and after

MAP, AUC and the share of strays among the first 50 are, for the first two, of the rows that are not the ten. Beside
`half` stands what as many strays are worth that are known at random.

Writes results/packages.json; finished rows are skipped as long as the packages are the same. --write makes the pile of
the first section and seed as files, to repeat it by hand: packages.csv, and known.txt with the ten.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.common import RESULTS, write_json
from benchmarks.labelling import choose
from strays.apps.review.learner import Learner, Ranking
from strays.encoders import LoadedEncoder, load_encoder
from strays.jobs.metrics import auc, fpr_at_tpr, mean_average_precision
from strays.jobs.scan import scan_table
from strays.model.labels import WORD
from strays.studies.corpora import CorpusSpec, LabelledCorpus
from strays.studies.protocol import LabelledRows, pile
from strays.studies.rows import Row
from strays.tables import Table

SECTIONS = ("games", "science", "sound", "fonts", "gnome", "localization")
NORMALS, SHARE = 19_000, 0.05
KNOWN, FIRST, VERDICTS = 10, 50, 60
WAYS = ("none", "ten", "desk", "half")
RESULT = RESULTS / "packages.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", type=Path, help="what `apt-cache dumpavail` printed; else the command is run")
    parser.add_argument("--release", help="of the packages in --dump; else that of this machine")
    parser.add_argument("--sections", nargs="*", default=SECTIONS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write a pile and its ten known strays, and end")
    options = parser.parse_args()
    try:
        dump = options.dump.read_text(encoding="utf-8") if options.dump else from_apt()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"skipped: there is no list of packages ({error})")
        return
    sections = by_description(dump)
    if len(sections) < NORMALS + KNOWN:
        print(f"skipped: {len(sections):,} descriptions, expected {NORMALS:,} and more; run `apt-get update`")
        return
    if options.write:
        section, seed = options.sections[0], options.seeds[0]
        write(options.write, sections, *draw(sections, section, seed))
        return
    facts = {
        "release": options.release or release(),
        "packages": len(re.findall(r"^Package:", dump, re.MULTILINE)),
        "descriptions": len(sections),
        "known": KNOWN,
        "verdicts": VERDICTS,
    }
    encoder = load_encoder("default")
    for seed, section, way in product(options.seeds, options.sections, options.ways):
        rows = finished(facts)
        if (section, seed, way) not in {(row["section"], row["seed"], row["way"]) for row in rows}:
            texts, y = draw(sections, section, seed)
            drawn = {"section": section, "seed": seed, "way": way, "texts": len(y), "strays": int((y < 0).sum())}
            rows.append(drawn | measure(way, texts, y, encoder, seed))
            print(rows[-1], flush=True)
            write_json(RESULT.name, {"date": datetime.now(UTC).date().isoformat()} | facts | {"rows": rows})


def finished(facts: Row) -> list[Row]:
    """The rows measured so far, if they were measured on the same packages."""
    before = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    return before["rows"] if facts.items() <= before.items() else []


# ---- the texts -------------------------------------------------------------------------------------------------------


def from_apt() -> str:
    """All packages that apt knows of."""
    return subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True, encoding="utf-8").stdout


def release() -> str:
    """The name of this machine's system, such as 'Debian GNU/Linux 12 (bookworm)'."""
    found = re.search(r'^PRETTY_NAME="?(.*?)"?$', Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "unknown"


def by_description(dump: str) -> dict[str, str]:
    """The section of each one-line description; those of several sections are omitted."""
    pairs = set()
    for stanza in dump.split("\n\n"):
        fields = dict(re.findall(r"^(Section|Description): *(.*?) *$", stanza, re.MULTILINE))
        if fields.get("Description") and "Section" in fields:
            pairs.add((fields["Description"], fields["Section"].rpartition("/")[2]))  # "contrib/games" is games
    times = Counter(description for description, _ in pairs)
    return {description: section for description, section in sorted(pairs) if times[description] == 1}


def draw(sections: dict[str, str], strays: str, seed: int) -> tuple[list[str], np.ndarray]:
    """A pile in random order: its texts, and +1 (normal) or -1 (of the section `strays`) for each."""
    label = np.array(["stray" if section == strays else "normal" for section in sections.values()])
    split = np.full(len(label), "train")
    corpus = LabelledCorpus("packages", CorpusSpec("packages.csv", "normal"), [*sections], label, split)
    drawn: LabelledRows = pile(corpus, SHARE, seed, most_normals=NORMALS)
    return [corpus.texts[row] for row in drawn.rows], drawn.y


def known_rows(y: np.ndarray) -> np.ndarray:
    """The ten strays that the person knows of: the first in the random order of a pile."""
    return np.flatnonzero(y < 0)[:KNOWN]


def write(folder: Path, sections: dict[str, str], texts: list[str], y: np.ndarray) -> None:
    """A pile as packages.csv, and its ten known strays as known.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "packages.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "section"), *((text, sections[text]) for text in texts)])
    known = [texts[row] for row in known_rows(y)]
    (folder / "known.txt").write_text("\n".join(known) + "\n", encoding="utf-8")


# ---- what is measured ------------------------------------------------------------------------------------------------


def measure(way: str, texts: list[str], y: np.ndarray, encoder: LoadedEncoder, seed: int) -> Row:
    """One way through one pile."""
    if way == "desk":
        return at_desk(texts, y, encoder, seed)
    return at_half_a_desk(texts, y, encoder, seed) if way == "half" else ranked(texts, y, encoder, way == "ten")


def ranked(texts: list[str], y: np.ndarray, encoder: LoadedEncoder, ten_known: bool) -> Row:
    """How well a scan ranks the rows of a pile that are not the known ones, whether it was told of those or not."""
    known = known_rows(y)
    start = time.perf_counter()
    table = Table.of(pa.table({"description": texts}))
    scan = scan_table(table, encoder, "auto", known=[texts[row] for row in known] if ten_known else [])
    seconds = time.perf_counter() - start
    score, truth = (np.delete(values, known) for values in (scan.scores.anomaly_score, y))
    first = np.argsort(-score, kind="stable")[:FIRST]
    return {
        "map": round(mean_average_precision(truth, score), 4),
        "auc": round(auc(truth, score), 4),
        f"precision_at_{FIRST}": float(np.mean(truth[first] < 0)),
        "seconds": round(seconds, 1),
    }


def at_desk(texts: list[str], y: np.ndarray, encoder: LoadedEncoder, seed: int) -> Row:
    """How many more strays a person finds in VERDICTS verdicts who starts with the known ones.

    Also how well the rows unjudged in the end are ranked: with the known ones alone, and with all verdicts.
    """
    before, after, said = verdicts(Learner(texts, encoder.encode(texts), encoder, random_state=seed), y, seed)
    unjudged = said == 0
    row: Row = {"found": int((said < 0).sum()) - KNOWN}
    if (y[unjudged] < 0).any():
        for name, ranking in (("ten", before), ("verdicts", after)):
            row |= measures(f"unjudged_{name}", y[unjudged], ranking.anomaly_score[unjudged])
    return row


def at_half_a_desk(texts: list[str], y: np.ndarray, encoder: LoadedEncoder, seed: int) -> Row:
    """How well the other half is ranked: with the known ones alone, with all verdicts, with as many known at random."""
    X, here = encoder.encode(texts), np.arange(len(y)) % 2 == 0
    learner = Learner(texts[::2], X[here], encoder, random_state=seed)
    before, after, said = verdicts(learner, y[here], seed)
    n_known = int((said < 0).sum())
    at_random = np.zeros(len(said), dtype=int)
    at_random[np.flatnonzero(y[here] < 0)[:n_known]] = -1
    sample = learner.learn([WORD[int(label)] for label in at_random])
    row: Row = {"found": n_known - KNOWN}
    for name, ranking in (("ten", before), ("verdicts", after), ("sample", sample)):
        row |= measures(f"fresh_{name}", y[~here], ranking.model.detector_.anomaly_score(X[~here]))
    return row


def verdicts(learner: Learner, y: np.ndarray, seed: int) -> tuple[Ranking, Ranking, np.ndarray]:
    """A person at the desk: the ranking with the known strays, the one after VERDICTS verdicts, and all labels."""
    known = np.zeros(len(y), dtype=int)
    known[known_rows(y)] = -1
    said = known.copy()
    answers: list[tuple[str, bool]] = []
    first = ranking = learner.learn([WORD[int(label)] for label in said])
    while len(answers) < VERDICTS:
        for question in choose("desk", ranking, learner.X, said, answers, seed):
            said[question.place] = y[question.place]
            answers.append((question.why, bool(y[question.place] < 0)))
        ranking = learner.learn([WORD[int(label)] for label in said], said != known)
    return first, ranking, said


def measures(name: str, y: np.ndarray, scores: np.ndarray) -> Row:
    """MAP, AUC, and the share of normals above the 80 % of the strays that rank highest."""
    found = {"map": mean_average_precision(y, scores), "auc": auc(y, scores), "fpr80": fpr_at_tpr(y, scores)}
    return {f"{measure}_{name}": round(value, 4) for measure, value in found.items()}


if __name__ == "__main__":
    main()
