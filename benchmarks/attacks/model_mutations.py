"""Ways to damage a saved model, from a flipped bit to what somebody would write who wants it to be loaded.

Arrays are hashed again unless a mutation says not to: whoever can write the arrays can write their hash.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.runner import MARK
from benchmarks.attacks.saved import CODES, Entry, Saved, packed
from strays.encoders import load_encoder
from strays.persistence import ARRAYS, CONFIG

Rng = np.random.Generator
Mutation = Callable[[Rng, Saved, Path, Path], str]

HOSTILE_NAMES = (
    "../../outside/canary.txt",
    "/etc/passwd",
    "detector/../../x",
    "",
    "\0",
    "a\0b",
    "x" * 100_000,
    "__class__",
    "detector/__init__",
    "detector/rows_.0",
    "calibration/normal_scores/..",
    "\u202egnp",
    "CON",
)
HOSTILE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    10**30,
    -(10**30),
    2**31,
    2**63,
    10**18,
    0.5,
    -0.0,
    1e-320,
    1e308,
    "",
    " ",
    "a",
    "x" * 200_000,
    "../..",
    "../../outside",
    "../../outside/canary.txt",
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "~root",
    "file:///etc/passwd",
    "https://example.invalid/model",
    "someone/some-model",
    "http://169.254.169.254/latest/meta-data",
    "\0",
    "\ud800",
    "\u202e",
    "nan",
    "inf",
    "__import__('os').system('touch x')",
    "os.system",
    [],
    [[]],
    {},
    {"a": {"b": {}}},
    [1, 2, 3],
    ["x"] * 1000,
    {"__class__": "os.system"},
    {"name": "default"},
)


def pick(rng: Rng, options: Any) -> Any:
    """One of them."""
    return options[int(rng.integers(len(options)))]


# ---- arrays ----------------------------------------------------------------------------------------------------------


def flipped(rng: Rng, data: bytes, low: int, high: int) -> bytes:
    """With one to eight bits flipped between two places."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        if high > low:
            out[int(rng.integers(low, high))] ^= 1 << int(rng.integers(8))
    return bytes(out)


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
        [(2**40,), (2**62, 2**62), (2**63,), (2**64 - 1,), (10**9, 384), (0, 2**62), (2**32, 2**32), (1,) * 10_000]
        + [(), (3, 0, 10**12), (0,) * 100, (1,) * 64, (1,) * 65],
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
        codes = ["BF16", "F8_E4M3", "F8_E5M2", "U16", "U32", "U64", "C64", "F4", "X", "", "F64", "I64", "F6_E2M3", "F8_E8M0"]
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
        e.holding(pick(rng, [e.array[::-1], rng.permutation(e.array), np.zeros_like(e.array)])) if e.name == place else e
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
        "length overlapping outside negative json twice deep null metadata list lone hole huge-offset reversed".split(),
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


# ---- config.json -----------------------------------------------------------------------------------------------------


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a config."""
    found = [way] if way else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*way, key))
    return found


def holder(config: dict[str, Any], way: tuple[Any, ...]) -> dict[str, Any]:
    """The object that holds the value at the end of a way."""
    for step in way[:-1]:
        config = config[step]
    return config


def copied(saved: Saved) -> dict[str, Any]:
    """The config, to change."""
    config: dict[str, Any] = json.loads(json.dumps(saved.config))
    config["arrays_sha256"] = hashlib.sha256(packed(saved.entries)).hexdigest()
    return config


def lost_key(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    way = pick(rng, places(config))
    del holder(config, way)[way[-1]]
    saved.write(folder, config=config, rehash=False)
    return f"{way}"


def further_key(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    way = pick(rng, places(config))
    inner = holder(config, way)
    keys = [*HOSTILE_NAMES, "self", "device", "cache", "runtime", "progress", "tokens_per_batch", "encoder", "random_state"]
    key, value = pick(rng, keys), pick(rng, HOSTILE_VALUES)
    inner[key] = value
    saved.write(folder, config=config, rehash=False)
    return f"{way[:-1]} {key!r:.40}: {value!r:.40}"


def hostile_value(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    way, value = pick(rng, places(config)), pick(rng, HOSTILE_VALUES)
    holder(config, way)[way[-1]] = value
    saved.write(folder, config=config, rehash=False)
    return f"{way} = {value!r:.60}"


def hostile_number(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """What JSON can write and Python's json.dumps cannot."""
    config = copied(saved)
    way = pick(rng, places(config))
    holder(config, way)[way[-1]] = "HERE"
    number = pick(rng, ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 4000, "9" * 1_000_000, "1e-400", "0" * 10])
    saved.write(folder, config=config, text=json.dumps(config).replace('"HERE"', number).encode(), rehash=False)
    return f"{way} = {number[:20]}"


def bomb(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    whole = json.dumps(config)
    size = pick(rng, [1000, 100_000, 2_000_000])
    text = pick(
        rng,
        [
            "[" * size,
            "[" * size + "]" * size,
            '{"a":' * size + "1" + "}" * size,
            whole[:-1] + ', "a": ' + "[" * size + "]" * size + "}",
            whole[:-1] + ', "a": ' + "9" * size + "}",
            whole[:-1] + "".join(f', "k{i}": 1' for i in range(size // 10)) + "}",
            whole + " " * (100_000_000 if rng.random() < 0.05 else size),
            " " * size + whole,
            whole[:-1] + ', "a": [' + "[]," * size + "[]]}",
            whole[:-1] + ', "a": "' + "\\u0041" * size + '"}',
        ],
    )
    saved.write(folder, text=text.encode(), rehash=False)
    return f"{text[:20]} {len(text)}"


def encoding_trick(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    whole = json.dumps(config)
    way = pick(rng, [w for w in places(config) if len(w) == 1])[0]
    text: bytes = pick(
        rng,
        [
            b"\xef\xbb\xbf" + whole.encode(),
            whole.encode("utf-16"),
            whole.encode("utf-32"),
            whole.encode() + b"\xff\xfe",
            whole.replace("max_false", "max_\\ud800false").encode(),
            b"\xff" + whole.encode(),
            b"\0" * 100,
            b"",
            whole.encode()[:-1] + f", {json.dumps(way)}: null}}".encode(),
            whole.encode()[:-1] + f", {json.dumps(way)}: {json.dumps(config[way])}}}".encode(),
            whole.encode() + whole.encode(),
            b"// comment\n" + whole.encode(),
            whole.replace('"', "'").encode(),
        ],
    )
    saved.write(folder, text=text, rehash=False)
    return f"{text[:20]!r} ... {text[-20:]!r}"


def flip_config(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    text = json.dumps(copied(saved)).encode()
    saved.write(folder, text=flipped(rng, text, 0, len(text)), rehash=False)
    return ""


def cut_config(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    text = json.dumps(copied(saved)).encode()
    saved.write(folder, text=text[: int(rng.integers(len(text)))], rehash=False)
    return ""


def detector_params(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    params = config["detector"]["params"]
    name = pick(rng, [*params, "n_neighbors", "hidden_size", "memory"])
    params[name] = pick(rng, [*HOSTILE_VALUES, 10**12, 10**9, 1, "auto", "scale", "linear", 1e-9])
    saved.write(folder, config=config, rehash=False)
    return f"{name} = {params[name]!r:.60}"


def detector_name(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    names = ["os.system", "os:system", "builtins:eval", "Detector", "__init__", "strays.detectors.base:Detector", "AISVDD"]
    names += ["auto", "lof", "centroid", "nearest", "ai-svdd", "deep-sad", "isolation-forest", "logistic", "x" * 200_000]
    config["detector"]["name"] = pick(rng, [*names, None, 1, [], {}])
    if rng.random() < 0.5:
        config["detector"]["params"] = {}
    saved.write(folder, config=config, rehash=False)
    return f"{config['detector']!r:.80}"


def threshold_rule(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    rules = ["max_false_alarms", "max_false_share", "flag_rate", "top", "self", "wanted", "", None, [], 1, "__class__"]
    values = [0, 1, 0.5, 0.0, 1.0, 1e-9, -1, 2, 10**400, 1e300, "0.5", True, None, [], {}, 2.5]
    config["threshold"] = {"rule": pick(rng, rules), "value": pick(rng, values)}
    saved.write(folder, config=config, rehash=False)
    return f"{config['threshold']!r:.80}"


def encoder_settings(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """Which encoder a model asks for, and how; with the model's own or with somebody's arrays."""
    config = copied(saved)
    part = pick(rng, ["encoder", "encoder", "cascade"])
    own = (config.get(part) or {}).get("settings") or {"name": "default"}
    names = ["default", "fast", "bert", "fast:", "fast:fast", "fast:../..", f"fast:{outside}", str(outside), "../..", ".", "/"]
    names += ["/etc", "~", "~root", "someone/some-model", "https://example.invalid/a", "a/b/c", "a\0b", "-", "x" * 5000, ""]
    names += ["/dev/zero", "/proc/self", "s3://a/b", "..\\..", "fast:someone/some-model", "fast:a\0b"]
    settings: Any = dict(own)
    change = pick(rng, ["name", "name", "revision", "other", "no dict", "fingerprint", "both"])
    if change in ("name", "both"):
        settings["name"] = pick(rng, names)
    if change in ("revision", "both"):
        settings["revision"] = pick(rng, ["../../..", "main", "refs/pr/1", "\0", "x" * 5000, 1, [], "", "a/../../b"])
    if change == "other":
        key = pick(rng, ["pooling", "normalize", "max_length", "precision", "device", "runtime", "tokens_per_batch", "cache"])
        settings[key] = pick(rng, [*HOSTILE_VALUES, "mean", "cls", "int8", "full", "onnx", "cuda", 5, 2**40])
    if change == "no dict":
        settings = pick(rng, HOSTILE_VALUES)
    fingerprint = pick(rng, [None, "", "0" * 64, 1, []]) if change == "fingerprint" or rng.random() < 0.3 else "0" * 64
    kept = (config.get(part) or {}).get("fingerprint") if rng.random() < 0.5 else fingerprint
    config[part] = {"settings": settings, "fingerprint": kept}
    saved.write(folder, config=config, rehash=False)
    return f"{part} {settings!r:.120} {kept!r:.20}"


# ---- files -----------------------------------------------------------------------------------------------------------


def link(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """Links out of the folder, to a file with the very bytes, to secrets, to devices, and to itself."""
    saved.write(folder)
    name = pick(rng, [CONFIG, ARRAYS])
    shutil.copy(folder / name, outside / name)
    target = pick(rng, [outside / name, outside / "canary.txt", Path("/etc/passwd"), Path("/dev/zero"), Path("/proc/self/mem")])
    target = pick(rng, [target, target, Path("../../outside") / name, folder / name, Path("/dev/stdin"), outside])
    (folder / name).unlink()
    (folder / name).symlink_to(target)
    return f"{name} -> {target}"


def inner_link(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """As Kubernetes mounts a volume; this one is fine."""
    saved.write(folder / "..2026_01")
    (folder / "..data").symlink_to("..2026_01")
    for name in (CONFIG, ARRAYS):
        (folder / name).symlink_to(f"..data/{name}")
    return ""


def no_plain_file(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    saved.write(folder)
    name = pick(rng, [CONFIG, ARRAYS])
    (folder / name).unlink()
    what = pick(rng, ["fifo", "folder", "socket", "nothing", "unreadable"])
    if what == "fifo":
        os.mkfifo(folder / name)
    elif what == "folder":
        (folder / name).mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = Path.cwd()
            os.chdir(folder)  # the name of a socket must be short
            made.bind(name)
            os.chdir(here)
    elif what == "unreadable":
        (folder / name).write_text("{}")
        (folder / name).chmod(0)
    return f"{name} {what}"


def sparse(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """A file that claims to be large and takes no room on the disk."""
    saved.write(folder)
    name, size = pick(rng, [CONFIG, ARRAYS]), pick(rng, [2**33, 2**40, 2**43])
    os.truncate(folder / name, size)
    return f"{name} {size}"


def strange_folder(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    what = pick(rng, ["file", "missing", "link", "empty", "loop", "fifo", "link to nowhere"])
    if what == "file":
        folder.write_text("x")
    elif what == "link":
        saved.write(folder.with_name("real"))
        folder.symlink_to("real")
    elif what == "empty":
        folder.mkdir()
    elif what == "loop":
        folder.symlink_to(folder)
    elif what == "fifo":
        os.mkfifo(folder)
    elif what == "link to nowhere":
        folder.symlink_to(outside / "nowhere")
    return what


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return exec, (f"open({str(self.path)!r}, 'w').write('x')",)


def further_files(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """Files that nobody asked for: they must not be read, and least of all run."""
    saved.write(folder)
    code = f"open({str(outside / 'touched')!r}, 'w').write('x')\n"
    for name in ("__init__.py", "strays.py", "conftest.py", "sitecustomize.py", "numpy.py", "json.py"):
        (folder / name).write_text(code)
    for name in ("pytorch_model.bin", "model.pkl", "arrays.npy", "detector.joblib", "config.pickle"):
        (folder / name).write_bytes(pickle.dumps(Payload(outside / "touched")))
    return ""


# ---- the encoder's own folder ----------------------------------------------------------------------------------------


def encoder_folder(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """A model that brings a hostile encoder along, with a fingerprint that is right where it can be told."""
    encoder = folder.with_name("encoder")
    shutil.copytree(outside.with_name("encoder"), encoder)
    touched = outside / "touched"
    code = f"open({str(touched)!r}, 'w').write('x')\nclass A:\n    pass\n"
    what = pick(
        rng,
        "pickle pickle-only custom-code custom-tokenizer custom-config modules flip-weights flip-json odd-config link "
        "cut bomb odd-tokenizer".split(),
    )
    config = json.loads((encoder / "config.json").read_text())
    tokenizer = json.loads((encoder / "tokenizer_config.json").read_text())
    if what == "pickle":
        (encoder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(touched)))
    elif what == "pickle-only":
        (encoder / "model.safetensors").unlink()
        (encoder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(touched)))
    elif what == "custom-code":
        config |= {"auto_map": {"AutoConfig": "evil.A", "AutoModel": "evil.A"}, "model_type": pick(rng, ["evil", "bert"])}
        (encoder / "evil.py").write_text(code)
    elif what == "custom-config":
        config = {"auto_map": {"AutoConfig": "evil.A"}, "model_type": "evil", "architectures": ["A"]}
        (encoder / "evil.py").write_text(code)
    elif what == "custom-tokenizer":
        tokenizer |= {"auto_map": {"AutoTokenizer": ["evil.A", "evil.A"]}, "tokenizer_class": "A"}
        (encoder / "evil.py").write_text(code)
    elif what == "modules":
        modules: Any = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        modules[1]["path"] = pick(rng, ["../../outside", "/etc", "..", 5, None, "x" * 300, "1_Pooling", "a\0b"])
        (encoder / "1_Pooling").mkdir()
        (encoder / "1_Pooling" / "config.json").write_text(pick(rng, ['{"pooling_mode_cls_token": true}', "[]", "{", "1"]))
        (outside / "config.json").write_text(json.dumps({"pooling_mode": MARK}))
        modules = pick(rng, [modules, modules, modules, {}, [1], [{}], 5, [{"type": 5, "path": "a"}], None])
        (encoder / "modules.json").write_text(json.dumps(modules))
        text = pick(rng, ["[]", "{}", '{"max_seq_length": "a"}', '{"max_seq_length": -5}', '{"max_seq_length": 1e400}', "5"])
        (encoder / "sentence_bert_config.json").write_text(text)
    elif what == "flip-weights":
        data = (encoder / "model.safetensors").read_bytes()
        (encoder / "model.safetensors").write_bytes(flipped(rng, data, 0, 3000))
    elif what == "flip-json":
        name = pick(rng, ["config.json", "tokenizer.json", "tokenizer_config.json"])
        data = (encoder / name).read_bytes()
        (encoder / name).write_bytes(flipped(rng, data, 0, len(data)))
    elif what == "odd-config":
        config[pick(rng, list(config))] = pick(rng, [*HOSTILE_VALUES, 10**9, 64, "gelu_new"])
    elif what == "odd-tokenizer":
        tokenizer[pick(rng, list(tokenizer))] = pick(rng, HOSTILE_VALUES)
    elif what == "link":
        name = pick(rng, ["config.json", "model.safetensors", "tokenizer.json"])
        (encoder / name).unlink()
        (encoder / name).symlink_to(pick(rng, [outside / "canary.txt", Path("/etc/passwd"), Path("/dev/zero")]))
    elif what == "cut":
        name = pick(rng, ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
        os.truncate(encoder / name, int(rng.integers((encoder / name).stat().st_size)))
    elif what == "bomb":
        name = pick(rng, ["config.json", "tokenizer.json", "tokenizer_config.json", "modules.json"])
        (encoder / name).write_text(pick(rng, ["[" * 200_000, '{"a":' * 5000 + "1" + "}" * 5000, "9" * 5000]))
    if what in ("custom-code", "custom-config", "odd-config"):
        (encoder / "config.json").write_text(json.dumps(config))
    if what in ("custom-tokenizer", "odd-tokenizer"):
        (encoder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    settings = {"name": f"fast:{encoder}" if rng.random() < 0.3 else str(encoder), "precision": "full"}
    changed = copied(saved)
    fingerprint = "0" * 64
    if what in ("odd-config", "flip-json", "odd-tokenizer", "flip-weights") and rng.random() < 0.5:
        try:
            fingerprint = load_encoder(**settings).fingerprint  # type: ignore[arg-type]
        except Exception:
            what += ", without a fingerprint"
    changed["encoder"] = {"settings": settings, "fingerprint": fingerprint}
    saved.write(folder, config=changed, rehash=False)
    return what


ON_ANY: dict[str, Mutation] = {
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
    "config without a key": lost_key,
    "config with a further key": further_key,
    "config with a hostile value": hostile_value,
    "config with a hostile number": hostile_number,
    "config as a bomb": bomb,
    "config in another encoding": encoding_trick,
    "bits of the config": flip_config,
    "config cut off": cut_config,
    "parameters of the detector": detector_params,
    "name of the detector": detector_name,
    "threshold": threshold_rule,
    "settings of the encoder": encoder_settings,
    "link out of the folder": link,
    "link inside the folder": inner_link,
    "no plain file": no_plain_file,
    "sparse file": sparse,
    "strange folder": strange_folder,
    "further files": further_files,
}
# These bring their own encoder, so that it does not matter which model it is.
ON_ENCODERS: dict[str, Mutation] = {"folder of the encoder": encoder_folder}
