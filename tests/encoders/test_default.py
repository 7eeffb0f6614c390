"""The default encoder as it is, found on this machine; where it is not, these skip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import fetching, load_encoder, pinned, sources


def test_it_knows_what_is_alike(default_encoder: None) -> None:
    encoder = load_encoder()
    cat, kitten, bond = encoder.encode(["A cat sleeps.", "The kitten is napping.", "Bond yields rose sharply."])
    assert np.linalg.norm(cat) == pytest.approx(1, abs=1e-5)
    assert cat @ kitten > cat @ bond + 0.3
    assert encoder.dimension == 384


def test_its_fingerprint_is_that_of_0_1(default_encoder: None) -> None:
    """Wherever its files came from: models of version 0.1 recorded the second one."""
    encoder = load_encoder(precision="full")
    assert encoder.fingerprint == "b7e94d1f446737aaf3ddccf68bc5cc9b02dad13ac40293c565f0493e94d09a60"
    assert encoder.fingerprint_0_1 == "50bbc8816fbf48549465effdcbbf34a1d2493077b2934edef42bee783aa04ef3"


@pytest.mark.slow
def test_the_pinned_files_alone_are_the_same_encoder(default_folder: Path, tmp_path: Path) -> None:
    fetching.take(default_folder, tmp_path / "alone")
    assert pinned.difference(tmp_path / "alone") is None
    alone, whole = load_encoder(str(tmp_path / "alone"), precision="full"), load_encoder(precision="full")
    assert alone.fingerprint == whole.fingerprint
    assert alone.fingerprint_0_1 == whole.fingerprint_0_1


@pytest.mark.process
def test_it_works_offline_and_without_importing_the_packages_code(default_folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "strays-encoders" / sources.default_store().name
    store.parent.mkdir()
    store.symlink_to(default_folder)
    program = (
        "import sys; from strays.encoders import load_encoder; load_encoder().encode(['a']); "
        "assert not [m for m in sys.modules if m.startswith(('gt_all', 'sentence_transformers'))]"
    )
    environment = {"HF_HUB_OFFLINE": "1", "PATH": "", "HOME": "/nonexistent", "STRAYS_CACHE": str(tmp_path)}
    environment |= {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.slow
def test_agrees_with_sentence_transformers(default_folder: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    texts = ["A cat sleeps.", "Bond yields rose sharply after the announcement.", "", "word " * 500]
    theirs = sentence_transformers.SentenceTransformer(str(default_folder), device="cpu").encode(texts)
    np.testing.assert_allclose(load_encoder(device="cpu", precision="full").encode(texts), theirs, atol=1e-5)
    chosen = load_encoder(device="cpu").encode(texts)
    assert (chosen * theirs).sum(1).mean() > 0.99
