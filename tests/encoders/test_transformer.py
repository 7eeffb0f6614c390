from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from strays.encoders import Encoder, load_encoder
from strays.encoders.transformer import TransformerEncoder
from strays.errors import DataError, EncoderError, StraysWarning, UsageError
from tests.conftest import farm_texts, needs_torch, save_tiny_bert

TEXTS = farm_texts(60)
RUNTIMES = ["onnx", pytest.param("torch", marks=needs_torch)]


@pytest.fixture
def encoder(tiny_bert: Path) -> TransformerEncoder:
    return load_encoder(str(tiny_bert))


def reference(folder: Path, text: str, pooling: str = "mean") -> np.ndarray:
    """One text at a time, by transformers alone: no padding, no batches."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        hidden = model(**tokenizer(text, return_tensors="pt", truncation=True)).last_hidden_state[0]
    return (hidden.mean(0) if pooling == "mean" else hidden[0]).numpy()


@needs_torch
@pytest.mark.parametrize("runtime", ["torch", "onnx"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_agrees_with_transformers_run_by_hand(tiny_bert: Path, pooling: str, runtime: str) -> None:
    texts = ["the cat sleeps", "a dog", "the cow eats in the garden near the old barn and sings", ""]
    encoder = load_encoder(str(tiny_bert), pooling=pooling, precision="full", runtime=runtime, tokens_per_batch=40)
    embeddings = encoder.encode(texts)
    assert embeddings.dtype == np.float32
    for text, embedding in zip(texts, embeddings, strict=True):
        np.testing.assert_allclose(embedding, reference(tiny_bert, text, pooling), atol=1e-5)


def test_is_an_encoder(encoder: TransformerEncoder) -> None:
    assert isinstance(encoder, Encoder)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_text_does_not_depend_on_the_others(tiny_bert: Path, runtime: str) -> None:
    encoder = load_encoder(str(tiny_bert), precision="full", runtime=runtime, cache=False)
    together = encoder.encode(TEXTS)
    assert together.shape == (60, 32)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_allclose(encoder.encode([TEXTS[i] for i in order]), together[order], atol=1e-5)
    for i in (0, 17, 59):
        np.testing.assert_allclose(encoder.encode([TEXTS[i]])[0], together[i], atol=1e-5)
    encoder = load_encoder(str(tiny_bert), precision="full", runtime=runtime, cache=False, tokens_per_batch=1)
    np.testing.assert_allclose(encoder.encode(TEXTS), together, atol=1e-5)


def test_each_distinct_text_is_encoded_once_and_progress_is_told(tiny_bert: Path) -> None:
    calls: list[tuple[int, int]] = []
    encoder = load_encoder(str(tiny_bert), tokens_per_batch=100)
    embeddings = encoder.encode([*TEXTS, *TEXTS, TEXTS[0]], progress=lambda done, total: calls.append((done, total)))
    assert np.array_equal(embeddings[:60], embeddings[60:120])
    assert calls[-1] == (60, 60)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_normalized_embeddings_have_length_one(tiny_bert: Path) -> None:
    embeddings = load_encoder(str(tiny_bert), normalize=True).encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-6)


def test_texts_are_cut_at_the_maximum_length(tiny_bert: Path) -> None:
    long = "the cat sleeps " * 1000
    encoder = load_encoder(str(tiny_bert), max_length=5)
    np.testing.assert_array_equal(encoder.encode([long]), encoder.encode(["the cat sleeps"]))
    assert load_encoder(str(tiny_bert), max_length=9999)._pretrained.shape.max_length == 64


def test_strange_texts_are_encoded(encoder: TransformerEncoder) -> None:
    texts = [
        "x" * 1_000_000,
        "word " * 200_000,
        "nul \x00 inside",
        "🐈‍⬛ 👩‍👩‍👧",
        "שלום \u202e עולם",
        "\ud800 half",
        "",
        " ",
    ]
    assert np.isfinite(encoder.encode(texts)).all()


def test_what_is_no_list_of_texts_is_refused(encoder: TransformerEncoder) -> None:
    with pytest.raises(DataError, match=r"texts\[1\] is nan, a missing text"):
        encoder.encode(["ok", float("nan")])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"Pass \[text\]"):
        encoder.encode("one string")
    assert encoder.encode([]).shape == (0, 32)


def test_loading_is_lazy() -> None:
    load_encoder("no/such-model")  # says nothing until it is used
    with pytest.raises(EncoderError, match=r"hf download no/such-model --local-dir FOLDER"):
        load_encoder("no/such-model").encode(["a"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./no-such-folder", "no folder no-such-folder"),
        ("/no/such/folder", "no folder /no/such/folder"),
        ("not an id", "neither an encoder strays knows .default, bert, fast., nor a folder, nor"),
    ],
)
def test_names_that_lead_nowhere(name: str, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        load_encoder(name).encode(["a"])


def test_a_revision_is_asked_for(monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> None:
    import huggingface_hub

    asked = []

    def snapshot_download(repo: str, **options: object) -> str:
        asked.append((repo, options["revision"]))
        return str(tiny_bert)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    load_encoder("org/model", revision="abc").encode(["a"])
    load_encoder("bert").encode(["a"])
    load_encoder("default", revision="main").encode(["a"])
    assert asked == [
        ("org/model", "abc"),
        ("google-bert/bert-base-cased", "cd5ef92a9fb2f889e972770a36d4ed042daf221e"),
        ("sentence-transformers/all-MiniLM-L6-v2", "main"),
    ]


def hub_cache(folder: Path, cache: Path, repo: str = "models--org--model", revision: str = "0" * 40) -> Path:
    """A model's folder as huggingface_hub keeps it: links into a folder of blobs, named by their hash. The snapshot."""
    blobs, snapshot = cache / repo / "blobs", cache / repo / "snapshots" / revision
    blobs.mkdir(parents=True)
    (cache / repo / "refs").mkdir()
    (cache / repo / "refs" / "main").write_text(revision)
    for path in filter(Path.is_file, folder.rglob("*")):
        blob, link = blobs / hashlib.sha256(path.read_bytes()).hexdigest(), snapshot / path.relative_to(folder)
        shutil.copy(path, blob)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(os.path.relpath(blob, link.parent)))
    return snapshot


def test_a_cached_snapshot_is_used_offline(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    hub_cache(tiny_bert, tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    expected = load_encoder(str(tiny_bert)).encode(TEXTS[:3])
    assert np.array_equal(load_encoder("org/model").encode(TEXTS[:3]), expected)
    assert np.array_equal(load_encoder("org/model", revision="0" * 40).encode(TEXTS[:3]), expected)
    with pytest.raises(EncoderError, match="at revision 1111"):
        load_encoder("org/model", revision="1" * 40).encode(["a"])


@pytest.mark.parametrize("name", ["{}", "fast:{}"])
def test_the_folder_of_a_snapshot_is_an_encoder(name: str, tiny_bert: Path, tmp_path: Path) -> None:
    plain = sentence_folder(tiny_bert, tmp_path / "plain", ["Transformer", "Pooling"], {"pooling_mode": "cls"})
    snapshot = hub_cache(Path(plain), tmp_path / "hub")
    assert all((snapshot / file).is_symlink() for file in ("model.safetensors", "1_Pooling/config.json"))
    expected, found = load_encoder(name.format(plain), cache=False), load_encoder(name.format(snapshot), cache=False)
    assert found.fingerprint == expected.fingerprint
    assert np.array_equal(found.encode(TEXTS[:3]), expected.encode(TEXTS[:3]))


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_without_its_files(tiny_bert: Path, tmp_path: Path, missing: str) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    (tmp_path / "m" / missing).unlink()
    with pytest.raises(EncoderError, match="holds no model"):
        load_encoder(str(tmp_path / "m")).encode(["a"])


def test_damaged_weights(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"not safetensors at all")
    with pytest.raises(EncoderError, match="could not load the encoder"):
        load_encoder(str(tmp_path / "m")).encode(["a"])


def test_damaged_weights_are_no_fault_of_the_runtime(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"not safetensors at all")
    with pytest.raises(EncoderError, match=r"^could not load the encoder in .*download its files again$"):
        load_encoder(str(tmp_path / "m"), precision="int8").encode(["a"])


@needs_torch
def test_pytorch_weights_load_without_running_code(tiny_bert: Path, tmp_path: Path) -> None:
    """Older models come as pytorch_model.bin; a pickle that would run something must not."""
    import torch
    from safetensors.torch import load_file

    folder = tmp_path / "m"
    shutil.copytree(tiny_bert, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    expected = load_encoder(str(tiny_bert)).encode(TEXTS[:3])
    np.testing.assert_allclose(load_encoder(str(folder)).encode(TEXTS[:3]), expected, atol=1e-6)

    class Bomb:
        def __reduce__(self) -> tuple:
            return Path.touch, (tmp_path / "exploded",)

    torch.save({"embeddings.word_embeddings.weight": Bomb()}, folder / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="could not load the encoder"):
        load_encoder(str(folder)).encode(["a"])
    assert not (tmp_path / "exploded").exists()


def sentence_folder(tiny_bert: Path, folder: Path, modules: list[str], pooling: dict) -> str:
    shutil.copytree(tiny_bert, folder)
    entries = [
        {"idx": i, "name": str(i), "path": f"{i}_{m}" if i else "", "type": f"x.{m}"} for i, m in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 7}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return str(folder)


def test_a_sentence_transformers_folder_says_how_it_is_used(tiny_bert: Path, tmp_path: Path) -> None:
    modules = ["Transformer", "Pooling", "Normalize"]
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 32}
    resolved = load_encoder(sentence_folder(tiny_bert, tmp_path / "a", modules, pooling))._pretrained.shape
    assert (resolved.pooling, resolved.normalize, resolved.max_length) == ("cls", True, 7)
    other = load_encoder(str(tmp_path / "a"), pooling="mean", normalize=False, max_length=30)._pretrained.shape
    assert (other.pooling, other.normalize, other.max_length) == ("mean", False, 30)
    new_style = load_encoder(
        sentence_folder(tiny_bert, tmp_path / "b", modules[:2], {"pooling_mode": "cls"})
    )._pretrained.shape
    assert (new_style.pooling, new_style.normalize) == ("cls", False)


def test_what_strays_does_not_run_is_refused_with_a_way_out(tiny_bert: Path, tmp_path: Path) -> None:
    dense = sentence_folder(tiny_bert, tmp_path / "a", ["Transformer", "Pooling", "Dense"], {"pooling_mode": "mean"})
    with pytest.raises(EncoderError, match=r"Dense module.*pass that object"):
        load_encoder(dense).encode(["a"])
    largest = sentence_folder(tiny_bert, tmp_path / "b", ["Transformer", "Pooling"], {"pooling_mode_max_tokens": True})
    with pytest.raises(EncoderError, match=r"pools its tokens by max_tokens.*Set pooling"):
        load_encoder(largest).encode(["a"])
    assert load_encoder(largest, pooling="mean").encode(["a"]).shape == (1, 32)


def test_the_fingerprint_is_of_weights_and_settings(tiny_bert: Path, tmp_path: Path) -> None:
    save_tiny_bert(tmp_path, seed=1)
    shutil.copytree(tiny_bert, tmp_path / "copy")
    first = load_encoder(str(tiny_bert)).fingerprint
    assert first == load_encoder(str(tmp_path / "copy")).fingerprint
    others = [
        load_encoder(str(tmp_path)),
        load_encoder(str(tiny_bert), pooling="cls"),
        load_encoder(str(tiny_bert), normalize=True),
        load_encoder(str(tiny_bert), max_length=10),
    ]
    assert len({first, *(encoder.fingerprint for encoder in others)}) == 5
    vocabulary = (tmp_path / "copy" / "tokenizer.json").read_text().replace('"cat"', '"tac"')
    (tmp_path / "copy" / "tokenizer.json").write_text(vocabulary)
    assert load_encoder(str(tmp_path / "copy")).fingerprint != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "max"}, "'mean' or 'cls'"),
        ({"max_length": 2}, "at least 3"),
        ({"tokens_per_batch": 0}, "at least 1"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_encoder("default", **options)


CHINESE = ["肝硬化是什么病怎么治疗", "感冒了应该吃什么药比较好", "孩子发烧三天不退怎么办"]


def test_a_foreign_script_draws_one_warning_that_names_a_better_choice(encoder: TransformerEncoder) -> None:
    with pytest.warns(StraysWarning, match=r"in Chinese, which.*BAAI/bge-small-zh-v1\.5"):
        encoder.encode(CHINESE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(CHINESE)
        encoder.encode([*TEXTS, CHINESE[0]])
        encoder.encode(["12345 !!"])
    with pytest.warns(StraysWarning, match=r"Cyrillic script.*multilingual"):
        encoder.encode(["Привет, как дела?"])


def test_a_language_of_several_scripts_draws_the_warning_too(encoder: TransformerEncoder) -> None:
    with pytest.warns(StraysWarning, match="multilingual|zh"):
        encoder.encode(["昨日はカレーライスを食べました", "新しいスマートフォンを買いたい"])


@needs_torch
@pytest.mark.parametrize("device", ["toaster", "cuda:99"])
def test_a_device_that_is_not_there(tiny_bert: Path, device: str) -> None:
    with pytest.raises(UsageError, match=f"device is '{device}', which cannot be used here.*expected auto, cpu, cuda"):
        load_encoder(str(tiny_bert), device=device).encode(["a"])


def test_an_encoder_made_for_the_script_does_not_warn(tmp_path: Path) -> None:
    save_tiny_bert(tmp_path, words=[chr(c) for c in range(0x4E00, 0x4E00 + 3000)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_encoder(str(tmp_path)).encode(CHINESE)


# ---- encoders that somebody made on purpose --------------------------------------------------------------------------


@needs_torch
@pytest.mark.parametrize("name", ["{}", "fast:{}"])
def test_code_that_comes_with_an_encoder_is_never_run(
    name: str, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\nclass A: pass\n")
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.A", "AutoModel": "evil.A"}}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is asked"))
    with pytest.raises(EncoderError, match="could not load"):
        load_encoder(name.format(folder)).encode(["the cat"])
    assert not (tmp_path / "touched").exists()


@needs_torch
def test_pickled_weights_that_run_code_are_refused(tiny_bert: Path, tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple:
            return open, (str(tmp_path / "touched"), "w")

    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(EncoderError, match="could not load"):
        load_encoder(str(folder)).encode(["the cat"])
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("way", ["../outside", "/etc", "a/../../outside"])
def test_an_encoders_own_files_lead_nowhere_else(way: str, tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "config.json").write_text('{"pooling_mode": "cls"}')
    (folder / "modules.json").write_text(
        json.dumps([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": way}])
    )
    with pytest.raises(EncoderError, match="outside of it"):
        _ = load_encoder(str(folder)).fingerprint


POOLING_NOWHERE = json.dumps([{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "x" * 300}])


@pytest.mark.parametrize("modules", ["5", "[1]", "[{}]", "{", "[" * 100_000, POOLING_NOWHERE])
def test_modules_that_are_none(modules: str, tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    (folder / "modules.json").write_text(modules)
    with pytest.raises(EncoderError, match="download the model's files again"):
        _ = load_encoder(str(folder)).fingerprint


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_device_among_an_encoders_files_is_not_read(name: str, tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_bert, folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(EncoderError):
        load_encoder(str(folder)).encode(["the cat"])


@pytest.mark.parametrize("file", ["modules.json", "1_Pooling/config.json", "sentence_bert_config.json"])
def test_a_device_is_no_settings(file: str, tiny_bert: Path, tmp_path: Path) -> None:
    folder = sentence_folder(tiny_bert, tmp_path / "m", ["Transformer", "Pooling"], {"pooling_mode": "cls"})
    (tmp_path / "m" / file).unlink()
    (tmp_path / "m" / file).symlink_to("/dev/full")  # it can be read for ever
    if file == "1_Pooling/config.json":
        with pytest.raises(EncoderError, match="missing or not a plain file; download the model's files again"):
            load_encoder(folder).encode(["the cat"])
    else:  # which a folder may be without
        assert load_encoder(folder).encode(["the cat"]).shape == (1, 32)


@pytest.mark.parametrize("name", ["~nobody-of-this-name", "x" * 4000])
def test_names_that_are_no_names(name: str) -> None:
    with pytest.raises(EncoderError, match="no encoder"):
        load_encoder(name).encode(["the cat"])
