"""Token ids are those of transformers, however odd the text and whatever files a folder has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from strays.encoders.library_errors import running
from strays.encoders.pretrained import Pretrained
from strays.encoders.settings import EncoderSettings
from strays.encoders.tokenizer_files import FastTokenizer
from strays.errors import EncoderError
from tests.conftest import farm_texts

ODD = [
    "", " ", "the cat sleeps", "The CAT Sleeps", "  two   spaces  ", "tab\tnew\nline\r\n", "nul \x00 inside \x7f \x01",
    "café naïve Ünïcödé ÄÖÜ ß ẞ İstanbul", "e\u0301 combining u\u0308", "肝硬化是什么病 cat 東京",
    "한국어 ひらがな カタカナ", "🐈‍⬛ 👩‍👩‍👧 flag 🇩🇪", "שלום \u202e עולם", "zero\u200bwidth\ufeffbom soft\u00adhyphen",
    "\u2003wide\u3000spaces\u00a0nbsp", "[SEP] in [CLS] a [MASK] text [PAD][UNK]", "<s>cat</s> <mask> <pad><unk>",
    "[sep] <MASK>", "cat[SEP]dog <mask>cat", "x" * 99, "x" * 100, "x" * 101, "x" * 5000, "a-b_c.d,e!f?g;h:i'j\"k",
    "don't can't", "$100 €5 £3 ±1 ½ ² ™", "\ufffd", "it's   the\n\n dog", "##ing ##s", "zebra", " zebra zebras",
    "\uff26\uff35\uff2c\uff2c width", "\ufb01 ligature", "\U0001d509\U0001d52f \U00010348", "a" + "\u0301" * 40,
]  # fmt: skip
WORDS = sorted({word for text in farm_texts(400) for word in text.split()})
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)]
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), *WORDS, "The", "C", "##A", "##T", "é", "##é", "肝",
              "硬", *"!.,-'?[]#$", "##ing", "ü", "Ü", "##ü", "caf", "cafe", "ß", "2", "##2"]  # fmt: skip


def bert(folder: Path, said: dict[str, Any] | None = None, **more: str) -> Path:
    """A folder with vocab.txt, and other files as given."""
    write(folder, {"model_type": "bert"}, said, **more)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in dict.fromkeys(VOCABULARY)), encoding="utf-8")
    return folder


def write(folder: Path, config: dict[str, Any], said: dict[str, Any] | None = None, **more: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if said is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    for name, text in more.items():
        (folder / f"{name}.json").write_text(text)


def roberta(folder: Path, said: dict[str, Any] | None = None) -> Path:
    write(folder, {"model_type": "roberta"}, said)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*farm_texts(300), *ODD], trainer)
    tokenizer.model.save(str(folder))
    return folder


def xlm_roberta(folder: Path, said: dict[str, Any] | None = None) -> Path:
    write(folder, {"model_type": "xlm-roberta"}, said)
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(farm_texts(300), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def saved_by_transformers(make: Callable[..., Path]) -> Callable[..., Path]:
    """The same with tokenizer.json, as transformers writes it."""

    def save(folder: Path, said: dict[str, Any] | None = None) -> Path:
        make(folder / "older", said)
        theirs(folder / "older").save_pretrained(folder)
        shutil.copy(folder / "older" / "config.json", folder)
        return folder

    return save


def theirs(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'strays[torch]'")
    return transformers.AutoTokenizer.from_pretrained(folder)


def ours(folder: Path) -> FastTokenizer:
    return Pretrained(EncoderSettings(str(folder))).tokenizer if weights(folder) else None  # type: ignore[return-value]


def weights(folder: Path) -> Path:
    (folder / "model.safetensors").touch()
    return folder


ADDED = {
    "content": "zebra",
    "lstrip": False,
    "normalized": True,
    "rstrip": False,
    "single_word": True,
    "special": False,
}
KINDS: dict[str, Callable[[Path], Path]] = {
    "bert without settings": bert,
    "uncased": lambda folder: bert(folder, {"do_lower_case": True, "model_max_length": 512}),
    "cased": lambda folder: bert(folder, {"do_lower_case": False}),
    "cased without accents": lambda folder: bert(folder, {"do_lower_case": False, "strip_accents": True}),
    "uncased with accents": lambda folder: bert(folder, {"strip_accents": False, "tokenizer_class": "BertTokenizer"}),
    "chinese words": lambda folder: bert(folder, {"tokenize_chinese_chars": False}),
    "other marks": lambda folder: bert(folder, {"cls_token": "the", "sep_token": "cat", "unk_token": "dog"}),
    "a new mark": lambda folder: bert(folder, {"mask_token": "zebra"}),
    "special tokens split": lambda folder: bert(folder, {"split_special_tokens": True}),
    "special_tokens_map": lambda folder: bert(
        folder, {"sep_token": "cat"}, special_tokens_map=json.dumps({"sep_token": "dog", "mask_token": ADDED})
    ),
    "added_tokens": lambda folder: bert(
        folder, added_tokens=json.dumps({"zebra": len(dict.fromkeys(VOCABULARY)), "<mask>": 0})
    ),
    "added_tokens_decoder": lambda folder: bert(folder, {"added_tokens_decoder": {"4000": ADDED}}),
    "additional": lambda folder: bert(folder, {"additional_special_tokens": ["zebra", "<mask>"]}),
    "saved bert": saved_by_transformers(bert),
    "saved cased": lambda folder: saved_by_transformers(bert)(folder, {"do_lower_case": False}),
    "roberta": roberta,
    "roberta with a space": lambda folder: roberta(folder, {"add_prefix_space": True}),
    "saved roberta": saved_by_transformers(roberta),
    "xlm-roberta": xlm_roberta,
    "saved xlm-roberta": saved_by_transformers(xlm_roberta),
    "no class": lambda folder: without_class(folder),
}


def without_class(folder: Path) -> Path:
    saved_by_transformers(bert)(folder)
    (folder / "config.json").write_text('{"model_type": "xlm-roberta"}')
    said = json.loads((folder / "tokenizer_config.json").read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "m")
    expected, found = theirs(folder), ours(folder)
    assert isinstance(found, FastTokenizer)
    assert found.padding == (expected.pad_token_id or 0)
    assert found.truncation_side == expected.truncation_side
    assert found.model_max_length == expected.model_max_length
    assert found.backend.get_vocab() == expected.get_vocab()
    for text in ODD:
        assert found.backend.encode(text).ids == expected(text)["input_ids"], repr(text)
    assert found.pieces() == expected.batch_decode([[i] for i in range(len(expected))])


@pytest.mark.parametrize("kind", ["uncased", "cased", "saved roberta", "xlm-roberta"])
def test_so_are_those_of_any_text(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path / "m")
    expected, found = theirs(folder), ours(folder)

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
    def check(text: str) -> None:
        assert found.backend.encode(text).ids == expected(text)["input_ids"]

    check()


# ---- files that are damaged, or that somebody made on purpose --------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tokenizer_config.json", "["),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", '{"do_lower_case": "perhaps"}'),
        ("tokenizer_config.json", '{"model_max_length": "long"}'),
        ("tokenizer_config.json", '{"model_max_length": -5}'),
        ("tokenizer_config.json", '{"model_max_length": NaN}'),
        ("tokenizer_config.json", '{"truncation_side": "top"}'),
        ("tokenizer_config.json", '{"cls_token": null}'),
        ("tokenizer_config.json", '{"cls_token": {"content": 5}}'),
        ("tokenizer_config.json", '{"added_tokens_decoder": [1]}'),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {}}}'),
        ("tokenizer_config.json", '{"additional_special_tokens": 5}'),
        ("special_tokens_map.json", "5"),
        ("added_tokens.json", '["a"]'),
        ("tokenizer.json", "{}{"),
        ("tokenizer.json", '{"model": 5}'),
        ("tokenizer.json", '{"model": {"vocab": ["a"]}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": -1}}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": 1e30}}}'),
        ("tokenizer.json", '{"model": {"vocab": {}}, "added_tokens": [{"id": {}}]}'),
        ("tokenizer.json", '{"model": {"vocab": {}}, "truncation": {"direction": 5}}'),
    ],
)
def test_what_cannot_be_a_tokenizer(file: str, text: str, tmp_path: Path) -> None:
    folder = bert(tmp_path / "m")
    (folder / file).write_text(text)
    with pytest.raises(EncoderError):
        ours(folder)


@pytest.mark.parametrize(
    ("make", "file"), [(bert, "vocab.txt"), (roberta, "merges.txt"), (xlm_roberta, "tokenizer.json")]
)
def test_a_folder_without_a_vocabulary(make: Callable[[Path], Path], file: str, tmp_path: Path) -> None:
    """transformers makes one up: every text would be the same."""
    folder = make(tmp_path / "m")
    (folder / file).unlink()
    with pytest.raises(EncoderError, match=r"no vocabulary; expected tokenizer.json.*Download the model's files again"):
        ours(folder)


@pytest.mark.parametrize("make", [roberta, xlm_roberta])
@pytest.mark.parametrize(
    "model",
    [
        {}, {"vocab": {}, "merges": 5}, {"vocab": {"a": 0}, "merges": ["a b"]}, {"vocab": [["a"]]},
        {"vocab": [["a", "b"]]}, {"vocab": {"a": 0}, "merges": ["a a a"]}, {"vocab": []}, {"vocab": [["a", 0.0]]},
    ],
)  # fmt: skip
def test_what_cannot_be_another_tokenizer(make: Callable[[Path], Path], model: dict[str, Any], tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(EncoderError):
        ours(folder)


def test_a_table_of_characters_that_is_none(tmp_path: Path) -> None:
    folder = xlm_roberta(tmp_path / "m")
    for table in ("AAAA", "5", 5, "!", "A" * 1000):
        whole = json.loads((folder / "tokenizer.json").read_text())
        normalizer = {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": table}]}
        (folder / "tokenizer.json").write_text(json.dumps(whole | {"normalizer": normalizer}))
        with suppress(EncoderError), running(folder):  # or it does nothing, but never ends the process
            ours(folder).backend.encode("the cat")


def test_a_limit_that_is_none(tmp_path: Path) -> None:
    folder = bert(tmp_path / "m", {"model_max_length": 1000000000000000019884624838656})
    assert ours(folder).model_max_length >= 10**30
