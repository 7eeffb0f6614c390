"""The REST interface: scores, explanations, facts and errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from strays.model import TextOutlierDetector
from tests.apps.server.conftest import ODD, Service, error, save_model
from tests.conftest import farm_texts

JSON = {"content-type": "application/json"}


def test_scores_are_those_of_the_model(service: Service, model: TextOutlierDetector) -> None:
    texts = [*farm_texts(70)[55:], ODD]
    answer = service.score(texts).json()
    offline = model.score(texts)
    assert answer["model"] == "farm"
    assert len(answer["version"]) == 16
    results = answer["results"]
    np.testing.assert_allclose([r["anomaly_score"] for r in results], offline.anomaly_score, rtol=1e-5)
    np.testing.assert_allclose([r["p_value"] for r in results], offline.p_value)
    assert [r["flagged"] for r in results] == offline.flagged.tolist()
    assert results[-1] == max(results, key=lambda r: r["anomaly_score"])


def test_nothing_to_score(service: Service) -> None:
    nothing = {"anomaly_score": None, "p_value": None, "flagged": None}
    results = service.score(["", ODD, None, " \n"]).json()["results"]
    assert [results[0], results[2], results[3]] == [nothing] * 3
    assert results[1]["anomaly_score"] is not None
    assert service.score([]).json()["results"] == []


def test_explanations(service: Service, model: TextOutlierDetector) -> None:
    first, blank, last = service.score([ODD, "", farm_texts(1)[0]], explain=True).json()["results"]
    offline = model.explain(ODD).to_dict()
    assert first["explanation"]["segments"][0]["text"] == offline["segments"][0]["text"]
    assert last["explanation"]["text"] == farm_texts(1)[0]
    assert "explanation" not in blank


def test_model_health_ready_and_schema(service: Service) -> None:
    assert service.http.get("/health").json() == {"status": "ok"}
    assert service.http.get("/ready").json() == {"status": "ready"}
    facts = service.http.get("/v1/model").json()
    assert (facts["model"], facts["models"], facts["fitted_on"]["n_texts"]) == ("farm", ["farm"], 60)
    limits = {"body_bytes": 8_000_000, "texts": 1000, "characters": 100_000}
    assert facts["limits"] == limits | {"explained_texts": 16, "explained_characters": 4000}
    schema = service.http.get("/openapi.json").json()
    assert schema["components"]["schemas"]["ScoreCall"]["properties"]["texts"]["maxItems"] == 1000
    assert "example" in schema["components"]["schemas"]["ScoreCall"]
    assert set(schema["components"]["schemas"]["ModelFacts"]["required"]) == set(facts)
    assert "securitySchemes" not in schema["components"]


def test_metrics_count(service: Service) -> None:
    names = ["strays_texts_total{", 'strays_requests_total{path="/v1/score",status="200"}', "strays_blank_texts_total{"]
    before = [service.metric(name) for name in names]
    service.score([ODD, "", "the cat"])
    assert [service.metric(name) - was for name, was in zip(names, before, strict=True)] == [2, 1, 1]
    assert service.metric('strays_p_value_bucket{le="1.0"') == service.metric("strays_texts_total{")
    assert service.metric("process_resident_memory_bytes") > 0
    assert service.metric("strays_requests_under_way") == 1  # this one


def test_many_at_once_get_their_own(service: Service, model: TextOutlierDetector) -> None:
    texts = farm_texts(300)
    expected = dict(zip(texts, model.anomaly_score(texts), strict=True))

    def ask(seed: int) -> int:
        rng = np.random.default_rng(seed)
        for _ in range(12):
            mine = [texts[i] for i in rng.integers(0, 300, rng.integers(1, 30))]
            np.testing.assert_allclose(service.scores(mine), [expected[text] for text in mine], rtol=1e-5)
        return 12

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(ask, range(16))) == 192


def test_several_models(
    start: Callable[..., Service], model_folder: Path, model: TextOutlierDetector, tiny_bert: Path, tmp_path: Path
) -> None:
    other = save_model(tmp_path / "other", tiny_bert, n=30, detector="nearest")
    service = start(model_folder, other)
    texts = [ODD, *farm_texts(3)]
    for name, offline in (("farm", model), ("other", TextOutlierDetector.load(other))):
        np.testing.assert_allclose(service.scores(texts, model=name), offline.anomaly_score(texts), rtol=1e-5)
        assert service.http.get("/v1/model", params={"model": name}).json()["model"] == name
    np.testing.assert_allclose(service.scores(texts), service.scores(texts, model="farm"), rtol=1e-5)
    assert service.http.get("/v1/model").json()["models"] == ["farm", "other"]
    # Models of the same encoder share it: it is in memory once.
    assert service.registry.get("farm").model.encoder_ is service.registry.get("other").model.encoder_


def test_half_characters_are_scored_as_in_files(service: Service, model: TextOutlierDetector) -> None:
    answer = service.http.post("/v1/score", content=b'{"texts": ["a \\ud800 cat"]}', headers=JSON)
    expected = model.anomaly_score(["a ? cat"])
    assert answer.json()["results"][0]["anomaly_score"] == pytest.approx(expected[0], rel=1e-5)


# ---- calls that are refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"texts": [1]},
        {"texts": "a"},
        {"text": "a"},
        {"texts": ["a"], "explian": True},
        {"texts": ["a"], "explain": "yes"},
        ["a"],
    ],
)
def test_invalid_calls(service: Service, body: object) -> None:
    assert error(service.http.post("/v1/score", json=body)) == (422, "invalid")


def test_bodies_that_are_no_json(service: Service) -> None:
    post = service.http.post
    for body in (b"{a}", b"{", b"[1,]"):
        assert error(post("/v1/score", content=body, headers=JSON)) == (400, "not_json")
    for body in (b"", b"\xff", b'{"texts": ["\\ud800"]', b"[" * 100_000, b'{"texts": [' + b"9" * 6000 + b"]}"):
        status, _ = error(post("/v1/score", content=body, headers=JSON))
        assert status in (400, 422), body[:20]
    assert error(post("/v1/score", content=b"texts=a")) == (415, "not_json")


def test_what_is_not_there(service: Service) -> None:
    assert error(service.score(["a"], model="cats")) == (404, "no_such_model")
    assert error(service.http.get("/v1/model", params={"model": "cats"})) == (404, "no_such_model")
    assert error(service.http.get("/v2/score")) == (404, "not_found")
    for like in ("/v1/score%0A", "/v1/score/", "//v1/score", "/v1//score", "/V1/score"):
        answer = service.http.post(f"{service.base}{like}", content=b" " * 9_000_000, headers=JSON)
        assert error(answer) == (404, "not_found"), like
    assert error(service.http.get("/v1/score")) == (405, "method_not_allowed")
    assert error(service.http.put("/v1/score", json={})) == (405, "method_not_allowed")


def test_too_much(service: Service) -> None:
    assert error(service.score(["a"] * 1001)) == (422, "too_many_texts")
    assert error(service.score(["a"] * 17, explain=True)) == (422, "too_many_texts")
    assert error(service.score(["a", "b" * 100_001])) == (422, "text_too_long")
    assert error(service.score(["a", "b" * 4_001], explain=True)) == (422, "text_too_long")
    assert error(service.score(["a" * 8_000_001])) == (413, "too_large")
    assert service.scores([ODD])[0] is not None


def test_a_body_of_unknown_length_ends_where_it_grows_too_large(service: Service) -> None:
    def parts() -> object:
        yield b'{"texts": ["'
        for _ in range(12):
            yield b"a" * 1_000_000

    assert error(service.http.post("/v1/score", content=parts(), headers=JSON)) == (413, "too_large")


def test_what_is_wrong_with_a_call_is_said(service: Service) -> None:
    for answer, words in (
        (service.http.post("/v1/score", json={"text": ["a"]}), "there is no field 'text'; expected texts"),
        (service.http.post("/v1/score", json=["a"]), "expected a JSON object"),
        (service.http.post("/v1/score", content=b"", headers=JSON), "expected a JSON object"),
        (service.http.get("/v1/score"), "this path takes POST"),
        (service.score(["a"] * 17, explain=True), "17 texts; with explain, expected at most 16"),
    ):
        assert words in answer.json()["error"]["message"]


def test_explanations_can_be_switched_off(start: Callable[..., Service]) -> None:
    service = start(explanations=False, log_requests=False)
    assert service.scores([ODD])
    assert error(service.score([ODD], explain=True)) == (422, "no_explanations")
    # And only what failed is logged, as asked for.
    assert [line["status"] for line in service.requests()] == [422]


def test_callers_are_not_told_where_things_are(start: Callable[..., Service], model_folder: Path) -> None:
    from strays.errors import ModelError
    from strays.model import TextOutlierDetector

    class Gone(TextOutlierDetector):
        def explain_many(self, texts: object, **more: object) -> object:
            raise ModelError(f"{model_folder}: the encoder is gone")

    service = start(load=Gone.load)
    answer = service.http.get("/v1/model")
    encoder = Path(answer.json()["encoder"]["name"])
    assert encoder.name == str(encoder)  # the name of its folder, and nothing above it
    refused = service.score(["a cow"], explain=True)
    assert error(refused) == (500, "failed")
    for path in (str(model_folder), str(model_folder.parent), str(Path.home())):
        assert path not in answer.text + refused.text + service.http.get("/openapi.json").text
    assert [line["error"] for line in service.log() if line["event"] == "failed"] == ["ModelError"]
