"""Stages of the work, each with a progress bar that the encoder moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from strays.encoders import LoadedEncoder
from strays.jobs.score import OpenProgress
from strays.model import TextOutlierDetector


@contextmanager
def stage(model: TextOutlierDetector, progress: OpenProgress, what: str) -> Iterator[None]:
    """Show a stage while it lasts; encoders of other people, which report nothing, leave the bar alone."""
    with progress(what) as show:
        encoder = cast(LoadedEncoder, model.encoder_) if hasattr(model.encoder_, "progress") else None
        if encoder:
            encoder.progress = show
        try:
            yield
        finally:
            if encoder:
                encoder.progress = None
