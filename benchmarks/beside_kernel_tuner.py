"""Kernel Tuner and autotune over the same configs of its own examples: seconds of the call, and the two winners.

    python benchmarks/beside_kernel_tuner.py EXAMPLES [name ...]

EXAMPLES is the folder ``examples/cuda`` of Kernel Tuner, which must be installed, with CuPy and a GPU. Each call is
made in a process of its own, on cold caches; ``process`` has its imports and its end, too, but not the making of
arrays and answers. Kernel Tuner's winner and autotune's are then measured by autotune, interleaved.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Example = tuple[str, str, Any, list[Any], dict[str, list[Any]], dict[str, Any]]


def vector_add(folder: Path) -> Example:
    n = 10_000_000
    text = """
    __global__ void vector_add(float *c, float *a, float *b, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i<n) {
            c[i] = a[i] + b[i];
        }
    }
    """
    a, b = noise(n), noise(n)
    parameters = {"block_size_x": [128 + 64 * i for i in range(15)]}
    return "vector_add", text, n, [np.zeros_like(a), a, b, np.int32(n)], parameters, {}


def checked_vector_add(folder: Path) -> Example:
    name, text, size, arguments, parameters, _ = vector_add(folder)
    return name, text, size, arguments, parameters, {"answer": [arguments[1] + arguments[2], None, None, None]}


def stencil(folder: Path) -> Example:
    size = (4096, 2048)
    old = noise(4096 * 2048)
    parameters = {"block_size_x": [32 * i for i in range(1, 9)], "block_size_y": [2**i for i in range(6)]}
    return "stencil_kernel", (folder / "stencil.cu").read_text(), size, [old.copy(), old], parameters, {}


def matmul(folder: Path) -> Example:
    a, b = noise(4096, 4096), noise(4096, 4096)
    parameters = {
        "block_size_x": [16, 32, 64],
        "block_size_y": [2**i for i in range(6)],
        "tile_size_x": [1, 2, 4, 8],
        "tile_size_y": [1, 2, 4, 8],
    }
    more = {
        "grid_div_x": ["block_size_x", "tile_size_x"],
        "grid_div_y": ["block_size_y", "tile_size_y"],
        "restrictions": ["block_size_x==block_size_y*tile_size_y"],
    }
    return "matmul_kernel", str(folder / "matmul.cu"), (4096, 4096), [np.zeros_like(a), a, b], parameters, more


def convolution(folder: Path) -> Example:
    """The example's filter and image, 12 of its configs, and an answer."""
    image, weights = noise((4096 + 16) * (4096 + 16)), noise(17 * 17)
    padded = np.zeros((4112, 4112))
    padded[:17, :17] = weights.reshape(17, 17)
    spectrum = np.fft.rfft2(image.reshape(4112, 4112)) * np.conj(np.fft.rfft2(padded))
    answer = np.fft.irfft2(spectrum, s=(4112, 4112))[:4096, :4096]
    parameters = {
        "filter_width": [17],
        "filter_height": [17],
        "block_size_x": [32, 64],
        "block_size_y": [4, 8],
        "tile_size_x": [1, 2, 4],
        "tile_size_y": [1],
        "use_padding": [0],
        "read_only": [0],
    }
    more = {
        "grid_div_x": ["block_size_x", "tile_size_x"],
        "grid_div_y": ["block_size_y", "tile_size_y"],
        "cmem_args": {"d_filter": weights},
        "answer": [np.asarray(answer, np.float32).ravel(), None, None],
        "atol": 1e-3,
    }
    output = np.zeros(4096 * 4096, np.float32)
    text = (folder / "convolution.cu").read_text()
    return "convolution_kernel", text, (4096, 4096), [output, image, weights], parameters, more


def reduction(folder: Path) -> Example:
    """The example's first kernel over a tenth of its elements, 120 of its configs, judged by a function."""
    n, most = 80_000_000, 4096
    x = np.random.default_rng(1).random(n, np.float32)

    def verify(answer: Any, found: Any, atol: Any = None) -> bool:
        return bool(np.isclose(answer[0], np.sum(found[0], dtype=np.float64), rtol=1e-4))

    parameters = {
        "block_size_x": [64, 128, 256, 512, 1024],
        "vector": [1, 2, 4],
        "num_blocks": [512, 1024, 2048, 4096],
        "loop_unroll_factor_0": [0],
        "use_shuffle": [0, 1],
    }
    more = {"grid_div_x": [], "answer": [np.sum(x, dtype=np.float64), None, None], "verify": verify}
    arguments = [np.zeros(most, np.float32), x, np.int32(n)]
    return "sum_floats", (folder / "reduction.cu").read_text(), "num_blocks", arguments, parameters, more


EXAMPLES: dict[str, Callable[[Path], Example]] = {
    f.__name__: f for f in (vector_add, checked_vector_add, stencil, matmul, convolution, reduction)
}


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


def call(tuner: str, name: str, folder: Path, only: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Tunes an example by one of the two; ``only``: these configs."""
    began = time.perf_counter()
    kernel, source, size, arguments, parameters, more = EXAMPLES[name](folder)
    made_s = time.perf_counter() - began
    if only is not None:
        parameters = {p: list(dict.fromkeys(config[p] for config in only)) for p in parameters}
        more["restrictions"] = lambda given: any(all(given[p] == c[p] for p in parameters) for c in only)
    tune_kernel = import_module("autotune.kernel_tuner" if tuner == "autotune" else "kernel_tuner").tune_kernel
    if tuner != "autotune":
        more["lang"] = "cupy"
    began = time.perf_counter()
    results, _ = tune_kernel(kernel, source, size, arguments, parameters, quiet=True, **more)
    ended = time.perf_counter()
    ran = [result for result in results if isinstance(result.get("time"), float)]  # a failure has text, or none
    best = min(ran, key=lambda result: result["time"])
    found = {
        "made_s": made_s,
        "call_s": ended - began,
        "n": len(ran),
        "configs": [{p: result[p] for p in parameters} for result in ran],
        "best": {p: best[p] for p in parameters},
    }
    if tuner == "autotune":
        sweep = results.sweep
        found["best"] = dict(sweep.best.config)
        found["finalists"] = [(dict(f.config), f.median_s, str(f.relation)) for f in sweep.finalists]
        found["spent_s"] = dict(sweep.spent_s)
        trials = sweep.trials
        found["sums"] = {c: float(trials[c].sum()) for c in ("compile_s", "verify_s", "measure_s")}
        found["counts"] = {str(status): n for status, n in sweep.counts.items()}
    return found


def in_process(tuner: str, name: str, folder: Path, only: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Makes a call in a process of its own, with caches and records of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        caches = {"XDG_CACHE_HOME": scratch, "CUPY_CACHE_DIR": f"{scratch}/cupy", "CUDA_CACHE_PATH": f"{scratch}/cuda"}
        words = [sys.executable, __file__, str(folder), name, "--tuner", tuner, "--only", json.dumps(only)]
        began = time.perf_counter()
        done = subprocess.run(words, cwd=scratch, env={**os.environ, **caches}, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{tuner} failed at {name}; what it printed stands above")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer | {"process_s": time.perf_counter() - began - answer["made_s"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *EXAMPLES], default=[])
    parser.add_argument("--tuner", choices=("autotune", "kernel_tuner"), help="make one call here, and print figures")
    parser.add_argument("--only", type=json.loads)
    given = parser.parse_args()
    folder = given.examples.resolve()
    if given.tuner:
        print(json.dumps(call(given.tuner, given.names[0], folder, given.only)))
        return
    from autotune.cli.tables import print_table
    from autotune.core.units import seconds_text

    rows = []
    for name in given.names or EXAMPLES:
        theirs, ours = (in_process(tuner, name, folder) for tuner in ("kernel_tuner", "autotune"))
        for told in (theirs, ours):
            print(name, json.dumps({k: v for k, v in told.items() if k != "configs"}), file=sys.stderr)
        final = in_process("autotune", name, folder, [theirs["best"], ours["best"]])["finalists"]
        times = {json.dumps(config, sort_keys=True): median_s for config, median_s, _ in final}
        medians = [seconds_text(times[json.dumps(tuner["best"], sort_keys=True)]) for tuner in (ours, theirs)]
        each = (
            f"{tuner['n']} in {tuner['call_s']:.1f} s (process {tuner['process_s']:.1f})" for tuner in (ours, theirs)
        )
        rows.append((name, *each, *medians))
    print_table(("example", "autotune", "Kernel Tuner", "winner of autotune", "winner of Kernel Tuner"), rows)


if __name__ == "__main__":
    main()
