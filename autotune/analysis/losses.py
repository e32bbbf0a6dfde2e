"""Measures the loss of each tier of the lookup on the records: leaves a problem out, looks it up, and compares.

The lookup runs as in an emitted package. The sweep that was left out may have measured the chosen config: its median
there divided by the least median there, minus 1, is the loss. Times of different devices are never compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

from ..core.config import Config
from ..core.definition import AnyKernel
from ..core.errors import TrialFailure, UsageError
from ..records.as_recorded import config_of, of_definition, problem_of
from ..records.record import SweepRecord
from ..runtime.lookup import ARCHITECTURE, DEFAULT, NEAREST, PLAIN, choose
from ..runtime.wisdom import Entry, Evidence, Fallback, Loss, Wisdom, fields_text
from ..source.registry import recorded_kernel


@dataclass(frozen=True)
class EmittedSweep:
    """A sweep with its emitted configuration."""

    sweep: SweepRecord
    entry: Entry
    fallback: Fallback


def recorded_losses(sweeps: Iterable[SweepRecord], named: Mapping[str, AnyKernel]) -> tuple[Loss, ...]:
    """Returns the loss of each tier for the recorded winners, whether or not they still hold.

    ``named``: kernel -> definition, for definitions that are not installed. Sweeps without a definition, without a
    winner, or with values that their definition no longer has are left out.
    """
    emitted, kernels = [], {}
    for sweep in sweeps:
        with suppress(UsageError, TrialFailure):
            kernel = recorded_kernel(sweep.about.content, named)
            emitted += of_definition(kernel, _as_recorded, sweep.of_space(kernel.space), kernel)
            kernels[kernel.name] = kernel
    return tier_losses(emitted, kernels)


def _as_recorded(sweep: SweepRecord, kernel: AnyKernel) -> list[EmittedSweep]:
    """Returns the sweep with its winner, without a source, since nothing will run."""
    if sweep.winner is None or not sweep.median_s:
        return []
    problem_of(kernel, sweep.about)
    winner, default = (config_of(kernel, config) for config in (sweep.winner.config, sweep.about.default))
    baked, sizes = sweep.about.baked_values, sweep.about.runtime_values
    entry = Entry(kernel.name, sweep.device, baked, sizes, winner, "", Evidence(sweep.winner.median_s))
    return [EmittedSweep(sweep, entry, Fallback(kernel.name, baked, default, "", ()))]


def tier_losses(emitted: Sequence[EmittedSweep], kernels: Mapping[str, AnyKernel]) -> tuple[Loss, ...]:
    """Returns the loss of each tier and kernel on every device, every architecture and every kind of device.

    nearest       uses the other entries of the problem's device with its baked fields
    architecture  uses the entries of other devices of its architecture
    default       uses the kernel's default for the problem
    plain default uses the default configuration of the problem's own sweep
    """
    values_of: defaultdict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    for together in _by_baked_fields(emitted):
        for one in together:
            device, kernel = one.sweep.device, kernels[one.entry.kernel]
            others = [e for e in together if e is not one]
            strangers = [e for e in others if e.sweep.device.name != device.name]
            chosen = {
                NEAREST: _package_choice(kernel, one, others, NEAREST),
                ARCHITECTURE: _package_choice(kernel, one, strangers, ARCHITECTURE),
                DEFAULT: _default(kernel, one),
                PLAIN: one.sweep.about.default,
            }
            for tier, config in chosen.items():
                if config is not None:
                    for where in {device.name, device.arch, device.kind}:
                        values_of[kernel.name, where, tier].append(one.sweep.loss(config))
    losses = (loss_summary(*about, values) for about, values in sorted(values_of.items()))
    return tuple(loss for loss in losses if loss is not None)


def _package_choice(kernel: AnyKernel, one: EmittedSweep, rest: Iterable[EmittedSweep], tier: str) -> Config | None:
    """Returns the config that a package of ``rest`` chooses for ``one``'s problem, or None for another tier."""
    wisdom = Wisdom(tuple(e.entry for e in rest), (one.fallback,))
    try:
        choice = choose(wisdom, kernel, one.entry.baked, one.entry.runtime, one.sweep.device)
    except Exception:  # neither the rest nor the default can run here; a definition may raise any exception
        return None
    return choice.config if choice.tier == tier else None


def _default(kernel: AnyKernel, one: EmittedSweep) -> Config | None:
    try:
        return kernel.default_config(problem_of(kernel, one.sweep.about), one.sweep.device)
    except Exception:  # the problem is no longer allowed; a definition may raise any exception
        return None


def _by_baked_fields(emitted: Iterable[EmittedSweep]) -> Iterable[list[EmittedSweep]]:
    groups: defaultdict[tuple[str, str], list[EmittedSweep]] = defaultdict(list)
    for one in emitted:
        groups[one.entry.kernel, fields_text(one.entry.baked)].append(one)
    return groups.values()


def loss_summary(kernel: str, where: str, tier: str, values: list[float | None]) -> Loss | None:
    """Returns the median and the worst of the known losses; None if no choice was measured."""
    losses = [value for value in values if value is not None]
    if not losses:
        return None
    typical, worst = round(median(losses), 4), round(max(losses), 4)
    return Loss(kernel, where, tier, n=len(losses), n_untold=len(values) - len(losses), median=typical, worst=worst)
