"""Saving the model that has learnt at the desk, to score other files with."""

from __future__ import annotations

import threading
from pathlib import Path

from strays.apps.review.background import in_words, start_thread
from strays.apps.review.desk import Desk


class ModelSaver:
    """Fits a model of full size on what people said and saves it to a folder, in a thread."""

    def __init__(self, desk: Desk, folder: str | Path) -> None:
        self._desk = desk
        self._folder = str(folder)
        self._lock = threading.Lock()
        self._state, self._words = "none", "not saved yet"

    def state(self) -> dict[str, str]:
        """How far it is, as plain data: none, working, done or failed, and the same in words."""
        with self._lock:
            return {"folder": self._folder, "state": self._state, "words": self._words}

    def start(self) -> None:
        """Begin to fit and save, unless that is under way."""
        with self._lock:
            if self._state == "working":
                return
            self._state, self._words = "working", "fitting a model on all verdicts"
        start_thread(self._save, "strays-model")

    def _save(self) -> None:
        try:
            verdicts = self._desk.refresh().verdicts
            labels = verdicts.labels
            self._desk.learner.model_to_save(labels, verdicts.searched).save(self._folder)
        except Exception as error:  # said on the page; the desk goes on
            found = "failed", in_words(error)
        else:
            n = sum(label is not None for label in labels)
            found = "done", f"saved to {self._folder}; it has learnt from {n:,} labels"
        with self._lock:
            self._state, self._words = found
