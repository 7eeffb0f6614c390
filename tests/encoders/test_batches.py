"""A text's embedding is the same, bit for bit, alone, in any batch, in any order, and after an interruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.tiny_bert import save_bert_of

from strays import TextOutlierDetector
from strays.encoders import load_encoder, tokenizer, transformer
from strays.encoders.base import LoadedEncoder
from strays.encoders.cache import EmbeddingCache
from strays.encoders.runtimes.onnx_runtime import OnnxRuntime
from strays.encoders.tokenizer import padded_lengths
from strays.engines import LocalEngine
from strays.jobs.score.files import score_files
from tests.conftest import CATS, DEEDS, PLACES, farm_texts
from tests.jobs.score.standin import everything_in

PRECISIONS = ["int8", "full"]


def mixed_texts(n: int, most_words: int = 85) -> list[str]:
    """n different texts of mixed lengths; the tiny BERT reads 64 tokens."""
    rng = np.random.default_rng(5)
    words = sorted({word for text in (*CATS, *DEEDS, *PLACES) for word in text.split()})
    return [f"{i} " + " ".join(rng.choice(words, size=int(rng.geometric(0.06)) % (most_words + 1))) for i in range(n)]


def assert_the_same_in_any_batch(encoder: LoadedEncoder, texts: list[str]) -> None:
    # A text with values far larger than the others' would coarsen an 8-bit scale that all of them share.
    together = encoder.encode([*texts, "dog " * 50])[:-1]
    for size, shown in ((1, 60), (7, 210), (64, len(texts))):
        for start in range(0, shown, size):
            found = encoder.encode(texts[start : start + size])
            assert np.array_equal(found, together[start : start + size]), f"batches of {size}"
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(texts))
        assert np.array_equal(encoder.encode([texts[i] for i in order]), together[order]), "another order"


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_an_embedding_does_not_depend_on_the_batch(tiny_bert: Path, precision: str, pooling: str) -> None:
    encoder = load_encoder(str(tiny_bert), pooling=pooling, precision=precision, cache=False)
    assert_the_same_in_any_batch(encoder, mixed_texts(1000))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_nor_where_no_width_suits_the_processor(tmp_path: Path, precision: str) -> None:
    """Rows of 27 and 45 numbers start anywhere in memory and end in the middle of a register."""
    save_bert_of(["cat", "dog", "the", "near", "barn"], tmp_path, heads=3, width=27, inner_width=45)
    encoder = load_encoder(str(tmp_path), normalize=True, precision=precision, cache=False)
    assert_the_same_in_any_batch(encoder, mixed_texts(150))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_nor_on_the_number_of_threads(tiny_bert: Path, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed_texts(100)
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        encoder = load_encoder(str(tiny_bert), precision=precision, cache=False)
        found.append(encoder.encode(texts))
        assert isinstance(encoder._runtime, OnnxRuntime)  # type: ignore[attr-defined]
        assert encoder._runtime.threads == int(threads)  # type: ignore[attr-defined]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_nor_on_the_size_of_batches(tiny_bert: Path) -> None:
    texts = mixed_texts(100)
    found = [load_encoder(str(tiny_bert), cache=False, tokens_per_batch=n).encode(texts) for n in (1, 50, 512, 10**6)]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_the_table_of_word_pieces_gives_the_same_in_any_batch(tiny_bert: Path) -> None:
    assert_the_same_in_any_batch(load_encoder(f"fast:{tiny_bert}"), mixed_texts(1000))


@pytest.mark.slow
@pytest.mark.usefixtures("default_encoder")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_default_encoder_gives_the_same_in_any_batch(precision: str) -> None:
    assert_the_same_in_any_batch(load_encoder("default", precision=precision, cache=False), mixed_texts(210))


def test_on_pytorch_too_a_text_is_always_padded_alike(tiny_bert: Path) -> None:
    """Its last digits may still depend on the number of rows: on some processors MKL rounds so."""
    encoder = load_encoder(str(tiny_bert), runtime="torch", cache=False)
    texts = mixed_texts(200)

    def widths(order: np.ndarray) -> dict[int, int]:
        found = encoder._tokenizer.batches([texts[i] for i in order], 256)  # type: ignore[attr-defined]
        return {int(order[row]): batch.ids.shape[1] for batch in found for row in batch.rows}

    together = widths(np.arange(200))
    assert len(together) == 200
    for order in (np.arange(200)[::-1], np.arange(3, 200, 5), np.array([17])):
        for i, width in widths(order).items():
            assert width == together[i]


def test_padding_is_a_matter_of_the_text_alone_and_small() -> None:
    lengths = np.arange(2000)
    padded = padded_lengths(lengths)
    assert (padded >= np.maximum(lengths, 2)).all()
    assert (np.diff(padded) >= 0).all()
    assert (padded - lengths <= np.maximum(1 + (lengths == 0), lengths / 8)).all()
    assert len(np.unique(padded[:513])) == 48
    assert padded_lengths(np.array([37])).item() == padded[37]


def test_a_job_stopped_inside_a_chunk_gives_the_same_bytes(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the chunk's embeddings are in the cache then, and the others meet in other batches."""
    monkeypatch.setattr(transformer, "STORED_TOGETHER", 40)
    monkeypatch.setattr(tokenizer, "PIECE", 64)
    model = TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(60))
    model.save(tmp_path / "model")
    (tmp_path / "in.txt").write_text("\n".join(mixed_texts(300, most_words=50)) + "\n")

    def score(place: str, cache: str) -> None:
        monkeypatch.setenv("STRAYS_CACHE", str(tmp_path / cache))
        loaded = TextOutlierDetector.load(tmp_path / "model")
        score_files(loaded, str(tmp_path / "in.txt"), f"{tmp_path}/{place}/", part_rows=300, engine=LocalEngine())

    score("undisturbed", "one-cache")
    put, puts = EmbeddingCache.put, []

    def put_and_stop(self: EmbeddingCache, *arguments: object) -> None:
        put(self, *arguments)  # type: ignore[arg-type]
        puts.append(1)
        if len(puts) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingCache, "put", put_and_stop)
        with pytest.raises(KeyboardInterrupt):
            score("stopped", "another-cache")
    assert EmbeddingCache(tmp_path / "another-cache").info().entries
    score("stopped", "another-cache")
    assert everything_in(tmp_path / "stopped") == everything_in(tmp_path / "undisturbed")
    for cache in ("one-cache", "another-cache"):
        EmbeddingCache(tmp_path / cache).close()
