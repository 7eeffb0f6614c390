"""What may be given as texts, and as labels: one column of values, from whatever library it comes.

A list, a tuple, a NumPy array, a Series of pandas or polars, a column of Arrow or of Hugging Face datasets, or a
generator. None of these libraries is imported here: what has columns is known by its attributes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from strays.errors import DataError, StraysWarning

# Values of a column that are looked at to advise which one to pass.
SAMPLE = 100


def as_list(values: Any, param: str) -> list[Any]:
    """The values of one column; an error says what else was given as `param`, and what to pass instead.

    >>> as_list({"text": ["a"], "id": [1]}, "texts")
    Traceback (most recent call last):
    strays.errors.DataError: texts is a dict with the columns 'text', 'id'; expected one column. Pass dict["text"]
    """
    if type(values) is list:
        return values
    kind = type(values).__name__
    columns = _columns(values)
    if columns is not None:
        likely = _likely({name: _first_values(values, name) for name in columns}, param)
        if likely is None:
            expected = "expected one column of strings"
        else:
            expected = "expected the column itself" if len(columns) == 1 else "expected one column"
            expected += f". Pass {'df' if kind == 'DataFrame' else kind.lower()}[{_quoted(likely)}]"
        raise _refused(param, f"a {kind} {_with_columns(columns)}; {expected}")
    if isinstance(values, str | bytes):
        what = "string" if isinstance(values, str) else kind
        raise _refused(param, f"a single {what}; expected a list. Pass [{param.removesuffix('s')}]")
    if hasattr(type(values), "ndim") and values.ndim != 1:
        shape = tuple(getattr(values, "shape", ()))
        better = "Pass an array of one dimension"
        if len(shape) == 2:
            likely = _likely({i: values[:SAMPLE, i].tolist() for i in range(shape[1])}, param)
            better = f"Pass {param}[:, {likely or 0}]"
        raise _refused(param, f"an array of shape {shape}; expected one column. {better}")
    if isinstance(values, set | frozenset):
        raise _refused(param, f"a {kind}, which has no order; expected a list. Pass sorted({param})")
    if not isinstance(values, Iterable) and not hasattr(values, "__getitem__"):
        raise _refused(param, f"{values!r:.60} ({kind}); expected a list of {param}")
    for method in ("to_pylist", "tolist"):  # Arrow's and NumPy's own scalars become plain values
        if hasattr(type(values), method):
            return list(getattr(values, method)())
    return list(values)


def check_texts(texts: Sequence[str] | Iterable[str], *, param: str = "texts") -> list[str]:
    """The texts as a list of strings; an error names the first entry that is not a string.

    >>> check_texts(["a cat", None])
    Traceback (most recent call last):
    strays.errors.DataError: texts[1] is None, a missing text; expected a string. Drop such entries, or fill them
    """
    values = as_list(texts, param)
    if set(map(type, values)) <= {str}:
        return values
    bad = [i for i, value in enumerate(values) if not isinstance(value, str)]
    if not bad:
        return [str(value) for value in values]
    first = values[bad[0]]
    more = f" ({len(bad):,} entries are no strings)" if len(bad) > 1 else ""
    if is_missing(first):
        found = f"{first!r}, a missing text{more}; expected a string. Drop such entries, or fill them"
    elif isinstance(first, Mapping):
        likely = _likely({name: [first[name]] for name in first}, param)
        better = "" if likely is None else f". Pass [row[{_quoted(likely)}] for row in {param}]"
        found = f"a {type(first).__name__} {_with_columns(list(first))}{more}; expected a string{better}"
    else:
        found = f"{first!r:.60} ({type(first).__name__}){more}; expected a string"
    raise DataError(f"{{{param}}}[{bad[0]}] is {found}", param=param)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none at all: None, NaN, and the NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def warn_of_blank(texts: list[str]) -> None:
    """Warn where some texts are blank: files leave these out, but a list has a score for every entry."""
    n_blank = sum(not text.strip() for text in texts)
    if n_blank:
        found = f"{n_blank:,} of the {len(texts):,} texts {'is' if n_blank == 1 else 'are'} blank"
        warnings.warn(StraysWarning(f"{found} and will count as texts like the others; better drop them"), stacklevel=3)


def require_same_index(texts: Any, labels: Any) -> None:
    """Raise where both come from pandas and their indexes differ: which label is of which text would be a guess."""
    ours: Any = getattr(texts, "index", None)
    theirs: Any = getattr(labels, "index", None)
    if hasattr(ours, "equals") and hasattr(theirs, "equals") and len(ours) == len(theirs) and not ours.equals(theirs):
        at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        raise DataError(
            f"{{texts}} and {{labels}} have different indexes (at position {at}: {ours[at]!r:.60} and "
            f"{theirs[at]!r:.60}); expected the same. Pass labels.loc[texts.index], or lists in the same order",
            param=("texts", "labels"),
        )


def whole_characters(texts: list[str]) -> list[str]:
    """A lone surrogate is no character and cannot be tokenized; the replacement keeps the rest of its text."""
    try:
        "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    return texts


def _columns(values: Any) -> list[Any] | None:
    """The names of a table's columns; None for what is no table."""
    if isinstance(values, Mapping):
        return list(values)
    for attribute in ("column_names", "columns"):  # Arrow and Hugging Face; pandas, polars and Spark
        # Asked of the type: a Series answers for any name in its index.
        if hasattr(type(values), attribute):
            names = getattr(values, attribute)
            return list(names) if isinstance(names, Iterable) else []
    return None


def _first_values(table: Any, name: Any) -> list[Any]:
    """Some values of a table's column; none where it cannot be looked at, such as in a table not yet computed."""
    with suppress(Exception):  # whatever a library raises, the advice it would have improved is still given
        column = table[name]
        return [] if isinstance(column, str) else [getattr(v, "as_py", lambda v=v: v)() for v in islice(column, SAMPLE)]
    return []


def _with_columns(columns: list[Any], most: int = 8) -> str:
    """How messages list the columns of a table."""
    if not columns:
        return "without columns"
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    names = ", ".join(repr(name[:60] if isinstance(name, str) else name) for name in columns[:most])
    return f"with the column{'s' * (len(columns) != 1)} {names}{more}"


def _likely(columns: Mapping[Any, list[Any]], param: str) -> Any:
    """The column to show how to pass one: for texts the one with the longest strings; None where there is none.

    Where no value could be looked at, and for labels, which are short, the name tells.
    """
    if param == "labels" or not any(columns.values()):
        telling = (name for name in columns if param.removesuffix("s") in str(name).lower())
        return next(telling, next(iter(columns), None))
    strings = {name: [len(v) for v in values if isinstance(v, str)] for name, values in columns.items()}
    lengths = {name: sum(found) / len(found) for name, found in strings.items() if found}
    return max(lengths, key=lambda name: lengths[name], default=None)


def _quoted(name: Any) -> str:
    """A column's name as one writes it in Python."""
    return json.dumps(name, ensure_ascii=False) if isinstance(name, str) else repr(name)


def _refused(param: str, found: str) -> DataError:
    return DataError(f"{{{param}}} is {found}", param=param)
