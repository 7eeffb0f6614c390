"""Fitting the model again as people judge: in one thread, so that no two fits run at once."""

from __future__ import annotations

import threading

from strays.apps.review.background import in_words, start_thread
from strays.apps.review.desk import Desk
from strays.apps.review.generation import Generation


class RefitWorker:
    """Brings a desk's model, questions and estimate up to date whenever there are new verdicts, until closed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Work in a thread from now on."""
        self._thread = start_thread(self._run, "strays-refits")

    def close(self, timeout: float = 10.0) -> None:
        """Let the fit that is running come to its end, and start no other."""
        self._closed.set()
        self._desk.work_due.set()
        if self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            self._desk.work_due.wait()
            if self._closed.is_set():
                return
            self._desk.work_due.clear()
            try:
                self.work()
            except Exception as error:  # the thread must live on, or nothing would ever be learnt again
                self._desk.report_failure(f"the desk's work beside the page has failed: {in_words(error)}")

    def work(self) -> None:
        """Fit as long as it is time to, make questions where they run short, estimate what is still to be found."""
        desk = self._desk
        while desk.snapshot.is_fit_due and not self._closed.is_set():
            self._refit()
        now = desk.snapshot
        if now.runs_short and not self._closed.is_set():
            desk.replace_questions(now.generation.with_questions(now.verdicts, desk.learner))
        desk.set_remaining(desk.snapshot.estimate())
        desk.store.checkpoint()

    def _refit(self) -> None:
        desk = self._desk
        now = desk.start_fit()
        try:
            ranking = desk.learner.learn(now.verdicts.labels, now.verdicts.searched)
            generation = Generation.of(ranking, now.generation.number + 1, now.verdicts.y)
            # About what is open after the fit: people have gone on judging.
            generation = generation.with_questions(desk.snapshot.verdicts, desk.learner)
        except Exception as error:  # whatever it is, people can go on judging
            desk.report_failure(f"the model has not learnt from the last verdicts: {in_words(error)}")
        else:
            desk.finish_fit(generation)
