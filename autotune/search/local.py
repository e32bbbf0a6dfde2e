"""Iterated local search over the list of valid configs: no model, no cost."""

from collections import Counter

import numpy as np

from .features import levels_of
from .sampler import ListSampler, Request


class LocalSearch(ListSampler):
    """Walks to faster neighbours. If there is none, it starts again, by turns near the best config and anywhere.

    A neighbour differs in one parameter. The walk moves to the first faster neighbour. Lourenco, Martin and Stuetzle,
    Iterated Local Search, 2003.
    """

    n_first = 8  # random configs; the walk begins at the best of them
    far = 3  # parameters in which a new start may differ from the best

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._levels = levels_of(self.configs)
        self._centre: int | None = None  # the current config of the walk
        self._starts: set[int] = set()  # configs that were proposed as new starts of the walk
        self._n_starts = 0
        self._nearby: list[int] = []  # neighbours of the centre; the next one is the last

    def choose(self) -> int:
        if self._centre is None and len(self.pending) + len(self.failed) + len(self.log_s) < self.n_first:
            return self.any_open()
        if self._centre is None and self.log_s:
            self._move(min(self.log_s, key=self.log_s.__getitem__))
        while self._nearby:
            number = self._nearby.pop()
            if not self.taken[number]:
                return number
        start = self._new_start()
        self._starts.add(start)
        return start

    def learn(self, number: int) -> None:
        if number not in self.log_s or self._centre is None:
            return
        if number in self._starts or self.log_s[number] < self.log_s.get(self._centre, np.inf):
            self._move(number)

    def _move(self, number: int) -> None:
        self._centre = number
        self._starts.discard(number)
        near = self.rng.permutation(np.flatnonzero((self._levels.differences(number) <= 1) & ~self.taken))
        # parameters take turns: the one with the most values would otherwise get most of the trials
        turns: Counter[int] = Counter()
        turn = []
        for which in np.argmax(self._levels.table[near] != self._levels.table[number], axis=1).tolist():
            turn.append(turns[which])
            turns[which] += 1
        self._nearby = near[np.argsort(turn, kind="stable")[::-1]].tolist()

    def _new_start(self) -> int:
        self._n_starts += 1
        if self._n_starts % 2 and self.log_s:
            best = min(self.log_s, key=self.log_s.__getitem__)
            near = np.flatnonzero((self._levels.differences(best) <= self.far) & ~self.taken)
            if len(near):
                return int(self.rng.choice(near))
        return self.any_open()
