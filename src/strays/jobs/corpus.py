"""A file as a corpus to fit on: its texts, their labels, and which rows have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strays.errors import DataError
from strays.model.labels import parse_labels
from strays.tables import Table, texts_of


@dataclass(frozen=True)
class Corpus:
    """Texts and labels to fit on. `rows[i]` is the table row of text i; texts known from elsewhere come after those.

    >>> import pyarrow as pa
    >>> read_corpus(Table.of(pa.table({"text": ["a cat", " ", "a dog"]})), known=["a quark"])
    Corpus(texts=['a cat', 'a dog', 'a quark'], labels=[None, None, 'anomaly'], rows=[0, 2], n_rows=3)
    """

    texts: list[str]
    labels: list[str | None]
    rows: list[int]
    n_rows: int

    @property
    def n_without_text(self) -> int:
        """Rows that cannot be scored."""
        return self.n_rows - len(self.rows)


def read_corpus(
    table: Table,
    text_column: str | None = None,
    *,
    label_column: str | None = None,
    known: Sequence[str] = (),
    strict: bool = False,
) -> Corpus:
    """All texts of a table, with the labels of a column, and with texts known to be anomalies beside them.

    A row whose text is a known one becomes an anomaly; known texts that are in no row are added.
    """
    if label_column is not None:
        table.require_column(label_column, param="label_column")
    text_column = table.text_column(text_column, besides=(label_column,))
    texts: list[str] = []
    labels: list[str | None] = []
    rows: list[int] = []
    known_texts = dict.fromkeys(known)
    n = 0

    def place(i: int) -> str:
        return f"{table.name}, row {n + i + 1}: the label in column {label_column!r}"

    for batch in table.batches():
        column = batch.column(label_column).to_pylist() if label_column else [None] * len(batch)
        parse_labels(column, len(column), place)
        for text, label in zip(texts_of(batch, text_column), column, strict=True):
            if text is not None:
                texts.append(text)
                labels.append("anomaly" if text in known_texts else label)
                rows.append(n)
            elif strict:
                raise no_text(table.name, n)
            n += 1
    if n and not rows:
        raise _no_texts(table, text_column)
    there = set(texts)
    missing = [text for text in known_texts if text not in there]
    return Corpus(texts + missing, labels + ["anomaly"] * len(missing), rows, n)


def read_texts(table: Table, text_column: str) -> list[str]:
    """All texts of a table; rows without one are left out."""
    texts = [text for batch in table.texts(text_column) for text in batch if text is not None]
    if not texts:
        raise _no_texts(table, text_column)
    return texts


def _no_texts(table: Table, column: str) -> DataError:
    return DataError(f"{table.name}: no row has a text in column {column!r}; expected at least one")


def no_text(name: str, row: int) -> DataError:
    """The error for a row without a text, where every row must have one."""
    return DataError(
        f"{name}, row {row + 1}: there is no text, which {{strict}} does not allow; fill it, or omit {{strict}}",
        param="strict",
    )
