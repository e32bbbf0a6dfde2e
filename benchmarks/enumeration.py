"""How fast spaces are enumerated, beside Kernel Tuner: seconds, the most memory, and whether the configs are the same.

    python benchmarks/enumeration.py [name ...] [--runs 3]

The spaces are those of the hub of benchmarks of Kernel Tuner's authors, and larger ones, of which autotune draws a
sample. Kernel Tuner, which must be installed, enumerates only the first. Each run is a process of its own; the seconds
are those of the enumeration alone, the least of all runs, and the memory is what the process had at most.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from typing import Any

Described = tuple[dict[str, list[Any]], list[str]]


def multiples(step: int, first: int, last: int) -> list[int]:
    return [step * i for i in range(first, last + 1)]


def powers(last: int) -> list[int]:
    return [2**i for i in range(last + 1)]


def hotspot() -> Described:
    ten = multiples(1, 1, 10)
    parameters = {
        "grid_width": [4096],
        "grid_height": [4096],
        "block_size_x": powers(4) + multiples(32, 1, 32),
        "block_size_y": powers(5),
        "tile_size_x": ten,
        "tile_size_y": ten,
        "temporal_tiling_factor": ten,
        "max_tfactor": [10],
        "loop_unroll_factor_t": ten,
        "sh_power": [0, 1],
    }
    width, height = (f"(block_size_{axis} * tile_size_{axis} + temporal_tiling_factor * 2)" for axis in "xy")
    return parameters, [
        "block_size_x * block_size_y >= 32",
        "temporal_tiling_factor % loop_unroll_factor_t == 0",
        "block_size_x * block_size_y <= 1024",
        f"{width} * {height} * (2 + sh_power) * 4 <= 49152",
    ]


def gemm() -> Described:
    sizes, blocks, widths, flag = [16, 32, 64, 128], [8, 16, 32], [1, 2, 4, 8], [0, 1]
    parameters = {
        **{"GEMMK": [0], "MWG": sizes, "NWG": sizes, "KWG": [16, 32], "MDIMC": blocks, "NDIMC": blocks},
        **{"MDIMA": blocks, "NDIMB": blocks, "KWI": [2], "VWM": widths, "VWN": widths, "STRM": flag, "STRN": flag},
        **{"SA": flag, "SB": flag, "KREG": [1], "PRECISION": [32]},
    }
    return parameters, [
        "KWG % KWI == 0",
        "MWG % (MDIMC * VWM) == 0",
        "NWG % (NDIMC * VWN) == 0",
        "MWG % (MDIMA * VWM) == 0",
        "NWG % (NDIMB * VWN) == 0",
        "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
        "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
        "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)",
    ]


def dedispersion() -> Described:
    parameters = {
        "block_size_x": powers(5),
        "block_size_y": multiples(8, 4, 32),
        "block_size_z": [1],
        "tile_size_x": multiples(1, 1, 4),
        "tile_size_y": multiples(1, 1, 8),
        "tile_stride_x": [0, 1],
        "tile_stride_y": [0, 1],
        "loop_unroll_factor_channel": [0],
    }
    return parameters, [
        "32 <= block_size_x * block_size_y <= 1024",
        "tile_size_x > 1 or tile_stride_x == 0",
        "tile_size_y > 1 or tile_stride_y == 0",
    ]


def expdist() -> Described:
    eight = multiples(1, 1, 8)
    parameters = {
        "block_size_x": [32, 64, 128, 256, 512, 1024],
        "block_size_y": powers(5),
        "tile_size_x": eight,
        "tile_size_y": eight,
        "use_shared_mem": [0, 1, 2],
        "loop_unroll_factor_x": eight,
        "loop_unroll_factor_y": eight,
        "use_column": [0, 1],
        "n_y_blocks": powers(10),
    }
    unrolls = [f"loop_unroll_factor_{a} <= tile_size_{a} and tile_size_{a} % loop_unroll_factor_{a} == 0" for a in "xy"]
    return parameters, ["block_size_x * block_size_y <= 1024", *unrolls, "use_column == 1 or n_y_blocks == 1"]


def free(n: int) -> Described:
    """Returns a space of n parameters of ten values, of which two are in order."""
    return {f"p{i}": multiples(1, 0, 9) for i in range(n)}, ["p0 < p1"]


def sums() -> Described:
    """Returns a space in which one restriction joins all parameters."""
    parameters = {f"p{i}": multiples(1, 0, 9) for i in range(9)}
    return parameters, [f"{' + '.join(parameters)} == 40"]


SPACES = {"hotspot": hotspot, "gemm": gemm, "dedispersion": dedispersion, "expdist": expdist}
LARGE = {"4.5 million": lambda: free(7), "4.5e24": lambda: free(25), "sums": sums}


def ours(described: Described) -> tuple[list[tuple[Any, ...]], float, str]:
    from autotune import Space

    parameters, restrictions = described
    anything: Any = None  # restrictions ask neither a problem nor a device
    began = time.perf_counter()
    space = Space(**{name: tuple(values) for name, values in parameters.items()})
    for text in restrictions:
        space.require(text)
    found = space.enumerate(anything, anything)
    took_s = time.perf_counter() - began
    return [tuple(config.values()) for config in found.configs], took_s, found.told_sample


def theirs(described: Described) -> tuple[list[tuple[Any, ...]], float, str]:
    from kernel_tuner.searchspace import Searchspace

    parameters, restrictions = described
    began = time.perf_counter()
    found = Searchspace(parameters, restrictions, 1024)
    return found.list, time.perf_counter() - began, ""


def child(who: str, name: str) -> None:
    """Prints what an enumeration took, in a process of its own."""
    made = {**SPACES, **LARGE}[name]()
    configs, took_s, note = ours(made) if who == "autotune" else theirs(made)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    digest = hashlib.sha256(repr(sorted(configs)).encode()).hexdigest()
    print(json.dumps({"n": len(configs), "seconds": took_s, "megabytes": most, "digest": digest, "note": note}))


def measured(who: str, name: str, n_runs: int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--child", who, name]
    runs = [
        json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        for _ in range(n_runs)
    ]
    best: dict[str, Any] = min(runs, key=lambda run: float(run["seconds"]))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*SPACES, *LARGE])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", choices=("autotune", "kernel_tuner"), help="enumerates in this process")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in {**SPACES, **LARGE}]:
        parser.error(f"there is no space {unknown[0]!r}; there are {', '.join({**SPACES, **LARGE})}")
    if given.child:
        child(given.child, given.names[0])
        return
    print(f"{'space':<14} {'configs':>8}  {'autotune':>17}  {'Kernel Tuner':>17}")
    for name in given.names:
        own = measured("autotune", name, given.runs)
        line = f"{name:<14} {own['n']:>8}  {own['seconds']:8.3f} s {own['megabytes']:4.0f} MB"
        if name in SPACES:
            other = measured("kernel_tuner", name, given.runs)
            same = "the same configs" if own["digest"] == other["digest"] else "OTHER CONFIGS"
            line += f"  {other['seconds']:8.3f} s {other['megabytes']:4.0f} MB  {same}"
        print(line + (f"  {own['note']}" if own["note"] else ""))


if __name__ == "__main__":
    main()
