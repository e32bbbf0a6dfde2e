"""Right kernels and wrong twins of them, for each type, way of writing and initial content: who is called what.

A call has the right kernel as its first config, and as the others twins of it which

    1  write in another way: set where it adds, add where it sets, write what it leaves alone
    2  skip the last element
    3  do nothing
    4  keep old values, unless they are zero

``python -m tests.porting.twins`` runs the whole table, which takes minutes, and prints it; ``--device cuda`` on a GPU.
"""

import argparse
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (its import makes bfloat16 a type of NumPy's)
import numpy as np

from autotune import UsageError
from autotune.kernel_tuner import tune_kernel

N, N_BINS = 840, 105
TWINS = ("right", "another way", "skips the last", "does nothing", "keeps old values")
TYPES = {
    "float16": "__half",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "complex64": "float2",
    "complex128": "double2",
    "bfloat16": "unsigned short",  # its bits, since host has no __nv_bfloat16
}
WAYS = ("set", "add", "atomicAdd", "atomicMax", "part", "in place")
CONTENTS = ("zeros", "ones", "nan", "large", "the answer")
ATOL = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}
SOURCE = """
#include <%(header)s>
typedef %(type)s T;
__device__ T plus(T a, T b) { %(plus)s }
__device__ bool is_zero(T a) { %(is_zero)s }
__device__ void add_to(T *y, T x) { %(add_to)s }
__device__ void max_to(T *y, T x) { %(max_to)s }

__global__ void write(T *y, const T *x, int n)
{
    const int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i >= n - (twin == 2 ? 1 + %(n_rest)d : 0) || twin == 3) return;
    if (twin == 4 && !is_zero(y[%(place)s])) return;
    %(body)s
}
"""
BODIES = {  # way: what the right kernel does, and the first twin
    "set": ("y[i] = x[i];", "y[i] = plus(y[i], x[i]);"),
    "add": ("y[i] = plus(y[i], x[i]);", "y[i] = x[i];"),
    "atomicAdd": ("add_to(y + i % bins, x[i]);", "if (i < bins) y[i] = x[i];"),
    "atomicMax": ("max_to(y + i % bins, x[i]);", "if (i >= n - bins) y[i % bins] = x[i];"),
    "part": ("if (i > 0 && i < n - 2) y[i] = x[i];", "y[i] = x[i];"),
    "in place": ("y[i] = plus(y[i], y[i]);", "y[i] = plus(y[i], x[i]);"),
}


@dataclass(frozen=True)
class Case:
    """One call: a type, a way of writing and an initial content."""

    dtype: str
    way: str
    content: str

    def source(self, device: str) -> str:
        is_complex, is_half = self.dtype.startswith("complex"), self.dtype == "float16"
        right, other = (text.replace("bins", str(N_BINS)) for text in BODIES[self.way])
        parts = {
            "type": TYPES[self.dtype],
            "header": "cuda_fp16.h",
            "plus": "return a + b;",
            "is_zero": "return a == T(0);",
            "add_to": "",
            "max_to": "",
            "n_rest": 2 if self.way == "part" else 0,
            "place": f"i % {N_BINS}" if self.way.startswith("atomic") else "i",
            "body": f"if (twin == 1) {{ {other} }} else {{ {right} }}",
        }
        if is_complex:
            parts |= {"plus": "a.x += b.x; a.y += b.y; return a;", "is_zero": "return a.x == 0 && a.y == 0;"}
        if is_half:
            parts |= {
                "plus": "return __float2half(__half2float(a) + __half2float(b));",
                "is_zero": "return __half2float(a) == 0.0f;",
            }
        if self.dtype == "bfloat16" and device != "host":
            parts |= {"type": "__nv_bfloat16", "header": "cuda_bf16.h"}
            parts["plus"] = "return __float2bfloat16(__bfloat162float(a) + __bfloat162float(b));"
            parts["is_zero"] = "return __bfloat162float(a) == 0.0f;"
        elif self.dtype == "bfloat16":
            wide = "__uint_as_float((unsigned){} << 16)"
            total = f"unsigned u = __float_as_uint({wide.format('a')} + {wide.format('b')});"
            parts["plus"] = f"{total} return T((u + 0x7fff + ((u >> 16) & 1)) >> 16);"
            parts["is_zero"] = "return (a & 0x7fff) == 0;"
        if self.way == "atomicAdd":
            plain, whole = "atomicAdd(y, x);", "atomicAdd((unsigned long long *)y, (unsigned long long)x);"
            of_parts = "atomicAdd(&y->x, x.x); atomicAdd(&y->y, x.y);"
            parts["add_to"] = of_parts if is_complex else whole if self.dtype == "int64" else plain
        if self.way == "atomicMax":
            parts["max_to"] = "atomicMax(y, x);"
        return SOURCE % parts

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the output before the launch, the input, and the output after it."""
        rng = np.random.default_rng(zlib.crc32(f"{self.dtype} {self.way}".encode()))
        dtype = np.dtype(self.dtype)
        x = _values(rng, dtype)
        n = N_BINS if self.way.startswith("atomic") else N
        if self.way == "atomicMax":
            x[-1] = 9
        y = self._content(n, dtype)
        if self.way == "in place":
            y = x.copy() if self.content == "zeros" else (y + x).astype(dtype)
        if self.content == "the answer":
            y[...] = self._answer(np.zeros_like(y), x)
        return y, x, self._answer(y, x)

    def _content(self, n: int, dtype: np.dtype[Any]) -> np.ndarray:
        adds = self.way not in ("set", "part")
        if dtype.kind == "i":
            large = 40.0 if adds else float(2 ** (8 * dtype.itemsize - 2))
        else:
            large = (
                (8.0 if dtype.itemsize == 2 else 300.0) if adds else 1e-5 * float(np.finfo(_numbers(dtype)).max) ** 0.5
            )
        fill = {"zeros": 0.0, "ones": 1.0, "nan": np.nan, "large": large, "the answer": 0.0}
        return np.full(n, fill[self.content], dtype)

    def _answer(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.way == "set":
            return x.copy()
        if self.way == "add":
            return (y + x).astype(y.dtype)
        if self.way == "in place":
            return (y + y).astype(y.dtype)
        after = y.copy()
        if self.way == "part":
            after[1 : N - 2] = x[1 : N - 2]
        elif self.way == "atomicMax":
            after = np.maximum(after, x.reshape(-1, N_BINS).max(axis=0))
        else:
            wide = np.complex128 if y.dtype.kind == "c" else np.float64 if y.dtype.kind == "f" else np.int64
            after = y.astype(wide) + x.reshape(-1, N_BINS).astype(wide).sum(axis=0)
        return after

    def wrongs(self, results: Path, device: str = "host") -> list[str]:
        """Returns what is called otherwise than it is."""
        y, x, answer = self.arrays()
        try:
            found, _ = tune_kernel(
                "write",
                self.source(device),
                N,
                [y, x, np.int32(N)],
                {"block_size_x": [96], "twin": list(range(len(TWINS)))},
                answer=[answer, None, None],
                atol=ATOL.get(self.dtype, 1e-9),
                iterations=3,
                device=device,
                results=results,
                quiet=True,
            )
        except UsageError as error:
            return [f"refused: {error}"]
        trials = {trial["twin"]: trial for trial in found.sweep.trials.to_dict("records")}
        return [
            f"{name}: {trials[i]['status']} {trials[i]['message'][:100]}"
            for i, name in enumerate(TWINS)
            if (trials[i]["status"] == "measured") != (i == 0)
        ]


def _numbers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the type whose range a type has."""
    return np.dtype(np.float32) if dtype.name == "bfloat16" else dtype


def _values(rng: np.random.Generator, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns numbers of which none is zero, and of which a few can be added in any type."""
    if dtype.kind == "i":
        return (rng.integers(1, 8, N) * rng.choice([-1, 1], N)).astype(dtype)
    real = rng.uniform(0.5, 2.0, (2, N)) * rng.choice([-1, 1], (2, N))
    return (real[0] + 1j * real[1] if dtype.kind == "c" else real[0]).astype(dtype)


def cases() -> Iterator[Case]:
    """Yields every case that CUDA, and the mathematics, have."""
    for dtype in TYPES:
        kind = np.dtype(dtype).kind
        for way in WAYS:
            if way == "atomicAdd" and dtype in ("int8", "int16", "float16", "bfloat16"):
                continue
            if way == "atomicMax" and dtype not in ("int32", "int64"):
                continue
            for content in CONTENTS:
                if content == "nan" and (kind == "i" or way != "set"):
                    continue  # what stays a NaN is not an answer
                if content == "the answer" and way in ("add", "atomicAdd", "in place"):
                    continue  # such a kernel changes whatever it finds
                yield Case(dtype, way, content)


def main() -> int:
    """Prints the table: of each call "ok", or what is called otherwise than it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="host", help="auto, host or cuda")
    device = parser.parse_args().device
    with tempfile.TemporaryDirectory() as folder:
        n_wrong = 0
        for number, case in enumerate(cases()):
            wrongs = case.wrongs(Path(folder) / str(number), device)
            n_wrong += len(wrongs)
            print(f"{case.dtype:11s}{case.way:11s}{case.content:11s} {'; '.join(wrongs) or 'ok'}", flush=True)
        print(f"{n_wrong} of {(number + 1) * len(TWINS)} kernels are called otherwise than they are")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
