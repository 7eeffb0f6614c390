"""The docs say what there is, and the README's blocks run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

import strays
from strays.cli import app, main
from strays.encoders.sources import BUNDLE_PIP, bundled_folder

REPO = Path(strays.__file__).parent.parent.parent
README = (REPO / "README.md").read_text() if (REPO / "README.md").exists() else ""
needs_encoder = pytest.mark.skipif(bundled_folder() is None, reason=f"needs the bundled encoder: {BUNDLE_PIP}")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples in it, as a reader has after cloning."""
    shutil.copytree(REPO / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@needs_encoder
def test_the_readmes_python_runs(workplace: Path) -> None:
    assert blocks("python")
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})


@needs_encoder
def test_the_readmes_commands_run(workplace: Path, capfd: pytest.CaptureFixture) -> None:
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "strays"
        with pytest.raises(SystemExit) as exit_:
            main(words[1:])
        assert exit_.value.code == 0, capfd.readouterr().err
    assert (workplace / "ranked.csv").exists()
    assert len((workplace / "scored.jsonl").read_text().splitlines()) == 300


@needs_encoder
def test_the_demo_finds_strays(workplace: Path) -> None:
    """What `make demo` shows, and what the README says of it: spam leads, and MAP with and without the known strays."""
    import csv
    import json

    from strays.evaluation import mean_average_precision

    lines = Path("examples/workshop_labels.csv").read_text().splitlines()
    truth = {row["id"]: 1 if row["label"] == "normal" else -1 for row in csv.DictReader(lines)}

    def scan(*options: str) -> list[dict]:
        with pytest.raises(SystemExit):
            main(["scan", "examples/workshop.csv", "--out", "out.jsonl", *options])
        return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]

    def quality(rows: list[dict]) -> float:
        return mean_average_precision([truth[row["id"]] for row in rows], [row["anomaly_score"] for row in rows])

    taught = scan("--known", "examples/workshop_known.txt")
    top = sorted(taught, key=lambda row: -row["anomaly_score"])[:10]
    assert [truth[row["id"]] for row in top[:3]] == [-1, -1, -1]
    assert sum(truth[row["id"]] < 0 for row in top) >= 6
    assert 0.64 < quality(taught) < 0.8
    assert quality(scan()) == pytest.approx(0.82, abs=0.03)


def test_the_readmes_figures_are_those_of_the_results() -> None:
    import json
    from statistics import fmean, pstdev

    from strays.evaluation.paper.run import read_all

    every = read_all(REPO / "benchmarks/results/paper")

    def cell(study: str, method: str, metric: str, p: float) -> str:
        key = {"encoder": "default", "method": method, "pollution": p}
        values = [100 * row[metric] for row in every[study] if key.items() <= row.items()]
        assert len(values) == 5
        return f"{fmean(values):.1f} ({pstdev(values):.1f})"

    for study in ("5.1", "5.2-ag"):
        for method, metric in (("ai-svdd", "map"), ("ai-svdd", "auc"), ("centroid", "auc")):
            assert " | ".join(cell(study, method, metric, p) for p in (0.0, 0.01, 0.08)) in README
    speed = json.loads((REPO / "benchmarks/results/fit_speed.json").read_text())
    assert f"median ratio {speed['ratio_median']:.2f}, " in README


def test_the_command_line_page_names_every_command_and_option() -> None:
    page = (REPO / "docs" / "cli.md").read_text()
    for name, command in typer.main.get_command(app).commands.items():
        assert f"`strays {name}" in page
        for param in command.params:
            for option in param.opts:
                assert not option.startswith("--") or option in ("--help", "--model") or option in page, option


def test_the_command_line_page_names_every_corpus() -> None:
    from strays.evaluation.corpora import CORPORA

    page = (REPO / "docs" / "cli.md").read_text()
    for name, corpus in CORPORA.items():
        assert f"| {name} | `{corpus.file}` | `{corpus.normal}` | `{corpus.anomalies[0]}`" in page


def test_the_picture_asks_for_nothing_from_elsewhere() -> None:
    picture = (REPO / "docs" / "scan.svg").read_text()
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [REPO / "README.md", *(REPO / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_machine_paths_in_the_repo() -> None:
    for path in REPO.rglob("*"):
        parts = path.relative_to(REPO).parts
        if path.suffix in (".py", ".md", ".toml", ".txt", ".csv") and not parts[0].startswith("."):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"(?<!\w)/(root|home|work|farm)/", text), path
