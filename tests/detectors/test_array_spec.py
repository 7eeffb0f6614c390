from __future__ import annotations

import numpy as np
import pytest

from strays.detectors.array_spec import WHOLE, ArraySpec, check_arrays
from strays.encoders.settings import whole_number
from strays.errors import ModelError

EXPECTED = {"rows": ArraySpec(("n", "d"), fewest=2), "center": ArraySpec(("d",)), "k": ArraySpec((), WHOLE, low=1)}
FITTING = {"rows": np.zeros((3, 2)), "center": np.zeros(2), "k": np.array(5)}


def test_arrays_that_fit() -> None:
    check_arrays(FITTING, EXPECTED)
    check_arrays(FITTING | {"other": np.array(["x"])}, EXPECTED)
    check_arrays({"a": np.array([np.nan, 1.0])}, {"a": ArraySpec(("n",), may_be_nan=True)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"center": np.zeros(3)}, r"'center' has the shape \(3,\) and type float64; expected \(2\) of float64"),
        ({"rows": np.zeros((1, 2))}, r"expected \(2 or more, 2\)"),
        ({"rows": np.zeros(2)}, "has the shape"),
        ({"rows": np.zeros((3, 2), np.float32)}, "type float32"),
        ({"k": np.array(0)}, "'k' holds 0; expected numbers from 1"),
        ({"k": np.array([5])}, "has the shape"),
        ({"center": np.array([0, np.nan])}, "holds nan"),
        ({"center": np.array([0, 1e300])}, r"holds 1e\+300"),
    ],
)
def test_arrays_that_do_not(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_arrays(FITTING | change, EXPECTED)


def test_arrays_that_are_missing_or_out_of_order() -> None:
    with pytest.raises(ModelError, match="no array 'center'"):
        check_arrays({"rows": np.zeros((3, 2)), "k": np.array(5)}, EXPECTED)
    with pytest.raises(ModelError, match=r"holds 1\.0 after 2\.0; expected ascending"):
        check_arrays({"a": np.array([0, 2.0, 1.0])}, {"a": ArraySpec(("n",), ascending=True)})


def test_whole_numbers() -> None:
    assert whole_number(3, 1, 5)
    assert not any(whole_number(value, 1, 5) for value in (0, 6, True, 2.0, "3", None))
