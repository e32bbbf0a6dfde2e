"""How well times of launches are predicted: each recorded problem of an architecture, from all the others of it.

    python benchmarks/expected_times.py results --kernel channelise --kernel pfb_fir

A line for each kernel and architecture: predicted / recorded time as its factor off 1, the median, nine tenths, and the
worst with its problem. It needs no GPU.
"""

import argparse
from math import exp, log
from pathlib import Path

import numpy as np

from autotune.analysis.experiences import measured_problem
from autotune.cli.tables import print_table
from autotune.core.definition import AnyKernel
from autotune.recommend.duration import Durations
from autotune.recommend.experience import MeasuredProblem
from autotune.records.record import read_sweeps
from autotune.runtime.wisdom import fields_text
from autotune.source.registry import load_kernel

KERNELS = ("channelise", "pfb_fir", "postproc", "correlate", "accumulate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--kernel", action="append", help=f"default: {', '.join(KERNELS)}")
    given = parser.parse_args()
    sweeps, _ = read_sweeps([given.results])
    rows = []
    for name in given.kernel or KERNELS:
        kernel = load_kernel(name)
        own = [sweep for sweep in sweeps if sweep.kernel == kernel.name and sweep.median_s]
        for arch in sorted({sweep.device.arch for sweep in own}):
            errors = left_out_errors(kernel, [measured_problem(sweep) for sweep in own if sweep.device.arch == arch])
            off = np.array([exp(abs(log(error))) for _, error in errors])
            worst, error = errors[int(off.argmax())]
            where = f"{error:.2f} of {1e6 * worst.seconds:.3g} us at {fields_text(worst.problem)}"
            figures = (f"{np.median(off):.3f}", f"{np.percentile(off, 90):.2f}", f"{off.max():.2f}")
            rows.append((kernel.name, arch, str(len(errors)), *figures, where))
    print_table(("kernel", "architecture", "problems", "median", "90 %", "worst", "where"), rows)


def left_out_errors(kernel: AnyKernel, problems: list[MeasuredProblem]) -> list[tuple[MeasuredProblem, float]]:
    """Returns problems of one architecture, each with predicted / recorded time, predicted from all others."""
    durations = Durations(kernel, problems, problems[0].device.arch)
    times = [(one, durations.expected(kernel.problem(dict(one.problem)), one.device, True)) for one in problems]
    return [(one, time.seconds / one.seconds) for one, time in times if time is not None]


if __name__ == "__main__":
    main()
