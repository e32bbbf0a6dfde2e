"""Replays searches on recorded spaces: the record gives each trial's outcome and cost, without a device.

The score of a sampler on a space after M trials is P = (found - random) / (optimum - random): 0 is chance, 1 the best
config of the space. ``found`` is the mean over repeats of the best time after M trials, failing ones included. Compiles
end on a simulated clock whose unit is a trial: one trial occupies the device for 1.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from recorded_spaces import RecordedSpace

from autotune.core.errors import UsageError
from autotune.search import actual_sampler, check_sampler, searcher
from autotune.search.ahead import CompilesAhead
from autotune.system.processes import Died, RankedPool

NEAR = 1.05  # ratio to the optimum that counts as near
RANDOM = "random"


# ---------------------------------------------------------------------- a simulated clock
@dataclass(frozen=True)
class CompileTimes:
    """The distribution of compile times, in trials: constant ``mean``, or log-normal with that mean.

    ``spread``: standard deviation of the logarithms; 0: constant.
    """

    mean: float
    spread: float = 0.0

    def drawn(self, rng: np.random.Generator) -> float:
        """Returns a random compile time."""
        if not self.spread:
            return self.mean
        return self.mean * float(rng.lognormal(-0.5 * self.spread**2, self.spread))


class Clock:
    """A simulated clock: its time ``now``, and the compiles that it starts."""

    def __init__(self, times: CompileTimes, seed: int) -> None:
        self.now = 0.0
        self.n_cancelled = 0
        self._times = times
        self._rng = np.random.default_rng([seed, 2])  # independent of the random numbers of the search

    def compile(self) -> "SimulatedCompile":
        """Starts a compile at ``now``."""
        return SimulatedCompile(self, self.now + self._times.drawn(self._rng))

    def wait(self, compiles: "Sequence[SimulatedCompile]") -> None:
        """Advances the clock until one of the compiles is done; does nothing without compiles."""
        self.now = min((one.ends for one in compiles), default=self.now)


@dataclass(frozen=True)
class SimulatedCompile:
    """A compile that is done when its clock reaches ``ends``."""

    clock: Clock
    ends: float

    def done(self) -> bool:
        return self.ends <= self.clock.now

    def cancel(self) -> None:
        self.clock.n_cancelled += 1


# ---------------------------------------------------------------------- replays
@dataclass(frozen=True)
class ReplayRun:
    """One repeat of a search. ``tried``: numbers of the configs, in the order of their outcomes.

    ``asking_s``: CPU seconds of the searcher. ``lasted``: simulated time, in trials. ``n_cancelled``: compiles that
    were started, but not measured.
    """

    searcher: str
    tried: tuple[int, ...]
    asking_s: float
    lasted: float
    n_cancelled: int


@dataclass(frozen=True)
class Replay:
    """The result of ``repeats`` searches of ``trials`` trials; times are seconds on the recorded device.

    ``score``: P; None if chance finds the optimum, too. ``found_s``: best time of each repeat; None if all its trials
    failed, and then the repeat counts only in ``n_empty``. ``median_ratio`` and ``worst_ratio``: found / optimum.
    ``trials_to_near``: median over repeats of the trials until within 5 % of the optimum; None if most repeats never
    get there. ``simulated_s``: mean sum of the trials' recorded times (compiling, verifying, measuring). ``ask_ms``:
    mean CPU milliseconds of the searcher per trial. ``busy``: mean share of the simulated time in which the device had
    a trial; compiles took ``compile_trials`` on average, with ``spread``. ``n_cancelled``: mean number of compiles
    that were not measured.
    """

    space: str
    sampler: str
    searcher: str  # the searcher that ``auto`` selected
    n_configs: int
    n_failed: int
    trials: int
    repeats: int
    ahead: int
    compile_trials: float
    spread: float
    seed: int
    optimum_s: float
    random_s: float
    score: float | None
    median_ratio: float
    worst_ratio: float
    trials_to_near: float | None
    simulated_s: float
    ask_ms: float
    busy: float
    n_cancelled: float
    found_s: tuple[float | None, ...]

    @property
    def n_empty(self) -> int:
        return sum(f is None for f in self.found_s)

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "n_empty": self.n_empty}


def expected_minimum(seconds: Sequence[float | None], n_draws: int) -> float:
    """Returns E[min of ``n_draws`` draws without replacement]. Failures (None) count as draws; not all may fail.

    Of N configs let t_1 <= ... <= t_K succeed. The best drawn time is later in the order than t_1 ... t_i exactly when
    none of these i configs is among the M drawn, which has probability
    S_i = C(N-i, M) / C(N, M) = product over j < i of (N-j-M) / (N-j), where a negative factor counts as 0.
    The best is t_i with probability S_(i-1) - S_i, and none succeeds with probability S_K, so that the mean is
    sum over i of t_i (S_(i-1) - S_i) / (1 - S_K). Ties need no care: equal times may swap their places.

    Raises:
        ValueError: if there is no success, or no draw.
    """
    times = np.sort([s for s in seconds if s is not None])
    n = len(seconds)
    if not len(times) or n_draws < 1:
        raise ValueError("the expected minimum needs at least one success and one draw")
    left = n - np.arange(len(times))
    survival = np.concatenate([[1.0], np.cumprod(np.maximum(left - n_draws, 0) / left)])
    return float(times @ (survival[:-1] - survival[1:]) / (1.0 - survival[-1]))


def replay(
    space: RecordedSpace,
    sampler: str = "auto",
    trials: int = 100,
    repeats: int = 100,
    ahead: int = 1,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda n: None,
    times: CompileTimes | None = None,
) -> Replay:
    """Searches ``space`` ``repeats`` times, each time with another seed, in ``jobs`` processes.

    ``ahead``: most configs that compile or wait for the device at a time. ``times``: compile times; by default each
    compile takes ``ahead`` trials, which just keeps the device busy. The default config comes first, except for
    ``random``: its first draw is random, too, so that it checks ``random_s``. ``progress`` is called with the number
    of finished repeats.

    Raises:
        UsageError: for an unknown sampler, a number below 1, or a time below 0.
    """
    check_sampler(sampler)
    numbers = {"trials": trials, "repeats": repeats, "ahead": ahead, "jobs": jobs}
    for what, value in numbers.items():
        if value < 1:
            raise UsageError(f"{what} is {value}; a replay needs at least 1")
    times = times or CompileTimes(ahead)
    if min(times.mean, times.spread) < 0:
        raise UsageError(f"compiles take {times.mean:g} trials, with a spread of {times.spread:g}: less than 0")
    trials = min(trials, len(space.configs))
    runs = _runs(space, sampler, trials, ahead, times, [seed + r for r in range(repeats)], jobs, progress)
    about = {"sampler": sampler, "searcher": runs[0].searcher, "trials": trials, "ahead": ahead, "seed": seed}
    about |= {"compile_trials": times.mean, "spread": times.spread}
    return _summary(space, runs, about)


def replay_once(
    space: RecordedSpace, sampler: str, trials: int, ahead: int, times: CompileTimes, seed: int
) -> ReplayRun:
    """Runs one search."""
    number = {config: i for i, config in enumerate(space.configs)}
    default = space.default
    if sampler == RANDOM:
        other = np.random.default_rng([seed, 1])  # independent of the searcher's own numbers
        default = space.configs[int(other.integers(len(space.configs)))]
    search = searcher(sampler, space.configs, default, trials, seed, (), space.known)
    clock = Clock(times, seed)
    compiling: CompilesAhead[SimulatedCompile] = CompilesAhead(search, ahead, trials)
    asking_s = 0.0
    tried: list[int] = []
    while len(tried) < trials:
        began = time.process_time()
        while (config := compiling.propose()) is not None:
            compiling.add(config, clock.compile())
        clock.wait(compiling.awaited())
        config = compiling.take()
        asking_s += time.process_time() - began
        clock.now += 1.0
        tried.append(number[config])
        seconds = space.seconds[tried[-1]]
        search.observe(config, None if seconds is None else (seconds,))
    compiling.cancel()
    searcher_name = actual_sampler(sampler, trials, len(space.configs))
    return ReplayRun(searcher_name, tuple(tried), asking_s, clock.now, clock.n_cancelled)


def _summary(space: RecordedSpace, runs: Sequence[ReplayRun], about: Mapping[str, Any]) -> Replay:
    optimum_s, random_s = space.optimum_s, expected_minimum(space.seconds, about["trials"])
    best_times = [_best(space, run) for run in runs]
    ratios = np.array([f for f in best_times if f is not None] or [np.nan]) / optimum_s
    score = None
    if random_s > optimum_s * (1 + 1e-12):
        score = float((ratios.mean() * optimum_s - random_s) / (optimum_s - random_s))
    until = float(np.median([_trials_to_near(space, run) for run in runs]))
    return Replay(
        space=space.name,
        n_configs=len(space.configs),
        n_failed=space.n_failed,
        repeats=len(runs),
        optimum_s=optimum_s,
        random_s=random_s,
        score=score,
        median_ratio=float(np.median(ratios)),
        worst_ratio=float(ratios.max()),
        trials_to_near=until if np.isfinite(until) else None,
        simulated_s=float(np.mean([sum(space.spent_s[i] for i in run.tried) for run in runs])),
        ask_ms=1e3 * sum(run.asking_s for run in runs) / sum(len(run.tried) for run in runs),
        busy=float(np.mean([len(run.tried) / run.lasted for run in runs])),
        n_cancelled=float(np.mean([run.n_cancelled for run in runs])),
        found_s=tuple(best_times),
        **about,
    )


def _best(space: RecordedSpace, run: ReplayRun) -> float | None:
    return min((s for i in run.tried if (s := space.seconds[i]) is not None), default=None)


def _trials_to_near(space: RecordedSpace, run: ReplayRun) -> float:
    """Returns the number of trials until one is within 5 % of the optimum, or infinity."""
    enough = space.optimum_s * NEAR
    near = (n for n, i in enumerate(run.tried, 1) if (s := space.seconds[i]) is not None and s <= enough)
    return float(next(near, np.inf))


# ---------------------------------------------------------------------- processes
def _runs(
    space: RecordedSpace,
    sampler: str,
    trials: int,
    ahead: int,
    times: CompileTimes,
    seeds: Sequence[int],
    jobs: int,
    progress: Callable[[int], None],
) -> list[ReplayRun]:
    if jobs == 1:
        runs = []
        for seed in seeds:
            runs.append(replay_once(space, sampler, trials, ahead, times, seed))
            progress(len(runs))
        return runs
    finished: dict[int, ReplayRun] = {}
    pool = RankedPool(min(jobs, len(seeds)), "autotune-search", _keep, space)
    try:
        waiting: dict[Future[ReplayRun], int] = {
            pool.schedule(_run, (sampler, trials, ahead, times, seed)): seed for seed in seeds
        }
        for future in as_completed(waiting):
            finished[waiting[future]] = future.result()
            progress(len(finished))
    except Died as death:
        raise UsageError(f"a process that searches {space.name} died, and a second one: {death}") from death
    finally:
        pool.end()
    return [finished[seed] for seed in seeds]


_space: RecordedSpace  # set once per worker process, not sent with every repeat


def _keep(space: RecordedSpace) -> None:
    global _space
    _space = space


def _run(sampler: str, trials: int, ahead: int, times: CompileTimes, seed: int) -> ReplayRun:
    return replay_once(_space, sampler, trials, ahead, times, seed)
