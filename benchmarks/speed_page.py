"""docs/speed.md, from the results alone: `python -m benchmarks.speed_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS

REPO = Path(__file__).parents[1]
PAGE = REPO / "docs" / "speed.md"
BY_TRANSFORMER = (
    "sentence-transformers",
    "ONNX Runtime as fastembed runs it",
    "OpenVINO, two streams",
    "strays on PyTorch",
    "strays, full precision",
    "strays, as it comes",
)
STATIC = ("model2vec", "fast, loading included", "fast, fresh titles", "fast")
CORPORA = {"5.1": "5.1, sentences", "5.2-ag": "AG titles", "5.2-yelp": "Yelp reviews", "5.2-rct": "trial abstracts"}


def results(name: str) -> Any:
    return json.loads((RESULTS / name).read_text())


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def encoding_table() -> str:
    found = results("encoding.json")
    rates, ratio, cosine = (found[key] for key in ("titles_per_second", "ratio_to_sentence_transformers", "cosine"))
    best = max((name for name in rates if name.startswith("sentence")), key=lambda name: rates[name])
    rows = []
    for name in (*BY_TRANSFORMER, *STATIC):
        key = best if name == "sentence-transformers" else name
        if key in rates:
            close = f"{cosine[key]:.4f}" if key in cosine else ""
            rows.append([key, f"{rates[key]:,.0f}", f"{ratio[key]:,.2f}", close])
    limit = found["limit_of_float32_products"]
    rows.append(["*limit: float32 products alone*", f"{limit:,.0f}", f"{limit / rates[best]:.2f}", ""])
    return table(["way", "titles a second", "times sentence-transformers", "cosine with it"], rows)


def scoring_words() -> str:
    rates = results("encoding.json")["titles_per_second"]
    ours, theirs = rates["strays, text to score"], rates["PyOD EmbeddingOD, text to score"]
    return (
        f"Text in, score out, on the same titles: strays {ours:,.0f} a second, PyOD's `EmbeddingOD` {theirs:,.0f} "
        f"({ours / theirs:.1f} times)."
    )


def opening_words() -> str:
    found = results("opening.json")
    before, after = (found["int8"][version] for version in ("before", "after"))
    kept = {version: size / 1e6 for version, size in found["kept_bytes"].items()}
    return (
        f"Opening the int8 graph takes {after['seconds']:.2f} s of processor time and {after['peak_mb']:.0f} MB of "
        f"memory at its peak, and it takes {kept['after']:.0f} MB on the disk beside the weights. Before it was mapped "
        f"these were {before['seconds']:.2f} s, {before['peak_mb']:.0f} MB and {kept['before']:.0f} MB."
    )


def precision_table() -> str:
    rows = []
    for cell in results("precision.json")["summary"]:
        known = "all known" if cell["labels"] == "all" else "none known"
        alarms = cell["false_alarms"]
        rows.append(
            [
                f"{CORPORA[cell['corpus']]}, {known}",
                *(f"{cell[what][p]:.2f}" for what in ("auc", "map") for p in ("full", "int8")),
                *(f"{alarms[f'fitted on {a}, scoring {b}']:.2f}" for a, b in (("full", "full"), ("int8", "int8"))),
                f"{alarms['fitted on int8, scoring full']:.2f}",
            ]
        )
    header = ["cell", "AUC, full", "int8", "MAP, full", "int8", "false alarms, full", "int8", "int8, then full"]
    return table(header, rows)


def cascade_table() -> str:
    found = results("cascade.json")
    speed = {(row["corpus"], row["known"]): row for row in found["speed"]}
    rows = []
    for cell in found["summary"]:
        if cell["rule"] != "max_false_alarms":
            continue
        timed = speed.get((cell["corpus"], cell["known"]))
        rows.append(
            [
                f"{CORPORA[cell['corpus']]}, {cell['known']} known",
                f"{cell['share']:.1%} ({cell['share_deviation']:.1%})",
                f"{cell['recall']:.1%} of {cell['flagged']}",
                f"{timed['times_plain']:.1f}" if timed else "",
            ]
        )
    header = ["cell", "sent to the transformer", "of what the full model flags", "times plain scoring"]
    return table(header, rows)


def big_file_table() -> str:
    rows = [
        [
            f"{row['rows']:,}",
            f"{row['rows_per_second']:,.0f}",
            f"{row['microseconds_per_row']:.0f}",
            f"{row['last_over_first']:.2f}",
            f"{row['peak_memory_mb']:,} MB",
        ]
        for row in results("big_file.json")["results"]
    ]
    return table(["rows", "rows a second", "microseconds a row", "last tenth / first tenth", "peak memory"], rows)


def gpu_table() -> str:
    found = results("gpu.json")
    rates, peers = found["titles_per_second"], found["sentence_transformers_by_batch_size"]
    best = max(peers, key=lambda size: peers[size])
    rows = [
        [f"sentence-transformers, batches of {int(best):,}", f"{peers[best]:,.0f}"],
        ["strays, text to embedding", f"{rates['encode']:,.0f}"],
        ["strays, text to score", f"{rates['text_to_score']:,.0f}"],
        ["*tokenizing alone*", f"{rates['tokenizing_alone']:,.0f}"],
        ["*limit: bfloat16 products alone*", f"{found['physical_limit']:,.0f}"],
    ]
    return table(["way", "titles a second"], rows)


# Rows of results/startup.json, and what the page calls them.
START = {
    'python -c "pass"': '`python -c "pass"`',
    'python -c "import sklearn"': '`python -c "import sklearn"`',
    "strays --version": "`strays --version`",
    "strays --help": "`strays --help`",
    "strays scan": "`strays scan workshop.csv`",
    "strays scan, 5 known anomalies": "the same with 5 known anomalies (`--known`)",
    "strays score": "`strays score workshop.csv`",
    "strays explain": "`strays explain TEXT`",
    "strays scan, before": "*`strays scan` of version 0.1*",
    "encoding the 300 texts": "encoding the 300 texts, int8",
    "encoding the 300 texts, full precision": "encoding the 300 texts, full precision",
    "fastembed encoding the 300 texts": "*fastembed encoding the 300 texts*",
}


def startup_table() -> str:
    found = results("startup.json")["results"]
    rows = [
        [
            words,
            *(f"{found[name][key]:.2f} s" for key in ("seconds", "cpu_seconds")),
            f"{found[name]['peak_mb']:.0f} MB",
        ]
        for name, words in START.items()
        if name in found
    ]
    return table(["fresh process", "time", "processor time", "peak memory"], rows)


def startup_load() -> str:
    """What to make of the times where other processes had the cores meanwhile."""
    found = results("startup.json")
    load, cores = found["load"], found["machine"]["cores"]
    return (
        f" {load:.0f} processes shared the {cores} cores meanwhile: processor time tells more." if load > cores else ""
    )


def page() -> str:
    start = results("startup.json")
    encoding, big, gpu = results("encoding.json"), results("big_file.json"), results("gpu.json")
    kept, cores = encoding["from_cache"], encoding["machine"]["cores"]
    return f"""# How fast it is

Made from the files in `benchmarks/results` by `make page`; what was tried and did not help is in
[benchmarks/LOG.md](../benchmarks/LOG.md). Rates on these machines vary by some 20 % from run to run: ratios within a
run mean more.

## Start-up
Fresh processes on the example of 300 rows, {start["machine"]["cores"]} cores, medians of {start["rounds"]} rounds.
`scan` and `score` find its texts in the cache of embeddings, as in every run but the first; the last rows encode them.
Python and NumPy alone take {start["results"]['python -c "import numpy"']["seconds"]:.2f} s. fastembed runs the same
weights in float32 (mean cosine with strays at full precision {start["cosine"]:.4f}).{startup_load()}

{startup_table()}

## Encoding on a CPU
{encoding["titles"]:,} AG news titles of {encoding["tokens_per_title"]:.1f} tokens
({encoding["titles_of_static_encoders"]:,} for the static encoders), the same MiniLM weights, {cores} cores with
AVX-512, medians of {encoding["rounds"]} rounds in one run. `strays, as it comes` is
{encoding["as_it_comes"]}.

{encoding_table()}

int8 products can pass the limit of float32 ones. {scoring_words()}
A second run over the same {kept["texts"]:,} titles takes them from the cache: {kept["first_seconds"]:.2f} s, then
{kept["second_seconds"]:.2f} s ({kept["ratio"]:.0f} times as fast, loading included).
{opening_words()}

## What int8 costs
The default detector on the paper's test splits, five draws; false alarms in percent where 1 % were allowed, also for a
model fitted on int8 and scoring at full precision, as it does on a GPU.

{precision_table()}

## Cascade
Test splits, three draws, 98 % recall asked of what the full model flags at 1 %. The last column is of one draw, plain
scoring as it comes beside it in the same run.

{cascade_table()}

## Ten million rows
`strays score`, one parquet file of made-up titles to a folder of parts of {big["part_rows"]:,} rows, encoder
`{big["encoder"]}`, model fitted on {big["fitted_on"]:,} titles, two cores.

{big_file_table()}

## One GPU
{gpu["texts"]:,} made-up titles of {gpu["tokens_per_title"]:.1f} tokens, BERT-base (random weights), bfloat16,
{gpu["gpu"]}, {gpu["machine"]["cores"]} cores, sentence-transformers in the same run. Mean cosine with float32:
{gpu["agreement"]["titles"]["mean_cosine"]:.5f}.

{gpu_table()}
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
