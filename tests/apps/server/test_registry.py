"""Models that change while they are served."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strays.apps.server.registry import named_folders
from strays.errors import ModelError, UsageError
from strays.model import TextOutlierDetector
from tests.apps.server.conftest import ODD, Service, save_model, wait_for


@pytest.fixture
def folder(tmp_path: Path, model_folder: Path) -> Path:
    """A copy of the model that a test may change."""
    return Path(shutil.copytree(model_folder, tmp_path / "farm"))


@pytest.fixture
def service(start: Callable[..., Service], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server that looks at its folders only when told to."""
    monkeypatch.setattr("strays.apps.server.registry.WATCH_SECONDS", 3600)
    return start(folder)


def reload(service: Service, *, retry: bool = False) -> None:
    service.loop.run(service.registry.reload_changed(retry=retry))


def facts(service: Service) -> dict[str, object]:
    return service.http.get("/v1/model").json()


def test_a_changed_model_is_loaded_without_a_lost_call(service: Service, folder: Path, tiny_bert: Path) -> None:
    offline = TextOutlierDetector.load(folder)
    expected = {offline.fingerprint[:16]: offline.anomaly_score([ODD])[0]}
    stop, wrong = threading.Event(), []
    scores: dict[str, set[float]] = {}

    def ask() -> None:
        while not stop.is_set():
            answer = service.score([ODD])
            if answer.status_code != 200:
                wrong.append(answer.text)
                continue
            scores.setdefault(answer.json()["version"], set()).add(answer.json()["results"][0]["anomaly_score"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: scores)
        for n in (40, 80):
            save_model(folder, tiny_bert, n=n)
            offline = TextOutlierDetector.load(folder)
            expected[offline.fingerprint[:16]] = offline.anomaly_score([ODD])[0]
            reload(service)
            wait_for(lambda: offline.fingerprint[:16] in scores)  # noqa: B023
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert set(scores) == set(expected)
    for version, seen in scores.items():
        assert list(seen) == pytest.approx([expected[version]] * len(seen), rel=1e-5)


def test_a_model_that_cannot_be_loaded_changes_nothing(service: Service, folder: Path) -> None:
    before = service.scores([ODD])
    config, times = (folder / "config.json").read_bytes(), (folder / "config.json").stat()
    (folder / "config.json").write_text("{")
    reload(service)
    assert facts(service)["reload_failed"]
    assert service.scores([ODD]) == before
    reload(service)  # it is not tried again before it changes again
    assert service.metric('strays_model_loads_total{model="farm",outcome="failed"}') == 1
    reload(service, retry=True)  # unless asked for
    assert service.metric('strays_model_loads_total{model="farm",outcome="failed"}') == 2
    assert [line["event"] for line in service.log()].count("model_not_loaded") == 2
    # As it was before: nothing has failed.
    (folder / "config.json").write_bytes(config)
    os.utime(folder / "config.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    reload(service)
    assert facts(service)["reload_failed"] is None
    assert service.metric('strays_model_loads_total{model="farm",outcome="loaded"}') == 1


def test_a_model_that_is_gone_changes_nothing(service: Service, folder: Path, tiny_bert: Path) -> None:
    before = service.scores([ODD])
    shutil.rmtree(folder)
    reload(service)
    assert facts(service)["reload_failed"] is None  # it may be just being replaced
    reload(service)
    assert facts(service)["reload_failed"]
    (why,) = [line["reason"] for line in service.log() if line["event"] == "model_not_loaded"]
    assert "no model" in why
    # Callers are not told where models are.
    assert str(folder.parent) not in service.http.get("/v1/model").text
    assert service.scores([ODD]) == before
    save_model(folder, tiny_bert, n=40)
    reload(service)
    assert facts(service)["reload_failed"] is None
    assert facts(service)["fitted_on"]["n_texts"] == 40
    assert service.scores([ODD]) != before


def test_changes_are_noticed(
    start: Callable[..., Service], folder: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strays.apps.server.registry.WATCH_SECONDS", 0.05)
    service = start(folder)
    save_model(folder, tiny_bert, n=40)
    wait_for(lambda: facts(service)["fitted_on"]["n_texts"] == 40)


def test_what_a_server_is_asked_is_not_kept(service: Service, own_cache: Path) -> None:
    service.scores([ODD])
    assert not list(own_cache.rglob("*.mdb"))
    assert service.registry.get().model.encoder_.cache is None


def test_a_model_that_fails_at_the_start_is_an_error(start: Callable[..., Service], folder: Path) -> None:
    class Broken(TextOutlierDetector):
        def anomaly_score(self, texts: object, **more: object) -> object:
            raise ModelError("it does not fit")

    with pytest.raises(ModelError, match="it does not fit"):
        start(folder, load=Broken.load)


def test_folders_get_names(tmp_path: Path) -> None:
    (tmp_path / "a=b").mkdir()
    given = ["spam=/models/3", "/models/reviews", str(tmp_path / "a=b")]
    named = {"spam": "/models/3", "reviews": "/models/reviews", "a=b": str(tmp_path / "a=b")}
    assert named_folders(given) == named
    with pytest.raises(UsageError, match="two models are called 'spam'"):
        named_folders(["spam=/a", "spam=/b"])
    for odd in ("=a", "a=", "/", "\n=a", "x" * 101 + "=a"):
        with pytest.raises(UsageError, match="expected a folder, or NAME=FOLDER"):
            named_folders([odd])
