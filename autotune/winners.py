"""From recorded sweeps to wisdom: the configuration of each (kernel, problem, device), with its evidence.

That is the sweep's winner, or where a portfolio is asked for, the portfolio's member that serves the problem best. It
is rendered anew: what no longer renders as it was measured is stale and is left out, with the reason.
"""

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .catalogue import load_kernel
from .definition import Kernel
from .errors import TrialFailure, UsageError
from .knowledge.history import Swept, read_sweeps
from .knowledge.losses import Emitted, tier_losses
from .knowledge.portfolio import portfolios, tables
from .render import Variant, render
from .space import Config
from .wisdom import Entry, Evidence, Fallback, Wisdom, fields_text

log = logging.getLogger("autotune")


Orders = dict[tuple[str, str], tuple[str, ...]]  # (kernel, baked fields) -> names of the inputs


def gather(
    paths: Iterable[Path], n_portfolio: int | None = None
) -> tuple[Wisdom, dict[str, str], dict[str, Kernel[Any]]]:
    """Wisdom, the sources it names by key, and the definitions by kernel name, of all sweeps at or under ``paths``.

    ``n_portfolio``: use at most so many configurations for each (kernel, device); None: every sweep's winner.

    Raises:
        UsageError: when nothing can be emitted; says why for each sweep.
    """
    sweeps, left_out = read_sweeps(paths)
    kernels: dict[str, Kernel[Any]] = {}
    winners: dict[Path, Variant] = {}
    for sweep in sweeps:
        try:
            winners[sweep.path] = _winner(sweep, kernels)
        except (UsageError, TrialFailure) as problem:
            left_out[sweep.path] = str(problem)
    fresh = [sweep for sweep in sweeps if sweep.path in winners]
    chosen = {path: (variant.config, 0.0) for path, variant in winners.items()}
    if n_portfolio is not None:
        chosen = _members(fresh, n_portfolio)
    sources: dict[str, str] = {}
    emitted: list[Emitted] = []
    fallbacks: dict[tuple[str, str, str], Fallback] = {}
    orders: Orders = {}
    for sweep in fresh:
        try:
            fallback = _fallback(sweep, kernels[sweep.about["kernel"]], orders, sources)
            fallbacks[fallback.kernel, fields_text(fallback.baked), fallback.source_key] = fallback
            if sweep.path not in chosen:
                raise UsageError(f"none of the portfolio's {n_portfolio} configurations was measured there")
            entry = _entry(sweep, winners[sweep.path], *chosen[sweep.path], kernels[fallback.kernel], sources)
        except (UsageError, TrialFailure) as problem:
            left_out[sweep.path] = str(problem)
            continue
        emitted.append(Emitted(sweep, entry, fallback))
    if not emitted:
        raise UsageError("nothing can be emitted:\n  " + "\n  ".join(_reasons(left_out)))
    for reason in _reasons(left_out):
        log.warning("left out %s", reason)
    entries, losses = tuple(one.entry for one in emitted), tier_losses(emitted, kernels)
    wisdom = Wisdom(entries, tuple(fallbacks.values()), losses, f"autotune {__version__}")
    return wisdom, sources, {name: kernels[name] for name in {f.kernel for f in wisdom.fallbacks}}


def _reasons(left_out: Mapping[Path, str]) -> list[str]:
    """One line for each reason, with the first sweep it holds for."""
    by_reason: dict[str, list[Path]] = {}
    for path, why in left_out.items():
        by_reason.setdefault(why, []).append(path)
    return [f"{first}{f' and {len(more)} more' if more else ''}: {why}" for why, (first, *more) in by_reason.items()]


def _winner(sweep: Swept, kernels: dict[str, Kernel[Any]]) -> Variant:
    """Raises UsageError when the winner is stale, TrialFailure when it no longer renders."""
    name = sweep.about["kernel"]
    kernel = load_kernel(sweep.about["definition"])
    if type(kernels.setdefault(name, kernel)) is not type(kernel):
        raise UsageError(f"two definitions are called {name}: {kernels[name].source_path} and {kernel.source_path}")
    return _rendered(sweep, kernel, Config(sweep.winner["config"]), sweep.winner.get("key"))


def _rendered(sweep: Swept, kernel: Kernel[Any], config: Config, key: str | None) -> Variant:
    """The variant of ``config``; raises UsageError unless it has the ``key`` it was measured under."""
    variant = render(kernel, kernel.problem(sweep.about["problem"]), config)
    if key not in (None, variant.key):
        raise UsageError(
            f"the template of {kernel.name} has changed since: {key}, which was measured, now renders as "
            f"{variant.key}. Sweep again: autotune sweep --kernel {kernel.name} --problem {sweep.problem}"
        )
    return variant


def _members(sweeps: Iterable[Swept], n_portfolio: int) -> dict[Path, tuple[Config, float]]:
    """For each sweep that one can serve, the member of its (kernel, device)'s portfolio that does, and its regret."""
    by_identity = {sweep.identity: sweep for sweep in sweeps}
    found = {}
    for table in tables(by_identity.values()):
        portfolio = portfolios(table, n_portfolio, cross_validate=False)[-1]
        for problem, member, regret in zip(table.problems, portfolio.chosen, portfolio.regret, strict=True):
            if member is not None:
                sweep = by_identity[table.kernel, table.device, problem]
                found[sweep.path] = portfolio.configs[member], round(regret, 4)
    return found


def _entry(
    sweep: Swept, winner: Variant, config: Config, regret: float, kernel: Kernel[Any], sources: dict[str, str]
) -> Entry:
    """Raises UsageError when ``config`` is stale, TrialFailure when it no longer renders. Adds its source."""
    if config == winner.config:
        variant, evidence = winner, _evidence(sweep, sweep.winner, sweep.default_median_s, sweep.ties)
    else:
        row, default_median_s = sweep.row(config)
        variant, evidence = _rendered(sweep, kernel, config, row.get("key")), _evidence(sweep, row, default_median_s)
    sources[variant.key] = variant.source
    return Entry(
        kernel=kernel.name,
        device=sweep.device,
        baked=sweep.fields("baked"),
        runtime=sweep.fields("runtime"),
        config=variant.config,
        source_key=variant.key,
        evidence=evidence,
        regret=regret,
    )


def _fallback(sweep: Swept, kernel: Kernel[Any], orders: Orders, sources: dict[str, str]) -> Fallback:
    """The sweep's default configuration, whose source is added. Raises TrialFailure when it no longer renders."""
    problem, baked = kernel.problem(sweep.about["problem"]), sweep.fields("baked")
    default = render(kernel, problem, Config(sweep.about["default"]))
    place = kernel.name, fields_text(baked)
    if place not in orders:
        orders[place] = call_order(kernel, problem, default.config)
    sources[default.key] = default.source
    return Fallback(kernel.name, baked, default.config, default.key, orders[place])


def call_order(kernel: Kernel[Any], problem: Any, config: Config) -> tuple[str, ...]:
    """Names of the inputs in the order in which the definition makes them; asked at the smallest problem it offers.

    Raises:
        UsageError: when the definition makes no input for an array that the kernel reads.
    """
    small = min(
        (problem, *kernel.ragged(problem, config)), key=lambda p: sum(a.n_bytes for a in kernel.arrays(p).values())
    )
    order = tuple(kernel.inputs(small, np.random.default_rng(0)))
    missing = [name for name, spec in kernel.arrays(small).items() if spec.read and name not in order]
    if missing:
        raise UsageError(f"{kernel.source_path}: inputs() makes no {', '.join(missing)}, which arrays() says are read")
    return order


def _evidence(sweep: Swept, row: Mapping[str, Any], default_median_s: float | None, ties: int = 0) -> Evidence:
    known = {f.name for f in dataclasses.fields(Evidence)}
    found = {name: value for name, value in row.items() if name in known and value is not None}
    about = {
        "default_median_s": default_median_s,
        "ties": ties,
        "compiler": sweep.about.get("compiler", ""),
        "commit": sweep.about.get("commit", ""),
        "date": sweep.about.get("started", ""),
        "verified_on": tuple(row.get("verified_on") or ()),
    }
    return Evidence(**{**found, **about})
