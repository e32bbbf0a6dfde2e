"""Chooses the configurations that an engine runs, and reports the origin of each."""

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from ...core.config import Config
from ...core.definition import AnyKernel
from ...core.errors import TrialFailure, UsageError
from ...core.problem import Problem
from ...recommend.duration import HOW, ExpectedTime
from ...rendering.render import render
from ...runtime.tune_once import Effort, effort_of
from ...source.registry import load_kernel
from ...sweep.request import of_types
from ...system.cache import cache_dir
from ...system.limits import check_type
from ..machine.backend import Backend, Launcher
from ..machine.host_backend import HostBackend
from .sources import ConfigSource, LookupAnswer, PackageSource, RecordSource

FIRST = "first"  # the value of ``tune`` for tuning at first use
AUTO, CHAIN, CHANNELISE = FILTER_BANKS = "auto", "chain", "channelise"
KernelKey = tuple[str, tuple[tuple[str, Any], ...]]  # a kernel's name and the requested fields
Rendered = tuple[AnyKernel, Any, Config, str]  # a kernel, its problem, the chosen config, and its source
T = TypeVar("T")


class Kernels:
    """Gives launchers of kernels by name. ``tell`` takes one line about each choice, when it is made.

    A configuration comes from ``package`` or ``results``, whichever has the better tier of the lookup, and from
    ``package`` if they are equal. A problem in neither gets a predicted configuration on a GPU of a recorded
    architecture, and otherwise the kernel's default.

    Args:
        tell: takes one line for each choice, and lines of progress of tuning.
        package: an emitted package: an importable module's name, or its folder.
        results: a folder of recorded sweeps.
        tune: an effort, such as ``quick``: problems without a good configuration are first tuned on the backend's
            device. The sweeps are recorded in ``results``, by default in the folder ``results`` of the user's cache.
            ``first``: problems that are not recorded there are tuned at their first use, by a few promising configs;
            AUTOTUNE_FIRST_USE has their number, and implies this.
        filter_bank: the way from samples to voltages: ``chain`` (pfb_fir, a Fourier transform, postproc),
            ``channelise`` (one kernel, where it can serve) or ``auto``, the one that should be faster; on host, NumPy.
        kernels_on_host: whether kernels run on host, too, which naming a filter bank also implies. Otherwise NumPy
            does their work there, which is faster: ``uses_numpy``.

    Raises:
        UsageError: for a package or results that are missing or damaged, or an unknown effort or filter bank.
    """

    def __init__(
        self,
        backend: Backend,
        tell: Callable[[str], None],
        package: str | Path | None = None,
        results: str | Path | None = None,
        tune: str | None = None,
        filter_bank: str = AUTO,
        kernels_on_host: bool = False,
    ) -> None:
        for name, value in (("package", package), ("results", results)):
            check_type(name, value, (str, Path, type(None)), "a path or a name, or None")
        if filter_bank not in FILTER_BANKS:
            raise UsageError(f"filter_bank={filter_bank!r} must be one of {', '.join(FILTER_BANKS)}")
        self._backend, self._tell, self.filter_bank = backend, tell, filter_bank
        is_asked = kernels_on_host or filter_bank != AUTO
        self.uses_numpy = isinstance(backend, HostBackend) and backend.device.kind == "host" and not is_asked
        self._lock, self._chosen, self._decided = RLock(), dict[KernelKey, Rendered](), dict[Hashable, Any]()
        first = effort_of(None) if tune in (None, FIRST) else None
        if tune == FIRST:
            first, tune = first or Effort(), None
        self._tune = tune
        if tune is not None:
            from ...sweep.settings import EFFORTS

            if tune not in EFFORTS:
                raise UsageError(f"unknown effort {tune!r}; choose one of {', '.join((FIRST, *EFFORTS))}")
            if results is None:
                results = cache_dir("results")
                tell(f"sweeps are recorded in {results}")
        self._results = None if results is None else Path(results)
        self._known: list[ConfigSource] = [] if package is None else [PackageSource(package)]
        if self._results is not None:
            self._known.append(RecordSource(self._results, tell, may_be_empty=tune is not None))
        self._first = None
        if first is not None and not self.uses_numpy:
            from .first_tuning import first_tuning  # it imports what compiles and measures

            self._first = first_tuning(backend.identifier, self._known, first, tell)

    def launcher(self, name: str, **fields: object) -> tuple[Launcher, Any]:
        """Returns a loaded launcher for the baked fields, and the problem with the largest sizes.

        A name with fields is tuned, chosen, reported and rendered once. Each caller gets its own launcher, since
        launchers cache facts about their arrays; the binary is compiled once and kept in the cache.

        Raises:
            UsageError: when no configuration is allowed for the fields, or a field or its value is wrong.
        """
        key = name, tuple(sorted(fields.items()))
        with self._lock:
            if (chosen := self._chosen.get(key)) is None:
                chosen = self._chosen[key] = self._choose(name, fields)
        return self._backend.launcher(*chosen), chosen[1]

    def expected_time(self, name: str, **fields: object) -> ExpectedTime | None:
        """Returns the time of a launch with the best known config, and its origin.

        It is None on host, and without records from this architecture.

        Raises:
            UsageError: as ``launcher`` does.
        """
        (kernel, problem, _), device = self._problem(name, fields), self._backend.device
        if device.kind == "host":
            return None
        with self._lock:
            times = [one.known(kernel, device).durations.expected(problem, device) for one in self._known]
        found = [time for time in times if time is not None]
        return min(found, key=lambda time: HOW.index(time.how), default=None)

    def decided(self, what: Hashable, decide: Callable[[], tuple[T, str]]) -> T:
        """Returns the decision about ``what``. ``decide`` runs once, and ``tell`` takes its line."""
        with self._lock:
            if what not in self._decided:
                self._decided[what], line = decide()
                self._tell(line)
            found: T = self._decided[what]
            return found

    def _problem(self, name: str, fields: Mapping[str, object]) -> tuple[AnyKernel, Any, Config]:
        """Returns a kernel, its problem, and the default config for it."""
        kernel = load_kernel(name)
        values = of_types(kernel, fields)
        try:
            # The definition derives missing sizes from given ones; those of the first tuned problem would be wrong.
            problem = kernel.problem_type(**values)
        except (TypeError, ValueError):
            problem = kernel.problem_with(values)  # raises UsageError
        return kernel, problem, kernel.default_config(problem, self._backend.device)

    def _choose(self, name: str, fields: Mapping[str, object]) -> Rendered:
        kernel, problem, default = self._problem(name, fields)
        found, reasons = self._answer(kernel, problem)
        if self._tune is not None and not (found and found.is_good):
            from .tuning import tune

            assert self._results is not None
            tune(kernel, problem, self._backend.identifier, self._tune, self._results, self._tell)
            for one in self._known:
                one.read_again()
            found, reasons = self._answer(kernel, problem)
        if self._first is not None and not (found and found.is_exact):
            here = self._first.choice(kernel, problem, self._backend.device)
            if isinstance(here, str):
                self._tell(f"{name}: without a first use: {here}")
            else:
                found = LookupAnswer(here, "this machine")
        config = default if found is None else found.choice.config
        self._tell(_line(name, config, default, found, reasons))
        try:
            return kernel, problem, config, render(kernel, problem, config, numbered=False).source
        except TrialFailure as failure:
            raise UsageError(f"{name} cannot be rendered: {failure.message}") from failure

    def _answer(self, kernel: AnyKernel, problem: Problem) -> tuple[LookupAnswer | None, list[str]]:
        """Returns the best answer of all sources, and the reasons of those that have none."""
        device = self._backend.device
        choices = [(one.known(kernel, device).choice(problem, device), one.name) for one in self._known]
        reasons = [f"{name}: {choice}" for choice, name in choices if isinstance(choice, str)]
        answers = [LookupAnswer(choice, name) for choice, name in choices if not isinstance(choice, str)]
        return min(answers, key=lambda answer: answer.rank, default=None), reasons


def _line(name: str, config: Config, default: Config, found: LookupAnswer | None, reasons: list[str]) -> str:
    """Returns the line about a choice. It shows only differences from the default config, since the rest is long."""
    changed = ",".join(f"{parameter}={value}" for parameter, value in config.items() if default.get(parameter) != value)
    short = f"the default config but for {changed}" if changed else "the default config"
    if found is None:
        why = f" ({'; '.join(reasons)})" if reasons else ""
        return f"{name}: {short}{why}; expected slowdown: unknown"
    choice = found.choice
    return f"{name}: {short}, from {found.where} ({choice.tier}: {choice.why}); expected slowdown: {choice.loss}"
