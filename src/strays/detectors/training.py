"""Training in NumPy: what a loss says of the latents goes back through the layers, and an optimiser follows it.

    h = a(W^1 x),  z = W^2 h,  with a(h) = max(h, slope * h); z may be the x of a next pair of layers, a decoder
    dL/dW^2 = delta' h,  dL/dW^1 = gamma' x,  dL/dx = gamma W^1,  with delta = dL/dz and gamma = (delta W^2) * a'(h)

A detector gives L and dL/dz. Everything has the dtype of the first weights: float32 in a fit, float64 in tests.

The hidden units are cut into parts for threads to share: of each other they need only the sum of what they add to z and
to dL/dx. The parts do not depend on how many threads there are, so that the weights do not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from strays.detectors.threads import Each, in_turn, workers

# From latents of a batch (rows, latent_size) and the numbers of its rows: the loss, and its gradient by the latents.
Loss = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]

# Weights in a part, about: enough to be worth a thread.
IN_PART = 2**17
# Weights that Adam takes at once: few enough for a processor's cache, as it goes over them ten times.
AT_ONCE = 2**16


class TrainableNetwork:
    """A network under training: one or more pairs of layers, their gradients, and room for a batch on its way.

    All weights are parts of one `vector`, all gradients of one `gradient`, which is what an optimiser sees.

    >>> net = TrainableNetwork([np.array([[2.0], [-1.0]]), np.array([[1.0, 3.0]])], slope=0.0)
    >>> net.forward(np.array([[5.0]]))  # 1 * max(2 * 5, 0) + 3 * max(-1 * 5, 0)
    array([[10.]])
    >>> net.backward(np.array([[1.0]]))
    >>> net.gradient
    array([ 5.,  0., 10.,  0.])
    """

    def __init__(self, weights: Sequence[np.ndarray], slope: float) -> None:
        self.vector = np.concatenate([w.ravel() for w in weights])
        self.gradient = np.zeros_like(self.vector)
        self.weights, self.gradients = (_in_layers(v, weights) for v in (self.vector, self.gradient))
        self._pairs: list[list[_Units]] = []
        for first in range(0, len(weights), 2):
            W, G = self.weights[first : first + 2], self.gradients[first : first + 2]
            parts = _parts(len(W[0]), (W[0].size + W[1].size) / IN_PART)
            self._pairs.append([_Units(W[0][u], W[1][:, u], G[0][u], G[1][:, u], slope) for u in parts])

    def forward(self, x: np.ndarray, each: Each = in_turn) -> np.ndarray:
        """The latents z of rows x. They are overwritten by the next batch."""
        self._inputs = [x]
        for pair in self._pairs:
            each(partial(_Units.forward, x=self._inputs[-1]), pair)
            self._inputs.append(_sum([units.z for units in pair]))
        return self._inputs[-1]

    def backward(self, delta: np.ndarray, each: Each = in_turn) -> None:
        """Set the gradients from delta = dL/dz, of the rows that went forward last."""
        for i in reversed(range(len(self._pairs))):
            pair = self._pairs[i]
            each(partial(_Units.backward, x=self._inputs[i], delta=delta), pair)
            if i:
                delta = _sum([units.to_inputs() for units in pair])

    def trained(self) -> list[np.ndarray]:
        """float64 copies of the weights, for scoring."""
        return [w.astype(np.float64) for w in self.weights]


class _Units:
    """Some hidden units: rows of W^1 and columns of W^2, their gradients, and what a batch makes of them."""

    def __init__(self, W1: np.ndarray, W2: np.ndarray, G1: np.ndarray, G2: np.ndarray, slope: float) -> None:
        self._W1, self._W2, self._G1, self._G2, self._slope = W1, W2, G1, G2, slope
        self._make_room(0)

    def _make_room(self, n: int) -> None:
        (hidden, inputs), outputs = self._W1.shape, len(self._W2)
        sizes = {"h": hidden, "gamma": hidden, "spare": hidden, "z": outputs, "to_x": inputs}
        self._room = {name: np.empty((n, size), self._W1.dtype) for name, size in sizes.items()}

    def _buffer(self, name: str) -> np.ndarray:
        return self._room[name][: self._n]

    def forward(self, x: np.ndarray) -> None:
        """Set z to what these units add to it."""
        self._n = len(x)
        if self._n > len(self._room["h"]):
            self._make_room(self._n)
        h = np.matmul(x, self._W1.T, out=self._buffer("h"))
        np.maximum(h, np.multiply(h, self._slope, out=self._buffer("spare")), out=h)
        self.z = np.matmul(h, self._W2.T, out=self._buffer("z"))

    def backward(self, x: np.ndarray, delta: np.ndarray) -> None:
        """Set the gradients."""
        h = self._buffer("h")
        np.matmul(delta.T, h, out=self._G2)
        gamma = np.matmul(delta, self._W2, out=self._buffer("gamma"))
        factors = np.greater(h, 0, out=self._buffer("spare"))  # h is positive where it was before its activation
        gamma *= np.maximum(factors, self._slope, out=factors)
        np.matmul(gamma.T, x, out=self._G1)

    def to_inputs(self) -> np.ndarray:
        """What these units add to dL/dx."""
        return np.matmul(self._buffer("gamma"), self._W1, out=self._buffer("to_x"))


def _sum(arrays: list[np.ndarray]) -> np.ndarray:
    """Into the first of them."""
    for array in arrays[1:]:
        arrays[0] += array
    return arrays[0]


def _parts(n: int, count: float) -> list[slice]:
    """0 to n, in about `count` parts of nearly equal size."""
    bounds = np.linspace(0, n, max(1, round(count)) + 1).astype(int).tolist()
    return [slice(*bound) for bound in pairwise(bounds)]


def _in_layers(vector: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The parts of a vector, shaped like the weights."""
    ends = np.cumsum([w.size for w in weights])
    return [vector[end - w.size : end].reshape(w.shape) for end, w in zip(ends, weights, strict=True)]


class Adam:
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015; in place, PyTorch's to rounding.

        m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
        w <- w - rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)

    Kept are m / (1 - b1) and v / (1 - b2), which saves two products.
    """

    b1, b2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, vector: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        self._rate, self._steps = rate, 0
        arrays = vector, gradient, *(np.zeros_like(vector) for _ in ("m", "v", "what is between"))
        self._blocks = [tuple(a[part] for a in arrays) for part in _parts(len(vector), len(vector) / AT_ONCE)]

    def step(self, each: Each = in_turn) -> None:
        """Move the weights by what the gradient has now."""
        self._steps += 1
        root = ((1 - self.b2) / (1 - self.b2**self._steps)) ** 0.5
        rate, epsilon = self._rate * (1 - self.b1) / (1 - self.b1**self._steps) / root, self.epsilon / root

        def move(block: tuple[np.ndarray, ...]) -> None:
            w, g, m, v, step = block
            m *= self.b1
            m += g
            v *= self.b2
            v += np.multiply(g, g, out=step)
            np.sqrt(v, out=step)
            step += epsilon
            np.divide(m, step, out=step)
            step *= rate
            w -= step

        each(move, self._blocks)


class SGD:
    """The plain gradient step, w <- w - rate * g; in place."""

    def __init__(self, vector: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        self._vector, self._gradient, self._rate = vector, gradient, rate

    def step(self, each: Each = in_turn) -> None:
        """Move the weights by what the gradient has now, which is used up."""
        self._gradient *= self._rate
        self._vector -= self._gradient


OPTIMIZERS: dict[str, type[Adam] | type[SGD]] = {"adam": Adam, "sgd": SGD}


@np.errstate(all="ignore")
def minimise(
    net: TrainableNetwork,
    rows: np.ndarray,
    loss_of: Loss,
    batches: Callable[[], Iterator[np.ndarray]],
    learning_rate: float,
    epochs: int,
    min_steps: int = 0,
    *,
    optimizer: str = "adam",
    weight_decay: float = 0.0,
    unit_norm: bool = False,
) -> list[float]:
    """Train the network on batches of row numbers; batches() starts an epoch. Returns the mean loss of each epoch.

    Goes on for further epochs until min_steps batches were seen. weight_decay adds weight_decay/2 |W|^2 to the loss.
    With unit_norm every step ends with each layer divided by its Frobenius norm. Weights may end up as NaN: the caller
    looks at what it got.
    """
    step = OPTIMIZERS[optimizer](net.vector, net.gradient, learning_rate)
    history: list[float] = []
    steps = 0
    with workers() as each:
        while len(history) < epochs or steps < min_steps:
            losses = []
            for batch in batches():
                loss, delta = loss_of(net.forward(rows[batch], each), batch)
                net.backward(delta, each)
                if weight_decay:
                    loss += weight_decay / 2 * float(net.vector @ net.vector)
                    net.gradient += weight_decay * net.vector
                step.step(each)
                for w in net.weights if unit_norm else []:
                    w *= np.vdot(w, w) ** -0.5
                losses.append(loss)
            history.append(float(np.mean(losses)))
            steps += len(losses)
    return history
