"""A scoring job on a Ray cluster: the only package that imports ray.

Readers on the nodes stream the files that are left, cut into chunks; actors that hold the model score the chunks and
write their parts. The driver gets what came of them, in order, and alone writes the manifest. A chunk travels as one
value, so that nothing cuts it, and errors as plain data behind the chunks before them, so that a job ends as it would
in one process. A worker that is lost ends one round; the next begins with what the manifest does not have.
"""

from strays.engines.ray.engine import RayEngine

__all__ = ["RayEngine"]
