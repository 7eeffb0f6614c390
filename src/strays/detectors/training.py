"""Training in NumPy: what a loss says of the latents goes back through the layers, and an optimiser follows it.

    h_0 = x,  h_l = a_l(W^l h_(l-1)),  z = h_L,  with a_l(h) = max(h, slope_l h) and a_L the identity
    dL/dW^l = delta_l' h_(l-1),  delta_L = dL/dz,  delta_(l-1) = (delta_l W^l) * a'_(l-1)

A detector gives L and dL/dz. Everything has the dtype of the first weights: float32 in a fit, float64 in tests.

Work is cut into pieces, rows of a batch and outputs of a layer, for threads to share. The cuts do not depend on how
many threads there are, so that the weights do not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from strays.detectors.threads import Each, in_turn, workers

# From latents of a batch (rows, latent_size) and the numbers of its rows: the loss, and its gradient by the latents.
Loss = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]

# Parameters in a piece of work, about: few enough for a processor's cache, as Adam goes over them ten times.
AT_ONCE = 2**16
# Rows in a piece of work, about.
ROWS_AT_ONCE = 64


class TrainableNetwork:
    """A network under training: weights, their gradients, and room for a batch on its way through the layers.

    `slopes` has what is left of a negative output for each layer but the last. All weights are parts of one `vector`,
    all gradients of one `gradient`, which is what an optimiser sees.

    >>> net = TrainableNetwork([np.array([[2.0], [-1.0]]), np.array([[1.0, 3.0]])], slopes=[0.0])
    >>> net.forward(np.array([[5.0]]))  # 1 * max(2 * 5, 0) + 3 * max(-1 * 5, 0)
    array([[10.]])
    >>> net.backward(np.array([[1.0]]))
    >>> net.gradient
    array([ 5.,  0., 10.,  0.])
    """

    def __init__(self, weights: Sequence[np.ndarray], slopes: Sequence[float]) -> None:
        self.vector = np.concatenate([w.ravel() for w in weights])
        self.gradient = np.zeros_like(self.vector)
        self.weights, self.gradients = (_in_layers(v, weights) for v in (self.vector, self.gradient))
        self._slopes = slopes
        self._blocks = [(layer, part) for layer, w in enumerate(weights) for part in _parts(len(w), w.size / AT_ONCE)]
        self._make_room(0)

    def forward(self, x: np.ndarray, each: Each = in_turn) -> np.ndarray:
        """The latents z of rows x. They are overwritten by the next batch."""
        if len(x) > len(self._rooms[0]):
            self._make_room(len(x))
        self._inputs = [x, *(room[: len(x)] for room in self._rooms)]
        each(self._forward, _parts(len(x), len(x) / ROWS_AT_ONCE))
        return self._inputs[-1]

    def _forward(self, rows: slice) -> None:
        for layer, w in enumerate(self.weights):
            h = np.matmul(self._inputs[layer][rows], w.T, out=self._inputs[layer + 1][rows])
            if layer < len(self._slopes) and self._slopes[layer] != 1:
                np.maximum(h, np.multiply(h, self._slopes[layer], out=self._spare[layer][rows]), out=h)

    def backward(self, delta: np.ndarray, each: Each = in_turn) -> None:
        """Set the gradients from delta = dL/dz, of the rows that went forward last."""
        self._deltas = [*(room[: len(delta)] for room in self._delta_rooms), delta]
        each(self._backward, _parts(len(delta), len(delta) / ROWS_AT_ONCE))
        each(self._set_gradient, self._blocks)

    def _backward(self, rows: slice) -> None:
        for layer in range(len(self._slopes) - 1, -1, -1):
            delta = np.matmul(self._deltas[layer + 1][rows], self.weights[layer + 1], out=self._deltas[layer][rows])
            if self._slopes[layer] != 1:
                # h = a(W h) is positive where W h is.
                factors = np.greater(self._inputs[layer + 1][rows], 0, out=self._spare[layer][rows])
                delta *= np.maximum(factors, self._slopes[layer], out=factors)

    def _set_gradient(self, block: tuple[int, slice]) -> None:
        layer, outputs = block
        np.matmul(self._deltas[layer][:, outputs].T, self._inputs[layer], out=self.gradients[layer][outputs])

    def trained(self) -> list[np.ndarray]:
        """float64 copies of the weights, for scoring."""
        return [w.astype(np.float64) for w in self.weights]

    def _make_room(self, n: int) -> None:
        """For outputs of all layers, and for the deltas of all but the last, whose delta is given."""
        self._rooms, deltas, spare = ([np.empty((n, len(w)), w.dtype) for w in self.weights] for _ in range(3))
        self._delta_rooms, self._spare = deltas[:-1], spare[:-1]


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
