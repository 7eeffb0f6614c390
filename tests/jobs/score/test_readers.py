"""A folder of parts is read as it is by those who read folders: bookkeeping starts with an underscore."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset
import pytest

from tests.jobs.score.standin import ALL, StandIn, Stop, run, stopping


@pytest.fixture(params=["finished", "stopped", "changed"])
def scored(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> tuple[str, int]:
    """A folder of parquet parts, some in a folder of their own, with all bookkeeping there is; and how many rows."""
    out = tmp_path / "scored"
    model = StandIn(top=7)
    if request.param == "stopped":
        with pytest.raises(Stop):
            run(folder, out, stopping(StandIn(), 6), out_format="parquet")
        (out / "_unfinished").mkdir()
        (out / "_unfinished" / "a-00009.parquet").write_bytes(b"half a part")
        return str(out), 48
    run(folder, out, model, out_format="parquet")
    if request.param == "changed":
        (out / "a-00001.parquet").write_bytes(b"changed")
        with pytest.warns(UserWarning, match="was changed"):
            run(folder, out, model, out_format="parquet")
    return str(out), 68


def test_pandas(scored: tuple[str, int]) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    path, n = scored
    frame = pandas.read_parquet(path)
    assert sorted(frame["id"]) == sorted(ALL[:n])
    assert frame["anomaly_score"].notna().all()


def test_arrow(scored: tuple[str, int]) -> None:
    path, n = scored
    table = pyarrow.dataset.dataset(path, format="parquet").to_table()
    assert sorted(table["id"].to_pylist()) == sorted(ALL[:n])


def test_polars(scored: tuple[str, int]) -> None:
    """It skips no names by itself; by a pattern, or told to, it reads the parts alone."""
    polars = pytest.importorskip("polars", reason="needs polars: pip install polars")
    path, n = scored
    if n == len(ALL):  # while a job runs, a pattern matches what is unfinished, too
        assert sorted(polars.read_parquet(f"{path}/**/*.parquet")["id"]) == sorted(ALL[:n])
        assert sorted(polars.scan_parquet(path, hidden_file_prefix="_").collect()["id"]) == sorted(ALL[:n])
    assert sorted(polars.read_parquet(path, use_pyarrow=True)["id"]) == sorted(ALL[:n])


def test_spark(scored: tuple[str, int], spark) -> None:
    """Spark, like all that lists files as Hadoop does, skips names that start with _ or with a full stop."""
    path, n = scored
    frame = spark.read.option("recursiveFileLookup", True).parquet(path)
    assert sorted(row["id"] for row in frame.select("id").collect()) == sorted(ALL[:n])
