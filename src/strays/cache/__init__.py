"""What strays keeps on disk because making it again takes time. Without it everything works, only slower."""

from strays.cache.folder import cache_folder

__all__ = ["cache_folder"]
