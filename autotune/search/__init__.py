"""Proposes what to try next. A searcher sees configs, their known columns and times, not the device or problem.

Every searcher proposes each config of the enumerated space at most once: the default first, then the hints.
Installed packages add samplers by entry points of the group ``autotune.samplers``; Optuna's are ``optuna:<class>``.
The room imports ``records`` and the rooms below it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..core.config import Config
from ..core.errors import UsageError
from ..source.installed import SAMPLERS as ENTRY_POINTS
from ..source.installed import installed, load_installed
from .base import Request, Searcher
from .bayesian import GaussianProcess
from .by_optuna import OptunaSearch, check_optuna
from .local import LocalSearch
from .optuna_names import PREFIX, names_module
from .plain import Exhaustive, Random
from .tpe import TreeParzen

__all__ = ["SAMPLERS", "Searcher", "check_sampler", "names_module", "searcher"]

SAMPLERS: dict[str, Callable[[Request], Searcher]] = {
    "exhaustive": Exhaustive,
    "random": Random,
    "local": LocalSearch,
    "tpe": TreeParzen,
    "gp": GaussianProcess,
}


def searcher(
    name: str,
    configs: Sequence[Config],
    default: Config,
    budget: int | None,
    done: Iterable[Config],
    seed: int,
    hints: Sequence[Config] = (),
    known: Mapping[str, np.ndarray] | None = None,
) -> tuple[str, Searcher]:
    """Returns the searcher called ``name`` and its actual name: ``auto`` is exhaustive when the budget allows, else gp.

    ``budget``: trials in all, those of ``done`` included; None is no limit. ``done``: configs whose outcome is already
    known; they are not proposed again, and what they gave is told by observe() before the first propose().
    ``hints``: configs that did well elsewhere, in order of promise; those of the space are proposed after the default.
    ``known``: what is known of each config beside its parameters, by name, float [n_configs]; gp uses it.

    Raises:
        UsageError: for an unknown name, or what a sampler of Optuna's raises; so do its propose() and observe().
    """
    check_sampler(name)
    if name == "auto":
        name = "exhaustive" if budget is None or budget >= len(configs) else "gp"
    request = Request(configs, default, budget, tuple(done), seed, hints, known or {})
    if name.startswith(PREFIX):
        return name, OptunaSearch(request, name)
    make = SAMPLERS[name] if name in SAMPLERS else load_installed(ENTRY_POINTS, name, Searcher)
    return name, make(request)


def check_sampler(name: str) -> None:
    """Raises UsageError unless ``name`` is a sampler."""
    if name.startswith(PREFIX):
        check_optuna(name)
        return
    known = dict.fromkeys(("auto", *SAMPLERS, *installed(ENTRY_POINTS)))
    if name not in known:
        raise UsageError(f"no sampler is called {name!r} (there are: {', '.join(known)}, {PREFIX}<class>)")
