"""How far the fastest config of a sweep may be from the fastest of all, by the number of configs that it tried.

The figures come from recorded sweeps: the fastest of the first n configs, against the fastest of at least DEEP and of
twice as many. ``python benchmarks/bounds.py results`` computes them. They are lower bounds of what more trials find.
"""

from ..core.units import percent

DEEP = 60
LOSS_AFTER = {  # configs tried -> the median loss, and the loss that nine sweeps of ten do not exceed
    6: (0.0137, 0.0909),
    8: (0.0116, 0.0774),
    10: (0.0101, 0.0672),
    12: (0.0075, 0.055),
    15: (0.0037, 0.044),
    20: (0.0, 0.0298),
    28: (0.0, 0.0129),
    40: (0.0, 0.0097),
}


def loss_after(n_tried: int, n_configs: int | None, regret: float = 0.0) -> tuple[float, float] | None:
    """Returns the median loss of a sweep's winner, and its bound at nine of ten; None: too few configs were tried.

    ``n_configs``: all allowed ones; None: unknown. A sweep that tried them all loses nothing. ``regret``: the loss of
    another config of the sweep relative to the winner.
    """
    if n_configs is not None and n_tried >= n_configs:
        return regret, regret
    row = next((LOSS_AFTER[n] for n in sorted(LOSS_AFTER, reverse=True) if n <= n_tried), None)
    return None if row is None else (round(regret + row[0], 4), round(regret + row[1], 4))


def missed_text(n_tried: int, n_configs: int | None, regret: float = 0.0) -> str:
    """Returns ``loss_after`` in words."""
    found = loss_after(n_tried, n_configs, regret)
    tried = f"{n_tried} of {n_configs} configs" if n_configs else f"{n_tried} configs"
    of_it = f"; {percent(regret)} of it measured, as the fastest is not in the portfolio" if regret else ""
    if found is None:
        return f"unknown, since only {tried} were tried{of_it}" if n_tried else f"unknown{of_it}"
    if n_configs is not None and n_tried >= n_configs:
        return f"{percent(found[0])} (all {n_configs} configs were tried{of_it})"
    median, bound = map(percent, found)
    return f"{median} (median; at most {bound} in nine of ten sweeps; {tried} were tried{of_it})"
