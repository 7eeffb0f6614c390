"""What a model or a project from somebody else names is looked for on this machine; nothing is fetched unasked."""

from __future__ import annotations

import socket
from pathlib import Path

import huggingface_hub
import pytest

from strays import TextOutlierDetector, load_encoder
from strays.apps.review.store import Entry, LabelStore
from strays.encoders.settings import EncoderSettings
from strays.errors import EncoderError, ModelError
from tests.apps.cli.conftest import Run
from tests.conftest import HashEncoder, farm_texts

NAMED, NAMED_BERT = "somebody/their-encoder", "google-bert/bert-base-cased"


class Named(HashEncoder):
    """Says of itself that it comes from a repository of the hub."""

    fingerprint = "0" * 64

    def __init__(self, name: str) -> None:
        super().__init__()
        self.pinned = EncoderSettings(name, precision="full")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, object]]:
    """Whatever is asked of the hub or of any other host, which is then refused."""
    asked: list[tuple[str, object]] = []

    def refuse(*args: object, **options: object) -> None:
        asked.append((str(args[0]), options.get("token")))
        raise OSError("no network in tests")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub, "model_info", refuse)
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(  # a server listens here
        socket, "getaddrinfo", lambda host, *args, **kw: (look_up if host == "127.0.0.1" else refuse)(host, *args, **kw)
    )
    return asked


def model_naming(name: str, folder: Path, **options: object) -> Path:
    TextOutlierDetector(Named(name), "centroid", **options).fit(farm_texts(60)).save(folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_naming(NAMED, tmp_path / "model")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "pile.strays"
    store = LabelStore(path)
    store.put_texts([Entry(text, 1, (row,)) for row, text in enumerate(farm_texts(30), 1)])
    store.set(encoder=EncoderSettings(NAMED, precision="full").to_dict(), fingerprint="0" * 64, detector="centroid")
    store.close()
    return path


def commands(model: Path, project: Path, texts: Path, out: Path) -> list[list[object]]:
    return [
        ["score", texts, "--model", model, "--out", out / "out.csv"],
        ["explain", "a hen", "--model", model],
        ["evaluate", texts, "--model", model, "--label-column", "label"],
        ["report", texts, "--model", model, "--out", out / "page.html"],
        ["serve", "--model", model, "--port", "0"],
        ["review", texts, "--model", model, "--no-browser", "--project", out / "new.strays"],
        ["review", project, "--no-browser"],
    ]


@pytest.mark.parametrize("number", range(7))
def test_commands_fetch_nothing(
    strays: Run, model: Path, project: Path, texts_csv: Path, tmp_path: Path, hub: list, number: int
) -> None:
    command = commands(model, project, texts_csv, tmp_path)[number]
    ran = strays(*command)
    assert ran.code == 1
    assert NAMED in ran.err
    assert "--allow-download" in ran.err
    assert hub == []
    # And when it is allowed, not with the token of whoever runs it.
    ran = strays(*command, "--allow-download")
    assert ran.code == 1
    assert hub
    assert {token for _, token in hub} == {False}


def test_info_needs_no_encoder(strays: Run, model: Path, hub: list) -> None:
    ran = strays("info", model)
    assert ran.code == 0
    assert NAMED in ran.out
    assert hub == []


@pytest.mark.parametrize("name", [f"fast:{NAMED}", "//host/share/encoder", r"\\host\share\encoder", "bert"])
def test_python_fetches_nothing(tmp_path: Path, hub: list, name: str) -> None:
    loaded = TextOutlierDetector.load(model_naming(name, tmp_path / "m"))
    assert loaded.info()["encoder"]["name"] == name
    with pytest.raises(EncoderError, match="allow_download") as error:
        loaded.anomaly_score(["a hen"])
    assert name.removeprefix("fast:").replace("\\", "\\\\") in str(error.value) or NAMED_BERT in str(error.value)
    assert hub == []


def test_a_cascade_fetches_nothing(tmp_path: Path, hub: list) -> None:
    folder = model_naming("somebody/full", tmp_path / "m", cascade=Named(NAMED))
    model = TextOutlierDetector.load(folder, encoder=HashEncoder())
    with pytest.raises(EncoderError, match=f"{NAMED}.*allow_download"):
        model.cascade_.value(["a hen"])
    assert hub == []


def test_what_is_asked_for_by_name_may_be_fetched(hub: list) -> None:
    with pytest.raises(EncoderError, match="could not get 'somebody/their-encoder'"):
        load_encoder(NAMED).encode(["a hen"])
    assert hub == [(NAMED, None)]


def test_what_is_on_this_machine_is_used(tiny_bert: Path, tmp_path: Path, hub: list) -> None:
    encoder = load_encoder(str(tiny_bert), precision="full", cache=False)
    TextOutlierDetector(encoder, "centroid").fit(farm_texts(60)).save(tmp_path / "m")
    assert len(TextOutlierDetector.load(tmp_path / "m", cache=False).anomaly_score(["a hen"])) == 1
    assert hub == []


def test_a_folder_that_holds_another_encoder_is_not_used(tiny_bert: Path, tmp_path: Path, hub: list) -> None:
    loaded = TextOutlierDetector.load(model_naming(str(tiny_bert), tmp_path / "m"), cache=False)
    with pytest.raises(ModelError, match="is not the one this model was fitted with"):
        loaded.anomaly_score(["a hen"])
