"""Compiles and runs the features, and writes what became of them as a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autotune import Launch, TrialFailure
from autotune.devices import find_device
from autotune.runtime.nvrtc import compile_cubin

from ..devices.bench import variant
from .expected import EXPECTED, X

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "cuda-features.md"
KERNEL = re.compile(r'extern "C" __global__[^;{]*?\b(\w+)\(const float\*')
FACTORS = np.zeros((), [("slope", np.float32), ("start", np.float32)])  # of grid_constants
FACTORS[()] = (2, 3)
ARCH = "sm_90"
GROUPS = {
    "language": "The language",
    "memory": "Memory",
    "atomics": "Atomics",
    "together": "Blocks and warps",
    "groups": "Cooperative groups",
    "numbers": "Numbers and headers",
}
TITLES = {  # where the kernel's name does not say it
    "constexpr_if": "`if constexpr`",
    "function_objects": "classes with `operator()`",
    "aligned_types": "`alignas`",
    "static_variables": "`static` variables of functions",
    "overloads_of_cudas": "overloads of CUDA's names (`rsqrtf(float2)`, `max(float2, float2)`)",
    "called_alike": "a device function called like the kernel",
    "launch_bounds": "`__launch_bounds__`, `__restrict__`, `#pragma unroll`",
    "assumptions": "`__builtin_assume` and its like",
    "constant_memory": "`__constant__`",
    "device_variables": "`__device__` variables",
    "grid_constants": "`__grid_constant__`",
    "cache_hints": "`__ldg`, `__ldcs`, `__stcs` and the like",
    "bytes": "`memcpy`, `memset`",
    "pipelines": "`__pipeline_memcpy_async`",
    "group_memcpy_async": "`cooperative_groups::memcpy_async`",
    "fences": "`__threadfence`, `volatile`",
    "atomic_cas": "`atomicCAS`",
    "atomic_bits": "`atomicAnd`, `atomicOr`, `atomicXor`",
    "atomic_of_a_block": "`atomicAdd_block`",
    "block_votes": "`__syncthreads_count`, `_and`, `_or`",
    "warp_votes": "`__ballot_sync`, `__any_sync`, `__all_sync`",
    "shuffles": "`__shfl_sync`, `_up`, `_down`, `_xor`",
    "matches": "`__match_any_sync`, `__match_all_sync`",
    "warp_reductions": "`__reduce_add_sync` and its like",
    "active_masks": "`__activemask`",
    "warp_barriers": "`__syncwarp`",
    "sleep_and_clock": "`__nanosleep`, `clock64`",
    "bit_counts": "`__popc`, `__clz`, `__ffs`, `__brev`",
    "byte_selection": "`__byte_perm`, `__funnelshift_l`",
    "dot_products_of_bytes": "`__dp4a`",
    "integer_intrinsics": "`__mul24`, `__umulhi`, `__sad`, `__hadd`",
    "halves": "`cuda_fp16.h`",
    "bfloat16s": "`cuda_bf16.h`",
    "complex_numbers": "`cuComplex.h`",
    "printing": "`printf`",
    "assertions": "`assert`",
    "special_numbers": "`isnan`, `isinf`, `signbit`, `math_constants.h`",
    "mathematics": "`sincosf`, `rsqrtf`, `fmaf`, `powf`",
    "rounded_operations": "`__fmul_rn`, `__fmaf_rn`, `__float2int_rd` and the like",
    "c_headers": "headers of C and C++ (`stdint.h`, `cfloat`, `cmath`, `limits`)",
    "matrices": "`nvcuda::wmma`",
    "launches": "launches from device code (`<<<...>>>`)",
    "grid_sync": "`this_grid().sync()`",
    "clusters": "`this_cluster()`",
    "ptx": "`asm` with PTX",
    "named_barriers": "named barriers (`asm`, `bar.sync`)",
    "wgmma": "`wgmma` (`asm`)",
    "block_barriers": "`cuda::barrier`",
    "block_sum": "CUB (`cub/cub.cuh`)",
    "libcuxx": "`cuda/std/*`",
    "heap": "`malloc` in device code",
}
START = """# What of CUDA C++ works

Each line stands for a small kernel in `tests/cuda_features/`. A test compiles it by NVRTC, as for a GPU, and runs it on
[`host`](host.md), which must give NumPy's answer; `python -m tests.cuda_features` writes this page. A kernel that host
refuses is skipped there by name, and a GPU can tune it. CUB and `cuda/std` need CCCL's headers, which come with the
extras `cuda12` and `cuda13`; the headers of C and C++ come with autotune and with the packages that it emits.
"""


@dataclass(frozen=True)
class Feature:
    """A feature with what NVRTC and the host device make of it."""

    name: str
    group: str
    nvrtc: str
    host: str

    @property
    def title(self) -> str:
        return TITLES.get(self.name, self.name.replace("_", " "))


def features() -> Iterator[Feature]:
    """Compiles and runs all of them."""
    for group in GROUPS:
        text = (HERE / f"{group}.cu").read_text()
        names = KERNEL.findall(text)
        on_nvrtc, on_host = compiled(text, names), run(text, names)
        yield from (Feature(name, GROUPS[group], on_nvrtc, on_host[name]) for name in names)
    for path in sorted((HERE / "refused").glob("*.cu")):
        text = path.read_text()
        on_host = run(text, [path.stem])
        yield Feature(path.stem, "Of GPUs", compiled(text, [path.stem]), on_host[path.stem])


def compiled(text: str, names: list[str]) -> str:
    """Returns "compiles", or "refused"."""
    try:
        compile_cubin(text, names[0], ARCH, also=names[1:])
    except TrialFailure:
        return "refused"
    return "compiles"


def run(text: str, names: list[str], on: str = "host") -> dict[str, str]:
    """Returns "runs" for each kernel whose answer on a device is NumPy's, or what is wrong, or what the host lacks."""
    target = find_device(on)
    session = target.module.open(target.identifier)
    build = session.check_builds[0]
    try:
        given = replace(variant(text, names[0]), also=tuple(names[1:]))
        binary = target.module.compile(given, session.device, (build,))
    except TrialFailure as failure:
        return dict.fromkeys(names, _lacking(failure))
    function = session.load(binary, build)
    x = session.buffer("x", X.shape, X.dtype, written=False)
    y = session.buffer("y", X.shape, X.dtype, written=True)
    x.write(X)
    outcomes = {}
    for name in names:
        y.write(np.zeros_like(X))
        more = [FACTORS[()]] if name == "grid_constants" else []
        try:
            function.launch(Launch((2, 1, 1), (64, 1, 1), 1024, function=name), [x, y, *more], seed=len(outcomes))
        except TrialFailure as failure:
            outcomes[name] = _lacking(failure)
            continue
        right = np.allclose(y.read(), EXPECTED[name](), rtol=1e-6, atol=1e-6)
        outcomes[name] = "runs" if right and y.damage() is None else f"wrong: {y.read()[:4]}"
    return outcomes


def _lacking(failure: TrialFailure) -> str:
    found = re.search(r"the host device has (no [^;\[]*)", failure.message)
    return f"refused: {found[1].strip()}" if found else f"{failure.status}: {failure.message}"


def page(found: list[Feature]) -> str:
    """Returns the page, a table for each group."""
    lines = [START]
    for group in dict.fromkeys(feature.group for feature in found):
        lines.append(f"| {group} | NVRTC | host |\n| --- | --- | --- |")
        lines += [f"| {f.title} | {f.nvrtc} | {f.host} |" for f in found if f.group == group]
        lines.append("")
    return "\n".join(lines)
