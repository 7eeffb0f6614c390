"""What the tests share: a tiny BERT built on the spot, a fake encoder, and small corpora."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.tiny_bert import save_bert_of, save_random_weights, save_tokenizer_of

from strays.encoders.library_errors import TORCH_PIP
from strays.encoders.runtimes.devices import has_torch

if TYPE_CHECKING:
    from playwright.sync_api import Browser

needs_torch = pytest.mark.skipif(not has_torch(), reason=f"needs the extra torch: {TORCH_PIP}")

CATS = ["cat", "dog", "bird", "mouse", "horse", "cow", "goat", "hen"]
DEEDS = ["sleeps", "eats", "runs", "waits", "drinks", "plays", "hides", "sings"]
PLACES = ["in the garden", "on the roof", "near the barn", "by the river", "under the tree", "behind the house"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use a browser or Spark have the marker for it."""
    for item in items:
        for fixture, marker in (("chromium", "browser"), ("spark", "cluster")):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


def farm_texts(n: int) -> list[str]:
    """n different short texts about animals."""
    texts = [f"the {c} {d} {p}" for p in PLACES for d in DEEDS for c in CATS]
    return texts[:n]


class HashEncoder:
    """Texts to vectors by hashed words: fast, offline, the same everywhere."""

    def __init__(self, dimension: int = 16) -> None:
        self.dimension = dimension
        self.seen: list[list[str]] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.seen.append(list(texts))
        return np.array([self._one(text) for text in texts], dtype=np.float32).reshape(len(texts), self.dimension)

    def _one(self, text: str) -> np.ndarray:
        words = text.split() or [""]
        seeds = [int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8]) for word in words]
        return np.mean([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds], axis=0)


@pytest.fixture
def hash_encoder() -> HashEncoder:
    return HashEncoder()


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two narrow layers with random weights, saved as transformers saves models."""
    folder = tmp_path_factory.mktemp("tiny-bert")
    save_tiny_bert(folder)
    return folder


@pytest.fixture(scope="session")
def default_folder() -> Path:
    """Where the default encoder's files are on this machine; tests fetch nothing, and what needs it skips."""
    from strays.encoders.sources import find_default

    return find_default() or pytest.skip("needs the default encoder on this machine: strays encoders get default")


@pytest.fixture(scope="session")
def default_graph(tmp_path_factory: pytest.TempPathFactory, default_folder: Path) -> Path:
    """What the default encoder keeps in the cache folder when it is used for the first time."""
    from strays.encoders import load_encoder
    from strays.encoders.cache import models_folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRAYS_CACHE", str(tmp_path_factory.mktemp("default-encoder")))
        load_encoder("default", cache=False).encode(["ready"])
        return models_folder()


@pytest.fixture
def default_encoder(default_graph: Path, own_cache: Path) -> None:
    """The test's own cache has what the default encoder needs, as after its first use: it takes seconds to make."""
    if default_graph.exists():  # not without the extra onnx
        shutil.copytree(default_graph, own_cache / default_graph.name)


def save_tiny_bert(folder: Path, words: list[str] | None = None, seed: int = 0) -> None:
    farm_words = sorted({word for text in farm_texts(400) for word in text.split()})
    save_bert_of(words or farm_words, folder, seed=seed)


def save_tiny_roberta(folder: Path) -> None:
    """A RoBERTa of two narrow layers with random weights and the tiny BERT's tokenizer."""
    folder.mkdir(parents=True)
    ids = save_tokenizer_of(sorted({word for text in farm_texts(400) for word in text.split()}), folder, 64)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = {"model_type": "roberta", "vocab_size": len(ids), "max_position_embeddings": 70, "type_vocab_size": 1}
    save_random_weights({**config, **sizes, "pad_token_id": 0}, folder)


def add_token(folder: Path, token: str) -> None:
    """Give a tokenizer a token that its model does not know."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([token])
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A real browser; where none is installed, what needs it skips."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A real one on this machine; where it is not installed, what needs it skips."""
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    sql = pytest.importorskip("pyspark.sql", reason="needs Spark: pip install 'strays[spark]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "40").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture
def blobs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, X_test, y_test): normals around one direction, anomalies of two kinds off it."""
    rng = np.random.default_rng(7)
    return (*make_blobs(rng, 400, 40), *make_blobs(rng, 200, 40))


def make_blobs(rng: np.random.Generator, n_normal: int, n_anomaly: int, d: int = 24) -> tuple[np.ndarray, np.ndarray]:
    normal = rng.normal(size=(n_normal, d)) + 2 * np.eye(d)[0]
    # One coordinate in which the normals vary little tells the anomalies apart; distances alone hardly do.
    normal[:, 1] *= 0.2
    anomaly = rng.normal(size=(n_anomaly, d)) + 2 * np.eye(d)[0]
    anomaly[:, 1] = 2.0 * np.where(np.arange(n_anomaly) % 2, 1, -1)
    X = np.vstack([normal, anomaly])
    y = np.r_[np.ones(n_normal, dtype=int), -np.ones(n_anomaly, dtype=int)]
    order = rng.permutation(len(X))
    return X[order], y[order]
