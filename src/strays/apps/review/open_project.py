"""From a file, or a project of one, to a desk: read, compare with the project, encode, rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from strays.apps.review.database import is_sqlite
from strays.apps.review.desk import Desk
from strays.apps.review.learner import Learner
from strays.apps.review.store import MOST_ROWS, Entry, LabelStore
from strays.detectors import detector_class
from strays.encoders import Fetch, LoadedEncoder, load_encoder
from strays.encoders.cut_texts import gather_cut_texts
from strays.encoders.settings import EncoderSettings
from strays.errors import DataError, ModelError, Note, StraysWarning, UsageError
from strays.files import mode_like, real_path
from strays.jobs.columns import NormalValues
from strays.jobs.corpus import Corpus, read_corpus
from strays.jobs.score import OpenProgress
from strays.model import TextOutlierDetector
from strays.model.scoring import embed
from strays.tables import Table, open_table

ENDING = ".strays"


def is_project(file: str) -> bool:
    """Whether a file is a project rather than a table."""
    path = Path(file)
    return file != "-" and path.is_file() and (path.suffix == ENDING or is_sqlite(path))


def project_of(file: str, project: str | None) -> Path:
    """Where the project of a file is, or is to be."""
    if is_project(file):
        if project is not None and real_path(project) != real_path(file):
            raise UsageError(
                f"{file} is a project already; omit {{project}}, or name the file of texts instead", param="project"
            )
        return Path(file)
    if project is None and file == "-":
        raise UsageError(
            "verdicts on texts from stdin need a file to be kept in; name it with {project}", param="project"
        )
    return Path(project) if project is not None else Path(f"{Path(file)}{ENDING}")


def open_desk(
    file: str,
    *,
    project: str | None = None,
    model: str | None = None,
    known: list[str] | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    normal: NormalValues | None = None,
    id_column: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    encoder: dict[str, Any] | None = None,
    detector: str | None = None,
    device: str = "auto",
    allow_download: bool = False,
    seed: int = 0,
    every: int = 5,
    progress: OpenProgress,
    tell: Callable[[Note], object] = lambda note: None,
) -> Desk:
    """A desk with its first ranking made. `encoder` are settings that were asked for, which must be the project's."""
    path = project_of(file, project)
    is_new = not path.exists()
    if detector is not None:
        detector_class(detector)
    columns = {"text_column": text_column, "label_column": label_column, "normal": normal, "id_column": id_column}
    if is_project(file) and any(columns.values()):
        raise UsageError(f"{file} is a project, which has no columns; name the file of texts to read it anew")
    store = LabelStore(path) if path.exists() else None
    try:
        corpus = None
        if not is_project(file):
            table = open_table(file, format, text_column=text_column, delimiter=delimiter, sheet=sheet)
            corpus = _read(table, columns, store, tell)
        base, used = _encoder(store, model, encoder or {}, device, allow_download)
        if base:
            _check_base(base, detector)
        store = store or LabelStore(path, mode_like(file))
        _put(store, file, corpus, known or [])
        texts = store.texts()
        if not texts:
            raise DataError(
                f"{path}: the project holds no texts; open the file of texts, with this file as its {{project}}",
                param="project",
            )
        all_texts = [entry.text for entry in texts.values()]
        with gather_cut_texts(), progress("encoding") as show:
            X = embed(used, all_texts, show)
        used = used.without_warnings()  # what is said of the corpus need not be said of each text that is explained
        base = base.with_encoder(used) if base else None
        kept = store.settings()
        store.set(
            encoder=used.pinned.to_dict(),
            fingerprint=used.fingerprint,
            detector=base.info()["detector"]["name"] if base else detector or kept.get("detector", "auto"),
            model=str(real_path(model)) if model else kept.get("model"),
        )
        learner = Learner(all_texts, X, used, store.settings()["detector"], base=base, random_state=seed)
        with progress("fitting"):
            return Desk(store, texts, learner, every=every)
    except BaseException:
        if store:
            store.close()
        if is_new:  # a command that failed leaves nothing behind
            path.unlink(missing_ok=True)
        raise


def _check_base(base: TextOutlierDetector, detector: str | None) -> None:
    if detector is not None:
        raise UsageError("{model} brings its own detector; omit {detector}", param=("detector", "model"))
    if not base.examples_.texts:
        warnings.warn(
            StraysWarning(
                "the model keeps no examples, so it forgets all it knows once it learns from verdicts; fit it again "
                "with {keep_examples} set to 1000 to have it remember",
                param="keep_examples",
            ),
            stacklevel=2,
        )


def last_port(file: str, project: str | None) -> int | None:
    """The port a project was served on before: a page that waits there finds it again."""
    path = project_of(file, project)
    if not path.exists():
        return None
    store = LabelStore(path, check=False)  # it is checked when it is opened to work with
    try:
        return store.settings().get("port")
    finally:
        store.close()


def _put(store: LabelStore, file: str, corpus: Corpus | None, known: list[str]) -> None:
    if corpus is not None:
        store.put_texts(_with_known(_distinct(corpus), known))
        store.set(file=file if file != "-" else "stdin", id_column=corpus.id_column)
    elif known:
        store.put_texts(_with_known(list(store.texts().values()), known))


def _read(table: Table, columns: dict[str, Any], store: LabelStore | None, tell: Callable[[Note], object]) -> Corpus:
    """The texts of a table; rows are called by the column asked for now, or else when the project was last opened."""
    before = store.settings().get("id_column") if store else None
    if columns["id_column"] is None and before in table.columns:
        columns = columns | {"id_column": before}
    normal = columns["normal"].column if columns["normal"] else None
    column = table.choose_text_column(
        columns["text_column"], besides=(columns["label_column"], normal, columns["id_column"])
    )
    for note in (*table.notes, column.note()):
        if note:
            tell(note)
    return read_corpus(table, **columns | {"text_column": column.name})


def _distinct(corpus: Corpus) -> list[Entry]:
    """The distinct texts of a corpus. Of labels that differ, anomaly counts."""
    rows: dict[str, list[int]] = {}
    ids: dict[str, list[str | None]] = {}
    given: dict[str, set[str]] = {}
    for i, (text, label, row) in enumerate(zip(corpus.texts, corpus.labels, corpus.rows, strict=True)):
        rows.setdefault(text, []).append(row + 1)
        if corpus.ids:
            ids.setdefault(text, []).append(corpus.ids[i])
        if label:
            given.setdefault(text, set()).add(label)
    return [
        Entry(
            text,
            len(at),
            tuple(at[:MOST_ROWS]),
            min(given[text]) if text in given else None,
            ids=tuple(ids.get(text, ())[:MOST_ROWS]),
        )
        for text, at in rows.items()
    ]


def _with_known(entries: list[Entry], known: list[str]) -> list[Entry]:
    wanted = set(known)
    there = {entry.text for entry in entries}
    marked = [replace(e, given="anomaly", known=True) if e.text in wanted else e for e in entries]
    return marked + [Entry(t, 0, (), "anomaly", known=True) for t in dict.fromkeys(known) if t not in there]


def _encoder(
    store: LabelStore | None, model: str | None, asked: dict[str, Any], device: str, allow_download: bool
) -> tuple[TextOutlierDetector | None, LoadedEncoder]:
    """The model to start from, if there is one, and the encoder: the project's, the model's, or as asked."""
    kept = store.settings() if store else {}
    folder = model or kept.get("model")
    if not model and folder and not Path(folder).is_dir():
        raise ModelError(
            f"{folder}: the model that this project started from is gone; say where it is with {{model}}",
            param="model",
        )
    base = TextOutlierDetector.load(folder, device=device, allow_download=allow_download) if folder else None
    if base and asked:
        raise UsageError("{model} brings its own encoder; omit {encoder} and its settings", param=("encoder", "model"))
    if base:
        used: Any = base.encoder_
    else:
        before = vars(EncoderSettings.from_dict(kept["encoder"])) if "encoder" in kept else {"name": "default"}
        settings = asked if asked.get("name") not in (None, before["name"]) else before | asked
        # Who names the encoder on the command line may have it fetched; one that only the project names is not.
        is_asked = "name" in asked or "encoder" not in kept
        fetch = Fetch.ASKED if is_asked else Fetch.ALLOWED if allow_download else Fetch.NEVER
        used = load_encoder(**settings, device=device, fetch=fetch)
    differs = kept.get("fingerprint", used.fingerprint) not in (used.fingerprint, used.fingerprint_0_1)
    if differs and store and store.events():  # while nobody has judged anything, it may still be another
        raise UsageError(
            f"{store.path} was made with the encoder {kept['encoder']['name']!r}, and {used.settings.name!r} with the "
            "settings and weights it has now is another: p-values of earlier verdicts would mean nothing. Omit "
            "{encoder} and its settings, or begin anew with another {project}",
            param=("encoder", "project"),
        )
    return base, used
