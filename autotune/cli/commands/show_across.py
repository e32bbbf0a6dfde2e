"""`autotune show --parameters`: how much each parameter matters over many sweeps of a kernel."""

from collections.abc import Sequence

from ...analysis.across import COLUMNS, WINNING, parameters_across
from ...core.units import counted
from ...records.record import SweepRecord
from ..console import print_json, stdout
from ..tables import bar, print_table

EXPLAINED = """\
share of variance: the part of the variance of log(time) that the parameter's value explains (median over sweeps)
fixed to: the cheapest value to fix, and in how many sweeps it was measured; its cost is the slowdown of the best
config with it (median, worst). Few trials make a value look worse than it is."""


def print_across(sweeps: Sequence[SweepRecord], json: bool) -> None:
    """Prints a table for each kernel, or JSON: a list of parameters for each."""
    kernels = sorted({sweep.kernel for sweep in sweeps})
    by_kernel = {kernel: parameters_across([sweep for sweep in sweeps if sweep.kernel == kernel]) for kernel in kernels}
    if json:
        return print_json({kernel: [each.as_json() for each in some] for kernel, some in by_kernel.items()})
    for kernel, some in by_kernel.items():
        n = sum(sweep.kernel == kernel for sweep in sweeps)
        stdout.print(f"{kernel}: {counted(n, 'sweep')}", markup=False, style="bold")
        print_table(
            ("parameter", "share of variance", "", *COLUMNS),
            [(each.name, bar(each.share or 0.0), each.share_text.rjust(5), *each.cells()) for each in some],
            below=WINNING,
        )
        stdout.print()
    stdout.print(EXPLAINED, markup=False)
