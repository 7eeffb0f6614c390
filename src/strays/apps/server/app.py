"""The routes. Who may call them, and with how much, is gate.py's business; the models are shelf.py's."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator

from strays import __version__
from strays.apps.server.batches import BusyError
from strays.apps.server.limits import Limits
from strays.apps.server.metrics import CONTENT_TYPE, Metrics
from strays.apps.server.shelf import Served, Shelf, UnknownModelError
from strays.apps.web.answers import Json, add_errors, refuse
from strays.jobs.score import flag_rows
from strays.model import Scores

EXAMPLE: dict[str, Any] = {"texts": ["My back wheel makes a clicking noise.", "WIN a free cruise, click here!!!"]}
DESCRIPTION = (
    "Finds the texts that do not belong. Scores point up: higher is odder. A p-value is the share of fresh normal "
    "texts expected to score at least as high."
)


class ScoreCall(BaseModel):
    """Texts to score."""

    texts: Annotated[list[str | None], FailFast()] = Field(
        description="The texts; null and blank ones get null results."
    )
    model: str | None = Field(None, description="Which model, by name; the first where not given.", max_length=100)
    explain: bool = Field(
        False, description="Also say why each text scores as it does; of fewer and shorter texts, see /v1/model."
    )

    model_config = ConfigDict(strict=True, json_schema_extra={"example": EXAMPLE, "additionalProperties": False})

    @model_validator(mode="before")
    @classmethod
    def _no_others(cls, data: Any) -> Any:
        """Refuse other fields with one error for all of them: a body has room for a million."""
        if isinstance(data, dict) and not data.keys() <= cls.model_fields.keys():
            other = next(name for name in data if name not in cls.model_fields)
            raise ValueError(f"there is no field {other!r:.40}; expected texts, and where wanted model and explain")
        return data


class ErrorFacts(BaseModel):
    """What went wrong: a code for machines and a sentence for people."""

    code: str
    message: str


class Error(BaseModel):
    """Every answer that is not a success."""

    error: ErrorFacts


class Result(BaseModel):
    """What the model says of one text; null where there was nothing to score."""

    anomaly_score: float | None
    p_value: float | None
    flagged: bool | None
    explanation: dict[str, Any] | None = None


class ScoreAnswer(BaseModel):
    """One result for each text, in the order of the call."""

    model: str
    version: str
    results: list[Result]

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "model": "workshop",
                "version": "3f2a9c0d41b7e865",
                "results": [
                    {"anomaly_score": -0.41, "p_value": 0.62, "flagged": False},
                    {"anomaly_score": 2.93, "p_value": 0.0034, "flagged": True},
                ],
            }
        }
    )


class ModelFacts(BaseModel):
    """What a model is, which models there are, and the limits of a call."""

    model: str
    version: str
    models: list[str]
    loaded_at: float
    reload_failed: str | None
    limits: dict[str, int]
    encoder: dict[str, Any]
    detector: dict[str, Any]
    fitted_on: dict[str, int]
    lowest_p_value: float
    threshold: dict[str, Any]
    flags: str
    cascade: dict[str, Any] | None


class Status(BaseModel):
    """How the server is."""

    status: str


def make_app(shelf: Shelf, *, limits: Limits, metrics: Metrics, explanations: bool, has_token: bool) -> FastAPI:
    """The app for some models."""
    app = FastAPI(
        title="strays",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    add_errors(app)

    @app.exception_handler(UnknownModelError)
    def unknown(request: Request, error: UnknownModelError) -> Response:
        return refuse(404, "no_such_model", str(error))

    @app.get("/health", tags=["running it"], response_model=Status, responses=_errors(403, 421))
    async def health() -> Response:
        """Whether the process lives."""
        return Json({"status": "ok"})

    @app.get("/ready", tags=["running it"], response_model=Status, responses=_errors(401, 403, 421, 503))
    async def ready() -> Response:
        """Whether every model is loaded."""
        return Json({"status": "ready"}) if shelf.ready else _loading()

    @app.get("/metrics", tags=["running it"], response_class=Response, responses=_metrics_page())
    async def metrics_page() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.page(), media_type=CONTENT_TYPE)

    @app.get("/v1/model", tags=["models"], response_model=ModelFacts, responses=_errors(401, 403, 404, 421, 422, 503))
    async def model(model: Annotated[str | None, Query(max_length=100, description="Its name.")] = None) -> Response:
        """What a model is, which models there are, and the limits of a call."""
        served = shelf.get(model)
        return Json(_facts(shelf, served, limits)) if served else _loading()

    @app.post("/v1/score", tags=["scores"], response_model=ScoreAnswer, responses=_errors(*_REFUSALS))
    async def score(call: ScoreCall, request: Request) -> Response:
        """Score texts: how odd each is, how rare that would be among normal ones, and whether it is flagged."""
        served = shelf.get(call.model)
        if served is None:
            return _loading()
        if answer := _too_much(call, limits, explanations):
            return answer
        texts = [text if text and not text.isspace() else None for text in call.texts]
        request.state.facts.update(model=served.name, texts=len(texts))
        there = [text for text in texts if text is not None]
        try:
            whys = await shelf.explain(served, there, request.state.gone) if call.explain else []
            found = await served.batches.score(there, request.state.gone)
        except BusyError as error:
            return refuse(429, "busy", f"{error}; try again in a moment", {"retry-after": "1"})
        except asyncio.CancelledError:
            if not request.state.gone.done():
                raise  # the server stops
            return refuse(499, "gone", "the client is gone")  # nobody reads it, but the log does
        scores = np.full(len(texts), np.nan)
        scores[[text is not None for text in texts]] = found
        judged = flag_rows(served.model, scores)
        metrics.count(served.name, judged)
        metrics.explained.labels(served.name).inc(len(whys))
        return Json({"model": served.name, "version": served.version, "results": _results(judged, whys)})

    _complete_schema(app, limits, has_token)
    return app


_REFUSALS = (400, 401, 403, 404, 408, 413, 415, 421, 422, 429, 503)
_MEANINGS = {
    400: "The body did not arrive whole, or is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site's page.",
    404: "There is no such model.",
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    421: "The host is not one of ours.",
    422: "The call is not as expected: too many texts, one too long, or something else than texts.",
    429: "The server is full; try again after the seconds of Retry-After.",
    503: "The model is being loaded, or the server stops.",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Error, "description": _MEANINGS[status]} for status in statuses}


def _metrics_page() -> dict[int | str, dict[str, Any]]:
    page = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The counters."}
    return {200: page, **_errors(401, 403, 421)}


def _loading() -> Response:
    return refuse(503, "loading", "the model is being loaded; try again in a moment", {"retry-after": "1"})


def _results(judged: Scores, whys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    columns = zip(judged.anomaly_score.tolist(), judged.p_value.tolist(), judged.flagged.tolist(), strict=True)
    nothing = {"anomaly_score": None, "p_value": None, "flagged": None}
    results: list[dict[str, Any]] = [
        {"anomaly_score": score, "p_value": p, "flagged": flagged} if score == score else dict(nothing)
        for score, p, flagged in columns
    ]
    scored = (result for result in results if result["anomaly_score"] is not None)
    for result, why in zip(scored, whys, strict=True) if whys else ():
        result["explanation"] = why
    return results


def _facts(shelf: Shelf, served: Served, limits: Limits) -> dict[str, Any]:
    return {
        "model": served.name,
        "loaded_at": round(served.loaded_at, 3),
        "reload_failed": shelf.failure(served.name),
        "models": shelf.names,
        "limits": {
            "body_bytes": limits.body_bytes,
            "texts": limits.texts,
            "characters": limits.characters,
            "explained_texts": limits.explained,
            "explained_characters": limits.explained_characters,
        },
        **served.info,
    }


def _too_much(call: ScoreCall, limits: Limits, explanations: bool) -> Response | None:
    """Why a call is not taken, if it is not."""
    if len(call.texts) > limits.texts:
        return refuse(422, "too_many_texts", f"{len(call.texts):,} texts; expected at most {limits.texts:,} in a call")
    longest, when = (limits.explained_characters, " with explain") if call.explain else (limits.characters, "")
    for place, text in enumerate(call.texts):
        if text is not None and len(text) > longest:
            words = f"texts.{place} has {len(text):,} characters; expected at most {longest:,}{when}. Cut it"
            return refuse(422, "text_too_long", words)
    if call.explain and not explanations:
        return refuse(422, "no_explanations", "explanations are switched off here; leave explain away")
    if call.explain and len(call.texts) > limits.explained:
        words = f"{len(call.texts):,} texts; with explain, expected at most {limits.explained} in a call"
        return refuse(422, "too_many_texts", words)
    return None


def _complete_schema(app: FastAPI, limits: Limits, has_token: bool) -> None:
    """Say in the schema what this server's limits are, and that a token is needed, where it is."""
    schema = app.openapi()
    texts = schema["components"]["schemas"]["ScoreCall"]["properties"]["texts"]
    texts["maxItems"] = limits.texts
    texts["items"]["anyOf"][0]["maxLength"] = limits.characters
    if has_token:
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        schema["paths"]["/health"]["get"]["security"] = []
