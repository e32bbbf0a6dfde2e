"""A sampler that climbs: it tries configs that differ in one parameter from the fastest so far."""

from autotune.search.sampler import ListSampler


class Climber(ListSampler):
    """Chooses a config by its number. `log_s` has the logarithms of the times so far, `configs` all allowed configs."""

    def choose(self) -> int:
        if not self.log_s:
            return self.any_open()
        fastest = self.configs[min(self.log_s, key=self.log_s.__getitem__)]
        near = [row for row in self.open_rows() if self._n_changes(self.configs[row], fastest) == 1]
        return int(self.rng.choice(near)) if near else self.any_open()  # at a local optimum it restarts anywhere

    def _n_changes(self, config, other) -> int:
        """Returns the number of parameters in which two configs differ, including those that only one of them has."""
        return sum(config.get(name) != other.get(name) for name in {*config, *other})
