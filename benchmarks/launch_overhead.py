"""What a call of an emitted kernel costs on the CPU beyond a bare CuPy launch of the same binary.

    python benchmarks/launch_overhead.py tuned/ --kernel detect --problem n_time=1024 --sizes n_chan=256

Both launch the same function with the same arguments on preallocated outputs, in turns, without waiting for the GPU;
a small size keeps the queue from filling. Figures are microseconds of wall time on the CPU: the median of many
batches, each batch's time divided by its launches.
"""

import argparse
import dataclasses
import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import cupy
import numpy as np


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="a package that `autotune emit` wrote")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--problem", default="", help="baked fields, n_time=1024,...")
    parser.add_argument("--sizes", default="", help="runtime fields, as small as the kernel allows")
    parser.add_argument("--torch", action="store_true", help="PyTorch tensors instead of CuPy arrays")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--launches", type=int, default=100, help="launches of a batch")
    options = parser.parse_args()
    package = import_package(options.package)
    tuned = getattr(package, options.kernel)(**fields(options.problem))
    kernel = package._package.kernel(options.kernel)
    problem = kernel.problem({**fields(options.problem), **fields(options.sizes)})
    arrays, scalars = on_gpu(kernel, problem)
    names = [name for name, spec in kernel.arrays(problem).items() if spec.written and not spec.read]
    bare = bare_launch(package, kernel, problem, arrays, scalars, tuned.choice_for(**runtime_sizes(problem)))
    if options.torch:
        import torch

        arrays = {name: torch.as_tensor(array, device="cuda") for name, array in arrays.items()}
    given = {name: array for name, array in arrays.items() if name not in names} | scalars
    out = {name: arrays[name] for name in names}
    calls = {"a call that allocates": partial(tuned, **given)}
    if out:
        calls["a call with out="] = partial(tuned, **given, out=next(iter(out.values())) if len(out) == 1 else out)
    if not options.torch:
        calls["a prepared call"] = partial(tuned.prepare(**runtime_sizes(problem)), **arrays, **scalars)
    for name, call in calls.items():
        call()  # compile and plan
        bare_us, call_us = in_turns((bare, call), options.batches, options.launches)
        print(f"{name}: {call_us:.2f} us, bare launch: {bare_us:.2f} us, over it: {call_us - bare_us:.2f} us")
    print(tuned.choice)


def import_package(folder: Path) -> ModuleType:
    """The package in ``folder``, under the folder's name."""
    name = folder.resolve().name
    start = folder.resolve() / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[str(folder.resolve())])
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fields(text: str) -> dict[str, Any]:
    """``a=1,b=x`` -> {"a": 1, "b": "x"}."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name.strip(): int(value) if value.strip().isdigit() else value.strip() for name, _, value in pairs}


def runtime_sizes(problem: Any) -> dict[str, Any]:
    """The fields that are no constants of the source."""
    found = dataclasses.fields(problem)
    return {f.name: getattr(problem, f.name) for f in found if f.metadata.get("runtime")}


def on_gpu(kernel: Any, problem: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arrays, scalars): random inputs, empty outputs."""
    inputs, specs = kernel.inputs(problem, np.random.default_rng(0)), kernel.arrays(problem)
    arrays = {n: cupy.asarray(inputs[n]) if n in inputs else cupy.empty(s.shape, s.dtype) for n, s in specs.items()}
    return arrays, {name: value for name, value in inputs.items() if name not in specs}


def bare_launch(
    package: ModuleType, kernel: Any, problem: Any, arrays: dict[str, Any], scalars: dict[str, Any], choice: Any
) -> Callable[[], Any]:
    """The same binary through cupy.RawKernel alone, with its arguments at hand."""
    gpu = importlib.import_module(f"{package.__name__}._autotune.runtime.gpu")
    cubin = gpu.cubin_of(package._package.source(choice.source_key), kernel.name, gpu.describe_gpu(gpu.current()).arch)
    function = gpu.load_function(cubin, kernel.name)
    geometry = kernel.launch(problem, choice.config)
    if geometry.shared_bytes:
        function.max_dynamic_shared_size_bytes = geometry.shared_bytes
    binding = importlib.import_module(f"{package.__name__}._autotune.runtime.binding").Binding.of(kernel, problem)
    arguments = tuple(binding.ordered(arrays, binding.scalars(scalars)))
    return partial(function, geometry.grid, geometry.block, arguments, shared_mem=geometry.shared_bytes)


def in_turns(calls: Sequence[Callable[[], Any]], n_batches: int, n_launches: int) -> list[float]:
    """Microseconds of each call: medians over batches, the calls taking turns; the GPU is idle as a batch begins."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(n_batches):
        for call, found in zip(calls, samples, strict=True):
            cupy.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            for _ in range(n_launches):
                call()
            found.append(1e6 * (time.perf_counter() - start) / n_launches)
    return [statistics.median(found) for found in samples]


if __name__ == "__main__":
    main()
