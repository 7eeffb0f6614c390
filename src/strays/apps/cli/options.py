"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from strays.detectors import DETECTORS

File = Annotated[str, typer.Argument(help="csv, tsv, jsonl, parquet or txt (one text a line), also .gz; - is stdin.")]
Model = Annotated[str, typer.Option("--model", help="Folder of the model.", metavar="DIR")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column with the texts; found by itself where only one can be it.")
]
LabelColumn = Annotated[str | None, typer.Option(help="Column with the labels: normal, anomaly, or empty.")]
Known = Annotated[str | None, typer.Option(help="File of texts known to be anomalies.", metavar="FILE")]
Format = Annotated[str | None, typer.Option(help="Format of FILE, where its name does not tell it.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse rows without a text instead of passing them through.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Out = Annotated[
    str | None, typer.Option(help="File to write all rows and their scores to; - is stdout.", metavar="PATH")
]
OutFormat = Annotated[str | None, typer.Option(help="Format of the output, where its name does not tell it.")]
SafeCells = Annotated[
    bool, typer.Option("--safe-cells", help="In csv and tsv, disarm cells that a spreadsheet would run as formulas.")
]
EncoderName = Annotated[
    str, typer.Option("--encoder", help="default, fast, bert, a Hugging Face id, or a folder; see strays encoders.")
]
KeepExamples = Annotated[
    int, typer.Option(help="Texts of each kind to keep in the model, for explanations; 0 keeps none.", min=0)
]
Revision = Annotated[str | None, typer.Option(help="Commit or tag of the encoder on the hub.")]
Pooling = Annotated[str | None, typer.Option(help="mean or cls; what the encoder's files say where not given.")]
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize", help="Scale embeddings to length 1, or not; as the encoder's files say."
    ),
]
MaxLength = Annotated[int | None, typer.Option(help="Longest text in tokens; longer ones are cut.")]
Precision = Annotated[
    str | None, typer.Option(help="full or int8; int8 on a CPU where it is close enough to the exact embeddings.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, mps.")]
DetectorName = Annotated[
    str,
    typer.Option("--detector", help=f"{', '.join(DETECTORS)}."),
]
Recall = Annotated[
    float | None,
    typer.Option(help="With --cascade: the share of what the model would flag that it must get to see.", metavar="R"),
]
Engine = Annotated[str, typer.Option(help="Who scores: local, this process; or ray, a cluster.")]
Address = Annotated[
    str | None,
    typer.Option(help="With --engine ray: the cluster; one on this machine where not given.", metavar="HOST:PORT"),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
MaxFalseAlarms = Annotated[
    float | None, typer.Option(help="Flag so that at most this share of normal texts is flagged.", metavar="SHARE")
]
MaxFalseShare = Annotated[
    float | None,
    typer.Option(help="Flag as many rows as leave at most this share of the flagged ones normal.", metavar="SHARE"),
]
FlagRate = Annotated[
    float | None, typer.Option(help="Flag this share of texts like those the model was fitted on.", metavar="SHARE")
]
