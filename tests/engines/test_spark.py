"""Scoring inside Spark, on a real local one and as a plain function on data frames."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strays import TextOutlierDetector
from strays.engines.spark import score_in_pandas, scored_schema
from strays.errors import DataError, ModelError, StraysError, UsageError
from tests.conftest import farm_texts

pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'strays[spark]'")

TEXTS = ["the cat sleeps in the garden", None, "free cash win now", "   ", "", "the cat sleeps in the garden"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    folder = tmp_path_factory.mktemp("spark") / "model"
    TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(60)).save(folder)
    return folder


def test_frames_come_back_with_scores(model: Path) -> None:
    frames = [
        pd.DataFrame({"id": [7, 8, 9], "text": TEXTS[:3]}, index=[5, 5, 1]),
        pd.DataFrame({"id": [1, 2, 3], "text": TEXTS[3:]}),
        pd.DataFrame({"id": [], "text": []}),
    ]
    scored = list(score_in_pandas(model, max_false_alarms=0.1)(iter(frames)))
    assert [list(frame["id"]) for frame in scored] == [[7, 8, 9], [1, 2, 3], []]
    assert list(scored[0].index) == [5, 5, 1]
    assert list(scored[0].columns) == ["id", "text", "anomaly_score", "p_value", "flagged"]
    expected = TextOutlierDetector.load(model).set_threshold(max_false_alarms=0.1).score([TEXTS[0], TEXTS[2]])
    assert list(scored[0]["anomaly_score"][[True, False, True]]) == list(expected.anomaly_score)
    assert list(scored[0]["p_value"][[True, False, True]]) == list(expected.p_value)
    assert list(scored[0]["flagged"][[True, False, True]]) == list(expected.flagged)
    for frame, absent in ((scored[0], [False, True, False]), (scored[1], [True, True, False])):
        for name in ("anomaly_score", "p_value", "flagged"):
            assert list(frame[name].isna()) == absent


def test_what_cannot_be_done(model: Path, tmp_path: Path) -> None:
    for rule in ({"top": 3}, {"max_false_share": 0.1}):
        with pytest.raises(UsageError, match=f"{next(iter(rule))} looks at the scores of all rows"):
            score_in_pandas(model, **rule)
    TextOutlierDetector.load(model).set_threshold(max_false_share=0.2).save(tmp_path / "together")
    with pytest.raises(UsageError, match="max_false_share looks at"):
        score_in_pandas(tmp_path / "together")
    score_in_pandas(tmp_path / "together", flag_rate=0.1)
    with pytest.raises(StraysError, match="none"):
        score_in_pandas(tmp_path / "none")
    score = score_in_pandas(model, text_column="title")
    for frame, words in (
        (pd.DataFrame({"text": ["a"]}), r"no column 'title' .* the columns are 'text'"),
        (pd.DataFrame({"title": [3]}), "holds more than texts"),
        (pd.DataFrame({"title": ["a"], "flagged": [1]}), "already has a column 'flagged'"),
    ):
        with pytest.raises(DataError, match=words):
            list(score(iter([frame])))


def test_a_model_saved_over_the_one_a_job_began_with(model: Path, tmp_path: Path, tiny_bert: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    score = score_in_pandas(tmp_path / "model")
    TextOutlierDetector(str(tiny_bert), "centroid").fit(farm_texts(70)).save(tmp_path / "model")
    with pytest.raises(ModelError, match="is not the model that this job began with"):
        list(score(iter([pd.DataFrame({"text": ["a"]})])))


@pytest.mark.process
def test_spark_itself_is_not_imported() -> None:
    code = "import sys, strays.engines.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_on_spark(spark, model: Path) -> None:
    rows = [(i, text) for i, text in enumerate([*farm_texts(250), *TEXTS])]
    frame = spark.createDataFrame(rows, "id long, text string").repartition(2)
    schema = scored_schema(frame.schema)
    assert schema.simpleString() == (
        "struct<id:bigint,text:string,anomaly_score:double,p_value:double,flagged:boolean>"
    )
    scored = frame.mapInPandas(score_in_pandas(model, flag_rate=0.1), schema).orderBy("id").collect()
    assert [(row.id, row.text) for row in scored] == rows
    there = [row for row in scored if row.text and row.text.strip()]
    expected = TextOutlierDetector.load(model).set_threshold(flag_rate=0.1).score([row.text for row in there])
    assert np.array_equal([row.anomaly_score for row in there], expected.anomaly_score)
    assert np.array_equal([row.p_value for row in there], expected.p_value)
    assert [row.flagged for row in there] == expected.flagged.tolist()
    others = [row for row in scored if row not in there]
    assert len(others) == 3
    assert {(row.anomaly_score, row.p_value, row.flagged) for row in others} == {(None, None, None)}
    with pytest.raises(DataError, match="already has a column"):
        scored_schema(schema)
