"""The baselines against scikit-learn's own scores, or against arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import ensemble, neighbors, svm

from strays.detectors import CentroidDistance, IsolationForest, LocalOutlierFactor, OneClassSVM


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestAgainstScikitLearn:
    @pytest.mark.parametrize("most_rows", [0, 10**6])
    def test_one_class_svm(self, blobs, dtype: type, most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("strays.detectors.one_class_svm.most_rows_at_once", lambda: most_rows)
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        for params in ({}, {"nu": 0.1, "gamma": 0.05}):
            theirs = svm.OneClassSVM(**({"nu": 0.5} | params)).fit(X)
            ours = OneClassSVM(**params).fit(X)
            np.testing.assert_allclose(ours.anomaly_score(X_test), -theirs.decision_function(X_test), atol=1e-6)

    def test_isolation_forest(self, blobs, dtype: type) -> None:
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        for features in (1.0, 0.5):
            theirs = ensemble.IsolationForest(max_samples=256, max_features=features, random_state=0).fit(X)
            ours = IsolationForest(max_features=features, random_state=0).fit(X)
            np.testing.assert_allclose(ours.anomaly_score(X_test), -theirs.score_samples(X_test), rtol=1e-12)

    def test_local_outlier_factor(self, blobs, dtype: type) -> None:
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        for k in (5, 20):
            theirs = neighbors.LocalOutlierFactor(n_neighbors=k, novelty=True, algorithm="brute").fit(X)
            ours = LocalOutlierFactor(n_neighbors=k).fit(X)
            np.testing.assert_allclose(ours.anomaly_score(X_test), -theirs.score_samples(X_test), rtol=1e-5)


def test_centroid_distance_by_hand() -> None:
    model = CentroidDistance().fit([[0, 0], [2, 0], [1, 3], [9, 9]], [1, 0, 1, -1])
    assert model.center_.tolist() == [1, 1]
    assert model.anomaly_score([[1, 1], [4, 5]]).tolist() == [0, 5]


def test_isolation_forest_with_duplicates_ends() -> None:
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 50, axis=0)
    scores = IsolationForest(random_state=0).fit(X).anomaly_score([[0, 1], [1, 0]])
    assert ((scores > 0) & (scores < 1)).all()


def test_local_outlier_factor_with_fewer_rows_than_neighbors() -> None:
    assert LocalOutlierFactor(n_neighbors=20).fit(np.eye(4)).anomaly_score(np.eye(4)).shape == (4,)
