"""The page of one sweep: the winner and its proof, the search, the parameters, the final round, failures, the time."""

from collections.abc import Iterator, Mapping

from ..analysis.fields import assignments
from ..analysis.importance import Importance, importances, marked_name, winners_first
from ..analysis.interactions import interactions
from ..analysis.roofline import limit_of
from ..analysis.show import (
    Proof,
    checks_text,
    clock_name,
    efficiency_of,
    figures_text,
    finalist_time,
    missed,
    proof,
    resources_text,
    spent,
    ties_text,
    verified_sizes,
)
from ..core.config import Value
from ..core.units import percent, seconds_text, speed_up_text
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from . import failing, fronts, parameters, pictures, roofs
from .blocks import Fact, Facts, Heading, PageBlock, Table

N_INTERACTIONS = 6  # pairs of parameters with a picture


def sweep_blocks(sweep: SweepRecord) -> list[PageBlock]:
    """Returns the blocks of a sweep's page, from top to bottom."""
    winner = sweep.winner.config if sweep.winner else {}
    found = winners_first(importances(sweep.trials), winner)
    possible: list[PageBlock | None] = [
        Facts(tuple(_about(sweep))),
        Heading("The winner, and what proves it"),
        Facts(tuple(_winner(sweep))),
        pictures.finalists(sweep),
        _finalists(sweep),
        Heading("The search"),
        pictures.search(sweep),
        roofs.roofline_picture(sweep),
        fronts.front_picture(sweep),
        Heading("The parameters"),
        parameters.importance(found, winner),
        _losses(found, winner),
        parameters.by_value(sweep, found),
        parameters.interaction_gallery(interactions(sweep.trials, N_INTERACTIONS)),
        Heading("Failures, and where the time went"),
        *failing.failure_blocks(sweep),
        pictures.spending(spent(sweep)),
    ]
    return [block for block in possible if block is not None]


def _about(sweep: SweepRecord) -> Iterator[Fact]:
    about, counts = sweep.about, sweep.counts
    n_configs = (
        f"; the space has {sweep.outcome.n_configs} configs" if sweep.outcome and sweep.outcome.n_configs else ""
    )
    outcomes = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
    yield Fact("trials", (f"{outcomes or 'none'}{n_configs}",))
    yield Fact("expected slowdown", (missed(sweep),))
    if sweep.outcome is None:
        yield Fact("unfinished", ("There is no final round yet: times are from the search.",))
    origin = {"compiler": about.compiler, "machine": about.machine, "commit": about.commit, "began": about.started}
    yield from (Fact(name, (text,)) for name, text in origin.items() if text)
    yield Fact("record", (str(sweep.path),), is_code=True)


def _winner(sweep: SweepRecord) -> Iterator[Fact]:
    proven = proof(sweep, sweep.winner)
    if proven is None:
        yield Fact("winner", ("None: no config passed verification and was timed.",))
        return
    winner = proven.measured
    yield Fact("winner", (assignments(winner.config),), is_code=True)
    launches = f", median of {winner.n_samples} launches" if winner.n_samples else ""
    cache = {True: ", cold L2", False: ", warm L2", None: ""}[winner.cold]
    yield Fact("time", (f"{finalist_time(winner)}{launches}{cache}, {clock_name(sweep)}",))
    if text := figures_text(winner):
        yield Fact("figures", (text,))
    if proven.efficiency is not None:
        limit = limit_of(sweep)
        limit_text = f"; {limit.reason} at least {seconds_text(limit.least_s)}" if limit else ""
        yield Fact("efficiency", (f"{percent(proven.efficiency)} of the measured roofline{limit_text}",))
    yield from _correct(sweep, proven)
    if proven.reproduce:
        yield Fact("reproduce", (proven.reproduce,), is_code=True)
    yield from _default(sweep, winner)


def _correct(sweep: SweepRecord, proven: Proof) -> Iterator[Fact]:
    winner = proven.measured
    if proven.verified_on:
        error = "" if winner.max_error is None else f"; largest error {winner.max_error:.2g} of rms(reference)"
        sizes = verified_sizes(proven.verified_on, sweep.problem)
        yield Fact("verified", (f"against the reference at {sizes}{error}",))
    if text := checks_text(winner):
        yield Fact("checks", (text,))
    if winner.checked_launches:
        yield Fact("checked", (f"{winner.checked_launches} further launches, all correct",))
    if text := resources_text(winner):
        yield Fact("resources", (f"{text}; variant {winner.key or '-'}",))


def _default(sweep: SweepRecord, winner: Finalist) -> Iterator[Fact]:
    default = sweep.default
    if default is None:
        yield Fact("default", ("not measured",))
        return
    if default.config == winner.config:
        yield Fact("default", ("the same config as the winner",))
        return
    yield Fact("default", (assignments(default.config),), is_code=True)
    yield Fact("its time", (finalist_time(default),))
    if sweep.speed_up is not None:
        yield Fact("speed-up", (speed_up_text(sweep.speed_up, sweep.speed_up_interval),))


def _finalists(sweep: SweepRecord) -> Table | None:
    if sweep.outcome is None or not sweep.finalists:
        return None
    shares = [efficiency_of(sweep, finalist) for finalist in sweep.finalists]
    columns = {
        "relation": [finalist.relation or "-" for finalist in sweep.finalists],
        "median": [seconds_text(finalist.median_s) for finalist in sweep.finalists],
        "95 % interval": [" .. ".join(map(seconds_text, each.interval_s or ())) or "-" for each in sweep.finalists],
        "of roofline": list(map(percent, shares)) if any(shares) else None,
        "registers": [_number(finalist.registers) for finalist in sweep.finalists],
        "shared bytes": [_number(finalist.shared_bytes) for finalist in sweep.finalists],
        "error / rms": ["-" if each.max_error is None else f"{each.max_error:.2g}" for each in sweep.finalists],
        "config": [assignments(finalist.config) for finalist in sweep.finalists],
    }
    shown = {name: cells for name, cells in columns.items() if cells is not None}
    rows = list(zip(*shown.values(), strict=True))
    ties = f" {text}." if (text := ties_text(sweep.outcome)) else ""
    return Table("Its configs", f"The winner comes first.{ties}", tuple(shown), rows, code=("config",))


def _number(value: int | None) -> object:
    return "-" if value is None else value


def _losses(found: tuple[Importance, ...], winner: Mapping[str, Value]) -> Table | None:
    """Returns the slowdown of the best config with each other value of each parameter; None without parameters."""
    rows = []
    for each in found:
        best, *others = each.values
        costs = ", ".join(f"{effect.value} +{100 * effect.loss:.1f} %" for effect in others)
        rows.append((marked_name(each.name, winner), best.value, costs or "-", each.n_trials))
    if not rows:
        return None
    starred = any(name.endswith("*") for name, *_ in rows)
    return Table(
        "Loss with the other values of a parameter",
        "How much slower the best config with each other value is than the best of all configs that have the parameter."
        + (f" {parameters.STARRED}" if starred else ""),
        ("parameter", "best value", "slowdown of the best config with each other value", "configs that have it"),
        rows,
    )
