"""Gradients by hand: against finite differences, and against PyTorch where it is installed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from strays.detectors import AISVDD, DeepSAD, DeepSVDD, Detector, HypersphereClassifier, network, training
from strays.detectors.ai_svdd import bc_gradient, bc_loss
from strays.detectors.deep_svdd import mean_square
from strays.detectors.semi_supervised import SemiSupervisedSphere
from strays.detectors.threads import workers
from strays.detectors.training import OPTIMIZERS, Loss, TrainableNetwork, minimise

NEEDS_TORCH = "PyTorch, the reference of the gradients, is not installed (pip install 'strays[torch]')"
N, CENTER = 30, np.array([0.3, -0.2, 0.1])
Y = np.r_[np.ones(24), np.full(6, -0.7)]


def losses(x: np.ndarray) -> dict[str, Loss]:
    """The loss of each detector on latents (N, 3), and the auto-encoder's on rows (N, 5)."""
    found: dict[str, Loss] = {
        "ai-svdd": lambda z, batch: bc_gradient(z, Y.astype(z.dtype)[batch], unit=0.3),
        "deep-svdd": lambda z, batch: mean_square(z - CENTER.astype(z.dtype), len(z)),
        "auto-encoder": lambda z, batch: mean_square(z - x[batch].astype(z.dtype), z.size),
    }
    for cls in (DeepSAD, HypersphereClassifier):
        detector = cls(anomaly_weight=1.7)
        found[cls.__name__] = lambda z, batch, of=detector: of._loss(z - CENTER.astype(z.dtype), Y[batch] < 0, unit=0.8)
    return found


NAMES = list(losses(np.empty(0)))


def made(name: str, activation: str, dtype: type = np.float64) -> tuple[TrainableNetwork, np.ndarray]:
    """A network of two layers, or of two and two for the auto-encoder, and rows for it."""
    rng = np.random.default_rng(0)
    sizes = [5, 9, 3, 8, 5] if name == "auto-encoder" else [5, 9, 3]
    weights = [rng.normal(size=(b, a)).astype(dtype) / 2 for a, b in pairwise(sizes)]
    return TrainableNetwork(weights, network.ACTIVATIONS[activation]), rng.normal(size=(N, 5)).astype(dtype)


def gradient(net: TrainableNetwork, x: np.ndarray, loss_of: Loss) -> tuple[float, np.ndarray]:
    loss, delta = loss_of(net.forward(x), np.arange(len(x)))
    net.backward(delta)
    return loss, net.gradient.copy()


@pytest.mark.parametrize("activation", network.ACTIVATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_differences(name: str, activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "IN_PART", 30)  # several parts
    net, x = made(name, activation)
    loss_of = losses(x)[name]
    _, by_hand = gradient(net, x, loss_of)
    measured = np.empty_like(by_hand)
    for i, w in enumerate(net.vector.copy()):
        sides = []
        for step in (1e-6, -1e-6):
            net.vector[i] = w + step
            sides.append(loss_of(net.forward(x), np.arange(N))[0])
        net.vector[i] = w
        measured[i] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(by_hand, measured, rtol=1e-5, atol=1e-7 * np.abs(by_hand).max())


def test_the_loss_of_training_is_the_definition() -> None:
    z = np.random.default_rng(0).normal(size=(N, 3))
    assert bc_gradient(z, Y, unit=0.3)[0] == pytest.approx(bc_loss(z / 0.3, Y), rel=1e-12)


def test_a_smaller_batch_after_a_larger_one() -> None:
    """Batches differ by a row; what a larger one left in the buffers must not count."""
    net, x = made("deep-svdd", "leaky_relu")
    loss_of = losses(x)["deep-svdd"]
    gradient(net, x, loss_of)
    after_a_larger = gradient(net, x[:7], loss_of)
    fresh = gradient(made("deep-svdd", "leaky_relu")[0], x[:7], loss_of)
    assert after_a_larger[0] == fresh[0]
    np.testing.assert_array_equal(after_a_larger[1], fresh[1])


def test_weight_decay_is_a_penalty_on_the_squared_weights() -> None:
    """Of a loss that is zero the penalty alone is left: lambda/2 |W|^2, whose gradient is lambda W."""
    net, x = made("deep-svdd", "leaky_relu")
    before = net.vector.copy()
    loss = minimise(
        net, x, lambda z, _: (0.0, np.zeros_like(z)), lambda: iter([np.arange(N)]), 0.1, 1,
        optimizer="sgd", weight_decay=0.5,
    )  # fmt: skip
    assert loss == [pytest.approx(0.25 * before @ before)]
    np.testing.assert_allclose(net.vector, before - 0.1 * 0.5 * before, rtol=1e-12)


@pytest.mark.parametrize("cls", [AISVDD, DeepSVDD, DeepSAD, HypersphereClassifier])
def test_the_same_seed_gives_the_same_weights(cls: type[Any], blobs) -> None:
    X, y, *_ = blobs
    one, again, other = (cls(hidden_size=64, latent_size=8, random_state=seed).fit(X, y).weights_ for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("cls", [AISVDD, DeepSVDD, DeepSAD, HypersphereClassifier])
def test_threads_do_not_change_the_weights(cls: type[Any], blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "IN_PART", 500)
    monkeypatch.setattr(training, "AT_ONCE", 500)
    X, y, *_ = blobs
    found = []
    for n_threads in (1, 2, 5):
        with threadpool_limits(n_threads, "blas"):
            found.append(cls(hidden_size=64, latent_size=8, random_state=0).fit(X, y))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0].weights_, other.weights_, strict=True))


def test_an_error_in_a_thread_is_raised() -> None:
    with threadpool_limits(3, "blas"), workers() as each, pytest.raises(ZeroDivisionError):
        each(lambda piece: 1 / piece, [1, 1, 0])


# ---- against PyTorch -------------------------------------------------------------------------------------------------


def torch_phi(x: Any, weights: list[Any], activation: str) -> Any:
    import torch

    for into, out_of in zip(weights[::2], weights[1::2], strict=True):
        x = torch.nn.functional.leaky_relu(x @ into.T, network.ACTIVATIONS[activation]) @ out_of.T
    return x


def torch_bc_loss(z: Any, y: Any) -> Any:
    """Eq. 6 to the letter."""
    import torch

    return (y[:, None] * y * torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist") ** 2).sum() / (
        2 * len(y) * y.sum()
    )


def torch_semi_supervised(detector: SemiSupervisedSphere, z: Any, c: Any, anomaly: Any, unit: float) -> Any:
    """The two methods' papers, with what keeps a loss finite at the centre."""
    import torch

    d2 = ((z - c) ** 2).sum(1) / unit**2
    if isinstance(detector, DeepSAD):
        normal, of_anomaly = d2, 1 / (d2 + 1e-3)
    else:
        normal = torch.sqrt(d2 + 1) - 1
        of_anomaly = -torch.log(1 - torch.exp(-normal) + 1e-6)
    loss = normal[~anomaly].mean()
    return loss + detector.anomaly_weight * of_anomaly[anomaly].mean() if anomaly.any() else loss


def torch_loss(name: str, z: Any, x: Any) -> Any:
    import torch

    c = torch.tensor(CENTER, dtype=z.dtype)
    if name == "ai-svdd":
        return torch_bc_loss(z / 0.3, torch.tensor(Y, dtype=z.dtype))
    if name == "deep-svdd":
        return ((z - c) ** 2).sum(1).mean()
    if name == "auto-encoder":
        return torch.nn.functional.mse_loss(z, x)
    cls = {"DeepSAD": DeepSAD, "HypersphereClassifier": HypersphereClassifier}[name]
    return torch_semi_supervised(cls(anomaly_weight=1.7), z, c, torch.from_numpy(Y < 0), 0.8)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 2e-6)])
@pytest.mark.parametrize("activation", network.ACTIVATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_autograds(name: str, activation: str, dtype: type, tolerance: float) -> None:
    torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
    net, x = made(name, activation, dtype)
    loss, by_hand = gradient(net, x, losses(x)[name])
    # float32 is held to autograd in float64: two roundings in float32 would differ by more.
    weights = [torch.tensor(w.astype(np.float64), requires_grad=True) for w in net.weights]
    x64 = torch.tensor(x.astype(np.float64))
    reference = torch_loss(name, torch_phi(x64, weights, activation), x64)
    expected = torch.cat([g.ravel() for g in torch.autograd.grad(reference, weights)]).numpy()
    assert loss == pytest.approx(reference.item(), rel=tolerance)
    assert by_hand.dtype == dtype
    np.testing.assert_allclose(by_hand, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimisers_are_pytorchs(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
    monkeypatch.setattr(training, "AT_ONCE", 64)  # more than one block, the last of them short
    rng = np.random.default_rng(0)
    vector = rng.normal(size=200)
    theirs = torch.tensor(vector, requires_grad=True)
    given = np.empty(200)
    ours = OPTIMIZERS[optimizer](vector, given, 1e-3)
    reference = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer]([theirs], lr=1e-3)
    for _ in range(60):
        # From far above Adam's epsilon to far below it.
        given[:] = rng.normal(size=200) * np.logspace(2, -12, 200)
        theirs.grad = torch.from_numpy(given.copy())
        ours.step()
        reference.step()
    np.testing.assert_allclose(vector, theirs.detach().numpy(), rtol=1e-12)


def minimise_in_torch(detector: Any, y: np.ndarray, dtype: Any) -> Callable[..., list[float]]:
    """`minimise` for a detector with autograd, PyTorch's optimisers and the losses as the papers print them."""
    import torch

    def reference(
        net: TrainableNetwork, rows: np.ndarray, _: Loss, batches: Any, rate: float, epochs: int,
        min_steps: int = 0, *, optimizer: str = "adam", weight_decay: float = 0.0, unit_norm: bool = False,
    ) -> list[float]:  # fmt: skip
        activation, start = detector.activation, [w.astype(np.float64) for w in net.weights]
        W = [torch.tensor(w, dtype=dtype, requires_grad=True) for w in start]
        X = torch.tensor(rows, dtype=dtype)
        step = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer](W, lr=rate)
        spread = network.spread(rows[y >= 0] if len(rows) == len(y) else rows, start, activation)
        c = torch.tensor(network.phi(rows, start, activation)[y[: len(rows)] >= 0].mean(axis=0), dtype=dtype)

        def loss_of(batch: np.ndarray) -> Any:
            z = torch_phi(X[batch], W, activation)
            if isinstance(detector, AISVDD):
                unit = spread if optimizer == "adam" else 1.0
                return torch_bc_loss(z / unit, torch.tensor(detector._signed_weights(y[batch]), dtype=dtype))
            if isinstance(detector, SemiSupervisedSphere):
                return torch_semi_supervised(detector, z, c, torch.from_numpy(y[batch] < 0), spread)
            if len(W) == 4:
                return torch.nn.functional.mse_loss(z, X[batch])
            return ((z - c) ** 2).sum(1).mean() + weight_decay / 2 * sum((w**2).sum() for w in W)

        history: list[float] = []
        steps = 0
        while len(history) < epochs or steps < min_steps:
            seen = []
            for batch in batches():
                step.zero_grad()
                loss = loss_of(batch)
                loss.backward()
                step.step()
                with torch.no_grad():
                    for w in W if unit_norm else []:
                        w /= w.norm()
                seen.append(loss.item())
            history.append(float(np.mean(seen)))
            steps += len(seen)
        net.vector[:] = torch.cat([w.detach().ravel() for w in W]).numpy()
        return history

    return reference


DETECTORS: list[Any] = [
    AISVDD(learning_rate=1e-4, min_steps=40),
    AISVDD(activation="relu", anomaly_weight=None, learning_rate=1e-3, epochs=10),
    AISVDD(optimizer="sgd", learning_rate=0.1, epochs=10),
    DeepSVDD(weight_decay=0.01),
    DeepSVDD(activation="relu", batch_size=33),
    DeepSAD(min_steps=40),
    DeepSAD(activation="linear", anomaly_weight=3.0, min_steps=40),
    HypersphereClassifier(min_steps=40),
    HypersphereClassifier(activation="relu", batch_size=50, min_steps=40),
]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("given", DETECTORS, ids=lambda d: f"{type(d).__name__}-{d.activation}")
def test_whole_trainings_are_pytorchs(given: Detector, labelled: bool, blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of steps with the same batches, in float64, where nothing but a difference in method shows."""
    torch = pytest.importorskip("torch", reason=NEEDS_TORCH)
    X, y = blobs[0], blobs[1] if labelled else np.zeros(len(blobs[0]))
    settings = {**dataclasses.asdict(given), "hidden_size": 24, "latent_size": 6, "random_state": 0}  # type: ignore[call-overload]
    monkeypatch.setattr(np, "float32", np.float64)
    ours = type(given)(**settings).fit(X, y)
    theirs = type(given)(**settings)
    module = "semi_supervised" if isinstance(given, SemiSupervisedSphere) else type(given).__module__.split(".")[-1]
    monkeypatch.setattr(
        f"strays.detectors.{module}.minimise",
        minimise_in_torch(theirs, y[y >= 0] if module == "deep_svdd" else y, torch.float64),
    )
    theirs.fit(X, y)
    for a, b in zip(ours.weights_, theirs.weights_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7 * np.abs(b).max())
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-7)
    np.testing.assert_allclose(ours.anomaly_score(X), theirs.anomaly_score(X), rtol=1e-6)
