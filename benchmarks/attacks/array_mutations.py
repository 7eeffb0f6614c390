"""Ways to damage the arrays of a saved model, from a flipped bit to what somebody would write who wants it loaded.

Arrays are hashed again unless a mutation says not to: whoever can write the arrays can write their hash.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.attacks.mutating import HOSTILE_NAMES, Mutation, Rng, flipped, pick
from benchmarks.attacks.saved import CODES, Saved, packed
from strays.model.folder import ARRAYS


def flip_unhashed(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    data = packed(saved.entries)
    saved.write(folder, arrays=data, rehash=True)
    (folder / ARRAYS).write_bytes(flipped(rng, data, 0, len(data)))
    return "not hashed again"


def flip_values(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    entry = saved.entries[i]
    changed = replace(entry, data=flipped(rng, entry.data, 0, len(entry.data)))
    saved.write(folder, entries=[*saved.entries[:i], changed, *saved.entries[i + 1 :]])
    return entry.name


def flip_header(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    data = packed(saved.entries)
    end = 8 + struct.unpack("<Q", data[:8])[0]
    saved.write(folder, arrays=flipped(rng, data, 0 if rng.random() < 0.2 else 8, end))
    return ""


def cut_arrays(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    data = packed(saved.entries)
    saved.write(folder, arrays=data[: int(rng.integers(len(data)))], rehash=bool(rng.random() < 0.8))
    return ""


def longer_arrays(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    saved.write(folder, arrays=packed(saved.entries) + rng.bytes(int(rng.integers(1, 10_000))))
    return ""


def other_shape(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    array = saved.entries[i].array
    changes: dict[str, Callable[[], np.ndarray]] = {
        "transposed": lambda: array.T,
        "flat": lambda: array.reshape(-1),
        "a row": lambda: array.reshape(1, -1),
        "a column": lambda: array.reshape(-1, 1),
        "one dimension more": lambda: array[None],
        "nothing": lambda: array.reshape(-1)[:0],
        "no rows": lambda: np.empty((0, *array.shape[1:]), array.dtype),
        "no columns": lambda: np.empty((*array.shape[:1], 0), array.dtype),
        "one number": lambda: np.array(array.reshape(-1)[0] if array.size else 0, array.dtype),
        "ten times": lambda: np.concatenate([np.atleast_1d(array)] * 10),
    }
    if array.ndim and len(array):
        changes["a row less"] = lambda: array[:-1]
        changes["a row more"] = lambda: np.concatenate([array, array[-1:]])
        changes["one row"] = lambda: array[:1]
        changes["two rows"] = lambda: array[:2]
        changes["a column less"] = lambda: array[..., :-1]
        changes["a column more"] = lambda: np.concatenate([array, array[..., -1:]], axis=-1)
    name = pick(rng, list(changes))
    entry = saved.entries[i].holding(np.ascontiguousarray(changes[name]()))
    saved.write(folder, entries=[*saved.entries[:i], entry, *saved.entries[i + 1 :]])
    return f"{entry.name} {name}"


def declared_shape(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    shape = pick(
        rng,
        [
            (2**40,),
            (2**62, 2**62),
            (2**63,),
            (2**64 - 1,),
            (10**9, 384),
            (0, 2**62),
            (2**32, 2**32),
            (1,) * 10_000,
            (),
            (3, 0, 10**12),
            (0,) * 100,
            (1,) * 64,
            (1,) * 65,
        ],
    )
    entry = replace(saved.entries[i], shape=shape)
    if 0 in shape and rng.random() < 0.7:
        entry = replace(entry, data=b"")
    saved.write(folder, entries=[*saved.entries[:i], entry, *saved.entries[i + 1 :]])
    return f"{entry.name} {shape!r:.60}"


def other_dtype(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    entry = saved.entries[i]
    if rng.random() < 0.5:
        kind = pick(rng, [name for name in CODES if name != str(entry.array.dtype)])
        with np.errstate(all="ignore"):
            changed = entry.holding(entry.array.astype(kind))
    else:
        codes = [
            "BF16",
            "F8_E4M3",
            "F8_E5M2",
            "U16",
            "U32",
            "U64",
            "C64",
            "F4",
            "X",
            "",
            "F64",
            "I64",
            "F6_E2M3",
            "F8_E8M0",
        ]
        kind = pick(rng, codes)
        size = {"BF16": 2, "U16": 2, "U32": 4, "U64": 8, "C64": 8, "F64": 8, "I64": 8}.get(kind, 1)
        changed = replace(entry, code=kind, data=rng.bytes(size * max(int(np.prod(entry.shape)), 0)))
    saved.write(folder, entries=[*saved.entries[:i], changed, *saved.entries[i + 1 :]])
    return f"{entry.name} as {kind}"


def odd_values(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    entry = saved.entries[i]
    array = np.array(entry.array)
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        values = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e300, -1e300, 1e30, 3e38, 1e19, -1e19, 1e150, 1e12]
    else:
        values = [-1, 0, 1, 2, 127, 2**31 - 1, -(2**31), 2**62, -(2**62), 10**6, 10**12]
    value = pick(rng, values)
    where = slice(None) if rng.random() < 0.4 else rng.integers(max(flat.size, 1), size=int(rng.integers(1, 4)))
    if flat.size:
        with np.errstate(all="ignore"):
            flat[where] = np.array(value).astype(array.dtype)
    saved.write(folder, entries=[*saved.entries[:i], entry.holding(array), *saved.entries[i + 1 :]])
    return f"{entry.name} {value}"


def random_values(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """All of one array anew: of its own range, of a large one, or any bytes."""
    i = int(rng.integers(len(saved.entries)))
    entry = saved.entries[i]
    array = entry.array
    how = int(rng.integers(3))
    if how == 0 or not array.size:
        changed = replace(entry, data=rng.bytes(len(entry.data)))
    elif array.dtype.kind == "f":
        changed = entry.holding((rng.normal(size=array.shape) * 10.0 ** rng.integers(-30, 30)).astype(array.dtype))
    else:
        low, high = int(array.min()), int(array.max()) + 1 + how
        changed = entry.holding(rng.integers(low - how + 1 if low else 0, high, size=array.shape).astype(array.dtype))
    saved.write(folder, entries=[*saved.entries[:i], changed, *saved.entries[i + 1 :]])
    return entry.name


def disordered(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    place = pick(rng, ["calibration/normal_scores", "calibration/corpus_scores", "examples/end", "detector/roots_"])
    entries = [
        e.holding(pick(rng, [e.array[::-1], rng.permutation(e.array), np.zeros_like(e.array)]))
        if e.name == place
        else e
        for e in saved.entries
    ]
    saved.write(folder, entries=entries)
    return place


def missing_array(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    kept = [entry for entry in saved.entries if rng.random() > 0.1]
    kept = kept if len(kept) < len(saved.entries) else kept[1:]
    saved.write(folder, entries=kept if rng.random() < 0.9 else [])
    return ""


def further_array(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    name = pick(rng, [*HOSTILE_NAMES, "detector/more_", "weights", "detector/weights_.2", "detector/center_.0"])
    saved.write(folder, entries=[*saved.entries, replace(saved.entries[0], name=name)])
    return f"{name!r:.60}"


def renamed_array(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    i = int(rng.integers(len(saved.entries)))
    name = pick(rng, [*HOSTILE_NAMES, saved.entries[i].name + ".0", saved.entries[i].name.upper()])
    entry = replace(saved.entries[i], name=name)
    saved.write(folder, entries=[*saved.entries[:i], entry, *saved.entries[i + 1 :]])
    return f"{saved.entries[i].name} {name!r:.60}"


def swapped_arrays(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    entries = list(saved.entries)
    i, j = rng.choice(len(entries), 2, replace=False)
    first, second = entries[i].name, entries[j].name
    entries[i], entries[j] = replace(entries[i], name=second), replace(entries[j], name=first)
    saved.write(folder, entries=entries)
    return f"{first} {second}"


def header_trick(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    data = packed(saved.entries)
    n = struct.unpack("<Q", data[:8])[0]
    head, rest = json.loads(data[8 : 8 + n]), data[8 + n :]
    name = pick(rng, list(head))
    trick = pick(
        rng,
        [
            "length",
            "overlapping",
            "outside",
            "negative",
            "json",
            "twice",
            "deep",
            "null",
            "metadata",
            "list",
            "lone",
            "hole",
            "huge-offset",
            "reversed",
        ],
    )
    if trick == "length":
        length = pick(rng, [2**63, 2**64 - 1, 0, 1, n - 1, n + 1, len(data), 100_000_001])
        saved.write(folder, arrays=struct.pack("<Q", length) + data[8:])
        return f"{trick} {length}"
    if trick == "overlapping":
        head[name]["data_offsets"] = head[pick(rng, list(head))]["data_offsets"]
    elif trick == "outside":
        head[name]["data_offsets"] = [len(rest), len(rest) + 80]
    elif trick == "negative":
        head[name]["data_offsets"] = [-8, 0]
    elif trick == "huge-offset":
        head[name]["data_offsets"] = [2**63, 2**64 - 1]
    elif trick == "reversed":
        head[name]["data_offsets"] = head[name]["data_offsets"][::-1]
    elif trick == "hole":
        rest = b"\0" * 8 + rest
    elif trick == "null":
        head[name] = pick(rng, [None, [], 1, "x", {}])
    elif trick == "metadata":
        head["__metadata__"] = pick(rng, [{"a": "b"}, {"a": 1}, [], "x" * 100_000, {"x" * 50: "y" * 100_000}])
    text = json.dumps(head)
    if trick == "json":
        text = pick(rng, ["{", "{}", "[]", "null", '{"a":NaN}', text[:-1], "\0" * 64, text.replace(":", ";", 1)])
    elif trick == "twice":
        text = text[:-1] + ", " + json.dumps({name: head[name]})[1:]
    elif trick == "deep":
        text = '{"a":' * 50_000 + "1" + "}" * 50_000
    elif trick == "list":
        text = json.dumps(list(head.values()))
    elif trick == "lone":
        text = text.replace(name, name + "\\ud800", 1)
    raw = text.encode()
    saved.write(folder, arrays=struct.pack("<Q", len(raw)) + raw + rest)
    return trick


def several(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    words = []
    for _ in range(int(rng.integers(2, 5))):
        words.append(pick(rng, [other_shape, odd_values, random_values, swapped_arrays])(rng, saved, folder, outside))
        saved = replace(Saved.read(folder), name=saved.name, by_object=saved.by_object)
    return "; ".join(words)


ARRAY_MUTATIONS: dict[str, Mutation] = {
    "bits of the arrays, not hashed again": flip_unhashed,
    "bits of values": flip_values,
    "bits of the arrays' header": flip_header,
    "arrays cut off": cut_arrays,
    "arrays with more behind": longer_arrays,
    "array of another shape": other_shape,
    "array of a huge declared shape": declared_shape,
    "array of another type": other_dtype,
    "odd values": odd_values,
    "random values": random_values,
    "disordered values": disordered,
    "array missing": missing_array,
    "array too many": further_array,
    "array renamed": renamed_array,
    "arrays swapped": swapped_arrays,
    "header of the arrays": header_trick,
    "several arrays": several,
}
