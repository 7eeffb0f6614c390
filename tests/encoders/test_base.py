"""Calling an encoder, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strays.encoders import encode, load_encoder
from tests.conftest import HashEncoder, farm_texts

TEXTS = farm_texts(20)


def test_progress_is_asked_only_of_encoders_that_strays_loads(tiny_bert: Path) -> None:
    told: list[tuple[int, int]] = []
    own = HashEncoder()
    assert np.array_equal(encode(own, TEXTS, lambda *done: told.append(done)), HashEncoder().encode(TEXTS))
    assert told == []
    encode(load_encoder(str(tiny_bert)), TEXTS, lambda *done: told.append(done))
    assert told[-1] == (20, 20)


def test_an_encoder_without_warnings_shares_what_is_loaded_and_says_nothing(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert))
    quiet = encoder.without_warnings()
    quiet.encode(["кот спит в саду"])  # a warning would be an error
    with pytest.warns(UserWarning, match="Cyrillic"):
        encoder.encode(["пёс ест на крыше"])
    assert encoder.without_warnings()._runtime is encoder._runtime  # type: ignore[attr-defined]
