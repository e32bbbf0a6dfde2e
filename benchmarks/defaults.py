"""What defaults lose on the records, and whether they compile without spills at drawn problems of any shape.

    python benchmarks/defaults.py [--kernel ddc] [--results FOLDER]
    python benchmarks/defaults.py --build 30 [--seed 0] [--kernel ddc]

A default loses what its median is above the best one of a sweep. Where its config was not measured, that is untold; the
last columns say what the nearest measured one loses. --build draws that many problems of each kernel, compiles their
defaults for five architectures, and fails on an error or a spill. It does not on a small one, nor where other configs
spill as well, as of ddc at decimations above 100; nor on sm_90, whose defaults follow records: what is fastest of
channelise with more than 16 taps spills up to 460 bytes of a thread.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from drawing import KERNELS, drawn

from autotune.core.architecture import ARCHITECTURES
from autotune.core.config import Config
from autotune.core.definition import AnyKernel, Device
from autotune.core.errors import TrialFailure, UsageError
from autotune.devices.cuda import of_architecture
from autotune.records.record import SweepRecord, read_sweeps
from autotune.rendering.render import render
from autotune.runtime.nvrtc import compile_cubin
from autotune.source.registry import load_kernel
from autotune.trial.verify_configs import sample_of

RESULTS = Path(__file__).parents[1] / "results"
FEW_BYTES = 72  # of a thread that may be spilled, stores and loads together
N_OTHERS = 8  # configs that are compiled where a default spills more, to see whether any would do better
BUILT = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
RECORDED = "sm_90"  # where speed was measured, and decides


# ---------------------------------------------------------------------- what defaults lose
@dataclass(frozen=True)
class OnRecords:
    """Losses of one kernel's defaults: 0.1 is a tenth slower than the best."""

    told: list[float]  # of defaults that were measured
    nearest: list[float]  # of the nearest measured config of the others


def losses_of_defaults(kernel: AnyKernel, sweeps: list[SweepRecord]) -> OnRecords:
    """Returns what the defaults of this tree lose on the sweeps of ``kernel``."""
    found = OnRecords([], [])
    for sweep in sweeps:
        times = {kernel.space.completed(config): seconds for config, seconds in sweep.median_s.items()}
        if sweep.kernel != kernel.name or not times:
            continue
        default = kernel.default_config(kernel.problem(sweep.about.problem), sweep.about.device)
        some = found.told if default in times else found.nearest
        some.append(times[nearest_config(default, list(times))] / min(times.values()) - 1)
    return found


def nearest_config(wanted: Config, configs: list[Config]) -> Config:
    """Returns the config with the fewest other values."""
    return min(configs, key=lambda config: sum(config.get(name) != wanted.get(name) for name in {**config, **wanted}))


def told_losses(losses: list[float]) -> str:
    return f"{median(losses):7.1%} {max(losses):7.1%}" if losses else "      -       -"


# ---------------------------------------------------------------------- what compilers say
@dataclass(frozen=True)
class Needed:
    """What functions need: registers and bytes of local memory of a thread, bytes of shared memory of a block."""

    registers: list[int]
    spilled: list[int]
    shared: list[int]


def build(kernel: AnyKernel, n: int, seed: int) -> int:
    """Compiles the defaults of drawn problems, prints a row for each architecture, and returns how many went wrong."""
    wrong = 0
    for arch in BUILT:
        device, figures, n_built, start = of_architecture(arch), Needed([0], [0], [0]), 0, time.perf_counter()
        for problem in drawn(kernel, n, seed):
            try:
                config = kernel.default_config(problem, device)
            except UsageError:
                continue  # no config is allowed there
            n_built += 1
            for line in faults(kernel, problem, config, device, figures):
                wrong += 1
                print(f"{kernel.name} {arch}: {line}: {problem} {config}")
        took = time.perf_counter() - start
        print(
            f"{kernel.name:12s} {arch:6s} {n_built:3d} of {n} built, at most {max(figures.registers)} registers,"
            f" {max(figures.spilled)} bytes spilled, {max(figures.shared)} shared, {took:.0f} s",
            flush=True,
        )
    return wrong


def faults(kernel: AnyKernel, problem: Any, config: Config, device: Device, needed: Needed) -> Iterator[str]:
    """Yields what is wrong with a config's code; adds what each of its functions needs."""
    steps = kernel.launch(problem, config).steps
    names = [step.function or kernel.name for step in steps]
    try:
        cubin = compile_cubin(render(kernel, problem, config).source, names[0], device.arch, also=names[1:])
    except TrialFailure as failure:
        yield failure.message
        return
    for step, name in zip(steps, names, strict=True):
        figures = cubin.of(name)
        needed.registers.append(figures.registers or 0)
        needed.spilled.append(figures.spill_bytes or 0)
        needed.shared.append((figures.shared_bytes or 0) + step.shared_bytes)
        is_much = needed.spilled[-1] > FEW_BYTES and device.arch != RECORDED
        if is_much and others_fit(kernel, problem, device, names):
            yield f"{name} spills {needed.spilled[-1]} bytes, and other configs do not"
        if needed.shared[-1] > ARCHITECTURES[device.arch].shared_bytes:
            yield f"{name} needs {needed.shared[-1]} bytes of shared memory"


def others_fit(kernel: AnyKernel, problem: Any, device: Device, names: list[str]) -> bool:
    """Returns whether one of a few other configs spills little."""
    for config in sample_of(kernel.space.enumerate(problem, device).configs, N_OTHERS):
        cubin = compile_cubin(render(kernel, problem, config).source, names[0], device.arch, also=names[1:])
        if all((cubin.of(name).spill_bytes or 0) <= FEW_BYTES for name in names):
            return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", choices=KERNELS, help="a kernel; default: all")
    parser.add_argument("--results", type=Path, action="append", help="folders of sweeps; default: results/")
    parser.add_argument("--build", type=int, metavar="N", help="compile the defaults of N drawn problems a kernel")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    kernels = [load_kernel(name) for name in asked.kernel or KERNELS]
    if asked.build:
        return int(sum(build(kernel, asked.build, asked.seed) for kernel in kernels) > 0)
    sweeps, _ = read_sweeps(asked.results or [RESULTS])
    print("kernel       told    median     worst   untold  nearest: median   worst")
    for kernel in kernels:
        found = losses_of_defaults(kernel, sweeps)
        n = len(found.told), len(found.nearest)
        print(f"{kernel.name:12s} {n[0]:4d}   {told_losses(found.told)}   {n[1]:6d}  {told_losses(found.nearest):>15s}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
