"""A file as a corpus to fit on: its texts, their labels, and which rows have none."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from strays.errors import DataError, StraysWarning
from strays.jobs.columns import IdReader, LabelReader, NormalValues
from strays.tables import Table, texts_of


@dataclass(frozen=True)
class Corpus:
    """Texts and labels to fit on. `rows[i]` is the table row of text i; texts known from elsewhere come after those.

    `ids[i]` is what the column `id_column` calls that row; both are None where there is no such column.

    >>> import pyarrow as pa
    >>> table = Table.of(pa.table({"id": ["A1", "A2", "A3"], "text": ["a cat", " ", "a dog"]}))
    >>> corpus = read_corpus(table, known=["a quark"])
    >>> corpus.texts, corpus.labels
    (['a cat', 'a dog', 'a quark'], [None, None, 'anomaly'])
    >>> corpus.rows, corpus.ids
    ([0, 2], ['A1', 'A3'])
    """

    texts: list[str]
    labels: list[str | None]
    rows: list[int]
    n_rows: int
    ids: list[str | None] | None = None
    id_column: str | None = None

    @property
    def n_without_text(self) -> int:
        """Rows that cannot be scored."""
        return self.n_rows - len(self.rows)


def read_corpus(
    table: Table,
    text_column: str | None = None,
    *,
    label_column: str | None = None,
    normal: NormalValues | None = None,
    id_column: str | None = None,
    known: Sequence[str] = (),
    strict: bool = False,
) -> Corpus:
    """All texts of a table, with labels and ids from columns, and with texts known to be anomalies beside them.

    Labels are the words of `label_column`, or what `normal` makes of a column of categories. Where no `id_column` is
    asked for, one named id is used if it tells all rows apart. A row whose text is a known one becomes an anomaly;
    known texts that are in no row are added.
    """
    label_reader = LabelReader(table, label_column, normal)
    id_reader = IdReader(table, id_column, besides=(text_column, label_reader.column))
    text_column = table.text_column(text_column, besides=(label_reader.column, id_reader.column))
    texts: list[str] = []
    labels: list[str | None] = []
    ids: list[str | None] = []
    rows: list[int] = []
    known_texts = dict.fromkeys(known)
    n = 0
    for batch in table.batches():
        columns = texts_of(batch, text_column), label_reader.read(batch, n), id_reader.read(batch)
        for text, label, id_ in zip(*columns, strict=True):
            if text is not None:
                texts.append(text)
                labels.append("anomaly" if text in known_texts else label)
                ids.append(id_)
                rows.append(n)
            elif strict:
                raise no_text(table.name, n)
            n += 1
    label_reader.require_all_seen()
    if n and not rows:
        raise _no_texts(table, text_column)
    if label_column and not any(labels):
        found = (
            f"{table.name}: column {label_column!r:.60} ({{label_column}}) is empty, so that all rows are unlabelled"
        )
        warnings.warn(StraysWarning(found, param="label_column"), stacklevel=2)
    there = set(texts)
    missing = [text for text in known_texts if text not in there]
    shown = id_reader.usable(ids)
    return Corpus(
        texts + missing,
        labels + ["anomaly"] * len(missing),
        rows,
        n,
        ids=shown,
        id_column=id_reader.column if shown else None,
    )


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
