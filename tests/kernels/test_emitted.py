"""Every kernel of the project, tuned a little, emitted, and called from the package with arrays of the GPU."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.devices import find_device
from autotune.emit.writer import write_package
from autotune.runtime.comparison import compare_arrays
from autotune.source.registry import all_kernels
from autotune.sweep.request import problem_on
from autotune.trial.contract import tolerance_of


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(all_kernels()))
def test_an_emitted_kernel_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    kernel, host = all_kernels()[name], find_device("host")
    for number, base in enumerate((kernel.tuned[0], *kernel.extra_problems[:2])):
        problem = problem_on(kernel, {}, host, base=base)  # as small as on the host
        sweep = autotune.sweep(name, problem=vars(problem), trials=2, results=tmp_path / "results", device="cuda:0")
        assert sweep.best is not None
        package = f"emitted_{name}_{number}"
        write_package([tmp_path / "results"], tmp_path / package)
        monkeypatch.syspath_prepend(str(tmp_path))
        inputs = kernel.inputs(problem, np.random.default_rng(number))
        given = {n: cupy.asarray(v) if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
        function = getattr(import_module(package), name)(**vars(problem))
        result = function(**given)
        specs = kernel.arrays(problem)
        made = [n for n, spec in specs.items() if spec.written and not spec.read]
        updated = {n: given[n] for n, spec in specs.items() if spec.written and spec.read}
        outputs = dict(zip(made, result if len(made) > 1 else [result], strict=True)) if made else {}
        outputs |= updated
        reference = kernel.reference(problem, **inputs)
        for output, array in outputs.items():
            found = compare_arrays(array.get(), reference[output], tolerance_of(kernel, problem, output))
            assert found.n_bad == 0, (problem, output, found)
        del sys.modules[package]
