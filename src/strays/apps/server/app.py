"""The routes. Who may call them, and with how much, is the middleware's business; models come from the registry."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from strays import __version__
from strays.apps.server.limits import Limits
from strays.apps.server.metrics import CONTENT_TYPE
from strays.apps.server.registry import ModelRegistry, ServedModel, UnknownModelError
from strays.apps.server.schema import DESCRIPTION, ModelFacts, ScoreAnswer, ScoreCall, Status, complete_schema, errors
from strays.apps.web.answers import Json, add_errors, refuse
from strays.apps.web.busy import BusyError, busy
from strays.errors import StraysError, UsageError
from strays.jobs.score import flag_rows
from strays.model import RawScores, Scores

CALL_LIMITS = ("body_bytes", "texts", "characters", "explained_texts", "explained_characters")
FIELDS = ("anomaly_score", "p_value", "flagged")
# A name that strays or the Hugging Face hub knows an encoder by.
HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
RELOAD_FAILED = "the changed model could not be loaded, and the one before answers; the server's log says why"
METRICS_PAGE = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The counters."}
METRICS_ANSWERS = {200: METRICS_PAGE, **errors(401, 403, 421)}
Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def make_app(registry: ModelRegistry, *, explanations: bool, has_token: bool, lifespan: Lifespan | None) -> FastAPI:
    """The app for the models of a registry; `lifespan` opens and closes it."""
    limits, metrics = registry.limits, registry.metrics
    app = FastAPI(
        title="strays", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    add_errors(app)

    app.add_exception_handler(UnknownModelError, lambda request, error: refuse(404, "no_such_model", str(error)))
    app.add_exception_handler(BusyError, lambda request, error: busy(str(error)))

    @app.exception_handler(StraysError)
    def failed(request: Request, error: StraysError) -> Response:
        if isinstance(error, UsageError):
            return refuse(422, "failed", str(error))
        registry.log.error("failed", error)  # its message may name files of this machine
        return refuse(500, "failed", "the model could not score this call; the server's log says why")

    @app.get("/health", tags=["running it"], response_model=Status, responses=errors(403, 421))
    async def health() -> Response:
        """Whether the process lives."""
        return Json({"status": "ok"})

    @app.get("/ready", tags=["running it"], response_model=Status, responses=errors(401, 403, 421, 503))
    async def ready() -> Response:
        """Whether every model is loaded."""
        return Json({"status": "ready"}) if registry.ready else _loading()

    @app.get("/metrics", tags=["running it"], response_class=Response, responses=METRICS_ANSWERS)
    async def metrics_page() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.page(), media_type=CONTENT_TYPE)

    @app.get("/v1/model", tags=["models"], response_model=ModelFacts, responses=errors(401, 403, 404, 421, 422, 503))
    async def model(model: Annotated[str | None, Query(max_length=100, description="Its name.")] = None) -> Response:
        """What a model is, which models there are, and the limits of a call."""
        served = registry.get(model)
        return Json(_facts(registry, served, limits)) if served else _loading()

    @app.post("/v1/score", tags=["scores"], response_model=ScoreAnswer, responses=errors())
    async def score(call: ScoreCall, request: Request) -> Response:
        """Score texts: how odd each is, how rare that would be among normal ones, and whether it is flagged."""
        served = registry.get(call.model)
        if served is None:
            return _loading()
        if answer := _too_much(call, limits, explanations):
            return answer
        texts = [text if text and not text.isspace() else None for text in call.texts]
        request.state.facts.update(model=served.name, texts=len(texts))
        there = [text for text in texts if text is not None]
        try:
            whys = await registry.threads.explain(served.model, there, request.state.gone) if call.explain else []
            found = await served.batches.score(there, request.state.gone)
        except asyncio.CancelledError:
            if not request.state.gone.done():
                raise  # the server stops
            return refuse(499, "gone", "the client left")  # nobody reads it, but it is logged
        scores = np.full(len(texts), np.nan)
        scores[[text is not None for text in texts]] = found
        flagged = flag_rows(served.model, RawScores(scores))
        metrics.count(served.name, flagged)
        metrics.explained.labels(served.name).inc(len(whys))
        return Json({"model": served.name, "version": served.info["version"], "results": _results(flagged, whys)})

    complete_schema(app, limits, has_token)
    return app


def _loading() -> Response:
    return refuse(503, "loading", "the model is being loaded; try again in a moment", {"retry-after": "1"})


def _results(scores: Scores, whys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = zip(*(getattr(scores, field).tolist() for field in FIELDS), strict=True)
    known = (row if row[0] == row[0] else (None, None, None) for row in rows)
    results: list[dict[str, Any]] = [dict(zip(FIELDS, row, strict=True)) for row in known]
    scored = (result for result in results if result["anomaly_score"] is not None)
    for result, why in zip(scored, whys, strict=True) if whys else ():
        result["explanation"] = why
    return results


def _facts(registry: ModelRegistry, served: ServedModel, limits: Limits) -> dict[str, Any]:
    return {
        "model": served.name,
        "loaded_at": round(served.loaded_at, 3),
        "reload_failed": RELOAD_FAILED if registry.has_failed(served.name) else None,
        "models": registry.names,
        "limits": {name: getattr(limits, name) for name in CALL_LIMITS},
        **served.info,
        "encoder": _without_path(served.info["encoder"]),
    }


def _without_path(encoder: dict[str, Any]) -> dict[str, Any]:
    """An encoder's settings; of a folder, its name alone: where it is, is no caller's business."""
    name = str(encoder["name"])
    is_folder = not HUB_NAME.fullmatch(name) or Path(name).exists()
    return encoder | {"name": PurePath(name.replace("\\", "/")).name} if is_folder else encoder


def _too_much(call: ScoreCall, limits: Limits, explanations: bool) -> Response | None:
    """The answer to a call that asks for too much (422); None if it does not."""
    if len(call.texts) > limits.texts:
        return refuse(422, "too_many_texts", f"{len(call.texts):,} texts; expected at most {limits.texts:,} in a call")
    longest, when = (limits.explained_characters, " with explain") if call.explain else (limits.characters, "")
    for place, text in enumerate(call.texts):
        if text is not None and len(text) > longest:
            words = f"texts.{place} has {len(text):,} characters; expected at most {longest:,}{when}; shorten it"
            return refuse(422, "text_too_long", words)
    if call.explain and not explanations:
        return refuse(422, "no_explanations", "explanations are switched off on this server; omit explain")
    if call.explain and len(call.texts) > limits.explained_texts:
        words = f"{len(call.texts):,} texts; with explain, expected at most {limits.explained_texts} in a call"
        return refuse(422, "too_many_texts", words)
    return None
