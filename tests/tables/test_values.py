from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strays.tables.values import string_array, strings


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
