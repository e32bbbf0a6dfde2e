"""`autotune portfolio` shows the cost of serving all recorded problems with a few configurations."""

from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...analysis.portfolio import Floats, Portfolio, RegretTable, held_out_regret, portfolios, tables
from ...core.config import Config
from ...core.errors import UsageError
from ...records.record import read_sweeps
from ...system.limits import REGRET
from ..console import print_json, stderr, stdout
from ..tables import print_table
from .options import JsonOption, in_range

K_MAX = 8
UNTRIED = "not all tried: problems at which some of the configs were not measured; their regret is an upper bound"
SHARES = ("worst", "mean", "median")


def portfolio(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    kernel: Annotated[str, typer.Option("--kernel", help="Only this kernel. [default: all]")] = "",
    device: Annotated[str, typer.Option("--device", help="Only this device, such as 'NVIDIA H200'.")] = "",
    k: Annotated[
        int | None,
        typer.Option("--k", min=1, max=K_MAX, help="How many configs to show. [default: the fewest within --regret]"),
    ] = None,
    regret: Annotated[
        float,
        typer.Option("--regret", callback=in_range(REGRET), help="0.02 accepts 2 % more time than the best anywhere."),
    ] = 0.02,
    json: JsonOption = False,
) -> None:
    """Show the few configurations that serve all recorded problems with the least worst-case regret.

    Regret is the extra time over the best config of a problem: 0.02 means 2 % slower.
    """
    sweeps, left_out = read_sweeps(paths)
    for path, why in left_out.items():
        stderr.print(f"skipped {path}: {why}", markup=False)
    regret_tables = tables(s for s in sweeps if kernel in ("", s.kernel) and device in ("", s.device.name))
    if not regret_tables:
        names = ", ".join(sorted({f"{s.kernel} on {s.device.name}" for s in sweeps})) or "nothing"
        raise UsageError(f"no recorded sweep matches --kernel {kernel!r} --device {device!r}; recorded: {names}")
    answers = []
    for table in regret_tables:
        all_k = portfolios(table, K_MAX)
        within = (one for one in all_k if one.regret.max() <= regret)
        answer = all_k[min(k, len(all_k)) - 1] if k else next(within, all_k[-1])
        answers.append(_as_json(table, all_k, answer))
        if not json:
            _print(answers[-1], regret)
    if json:
        print_json(answers)


def _print(shown: dict[str, Any], regret: float) -> None:
    """Prints the JSON of one table as text."""
    title = "{kernel} on {device}: {n_problems} problems, {n_configs} configurations".format(**shown)
    stdout.print(title, markup=False, style="bold")
    rows = []
    for one in shown["portfolios"]:
        regrets = [of[name] for of in (one["regret"], one["left_out"]) if of is not None for name in SHARES]
        shares = ["not served" if share is None else f"{100 * share:.2f} %" for share in regrets]
        shares += ["-"] * (2 * len(SHARES) - len(shares))  # a single problem leaves none to choose from
        below = "below" if one["k"] == shown["k"] else ""
        rows.append((one["k"], *shares, one["regret"]["n_unserved"], one["n_untried"], below))
    print_table(("configurations", *SHARES, "held-out: worst", *SHARES[1:], "not served", "not all tried", ""), rows)
    if any(one["n_untried"] for one in shown["portfolios"]):
        stdout.print(UNTRIED, markup=False)
    if not all(one["regret"] is not None and one["regret"] <= regret for one in shown["problems"]):
        stdout.print(f"{shown['k']} configs cannot keep every regret within {100 * regret:.2f} %", markup=False)
    served = Counter(one["config"] for one in shown["problems"])
    members = [(served[i], Config(values)) for i, values in enumerate(shown["configs"])]
    print_table(("serves", "configuration"), members, below="configuration")
    stdout.print("")


def _as_json(table: RegretTable, all_k: list[Portfolio], answer: Portfolio) -> dict[str, Any]:
    """Returns the JSON of one table. Regrets are shares of one; an infinite regret is null."""
    return {
        "kernel": table.sweeps[0].kernel,
        "device": table.sweeps[0].device.name,
        "n_problems": len(table.sweeps),
        "n_configs": len(table.configs),
        "portfolios": [
            {
                "k": len(one.configs),
                "n_untried": one.n_untried,
                "regret": _summary(one.regret),
                "left_out": _summary(held_out) if len(table.sweeps) > 1 else None,
                "configs": [dict(config) for config in one.configs],
            }
            for one, held_out in zip(all_k, held_out_regret(table.regret, len(all_k)), strict=True)
        ],
        "k": len(answer.configs),
        "configs": [dict(config) for config in answer.configs],
        "problems": [
            {"problem": sweep.about.problem_name, "config": choice, "regret": None if choice is None else regret}
            for sweep, choice, regret in zip(table.sweeps, answer.chosen, answer.regret, strict=True)
        ],
    }


def _summary(regret: Floats) -> dict[str, float | None]:
    values = zip(SHARES, (regret.max(), regret.mean(), np.median(regret)), strict=True)
    shares = {name: float(value) if isfinite(value) else None for name, value in values}
    return {**shares, "n_unserved": int(np.isinf(regret).sum())}
