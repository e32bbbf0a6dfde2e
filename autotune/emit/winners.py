"""Collects wisdom from recorded sweeps: the configuration for each (kernel, problem, device), with its evidence.

This is the sweep's winner, or the portfolio's best member for the problem if a portfolio is requested. It is rendered
again: a config that no longer renders as it was measured is stale and is left out, with the reason. Records are
untrusted data, so a definition must be installed, or named by the user.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from .. import records
from ..analysis.portfolio import portfolios, tables
from ..core.config import Config
from ..core.definition import AnyKernel
from ..core.digest import digest
from ..core.errors import TrialFailure, UsageError
from ..core.kept import keep, take
from ..core.schema import Unsound, as_text, as_word, mapping_of, parse, sequence_of
from ..core.units import counted
from ..records.as_recorded import config_of, of_definition, problem_of
from ..records.checks_made import lacking
from ..records.edge_sizes import verified_on
from ..records.outcome import Finalist, speed_up_interval
from ..records.record import SweepRecord, read_sweeps
from ..rendering.render import Variant, render
from ..runtime.lookup import refusal
from ..runtime.named_devices import ANY_GPU
from ..runtime.signature import call_order
from ..runtime.wisdom import Entry, Evidence, Fallback, Wisdom, fields_text
from ..source.registry import kernel_reference, named_kernels, recorded_kernel
from ..system.cache import cache_dir
from ..system.installation import VERSION
from ..validity.as_measured import MACHINE_CODE, MeasuredVariant, as_measured
from ..validity.untried import untried, value_names
from .vendor import room_sources

log = logging.getLogger("autotune")
MOST_REASONS = 4  # reasons for excluded sweeps that are printed in full


class KeptNames:
    """Names that follow from a kernel's definition and facts, in the user's cache: finding those of all records takes
    seconds. The file has a digest of the definition and of the code that finds them.
    """

    def __init__(self, kernel: AnyKernel) -> None:
        code = (*kernel.source_paths, *sorted(Path(records.__file__).parent.glob("*.py")))
        text = digest(VERSION, kernel.arguments, [path.read_bytes() for path in code], room_sources())
        self.kernel, self._path = kernel, cache_dir("names") / f"{kernel.name}-{text}.names"
        self._names = dict[str, tuple[str, ...]]()
        with suppress(Unsound):
            if (stored := take(self._path)) is not None:
                self._names = mapping_of(as_word, sequence_of(as_text))(parse(stored[0]))
        self._n_stored = len(self._names)

    def of(self, find: Callable[[], tuple[str, ...]], *facts: object) -> tuple[str, ...]:
        """Returns the names that follow from ``facts``; ``find`` finds those that the file lacks."""
        if (key := digest(*facts)) not in self._names:
            self._names[key] = find()
        return self._names[key]

    def write(self) -> None:
        """Writes new names; where it cannot, the next call finds them again."""
        with suppress(OSError):
            if len(self._names) > self._n_stored:
                keep(self._path, json.dumps(self._names).encode(), {})


class Valid(NamedTuple):
    """The sweeps whose winners still hold, each winner by its sweep's path, the definitions by kernel, and why other
    sweeps are left out.
    """

    sweeps: list[SweepRecord]
    winners: dict[Path, MeasuredVariant]
    definitions: dict[str, AnyKernel]
    left_out: dict[Path, str]


class Gathered(NamedTuple):
    """The wisdom of valid results, its sources by key, the definitions by kernel, and the sweeps."""

    wisdom: Wisdom
    sources: dict[str, str]
    definitions: dict[str, AnyKernel]
    sweeps: tuple[SweepRecord, ...]


def valid(paths: Iterable[Path], kernels: Iterable[str | Path] = ()) -> Valid:
    """Returns the valid sweeps at or under ``paths``.

    ``kernels``: names or paths of definitions that are not installed.
    """
    named = named_kernels(kernels)
    sweeps, left_out = read_sweeps(paths)
    found = Valid([], {}, {}, left_out)
    for as_recorded in sweeps:
        sweep = as_recorded
        try:
            kernel = recorded_kernel(sweep.about.content, named)
            sweep = as_recorded.of_space(kernel.space)
            assert sweep.winner is not None
            found.winners[sweep.path] = of_definition(kernel, _rendered, sweep, kernel, sweep.winner)
            found.definitions[kernel.name] = kernel
            found.sweeps.append(sweep)
        except (UsageError, TrialFailure) as problem:
            left_out[sweep.path] = str(problem)
    return found


def gather(found: Valid, n_portfolio: int | None = None) -> Gathered:
    """Returns the wisdom of valid sweeps.

    ``n_portfolio``: the largest number of configurations for each (kernel, device); None: every sweep's winner.

    Raises:
        UsageError: when nothing can be emitted; the message gives the reasons.
    """
    fresh, winners, definitions, left_out = found
    chosen = {path: (one.variant.config, 0.0) for path, one in winners.items()}
    if n_portfolio is not None:
        chosen = _members(fresh, n_portfolio)
    sources: dict[str, str] = {}
    emitted: list[tuple[SweepRecord, Entry]] = []
    fallbacks: dict[tuple[str, str, str], Fallback] = {}
    names = {name: KeptNames(kernel) for name, kernel in definitions.items()}
    for sweep in fresh:
        try:
            kernel, kept = definitions[sweep.kernel], names[sweep.kernel]
            winner = winners[sweep.path].variant
            fallback = of_definition(kernel, _fallback, sweep, kept, winner, sources)
            fallbacks[fallback.kernel, fields_text(fallback.baked), fallback.source_key] = fallback
            if sweep.path not in chosen:
                raise UsageError(f"none of the portfolio's {n_portfolio} configurations was measured there")
            entry = of_definition(kernel, _entry, sweep, winner, *chosen[sweep.path], kept, sources)
        except (UsageError, TrialFailure) as problem:
            left_out[sweep.path] = str(problem)
            continue
        emitted.append((sweep, entry))
    for kept in names.values():
        kept.write()
    if not emitted:
        reasons = _reasons(left_out)
        raise UsageError("nothing can be emitted:" + (" " if len(reasons) == 1 else "\n  ") + "\n  ".join(reasons))
    for reason in _reasons(left_out):
        log.warning("left out %s", reason)
    by_code = Counter(sweep.kernel for sweep in fresh if winners[sweep.path].by == MACHINE_CODE)
    changed = [f"{name}: {counted(n, 'text')} changed, and no machine code: they hold" for name, n in by_code.items()]
    for line in (*changed, *_newer(fresh, definitions)):
        log.warning("%s", line)
    used = {name: definitions[name] for name in sorted({f.kernel for f in fallbacks.values()})}
    paths_of = {
        name: path for name, kernel in used.items() if "/" in (path := kernel_reference(kernel)) and path.isprintable()
    }
    entries = tuple(entry for _, entry in emitted)
    wisdom = Wisdom(entries, tuple(fallbacks.values()), (), f"autotune {VERSION}", paths_of)
    return Gathered(wisdom, sources, used, tuple(sweep for sweep, _ in emitted))


def _reasons(left_out: Mapping[Path, str]) -> list[str]:
    """Returns one line for each of the first reasons, with the first sweep to which it applies."""
    by_reason: dict[str, list[Path]] = {}
    for path, why in left_out.items():
        by_reason.setdefault(why, []).append(path)
    lines = [f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in by_reason.items()]
    n_more = sum(map(len, list(by_reason.values())[MOST_REASONS:]))
    return [
        *lines[:MOST_REASONS],
        *([f"{n_more} more, each for a reason like these; name one to see it"] if n_more else []),
    ]


def _newer(sweeps: Iterable[SweepRecord], definitions: Mapping[str, AnyKernel]) -> list[str]:
    """Returns one line for each kernel whose space has values that some of its sweeps could not try."""
    found = defaultdict[str, list[list[str]]](list)
    for sweep in sweeps:
        if values := untried(definitions[sweep.kernel], sweep.about):
            found[sweep.kernel].append(value_names(values))
    return [
        f"{kernel}: {counted(len(each), 'sweep')} could not try {', '.join(dict.fromkeys(chain.from_iterable(each)))}, "
        "which are newer: a faster config may be among these (`autotune show` says it of each)"
        for kernel, each in found.items()
    ]


def _rendered(sweep: SweepRecord, kernel: AnyKernel, best: Finalist) -> MeasuredVariant:
    """Returns the variant of a config.

    Raises UsageError unless it equals the variant measured under its key, TrialFailure if it no longer renders.
    """
    return as_measured(sweep.folder, kernel, sweep.device, best.config, best.key)


def _members(sweeps: Iterable[SweepRecord], n_portfolio: int) -> dict[Path, tuple[Config, float]]:
    """Returns path of a sweep -> the member of its portfolio that serves it, and the regret."""
    members = {}
    for table in tables(sweeps):
        portfolio = portfolios(table, n_portfolio)[-1]
        for sweep, member, regret in zip(table.sweeps, portfolio.chosen, portfolio.regret, strict=True):
            if member is not None:
                members[sweep.path] = portfolio.configs[member], round(float(regret), 4)
    return members


def _entry(
    sweep: SweepRecord, winner: Variant, config: Config, regret: float, kept: KeptNames, sources: dict[str, str]
) -> Entry:
    """Returns the entry for ``config``, and adds its source to ``sources``.

    Raises UsageError if it is stale, TrialFailure if it no longer renders.
    """
    if config == winner.config and sweep.winner is not None:
        n_ties = len(sweep.outcome.ties) if sweep.outcome else 0
        default_s = sweep.default.median_s if sweep.default else None
        variant, evidence = winner, _evidence(sweep, kept, sweep.winner, default_s, n_ties)
    else:
        member, default_s = sweep.evidence(config)
        variant, evidence = _rendered(sweep, kept.kernel, member).variant, _evidence(sweep, kept, member, default_s)
    sources[variant.key] = variant.source
    return Entry(
        kernel=sweep.kernel,
        device=sweep.device,
        baked=sweep.about.baked_values,
        runtime=sweep.about.runtime_values,
        config=variant.config,
        source_key=variant.key,
        evidence=evidence,
        regret=regret,
    )


def _fallback(sweep: SweepRecord, kept: KeptNames, winner: Variant, sources: dict[str, str]) -> Fallback:
    """Returns the sweep's default configuration, or one for any GPU if this one needs certain GPUs; adds its source.

    Raises TrialFailure if it does not render.
    """
    kernel, baked = kept.kernel, sweep.about.baked_values
    problem = problem_of(kernel, sweep.about)
    config = config_of(kernel, sweep.about.default)
    if sweep.about.device.kind == ANY_GPU.kind and refusal(kernel, problem, config, ANY_GPU) is not None:
        with suppress(UsageError, TrialFailure):  # no default runs on any GPU
            config = kernel.default_config(problem, ANY_GPU)
    is_winner = winner.config == kernel.space.completed(config)
    default = winner if is_winner else render(kernel, problem, config, numbered=False)
    order = kept.of(lambda: call_order(kernel, problem, default.config), "order", baked)
    sources[default.key] = default.source
    return Fallback(kernel.name, baked, default.config, default.key, order)


def _evidence(
    sweep: SweepRecord, kept: KeptNames, best: Finalist, default_median_s: float | None, ties: int = 0
) -> Evidence:
    about, kernel = sweep.about, kept.kernel
    beside = [trial.config for trial in sweep.trials if trial.number == best.stand_in]
    facts = about.problem, about.baked, about.runtime, best, beside
    return Evidence(
        median_s=best.median_s,
        q1_s=best.q1_s,
        q3_s=best.q3_s,
        default_median_s=default_median_s,
        speed_up_interval=speed_up_interval(best, sweep.default),
        max_error=best.max_error,
        verified_on=kept.of(lambda: verified_on(about, best, sweep.trials, kernel), "sizes", *facts),
        without=lacking(best.checks, best.rule or 0),
        checked_launches=best.checked_launches,
        registers=best.registers,
        shared_bytes=best.shared_bytes,
        spill_bytes=best.spill_bytes,
        ties=ties,
        n_tried=sweep.n_tried,
        n_configs=None if untried(kernel, about) else sweep.n_configs,
        compiler=about.compiler,
        commit=about.commit,
        date=about.started,
    )
