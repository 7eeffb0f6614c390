"""What goes in comes out, bit for bit, or not at all: whatever happens to the processes and the file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strays.encoders.cache import EmbeddingCache, clear
from strays.encoders.cache import store as store_module
from strays.encoders.cache.store import PAGE, Store
from strays.errors import StraysWarning, UsageError

SMALL = 10**7
# Texts and their embeddings for processes: each can tell whether what another has written is right.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from strays.encoders.cache import EmbeddingCache

def texts_of(name, start, n):
    return [f"{name} {i}" for i in range(start, start + n)]

def embeddings_of(texts, d=64):
    words = np.array([hash_of(text) for text in texts], dtype=np.uint64).reshape(-1, 1)
    return ((words * np.arange(1, d + 1, dtype=np.uint64)) >> np.uint64(40)).astype(np.float32)

def hash_of(text):
    from hashlib import sha256
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")
"""
HELPERS: dict = {}
exec(PROGRAM, HELPERS)
texts_of, embeddings_of = HELPERS["texts_of"], HELPERS["embeddings_of"]


@pytest.fixture
def cache(own_cache: Path) -> EmbeddingCache:
    return EmbeddingCache(max_bytes=SMALL)


def file_of(folder: Path) -> Path:
    return folder / "strays-embeddings" / "embeddings.sqlite"


def start(program: str, *args: object) -> subprocess.Popen:
    command = [sys.executable, "-W", "error", "-c", PROGRAM + program, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_right(cache: EmbeddingCache, fingerprint: str, texts: list[str]) -> int:
    """How many texts are here; each must have its own embedding."""
    found, embeddings = cache.get(fingerprint, texts)
    here = [text for text, there in zip(texts, found, strict=True) if there]
    if here:
        assert np.array_equal(embeddings, embeddings_of(here))
    return len(here)


# ---- what goes in comes out ------------------------------------------------------------------------------------------

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@settings(deadline=None, max_examples=50)
@given(data=st.data(), texts=st.lists(any_text, unique=True, max_size=30), d=st.integers(1, 9))
def test_every_float_comes_back_bit_for_bit(
    data: st.DataObject, texts: list[str], d: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bits = data.draw(arrays(np.uint32, (len(texts), d)))
    cache = EmbeddingCache(tmp_path_factory.mktemp("cache"), SMALL)
    try:
        cache.put("f", texts, bits.view(np.float32))
        asked = data.draw(st.lists(st.sampled_from([*texts, "\ud800not there"]), max_size=40))
        found, embeddings = cache.get("f", asked)
        assert found.tolist() == [text in texts for text in asked]
        expected = bits[[texts.index(text) for text in asked if text in texts]]
        assert np.array_equal(embeddings.view(np.uint32).reshape(-1, d), expected)
        assert not cache.get("g", asked)[0].any()
    finally:
        cache.close()


def test_zeros_and_nans_keep_their_bits(cache: EmbeddingCache) -> None:
    bits = np.array([[0x80000000, 0x7F800001, 0xFFC12345, 0x00000001, 0x7F800000]], dtype=np.uint32)
    cache.put("f", ["a"], bits.view(np.float32))
    assert np.array_equal(cache.get("f", ["a"])[1].view(np.uint32), bits)


def test_half_characters_do_not_share_an_embedding(cache: EmbeddingCache) -> None:
    texts = ["a\ud800", "a\udfff", "a?", "a\ufffd", "\ud83d\ude00", "\U0001f600"]
    cache.put("f", texts, np.arange(12, dtype=np.float32).reshape(6, 2))
    found, embeddings = cache.get("f", texts)
    assert found.all()
    assert embeddings.tolist() == np.arange(12).reshape(6, 2).tolist()


def test_more_than_one_part_in_any_order(cache: EmbeddingCache) -> None:
    texts = texts_of("t", 0, 10_000)
    cache.put("f", texts, embeddings_of(texts))
    order = np.random.default_rng(0).permutation(11_000)
    asked = [f"t {i}" for i in order] + ["t 3", "t 3"]
    assert check_right(cache, "f", asked) == 10_002
    assert cache.info().entries == {"f": 10_000}


def test_what_is_kept_stays(cache: EmbeddingCache) -> None:
    cache.put("f", ["a", "a", "b"], np.array([[1], [1], [2]]))
    cache.put("f", ["a", "c"], np.array([[9], [3]]))
    assert cache.get("f", ["a", "b", "c"])[1].tolist() == [[1], [2], [3]]
    assert cache.info().entries == {"f": 3}


def test_putting_again_takes_no_room(cache: EmbeddingCache) -> None:
    rows = np.ones((1000, 500), dtype=np.float32)
    cache.put("f", ["the oldest"], rows[:1])
    for _ in range(20):
        cache.put("f", [str(i) for i in range(1000)], rows)
    assert cache.get("f", ["the oldest"])[0].all()


@pytest.mark.process
def test_a_new_process_finds_it(cache: EmbeddingCache, own_cache: Path) -> None:
    cache.put("f", texts_of("t", 0, 50), embeddings_of(texts_of("t", 0, 50)))
    process = start(
        "found, X = EmbeddingCache().get('f', texts_of('t', 0, 50))\n"
        "print(found.all() and np.array_equal(X, embeddings_of(texts_of('t', 0, 50))))"
    )
    assert process.communicate() == ("True\n", "")


def test_nothing_found_has_no_rows(cache: EmbeddingCache) -> None:
    for texts in ([], ["a"]):
        found, embeddings = cache.get("f", texts)
        assert (found.tolist(), embeddings.shape) == ([False] * len(texts), (0, 0))
    cache.put("f", [], np.empty((0, 3)))
    assert cache.info().entries == {}


@pytest.mark.parametrize("shape", [(2, 3), (1,), (0, 3)])
def test_embeddings_of_other_texts_are_refused(cache: EmbeddingCache, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"expected one row for each of 1 texts"):
        cache.put("f", ["a"], np.zeros(shape))


# ---- never larger than its bound -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_times_the_bound_keeps_the_newest_within_it(cache: EmbeddingCache, own_cache: Path) -> None:
    d, n = 500, 0
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, d)).astype(np.float32)
    while n * d * 4 < 10 * SMALL:
        size = int(rng.choice([1, 30, 2000]))
        cache.put("f", [str(i) for i in range(n, n + size)], rows[:size])
        n += size
        assert file_of(own_cache).stat().st_size <= SMALL
    found, _ = cache.get("f", [str(i) for i in range(n)])
    assert found[np.argmax(found) :].all(), "a newer one went before an older one"
    assert cache.info().entries == {"f": found.sum()}
    assert found.sum() * d * 4 > 0.7 * SMALL


@pytest.mark.slow
def test_small_embeddings_whose_index_is_large(cache: EmbeddingCache, own_cache: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(5000, 4)).astype(np.float32)
    for start_ in range(0, 200_000, 5000):
        cache.put("f", [str(i) for i in range(start_, start_ + 5000)], rows)
    assert file_of(own_cache).stat().st_size <= SMALL
    found, embeddings = cache.get("f", [str(i) for i in range(195_000, 200_000)])
    assert found.all()
    assert np.array_equal(embeddings, rows)
    assert not cache.get("f", ["0"])[0][0]


def test_an_encoder_that_went_is_not_counted(cache: EmbeddingCache) -> None:
    rows = np.zeros((1000, 500), dtype=np.float32)
    cache.put("old", ["a", "b"], rows[:2])
    for i in range(8):
        cache.put("new", [f"{i} {j}" for j in range(1000)], rows)
    assert list(cache.info().entries) == ["new"]


def test_what_can_never_fit_is_not_kept(cache: EmbeddingCache) -> None:
    cache.put("f", ["small"], np.ones((1, 4)))
    cache.put("g", ["huge"], np.ones((1, SMALL // 4)))
    assert cache.get("f", ["small"])[0].all()
    assert not cache.get("g", ["huge"])[0].any()


def test_a_full_map_is_never_an_error(cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: with no room left, embeddings are not kept, and those there can still be read."""
    cache.put("f", ["a"], np.ones((1, 4)))

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_make_room", lambda *_: None)
        rows = np.ones((5000, 1000), dtype=np.float32)
        cache.put("f", [str(i) for i in range(5000)], rows)
        cache.put("f", ["b"], np.ones((1, 400_000)))
    assert cache.get("f", ["b"])[0].tolist() == [False]
    cache.put("f", ["b"], np.ones((1, 4)))
    assert cache.get("f", ["b"])[0].tolist() == [True]


def test_a_smaller_bound_starts_anew(own_cache: Path) -> None:
    rows = np.zeros((4000, 1000), dtype=np.float32)
    EmbeddingCache(max_bytes=10 * SMALL).put("f", [str(i) for i in range(4000)], rows)
    assert file_of(own_cache).stat().st_size > SMALL
    cache = EmbeddingCache(max_bytes=SMALL)
    assert not cache.get("f", ["0"])[0].any()
    cache.put("f", ["0"], rows[:1])
    assert cache.get("f", ["0"])[0].all()
    assert file_of(own_cache).stat().st_size <= SMALL


@pytest.mark.process
def test_a_file_that_another_process_made_larger_is_still_read(own_cache: Path) -> None:
    cache = EmbeddingCache(max_bytes=SMALL)
    cache.put("f", ["a"], embeddings_of(["a"]))
    process = start(
        "texts = texts_of('t', 0, 60_000)\nEmbeddingCache(max_bytes=10**8).put('f', texts, embeddings_of(texts))"
    )
    assert process.communicate() == ("", "")
    assert file_of(own_cache).stat().st_size > SMALL
    assert check_right(cache, "f", ["a", *texts_of("t", 0, 60_000)]) == 60_001


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "none", "false"])
def test_the_cache_is_off(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no folder of that name is made."""
    monkeypatch.setenv("STRAYS_CACHE", word)
    monkeypatch.chdir(tmp_path)
    cache = EmbeddingCache()
    cache.put("f", ["a"], np.ones((1, 4)))
    assert not cache.get("f", ["a"])[0].any()
    assert cache.info().to_dict()["folder"] is None
    assert "off" in cache.info().to_words()["cache"]
    assert clear() == 0
    cache.close()
    assert list(tmp_path.iterdir()) == []


def test_none_is_kept_with_a_size_of_0(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAYS_CACHE_SIZE", "0")
    cache = EmbeddingCache()
    cache.put("f", ["a"], np.ones((1, 4)))
    assert not cache.get("f", ["a"])[0].any()
    assert cache.info().to_words()["may hold"] == "no embeddings"
    assert list(own_cache.iterdir()) == []
    monkeypatch.setenv("STRAYS_CACHE_SIZE", "plenty")
    with pytest.raises(UsageError, match="STRAYS_CACHE_SIZE is 'plenty'"):
        cache.get("f", ["a"])


# ---- several processes -----------------------------------------------------------------------------------------------

WRITE = """
name, n, bound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cache = EmbeddingCache(max_bytes=bound)
for start in range(0, n, 100):
    texts = texts_of(name, start, 100)
    cache.put("f", texts, embeddings_of(texts))
    asked = texts_of("first", 0, 1000) + texts_of("second", 0, 1000)
    found, X = cache.get("f", asked)
    assert np.array_equal(X.reshape(-1, 64), embeddings_of([t for t, here in zip(asked, found) if here]))
    print(start, flush=True)
"""


@pytest.mark.process
def test_processes_write_and_read_at_once(cache: EmbeddingCache) -> None:
    processes = [start(WRITE, name, 1000, SMALL) for name in ("first", "second")]
    for process in processes:
        assert process.communicate()[1] == ""
    assert check_right(cache, "f", texts_of("first", 0, 1000) + texts_of("second", 0, 1000)) == 2000
    assert cache.info().entries == {"f": 2000}


@pytest.mark.process
def test_killed_while_writing(cache: EmbeddingCache, own_cache: Path) -> None:
    """Killed at many moments, some while old embeddings make room: never a wrong one, and the next goes on."""
    rng = np.random.default_rng(0)
    rows = np.zeros((1000, 1500), dtype=np.float32)
    cache.put("filler", [str(i) for i in range(1000)], rows)
    cache.close()
    kept = 0
    for i in range(6):
        process = start(WRITE, f"run {i}", 100_000, SMALL)
        while process.poll() is None and not process.stdout.readline():
            pass
        time.sleep(float(rng.uniform(0, 0.15)))
        process.send_signal(signal.SIGKILL)
        assert process.communicate()[1] == ""
        here = check_right(cache, "f", texts_of(f"run {i}", 0, 5000))
        assert here >= 100
        kept += here
        cache.close()
    assert sum(cache.info().entries.values()) >= kept
    assert file_of(own_cache).stat().st_size <= SMALL


@pytest.mark.process
def test_a_forked_child_and_its_parent_go_on(cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, init = [], Store.__init__
    monkeypatch.setattr(Store, "__init__", lambda *args: opened.append(os.getpid()) or init(*args))
    texts = texts_of("t", 0, 100)
    cache.put("f", texts, embeddings_of(texts))
    child = os.fork()
    if not child:
        try:
            assert check_right(cache, "f", texts) == 100
            assert opened[-1] == os.getpid()
            cache.put("f", ["of the child"], embeddings_of(["of the child"]))
            os._exit(0)
        finally:
            os._exit(1)
    cache.put("f", ["of the parent"], embeddings_of(["of the parent"]))
    assert os.waitpid(child, 0)[1] == 0
    assert check_right(cache, "f", [*texts, "of the child", "of the parent"]) == 102


def test_threads_share_it(cache: EmbeddingCache) -> None:
    failed = []

    def work(name: str) -> None:
        try:
            for start_ in range(0, 500, 50):
                texts = texts_of(name, start_, 50)
                cache.put("f", texts, embeddings_of(texts))
                check_right(EmbeddingCache(max_bytes=SMALL), "f", texts_of("a", 0, 500) + texts)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert cache.info().entries == {"f": 1500}


@pytest.mark.process
def test_cleared_by_another_process(cache: EmbeddingCache, own_cache: Path) -> None:
    cache.put("f", ["a"], embeddings_of(["a"]))
    process = start("from strays.encoders.cache import clear\nprint(clear() > 0)")
    assert process.communicate() == ("True\n", "")
    assert not cache.get("f", ["a"])[0].any()
    cache.put("f", ["b"], embeddings_of(["b"]))
    assert check_right(cache, "f", ["a", "b"]) == 1
    assert clear() > 0
    assert list(own_cache.iterdir()) == []
    assert cache.info().entries == {}


# ---- a file that is not what it should be ----------------------------------------------------------------------------


def foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA page_size={PAGE}")
        db.execute("CREATE TABLE somebody (word)")


def overwrite(file: Path, where: float, with_: bytes) -> None:
    content = bytearray(file.read_bytes())
    at = int(where * len(content))
    content[at : at + len(with_)] = with_
    file.write_bytes(content)


DAMAGES = {
    "junk": lambda file: file.write_bytes(np.random.default_rng(0).bytes(50_000)),
    "a few bytes": lambda file: file.write_bytes(b"hello"),
    "a foreign database": foreign,
    "cut to its first pages": lambda file: os.truncate(file, 8192),
    "cut in half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "zeros in the middle": lambda file: overwrite(file, 0.5, bytes(30_000)),
    "junk in the middle": lambda file: overwrite(file, 0.5, np.random.default_rng(0).bytes(30_000)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_noticed_and_replaced(damage: str, cache: EmbeddingCache, own_cache: Path) -> None:
    texts = texts_of("t", 0, 3000)
    cache.put("f", texts, embeddings_of(texts))
    cache.close()
    DAMAGES[damage](file_of(own_cache))
    with pytest.warns(StraysWarning, match=r"the embeddings stored in .* were damaged .* removed") as told:
        assert check_right(cache, "f", texts) == 0
    assert len(told) == 1
    cache.put("f", texts, embeddings_of(texts))
    assert check_right(cache, "f", texts) == 3000
    assert [path.name for path in own_cache.iterdir()] == ["strays-embeddings"]


@pytest.mark.parametrize("bits", [[0], [63], [64], [1000], [2100], [127, 191]], ids=str)
def test_flipped_bits_are_noticed(cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch, bits: list[int]) -> None:
    """Also the signs of two values, which a sum of weighted words does not tell from none."""
    texts = texts_of("t", 0, 3)
    record = store_module._record

    def flipped(key: bytes, values: bytes) -> bytes:
        data = bytearray(record(key, values))
        for bit in bits:
            data[bit // 8] ^= 1 << bit % 8
        return bytes(data)

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_record", flipped)
        cache.put("f", texts, embeddings_of(texts))
    with pytest.warns(StraysWarning, match="an embedding is not what was written"):
        assert not cache.get("f", texts)[0].any()


def test_an_embedding_is_not_taken_for_another_texts(cache: EmbeddingCache, own_cache: Path) -> None:
    """Damage may lead a text's hash to another row."""
    cache.put("f", ["a", "b"], embeddings_of(["a", "b"]))
    cache.close()
    with sqlite3.connect(file_of(own_cache)) as db:
        (one,), (other,) = db.execute("SELECT record FROM embeddings ORDER BY id")
        db.execute("UPDATE embeddings SET record = CASE record WHEN ? THEN ? ELSE ? END", (one, other, one))
    with pytest.warns(StraysWarning, match="an embedding is not what was written"):
        assert not cache.get("f", ["a"])[0].any()


@pytest.mark.parametrize("others", [set(), {"letter.txt"}], ids=["ours", "somebody's too"])
def test_embeddings_of_0_1_are_not_used_and_make_room(cache: EmbeddingCache, own_cache: Path, others: set[str]) -> None:
    for name in {"data.mdb", "lock.mdb"} | others:
        (own_cache / "embeddings.lmdb").mkdir(exist_ok=True)
        (own_cache / "embeddings.lmdb" / name).write_bytes(bytes(100))
    assert sum(cache.info().sizes.values()) == 200 + 100 * len(others)
    cache.put("f", ["a"], embeddings_of(["a"]))
    assert (own_cache / "embeddings.lmdb").exists() == bool(others)


def test_a_folder_that_cannot_be_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = EmbeddingCache(tmp_path / "file" / "cache", SMALL)
    with pytest.warns(StraysWarning, match=r"embeddings cannot be stored in .*STRAYS_CACHE") as told:
        cache.put("f", ["a"], np.ones((1, 4)))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put("f", ["a"], np.ones((1, 4)))
        assert not cache.get("f", ["a"])[0].any()
        assert cache.info().entries == {}


def test_a_full_disk_is_told_once(cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def full(*_: object) -> None:
        tried.append(1)
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(Store, "_insert", full)
    with pytest.warns(StraysWarning, match="database or disk is full"):
        cache.put("f", ["a"], np.ones((1, 4)))
    cache.put("f", ["a"], np.ones((1, 4)))
    assert len(tried) == 1
