"""What strays stores on disk because making it again takes time. Without it everything works, only slower."""

from strays.encoders.cache.embeddings import EmbeddingCache
from strays.encoders.cache.folder import (
    CacheInfo,
    cache_folder,
    cache_size,
    clear,
    encoder_folders,
    models_folder,
    size_in_words,
    size_of,
)

__all__ = [
    "CacheInfo",
    "EmbeddingCache",
    "cache_folder",
    "cache_size",
    "clear",
    "encoder_folders",
    "models_folder",
    "size_in_words",
    "size_of",
]
