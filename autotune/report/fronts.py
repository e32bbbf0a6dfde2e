"""The picture of two objectives: every config, and the Pareto front."""

from collections.abc import Sequence

from ..analysis.fields import assignments
from ..analysis.show import front_of, objective_text
from ..records.objectives import ENERGY, TIME, Objective, values_of
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from ..records.trial import Trial
from .blocks import (
    BLUE,
    GREEN,
    N_BEST,
    ORANGE,
    Picture,
    PlotlyFigure,
    axis,
    dots,
    label,
    plot_layout,
    sampled,
    sampling_text,
)
from .pictures import lines_for_pointer


def front_picture(sweep: SweepRecord) -> Picture | None:
    """Shows the two objectives of a sweep, or time and energy if it measured both; otherwise None."""
    objectives = sweep.objectives
    if len(objectives) < 2:
        objectives = Objective(TIME), Objective(ENERGY)
    if not any(values_of(objectives, trial) for trial in sweep.trials):
        return None
    first, second = objectives
    on_it = front_of(sweep, objectives)
    again = any(isinstance(each, Finalist) for each in on_it)
    winner = [each for each in (sweep.winner,) if each is not None and values_of(objectives, each)]
    traces = [
        _marks(
            "a config",
            objectives,
            sampled(sweep.measured, n_first=N_BEST),
            {"color": BLUE, "size": 6, "opacity": 0.55},
        ),
        _marks("the front", objectives, on_it, {"color": ORANGE, "size": 9}, with_line=True),
        _marks("the winner", objectives, winner, {"color": GREEN, "size": 13, "symbol": "star"}),
    ]
    source = "with their values in the final round" if again else "with their values in the search"
    return Picture(
        f"{first.name.capitalize()} and {second.name}",
        f"A dot is a config in its trial. The line joins the configs that no other one beats in both, {source}."
        + sampling_text(len(sweep.measured), best="fastest"),
        {"data": traces, "layout": plot_layout(420, xaxis=axis(first.title), yaxis=axis(second.title))},
    )


def _marks(
    name: str,
    objectives: Sequence[Objective],
    trials: Sequence[Trial],
    marker: PlotlyFigure,
    with_line: bool = False,
) -> PlotlyFigure:
    pairs = [(each, values) for each in trials if (values := values_of(objectives, each)) is not None]
    first, second = (objective.name for objective in objectives)
    text = [
        f"{', '.join(label(objective_text(o.name, values[o.name])) for o in objectives)}"
        f"<br>{lines_for_pointer(assignments(each.config))}"
        for each, values in pairs
    ]
    x, y = ([values[what] for _, values in pairs] for what in (first, second))
    line = {"color": ORANGE, "width": 2, "shape": "hv"}
    return dots(x, y, text, marker, name=name, mode="lines+markers" if with_line else "markers", line=line)
