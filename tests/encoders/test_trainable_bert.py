"""A BERT that learns: its embeddings against the encoder's, gradients against differences, and what seeds decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from strays.encoders import load_encoder
from strays.encoders.transformer import TransformerEncoder
from strays.errors import UsageError
from tests.conftest import farm_texts, needs_torch, save_tiny_roberta

if TYPE_CHECKING:
    from strays.encoders.trainable_bert import TrainableBert

TEXTS = ["", "a", *farm_texts(30), " ".join(farm_texts(6)), "gibberish qqq zzz " * 30]

pytestmark = needs_torch


def load(folder: Path, **options: object) -> TransformerEncoder:
    encoder = load_encoder(str(folder), cache=False, precision="full", **options)  # type: ignore[arg-type]
    assert isinstance(encoder, TransformerEncoder)
    return encoder


def moved(bert: TrainableBert, seed: int = 1) -> None:
    """Give the updates other numbers than those they begin with."""
    import torch

    drawn = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for up in bert.up.values():
            up.copy_(torch.randn(up.shape, generator=drawn))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_its_embeddings_are_the_encoders(kind: str, pooling: str, tiny_bert: Path, tmp_path: Path) -> None:
    folder = tiny_bert
    if kind == "roberta":
        save_tiny_roberta(folder := tmp_path / "roberta")
    encoder = load(folder, pooling=pooling, normalize=True)
    bert, ids = encoder.trainable(), encoder.token_ids(TEXTS)
    states = bert.lower(ids)
    np.testing.assert_allclose(bert.embedded(states, 1.0), encoder.encode(TEXTS), atol=2e-6)
    moved(bert)
    for share in (0.5, 1.0):
        found = bert.embedded(states, share)
        updated = encoder.updated(bert.updates().scaled(share)).encode(TEXTS)
        np.testing.assert_allclose(found, updated, atol=1e-5)
        assert not np.allclose(found, encoder.encode(TEXTS), atol=1e-2)
    np.testing.assert_allclose(bert.embedded(states, 0.0), encoder.encode(TEXTS), atol=2e-6)


def test_texts_may_be_taken_in_any_order(tiny_bert: Path) -> None:
    encoder = load(tiny_bert)
    bert = encoder.trainable()
    states = bert.lower(encoder.token_ids(TEXTS))
    some = np.array([7, 2, 33, 2])
    np.testing.assert_allclose(bert.embedded(states.take(some), 1.0), bert.embedded(states, 1.0)[some], atol=1e-6)


def test_gradients_are_those_of_differences(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from strays.encoders import trainable_bert

    monkeypatch.setattr(trainable_bert, "DROPOUT", 0.0)
    encoder = load(tiny_bert)
    bert = encoder.trainable()
    bert.weights = {name: value.double() for name, value in bert.weights.items()}
    bert.places = bert.places.double()
    for matrices in (bert.down, bert.up):
        for name, value in matrices.items():
            matrices[name] = value.detach().double().requires_grad_()
    moved(bert)
    ids = encoder.token_ids(TEXTS[:8])
    with torch.no_grad():
        x = bert.weights["embeddings.word_embeddings.weight"][torch.tensor([token for text in ids for token in text])]
    states = trainable_bert.States(x, np.array([len(text) for text in ids]))
    wanted = torch.randn(8, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def objective() -> torch.Tensor:
        return (bert.embeddings(states) * wanted).sum()

    objective().backward()
    h = 1e-6
    for parameter in bert.parameters:
        at, gradient = parameter.detach().view(-1), parameter.grad
        assert gradient is not None
        for place in (0, len(at) // 2):
            before = float(at[place])
            at[place] = before + h
            above = objective().item()
            at[place] = before - h
            slope = (above - objective().item()) / (2 * h)
            at[place] = before
            assert gradient.view(-1)[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_the_lower_layers_stay_as_they_are(tiny_bert: Path) -> None:
    names = load(tiny_bert).trainable().updates()
    assert {name.split(".")[2] for name in names} == {"1"}  # of two layers, a third rounded is one
    assert all(not one.up.any() and one.down.any() for one in names.values())


def test_the_seed_decides_alone(tiny_bert: Path) -> None:
    import torch

    encoder = load(tiny_bert)
    bert = encoder.trainable()
    states = bert.lower(encoder.token_ids(TEXTS))

    def drawn(seed: int) -> tuple[str, np.ndarray]:
        bert.begin(seed)
        moved(bert)
        return bert.updates().digest, bert.embeddings(states).detach().numpy()

    first = drawn(5)
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    again = drawn(5)
    assert torch.equal(before, torch.random.get_rng_state())
    assert (again[0], drawn(6)[0] == first[0]) == (first[0], False)
    assert np.array_equal(again[1], first[1])  # dropout, too
    assert not np.array_equal(drawn(6)[1], first[1])


def test_an_encoder_is_tuned_once(tiny_bert: Path) -> None:
    encoder = load(tiny_bert)
    with pytest.raises(UsageError, match="is tuned already"):
        encoder.updated(encoder.trainable().updates()).trainable()
