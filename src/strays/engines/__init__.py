"""Who runs a scoring job: this process (local), a Ray cluster (ray), or Spark (spark)."""

from strays.engines.local import LocalEngine
from strays.engines.ray import RayEngine

__all__ = ["LocalEngine", "RayEngine"]
