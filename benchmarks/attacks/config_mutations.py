"""Ways to damage the config of a saved model: lost, strange and hostile keys and values, bombs, other encodings."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.attacks.mutating import HOSTILE_NAMES, HOSTILE_VALUES, Mutation, Rng, flipped, pick
from benchmarks.attacks.saved import Saved, packed
from strays.model.folder import SEAL, sealed


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
    keys = [
        *HOSTILE_NAMES,
        "self",
        "device",
        "cache",
        "runtime",
        "progress",
        "tokens_per_batch",
        "encoder",
        "random_state",
    ]
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
    number = pick(
        rng, ["1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9" * 4000, "9" * 1_000_000, "1e-400", "0" * 10]
    )
    text = json.dumps(config).replace('"HERE"', number)
    with suppress(ValueError):  # of numbers that are none there is no hash
        text = text.replace(config[SEAL], sealed(json.loads(text))[SEAL])
    saved.write(folder, config=config, text=text.encode(), rehash=False)
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
    names = [
        "os.system",
        "os:system",
        "builtins:eval",
        "Detector",
        "__init__",
        "strays.detectors.base:Detector",
        "AISVDD",
    ]
    names += [
        "auto",
        "lof",
        "centroid",
        "nearest",
        "ai-svdd",
        "deep-sad",
        "isolation-forest",
        "logistic",
        "x" * 200_000,
    ]
    config["detector"]["name"] = pick(rng, [*names, None, 1, [], {}])
    if rng.random() < 0.5:
        config["detector"]["params"] = {}
    saved.write(folder, config=config, rehash=False)
    return f"{config['detector']!r:.80}"


def threshold_rule(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    config = copied(saved)
    known = ["max_false_alarms", "max_false_share", "flag_rate", "top"]
    rules: list[Any] = [*known, *known, "self", "wanted", "", None, [], 1, "__class__"]
    values: list[Any] = [0, 1, 0.5, 0.0, 1.0, 1e-9, -1, 2, 10**400, 1e300, "0.5", True, None, [], {}, 2.5]
    config["threshold"] = {"rule": pick(rng, rules), "value": pick(rng, values)}
    saved.write(folder, config=config, rehash=False)
    return f"{config['threshold']!r:.80}"


def encoder_settings(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """Which encoder a model asks for, and how; with the model's own or with somebody's arrays."""
    config = copied(saved)
    part = pick(rng, ["encoder", "encoder", "cascade"])
    own = (config.get(part) or {}).get("settings") or {"name": "default"}
    names = [
        "default",
        "fast",
        "bert",
        "fast:",
        "fast:fast",
        "fast:../..",
        f"fast:{outside}",
        str(outside),
        "../..",
        ".",
        "/",
    ]
    names += [
        "/etc",
        "~",
        "~root",
        "someone/some-model",
        "https://example.invalid/a",
        "a/b/c",
        "a\0b",
        "-",
        "x" * 5000,
        "",
    ]
    names += ["/dev/zero", "/proc/self", "s3://a/b", "..\\..", "fast:someone/some-model", "fast:a\0b"]
    settings: Any = dict(own)
    change = pick(rng, ["name", "name", "revision", "other", "no dict", "fingerprint", "both"])
    if change in ("name", "both"):
        settings["name"] = pick(rng, names)
    if change in ("revision", "both"):
        settings["revision"] = pick(rng, ["../../..", "main", "refs/pr/1", "\0", "x" * 5000, 1, [], "", "a/../../b"])
    if change == "other":
        key = pick(
            rng, ["pooling", "normalize", "max_length", "precision", "device", "runtime", "tokens_per_batch", "cache"]
        )
        settings[key] = pick(rng, [*HOSTILE_VALUES, "mean", "cls", "int8", "full", "onnx", "cuda", 5, 2**40])
    if change == "no dict":
        settings = pick(rng, HOSTILE_VALUES)
    fingerprint: Any = (
        pick(rng, [None, "", "0" * 64, 1, []]) if change == "fingerprint" or rng.random() < 0.3 else "0" * 64
    )
    kept = (config.get(part) or {}).get("fingerprint") if rng.random() < 0.5 else fingerprint
    config[part] = {"settings": settings, "fingerprint": kept}
    saved.write(folder, config=config, rehash=False)
    return f"{part} {settings!r:.120} {kept!r:.20}"


CONFIG_MUTATIONS: dict[str, Mutation] = {
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
}
