"""Boosted regression trees: each tree is fitted to what the ones before it leave over.

Friedman, Greedy function approximation: a gradient boosting machine, 2001. Columns are cut into bins first, and the
tree's next leaf to split is the one that gains most (Ke et al., LightGBM, 2017). A fit is the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.schema import Unsound

N_TREES, N_LEAVES, RATE = 100, 16, 0.1
MOST_BINS = 32  # a column has no more
LEAST_ROWS = 3  # a leaf has no fewer
SHRINKAGE = 1.0  # weight of a leaf's rows at which its value is halved
SHARE = 0.6  # a tree may use this share of the columns
LEAST_GAIN = 1e-6
DECIMALS = 5  # thresholds and values have so many

Split = tuple[int, float, int, int]  # column, threshold, and the nodes for values up to it and beyond it
Node = Split | float  # a leaf has a value


@dataclass(frozen=True)
class Trees:
    """The sum of ``base`` and of one leaf of each tree; node 0 of a tree is its root."""

    base: float
    trees: tuple[tuple[Node, ...], ...]

    @staticmethod
    def fitted(columns: np.ndarray, values: np.ndarray, weights: np.ndarray, n_trees: int = N_TREES) -> "Trees":
        """Returns trees for ``values`` [n_rows], given ``columns`` [n_rows, n_columns] and positive ``weights``."""
        edges = [_edges(column) for column in columns.T]
        n_bins = max([1, *map(len, edges)]) + 1
        binned = np.array([np.searchsorted(e, c) for e, c in zip(edges, columns.T, strict=True)]).T
        base = round(float(np.average(values, weights=weights)), DECIMALS)
        left, rng, trees = values - base, np.random.default_rng(0), []
        for _ in range(n_trees):
            used = np.sort(rng.choice(len(edges), max(1, round(SHARE * len(edges))), replace=False))
            tree, predicted = _tree(np.ascontiguousarray(binned[:, used]), n_bins, left, weights, used, edges)
            left = left - predicted
            trees.append(tree)
        return Trees(base, tuple(trees))

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """Returns a value for each row of ``columns`` [n_rows, n_columns]."""
        total, rows = np.full(len(columns), self.base), np.arange(len(columns))
        for tree in self.trees:
            splits = [node if isinstance(node, tuple) else (0, np.inf, i, i) for i, node in enumerate(tree)]
            column, threshold, low, high = (np.array(each) for each in zip(*splits, strict=True))
            values = np.array([0.0 if isinstance(node, tuple) else node for node in tree])
            at = np.zeros(len(columns), int)
            for _ in range(len(tree) // 2):
                following = np.where(columns[rows, column[at]] <= threshold[at], low[at], high[at])
                if (following == at).all():
                    break
                at = following
            total += values[at]
        return total

    def as_json(self) -> list[Any]:
        return [self.base, *self.trees]

    @staticmethod
    def read(content: Any, n_columns: int) -> "Trees":
        """Returns the trees in ``content``; raises Unsound if they are damaged, or of more columns."""
        if not isinstance(content, list) or not content or not all(isinstance(t, list) and t for t in content[1:]):
            raise Unsound("has no trees")
        trees = (tuple(_node(node, i, tree, n_columns) for i, node in enumerate(tree)) for tree in content[1:])
        return Trees(_number(content[0]), tuple(trees))


def _node(node: Any, place: int, tree: Sequence[Any], n_columns: int) -> Node:
    if not isinstance(node, list):
        return _number(node)
    if len(node) != 4 or any(type(node[i]) is not int for i in (0, 2, 3)):
        raise Unsound("has a node that is neither a split nor a value")
    column, threshold, low, high = node
    if not (0 <= column < n_columns and place < low < len(tree) and place < high < len(tree)):
        raise Unsound("has a split without its columns or nodes")
    return column, _number(threshold), low, high


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not np.isfinite(value):
        raise Unsound("has a value that is not a number")
    return float(value)


def _edges(column: np.ndarray) -> np.ndarray:
    """Returns ascending thresholds that cut a column into at most MOST_BINS bins."""
    values = np.unique(column)
    if len(values) > MOST_BINS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, MOST_BINS)))
    return np.unique(np.round((values[1:] + values[:-1]) / 2, DECIMALS))


def _tree(
    binned: np.ndarray,
    n_bins: int,
    left: np.ndarray,
    weights: np.ndarray,
    used: np.ndarray,
    edges: Sequence[np.ndarray],
) -> tuple[tuple[Node, ...], np.ndarray]:
    """Returns one tree, and its values at all rows. ``binned``: the bins of the ``used`` columns."""
    n_columns = binned.shape[1]
    flat, weighted = binned + n_bins * np.arange(n_columns), left * weights

    def sums(rows: np.ndarray) -> np.ndarray:
        """Returns sum of values, sum of weights, and number of rows, for each column and bin."""
        places = flat[rows].ravel()
        each = (weighted[rows], weights[rows], None)
        found = [np.bincount(places, None if w is None else np.repeat(w, n_columns), n_columns * n_bins) for w in each]
        return np.array(found).reshape(3, n_columns, n_bins)

    def best(*totals: np.ndarray) -> list[tuple[float, int, int]]:
        """Returns, for each leaf, the largest gain of a split, its column, and the last bin of its lower part."""
        low = np.array(totals).cumsum(axis=3)
        whole, low = low[..., -1:], low[..., :-1]
        high = whole - low
        gain = low[:, 0] ** 2 / (low[:, 1] + SHRINKAGE) + high[:, 0] ** 2 / (high[:, 1] + SHRINKAGE)
        gain[(low[:, 2] < LEAST_ROWS) | (high[:, 2] < LEAST_ROWS)] = -np.inf
        places = gain.reshape(len(totals), -1).argmax(axis=1)
        value, weight, _ = whole[:, :, 0, 0].T
        most = gain.reshape(len(totals), -1)[range(len(totals)), places] - value**2 / (weight + SHRINKAGE)
        return [(float(m), *divmod(int(place), n_bins - 1)) for m, place in zip(most, places, strict=True)]

    nodes: list[Node] = [0.0]
    everything = np.arange(len(left))
    total = sums(everything)
    leaves = {0: (everything, total, best(total)[0])}
    while len(leaves) < N_LEAVES:
        number = max(leaves, key=lambda leaf: leaves[leaf][2][0])
        rows, total, (gain, column, last) = leaves[number]
        if not gain > LEAST_GAIN:
            break
        del leaves[number]
        is_low = binned[rows, column] <= last
        parts = rows[is_low], rows[~is_low]
        smaller = int(len(parts[1]) < len(parts[0]))
        of_smaller = sums(parts[smaller])
        totals = (of_smaller, total - of_smaller) if smaller == 0 else (total - of_smaller, of_smaller)
        low, high = len(nodes), len(nodes) + 1
        nodes[number] = (int(used[column]), float(edges[used[column]][last]), low, high)
        nodes += [0.0, 0.0]
        leaves |= zip((low, high), zip(parts, totals, best(*totals), strict=True), strict=True)
    predicted = np.zeros(len(left))
    for number, (rows, _, _) in leaves.items():
        value = RATE * float(weighted[rows].sum() / (weights[rows].sum() + SHRINKAGE))
        nodes[number] = round(value, DECIMALS)
        predicted[rows] = nodes[number]
    return tuple(nodes), predicted
