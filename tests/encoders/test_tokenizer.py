from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strays.encoders import tokenizer as module
from strays.encoders.pretrained import Pretrained
from strays.encoders.settings import EncoderSettings
from strays.encoders.tokenizer import Batch, BatchTokenizer
from strays.encoders.tokenizer_files import FastTokenizer
from strays.encoders.transformers_models import SlowTokenizer
from strays.errors import EncoderError


def load(folder: Path) -> FastTokenizer:
    found = Pretrained(EncoderSettings(str(folder))).tokenizer
    assert isinstance(found, FastTokenizer)
    return found


@pytest.fixture
def tokenizer(tiny_bert: Path) -> FastTokenizer:
    return load(tiny_bert)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 16)


class InPython:
    """The same tokenizer as transformers would show it, if it were one of Python's own."""

    def __init__(self, fast: FastTokenizer) -> None:
        self.backend, self.pad_token_id, self.model_max_length = fast.backend, fast.padding, fast.model_max_length

    def __call__(
        self, texts: list[str], *, verbose: bool, truncation: bool = False, max_length: int = 0
    ) -> dict[str, list[list[int]]]:
        whole = [self.backend.encode(text).ids for text in texts]
        return {"input_ids": [[*ids[: max_length - 1], ids[-1]] if len(ids) > max_length > 0 else ids for ids in whole]}


def slow(tokenizer: FastTokenizer) -> SlowTokenizer:
    return SlowTokenizer(InPython(tokenizer))


def test_batches_keep_to_the_budget_and_hold_every_text_once(tokenizer: FastTokenizer) -> None:
    texts = [" ".join(["cat"] * (1 + i % 49)) for i in range(200)]
    batches = list(BatchTokenizer(tokenizer, 40, n_pieces=4).batches(texts, 64))
    for batch in batches:
        assert batch.ids.size <= 64 or len(batch.rows) == 1
        assert batch.ids.shape == batch.mask.shape
        assert batch.ids.shape[1] <= 40
    assert sorted(np.concatenate([batch.rows for batch in batches]).tolist()) == list(range(200))
    longest = [int(batch.lengths.max()) for batch in batches[:3]]
    assert longest[0] == 40, "the longest come first"


@pytest.mark.parametrize("wrap", [lambda tokenizer: tokenizer, slow], ids=["fast", "slow"])
def test_ids_are_the_tokenizers_own(tiny_bert: Path, wrap: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 3)
    texts = ["the cat sleeps", "a dog", "", "the cow eats in the garden near the old barn and sings " * 9, "the cat"]
    own = load(tiny_bert)
    own.backend.enable_truncation(20)
    expected = [own.backend.encode(text).ids for text in texts]
    seen = {}
    for batch in BatchTokenizer(wrap(load(tiny_bert)), 20).batches(texts, 30):
        assert batch.n_cut == (3 in batch.rows)
        for line, row in enumerate(batch.rows.tolist()):
            mask = batch.mask[line].astype(bool)
            assert (batch.ids[line][~mask] == own.padding).all()
            seen[row] = batch.ids[line][mask].tolist()
    assert [seen[i] for i in range(len(texts))] == expected


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8))
def test_padding_a_batch_loses_nothing(lengths: list[int]) -> None:
    packed = np.arange(1, sum(lengths) + 1)
    batch = Batch(np.arange(len(lengths)), packed, np.array(lengths), padding=0, width=max(2, *lengths))
    assert batch.ids[batch.mask.astype(bool)].tolist() == packed.tolist()
    assert batch.mask.sum(1).tolist() == lengths


@pytest.mark.process
def test_processes_tokenize_alike_and_end(tiny_bert: Path) -> None:
    texts = [" ".join(["cat", "döner", "x\x00y", "\u2028", '"'][: 1 + i % 5] * (1 + i % 7)) for i in range(300)]
    here = list(BatchTokenizer(load(tiny_bert), 20, n_pieces=2).batches(texts, 200))
    there = BatchTokenizer(load(tiny_bert), 20, n_pieces=2, n_workers=2)
    for ours, theirs in zip(here, there.batches(texts, 200), strict=True):
        assert np.array_equal(ours.rows, theirs.rows)
        assert np.array_equal(ours.packed, theirs.packed)
        assert np.array_equal(ours.lengths, theirs.lengths)
        assert ours.n_cut == theirs.n_cut
    workers = there._workers
    assert workers is not None
    unread = workers.tokenize([["a cat"], ["a dog", "a cow"], ["the cat"]] * 3)
    first = next(unread)
    unread.close()  # what nobody has read must not be taken for the next answer
    again = list(workers.tokenize([["a cat"], ["a dog", "a cow"]]))
    assert [len(lengths) for lengths, *_ in again] == [1, 2]
    assert np.array_equal(again[0][1], first[1])
    workers._processes[0].kill()
    with pytest.raises(EncoderError, match="ended unexpectedly; run the command again"):
        list(workers.tokenize([["a cat"]] * 4))
    assert len(list(workers.tokenize([["a cat"]] * 4))) == 4
    process = workers._processes[0]
    workers.close()
    assert process.poll() is not None


@pytest.mark.process
def test_long_texts_do_not_make_processes_and_caller_wait_for_one_another(tokenizer: FastTokenizer) -> None:
    workers = BatchTokenizer(tokenizer, 512, n_workers=2)._workers
    assert workers is not None
    lists = [["cat " * 150] * 4096] * 5  # far more than a pipe holds, both ways
    assert [len(lengths) for lengths, *_ in workers.tokenize(lists)] == [4096] * 5
    workers.close()


@pytest.mark.process
def test_a_call_that_is_not_read_to_its_end_blocks_no_other(tokenizer: FastTokenizer) -> None:
    cutter = BatchTokenizer(tokenizer, 20, n_workers=2)
    texts = ["a cat"] * 100
    unread = cutter.batches(texts, 50)
    next(unread)
    assert sum(len(batch.rows) for batch in cutter.batches(texts, 50)) == 100
    unread.close()


def test_texts_are_cut_on_the_side_the_tokenizer_says(tiny_bert: Path) -> None:
    left, whole = replace(load(tiny_bert), truncation_side="left"), load(tiny_bert)
    text = "the cat sleeps near a dog"
    (batch,) = BatchTokenizer(left, 4).batches([text], 50)
    first, *ids = whole.backend.encode(text).ids
    assert batch.packed.tolist() == [first, *ids[-3:]]
