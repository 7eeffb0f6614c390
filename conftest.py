"""What the tests in tests/ and the examples in src/ share: one thread, no network, and caches of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts what runs in the background so, and processes that the tests start would ignore Ctrl-C too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """What tests compute is too small for threads to help, and pytest-xdist already keeps the cores busy."""
    from threadpoolctl import threadpool_limits

    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session", autouse=True)
def no_users_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Session fixtures neither read nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRAYS_CACHE", str(tmp_path_factory.mktemp("shared-cache")))
        patch.delenv("STRAYS_CACHE_SIZE", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test has a cache of its own, so that none depends on what another has stored."""
    from strays.encoders.cache import EmbeddingCache

    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STRAYS_CACHE", str(folder))
    yield folder
    EmbeddingCache(folder).close()


@pytest.fixture(autouse=True)
def examples_write_elsewhere(request: pytest.FixtureRequest) -> None:
    """An example in a docstring may save a model or a table: it runs in an empty folder."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
