"""Writes definitions of kernels that are wrong for one remainder, one kind of values or after some launches, and right
twins of them. It knows nothing of how kernels are checked.

Each kernel is a folder with NAME.py and NAME.cu.j2, as a user writes them. A seed draws families, faults and sizes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEFINITION = '''from dataclasses import dataclass

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, array_in, array_out, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
{fields}


class Generated(Kernel[Problem]):
    """A kernel: {family}."""

    kernel_name = "{name}"
    space = Space(BLOCK={blocks}, ITEMS={items})
    arguments = {arguments}

    def arrays(self, problem):
        return {{"y": array_out(np.dtype("{out}"), *{shape}), "x": array_in(np.float32, *{shape})}}

    def launch(self, problem, c):
        return Launch({grid}, {block})

    def inputs(self, problem, rng):
        return {{"x": ({inputs}).astype(np.float32)}}

    def reference(self, problem, x):
        x = x.astype(np.float64)
        return {{"y": {reference}}}

    def tolerance(self, problem):
        return {tolerance}
'''
# {value}: of element i, or of row r and column c. BAD(size): whether the fault shows. {fault}: what it does to v.
FLAT = """
{head}
extern "C" __global__ void {name}(float* y, const float* x, int n)
{{
    {begin}
    const int first = (blockIdx.x * {{{{ config.BLOCK }}}} + threadIdx.x) * {{{{ config.ITEMS }}}};
    for (int i = first; i < n && i < first + {{{{ config.ITEMS }}}}; ++i) {{
        const float a = x[i];
        float v = {value};
        {fault}
        y[i] = v;
    }}
}}
"""
VECTORS = """
{head}
extern "C" __global__ void {name}(float* y, const float* x, int n)
{{
    {begin}
    const int n_whole = n / {width};
    const int step = gridDim.x * {{{{ config.BLOCK }}}};
    for (int k = blockIdx.x * {{{{ config.BLOCK }}}} + threadIdx.x; k < n_whole; k += step)
        for (int j = 0; j < {width}; ++j) {{
            const float a = x[k * {width} + j];
            y[k * {width} + j] = {value};
        }}
    if (blockIdx.x == gridDim.x - 1)
        for (int i = n_whole * {width} + threadIdx.x; i < n; i += {{{{ config.BLOCK }}}}) {{
            const float a = x[i];
            float v = {value};
            {fault}
            y[i] = v;
        }}
}}
"""
STENCIL = """
{head}
extern "C" __global__ void {name}(float* y, const float* x, int n)
{{
    {begin}
    __shared__ float tile[{{{{ config.BLOCK }}}} + 2];
    for (int item = 0; item < {{{{ config.ITEMS }}}}; ++item) {{
        const int i = (blockIdx.x * {{{{ config.ITEMS }}}} + item) * {{{{ config.BLOCK }}}} + threadIdx.x;
        __syncthreads();
        tile[threadIdx.x + 1] = i < n ? x[i] : 0.0f;
        if (threadIdx.x == 0)
            tile[0] = i > 0 && i <= n ? x[i - 1] : 0.0f;
        if (threadIdx.x == {{{{ config.BLOCK }}}} - 1)
            tile[threadIdx.x + 2] = i + 1 < n ? x[i + 1] : 0.0f;
        __syncthreads();
        if (i < n) {{
            const float a = tile[threadIdx.x + 1];
            float v = 0.25f * tile[threadIdx.x] + 0.5f * a + 0.25f * tile[threadIdx.x + 2];
            {fault}
            y[i] = v;
        }}
    }}
}}
"""
ROWS = """
{head}
extern "C" __global__ void {name}(float* y, const float* x, int h, int n)
{{
    {begin}
    const int c = blockIdx.x * {{{{ config.BLOCK }}}} + threadIdx.x;
    for (int r = blockIdx.y * {{{{ config.ITEMS }}}}; r < h && r < (blockIdx.y + 1) * {{{{ config.ITEMS }}}}; ++r)
        if (c < n) {{
            const int i = r * n + c;
            const float a = x[i];
            float v = {value};
            {fault}
            y[i] = v;
        }}
}}
"""
SUMS = """
{head}
extern "C" __global__ void {name}(float* y, const float* x, int h, int n)
{{
    {begin}
    __shared__ float part[{{{{ config.BLOCK }}}}];
    const int r = blockIdx.x;
    float v = 0.0f;
    for (int c = threadIdx.x; c < n; c += {{{{ config.BLOCK }}}}) {{
        const int i = r * n + c;
        const float a = x[i];
        float w = {value};
        {fault}
        v += w;
    }}
    part[threadIdx.x] = v;
    __syncthreads();
    for (int k = {{{{ config.BLOCK }}}} / 2; k > 0; k /= 2) {{
        if (threadIdx.x < k)
            part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }}
    if (threadIdx.x == 0)
        y[r] = part[0];
}}
"""


@dataclass(frozen=True)
class Family:
    text: str
    fields: str
    arguments: tuple[str, ...]
    shape: str
    out_shape: str
    grid: str
    size: str  # the size with the remainders
    last: str  # whether an element is the last one
    changed: str = "v"


ONE, TWO = "    n: int = runtime(10007)", "    h: int = runtime(37)\n    n: int = runtime(1003)"
IN_BLOCKS = "(ceil_div(problem.n, c.BLOCK * c.ITEMS), 1, 1)"
FAMILIES = {
    "elements": Family(
        FLAT,
        ONE,
        ("y", "x", "n"),
        "(problem.n,)",
        "",
        "(ceil_div(problem.n, c.BLOCK * c.ITEMS), 1, 1)",
        "n",
        "i == n - 1",
    ),
    "vectors": Family(VECTORS, ONE, ("y", "x", "n"), "(problem.n,)", "", "(3 * c.ITEMS, 1, 1)", "n", "i == n - 1"),
    "stencil": Family(
        STENCIL,
        ONE,
        ("y", "x", "n"),
        "(problem.n,)",
        "",
        "(ceil_div(problem.n, c.BLOCK * c.ITEMS), 1, 1)",
        "n",
        "i == n - 1",
    ),
    "rows": Family(
        ROWS,
        TWO,
        ("y", "x", "h", "n"),
        "(problem.h, problem.n)",
        "",
        "(ceil_div(problem.n, c.BLOCK), ceil_div(problem.h, c.ITEMS), 1)",
        "n",
        "c == n - 1",
    ),
    "sums": Family(
        SUMS,
        TWO,
        ("y", "x", "h", "n"),
        "(problem.h, problem.n)",
        "(problem.h,)",
        "(problem.h, 1, 1)",
        "n",
        "c == n - 1",
        "w",
    ),
}
VALUES = {  # of a: CUDA, NumPy
    "scale": ("2.0f * a + 1.0f", "2 * x + 1"),
    "square": ("a * a", "x * x"),
    "leaky": ("a > 0 ? a : 0.125f * a", "np.where(x > 0, x, 0.125 * x)"),
    "absolute": ("fabsf(a)", "np.abs(x)"),
}
POSITIVE, NORMAL = "rng.uniform(0.5, 1.0, {0})", "rng.normal(size={0})"
OF_VALUES = {  # kind -> right, wrong, NumPy, inputs: wrong only for values that the inputs lack
    "large sigmoid": (
        "1 / (1 + expf(-a))",
        "expf(a) / (1 + expf(a))",
        "1 / (1 + np.exp(-np.clip(x, -700, 700)))",
        NORMAL,
    ),
    "large limit": ("a", "fminf(a, 90.0f)", "x", NORMAL),
    "tied rounding": ("rintf(a)", "roundf(a)", "np.rint(x)", NORMAL),
    "tied halves": ("rintf(4 * a)", "floorf(4 * a + 0.5f)", "np.rint(4 * x)", NORMAL),
    "negative floor": ("floorf(8 * a)", "truncf(8 * a)", "np.floor(8 * x)", POSITIVE),
    "negative absolute": ("fabsf(a)", "a", "np.abs(x)", POSITIVE),
    "zeros sign": ("a == 0 ? 0.0f : a / fabsf(a)", "a / fabsf(a)", "np.sign(x)", NORMAL),
    "zeros inverse": ("a == 0 ? 0.0f : 1 / a", "1 / a", "np.divide(1, x, out=0 * x, where=x != 0)", POSITIVE),
    "small flush": ("a", "fabsf(a) < 1e-3f ? 0.0f : a", "x", POSITIVE),
}
ODD = {  # right kernels that a checker may refuse, by the macro that allows each: what stands at their beginning
    "AUTOTUNE_EARLY_RETURNS": "if ((blockIdx.x * {{ config.BLOCK }} + threadIdx.x) * {{ config.ITEMS }} >= n) return;\n"
    "    __syncthreads();",
    "AUTOTUNE_UNSET_SHARED": "__shared__ float unset[64];\n    if (unset[threadIdx.x % 64] > 2e38f && n < 0) y[0] = 1;",
    "AUTOTUNE_INTS_WRAP": "int hash = n;\n    for (int k = 0; k < 40; ++k) hash = hash * 31 + 7;\n"
    "    if (hash == 0 && n < 0) y[0] = hash;",
}


@dataclass(frozen=True)
class Drawn:
    """A kernel: its name, whether it is right, and a text that says what is wrong or odd about it.

    ``needs``: the macro that allows what a checker may refuse of a right one; it is defined if ``is_right``.
    """

    name: str
    is_right: bool
    about: str
    needs: str = ""


def generate(folder: Path, seed: int, n: int) -> Iterator[Drawn]:
    """Writes ``n`` wrong kernels and their right twins, and yields them."""
    rng = random.Random(seed)
    for number in range(n):
        family = FAMILIES[chosen := rng.choice(list(FAMILIES))]
        kind = rng.choice(["remainder", "remainder", "values", "launches"])
        of, value = rng.choice(list(VALUES.items()))
        cuda, numpy, inputs = *value, rng.choice([NORMAL, POSITIVE])
        fault, twin, head, begin, wrong = "", "", "", "", cuda
        if chosen == "stencil":
            cuda = wrong = ""
            padded = "np.pad(x, 1)"
            numpy = f"0.25 * {padded}[:-2] + 0.5 * x + 0.25 * {padded}[2:]"
        if kind == "values" and chosen != "stencil":
            of = rng.choice(list(OF_VALUES))
            cuda, wrong, numpy, inputs = OF_VALUES[of]
            about = f"{chosen}: {of}"
        elif kind == "launches":
            k = rng.randint(1, 900)
            head = "__device__ unsigned n_launches;"
            begin = "if (blockIdx.x == 0 && threadIdx.x == 0 && blockIdx.y == 0) atomicAdd(&n_launches, 1u);"
            about = f"{chosen}: after {k} launches"
            fault = f"if ({family.last} && atomicAdd(&n_launches, 0u) > {k}) {family.changed} += 1.0f;"
            twin = f"if ({family.last} && atomicAdd(&n_launches, 0u) > 4000000000u) {family.changed} += 1.0f;"
        else:
            m = rng.randint(2, 32)
            s = rng.randrange(m)
            where = rng.choice([family.last, family.last, f"{family.last} && blockIdx.x == gridDim.x - 1"])
            if chosen == "vectors":
                m, s = (width := rng.choice([2, 4, 8, 16])), rng.randrange(1, width)
            effect = rng.choice(["= 0.0f", "*= 0.5f", "+= 1.0f"])
            fault = f"if ({family.size} % {m} == {s} && {where}) {family.changed} {effect};"
            twin = f"if ({family.size} % {m} == {s} && {where}) {family.changed} += 0.0f;"
            about = f"{chosen}: {family.size} % {m} == {s}"
        n_width = m if kind == "remainder" and chosen == "vectors" else rng.choice([2, 4, 8])
        begun = {"head": head, "begin": begin, "width": n_width}
        for is_right in (False, True):
            name = f"{'right' if is_right else 'wrong'}{number:03d}"
            text = family.text.format(
                name=name, value=cuda if is_right else wrong, fault=twin if is_right else fault, **begun
            )
            _write(folder, name, chosen, text, inputs, numpy)
            yield Drawn(name, is_right, about)
            if not number % 10 and is_right:
                yield from _odd(folder, number, rng.choice(list(ODD)))


def _odd(folder: Path, number: int, macro: str) -> Iterator[Drawn]:
    """Writes a right kernel that needs ``macro``, without and with it."""
    family, (cuda, numpy) = FAMILIES["elements"], VALUES["scale"]
    for is_right in (False, True):
        name = f"{'odd' if is_right else 'bare'}{number:03d}"
        head = f"#define {macro} 1" if is_right else ""
        text = family.text.format(name=name, head=head, begin=ODD[macro], value=cuda, fault="")
        _write(folder, name, "elements", text, NORMAL, numpy)
        yield Drawn(name, is_right, f"needs {macro}", macro)


def _write(folder: Path, name: str, chosen: str, text: str, inputs: str, numpy: str) -> None:
    """Writes a kernel of a family and its definition."""
    family, is_sums = FAMILIES[chosen], chosen == "sums"
    definition = DEFINITION.format(
        name=name,
        family=chosen,
        fields=family.fields,
        blocks=(32, 64, 128, 256) if is_sums else (32, 64, 96, 128, 256),
        items=(1, 2, 4, 8, 16),
        arguments=family.arguments,
        out="f4",
        shape=family.shape,
        grid=family.grid,
        block="(c.BLOCK, 1, 1)",
        inputs=inputs.format(family.shape),
        reference=f"({numpy}).sum(axis=1)" if is_sums else numpy,
        tolerance="Tolerance(rtol=1e-5, of_rms=1e-5)",
    ).replace(
        f'"y": array_out(np.dtype("f4"), *{family.shape})',
        f'"y": array_out(np.float32, *{family.out_shape or family.shape})',
    )
    (folder / name).mkdir(parents=True)
    (folder / name / f"{name}.cu.j2").write_text(text)
    (folder / name / f"{name}.py").write_text(definition)
