"""The baselines against scikit-learn's own scores, or against arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import covariance, ensemble, linear_model, neighbors, svm
from sklearn.metrics.pairwise import rbf_kernel

from strays.detectors import (
    CentroidDistance,
    IsolationForest,
    LocalOutlierFactor,
    LogisticHead,
    Mahalanobis,
    NearestNormals,
    OneClassSVM,
)
from strays.detectors.one_class_svm import gauss_kernel


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestAgainstScikitLearn:
    @pytest.mark.parametrize("most_rows", [0, 10**6])
    def test_one_class_svm(self, blobs, dtype: type, most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("strays.detectors.one_class_svm.most_rows_at_once", lambda: most_rows)
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        for params in ({}, {"nu": 0.1, "gamma": 0.05}):
            theirs = svm.OneClassSVM(**({"nu": 0.5} | params)).fit(X)
            ours = OneClassSVM(**params).fit(X)
            expected = -theirs.decision_function(X_test)
            np.testing.assert_allclose(ours.anomaly_score(X_test), expected, atol=1e-6 * np.std(expected))

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

    def test_nearest_normals(self, blobs, dtype: type) -> None:
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        index = neighbors.NearestNeighbors(n_neighbors=7).fit(X)
        ours = NearestNormals(n_neighbors=7).fit(X, np.ones(len(X)))
        np.testing.assert_allclose(ours.anomaly_score(X_test), index.kneighbors(X_test)[0].mean(axis=1), rtol=1e-5)
        # kneighbors() without rows leaves each training row out of its own neighbours.
        np.testing.assert_allclose(ours.anomaly_score(X), index.kneighbors()[0].mean(axis=1), rtol=1e-5)

    def test_mahalanobis(self, blobs, dtype: type) -> None:
        X, X_test = blobs[0].astype(dtype), blobs[2].astype(dtype)
        theirs = covariance.LedoitWolf().fit(X.astype(np.float64)).mahalanobis(X_test.astype(np.float64))
        np.testing.assert_allclose(Mahalanobis().fit(X).anomaly_score(X_test), np.sqrt(theirs), rtol=1e-6)

    def test_logistic_head(self, blobs, dtype: type) -> None:
        X, y, X_test = blobs[0].astype(dtype), blobs[1], blobs[2].astype(dtype)
        theirs = linear_model.LogisticRegression(C=0.3, max_iter=1000).fit(X.astype(np.float64), y < 0)
        ours = LogisticHead(C=0.3).fit(X, y).anomaly_score(X_test)
        np.testing.assert_allclose(ours, theirs.decision_function(X_test.astype(np.float64)), rtol=1e-6)


def test_the_kernel_of_a_one_class_svm_is_the_same_in_blocks() -> None:
    X = np.random.default_rng(0).normal(size=(70, 5))
    theirs = rbf_kernel(X, gamma=0.3)
    for at_once in (1, 32, 70, 1024):
        assert gauss_kernel(X, 0.3, at_once) == pytest.approx(theirs, rel=1e-12)


def test_mahalanobis_with_doubled_columns_and_fewer_rows_than_dimensions(blobs) -> None:
    X = np.hstack([blobs[0][:20], blobs[0][:20]])
    assert np.isfinite(Mahalanobis().fit(X).anomaly_score(np.vstack([X, X + 1]))).all()


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
