from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.cut_texts import gather_cut_texts, report_cut_texts
from strays.engines import LocalEngine
from strays.errors import StraysWarning
from strays.jobs.score import score_files
from tests.conftest import farm_texts

TEXTS = farm_texts(60)
# The tiny BERT reads 64 tokens, of which two mark the ends; its static encoder 512 pieces.
EXACTLY, TOO_LONG = "cat " * 62, "cat " * 63
VERY_LONG = "dog " * 600


def n_cut(encoder: object, texts: list[str]) -> list[tuple[int, int]]:
    with gather_cut_texts(warn=False) as cut:
        encoder.encode(texts)  # type: ignore[attr-defined]
    return [(n_texts, n) for _, _, n_texts, n in cut.facts()]


def test_texts_longer_than_the_window_are_counted_exactly(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert), cache=False)
    assert n_cut(encoder, [*TEXTS, EXACTLY, TOO_LONG, VERY_LONG]) == [(63, 2)]
    assert n_cut(encoder, [*TEXTS, EXACTLY]) == [(61, 0)]
    assert n_cut(encoder.without_warnings(), [VERY_LONG]) == []


def test_fast_counts_too(tiny_bert: Path) -> None:
    encoder = load_encoder(f"fast:{tiny_bert}")
    assert n_cut(encoder, [*TEXTS, "dog " * 512, "dog " * 513, VERY_LONG]) == [(63, 2)]
    assert n_cut(load_encoder(f"fast:{tiny_bert}", max_length=3), ["abcde", "abc"]) == [(2, 1)]  # of letters
    whole = load_encoder(f"fast:{tiny_bert}")
    whole._pieces._by_words = False  # type: ignore[attr-defined]
    assert n_cut(whole, ["dog " * 512, "dog " * 513]) == [(2, 1)]


def test_texts_in_the_cache_were_counted_when_they_were_encoded(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert))
    assert n_cut(encoder, [*TEXTS, TOO_LONG]) == [(61, 1)]
    assert n_cut(encoder, [*TEXTS, TOO_LONG]) == []
    assert n_cut(encoder, [*TEXTS, TOO_LONG, VERY_LONG]) == [(1, 1)]


def test_fit_and_score_say_it_once_and_explain_does_not(tiny_bert: Path) -> None:
    model = TextOutlierDetector(load_encoder(str(tiny_bert), cache=False), "centroid")
    expected = r"^2 of the 62 texts encoded now are longer than the encoder .* reads \(64 tokens, about 50 words\)"
    with pytest.warns(StraysWarning, match=expected) as told:
        model.fit([*TEXTS, TOO_LONG, VERY_LONG])
    assert len(told) == 1
    with pytest.warns(StraysWarning, match=r"^1 of the 2 texts encoded now is longer"):
        model.anomaly_score(["a cat", VERY_LONG])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.anomaly_score(TEXTS)
        model.explain(VERY_LONG)


def test_a_job_of_many_chunks_says_it_once_with_the_total(tiny_bert: Path, tmp_path: Path) -> None:
    model = TextOutlierDetector(load_encoder(str(tiny_bert), cache=False), "centroid").fit(TEXTS)
    rows = [f"{VERY_LONG}{i}" if i % 3 == 0 else f"the cat {i}" for i in range(30)]
    (tmp_path / "in.csv").write_text("\n".join(["text", *rows]))
    with pytest.warns(StraysWarning, match=r"^10 of the 30 texts encoded now are longer") as told:
        score_files(model, str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), engine=LocalEngine(), part_rows=4)
    assert len(told) == 1


def test_what_fails_says_nothing_of_lengths() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError), gather_cut_texts():
            report_cut_texts("default", 256, 10, 1)
            raise KeyError
        report_cut_texts("default", 256, 10, 1)  # and outside nobody listens
