"""What an install takes, and CONTRIBUTING.md's table of dependencies: `python -m benchmarks.install_page`.

Sizes, licences and versions are those of results/install_size.json; first releases are those of the package index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import marked
from benchmarks.speed_page import REPO, results, table

# Package -> the year of its first release on the package index, and what strays needs it for.
DEPENDENCIES = {
    "pyarrow": (2017, "reads and writes csv, json and parquet in batches of bounded size"),
    "scipy": (2010, "solver of the logistic head, sparse products of `fast`, intervals; scikit-learn needs it"),
    "numpy": (2006, "all numbers: detectors, training of networks, calibration"),
    "onnxruntime": (2018, "runs encoders on a CPU"),
    "scikit-learn": (2011, "isolation forest, LOF, one-class SVM, the layout of maps; imported by those alone"),
    "tokenizers": (2019, "cuts texts into tokens; requires huggingface-hub"),
    "huggingface-hub": (2020, "fetches encoders"),
    "rich": (2019, "tables and progress bars in a terminal"),
    "safetensors": (2022, "weights and saved models, without pickle"),
    "typer": (2019, "the command line"),
    "threadpoolctl": (2019, "how many threads products of matrices take"),
}


def found() -> dict[str, Any]:
    """The install with the pinned versions."""
    pinned: dict[str, Any] = results("install_size.json")["pinned"]
    return pinned


def dependencies() -> str:
    packages = {name.lower().replace("_", "-"): about for name, about in found()["packages"].items()}
    rows = [
        [f"`{name}`", f"{packages[name]['megabytes']:,.0f}", packages[name]["licence"], str(year), use]
        for name, (year, use) in DEPENDENCIES.items()
    ]
    known = {*DEPENDENCIES, "strays", "pip", "setuptools"}
    others = [about["megabytes"] for name, about in packages.items() if name not in known]
    rows.append([f"{len(others)} that these need", f"{sum(others):,.0f}", "", "", ""])
    return table(["package", "MB", "licence", "first release", "used for"], rows) + "\n"


def sizes() -> str:
    pinned, newest = found(), results("install_size.json")["newest"]
    return (
        f"A fresh environment takes {pinned['environment_mb']:,.0f} MB ({newest['environment_mb']:,.0f} MB with the "
        f"newest versions), the default encoder {pinned['encoder_mb']:,.0f} MB and what is made from it "
        f"{pinned['cache_after_use_mb'] - pinned['encoder_mb']:,.0f} MB more. Downloaded are "
        f"{pinned['downloaded_mb']:,.0f} MB of packages and {pinned['encoder_downloaded_mb']:,.0f} MB for the encoder "
        "(`python -m benchmarks.install_size`).\n"
    )


def files() -> dict[Path, str]:
    """The pages with their figures."""
    page = REPO / "CONTRIBUTING.md"
    text = marked(page.read_text(encoding="utf-8"), "dependencies", dependencies())
    return {page: marked(text, "install size", sizes())}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
