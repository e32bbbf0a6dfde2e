"""Samplers without a model: every config in order, and every config in random order."""

from .sampler import ListSampler, Request


class Exhaustive(ListSampler):
    """Proposes every config in the order of the space."""

    learns, several = False, True

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._order = iter(range(self.n_configs))

    def choose(self) -> int:
        return next(i for i in self._order if not self.taken[i])


class Random(Exhaustive):
    """Proposes every config in random order."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._order = iter(self.rng.permutation(self.n_configs).tolist())
