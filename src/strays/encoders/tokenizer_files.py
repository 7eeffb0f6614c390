"""The tokenizer of a BERT, a RoBERTa or an XLM-RoBERTa, from its files, by the library `tokenizers` alone.

Ids are those of transformers. As there, of tokenizer.json counts the vocabulary, and how texts are cut into pieces is
decided by the tokenizer's class and by tokenizer_config.json; only a file of no class counts as it is. A folder
without tokenizer.json has vocab.txt, or vocab.json and merges.txt. Whatever else there is, transformers reads.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from strays.encoders.bert_config import BertConfig
from strays.encoders.settings import read_json

CLASSES = {"bert": "BertTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer"}
# tokenizer.json counts as it is.
NO_CLASS = ("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend")
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
    name = str(name).removesuffix("Fast")
    if name in (each.removesuffix("Fast") for each in NO_CLASS):
        backend = Tokenizer.from_file(str(folder / "tokenizer.json")) if files.whole else None
        return backend and files.finished(backend, {})
    build = {"BertTokenizer": _bert, "RobertaTokenizer": _roberta, "XLMRobertaTokenizer": _xlm_roberta}.get(name)
    return build(files) if build else None


@dataclass(frozen=True)
class TokenizerFiles:
    """What the files of a tokenizer say."""

    folder: Path
    whole: dict[str, Any]  # tokenizer.json, or nothing
    said: dict[str, Any]  # tokenizer_config.json, with the tokens of special_tokens_map.json
    added: list[AddedToken] = field(default_factory=list)  # in the order of their ids

    @classmethod
    def read(cls, folder: Path) -> TokenizerFiles:
        """Read all there are."""
        names = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
        whole, said, special, added = ({} if not (folder / name).is_file() else read_json(folder, name, dict)
                                       for name in names)  # fmt: skip
        if "added_tokens_decoder" in said:  # written by a newer transformers: it says all
            decoder = {int(i): AddedToken(**token) for i, token in said["added_tokens_decoder"].items()}
        else:
            said = said | special
            named = {_content(token) for token in (*map(said.get, SPECIAL), *_extra(said))}
            decoder = {i: AddedToken(text, special=text in named) for text, i in added.items()}
            decoder |= {token.pop("id"): AddedToken(**token) for token in whole.get("added_tokens", [])}
        return cls(folder, whole, said, [decoder[i] for i in sorted(decoder)])

    def special(self, defaults: dict[str, str]) -> dict[str, Token]:
        """The tokens with a meaning by their names; one that is among the added tokens is that one."""
        found = {key: self.said.get(key, defaults.get(key)) for key in SPECIAL}
        found |= {key: value for key, value in self.said.items() if key.endswith("_token") and _content(value)}
        known = {token.content: token for token in self.added}
        tokens = {key: _token(value) for key, value in found.items() if value is not None}
        return {key: known.get(_content(token), token) for key, token in tokens.items()}

    def older(self, *names: str) -> list[str] | None:
        """The paths of older files, if all are there."""
        paths = [self.folder / name for name in names]
        return [str(path) for path in paths] if all(path.is_file() for path in paths) else None

    def finished(self, backend: Tokenizer, defaults: dict[str, str]) -> FastTokenizer:
        """With the added tokens in its vocabulary, and the settings that are not the backend's."""
        special = self.special(defaults)
        padding = backend.padding or self.whole.get("padding") or {}
        if padding and "pad_token" not in special:
            special["pad_token"] = padding["pad_token"]
        there = {token.content for token in backend.get_added_tokens_decoder().values()}
        there |= {token.content for token in self.added}
        new: dict[str, AddedToken] = {}
        for token in (*special.values(), *map(_token, _extra(self.said))):
            if _content(token) not in there:
                new.setdefault(_content(token), _special(token))
        meant = {_content(token) for token in special.values()}
        added = [_special(token) if token.content in meant else token for token in self.added]
        backend.encode_special_tokens = bool(self.said.get("split_special_tokens", False))
        backend.add_tokens([*added, *new.values()])
        pad = special.get("pad_token")
        truncation = self.whole.get("truncation") or {}
        side = self.said.get("truncation_side") or str(truncation.get("direction", "right")).lower()
        backend.no_truncation()
        backend.no_padding()
        return FastTokenizer(backend, (pad and backend.token_to_id(_content(pad))) or 0, _side(side), self._longest())

    def ends(
        self, backend: Tokenizer, defaults: dict[str, str], first: str, last: str
    ) -> processors.TemplateProcessing:
        """What puts the marks of these names around a text."""
        start, end = (_content(self.special(defaults)[name]) for name in (first, last))
        template, marks = [start, "$A", end], [(mark, backend.token_to_id(mark)) for mark in (start, end)]
        return processors.TemplateProcessing(single=template, special_tokens=marks)

    def _longest(self) -> float:
        longest = self.said.get("model_max_length", self.said.get("max_len"))
        if longest is None:
            return NO_LIMIT
        if isinstance(longest, bool) or not isinstance(longest, int | float) or not longest >= 1:
            raise ValueError(
                f"model_max_length is {longest!r:.60} in tokenizer_config.json; expected a number of tokens"
            )
        return longest


def _bert(files: TokenizerFiles) -> FastTokenizer | None:
    """Word pieces; small letters unless tokenizer_config.json says otherwise."""
    paths, said = files.older("vocab.txt"), files.said
    if not files.whole and not paths:
        return None
    unknown = _content(files.special(BERTS)["unk_token"])
    vocabulary = files.whole["model"]["vocab"] if files.whole else models.WordPiece.read_file(*paths or [])
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=said.get("tokenize_chinese_chars", True),
        strip_accents=said.get("strip_accents"),
        lowercase=said.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    finished = files.finished(backend, BERTS)
    backend.post_processor = files.ends(backend, BERTS, "cls_token", "sep_token")
    return finished


def _roberta(files: TokenizerFiles) -> FastTokenizer | None:
    """Pairs of bytes."""
    paths = files.older("vocab.json", "merges.txt")
    if not files.whole and not paths:
        return None
    if files.whole:
        model = files.whole["model"]
        vocabulary, merges = model["vocab"], [_pair(merge) for merge in model["merges"]]
    else:
        vocabulary, merges = models.BPE.read_file(*paths or [])
    backend = Tokenizer(models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix=""))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=files.said.get("add_prefix_space", False))
    backend.decoder = decoders.ByteLevel()
    finished = files.finished(backend, ROBERTAS)
    backend.post_processor = files.ends(backend, ROBERTAS, "cls_token", "sep_token")
    return finished


def _xlm_roberta(files: TokenizerFiles) -> FastTokenizer | None:
    """Pieces of sentences by their likelihood; SentencePiece's own files are for transformers."""
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
    finished = files.finished(backend, ROBERTAS)
    backend.post_processor = files.ends(backend, ROBERTAS, "bos_token", "eos_token")
    return finished


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


def _side(side: Any) -> str:
    if side not in ("left", "right"):
        raise ValueError(f"truncation_side is {side!r:.60} in tokenizer_config.json; expected left or right")
    return str(side)
