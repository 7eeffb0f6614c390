"""The docs say what there is, and their blocks run."""

from __future__ import annotations

import re
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import strays
from strays import TextOutlierDetector
from strays.apps.cli import app, main
from strays.tables import open_table
from tests.conftest import farm_texts

REPO = Path(strays.__file__).parent.parent.parent
README = (REPO / "README.md").read_text() if (REPO / "README.md").exists() else ""


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default_encoder: None) -> Path:
    """A folder with the examples in it, as a reader has after cloning."""
    shutil.copytree(REPO / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- Python in the docs: every block is run, with what it needs at hand ----------------------------------------------

Run = Callable[[str], None]
# A block with such a word in it needs a fixture, which runs the block and checks what came of it.
NEEDS = {"urllib": "beside_a_server", "RayEngine": "beside_a_ray_cluster", "strays.engines.spark": "inside_spark"}
# How long each takes, and the warnings of other libraries that strays cannot prevent.
MARKS = {
    "beside_a_server": [pytest.mark.process],
    "beside_a_ray_cluster": [
        pytest.mark.cluster,
        pytest.mark.filterwarnings(
            r"ignore::DeprecationWarning:ray\..*",
            "ignore::ResourceWarning",
            "ignore::pytest.PytestUnraisableExceptionWarning",
        ),
    ],
    "inside_spark": [
        pytest.mark.cluster,
        pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    ],
}
PYTHON = {
    f"{page.name} {number}": block
    for page in [*REPO.glob("README.md"), *sorted((REPO / "docs").glob("*.md"))]
    for number, block in enumerate(blocks("python", page.read_text()), 1)
}


def execute(block: str, **names: object) -> dict[str, Any]:
    exec(compile(block, "a page", "exec"), names)
    return names


def cases() -> Iterator[object]:
    for where, block in PYTHON.items():
        needed = next((fixture for word, fixture in NEEDS.items() if word in block), "among_the_examples")
        yield pytest.param(block, needed, id=where, marks=MARKS.get(needed, ()))


@pytest.mark.parametrize(("block", "needed"), list(cases()))
def test_the_python_in_the_docs_runs(block: str, needed: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(needed)
    run(block)


def test_there_is_python_in_the_docs() -> None:
    pages = {"README.md 1", "python.md 1", "python.md 2", "operations.md 1", "cluster.md 1", "cluster.md 2"}
    assert set(PYTHON) >= pages
    assert all(any(word in block for block in PYTHON.values()) for word in NEEDS)


@pytest.fixture
def among_the_examples(workplace: Path) -> Run:
    return execute


@pytest.fixture
def model(tmp_path: Path, tiny_bert: Path) -> TextOutlierDetector:
    """Saved as `model` where the test works; on a static encoder, which other processes load quickly."""
    fitted = TextOutlierDetector(f"fast:{tiny_bert}", "centroid").fit(farm_texts(120))
    fitted.save(tmp_path / "model")
    return fitted


@pytest.fixture
def beside_a_server(model: TextOutlierDetector, tmp_path: Path) -> Iterator[Run]:
    for needed in ("fastapi", "uvicorn", "prometheus_client"):
        pytest.importorskip(needed, reason="needs the server: pip install 'strays[serve]'")
    from tests.apps.server.conftest import Server

    server = Server("--model", tmp_path / "model")

    def run(block: str) -> None:
        texts = [None, *farm_texts(300) * 4]  # more than a call takes
        results = execute(block)["score"](texts, url=f"{server.base}/v1/score")
        assert results[0] == {"anomaly_score": None, "p_value": None, "flagged": None}
        assert [r["anomaly_score"] for r in results[1:]] == pytest.approx(model.anomaly_score(texts[1:]), abs=1e-5)

    yield run
    assert server.end() == 0


@pytest.fixture
def beside_a_ray_cluster(model: TextOutlierDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("ray", reason="needs Ray: pip install 'strays[ray]'")
        from ray.cluster_utils import Cluster
    from strays.engines.ray.connection import on_loopback

    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table({"text": farm_texts(20)}), tmp_path / "texts" / "a.parquet")
    monkeypatch.chdir(tmp_path)
    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 * 2**20}
    with on_loopback():
        cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})

    def run(block: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            execute(block.replace("10.0.0.1:6379", cluster.address))
        scored = open_table(str(next(Path("scored").glob("a-*")))).read().to_pydict()
        assert scored["text"] == farm_texts(20)
        assert scored["anomaly_score"] == pytest.approx(model.anomaly_score(farm_texts(20)), abs=1e-5)

    yield run
    cluster.shutdown()


@pytest.fixture
def inside_spark(model: TextOutlierDetector, tmp_path: Path, spark: object) -> Run:
    texts = [*farm_texts(20), None]
    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table({"title": texts}), tmp_path / "texts" / "a.parquet")

    def run(block: str) -> None:
        for inside in ("texts/", "scored/", "/shared/model"):  # Spark's own folder is another
            block = block.replace(f'"{inside}"', repr(str(tmp_path / Path(inside).name)))
        execute(block, spark=spark)
        scored = {row["title"]: row["anomaly_score"] for row in pq.read_table(tmp_path / "scored").to_pylist()}
        assert scored.pop(None) is None
        assert scored == pytest.approx(dict(zip(texts, model.anomaly_score(texts[:-1]), strict=False)), abs=1e-5)

    return run


# ---- what the pages say ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_readmes_commands_run(workplace: Path, capfd: pytest.CaptureFixture) -> None:
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 4
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "strays"
        with pytest.raises(SystemExit) as exit_:
            main(words[1:])
        assert exit_.value.code == 0, capfd.readouterr().err
    assert (workplace / "ranked.csv").exists()
    assert len((workplace / "scored.jsonl").read_text().splitlines()) == 300


def test_the_demo_finds_strays(workplace: Path) -> None:
    """What `make demo` shows, and docs/python.md says of it: spam leads, and MAP with and without the known strays."""
    import csv
    import json

    from strays.jobs.metrics import mean_average_precision

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
    assert quality(taught) == pytest.approx(0.93, abs=0.02)
    assert quality(scan()) == pytest.approx(0.93, abs=0.02)


def test_the_readme_fits_on_a_few_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {strays.__version__}\n" in (REPO / "CITATION.cff").read_text()


def test_the_command_line_page_names_every_command_and_option() -> None:
    page = (REPO / "docs" / "cli.md").read_text()
    commands = typer.main.get_command(app).commands
    groups = {name: getattr(command, "commands", {}) for name, command in commands.items()}
    nested = {f"{name} {part}": found for name, parts in groups.items() for part, found in parts.items()}
    for name, command in (commands | nested).items():
        assert f"`strays {name}" in page
        for param in command.params:
            for option in param.opts:
                assert not option.startswith("--") or option in ("--help", "--model") or option in page, option


def test_the_command_line_page_names_every_corpus() -> None:
    from strays.studies.corpora import CORPORA

    page = (REPO / "docs" / "cli.md").read_text()
    for name, corpus in CORPORA.items():
        assert f"| {name} | `{corpus.file}` | `{corpus.normal}` | `{corpus.anomalies[0]}`" in page


def test_the_picture_asks_for_nothing_from_elsewhere() -> None:
    picture = (REPO / "docs" / "scan.svg").read_text()
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [*REPO.glob("*.md"), *(REPO / "docs").glob("*.md"), *(REPO / "examples").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_what_contributing_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|benchmarks|docs)/[^`]*)`", (REPO / "CONTRIBUTING.md").read_text())
    assert len(named) > 10
    assert [path for path in named if not (REPO / path).exists() and not re.search("NAME|FORMAT", path)] == []


def test_no_machine_paths_in_the_repo() -> None:
    for path in REPO.rglob("*"):
        parts = path.relative_to(REPO).parts
        if path.suffix in (".py", ".md", ".toml", ".txt", ".csv") and not parts[0].startswith("."):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"(?<!\w)/(root|home|work|farm)/", text), path
