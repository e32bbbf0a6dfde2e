"""A definition that launches an instance of a template, from its text to both devices."""

from pathlib import Path

from autotune.devices import host
from autotune.devices.cuda import compile as compile_for_gpu
from autotune.devices.cuda import of_architecture
from autotune.rendering.render import render
from autotune.runtime import nvrtc
from autotune.source.registry import load_kernel
from autotune.trial.verify import verify

DEFINITION = '''"""Scales a vector."""

from dataclasses import dataclass

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, array_in, array_out, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    n: int = runtime(1000)


class Scale(Kernel[Problem]):
    """y = 2 x."""

    space = Space(WIDTH=(32, 64), IS_LAST=(False, True))
    arguments = ("y", "x", "n")

    def arrays(self, problem):
        return {"y": array_out(np.float32, problem.n), "x": array_in(np.float32, problem.n)}

    def launch(self, problem, c):
        function = f"own::scale<float, {c.WIDTH}>"
        last = Launch((1, 1, 1), (32, 1, 1), function="own::end<3>") if c.IS_LAST else None
        return Launch((ceil_div(problem.n, c.WIDTH), 1, 1), (c.WIDTH, 1, 1), function=function, then=last)

    def inputs(self, problem, rng):
        return {"x": rng.standard_normal(problem.n).astype(np.float32)}

    def reference(self, problem, x):
        return {"y": 2.0 * x}

    def tolerance(self, problem):
        return Tolerance(rtol=1e-6)
'''
TEMPLATE = """namespace own {
template <class T, int WIDTH> __global__ void scale(T* y, const T* x, int n)
{
    const int i = blockIdx.x * WIDTH + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
template <int N> __global__ void end(float* y, const float* x, int n)
{
    if (threadIdx.x < N && threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x];
}
}
"""


def test_an_instance_is_compiled_verified_and_has_a_key_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(DEFINITION)
    (tmp_path / "scale.cu.j2").write_text(TEMPLATE)
    kernel = load_kernel(str(tmp_path / "scale.py"))
    problem, keys, session = kernel.problem(), set(), host.open("host")
    for words in ({"WIDTH": 32}, {"WIDTH": 64}, {"WIDTH": 64, "IS_LAST": True}):
        config = kernel.space.parse({"IS_LAST": False, **words})
        variant = render(kernel, problem, config)
        keys.add(variant.key)
        assert variant.kernel == f"own::scale<float, {config.WIDTH}>"
        assert variant.also == (("own::end<3>",) if config.IS_LAST else ())
        assert variant.source.splitlines()[1] == f"// {', '.join((variant.kernel, *variant.also))}"
        verify(session, kernel, problem, config, host.compile(variant, host.DEVICE), full=True)
        if nvrtc.available() is None:
            binary = compile_for_gpu(variant, of_architecture("sm_90"))
            assert set(binary.symbols) == {variant.kernel, *variant.also}
    assert len(keys) == 3
