"""Proposes the next config to try. A search sees configs, their known columns and outcomes, not the device or problem.

Every search is an Optuna study. It proposes each config of the enumerated space at most once: the default first, then
the hints, then the choices of its sampler. Installed packages add samplers by entry points of the group
``autotune.samplers``; those of Optuna are ``optuna:<class>``. The room imports ``records`` and the rooms below it.
"""

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import isabstract, isclass
from typing import TYPE_CHECKING, Any

from ..core.config import Config
from ..core.errors import UsageError
from ..source.installed import SAMPLERS as ENTRY_POINTS
from ..source.installed import installed, load_installed
from .optuna_names import PREFIX, arguments, names_module, sampler_class, usable

if TYPE_CHECKING:
    import numpy as np

    from ..records.objectives import Direction
    from .sampler import ListSampler, Request
    from .search import Search

__all__ = ["SAMPLERS", "actual_sampler", "check_sampler", "names_module", "searcher"]

SAMPLERS = {  # module:Class, imported on first use: the import of Optuna takes longer than most commands
    "exhaustive": "plain:Exhaustive",
    "random": "plain:Random",
    "tpe": "by_optuna:TreeParzen",
    "gp": "bayesian:GaussianProcess",
}
INSTEAD = {"local": "gp"}  # a name of 0.2, which is taken until 0.4 -> its place is taken by


def actual_sampler(name: str, budget: int | None, n_configs: int, n_objectives: int = 1) -> str:
    """Returns the sampler that ``auto`` stands for: exhaustive if the budget covers the whole space, else gp.

    With several objectives, Optuna's TPESampler replaces gp. Other names but old ones are returned unchanged.
    """
    if name != "auto":
        return INSTEAD.get(name, name)
    if budget is None or budget >= n_configs:
        return "exhaustive"
    return "gp" if n_objectives == 1 else "optuna:TPESampler"


def searcher(
    name: str,
    configs: Sequence[Config],
    default: Config,
    budget: int | None,
    seed: int,
    hints: Sequence[Config] = (),
    known: "Mapping[str, np.ndarray] | None" = None,
    directions: "Sequence[Direction]" = ("minimize",),
) -> "Search":
    """Returns a search by the sampler called ``name``.

    ``budget``: number of trials, including recorded ones; None: no limit. Pass the outcomes of recorded trials to
    observe() before the first propose(). ``hints``: promising configs, the best first; those in the space are proposed
    after the default. ``known``: further columns of each config, by name, float [n_configs]; gp uses them.
    ``directions``: minimize or maximize, for each objective.

    Raises:
        UsageError: for an unknown name, or an error in Optuna's sampler; propose() raises it, too.
    """
    check_sampler(name)
    from .sampler import Request
    from .search import Search

    request = Request(configs, budget, seed, known or {})
    sampler = _sampler(actual_sampler(name, budget, len(configs)), request)
    return Search(sampler, (default, *hints), directions)


def check_sampler(name: str) -> None:
    """Raises UsageError unless there is a sampler called ``name``."""
    if name.startswith(PREFIX):
        from .by_optuna import check_optuna

        check_optuna(name)
        return
    names = dict.fromkeys(("auto", *SAMPLERS, *installed(ENTRY_POINTS)))
    if name in INSTEAD:
        logging.getLogger("autotune").warning("the sampler %s is gone: %s searches in its place", name, INSTEAD[name])
    elif name not in names:
        raise UsageError(f"no sampler is called {name!r} (there are: {', '.join(names)}, {PREFIX}<class>)")


def _sampler(name: str, request: "Request") -> "ListSampler":
    from optuna.samplers import BaseSampler

    from .by_optuna import SnappedSampler
    from .sampler import ListSampler

    kind: Any
    if name in SAMPLERS:
        module, _, last = SAMPLERS[name].partition(":")
        kind = getattr(import_module(f".{module}", __name__), last)
    elif name.startswith(PREFIX):
        kind = sampler_class(name)
    else:
        kind = load_installed(ENTRY_POINTS, name, BaseSampler)
    if isclass(kind) and issubclass(kind, ListSampler) and not isabstract(kind):
        return kind(request)
    return SnappedSampler(request, name, usable(name, kind), arguments(kind, request.seed))
