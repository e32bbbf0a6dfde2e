"""`autotune portfolio` shows the cost of serving all recorded problems with a few configurations."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from ...analysis.portfolio import Portfolio, Regret, RegretTable, portfolios, tables
from ...core.errors import UsageError
from ...records.record import read_sweeps
from ...system.limits import REGRET
from ..console import print_json, stderr, stdout
from ..tables import print_table
from .options import in_range

K_MAX = 8


def portfolio(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    kernel: Annotated[str, typer.Option("--kernel", help="Only this kernel. [default: all]")] = "",
    device: Annotated[str, typer.Option("--device", help="Only this device, such as 'NVIDIA H200'.")] = "",
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            min=1,
            max=K_MAX,
            help="How many configurations to show. [default: the fewest whose worst regret is within --regret]",
        ),
    ] = None,
    regret: Annotated[
        float,
        typer.Option(
            "--regret", callback=in_range(REGRET), help="0.02 accepts 2 % more time than the best, at any problem."
        ),
    ] = 0.02,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the few configurations that serve all recorded problems with the least worst-case regret.

    Regret is the extra time over the best config of a problem: 0.02 means 2 % slower.
    """
    sweeps, left_out = read_sweeps(paths)
    for path, why in left_out.items():
        stderr.print(f"skipped {path}: {why}", markup=False)
    regret_tables = tables(s for s in sweeps if kernel in ("", s.kernel) and device in ("", s.device.name))
    if not regret_tables:
        recorded = sorted({f"{s.kernel} on {s.device.name}" for s in sweeps}) or ["nothing"]
        raise UsageError(
            f"no recorded sweep matches --kernel {kernel!r} --device {device!r}; recorded: {', '.join(recorded)}"
        )
    answers = []
    for table in regret_tables:
        all_k = portfolios(table, K_MAX)
        answer = all_k[min(k, len(all_k)) - 1] if k else next((p for p in all_k if p.total.worst <= regret), all_k[-1])
        answers.append(_as_json(table, all_k, answer))
        if not json:
            _print(table, all_k, answer, regret)
    if json:
        print_json(answers)


def _print(table: RegretTable, all_k: list[Portfolio], answer: Portfolio, regret: float) -> None:
    n_problems, n_configs = table.regret.shape
    title = f"{table.kernel} on {table.device}: {n_problems} problems, {n_configs} configurations"
    stdout.print(title, markup=False, style="bold")
    names = (
        "configurations",
        "worst",
        "mean",
        "median",
        "held-out: worst",
        "mean",
        "median",
        "not served",
        "not all tried",
        "",
    )
    print_table(names, [_row(p, answer) for p in all_k])
    if any(p.n_untried for p in all_k):
        stdout.print(
            "not all tried: problems at which some of the configs were not measured; their regret is an upper bound",
            markup=False,
        )
    if answer.total.worst > regret:
        stdout.print(f"{len(answer.configs)} configs cannot keep every regret within {_percent(regret)}", markup=False)
    served = [sum(choice == i for choice in answer.chosen) for i in range(len(answer.configs))]
    rows = list(zip(served, answer.configs, strict=True))
    print_table(("serves", "configuration"), rows, below="configuration")
    stdout.print("")


def _row(portfolio: Portfolio, answer: Portfolio) -> tuple[str, ...]:
    total, left_out = portfolio.total, portfolio.left_out
    after = ("-", "-", "-") if left_out is None else _shares(left_out)
    return (
        str(len(portfolio.configs)),
        *_shares(total),
        *after,
        str(total.n_unserved),
        str(portfolio.n_untried),
        "below" if portfolio is answer else "",
    )


def _shares(regret: Regret) -> tuple[str, str, str]:
    return _percent(regret.worst), _percent(regret.mean), _percent(regret.median)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if isfinite(share) else "not served"


def _as_json(table: RegretTable, all_k: list[Portfolio], answer: Portfolio) -> dict[str, object]:
    """Returns the JSON of one table. Regrets are shares of one; an infinite regret is null."""
    return {
        "kernel": table.kernel,
        "device": table.device,
        "n_problems": len(table.problems),
        "n_configs": len(table.configs),
        "portfolios": [
            {
                "k": len(p.configs),
                "n_untried": p.n_untried,
                "regret": _regret(p.total),
                "left_out": _regret(p.left_out) if p.left_out else None,
                "configs": [dict(config) for config in p.configs],
            }
            for p in all_k
        ],
        "k": len(answer.configs),
        "configs": [dict(config) for config in answer.configs],
        "problems": [
            {"problem": problem, "config": choice, "regret": _finite(regret)}
            for problem, choice, regret in zip(table.problems, answer.chosen, answer.regret, strict=True)
        ],
    }


def _regret(regret: Regret) -> dict[str, object]:
    values = {name: _finite(getattr(regret, name)) for name in ("worst", "mean", "median")}
    return {**values, "n_unserved": regret.n_unserved}


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
