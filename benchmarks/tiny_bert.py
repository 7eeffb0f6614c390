"""A BERT small enough to build on the spot, with random weights, for tests and attacks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def save_bert_of(
    words: Iterable[str],
    folder: Path,
    *,
    layers: int = 2,
    heads: int = 2,
    width: int = 32,
    inner_width: int = 64,
    longest: int = 64,
    seed: int = 0,
) -> None:
    """Save one as transformers saves models; it knows these words, and others by their letters."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters), *words]
    ids = {piece: i for i, piece in enumerate(dict.fromkeys(vocabulary))}
    pieces = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=longest, **special).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(ids),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner_width,
        max_position_embeddings=longest,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
