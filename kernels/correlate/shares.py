"""Cuts the product of a block into shares of pairs of octets, one for each warp of the design for mma_sync."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

Pair = tuple[int, int]  # an octet of later receivers, the row, and one of earlier receivers, the column


class Share(NamedTuple):
    """The pairs of octets that a warp multiplies. It loads each of its octets once."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    wanted: tuple[int, ...]  # each column has a bit for each row that it meets

    @property
    def pairs(self) -> list[Pair]:
        """Returns the pairs in the order in which a warp has their sums: column by column."""
        columns = zip(self.columns, self.wanted, strict=True)
        return [(row, column) for column, bits in columns for n, row in enumerate(self.rows) if bits >> n & 1]

    @property
    def cost(self) -> int:
        """Returns the octets that the warp loads; those of columns count twice, as they are also turned."""
        return len(self.rows) + 2 * len(self.columns)


@lru_cache(maxsize=256)
def shares(n_octets: int, n_warps: int, *, is_triangle: bool) -> tuple[Share, ...]:
    """Returns the shares of ``n_warps`` of a block of ``n_octets`` on each side, which have each pair once; of a
    triangle those whose column is not after their row. Their numbers of pairs differ by at most one.

    All pairs are walked in bands of some rows, and in a band column by column; or so with rows and columns exchanged.
    The walk is cut into pieces of equal lengths, which are nearly rectangles. Of all heights of bands the best is
    taken.
    """
    ways = product(range(1, n_octets + 1), (False, True))
    walks = ([pair for pair in _walk(n_octets, *way) if not is_triangle or pair[1] <= pair[0]] for way in ways)
    return min((_cut(walk, n_warps) for walk in walks), key=_cost)


def n_pairs(n_octets: int, *, is_triangle: bool) -> int:
    """Returns the number of pairs of a block of ``n_octets`` on each side."""
    return n_octets * (n_octets + 1) // 2 if is_triangle else n_octets**2


def _walk(n_octets: int, height: int, is_exchanged: bool) -> Iterator[Pair]:
    for first in range(0, n_octets, height):
        for across in range(n_octets):
            for along in range(first, min(first + height, n_octets)):
                yield (across, along) if is_exchanged else (along, across)


def _cut(walk: list[Pair], n_warps: int) -> tuple[Share, ...]:
    ends = [len(walk) * warp // n_warps for warp in range(n_warps + 1)]
    return tuple(_share_of(walk[begin:end]) for begin, end in pairwise(ends))


def _share_of(pairs: Collection[Pair]) -> Share:
    rows, columns = sorted({row for row, _ in pairs}), sorted({column for _, column in pairs})
    wanted = [sum(1 << n for n, row in enumerate(rows) if (row, column) in pairs) for column in columns]
    return Share(tuple(rows), tuple(columns), tuple(wanted))


def _cost(cut: tuple[Share, ...]) -> tuple[int, int]:
    costs = [share.cost for share in cut]
    return sum(costs), max(costs)
