"""Kernels of plain CUDA, run on host and compiled for a GPU from the definition that is written of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune import Config
from autotune.devices import device_module, find_device
from autotune.devices.cuda import of_architecture
from autotune.porting.answers import Outputs
from autotune.porting.call import Call, read_call
from autotune.porting.definition_writer import write_definition
from autotune.porting.formulas import Formulas
from autotune.porting.sizes import sizes_of_call
from autotune.rendering.render import Variant, render
from autotune.runtime import nvrtc
from autotune.source.registry import load_kernel

N = 100
PARAMETERS = "(float *y, const float *x, int n)"
BODY = "{ int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }\n"
X = np.arange(N, dtype=np.float32)


def call_of(source: Any, name: str = "f", arguments: Sequence[object] = (), **space: Sequence[object]) -> Call:
    """Returns a call of a kernel, which is by default one that doubles ``X``."""
    given = arguments or [np.zeros_like(X), X, np.int32(N)]
    return read_call(name, source, N, given, {"block_size_x": [64], **space})


def variant_of(call: Call, results: Path, config: Mapping[str, Any]) -> Variant:
    """Returns a config of the call's definition."""
    kinds = {each.name: "inout" if each.may_be_written else "in" for each in call.arrays}
    kernel = load_kernel(str(write_definition(Formulas.of(call, sizes_of_call(call)), Outputs(kinds), results)))
    return render(kernel, kernel.tuned[0], Config(config))


def outputs_of_call(call: Call, results: Path, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns what arrays hold after a config was launched on host; checks that it compiles for a GPU, too.

    The GPU's compiler must find one function, the kernel's.
    """
    variant = variant_of(call, results, config)
    if nvrtc.available() is None:
        assert device_module("cuda").compile(variant, of_architecture("sm_90")).registers is not None
    host = find_device("host")
    binary = host.module.compile(variant, host.device, ["check"])
    session = host.module.open(host.identifier)
    launch = Formulas.of(call, sizes_of_call(call)).said(config)
    arrays = [each for each in call.arrays if each.parameter is not None]
    buffers = {
        each.name: session.buffer(each.name, each.memory.stored.shape, each.memory.stored.dtype, written=True)
        for each in arrays
    }
    for each in arrays:
        buffers[each.name].write(each.memory.stored)
    arguments = [buffers[each.name] if each.is_array else each.number for each in call.arguments]
    kernel = load_kernel(str(next((results / "definitions").glob(f"{call.name}-*/{call.name}.py"))))
    geometry = kernel.launch(kernel.tuned[0], Config(config))
    assert geometry.grid == launch.grid and (geometry.function or call.name) == (launch.function or call.name)
    session.load(binary, "check").launch(geometry, arguments)
    return {name: buffer.read() for name, buffer in buffers.items()}
