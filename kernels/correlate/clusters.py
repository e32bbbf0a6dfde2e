"""Chooses the tiles of the triangle that the blocks of a cluster take: they share what they copy, and few are idle."""

from functools import lru_cache
from typing import NamedTuple

NOBODY = -1


class Member(NamedTuple):
    """A block of a cluster."""

    j: int  # its tile: later receivers, or NOBODY where there is none
    i: int  # earlier receivers
    same_j: int  # the rank of the block that has the same later receivers, or NOBODY
    same_i: int  # the rank of the block that has the same earlier receivers, or NOBODY


Tile = tuple[int, int]


@lru_cache(maxsize=16)
def members(n_tiles: int, size: int) -> tuple[Member, ...]:
    """Returns the blocks of all clusters of ``size`` 2 or 4, cluster after cluster, for ``n_tiles`` tiles of receivers.

    Groups of tiles share receivers among themselves; a cluster has one of ``size``, or several smaller ones.
    """
    waiting, made = groups(n_tiles, size), list[Member]()
    while waiting:
        n_idle = size
        while group := next((group for group in waiting if len(group) <= n_idle), None):
            waiting.remove(group)
            made += _members_of(group, size - n_idle)
            n_idle -= len(group)
        made += [Member(NOBODY, NOBODY, NOBODY, NOBODY)] * n_idle
    return tuple(made)


def groups(n_tiles: int, size: int) -> list[list[Tile]]:
    """Returns the tiles (j, i) with i <= j, each once, in groups that share receivers. The largest groups come first.

    Of four: squares of two rows, from one below the diagonal on; what is left are tiles on the diagonal and, of an even
    number of rows, the last one. Of two: one tile above the other; what is left is every other tile of the last row.
    """
    if size == 4:
        pairs_of_rows = range(1, n_tiles - 1, 2)
        squares = [[(j, i), (j, i + 1), (j + 1, i), (j + 1, i + 1)] for j in pairs_of_rows for i in range(0, j + 1, 2)]
        is_odd = n_tiles % 2 == 1
        last = [] if is_odd else [(n_tiles - 1, i) for i in range(n_tiles)]
        return [*squares, *_cut(last, 2), *([(j, j)] for j in range(0, n_tiles - 1 + is_odd, 2))]
    columns = [[(j, i) for j in range(i, n_tiles)] for i in range(n_tiles)]
    pairs = [pair for column in columns for pair in _cut(column, 2) if len(pair) == 2]
    last = [column[-1] for column in columns if len(column) % 2]
    return [*pairs, *_cut(last, 2)]


def _cut(tiles: list[Tile], n: int) -> list[list[Tile]]:
    return [tiles[first : first + n] for first in range(0, len(tiles), n)]


def _members_of(group: list[Tile], first_rank: int) -> list[Member]:
    def partner(number: int, axis: int) -> int:
        same = [n for n, tile in enumerate(group) if n != number and tile[axis] == group[number][axis]]
        return first_rank + same[0] if same else NOBODY

    return [Member(*tile, partner(number, 0), partner(number, 1)) for number, tile in enumerate(group)]
