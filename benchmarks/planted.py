"""Does an explanation find what does not belong? A foreign clause is planted in a normal text, and must come first.

    python -m benchmarks.planted --data DIR --chinese-encoder FOLDER [--texts 100]

Models are fitted on training normals of a corpus without labels. Into test normals of the same corpus goes, at a random
clause boundary, the first clause of a test text from elsewhere. The share of texts of whose highest-ranked segment more
than half lies in the planted clause is written to results/planted.json.
"""

from __future__ import annotations

import argparse
import re

import numpy as np

from benchmarks.common import write_json
from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.model.segments import split
from strays.studies.corpora import LabelledCorpus, data_folder, load_corpus

TRAINED = 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    parser.add_argument("--chinese-encoder", required=True)
    parser.add_argument("--texts", type=int, default=100)
    options = parser.parse_args()
    rows = []
    for home, away in (("5.2-yelp", "5.2-rct"), ("5.2-rct", "5.2-yelp"), ("5.2-yelp", "5.2-ag"), ("5.3", "5.3")):
        chinese = home == "5.3"
        encoder = load_encoder(options.chinese_encoder if chinese else "default", precision="full")
        corpus, other = (load_corpus(name, data_folder(options.data)) for name in (home, away))
        rng = np.random.default_rng(0)

        model = TextOutlierDetector(encoder, held_out=0.2).fit(draw(corpus, "train", True, rng)[:TRAINED])
        hosts = [t for t in draw(corpus, "test", True, rng) if (8 if chinese else 20) <= len(t) <= 300]
        guests = draw(other, "test", home != away, rng)
        guests = [g for g in map(first_clause, guests) if len(g) >= (6 if chinese else 15)]
        pairs = list(zip(hosts, guests, strict=False))[: options.texts]
        found = [top_is_planted(model, *plant(host, guest, rng, chinese)) for host, guest in pairs]
        row = {"host": home, "guest": away, "encoder": "m3e-small" if chinese else "default", "texts": len(found)}
        rows.append(row | {"found_first": float(np.mean(found))})
        print(rows[-1], flush=True)
    write_json("planted.json", {"trained_on": TRAINED, "rows": rows})


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


def top_is_planted(model: TextOutlierDetector, text: str, start: int, end: int) -> bool:
    """Whether most of the highest-ranked segment lies in text[start:end]."""
    segments = model.explain(text).segments
    if not segments:
        return False
    top = segments[0]
    inside = min(end, top.end) - max(start, top.start)
    return inside > (top.end - top.start) / 2


if __name__ == "__main__":
    main()
