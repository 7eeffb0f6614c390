"""How unusual the form of a row is, from columns that describe it, beside those of the normal rows.

The first column is the rarity of a text's letters, of which higher is odder; of the others either end is odd. With m_j
the median of column j over the normals, and s_j its deviation as the distance from the tenth to the ninetieth percent
tells it (but at least LEAST_UNIT of the plain deviation),

    form(x) = RARITY clip(z_0, -MOST, MOST) + TAIL sum_{j > 0} log max(|z_j| / USUAL, 1),     z_j = (x_j - m_j) / s_j

in units of the distances' deviation over the normals. Both terms are bounded, or nearly: in many a corpus a few normal
texts are of a very odd form, and must not come before what is off the subject. That z, unlike a rank, hardly falls
where a twentieth of the normals are odd in the same way.

How much the form should count depends on what the distances can tell. Texts about one subject point in few directions,
and those off the subject in others; texts about anything point in many. With S the covariance of normal embeddings,

    c = min((D / MANY)^2, MOST_TRUST),   D = tr(S)^2 / tr(S^2),   the number of directions if all were equal

which is taken without the bias of few rows: of n, 1 / D comes out 1 / n too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Chosen on eleven corpora; see benchmarks/LOG.md.
RARITY, MOST, TAIL, USUAL, LEAST_UNIT = 0.5, 1.5, 0.4, 3.0, 0.2
MANY, LEAST_TRUST, MOST_TRUST = 90.0, 0.01, 1.25
# A tenth and nine tenths of a normal distribution are so many deviations apart.
TENTHS_APART = 2.563


def trust_in_form(Z: np.ndarray) -> float:
    """c, for normal rows that are centred and scaled.

    >>> rng = np.random.default_rng(0)
    >>> round(trust_in_form(rng.normal(size=(500, 30))), 2), trust_in_form(rng.normal(size=(500, 300)))
    (0.11, 1.25)
    """
    S = Z.T @ Z / len(Z)
    one_in_directions = float((S * S).sum()) / float(np.trace(S)) ** 2 - 1 / len(Z)
    return float(np.clip((1 / max(one_in_directions * MANY, 1e-9)) ** 2, LEAST_TRUST, MOST_TRUST))


@dataclass(frozen=True, eq=False)
class FormPart:
    """The middle m and the unit s of every column over the normal rows.

    >>> part = FormPart.of(np.column_stack([np.arange(101.0), np.arange(101.0)]))
    >>> part.at(np.array([[50.0, 50.0], [99.0, 50.0], [50.0, 999.0]])).round(2)
    array([0.  , 0.75, 0.93])
    """

    middle: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, normals: np.ndarray) -> FormPart:
        """From the columns of the normal rows."""
        low, middle, high = np.quantile(normals, (0.1, 0.5, 0.9), axis=0)
        least = np.maximum(LEAST_UNIT * normals.std(axis=0, dtype=np.float64), 1e-9)
        return cls(middle, np.maximum((high - low) / TENTHS_APART, least))

    def at(self, columns: np.ndarray) -> np.ndarray:
        """form(x) of rows."""
        return self.shares(columns).sum(axis=1)

    def shares(self, columns: np.ndarray) -> np.ndarray:
        """What each column adds: (rows, columns)."""
        z = (columns - self.middle) / self.unit
        first = RARITY * z[:, :1].clip(-MOST, MOST)
        return np.hstack([first, TAIL * np.log(np.maximum(np.abs(z[:, 1:]) / USUAL, 1))])
