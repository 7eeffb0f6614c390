"""The tokenizer of a BERT, a RoBERTa or an XLM-RoBERTa, from its files, by the library `tokenizers` alone.

Ids are those of transformers. As there, the tokenizer's class and tokenizer_config.json decide how texts are cut, and
of tokenizer.json counts the vocabulary; it counts as a whole if no class is named. A folder without tokenizer.json has
vocab.txt, or vocab.json and merges.txt. Whatever else there is, transformers reads.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from strays.encoders.bert_config import BertConfig
from strays.encoders.settings import read_json
from strays.errors import LoadingError

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
BERTS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
ROBERTAS = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "unk_token": "<unk>",
            "pad_token": "<pad>", "mask_token": "<mask>"}  # fmt: skip
# What transformers takes for "no limit".
NO_LIMIT = int(1e30)

Token = str | AddedToken


@dataclass(frozen=True, eq=False)
class FastTokenizer:
    """A tokenizer of the library `tokenizers`, and what a model's files say of its use."""

    backend: Tokenizer
    padding: int = 0  # the id that fills a batch up
    truncation_side: str = "right"
    model_max_length: float = NO_LIMIT

    def pieces(self) -> list[str]:
        """Every piece of the vocabulary, as text."""
        n = self.backend.get_vocab_size()
        return self.backend.decode_batch([[i] for i in range(n)], skip_special_tokens=False)


def load_tokenizer(folder: Path, config: BertConfig) -> FastTokenizer | None:
    """The tokenizer of a folder, or None if transformers has to read it."""
    files = TokenizerFiles.read(folder)
    name = files.said.get("tokenizer_class") or config.tokenizer_class or CLASSES[config.model_type]
    kind = KINDS.get(str(name).removesuffix("Fast"))
    backend = kind.build(files) if kind else None
    if kind is not None and backend is None and not any(folder.glob("*.model")):  # as SentencePiece calls its files
        expected = "expected tokenizer.json; or vocab.txt; or vocab.json and merges.txt"
        raise LoadingError(f"the encoder in {folder} has no vocabulary; {expected}. Download the model's files again")
    if kind is None or backend is None:
        return None
    special = files.special(kind.special)
    if "pad_token" not in special and (padding := backend.padding):
        special["pad_token"] = padding["pad_token"]
    backend.add_tokens(files.tokens_to_add(special, backend))
    backend.encode_special_tokens = bool(files.said.get("split_special_tokens", False))
    backend.no_truncation()
    backend.no_padding()
    if kind.ends is not None:
        start, end = (_content(special[key]) for key in kind.ends)
        marks = [(mark, backend.token_to_id(mark)) for mark in (start, end)]
        backend.post_processor = processors.TemplateProcessing(single=[start, "$A", end], special_tokens=marks)
    padding_id = backend.token_to_id(_content(special.get("pad_token")))
    return FastTokenizer(backend, padding_id or 0, files.truncation_side, files.model_max_length)


@dataclass(frozen=True)
class TokenizerFiles:
    """What the files of a tokenizer say."""

    folder: Path
    whole: dict[str, Any]  # tokenizer.json, or nothing
    said: dict[str, Any]  # tokenizer_config.json, with the tokens of special_tokens_map.json
    added: list[AddedToken]  # tokens that are no part of the vocabulary's own, in the order of their ids

    @classmethod
    def read(cls, folder: Path) -> TokenizerFiles:
        """Read all there are."""
        names = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
        there = {name: read_json(folder, name, dict) for name in names if (folder / name).is_file()}
        whole, said, special, added = (there.get(name, {}) for name in names)
        if "added_tokens_decoder" in said:  # newer files say it all in one place
            by_id = {int(i): AddedToken(**token) for i, token in said["added_tokens_decoder"].items()}
        else:
            said = said | special
            named = {_content(token) for token in (*map(said.get, SPECIAL), *_extra(said))}
            by_id = {i: AddedToken(text, special=text in named) for text, i in added.items()}
            by_id |= {token.pop("id"): AddedToken(**token) for token in whole.get("added_tokens", [])}
        return cls(folder, whole, said, [by_id[i] for i in sorted(by_id)])

    def older(self, *names: str) -> list[str] | None:
        """The paths of older files, if all are there."""
        paths = [self.folder / name for name in names]
        return [str(path) for path in paths] if all(path.is_file() for path in paths) else None

    def special(self, defaults: dict[str, str]) -> dict[str, Token]:
        """The tokens with a meaning by their names; one that is among the added tokens is that one."""
        found = {key: self.said.get(key, defaults.get(key)) for key in SPECIAL}
        found |= {key: value for key, value in self.said.items() if key.endswith("_token") and _content(value)}
        known = {token.content: token for token in self.added}
        tokens = {key: _token(value) for key, value in found.items() if value is not None}
        return {key: known.get(_content(token), token) for key, token in tokens.items()}

    def tokens_to_add(self, special: dict[str, Token], backend: Tokenizer) -> list[AddedToken]:
        """The added tokens, and then the special ones that are not among them, in transformers' order."""
        meant = {_content(token) for token in special.values()}
        found = {token.content: _special(token) if token.content in meant else token for token in self.added}
        there = {token.content for token in backend.get_added_tokens_decoder().values()}
        for token in (*special.values(), *map(_token, _extra(self.said))):
            if _content(token) not in there:
                found.setdefault(_content(token), _special(token))
        return list(found.values())

    @property
    def truncation_side(self) -> str:
        """On which side texts that are too long are cut."""
        truncation = self.whole.get("truncation") or {}
        side = self.said.get("truncation_side") or str(truncation.get("direction", "right")).lower()
        if side not in ("left", "right"):
            raise ValueError(f"truncation_side is {side!r:.60} in tokenizer_config.json; expected left or right")
        return str(side)

    @property
    def model_max_length(self) -> float:
        """The most tokens that the model is made for."""
        longest = self.said.get("model_max_length", self.said.get("max_len"))
        if longest is None:
            return NO_LIMIT
        if isinstance(longest, bool) or not isinstance(longest, int | float) or not longest >= 1:
            got = f"model_max_length is {longest!r:.60} in tokenizer_config.json"
            raise ValueError(f"{got}; expected a number of tokens, 1 or more")
        return longest


def _as_it_is(files: TokenizerFiles) -> Tokenizer | None:
    return Tokenizer.from_file(str(files.folder / "tokenizer.json")) if files.whole else None


def _bert(files: TokenizerFiles) -> Tokenizer | None:
    """Word pieces; small letters unless tokenizer_config.json says otherwise."""
    paths, said = files.older("vocab.txt"), files.said
    if files.whole:
        vocabulary = files.whole["model"]["vocab"]
    elif paths:
        vocabulary = models.WordPiece.read_file(*paths)
    else:
        return None
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=_content(files.special(BERTS)["unk_token"])))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=said.get("tokenize_chinese_chars", True),
        strip_accents=said.get("strip_accents"),
        lowercase=said.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    return backend


def _roberta(files: TokenizerFiles) -> Tokenizer | None:
    """Pairs of bytes."""
    paths = files.older("vocab.json", "merges.txt")
    if files.whole:
        model = files.whole["model"]
        vocabulary, merges = model["vocab"], [_pair(merge) for merge in model["merges"]]
    elif paths:
        vocabulary, merges = models.BPE.read_file(*paths)
    else:
        return None
    backend = Tokenizer(models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix=""))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=files.said.get("add_prefix_space", False))
    backend.decoder = decoders.ByteLevel()
    return backend


def _xlm_roberta(files: TokenizerFiles) -> Tokenizer | None:
    """The likeliest pieces of a sentence; SentencePiece's own files are for transformers."""
    if not files.whole:
        return None
    vocabulary = [tuple(piece) for piece in files.whole["model"]["vocab"]]
    backend = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    normalizer = files.whole.get("normalizer") or {}
    for each in normalizer.get("normalizers", [normalizer]):
        if each.get("type") == "Precompiled":
            backend.normalizer = normalizers.Precompiled(base64.b64decode(each["precompiled_charsmap"]))
            break
    scheme = "always" if files.said.get("add_prefix_space", True) else "never"
    spaces = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    backend.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    return backend


@dataclass(frozen=True)
class TokenizerKind:
    """How tokenizers of a class are made: what cuts a text, the usual special tokens, and which mark a text's ends."""

    build: Callable[[TokenizerFiles], Tokenizer | None]
    special: dict[str, str]
    ends: tuple[str, str] | None


CLASSES = {"bert": "BertTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer"}
KINDS = {
    "BertTokenizer": TokenizerKind(_bert, BERTS, ("cls_token", "sep_token")),
    "RobertaTokenizer": TokenizerKind(_roberta, ROBERTAS, ("cls_token", "sep_token")),
    "XLMRobertaTokenizer": TokenizerKind(_xlm_roberta, ROBERTAS, ("bos_token", "eos_token")),
    "PreTrainedTokenizer": TokenizerKind(_as_it_is, {}, None),
    "TokenizersBackend": TokenizerKind(_as_it_is, {}, None),
}


def _pair(merge: Any) -> tuple[str, str]:
    """Older files have the two as one string."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def _extra(said: dict[str, Any]) -> list[Any]:
    """Special tokens without a name."""
    found = said.get("extra_special_tokens") or said.get("additional_special_tokens") or []
    return list(found.values()) if isinstance(found, dict) else list(found)


def _token(value: Any) -> Token:
    """A token as tokenizers knows it, from what JSON says of it."""
    if not isinstance(value, dict):
        return value
    return AddedToken(**{key: each for key, each in value.items() if key != "__type"})


def _special(token: Token) -> AddedToken:
    if isinstance(token, str):
        return AddedToken(token, special=True)
    token.special = True
    return token


def _content(token: Any) -> str:
    if isinstance(token, dict):
        return str(token.get("content", ""))
    return token.content if isinstance(token, AddedToken) else token if isinstance(token, str) else ""
