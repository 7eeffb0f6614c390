"""The desk over HTTP: routes, and nothing else. Who may call them is the middleware's business."""

from __future__ import annotations

import asyncio
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from strays.apps.review import views
from strays.apps.review.corpus_map import CorpusMap
from strays.apps.review.desk import Desk
from strays.apps.review.explanations import Explainer
from strays.apps.review.export import write_labels
from strays.apps.review.project import UnknownTextError
from strays.apps.review.save_model import ModelSaver
from strays.apps.review.search import find_texts, last_actions, text_with_history
from strays.apps.review.snapshot import Snapshot
from strays.apps.review.store import to_bytes
from strays.apps.web.answers import Json, add_errors, refuse

HERE = Path(__file__).parent
REPORT = HERE.parents[1] / "jobs" / "report"
# The page's own files; nothing else is served.
STATIC = {path.name: path for path in (HERE / "page.css", *HERE.glob("*.js"), *REPORT.glob("map*.js"))}
MOST_IDS = 20_000
QUEUE_LENGTH = 10


class Caller(BaseModel):
    """Who acts, and from which tab."""

    who: str = Field(default="", max_length=100)
    client: str = Field(default="", max_length=100)


class Verdict(Caller):
    """A verdict on some texts."""

    ids: list[int] = Field(min_length=1, max_length=MOST_IDS)
    verdict: Literal["normal", "anomaly", "skip"]
    too: bool = True  # whether it also replaces verdicts that stand


def make_app(desk: Desk, *, who: str, model_folder: str) -> FastAPI:
    """The app for a desk; `who` stands for callers that give no name, models are saved to a folder."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, default_response_class=Json)
    project, explainer = desk.project, Explainer(desk)
    corpus_map, saver = CorpusMap(desk), ModelSaver(desk, model_folder)
    exports = TemporaryDirectory(prefix="strays-export-")
    app.state.explainer, app.state.exports = explainer, exports
    add_errors(app, besides="; what was judged is kept")

    @app.exception_handler(UnknownTextError)
    def missing(request: Request, error: UnknownTextError) -> Response:
        return refuse(404, "not_found", str(error))

    def state_of(now: Snapshot) -> dict[str, Any]:
        return views.state(now) | {"save": saver.state()}

    def queue_of(now: Snapshot, client: str, n: int) -> dict[str, Any]:
        asked = desk.queues.next(now, client, n)
        explainer.prepare(list(asked))
        return views.queue(now, asked)

    def after(caller: Caller) -> dict[str, Any]:
        now = desk.refresh()
        return {"state": state_of(now), "queue": queue_of(now, caller.client, QUEUE_LENGTH)}

    @app.get("/")
    def page() -> Response:
        return FileResponse(HERE / "page.html", media_type="text/html; charset=utf-8")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise HTTPException(404, "there is no such file")
        return FileResponse(STATIC[name])

    @app.get("/api/state")
    def state() -> Response:
        return Json(state_of(desk.refresh()))

    @app.get("/api/queue")
    def get_queue(client: str = Query("", max_length=100), n: int = Query(QUEUE_LENGTH, ge=1, le=100)) -> Response:
        return Json(queue_of(desk.refresh(), client, n))

    @app.post("/api/verdicts")
    def verdicts(given: Verdict) -> Response:
        done = desk.judge(given.ids, given.verdict, given.who or who, given.client, too=given.too)
        return Json(done | after(given))

    @app.post("/api/undo")
    def undo(caller: Caller) -> Response:
        return Json({"undone": desk.undo(caller.who or who, caller.client)} | after(caller))

    @app.get("/api/texts")
    def texts(
        search: str = Query("", max_length=1000),
        label: Literal["any", "none", "judged", "normal", "anomaly", "skip"] = "any",
        flagged: Literal["", "true", "false"] = "",
        sort: Literal["score", "recent", "row"] = "score",
        offset: int = Query(0, ge=0),
        limit: int = Query(50, ge=1, le=500),
    ) -> Response:
        is_flagged = {"true": True, "false": False}.get(flagged)
        return Json(find_texts(desk.refresh(), search, label, is_flagged, sort, offset, limit))

    @app.get("/api/texts/{id}")
    def text(id: int) -> Response:
        return Json(text_with_history(desk.refresh(), project.place(id)))

    @app.get("/api/texts/{id}/full")
    def full(id: int) -> Response:
        data = to_bytes(project.entries[project.place(id)].text)
        name = {"content-disposition": f'attachment; filename="text-{id}.txt"'}
        return Response(data, media_type="text/plain; charset=utf-8", headers=name)

    @app.get("/api/texts/{id}/why")
    async def why(id: int) -> Response:
        # Waits without a thread, so that many explanations never keep a verdict waiting.
        return Json(await asyncio.wrap_future(explainer.why(project.place(id))))

    @app.get("/api/history")
    def history(limit: int = Query(100, ge=1, le=1000), before: int | None = None) -> Response:
        return Json(last_actions(desk.refresh(), limit, before))

    @app.get("/api/map")
    def points() -> Response:
        found = corpus_map.points(desk.refresh())
        return Json({"working": True}, 202) if found is None else Json(found)

    @app.get("/api/map/values")
    def values() -> Response:
        return Json(corpus_map.values(desk.refresh()))

    @app.post("/api/model")
    def save_model() -> Response:
        saver.start()
        return Json({"save": saver.state()}, 202)

    @app.get("/api/export")
    def export(what: Literal["judged", "all"] = "judged", format: Literal["csv", "jsonl"] = "csv") -> Response:
        path = Path(exports.name) / f"{token_hex(8)}.{format}"
        write_labels(desk.refresh(), str(path), what=what, format=format)
        name = "labels" if what == "judged" else "texts"
        kind = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
        gone = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, media_type=kind, filename=f"{name}.{format}", background=gone)

    return app
