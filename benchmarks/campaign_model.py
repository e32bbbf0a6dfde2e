"""How good are a campaign's winners, and would two campaigns agree? Played on a model of recorded times.

    pip install scikit-learn
    python benchmarks/campaign_model.py results --kernel ddc --campaigns 3

The model: extremely randomized trees over every trial that is recorded of the kernel on one device; what was measured
stands as it is, and the trees say the rest of each space. Campaigns of 20 and 8 trials (--first, --again) search it,
four proposals outstanding, problems that are under way beside each other knowing nothing of each other. One line after
the first looks and one after the second: how far the winners are from the best of the model, and at how many problems
those of two campaigns are within --noise.
"""

import argparse
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from autotune import Config
from autotune.campaign.campaign_plan import far_apart
from autotune.core.definition import Kernel
from autotune.records.record import SweepRecord, read_sweeps
from autotune.search import searcher
from autotune.search.neighbours import N_READ
from autotune.search.warm_start import warm_start
from autotune.source.registry import load_kernel
from autotune.sweep.settings import Settings
from autotune.transfer.features import levels_of
from autotune.transfer.neighbour import SAME_DEVICE, Neighbour, octave
from autotune.transfer.occupancy import occupancy

AHEAD, UNDER_WAY, NOISE = 4, (4, 12), 0.004  # proposals; problems beside each other; of a measurement
Times = dict[Config, float]


class Model:
    """Seconds of every configuration of every recorded problem."""

    def __init__(self, kernel: Kernel[Any], sweeps: list[SweepRecord]) -> None:
        self.kernel, self.device = kernel, sweeps[0].device
        recorded = {kernel.problem(dict(s.problem)): dict(s.median_s) for s in sweeps}
        self.spaces = {p: kernel.space.enumerate(p, self.device, {}) for p in recorded}
        configs = dict.fromkeys(c for p, times in recorded.items() for c in (*times, *self.spaces[p].configs))
        self._row = {config: row for row, config in enumerate(configs)}
        self._levels = levels_of(list(configs))
        trees = ExtraTreesRegressor(300, max_features=0.6, n_jobs=-1, random_state=0)
        known = np.vstack([self._features(p, tuple(times)) for p, times in recorded.items()])
        trees.fit(known, np.log([t for times in recorded.values() for t in times.values()]))
        self.seconds: dict[Any, Times] = {}
        for p, times in recorded.items():
            space = self.spaces[p].configs
            said = np.exp(trees.predict(self._features(p, space)))
            self.seconds[p] = {c: times.get(c, float(t)) for c, t in zip(space, said, strict=True)}

    def _features(self, problem: Any, configs: tuple[Config, ...]) -> np.ndarray:
        fields = [octave(float(v)) for v in asdict(problem).values() if isinstance(v, (int, float))]
        levels = self._levels.table[[self._row[c] for c in configs]]
        filled = occupancy(self.kernel, problem, configs, self.device)
        return np.hstack([levels, filled, np.tile(fields, (len(configs), 1))])


class Campaign:
    """``winners``: seconds of each problem's, after the first looks and after the second."""

    def __init__(self, model: Model, first: int, again: int, seed: int) -> None:
        self.model, self.seed, self.rng = model, seed, np.random.default_rng(seed)
        self.measured: dict[Any, Times] = {p: {} for p in model.seconds}
        order = far_apart(list(model.seconds))
        self.winners: list[np.ndarray] = []
        for i, problem in enumerate(order):
            self._look(problem, first, order[: max(0, i - int(self.rng.integers(*UNDER_WAY)))])
        self.winners.append(self._winners())
        for problem in order:
            self._look(problem, first + again, order)
        self.winners.append(self._winners())

    def _look(self, problem: Any, budget: int, known: list[Any]) -> None:
        model, own = self.model, self.measured[problem]
        kernel, device, space = model.kernel, model.device, model.spaces[problem]
        near = list(self._neighbours(problem, known))
        hints, columns = warm_start(kernel, problem, device, space, near, own, Settings.n_hints, own)
        default = space.nearest(kernel.default_config(problem, device))
        search = searcher("auto", space.configs, default, budget, self.seed, hints, columns)
        for config, seconds in own.items():
            search.observe(config, (seconds,))
        ahead: deque[Config] = deque()
        while len(own) < min(budget, len(space.configs)):
            while len(ahead) < AHEAD and len(own) + len(ahead) < budget and (proposed := search.propose()):
                ahead.append(proposed)
            config = ahead.popleft()
            own[config] = model.seconds[problem][config] * float(np.exp(self.rng.normal(0.0, NOISE)))
            search.observe(config, (own[config],))

    def _neighbours(self, problem: Any, known: list[Any]) -> Iterator[Neighbour]:
        def octaves(other: Any) -> float:
            pairs = zip(asdict(problem).values(), asdict(other).values(), strict=True)
            return sum(abs(octave(float(a)) - octave(float(b))) for a, b in pairs if not isinstance(a, str))

        others = sorted((octaves(p), str(p), p) for p in known if p != problem and self.measured[p])
        for distance, _, other in others[: N_READ[SAME_DEVICE]]:
            times = self.measured[other]
            best = min(times.values())
            measured = tuple(sorted(((c, t / best) for c, t in times.items()), key=lambda pair: pair[1]))
            yield Neighbour(asdict(other), self.model.device, SAME_DEVICE, distance, measured)

    def _winners(self) -> np.ndarray:
        """As a final round of the five fastest would find them."""
        return np.array(
            [
                min(self.model.seconds[p][c] for c in sorted(times, key=times.__getitem__)[:5])
                for p, times in self.measured.items()
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--kernel", default="ddc")
    parser.add_argument("--device", default="NVIDIA H200", help="whose records: its name")
    parser.add_argument("--campaigns", type=int, default=3)
    parser.add_argument("--first", type=int, default=20)
    parser.add_argument("--again", type=int, default=8)
    parser.add_argument("--noise", type=float, default=0.023)
    given = parser.parse_args()
    sweeps, _ = read_sweeps([given.results])
    mine = [s for s in sweeps if s.kernel == given.kernel and s.device.name == given.device]
    if not mine:
        parser.error(f"{given.results} has no sweep of {given.kernel} on {given.device}")
    model = Model(load_kernel(given.kernel), mine)
    campaigns = [Campaign(model, given.first, given.again, seed) for seed in range(given.campaigns)]
    best = np.array([min(times.values()) for times in model.seconds.values()])
    for look, name in enumerate(("first looks", "second looks")):
        loss = np.array([c.winners[look] for c in campaigns]) / best - 1
        pairs = [np.abs(a.winners[look] / b.winners[look] - 1) <= given.noise for a, b in combinations(campaigns, 2)]
        agree = f"; two campaigns agree at {np.mean([p.sum() for p in pairs]):.1f} of {len(best)}" if pairs else ""
        within = f"within 1 %: {100 * (loss <= 0.01).mean():.0f} %"
        print(f"{name}: {100 * loss.mean():.2f} % from the best, {100 * loss.max():.1f} % at worst; {within}{agree}")


if __name__ == "__main__":
    main()
