"""What may be given as texts, and as labels: one column of values, from whatever library it comes.

A list, a tuple, a NumPy array, a Series of pandas or polars, a column of Arrow or of Hugging Face datasets, or a
generator. None of these libraries is imported here: what has columns is known by its attributes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from strays.errors import DataError, StraysWarning


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
        name = {"DataFrame": "df"}.get(kind, kind.lower())
        better = f". Pass {name}[{json.dumps(_likely(columns), ensure_ascii=False)}]" if columns else ""
        raise _refused(
            param,
            f"a {kind} with the column{'s' * (len(columns) != 1)} {_listed(columns)}; expected one column{better}",
        )
    if isinstance(values, str | bytes):
        what = "string" if isinstance(values, str) else kind
        raise _refused(param, f"a single {what}; expected a list. Pass [{param.removesuffix('s')}]")
    if hasattr(type(values), "ndim") and values.ndim != 1:
        shape = tuple(getattr(values, "shape", ()))
        better = f"Pass {param}[:, 0]" if len(shape) == 2 else "Pass an array of one dimension"
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


def _columns(values: Any) -> list[str] | None:
    """The names of a table's columns; None for what is no table."""
    if isinstance(values, Mapping):
        return [str(name) for name in values]
    for attribute in ("column_names", "columns"):  # Arrow and Hugging Face; pandas, polars and Spark
        # Asked of the type: a Series answers for any name in its index.
        if hasattr(type(values), attribute):
            names = getattr(values, attribute)
            return [str(name) for name in names] if isinstance(names, Iterable) else []
    return None


def _listed(columns: list[str], most: int = 8) -> str:
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(repr(name[:60]) for name in columns[:most]) + more


def _likely(columns: list[str]) -> str:
    """The column that most likely holds the texts, to show how to pass it."""
    return next((name for name in columns if "text" in name.lower()), columns[0])


def _refused(param: str, found: str) -> DataError:
    return DataError(f"{{{param}}} is {found}", param=param)
