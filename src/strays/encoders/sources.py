"""Where an encoder's files are: a name in, a local folder out. Nothing is loaded or imported here."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from strays.encoders import pinned
from strays.encoders.cache import encoder_folders
from strays.encoders.settings import require
from strays.errors import EncoderError, StraysWarning, first_line


@dataclass(frozen=True)
class HubModel:
    """A model on the Hugging Face hub, pinned."""

    repo: str
    revision: str
    about: str


MINILM = (pinned.REPO, pinned.REVISION)
WEIGHTS = "model.safetensors"
# Names of our own -> what they stand for.
NAMED = {
    "default": HubModel(*MINILM, "all-MiniLM-L6-v2, English, 384 dimensions"),
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
    if name == "default" and revision is None:
        if found := find_default():
            return found
        if fetch is Fetch.NEVER:
            raise _not_fetched(name, "not on this machine", "Run `strays encoders get default`, or ")
        return fetch_default()
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


def find_default() -> Path | None:
    """The folder of the default encoder on this machine: the installed package, strays' own, or the hub's cache."""
    if bundled := bundled_folder():
        verify_bundle(bundled)
        return bundled
    for folder in default_folders():
        wrong = pinned.difference(folder)
        if wrong is None:
            return folder
        if (folder / WEIGHTS).is_file():
            warnings.warn(StraysWarning(f"the default encoder is damaged: {wrong}. It is not used"), stacklevel=2)
    cached = _cached(*MINILM)
    return cached if cached and pinned.difference(cached) is None else None


def fetch_default() -> Path:
    """The folder of the default encoder, fetched into strays' own; another process that fetches it is waited for."""
    from strays.encoders import fetching

    folder = default_store()
    with fetching.alone(folder):
        if pinned.difference(folder):
            fetching.fetch(folder)
    return folder


def bring_default(*, source: Path | None = None, to: Path | None = None) -> Path:
    """The folder of the default encoder, for those who carry it from one machine to another.

    With a `source`, a folder or the package's wheel, its files are taken from there into strays' own folder, or `to`
    another one. Without, they are found or fetched.
    """
    from strays.encoders import fetching

    found = source or find_default()
    if to is not None:
        fetching.require_own(to)
        fetching.take(found, to) if found else fetching.fetch(to)
        return to
    if source is None:
        return found or fetch_default()
    folder = default_store()
    with fetching.alone(folder):
        fetching.take(source, folder)
    return folder


def find_local(name: str, revision: str | None = None) -> Path | None:
    """The folder of an encoder, if it is on this machine."""
    if name == "default" and revision is None:
        return find_default()
    if name not in NAMED and Path(name).is_dir():
        return Path(name)
    known = NAMED.get(name)
    return _cached(known.repo if known else name, revision or (known.revision if known else None))


def default_folders() -> list[Path]:
    """Where strays keeps the default encoder, once it was fetched; the first is where it is put."""
    return [folder / f"{pinned.MODEL}-{pinned.REVISION[:8]}" for folder in encoder_folders()]


def default_store() -> Path:
    """Where the default encoder is put."""
    folders = default_folders()
    if not folders:
        raise EncoderError("there is no folder for the default encoder; set STRAYS_CACHE to one")
    return folders[0]


def bundled_folder() -> Path | None:
    """The model folder inside the installed package, found from its file list, without running its code."""
    try:
        files = distribution(pinned.PACKAGE).files or []
    except PackageNotFoundError:
        return None
    weights = next((f for f in files if f.name == WEIGHTS), None)
    return Path(str(weights.locate())).parent if weights else None


def verify_bundle(folder: Path) -> None:
    """Raise unless the files of the installed package are the pinned ones."""
    if wrong := pinned.difference(folder):
        raise EncoderError(f"{wrong}. Install the package again: {pinned.PACKAGE_PIP} --force-reinstall")


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


def _not_fetched(name: str, place: str, remedy: str = "If you trust it, ") -> EncoderError:
    """The error for an encoder that is not here, and that nobody asked to fetch."""
    return EncoderError(
        f"the encoder {name!r:.200} is {place}, and what names it was loaded, perhaps from somebody else: nothing is "
        f"fetched for it unasked. {remedy}set {{allow_download}}",
        param="allow_download",
    )


def _cached(repo: str, revision: str | None) -> Path | None:
    """A snapshot with weights from the hub's cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        cached = Path(snapshot_download(repo, revision=revision, local_files_only=True))
    except HFValidationError as error:
        raise EncoderError(
            f"{repo!r} is neither an encoder strays knows ({', '.join(NAMED)}), nor a folder, nor a Hugging Face id"
        ) from error
    except OSError:
        return None
    return cached if weight_files(cached) else None


def _download(repo: str, revision: str | None, fetch: Fetch) -> Path:
    """A snapshot from the hub's cache, or else from the hub, unless HF_HUB_OFFLINE or the caller forbids it."""
    from huggingface_hub import model_info, snapshot_download

    if cached := _cached(repo, revision):
        return _local_folder(cached)
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
            "and pass that folder as the encoder"
        ) from error
    return _local_folder(folder)
