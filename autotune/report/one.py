"""One sweep in full: the winner and its proof, the search, the parameters, the final round, failures, the time."""

from collections.abc import Iterator

from ..analysis.fields import assignments
from ..analysis.importance import Importance, importances
from ..analysis.interactions import interactions
from ..analysis.show import (
    clock_name,
    failures,
    figures_text,
    finalist_time,
    proof,
    resources_text,
    speed_up_interval,
    spent,
    verified_sizes,
)
from ..core.units import percent, seconds_text
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from . import fronts, parameters, pictures, roofs
from .blocks import Fact, Facts, Heading, PageBlock, Table

N_INTERACTIONS = 6  # pairs of parameters that are shown


def sweep_blocks(sweep: SweepRecord) -> list[PageBlock]:
    """Returns what the page of a sweep says and shows, from top to bottom."""
    found = importances(sweep.trials)
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
        parameters.importance(found),
        _losses(found),
        parameters.by_value(sweep, found),
        parameters.interaction_gallery(interactions(sweep.trials, N_INTERACTIONS)),
        Heading("Failures, and where the time went"),
        _failures(sweep),
        _refused(sweep),
        pictures.spending(spent(sweep)),
    ]
    return [block for block in possible if block is not None]


def _about(sweep: SweepRecord) -> Iterator[Fact]:
    about, counts = sweep.about, sweep.counts
    n_configs = (
        f"; the space has {sweep.outcome.n_configs} configs" if sweep.outcome and sweep.outcome.n_configs else ""
    )
    told = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
    yield Fact("trials", (f"{told or 'none'}{n_configs}",))
    if sweep.outcome is None:
        yield Fact("unfinished", ("There was no final round yet: times are from the search.",))
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
    launches = f", median of {len(winner.samples_s)} launches" if winner.samples_s else ""
    cache = {True: ", cold L2", False: ", warm L2", None: ""}[winner.cold]
    yield Fact("time", (f"{finalist_time(winner)}{launches}{cache}, {clock_name(sweep)}",))
    if text := figures_text(winner):
        yield Fact("figures", (text,))
    if proven.efficiency is not None:
        yield Fact("efficiency", (f"{percent(proven.efficiency)} of the measured roofline",))
    yield from _correct(sweep, winner)
    if proven.reproduce:
        yield Fact("reproduce", (proven.reproduce,), is_code=True)
    yield from _default(sweep, winner)


def _correct(sweep: SweepRecord, winner: Finalist) -> Iterator[Fact]:
    if winner.verified_on:
        error = "" if winner.max_error is None else f"; largest error {winner.max_error:.2g} of rms(reference)"
        sizes = verified_sizes(winner.verified_on, sweep.problem)
        yield Fact("verified", (f"against the reference at {sizes}{error}",))
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
        interval = speed_up_interval(sweep)
        sure = f" ({interval[0]:.3f} to {interval[1]:.3f} from the 95 % intervals)" if interval else ""
        yield Fact("speed-up", (f"{sweep.speed_up:.3f} x the default{sure}",))


def _finalists(sweep: SweepRecord) -> Table | None:
    if sweep.outcome is None or not sweep.finalists:
        return None
    rule = sweep.outcome.preference_among_ties
    tie = f" Among equals the rule was: {rule}." if rule and sweep.outcome.ties else ""
    rows = [
        (
            finalist.relation or "-",
            seconds_text(finalist.median_s),
            " .. ".join(map(seconds_text, finalist.interval_s or ())) or "-",
            *("-" if size is None else size for size in (finalist.registers, finalist.shared_bytes)),
            "-" if finalist.max_error is None else f"{finalist.max_error:.2g}",
            assignments(finalist.config),
        )
        for finalist in sweep.finalists
    ]
    columns = ("relation", "median", "95 % interval", "registers", "shared bytes", "error / rms", "config")
    return Table("Its configs", f"The winner comes first.{tie}", columns, rows, code=("config",))


def _losses(found: tuple[Importance, ...]) -> Table | None:
    """Returns what each value of each parameter costs at its best."""
    rows = []
    for each in found:
        best, *others = each.values
        costs = ", ".join(f"{effect.value} +{100 * effect.loss:.1f} %" for effect in others)
        rows.append((each.name, best.value, costs or "-", each.n_trials))
    if not rows:
        return None
    return Table(
        "What the other values of a parameter cost",
        "The least time with another value over the least of all configs that have the parameter, less one.",
        ("parameter", "best value", "others at their best", "configs that have it"),
        rows,
    )


def _failures(sweep: SweepRecord) -> Table | None:
    rows = [
        (each.status.replace("_", " "), each.n, each.number, each.message, each.reproduce)
        for each in failures(sweep.trials)
    ]
    if not rows:
        return None
    return Table(
        "Configs that failed",
        "By status, with the message of the first trial that ended so and the command that tries its config again.",
        ("status", "trials", "first trial", "its message", "reproduce"),
        rows,
        code=("its message", "reproduce"),
    )


def _refused(sweep: SweepRecord) -> Table | None:
    rows = [(n, why) for why, n in sorted(sweep.about.refused.items(), key=lambda item: -item[1])]
    if not rows:
        return None
    return Table(
        "Configs that the space refuses",
        "They are never tried; each counts where the first constraint refuses it.",
        ("configs", "constraint that they violate"),
        rows,
    )
