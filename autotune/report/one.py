"""The page of one sweep: the winner and its proof, the search, the parameters, the final round, failures, the time."""

from collections.abc import Iterator, Mapping

from ..analysis.importance import Importance, importances, marked_name, winners_first
from ..analysis.interactions import interactions
from ..analysis.show import spent
from ..core.config import Value
from ..records.record import SweepRecord
from . import failing, fronts, parameters, pictures, roofs
from .blocks import Fact, Facts, Heading, PageBlock, Table
from .facts import finalist_table, winner_facts

N_INTERACTIONS = 6  # pairs of parameters with a picture


def sweep_blocks(sweep: SweepRecord) -> list[PageBlock]:
    """Returns the blocks of a sweep's page, from top to bottom."""
    winner = sweep.winner.config if sweep.winner else {}
    found = winners_first(importances(sweep.trials), winner)
    possible: list[PageBlock | None] = [
        Facts(tuple(_about(sweep))),
        Heading("The winner, and what proves it"),
        Facts(tuple(winner_facts(sweep))),
        pictures.finalists(sweep),
        finalist_table(sweep),
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
    if sweep.outcome is None:
        yield Fact("unfinished", ("There is no final round yet: times are from the search.",))
    origin = {"compiler": about.compiler, "machine": about.machine, "commit": about.commit, "began": about.started}
    yield from (Fact(name, (text,)) for name, text in origin.items() if text)
    yield Fact("record", (str(sweep.path),), is_code=True)


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
