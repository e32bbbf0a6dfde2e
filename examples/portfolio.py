"""Serves many problems with a few configs, prints their loss, and writes a package of them.

    python examples/portfolio.py [RECORDS] [KERNEL]

It reads recorded sweeps, by default those of `postproc` on an H100 that lie in results/, and needs no device. Few
configs are soon checked again after an edit, and few binaries where sizes are arguments. The price is a regret: how
much longer a problem takes with the best of the few than with its own winner.
"""

import sys
from pathlib import Path

import autotune
from autotune.analysis.portfolio import portfolios, tables
from autotune.records.record import read_sweeps

RECORDS = Path(__file__).parents[1] / "results" / "NVIDIA_H100_80GB_HBM3" / "postproc"
MOST = 4  # configs in the largest portfolio


def main(records: str = str(RECORDS), kernel: str = "postproc") -> None:
    sweeps, _ = read_sweeps([Path(records)])
    (table,) = tables(sweep for sweep in sweeps if sweep.kernel == kernel)  # one for each kernel and device
    n_problems, n_configs = table.regret.shape
    print(f"{kernel} on {table.sweeps[0].device.name}: {n_problems} problems, {n_configs} configs")
    for few in portfolios(table, MOST):
        worst, mean = few.regret.max(), few.regret.mean()  # infinite if none of them serves some problem
        print(f"{len(few.configs)} configs: regret {worst:.1%} at worst, {mean:.1%} in the mean")

    # `chosen` maps each problem to the member that serves it. The last portfolio is the largest.
    member = few.configs[few.chosen[0]]
    print(f"{table.sweeps[0].title}\n  is served by {member}\n  with a regret of {few.regret[0]:.1%}")

    # The package has the sources of these few configs, whatever the number of problems.
    package = autotune.emit([records], "tuned_few", portfolio=MOST)
    print(f"{package.name}: {len(list(package.glob('sources/*.cu')))} sources, the defaults' included")


if __name__ == "__main__":
    main(*sys.argv[1:3])
