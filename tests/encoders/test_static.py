from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import Encoder, distill, load_encoder, sources, static
from strays.encoders.cache import cache_folder
from strays.encoders.static import Pieces, StaticEncoder, cuts_at_spaces
from strays.errors import DataError, EncoderError, StraysWarning, UsageError
from tests.conftest import add_token, farm_texts, needs_torch, save_tiny_bert

TEXTS = farm_texts(60)
STRANGE = ["", " ", "  two  spaces ", "tab\tnew\nline\x1cfs", "\ud800 half", "x" * 5000, "cat, dog! hen-house",
           "шум 肝硬化是什么病", "[UNK] [MASK]cat", "nul \x00 inside", "é è ́ café", "\u2003wide space"]  # fmt: skip


@pytest.fixture
def encoder(tiny_bert: Path) -> StaticEncoder:
    return load_encoder(f"fast:{tiny_bert}")


def by_hand(folder: Path, text: str) -> np.ndarray:
    """One text, piece by piece, from the transformer's outputs and the formula alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    n = len(tokenizer)
    with torch.no_grad():
        ids = torch.tensor([[tokenizer.cls_token_id, i, tokenizer.sep_token_id] for i in range(n)])
        rows = model(ids).last_hidden_state.mean(1).double().numpy()
    weight = distill.RARITY / (distill.RARITY + (1 / np.arange(1, n + 1)) / np.sum(1 / np.arange(1, n + 1)))
    table = (rows - rows.mean(0)) * weight[:, None]
    total = table[tokenizer(text, add_special_tokens=False)["input_ids"]].sum(0)
    return total / np.linalg.norm(total)


@needs_torch
def test_agrees_with_the_formula_by_hand(encoder: StaticEncoder, tiny_bert: Path) -> None:
    """The tiny model has fewer dimensions than are kept, so that the rotation leaves all products as they were."""
    texts = ["the cat sleeps", "a dog sings in the garden", "xylophone"]
    expected = np.array([by_hand(tiny_bert, text) for text in texts])
    got = encoder.encode(texts)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got @ got.T, expected @ expected.T, atol=1e-5)


def test_the_strongest_directions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distill, "DIMENSION", 2)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 5)).astype(np.float32) * [1, 20, 3, 10, 2] + 7
    table, blank = distill.make_table(rows, rows[:1])
    p = 1 / np.arange(1, 501)
    weight = distill.RARITY / (distill.RARITY + p / p.sum())
    centred = rows - rows.mean(0)
    assert abs(np.corrcoef(table[:, 0] / weight, centred[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(table[:, 1] / weight, centred[:, 3])[0, 1]) > 0.99
    np.testing.assert_allclose(blank, table[0] / weight[0], rtol=1e-3)


def test_a_transformer_that_pools_by_its_first_token_is_distilled_so(tiny_bert: Path) -> None:
    mean, cls = (load_encoder(f"fast:{tiny_bert}", pooling=pooling) for pooling in ("mean", "cls"))
    assert mean.fingerprint != cls.fingerprint
    assert not np.allclose(np.abs(mean.encode(TEXTS[:2])), np.abs(cls.encode(TEXTS[:2])), atol=1e-3)


def test_is_an_encoder_of_a_known_size(encoder: StaticEncoder) -> None:
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, StaticEncoder)
    assert encoder.dimension == 32
    assert encoder.encode([]).shape == (0, 32)


def test_one_text_does_not_depend_on_the_others(encoder: StaticEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*TEXTS, *STRANGE, *TEXTS]
    encoder = encoder.without_warnings()  # one of the texts is in Chinese
    together = encoder.encode(texts)
    for i in range(len(texts)):
        assert np.array_equal(encoder.encode([texts[i]])[0], together[i])
    monkeypatch.setattr(static, "TEXTS_AT_ONCE", 7)
    monkeypatch.setattr(static, "MOST_WORDS", 5)
    assert np.array_equal(encoder.encode(texts), together)
    assert len(encoder._pieces._number) <= 5 + 7 * 20


def test_words_have_the_pieces_they_have_in_their_text(encoder: StaticEncoder) -> None:
    """The shortcut by words gives what the tokenizer gives of the whole text, however strange."""
    by_words = Pieces(encoder._distil().tokenizer, 30)
    whole = Pieces(encoder._distil().tokenizer, 30)
    assert by_words._by_words
    whole._by_words = False
    texts = [*TEXTS, *STRANGE, "the cat " * 100]
    for got, expected in zip(by_words.of(texts), whole.of(texts), strict=True):
        assert np.array_equal(got, expected)


def test_a_tokenizer_that_looks_across_spaces_gets_whole_texts(encoder: StaticEncoder) -> None:
    berts = encoder._distil().tokenizer
    assert cuts_at_spaces(berts)
    assert not cuts_at_spaces(berts.replace("BertPreTokenizer", "ByteLevel"))
    assert not cuts_at_spaces(berts.replace("BertNormalizer", "NFKC"))
    assert not cuts_at_spaces(berts.replace('"content":"[MASK]"', '"content":"a b"').replace("[PAD]", "two words"))


def test_strange_texts_get_vectors_of_length_one(encoder: StaticEncoder) -> None:
    embeddings = encoder.encode(STRANGE)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    assert np.array_equal(embeddings[0], embeddings[1])


def test_settings_change_embeddings_and_fingerprint(tiny_bert: Path) -> None:
    name = f"fast:{tiny_bert}"
    plain, long, short = (load_encoder(name, **options) for options in ({}, {"normalize": False}, {"max_length": 3}))
    assert len({e.fingerprint for e in (plain, long, short)}) == 3
    assert not np.allclose(np.linalg.norm(long.encode(TEXTS), axis=1), 1)
    np.testing.assert_array_equal(short.encode(["the cat sleeps " * 9]), short.encode(["the cat sleeps"]))
    assert plain.settings.to_dict()["name"] == name


def test_the_fingerprint_is_of_the_transformer_and_the_recipe(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_bert, tmp_path / "copy")
    save_tiny_bert(tmp_path / "other", seed=1)
    first = load_encoder(f"fast:{tiny_bert}").fingerprint
    assert load_encoder(f"fast:{tmp_path / 'copy'}").fingerprint == first
    assert load_encoder(f"fast:{tmp_path / 'other'}").fingerprint != first
    monkeypatch.setattr(distill, "RECIPE", 2)
    assert load_encoder(f"fast:{tiny_bert}").fingerprint != first


def test_distilled_once_and_kept(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path))
    first = load_encoder(f"fast:{tiny_bert}").encode(TEXTS)
    (folder,) = (cache_folder() / "strays-models").iterdir()
    monkeypatch.setattr(distill, "distil", lambda *_: pytest.fail("distilled again"))
    assert np.array_equal(load_encoder(f"fast:{tiny_bert}").encode(TEXTS), first)
    monkeypatch.undo()
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path))
    table = (folder / distill.TABLE).read_bytes()
    for damage in (table[:-8] + b"12345678", b"torn"):
        (folder / distill.TABLE).write_bytes(damage)
        with pytest.warns(StraysWarning, match="is damaged.*It is made again"):
            assert np.array_equal(load_encoder(f"fast:{tiny_bert}").encode(TEXTS), first)
        assert (folder / distill.TABLE).read_bytes() == table
    (folder / distill.CONFIG).unlink()
    assert np.array_equal(load_encoder(f"fast:{tiny_bert}").encode(TEXTS), first)
    assert [path.name for path in (cache_folder() / "strays-models").iterdir()] == [folder.name]


def test_several_may_distil_at_once(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path))
    encoders = [load_encoder(f"fast:{tiny_bert}") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda encoder: encoder.encode(TEXTS), encoders))
    assert all(np.array_equal(result, results[0]) for result in results)
    assert len(list((tmp_path / "strays-models").iterdir())) == 1


def test_one_encoder_may_be_asked_by_several_at_once(encoder: StaticEncoder) -> None:
    expected = encoder.encode(TEXTS)
    fresh = load_encoder(encoder.settings.name)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: fresh.encode(TEXTS[i:]), range(40)))
    for i, result in enumerate(results):
        assert np.array_equal(result, expected[i:])


def test_a_cache_that_cannot_be_written_costs_no_result(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strays-models").write_text("a file in the way")
    expected = load_encoder(f"fast:{tiny_bert}").encode(TEXTS)
    monkeypatch.setenv("STRAYS_CACHE", str(tmp_path))
    assert np.array_equal(load_encoder(f"fast:{tiny_bert}").encode(TEXTS), expected)


@pytest.mark.process
def test_once_distilled_it_imports_neither_torch_nor_transformers(encoder: StaticEncoder) -> None:
    encoder.encode(["a"])
    program = (
        f"import sys; from strays.encoders import load_encoder; e = load_encoder({encoder.settings.name!r}); "
        "e.encode(['the cat']); e.fingerprint; assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})


def test_it_can_be_copied_in_use(encoder: StaticEncoder) -> None:
    expected = encoder.encode(TEXTS)
    assert np.array_equal(copy.deepcopy(encoder).encode(TEXTS), expected)


def test_progress_is_told(encoder: StaticEncoder) -> None:
    encoder.encode(["a"])
    calls: list[tuple[int, int]] = []
    encoder.encode(TEXTS, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(60, 60)]


def test_what_is_no_list_of_texts_is_refused(encoder: StaticEncoder) -> None:
    with pytest.raises(DataError, match=r"texts\[1\] is None"):
        encoder.encode(["ok", None])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["fast:", "fast:fast", "fast:fast:bert"])
def test_names_without_a_transformer(name: str) -> None:
    with pytest.raises(UsageError, match="expected fast, or fast:NAME of a transformer to distil"):
        load_encoder(name).encode(["a"])


def test_names_that_lead_nowhere(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="no folder no-such-folder"):
        load_encoder("fast:./no-such-folder").encode(["a"])
    shutil.copytree(tiny_bert, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"not safetensors at all")
    with pytest.raises(EncoderError, match=r"could not load the encoder.*BERT-like model"):
        load_encoder(f"fast:{tmp_path / 'm'}").encode(["a"])


def test_fast_is_distilled_from_the_default() -> None:
    assert sources.teacher_name("fast") == "default"
    assert sources.teacher_name("fast:bert") == "bert"


def test_an_interrupt_while_learning_words_mixes_none_up(
    encoder: static.StaticEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = encoder.encode(TEXTS)
    fresh = load_encoder(encoder.settings.name)
    real = static.Pieces._tokenize

    def interrupt(self: static.Pieces, texts: list[str]) -> object:
        monkeypatch.setattr(static.Pieces, "_tokenize", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(static.Pieces, "_tokenize", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh.encode(["the old barn and a dog"])
    assert np.array_equal(fresh.encode(TEXTS), expected)


def test_a_tokenizer_of_another_model_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    add_token(tmp_path / "m", "zebra")
    with pytest.raises(EncoderError, match="expected a tokenizer and a model that belong together"):
        load_encoder(f"fast:{tmp_path / 'm'}").encode(["a zebra"])
