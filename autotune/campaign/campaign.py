"""Runs a campaign: distributes problems, gathers and retries sweeps, and sums up their results."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Protocol

from distributed import Client, Future, KilledWorker, as_completed

from ..devices import Target
from ..source.registry import load_kernel
from ..sweep.estimate import estimate
from ..trial.ledger import ON_DEVICE
from .campaign_plan import CampaignPlan
from .cluster import all_devices, local_client, remote_client, share_of_cores
from .security import Certificates
from .task_worker import Task, TaskResult, run_task, target_here

MOST_CONFIGS = 1000  # configs that an estimate assumes for an exhaustive sweep


class CampaignProgress(Protocol):
    """Receives a campaign's progress while it runs."""

    def begin(self, title: str, n_total: int) -> None: ...
    def tuned(self, one: TaskResult, n_done: int) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True)
class Campaign:
    """A finished or interrupted campaign. Times are wall time."""

    tuned: tuple[TaskResult, ...]
    n_problems: int
    devices: tuple[str, ...]
    wall_s: float
    interrupted: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)  # trials by status

    @property
    def failed(self) -> tuple[TaskResult, ...]:
        return tuple(o for o in self.tuned if o.error)

    @property
    def n_new(self) -> int:
        """Returns the number of trials that this run measured."""
        return sum(o.n_new for o in self.tuned)

    @property
    def spent_s(self) -> dict[str, float]:
        """Returns the sweeps' own time by activity, in seconds; sweeps overlap, so the sum exceeds ``wall_s``."""
        total: defaultdict[str, float] = defaultdict(float)
        for one in self.tuned:
            for what, seconds in one.spent_s.items():
                total[what] += seconds
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def idle_share(self) -> float:
        """Returns the share of the devices' time in which no sweep used them."""
        busy_s = sum(self.spent_s.get(what, 0.0) for what in ON_DEVICE)
        return max(0.0, 1.0 - busy_s / (self.wall_s * max(1, len(self.devices)))) if self.wall_s else 0.0

    @property
    def compile_s(self) -> float:
        """Returns the total compile time of all compilers, in seconds."""
        return sum(o.compile_s for o in self.tuned)

    @property
    def compile_share(self) -> float:
        """Returns the share of the compile processes' time spent compiling; the rest is references and waiting."""
        processes = {o.device: o.compile_processes for o in self.tuned if o.compile_processes}
        available_s = self.wall_s * sum(processes.values())
        return min(1.0, self.compile_s / available_s) if available_s else 0.0


def run_campaign(
    plan: CampaignPlan,
    progress: CampaignProgress,
    scheduler: str | None = None,
    devices: tuple[str, ...] | None = None,
    compile_processes: int | None = None,
    certificates: Certificates | None = None,
) -> Campaign:
    """Tunes every problem of ``plan``; recorded trials are not measured again.

    ``scheduler``: address of a Dask scheduler whose workers share the results folder; None: a cluster on this machine
    with one worker for each of ``devices`` (None: those of the plan, or every GPU here), each with
    ``compile_processes`` (None: its share of the cores). ``certificates``: for a scheduler at tls://.

    Raises:
        UsageError: for a missing device or scheduler, or a plan whose values are not problems.
    """
    began = time.monotonic()
    tuned: dict[str, TaskResult] = {}
    interrupted = False
    with _cluster(plan, scheduler, certificates or Certificates(), devices, compile_processes) as (client, targets):
        kernel, target = load_kernel(plan.kernel), targets[0]
        problems = [asdict(p) for p in plan.problems(target)]
        rounds = [[Task(plan.kernel, p, plan.settings_of(i)) for i, p in enumerate(problems)]]
        if plan.n_revisit and len(problems) > 1:
            rounds.append([Task(plan.kernel, p, plan.settings_again(i, target.kind)) for i, p in enumerate(problems)])
        used = tuple(each.identifier for each in targets)
        n_trials = sum(task.settings.budget(target.kind, MOST_CONFIGS) for task in rounds[-1])
        n_processes = compile_processes or share_of_cores(target.kind)
        expected = estimate(plan.settings.results, kernel, target.device, n_trials // len(used), n_processes)
        title = f"{kernel.name}: {len(problems)} problems on {', '.join(used)}, at most {n_trials} trials, {expected}"
        progress.begin(title, sum(map(len, rounds)))
        try:
            for n_done, one in enumerate(_gather(client, rounds), 1):
                name = str(one.problem)
                tuned[name] = tuned[name].then(one) if name in tuned else one
                progress.tuned(one, n_done)
        except KeyboardInterrupt:
            interrupted = True
    progress.end()
    counts: Counter[str] = Counter()
    for one in tuned.values():
        counts.update(one.counts)
    wall_s = time.monotonic() - began
    return Campaign(tuple(tuned.values()), len(problems), used, wall_s, interrupted, dict(counts))


@contextmanager
def _cluster(
    plan: CampaignPlan,
    scheduler: str | None,
    certificates: Certificates,
    devices: tuple[str, ...] | None,
    compile_processes: int | None,
) -> Iterator[tuple[Client, list[Target]]]:
    """Yields Dask's client and the device of each of its workers."""
    if scheduler is None:
        wanted = devices or plan.devices or all_devices()
        with local_client(wanted, compile_processes) as (client, targets):
            yield client, targets
    else:
        with remote_client(scheduler, certificates) as client:
            yield client, list(client.run(target_here).values())


def _gather(client: Client, rounds: list[list[Task]]) -> Iterator[TaskResult]:
    """Yields the result of each sweep when it ends; if a worker dies, Dask gives its sweep to another worker.

    A problem's second sweep begins when half of the campaign's problems have begun their first sweep after it. Second
    sweeps mostly use the devices and first sweeps the compilers, so the mixture keeps both busy.
    """
    futures: dict[Future[TaskResult], Task] = {}
    earlier: dict[int, Future[TaskResult]] = {}
    for number, tasks in enumerate(rounds):
        for i, task in enumerate(tasks):
            key, priority = f"{task.kernel} {task.problem} {number}", -(i + number * len(tasks) // 2)
            future = client.submit(run_task, task, earlier.get(i), key=key, pure=False, retries=1, priority=priority)
            futures[future] = task
            earlier[i] = future
    earlier.clear()
    for future in as_completed(list(futures)):
        task = futures.pop(future)
        try:
            yield future.result()
        except KilledWorker:
            yield TaskResult(task.problem, "", error="the worker process died on every attempt")
        except Exception as error:  # a bug in one definition must not end the campaign; the summary reports it
            yield TaskResult(task.problem, "", error=f"{type(error).__name__}: {error}")
        future.release()
