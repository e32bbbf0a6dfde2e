"""A sampler that climbs: it tries configs that differ in one parameter from the fastest so far."""

from autotune.search.sampler import ListSampler


class Climber(ListSampler):
    """Chooses by number. `log_s` has the logarithms of the times so far, and `configs` all that are allowed."""

    def choose(self) -> int:
        if not self.log_s:
            return self.any_open()
        fastest = self.configs[min(self.log_s, key=self.log_s.__getitem__)]
        near = [row for row in self.open_rows() if self._n_changes(self.configs[row], fastest) == 1]
        return int(self.rng.choice(near)) if near else self.any_open()  # from a peak it starts anywhere

    def _n_changes(self, config, other) -> int:
        """Returns the number of parameters in which two configs differ, those included that only one of them has."""
        return sum(config.get(name) != other.get(name) for name in {*config, *other})
