"""Files in, the same rows with their scores out, in order, however large the files are.

score_files -> Job -> Engine.run(model, plan, what is left, progress) -> chunks done -> Manifest
"""

from strays.jobs.score.chunks import DoneChunk, Remaining, ScoredChunk, Task, WrittenChunk
from strays.jobs.score.files import score_files
from strays.jobs.score.plan import Engine, Plan
from strays.jobs.score.progress import OpenProgress, RowProgress, bars_in_turn, no_bar
from strays.jobs.score.rows import Scorer, ScoreSummary, check_output, flag_rows, stream_format, write_scored

__all__ = [
    "DoneChunk",
    "Engine",
    "OpenProgress",
    "Plan",
    "Remaining",
    "RowProgress",
    "ScoreSummary",
    "ScoredChunk",
    "Scorer",
    "Task",
    "WrittenChunk",
    "bars_in_turn",
    "check_output",
    "flag_rows",
    "no_bar",
    "score_files",
    "stream_format",
    "write_scored",
]
