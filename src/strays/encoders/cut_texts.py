"""How many texts are longer than an encoder reads: said once for all that is encoded in one go, with the total.

Encoders report what they cut, and whoever asked for the work gathers it:

    with gather_cut_texts():        # the outermost gathers for all within
        model.anomaly_score(...)    # many times
                                    # one warning at the end

Only texts that are tokenized count: for one whose embedding is in the cache, it was said when it was encoded.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from strays.errors import StraysWarning

# English words for each token of BERT's vocabulary.
WORDS_PER_TOKEN = 0.77
# The name of an encoder, and the most tokens that it reads of a text.
Window = tuple[str, int]


@dataclass
class CutTexts:
    """How many texts encoders have tokenized, and how many of them they have cut."""

    n_texts: Counter[Window] = field(default_factory=Counter)
    n_cut: Counter[Window] = field(default_factory=Counter)

    def add(self, window: Window, n_texts: int, n_cut: int) -> None:
        """Count some texts, of which so many were cut."""
        self.n_texts[window] += n_texts
        self.n_cut[window] += n_cut

    def facts(self) -> list[tuple[str, int, int, int]]:
        """Encoder, tokens, texts and texts cut, as plain data."""
        return [(*window, n, self.n_cut[window]) for window, n in self.n_texts.items()]

    def warn(self) -> None:
        """Say what was cut, if anything was."""
        for (encoder, tokens), n_cut in self.n_cut.items():
            if n_cut:
                message = _message(encoder, tokens, self.n_texts[encoder, tokens], n_cut)
                warnings.warn(StraysWarning(message), stacklevel=5)  # past contextlib, to who called fit or score


_gathering: ContextVar[CutTexts | None] = ContextVar("cut texts", default=None)


@contextmanager
def gather_cut_texts(*, warn: bool = True) -> Iterator[CutTexts]:
    """Gather what is cut within, and warn of it at the end, unless something around this gathers already.

    >>> with gather_cut_texts(warn=False) as cut:
    ...     report_cut_texts("default", 256, n_texts=300, n_cut=37)
    >>> cut.facts()
    [('default', 256, 300, 37)]
    """
    around = _gathering.get()
    if around is not None:
        yield around
        return
    cut = CutTexts()
    token = _gathering.set(cut)
    try:
        yield cut
    finally:
        _gathering.reset(token)
    if warn:
        cut.warn()


def report_cut_texts(encoder: str, tokens: int, n_texts: int, n_cut: int) -> None:
    """Report that an encoder, which reads so many tokens of a text, has cut some of the texts it was given."""
    gathering = _gathering.get()
    if gathering is not None and n_texts:
        gathering.add((encoder, tokens), n_texts, n_cut)


def _message(encoder: str, tokens: int, n_texts: int, n_cut: int) -> str:
    words = round(WORDS_PER_TOKEN * tokens, -1)
    return (
        f"{n_cut:,} of the {n_texts:,} texts encoded now {'is' if n_cut == 1 else 'are'} longer than the encoder "
        f"{encoder!r} reads ({tokens} tokens, about {words:.0f} words); only the beginning of a longer text is compared"
    )
