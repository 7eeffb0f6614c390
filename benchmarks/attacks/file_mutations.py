"""Ways to damage the folder of a saved model: links, pipes, sparse files, files too many, a hostile encoder."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
from pathlib import Path
from typing import Any

from benchmarks.attacks.config_mutations import copied
from benchmarks.attacks.mutating import HOSTILE_VALUES, Mutation, Rng, flipped, pick
from benchmarks.attacks.runner import MARK
from benchmarks.attacks.saved import Saved
from strays.encoders import load_encoder
from strays.model.folder import ARRAYS, CONFIG


def link(rng: Rng, saved: Saved, folder: Path, outside: Path) -> str:
    """Links out of the folder, to a file with the very bytes, to secrets, to devices, and to itself."""
    saved.write(folder)
    name = pick(rng, [CONFIG, ARRAYS])
    shutil.copy(folder / name, outside / name)
    target = pick(
        rng, [outside / name, outside / "canary.txt", Path("/etc/passwd"), Path("/dev/zero"), Path("/proc/self/mem")]
    )
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
        [
            "pickle",
            "pickle-only",
            "custom-code",
            "custom-tokenizer",
            "custom-config",
            "modules",
            "flip-weights",
            "flip-json",
            "odd-config",
            "link",
            "cut",
            "bomb",
            "odd-tokenizer",
        ],
    )
    config = json.loads((encoder / "config.json").read_text())
    tokenizer = json.loads((encoder / "tokenizer_config.json").read_text())
    if what == "pickle":
        (encoder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(touched)))
    elif what == "pickle-only":
        (encoder / "model.safetensors").unlink()
        (encoder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(touched)))
    elif what == "custom-code":
        config |= {
            "auto_map": {"AutoConfig": "evil.A", "AutoModel": "evil.A"},
            "model_type": pick(rng, ["evil", "bert"]),
        }
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
        (encoder / "1_Pooling" / "config.json").write_text(
            pick(rng, ['{"pooling_mode_cls_token": true}', "[]", "{", "1"])
        )
        (outside / "config.json").write_text(json.dumps({"pooling_mode": MARK}))
        modules = pick(rng, [modules, modules, modules, {}, [1], [{}], 5, [{"type": 5, "path": "a"}], None])
        (encoder / "modules.json").write_text(json.dumps(modules))
        text = pick(
            rng, ["[]", "{}", '{"max_seq_length": "a"}', '{"max_seq_length": -5}', '{"max_seq_length": 1e400}', "5"]
        )
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
        if rng.random() < 0.5:
            (encoder / name).symlink_to("/dev/zero")
        else:
            os.mkfifo(encoder / name)
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
    known: dict[str, Any] = {"fingerprint": "0" * 64}
    if what in ("odd-config", "flip-json", "odd-tokenizer", "flip-weights") and rng.random() < 0.5:
        try:
            found = load_encoder(**settings)  # type: ignore[arg-type]
            known = {"fingerprint": found.fingerprint, "files": found.files}
        except Exception:
            what += ", without a fingerprint"
    changed["encoder"] = {"settings": settings, **known}
    saved.write(folder, config=changed, rehash=False)
    return what


FILE_MUTATIONS: dict[str, Mutation] = {
    "link out of the folder": link,
    "link inside the folder": inner_link,
    "no plain file": no_plain_file,
    "sparse file": sparse,
    "strange folder": strange_folder,
    "further files": further_files,
}
# It brings its own encoder, so that it does not matter much which model it is.
ENCODER_MUTATIONS: dict[str, Mutation] = {"folder of the encoder": encoder_folder}
