"""The main job: every station in its turn for one (kernel, problem, device), each trial on disk before the next.

The search proposes, compile processes work ahead, one worker process verifies and measures, the record keeps it
all. Started again with the same arguments, a sweep goes on where it stopped.
"""

import os
import shlex
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import record
from .catalogue import reference_of
from .compile import CompilePool, Pending, check_limits
from .definition import Kernel, baked_fields, problem_name, runtime_fields
from .devices import Target
from .devices.base import Binary, Ceilings, Session
from .devices.worker import Job, Worker
from .errors import TrialFailure, UsageError
from .finalists import PREFERENCE, Finalist, rank
from .lock import device_lock
from .measure import Measurement, Protocol
from .progress import Progress, Quiet
from .record import SweepFolder, Trial
from .render import Variant, render
from .roofline import rates
from .search import Searcher, searcher
from .space import Config, Value
from .verify import Verdict, too_large_for_numpy

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_TRIALS = {"host": 64}  # a CPU takes about a second a trial
N_TRIALS = 200  # elsewhere


@dataclass(frozen=True)
class Settings:
    """What a sweep may spend, and how it searches and measures."""

    results: Path = Path("results")
    trials: int | None = None  # None: DEFAULT_TRIALS of the device
    time_s: float | None = None  # of searching; the finalists come on top
    sampler: str = "auto"
    seed: int = 0
    restrict: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    n_finalists: int = 5
    finalist_samples: int = 40
    compile_processes: int = max(1, min(8, (os.cpu_count() or 2) - 1))
    compile_deadline_s: float = 60.0
    launch_deadline_s: float = 60.0  # for the verification and for the measurement of one trial


@dataclass(frozen=True)
class Sweep:
    """A finished or interrupted sweep. ``best`` and ``default`` are None where none was correct."""

    path: Path
    best: Trial | None
    default: Trial | None
    finalists: tuple[Finalist, ...]
    counts: Mapping[str, int]  # trials by status
    refused: Mapping[str, int]  # configs that a constraint refused, by its reason
    sampler: str
    interrupted: bool = False

    @property
    def trials(self) -> "pd.DataFrame":
        """One row a trial, as ``autotune.load`` gives them."""
        return record.load(self.path)

    @property
    def speed_up(self) -> float | None:
        """Median of the default over the best's."""
        if self.best is None or self.default is None or not self.best.median_s or not self.default.median_s:
            return None
        return self.default.median_s / self.best.median_s


def run_sweep(
    kernel: Kernel[Any], problem: Any, target: Target, settings: Settings, progress: Progress | None = None
) -> Sweep:
    """Tune ``kernel`` for ``problem`` on ``target``.

    Raises:
        UsageError: for an empty space, no compiler, or a record that cannot be written.
    """
    with ExitStack() as stack:
        runner = _Runner(kernel, problem, target, settings, progress or Quiet(), stack)
        return runner.run()


class _Runner:
    """The state of one sweep under way."""

    def __init__(
        self,
        kernel: Kernel[Any],
        problem: Any,
        target: Target,
        settings: Settings,
        progress: Progress,
        stack: ExitStack,
    ) -> None:
        self.kernel, self.problem, self.target = kernel, problem, target
        self.settings, self.progress = settings, progress
        self.enumeration = kernel.space.enumerate(problem, target.device, settings.restrict)
        if not self.enumeration.configs:
            reasons = "; ".join(f"{n} by: {why}" for why, n in self.enumeration.refused.items())
            raise UsageError(f"{kernel.name} has no configuration for {problem_name(problem)}: refused {reasons}")
        self.default = self.enumeration.nearest(kernel.default_config(problem, target.device))
        self.compiler = target.module.compiler(target.device)
        self.fixed_stamp = (self.compiler, _station_digest(target.kind), kernel.source_path.read_text())
        module = target.module
        stack.enter_context(device_lock(module.lock_name(target.identifier), progress.note))
        self.folder = self._open_folder()
        self.pool = stack.enter_context(
            CompilePool(target, settings.compile_processes, settings.compile_deadline_s),
        )
        self.worker = stack.enter_context(Worker(target))
        self.ceilings: Ceilings | None = None
        self.trials = [t for t in self.folder.trials() if t.stamp == self._stamp_of(t.config)]
        self.oracle: tuple[Config, Binary] | None = None
        self.binaries: dict[Config, Binary] = {}

    # ------------------------------------------------------------------ the whole
    def run(self) -> Sweep:
        n_configs = len(self.enumeration.configs)
        budget = self.settings.trials or DEFAULT_TRIALS.get(self.target.kind, N_TRIALS)
        done = [t.config for t in self.trials]
        name, search = searcher(
            self.settings.sampler, self.enumeration.configs, self.default, budget, done, self.settings.seed
        )
        for trial in self.trials:
            search.observe(trial.config, trial.median_s)
        n_total = min(budget, n_configs)
        title = f"{self.kernel.name} {problem_name(self.problem)} on {self.target.device.name}: {n_configs} configs"
        self.progress.begin(f"{title}, {name}", max(n_total, len(done)), len(done))
        previous = self.folder.verdict() if len(done) >= n_total else None
        interrupted = False
        finalists: tuple[Finalist, ...] = ()
        try:
            if previous is None:
                self.folder.drop_verdict()
                self.ceilings = self.worker.call(_ceilings, deadline_s=120.0)
                self._search(search, n_total)
                finalists = self._finals()
        except KeyboardInterrupt:
            interrupted = True
        best, default = self._outcome(finalists, previous)
        counts = dict(Counter(t.status for t in self.trials))
        self.progress.end(counts)
        sweep = Sweep(self.folder.path, best, default, finalists, counts, self.enumeration.refused, name, interrupted)
        if finalists:
            self._write_verdict(sweep)
        return sweep

    def _search(self, search: Searcher, n_total: int) -> None:
        """Propose, compile ahead, verify and measure until the budget is spent."""
        started = time.monotonic()
        ahead: deque[tuple[Config, Variant | TrialFailure, Pending | None]] = deque()
        while True:
            spent = self.settings.time_s is not None and time.monotonic() - started > self.settings.time_s
            while not spent and len(ahead) <= self.settings.compile_processes:
                if len(self.trials) + len(ahead) >= n_total or (config := search.propose()) is None:
                    break
                ahead.append((config, *self._start(config)))
            if not ahead or spent:
                return
            trial = self._trial(*ahead.popleft())
            self.folder.append(trial)
            self.trials.append(trial)
            search.observe(trial.config, trial.median_s)
            self.progress.trial(trial, len(self.trials), self._fastest())

    # ------------------------------------------------------------------ one trial
    def _start(self, config: Config) -> tuple[Variant | TrialFailure, Pending | None]:
        """Render, and let the compile processes begin."""
        if reason := self.kernel.unsupported(config, self.target.device):
            return TrialFailure("skipped", reason), None
        try:
            variant = render(self.kernel, self.problem, config)
        except TrialFailure as failure:
            return failure, None
        return variant, self.pool.submit(variant)

    def _trial(self, config: Config, variant: Variant | TrialFailure, pending: Pending | None) -> Trial:
        trial = Trial(
            number=1 + max((t.number for t in self.trials), default=-1),
            status="measured",
            config=config,
            key=variant.key if isinstance(variant, Variant) else None,
            stamp=self._stamp_of(config),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            reproduce=self._reproduce(config),
        )
        try:
            if isinstance(variant, TrialFailure) or pending is None:
                raise variant if isinstance(variant, TrialFailure) else RuntimeError("a variant without a compile")
            binary = pending.result()
            geometry = self.kernel.launch(self.problem, config)
            trial = replace(
                trial,
                compile_s=binary.compile_s,
                registers=binary.registers,
                spill_bytes=binary.spill_bytes,
                shared_bytes=(binary.shared_bytes or 0) + geometry.shared_bytes,
                grid=geometry.grid,
                block=geometry.block,
            )
            check_limits(binary, geometry, self.target.device)
            return self._on_device(trial, config, binary)
        except TrialFailure as failure:
            return replace(trial, status=failure.status, message=failure.message)

    def _on_device(self, trial: Trial, config: Config, binary: Binary) -> Trial:
        job = self._job(config, binary)
        started = time.monotonic()
        verdict = self.worker.verify(job, self.settings.launch_deadline_s)
        verified = time.monotonic()
        if self.oracle is None and too_large_for_numpy(self.kernel, self.problem):
            self.oracle = (config, binary)
            job = self._job(config, binary)
        fastest = self._fastest()
        protocol = replace(self.settings.protocol, incumbent_s=fastest.median_s if fastest else None)
        measurement = self.worker.measure(job, protocol, self.settings.launch_deadline_s)
        self.binaries[config] = binary
        measured = time.monotonic()
        trial = replace(trial, verify_s=round(verified - started, 4), measure_s=round(measured - verified, 4))
        return self._measured(trial, measurement, verdict)

    def _measured(self, trial: Trial, m: Measurement, verdict: Verdict) -> Trial:
        speed = rates(self.kernel.work(self.problem), m.median_s, self.ceilings)
        return replace(
            trial,
            **{name: value for name, value in asdict(m).items() if name not in ("max_error", "rms_error")},
            **asdict(speed),
            max_error=max(verdict.max_error, m.max_error),
            rms_error=max(verdict.rms_error, m.rms_error),
            verified_on=(*verdict.verified_on, problem_name(self.problem)),
        )

    def _job(self, config: Config, binary: Binary) -> Job:
        oracle_config, oracle = self.oracle or (None, None)
        return Job(reference_of(self.kernel), asdict(self.problem), config, binary, oracle, oracle_config)

    # ------------------------------------------------------------------ the end
    def _finals(self) -> tuple[Finalist, ...]:
        """The fastest of the search and the default, measured together."""
        measured = sorted((t for t in self.trials if t.median_s), key=lambda t: t.median_s or 0.0)
        chosen = measured[: self.settings.n_finalists]
        chosen += [t for t in measured if t.config == self.default and t not in chosen]
        if not chosen:
            return ()
        self.progress.finalists(len(chosen))
        jobs = []
        for trial in chosen:
            if trial.config not in self.binaries:  # recorded before this process began
                _, pending = self._start(trial.config)
                assert pending is not None
                self.binaries[trial.config] = pending.result()
            jobs.append(self._job(trial.config, self.binaries[trial.config]))
        protocol = replace(self.settings.protocol, n_samples=self.settings.finalist_samples)
        deadline_s = self.settings.launch_deadline_s * len(jobs)
        measurements = self.worker.measure_together(jobs, protocol, deadline_s)
        return tuple(rank(list(zip(chosen, measurements, strict=True)), dict(self.default)))

    def _outcome(
        self, finalists: tuple[Finalist, ...], previous: dict[str, Any] | None
    ) -> tuple[Trial | None, Trial | None]:
        """(best, default) with the medians of the final round, where there was one."""
        if previous is not None:
            final = {Config(f["config"]): f for f in previous["finalists"]}
            best_config: Config | None = Config(previous["winner"]["config"])
        else:
            final = {f.trial.config: f.as_json() for f in finalists}
            fastest = self._fastest()
            best_config = finalists[0].trial.config if finalists else (fastest.config if fastest else None)
        trials = {t.config: t for t in self.trials if t.median_s}
        timed = ("median_s", "q1_s", "q3_s", "clock_hz")

        def of(config: Config | None) -> Trial | None:
            trial = trials.get(config) if config else None
            if trial is None or config not in final:
                return trial
            renewed = {name: final[config][name] for name in timed}
            speed = rates(self.kernel.work(self.problem), renewed["median_s"], self.ceilings)
            return replace(trial, **renewed, **(asdict(speed) if self.ceilings else {}))

        return of(best_config), of(self.default)

    def _write_verdict(self, sweep: Sweep) -> None:
        winner = sweep.finalists[0]
        self.folder.write_verdict(
            {
                "winner": winner.as_json(),
                "default": next((f.as_json() for f in sweep.finalists if f.trial.config == self.default), None),
                "speed_up": sweep.speed_up,
                "ties": [f.trial.number for f in sweep.finalists[1:] if f.relation in ("fastest", "same")],
                "preference_among_ties": PREFERENCE,
                "finalists": [f.as_json() for f in sweep.finalists],
                "counts": dict(sweep.counts),
                "n_configs": len(self.enumeration.configs),
            }
        )

    # ------------------------------------------------------------------ helpers
    def _open_folder(self) -> SweepFolder:
        device, problem = self.target.device, self.problem
        path = record.sweep_path(self.settings.results, device.name, self.kernel.name, problem_name(problem))
        settings = {**asdict(self.settings), "results": None}
        about = {
            "kernel": self.kernel.name,
            "definition": reference_of(self.kernel),
            "problem": asdict(problem),
            "baked": baked_fields(type(problem)),
            "runtime": runtime_fields(type(problem)),
            "device": asdict(device),
            "clock": self.target.module.clock,
            "compiler": self.compiler,
            "default": dict(self.default),
            "refused": self.enumeration.refused,
            "settings": settings,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            **record.provenance(),
        }
        return SweepFolder.create(path, about)

    def _stamp_of(self, config: Config) -> str:
        try:
            text = render(self.kernel, self.problem, config).source
        except TrialFailure as failure:
            text = failure.message
        return record.stamp(text, problem_name(self.problem), str(self.settings.protocol), *self.fixed_stamp)

    def _fastest(self) -> Trial | None:
        measured = [t for t in self.trials if t.median_s]
        return min(measured, key=lambda t: t.median_s or 0.0) if measured else None

    def _reproduce(self, config: Config) -> str:
        arguments = ["autotune", "verify", "--kernel", reference_of(self.kernel)]
        arguments += ["--problem", problem_name(self.problem), "--config", str(config)]
        return shlex.join([*arguments, "--device", self.target.identifier])


def _ceilings(session: Session) -> Ceilings | None:
    return session.ceilings()


def _station_digest(kind: str) -> str:
    """The code that verifies, measures and runs: when it changes, times taken before are not reused."""
    here = Path(__file__).parent
    files = [here / "verify.py", here / "measure.py", *sorted((here / "devices").glob("*.py"))]
    files += sorted(p for p in (here / "devices" / kind).rglob("*") if p.suffix in (".py", ".hpp", ".cpp", ".cu"))
    return sha256(b"".join(p.read_bytes() for p in files)).hexdigest()
