"""Does an explanation find what does not belong? A foreign clause is planted in a normal text, and must come first.

    python -m benchmarks.planted --data DIR [--chinese-encoder FOLDER] [--texts 60] [--split test]

Models are fitted on training normals of a corpus without labels. Into normals of the same corpus goes, at a random
clause boundary, the first clause of a text from elsewhere. The same normals untouched, and texts from elsewhere whole,
are explained too. Written to results/planted.json for each pair of corpora (all texts cut to 300 characters):

    found_first       planted texts of whose highest-ranked segment more than half lies in the planted clause
    named             planted texts of which a clause is named as odd alone
    named_rightly     of these, those of which the planted clause, and no other, is named
    named_in_normal   untouched normal texts of which a clause is named
    named_in_foreign  foreign texts of two clauses and more of which a clause is named
    odd_all_over      foreign texts that are said to be odd all over

Choose on --split dev, which writes nothing. Without a Chinese encoder the earlier row of that corpus stays.
"""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, write_json
from strays import TextOutlierDetector
from strays.encoders import Encoder, load_encoder
from strays.model.explanation import OddPart, Segment
from strays.model.segments import has_clauses, split
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus

TRAINED, LONGEST = 1500, 300
PAIRS = (
    ("5.2-yelp", "5.2-rct"),
    ("5.2-rct", "5.2-yelp"),
    ("5.2-yelp", "5.2-ag"),
    ("banking", "5.2-yelp"),
    ("polarity", "5.2-rct"),
    ("newsgroups", "newsgroups"),
    ("5.3", "5.3"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--chinese-encoder")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--split", choices=("dev", "test"), default="test")
    options = parser.parse_args()
    rows = []
    for home, away in PAIRS:
        chinese = home == "5.3"
        if chinese and not options.chinese_encoder:
            rows += [row for row in json.loads((RESULTS / "planted.json").read_text())["rows"] if row["host"] == "5.3"]
            continue
        encoder = load_encoder(options.chinese_encoder, precision="full") if chinese else load_encoder("default")
        corpus, other = (load_corpus(name, data_folder(options.data)) for name in (home, away))
        row = {"host": home, "guest": away, "encoder": "m3e-small" if chinese else "default"}
        rows.append(row | measure(encoder, corpus, other, options.split, options.texts, chinese))
        print(rows[-1], flush=True)
    if options.split == "test":
        write_json("planted.json", {"trained_on": TRAINED, "rows": rows})


def measure(
    encoder: Encoder, corpus: LabelledCorpus, other: LabelledCorpus, part: str, n: int, chinese: bool
) -> dict[str, Any]:
    """The figures of one pair of corpora."""
    rng = np.random.default_rng(0)
    model = TextOutlierDetector(encoder, held_out=0.2).fit(draw(corpus, "train", True, rng)[:TRAINED])
    hosts = [text[:LONGEST] for text in draw(corpus, part, True, rng) if len(text) >= (8 if chinese else 20)]
    elsewhere = draw(other, part, corpus.spec != other.spec, rng)
    guests = [guest for guest in map(first_clause, elsewhere) if (6 if chinese else 15) <= len(guest) <= LONGEST / 2]
    planted = [plant(host, guest, rng, chinese) for host, guest in list(zip(hosts, guests, strict=False))[:n]]
    explained = model.explain_many([text for text, _, _ in planted])
    normal = model.explain_many(hosts[n : 3 * n])
    foreign = model.explain_many([text[:LONGEST] for text in elsewhere[-n:]])
    named = [(e, start, end) for e, (_, start, end) in zip(explained, planted, strict=True) if e.odd_parts]
    rightly = [all(_mostly_in(part, start, end) for part in e.odd_parts) for e, start, end in named]
    several = [e for e in foreign if has_clauses(e.text)]
    first = [
        bool(e.segments) and _mostly_in(e.segments[0], start, end)
        for e, (_, start, end) in zip(explained, planted, strict=True)
    ]
    return {
        "texts": len(planted),
        "found_first": _share(first),
        "named": len(named) / len(planted),
        "named_rightly": _share(rightly),
        "normal_texts": len(normal),
        "named_in_normal": _share([bool(e.odd_parts) for e in normal]),
        "foreign_texts": len(foreign),
        "foreign_with_clauses": len(several),
        "named_in_foreign": _share([bool(e.odd_parts) for e in several]),
        "odd_all_over": _share([e.odd_all_over for e in foreign]),
    }


def draw(corpus: LabelledCorpus, part: str, normal: bool, rng: np.random.Generator) -> list[str]:
    """The normal, or the anomalous, texts of a split in random order."""
    kinds = [corpus.spec.normal] if normal else corpus.kinds
    rows = np.flatnonzero((corpus.split == part) & np.isin(corpus.label, kinds))
    return [corpus.texts[i] for i in rng.permutation(rows)]


def first_clause(text: str) -> str:
    """What stands before the first mark."""
    return re.split(r"[.,;:!?\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]", text.strip())[0].strip()


def plant(host: str, guest: str, rng: np.random.Generator, chinese: bool) -> tuple[str, int, int]:
    """The host with the guest at a random boundary of its clauses, and where the guest is."""
    spans = split(host)
    clauses = [0, *(b for _, b in spans if not host[b - 1].isalnum()), len(host)]
    at = int(rng.choice(clauses))
    before, after = host[:at].rstrip(), host[at:].lstrip()
    mark, space = ("\uff0c", "") if chinese else (",", " ")
    if before and before[-1].isalnum():
        before += mark
    start = len(before) + len(space) * bool(before)
    text = f"{before}{space if before else ''}{guest}{mark}{space}{after}" if after else f"{before}{space}{guest}"
    return text, start, start + len(guest)


def _mostly_in(segment: Segment | OddPart, start: int, end: int) -> bool:
    """Whether more than half of a segment lies in text[start:end]."""
    return min(end, segment.end) - max(start, segment.start) > (segment.end - segment.start) / 2


def _share(found: list[bool]) -> float | None:
    return float(np.mean(found)) if found else None


if __name__ == "__main__":
    main()
