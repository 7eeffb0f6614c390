"""The REST interface as data: what a call and its answer hold, and what each error status means."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, FailFast, Field, model_validator

from strays.apps.server.limits import Limits

# Examples.
CALL: dict[str, Any] = {"texts": ["My back wheel makes a clicking noise.", "WIN a free cruise, click here!!!"]}
NORMAL = {"anomaly_score": -0.41, "p_value": 0.62, "flagged": False}
ODD = {"anomaly_score": 2.93, "p_value": 0.0034, "flagged": True}
ANSWER: dict[str, Any] = {"model": "workshop", "version": "3f2a9c0d41b7e865", "results": [NORMAL, ODD]}

TEXTS = "The texts; null and blank ones get null results."
EXPLAIN = "Also explain each score; for fewer and shorter texts, see the limits in /v1/model."
DESCRIPTION = (
    "Finds the texts that do not belong. Scores point up: higher is odder. A p-value is the share of fresh normal "
    "texts expected to score at least as high."
)


class ScoreCall(BaseModel):
    """Texts to score."""

    model_config = ConfigDict(strict=True, json_schema_extra={"example": CALL, "additionalProperties": False})

    texts: Annotated[list[str | None], FailFast(), Field(description=TEXTS)]
    model: str | None = Field(None, description="Name of the model; the first one by default.", max_length=100)
    explain: Annotated[bool, Field(description=EXPLAIN)] = False

    @model_validator(mode="before")
    @classmethod
    def _no_others(cls, data: Any) -> Any:
        """Refuse other fields with one error for all of them: a body has room for a million."""
        if isinstance(data, dict) and not data.keys() <= cls.model_fields.keys():
            other = next(name for name in data if name not in cls.model_fields)
            raise ValueError(f"there is no field {other!r:.40}; expected texts and optionally model and explain")
        return data


class ErrorFacts(BaseModel):
    """What went wrong: a code for machines and a sentence for people."""

    code: str
    message: str


class Error(BaseModel):
    """Every answer that is not a success."""

    error: ErrorFacts


class Result(BaseModel):
    """What the model says of one text; null if there was nothing to score."""

    anomaly_score: float | None
    p_value: float | None
    flagged: bool | None
    explanation: dict[str, Any] | None = None


class ScoreAnswer(BaseModel):
    """One result for each text, in the order of the call."""

    model_config = ConfigDict(json_schema_extra={"example": ANSWER})

    model: str
    version: str
    results: list[Result]


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
    tuning: dict[str, Any] | None
    cascade: dict[str, Any] | None


class Status(BaseModel):
    """How the server is."""

    status: str


# What each status of an error means.
REFUSALS = {
    400: "The body did not arrive whole, or is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from a page of another site.",
    404: "No model has that name.",
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The Content-Type is not application/json.",
    421: "Host header not allowed.",
    422: "The call is not valid: too many texts, a text too long, or something other than texts.",
    429: "The server is busy; try again after as many seconds as Retry-After says.",
    503: "The model is being loaded, or the server is stopping.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for the schema: those of these statuses, or all."""
    return {status: {"model": Error, "description": REFUSALS[status]} for status in statuses or REFUSALS}


def complete_schema(app: FastAPI, limits: Limits, has_token: bool) -> None:
    """Add this server's limits to the schema and, if it has a token, that one is needed."""
    schema = app.openapi()
    texts = schema["components"]["schemas"]["ScoreCall"]["properties"]["texts"]
    texts["maxItems"] = limits.texts
    texts["items"]["anyOf"][0]["maxLength"] = limits.characters
    if has_token:
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        schema["paths"]["/health"]["get"]["security"] = []
