"""Boosted trees against a plain tree of one split, and what of their data is refused."""

import json

import numpy as np
import pytest

from autotune.recommend import trees
from autotune.recommend.trees import Trees

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(5)
COLUMNS = np.column_stack([RNG.integers(0, 6, 400), RNG.normal(size=400), RNG.integers(0, 2, 400)]).astype(float)
VALUES = np.where(COLUMNS[:, 0] > 2, 1.0, 0.0) + 0.5 * COLUMNS[:, 2] * (COLUMNS[:, 0] > 2)
EQUAL = np.ones(400)


def best_split(column: np.ndarray, values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The threshold of the largest gain, by trying all of them, and that gain."""
    found = []
    for value in np.unique(column)[:-1]:
        low = column <= value
        if min(low.sum(), (~low).sum()) >= trees.LEAST_ROWS:
            parts = [((weights * values)[one].sum(), weights[one].sum()) for one in (low, ~low)]
            found.append((sum(v * v / (w + trees.SHRINKAGE) for v, w in parts), value))
    gain, value = max(found)
    return value, gain


def test_the_first_split_is_the_one_that_gains_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "SHARE", 1.0)
    monkeypatch.setattr(trees, "N_LEAVES", 2)
    weights = RNG.uniform(0.5, 2.0, 400)
    one = Trees.fitted(COLUMNS[:, [0, 2]], VALUES, weights, n_trees=1)
    left = VALUES - one.base
    expected = max((best_split(column, left, weights)[::-1], i) for i, column in enumerate(COLUMNS[:, [0, 2]].T))
    column, threshold, low, high = one.trees[0][0]  # type: ignore[misc]
    assert column == expected[1] and expected[0][1] < threshold < expected[0][1] + 1
    is_low = COLUMNS[:, [0, 2]][:, column] <= threshold
    for node, rows in ((low, is_low), (high, ~is_low)):
        value = trees.RATE * (weights * left)[rows].sum() / (weights[rows].sum() + trees.SHRINKAGE)
        assert one.trees[0][node] == pytest.approx(value, abs=1e-5)
    np.testing.assert_allclose(
        one(COLUMNS[:, [0, 2]]), one.base + np.where(is_low, *[one.trees[0][n] for n in (low, high)])
    )


def test_many_trees_learn_what_two_columns_mean_together() -> None:
    learnt = Trees.fitted(COLUMNS, VALUES, EQUAL)
    assert np.abs(learnt(COLUMNS) - VALUES).max() < 0.15
    assert np.abs(learnt(np.array([[5.0, 0.0, 1.0], [5.0, 0.0, 0.0], [0.0, 9.0, 1.0]])) - [1.5, 1.0, 0.0]).max() < 0.1


def test_a_fit_is_the_same_each_time_and_survives_json() -> None:
    first, again = (Trees.fitted(COLUMNS, VALUES, EQUAL, 20) for _ in range(2))
    read = Trees.read(json.loads(json.dumps(first.as_json())), 3)
    assert first == again == read and (first(COLUMNS) == read(COLUMNS)).all()
    assert Trees.fitted(COLUMNS[:3], VALUES[:3], EQUAL[:3])(COLUMNS[:2]).shape == (2,), "too few rows for a split"
    assert Trees.fitted(np.ones((9, 2)), np.arange(9.0), np.ones(9))(np.ones((1, 2))) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "content",
    [
        [],
        ["0.0"],
        [0.0, []],
        [0.0, 3],
        [0.0, [True]],
        [0.0, [[0, 0.0, 1]]],
        [0.0, [[3, 0.0, 1, 2], 0.0, 0.0]],
        [0.0, [[0, 0.0, 0, 1], 0.0]],
        [0.0, [[0, "x", 1, 2], 0.0, 0.0]],
        [float("nan"), [0.0]],
    ],
)
def test_what_are_no_trees_is_refused(content: list[object]) -> None:
    with pytest.raises(ValueError, match=r"^has "):
        Trees.read(content, 3)
