"""Writes the two files of a new kernel: a working vector addition for the user to edit."""

import keyword
import sys
from pathlib import Path

from ..core.errors import UsageError
from ..core.files import check_free, write_whole

CPP_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr
continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
IMPORTED = ("autotune", "cupy", "numpy", "torch")  # modules that definitions and users of packages import

DEFINITION = '''"""total = first + second, element by element.

autotune list   --kernel KERNEL.py                       the problem, and how many configurations
autotune verify --kernel KERNEL.py --device host --all   is each of them right? on the CPU, races and bounds checked
autotune sweep  --kernel KERNEL.py                       which is fastest here?
"""

from dataclasses import dataclass

import numpy as np

from autotune import Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """The sizes. A runtime(...) field is an argument of the kernel; a baked(...) one is a constant of its source."""

    n: int = runtime(1 << 26, "elements; any positive number")


SPACE = Space(  # the parameters, and the values that each may have
    WGS=(64, 128, 256),  # threads of a block
    COARSEN=(1, 2, 4),  # elements of a thread
)


@SPACE.constraint("a block covers at most 512 elements")  # refuses configurations, and says why
def block_is_small(problem: Problem, config: Config, device: object) -> bool:
    return config.WGS * config.COARSEN <= 512


class CLASS(Kernel[Problem]):
    """first, second -> total."""

# CALLED
    space = SPACE
    host_sizes = {"n": 100_000}  # smaller, since the CPU is slower than a GPU

    def arrays(self, problem: Problem) -> dict:
        """Every array argument: dtype and shape. Edge sizes to check, and bytes to move, follow from them."""
        return {
            "total": array_out(np.float32, problem.n),
            "first": array_in(np.float32, problem.n),
            "second": array_in(np.float32, problem.n),
        }

    def launch(self, problem: Problem, config: Config) -> Launch:
        """Grid and block."""
        return Launch((ceil_div(problem.n, config.WGS * config.COARSEN), 1, 1), (config.WGS, 1, 1))

    def work(self, problem: Problem) -> Work:
        """One addition an element."""
        return Work(flops=problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict:
        """Random inputs, so that a result in the wrong place is noticed."""
        return {name: rng.normal(size=problem.n).astype(np.float32) for name in ("first", "second")}

    def reference(self, problem: Problem, first: np.ndarray, second: np.ndarray) -> dict:
        """The expected result in float64, in the plainest NumPy."""
        return {"total": first.astype(np.float64) + second}

    def tolerance(self, problem: Problem) -> Tolerance:
        """One rounding of float32."""
        return Tolerance(rtol=2**-23)
'''

TEMPLATE = """{# KERNEL: total = first + second.  Definition: KERNEL.py, beside this file #}
// total   out  float [n]
// first   in   float [n]
// second  in   float [n]
// Work    one thread <-> COARSEN elements, WGS apart, so that a warp reads and writes contiguously

constexpr int WGS = {{ config.WGS }};  // threads of a block
constexpr int COARSEN = {{ config.COARSEN }};  // elements of a thread

extern "C" __global__ __launch_bounds__(WGS)
void KERNEL(float* __restrict__ total, const float* __restrict__ first, const float* __restrict__ second, int n)
{
#pragma unroll
    for (int i = 0; i < COARSEN; i++) {
        const unsigned k = (blockIdx.x * COARSEN + i) * WGS + threadIdx.x;
        if (k < n)  // the last block is longer than what is left
            total[k] = first[k] + second[k];
    }
}
"""


def write_starter(name: str, folder: Path) -> tuple[Path, Path]:
    """Writes ``<name>.py`` and ``<name>.cu.j2`` into ``folder``, which is created if missing. Returns the paths.

    Raises:
        UsageError: when the name is not valid for a kernel, a file exists already, or cannot be written.
    """
    _check_name(name)
    called = "" if _class_name(name).lower() == name else f'    kernel_name = "{name}"  # also the CUDA function\n'
    texts = {folder / f"{name}.py": DEFINITION, folder / f"{name}.cu.j2": TEMPLATE}
    for path in texts:
        check_free(path)
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            own = text.replace("KERNEL", name).replace("CLASS", _class_name(name)).replace("# CALLED\n", called)
            made.append(write_whole(path, own.encode()))
    except OSError as error:
        for path in made:
            path.unlink()  # one of them alone is of no use
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    definition, template = texts
    return definition, template


def _check_name(name: str) -> None:
    if not (name.isascii() and name.isidentifier() and name == name.lower()) or name.startswith("_"):
        raise UsageError(f"{name!r} cannot be a kernel's name; use lower-case letters, digits and _, as in my_kernel")
    if keyword.iskeyword(name) or name in CPP_WORDS.split():
        raise UsageError(f"{name!r} is a keyword of Python or C++ and cannot name a function; write {name}_1, say")
    if name in sys.stdlib_module_names or name in IMPORTED:
        raise UsageError(f"{name!r} is a Python module, which {name}.py would hide; write {name}_1, say")


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
