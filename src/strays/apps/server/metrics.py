"""Metrics for Prometheus. Labels are few and our own: no text and no address gets into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from strays.model import Scores

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROUND_TEXTS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# A tenth of normal texts lies below 0.1, and so on; if the lowest buckets hold more, the texts have changed.
P_VALUES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


class _DroppedLines(Collector):
    """Lines that the log had to drop, which the log itself counts."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """The present number."""
        yield CounterMetricFamily("strays_log_lines_dropped", "Lines of the log that nobody reads", self._count())


class Metrics:
    """The counters of one server; `dropped_lines` tells how many lines its log has dropped.

    >>> metrics = Metrics()
    >>> metrics.requests.labels("/health", 200).inc()
    >>> 'strays_requests_total{path="/health",status="200"} 1.0' in metrics.page().decode()
    True
    """

    def __init__(self, dropped_lines: Callable[[], int] = lambda: 0) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second line for each counter
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        self.registry.register(_DroppedLines(dropped_lines))
        counter = partial(prometheus.Counter, registry=self.registry)
        gauge = partial(prometheus.Gauge, registry=self.registry)
        histogram = partial(prometheus.Histogram, registry=self.registry)
        self.requests = counter("strays_requests", "Requests answered", ["path", "status"])
        self.seconds = histogram("strays_request_seconds", "Time to an answer", ["path"], buckets=SECONDS)
        self.under_way = gauge("strays_requests_under_way", "Requests not answered yet")
        self.waiting = gauge("strays_waiting_texts", "Texts that wait to be scored", ["model"])
        self.texts = counter("strays_texts", "Texts scored", ["model"])
        self.blank = counter("strays_blank_texts", "Texts without anything to score", ["model"])
        self.flagged = counter("strays_flagged_texts", "Texts flagged", ["model"])
        self.p_values = histogram("strays_p_value", "P-values of texts", ["model"], buckets=P_VALUES)
        self.explained = counter("strays_explained_texts", "Texts explained", ["model"])
        self.rounds = histogram("strays_round_texts", "Texts scored in one go", ["model"], buckets=ROUND_TEXTS)
        self.round_seconds = histogram("strays_round_seconds", "Time of a round", ["model"], buckets=SECONDS)
        self.loads = counter("strays_model_loads", "Models loaded, or not", ["model", "outcome"])
        self.loaded = gauge("strays_model_loaded_timestamp_seconds", "When the model in use was loaded", ["model"])

    def count(self, model: str, scores: Scores) -> None:
        """Count the texts of a call; blank ones have a score of NaN."""
        known = [p for p in scores.p_value.tolist() if p == p]
        self.texts.labels(model).inc(len(known))
        self.blank.labels(model).inc(len(scores.p_value) - len(known))
        self.flagged.labels(model).inc(int(scores.flagged.sum()))
        watched = self.p_values.labels(model)
        for p in known:
            watched.observe(p)

    def page(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        return prometheus.generate_latest(self.registry)
