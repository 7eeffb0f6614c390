from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.tables.values import integers, masked_array, string_array, strings


@given(st.lists(st.none() | st.text()))
@settings(deadline=None)
def test_an_array_of_strings_is_arrows_own(values: list[str | None]) -> None:
    found = string_array(values)
    found.validate(full=True)
    assert found.equals(pa.array(values, pa.string()))
    assert found.null_count == values.count(None)
    assert strings(found) == values


def test_half_a_character_is_refused_as_arrow_refuses_it() -> None:
    with pytest.raises(UnicodeEncodeError):
        string_array(["\ud800"])


@pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_strings_of_other_types(type_: pa.DataType) -> None:
    assert strings(pa.array(["a", None, "b"]).cast(type_)) == ["a", None, "b"]
    assert strings(pa.array([1, None])) == ["1", None]


@pytest.mark.parametrize("dtype", [np.float64, bool, object])
def test_an_array_with_a_mask_is_arrows_own(dtype: type) -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 8, 9, 3000):
        values, absent = rng.integers(0, 2, n).astype(dtype), rng.random(n) < 0.3
        if dtype is object:
            values = np.where(values == 1, "full", "fast").astype(object)
        found = masked_array(values, absent)
        found.validate(full=True)
        assert found.equals(pa.array(values, found.type, mask=absent))


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint8(), pa.int32(), pa.uint16(), pa.int64()])
def test_whole_numbers_of_a_slice(type_: pa.DataType) -> None:
    column = pa.array(range(20), type_)
    for piece in (column, column[3:], column[5:9], column[20:], column.slice(0, 0), pa.array([], type_)):
        found = integers(piece)
        assert found.dtype == piece.to_numpy().dtype
        assert np.array_equal(found, piece.to_numpy())
