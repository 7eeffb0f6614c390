"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from strays.detectors import DETECTORS

File = Annotated[
    str,
    typer.Argument(
        help="csv, tsv, jsonl, parquet or txt (one text per line), also .gz; - reads stdin.", metavar="FILE"
    ),
]
Model = Annotated[str, typer.Option("--model", help="Folder of the model.", metavar="DIR")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column with the texts. Default: the one named text, or the only one with texts.")
]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the labels: normal, anomaly, or empty.")]
Known = Annotated[str | None, typer.Option(help="File of texts known to be anomalies.", metavar="FILE")]
Format = Annotated[str | None, typer.Option(help="Format of FILE. Default: told by its name.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on rows without a text instead of passing them through.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[
    str | None, typer.Option(help="File to write all rows with their scores to; - writes to stdout.", metavar="PATH")
]
OutFormat = Annotated[str | None, typer.Option(help="Format of the output. Default: told by its name.")]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells", help="In csv and tsv, put an apostrophe before cells that a spreadsheet would run as formulas."
    ),
]
EncoderName = Annotated[
    str, typer.Option("--encoder", help="default, fast, bert, a Hugging Face id, or a folder; see strays encoders.")
]
KeepExamples = Annotated[
    int, typer.Option(help="Texts of each label to keep in the model for explanations; 0 keeps none.", min=0)
]
Revision = Annotated[str | None, typer.Option(help="Commit or tag of the encoder on the Hugging Face hub.")]
Pooling = Annotated[str | None, typer.Option(help="mean or cls. Default: the encoder's own setting.")]
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize", help="Scale embeddings to length 1. Default: the encoder's own setting."
    ),
]
MaxLength = Annotated[int | None, typer.Option(help="Truncate texts after this many tokens.")]
Precision = Annotated[
    str | None,
    typer.Option(help="full or int8. Default: int8 on a CPU, if its embeddings are close enough to the exact ones."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
DetectorName = Annotated[
    str,
    typer.Option("--detector", help=f"{', '.join(DETECTORS)}."),
]
Recall = Annotated[
    float | None,
    typer.Option(help="With --cascade: share of the rows the model would flag that must reach it.", metavar="R"),
]
Engine = Annotated[str, typer.Option(help="local (this process) or ray (a cluster).")]
Address = Annotated[
    str | None,
    typer.Option(
        help="With --engine ray: address of the cluster. Default: start one on this machine.", metavar="HOST:PORT"
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.", min=0)]
MaxFalseAlarms = Annotated[float | None, typer.Option(help="Flag at most this share of normal texts.", metavar="SHARE")]
MaxFalseShare = Annotated[
    float | None,
    typer.Option(help="Flag as many rows as possible with at most this share of them normal.", metavar="SHARE"),
]
FlagRate = Annotated[
    float | None, typer.Option(help="Flag this share of texts like those the model was fitted on.", metavar="SHARE")
]
