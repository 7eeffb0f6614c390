"""Files in, the same rows with their scores out, in order, however large the files are."""

from strays.jobs.score.engine import Engine
from strays.jobs.score.files import score_files
from strays.jobs.score.progress import OpenProgress, RowProgress
from strays.jobs.score.rows import SCORE_FIELDS, Scorer, ScoreSummary, flag_rows
from strays.jobs.score.stream import check_output, score_table, stream_format, write_scored

__all__ = [
    "SCORE_FIELDS",
    "Engine",
    "OpenProgress",
    "RowProgress",
    "ScoreSummary",
    "Scorer",
    "check_output",
    "flag_rows",
    "score_files",
    "score_table",
    "stream_format",
    "write_scored",
]
