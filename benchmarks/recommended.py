"""What the kernel's rule, both sets of trees together and those without the rule lose at problems that are left out.

    python benchmarks/recommended.py results

A row for each kernel: median, mean, nine of ten and worst in percent, of choices among what the left-out sweep
measured, at sweeps of at least DEEP trials or nearly all of their space; and the rank correlation of the learnt
choices' losses with what the trees predicted of them, over all kernels. It needs no GPU.
"""

import sys
from pathlib import Path

import numpy as np
from drawing import KERNELS

from autotune.analysis.experiences import measured_problem
from autotune.cli.tables import print_table
from autotune.recommend import learning
from autotune.recommend.experience import by_both
from autotune.records.record import read_sweeps
from autotune.source.registry import load_kernel

DEEP, NEARLY_ALL = 50, 0.9


def main() -> None:
    sweeps, _ = read_sweeps(map(Path, sys.argv[1:] or ["results"]))
    rows, predicted, lost = [], list[float](), list[float]()
    for name in KERNELS:
        kernel = load_kernel(name)
        own = [sweep.of_space(kernel.space) for sweep in sweeps if sweep.kernel == name and sweep.median_s]
        columns, prepared = learning._prepared(kernel, map(measured_problem, own))
        losses: dict[str, list[float]] = {"rule": [], "both": [], "alone": []}
        for where, others, left_out in learning._left_out(prepared):
            if where:  # of devices that are left out
                continue
            by_rule, alone = (learning._fitted(others, n) for n in (len(columns.names), columns.n_plain))
            for one in filter(_is_deep, left_out):
                times, without = [time for _, time in one.given.measured], alone(one.table[:, : columns.n_plain])
                told = by_both(by_rule(one.table), without)
                choices = {"both": int(told.argmin()), "alone": int(without.argmin())}
                rule = [row for row, (config, _) in enumerate(one.given.measured) if config == one.rule]
                for how, row in (*choices.items(), *(("rule", row) for row in rule)):
                    losses[how].append(100 * (times[row] - 1))
                predicted.append(float(told.min()))
                lost.append(losses["both"][-1])
        rows.append((name, str(len(losses["both"])), *(_told(each) for each in losses.values())))
    print_table(("kernel", "problems", "rule", "both", "alone"), rows)
    ranks = [np.argsort(np.argsort(each)).astype(float) for each in (predicted, lost)]
    print(f"rank correlation of losses with predictions: {np.corrcoef(ranks[0], ranks[1])[0, 1]:.2f}")


def _is_deep(one: learning._Learnt) -> bool:
    n, n_configs = len(one.values), one.given.n_configs
    return n >= DEEP or (n_configs is not None and n >= NEARLY_ALL * n_configs)


def _told(losses: list[float]) -> str:
    return ", ".join(f"{f(losses):.1f}" for f in (np.median, np.mean)) + (
        f", {np.percentile(losses, 90):.0f}, {max(losses):.0f}"
    )


if __name__ == "__main__":
    main()
