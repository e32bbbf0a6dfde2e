"""Says what proves the winner of a sweep, in facts and a table: for its page, and for `autotune show`."""

from collections.abc import Iterator

from ..analysis.fields import assignments
from ..analysis.roofline import limit_of
from ..analysis.show import (
    checks_text,
    clock_name,
    efficiency_of,
    figures_text,
    finalist_time,
    missed,
    proof,
    resources_text,
    ties_text,
    verified_sizes,
)
from ..core.units import percent, seconds_text, speed_up_text
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from .blocks import Fact, Table


def winner_facts(sweep: SweepRecord) -> Iterator[Fact]:
    """Yields what was found and what proves it; then the same of the default, as far as it is known."""
    proven = proof(sweep, sweep.winner)
    if proven is None:
        yield Fact("winner", ("none: no config passed verification and was timed",))
        return
    winner = proven.measured
    yield Fact("winner", (assignments(winner.config),), is_code=True)
    launches = f", {winner.n_samples} launches" if winner.n_samples else ""
    cache = {True: ", cold L2", False: ", warm L2", None: ""}[winner.cold]
    yield Fact("median", (f"{finalist_time(winner)}{launches}{cache}, {clock_name(sweep)}",))
    if figure := winner.sustained:
        short, long = seconds_text(figure.short_s), seconds_text(figure.sustained_s)
        yield Fact("sustained", (f"{long}, {short} in a short run ({figure.n} launches back to back)",))
    if text := figures_text(winner):
        yield Fact("figures", (text,))
    if proven.efficiency is not None:
        limit = limit_of(sweep)
        limit_text = f"; {limit.reason} at least {seconds_text(limit.least_s)}" if limit else ""
        yield Fact("efficiency", (f"{percent(proven.efficiency)} of the measured roofline{limit_text}",))
    if text := resources_text(winner):
        yield Fact("resources", (f"{text}; variant {winner.key or '-'}",))
    if proven.verified_on:
        error = "" if winner.max_error is None else f"; largest error {winner.max_error:.2g} of rms(reference)"
        sizes = verified_sizes(proven.verified_on, sweep.problem)
        yield Fact("verified", (f"against the reference at {sizes}{error}",))
    if text := checks_text(winner):
        yield Fact("checks", (text,))
    if winner.checked_launches:
        yield Fact("checked", (f"{winner.checked_launches} further launches, all correct",))
    if proven.reproduce:
        yield Fact("reproduce", (proven.reproduce,), is_code=True)
    yield Fact("slowdown", (f"expected: {missed(sweep)}",))
    yield from _default(sweep, winner)


def _default(sweep: SweepRecord, winner: Finalist) -> Iterator[Fact]:
    default = sweep.default
    if default is None or default.config == winner.config:
        yield Fact("default", ("not measured" if default is None else "same config as the winner",))
        return
    yield Fact("default", (assignments(default.config),), is_code=True)
    yield Fact("its median", (finalist_time(default),))
    if sweep.speed_up is not None:
        yield Fact("speed-up", (speed_up_text(sweep.speed_up, sweep.speed_up_interval),))


def finalist_table(sweep: SweepRecord) -> Table | None:
    """Returns a line for each config of the final round; None without one."""
    if not sweep.finalists:
        return None
    shares = [efficiency_of(sweep, finalist) for finalist in sweep.finalists]
    roles = {"winner": sweep.finalists[0].config, "default": sweep.about.default}
    columns = {
        "final round": [each.relation or "-" for each in sweep.finalists],
        "": [" and ".join(role for role in roles if each.config == roles[role]) for each in sweep.finalists],
        "median": [seconds_text(each.median_s) for each in sweep.finalists],
        "95 % interval": [" .. ".join(map(seconds_text, each.interval_s or ())) or "-" for each in sweep.finalists],
        "of roofline": list(map(percent, shares)) if any(shares) else None,
        "registers": ["-" if each.registers is None else each.registers for each in sweep.finalists],
        "shared": ["-" if each.shared_bytes is None else each.shared_bytes for each in sweep.finalists],
        "error / rms": ["-" if each.max_error is None else f"{each.max_error:.2g}" for each in sweep.finalists],
        "config": [assignments(each.config) for each in sweep.finalists],
    }
    shown = {name: cells for name, cells in columns.items() if cells is not None}
    rows = list(zip(*shown.values(), strict=True))
    return Table("Its configs", ties_text(sweep.outcome), tuple(shown), rows, code=("config",))
