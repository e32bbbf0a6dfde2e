"""Constant memory and structures by value on devices: what is there at a launch, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune import Launch, TrialFailure
from autotune.core.definition import BEYOND_CONSTANTS, array_constant
from autotune.devices import cuda, find_device
from autotune.devices.base import Binary, Constant
from autotune.devices.host.session import HostFunction
from autotune.rendering.render import Variant, render
from autotune.runtime import nvrtc
from autotune.runtime.cubin import constant_bytes, parameter_bytes
from autotune.source.registry import load_kernel
from autotune.trial.verify import Verdict, verify

from ..conftest import DEFINITIONS
from .bench import Bench, variant

ONE = Launch((1, 1, 1), (1, 1, 1))
TABLE = """
__constant__ float d_table[4];
namespace inner { __constant__ float d_hidden[4]; }
__constant__ const float D_FIXED[2] = {1.0f, 2.0f};
extern "C" __global__ void look_up(float* out, int i) { out[0] = d_table[i] + inner::d_hidden[i] + D_FIXED[i]; }
"""
WRITES = """
__constant__ float d_table[4];
extern "C" __global__ void look_up(float* out, int i) { float* table = (float*)d_table; table[i] = out[0] = 1.0f; }
"""
ALIGNED = """
struct __align__(16) Four { float x, y, z, w; };
struct Pair { char kind; Four four; };
extern "C" __global__ void unpack(float* out, char first, Pair pair, const Four four)
{
    out[0] = pair.four.w + pair.kind + first;
    out[1] = four.w;
}
"""
FOUR = np.dtype([(name, "f4") for name in "xyzw"], align=True)
PAIR = np.dtype({"names": ["kind", "four"], "formats": ["i1", FOUR], "offsets": [0, 16], "itemsize": 32}, align=True)
SHORT = np.dtype([("kind", "i1"), ("four", FOUR)], align=True)


def rendered(name: str, was: str = "", now: str = "") -> tuple[Any, Any, Variant]:
    """A definition, its default config, and its variant with some text replaced."""
    kernel = load_kernel(str(DEFINITIONS / f"{name}.py"))
    config = kernel.default_config(kernel.tuned[0], find_device("host").device)
    made = render(kernel, kernel.tuned[0], config)
    assert was in made.numbered
    return kernel, config, replace(made, source=made.source.replace(was, now), numbered=made.numbered.replace(was, now))


def verified(bench: Bench, name: str, was: str = "", now: str = "") -> Verdict:
    kernel, config, changed = rendered(name, was, now)
    binary = bench.target.module.compile(changed, bench.session.device)
    return verify(bench.session, kernel, kernel.tuned[0], config, binary)


def looked_up(bench: Bench, text: str, build: str, constant: Constant, i: int = 2) -> float:
    out = bench.session.buffer("out", (1,), np.dtype("f4"), written=True)
    try:
        bench.load(text, "look_up", build).launch(ONE, [out, np.int32(i), constant])
        return float(out.read()[0])
    finally:
        out.free()


@pytest.mark.parametrize("name", ["convolve", "saxpy"])
def test_definitions_are_verified_at_every_edge(bench: Bench, name: str) -> None:
    assert len(verified(bench, name).verified_on) >= 3  # two of the definition, and drawn ones


@pytest.mark.parametrize("was", ["d_filter[i * N_SIDE + j]", "sum = 0.0f"])
def test_a_wrong_filter_is_found(bench: Bench, was: str) -> None:
    now = {"d": "d_filter[j * N_SIDE + i]", "s": "sum = d_filter[0]"}[was[0]]
    with pytest.raises(TrialFailure, match=r"^wrong: convolved"):
        verified(bench, "convolve", was, now)


def test_content_that_stays_from_the_case_before_is_found(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fill, filled = HostFunction._filled, []

    def once(self: HostFunction, constants: Any) -> Any:
        filled.append(constants)
        return fill(self, constants if len(filled) == 1 else {})

    monkeypatch.setattr(HostFunction, "_filled", once)
    with pytest.raises(TrialFailure, match=r"^wrong: convolved.* \(at n_side=5,n_rows=2,n_columns=33, check build\)"):
        verified(host, "convolve")


def test_variables_that_are_too_small_or_missing_are_told(bench: Bench) -> None:
    with pytest.raises(
        TrialFailure, match=r"__constant__ d_filter has 20 bytes in the source, the array 100 \(float32"
    ):
        verified(bench, "convolve", "[N_SIDE * N_SIDE]", "[N_SIDE]")
    with pytest.raises(TrialFailure, match=r"d_filter is array_constant\(\), but the source declares no such"):
        verified(bench, "convolve", "d_filter", "d_weights")
    build = bench.session.timed_build
    for name in ("inner::d_hidden", "d_hidden", "D_FIXED"):
        if bench.target.kind == "host" or name != "D_FIXED":  # a GPU lets a host write what kernels may not
            with pytest.raises(TrialFailure, match="outside of namespaces"):
                looked_up(bench, TABLE, build, Constant(name.rpartition(":")[2], np.zeros(2, np.float32)))
    with pytest.raises(TrialFailure, match="has 16 bytes in the source, the array 20"):
        looked_up(bench, TABLE, build, Constant("d_table", np.zeros(5, np.float32)))


def test_each_launch_has_its_own_content(bench: Bench) -> None:
    for build in bench.builds:
        for values in ([1, 2, 3, 4], [5, 6, 7]):  # the variable may be larger
            table = Constant("d_table", np.array(values, np.float32))
            assert looked_up(bench, TABLE.replace("D_FIXED[i]", "D_FIXED[0]"), build, table) == values[2] + 1


def test_a_kernel_that_writes_its_constants_is_stopped(host: Bench) -> None:
    with pytest.raises(TrialFailure, match=r"write to the read-only buffer d_table\+8"):
        looked_up(host, WRITES, "check", Constant("d_table", np.zeros(4, np.float32)))
    with pytest.raises(TrialFailure, match="index outside the bounds of an array"):
        looked_up(host, TABLE, "check", Constant("d_table", np.zeros(4, np.float32)), 4)


def test_structures_have_the_alignment_of_the_source(bench: Bench) -> None:
    four = np.void((1, 2, 3, 4), dtype=FOUR)
    out = np.zeros(2, np.float32)
    for build in bench.builds:
        given = {"out": out, "first": np.int8(1), "pair": np.void((7, (1, 2, 3, 40)), dtype=PAIR), "four": four}
        found = bench.run("unpack", given, ONE, build=build, outputs=["out"], text=ALIGNED)["out"]
        np.testing.assert_array_equal(found, [48, 4])
        short = {**given, "pair": np.void((7, (1, 2, 3, 40)), dtype=SHORT)}
        told = r"(pair is a structure of 32 bytes, the argument|parameter 2 is a structure of 20 bytes, 32 in)"
        with pytest.raises(TrialFailure, match=told):
            bench.run("unpack", short, ONE, build=build, outputs=["out"], text=ALIGNED)


def test_cubins_tell_variables_and_parameters() -> None:
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)
    device = cuda.of_architecture("sm_90")
    kernel, _, plain = rendered("convolve")
    binary: Binary = cuda.compile(plain, device)
    assert constant_bytes(binary.files["cubin"].read_bytes()) == {"d_filter": 100, BEYOND_CONSTANTS: 256}
    assert kernel.arrays(kernel.tuned[0])["d_filter"] == array_constant(np.float32, 5, 5)
    with pytest.raises(TrialFailure, match="definition_failed: convolve: __constant__ d_filter has 20 bytes"):
        cuda.compile(rendered("convolve", "[N_SIDE * N_SIDE]", "[N_SIDE]")[2], device)
    table = nvrtc.compile_cubin(TABLE, "look_up", "sm_90").data
    assert {"d_table": 16, "D_FIXED": 8}.items() <= constant_bytes(table).items()
    aligned = nvrtc.compile_cubin(variant(ALIGNED, "unpack").source, "unpack", "sm_90").data
    assert parameter_bytes(aligned, "unpack") == (8, 1, 32, 16)
    assert parameter_bytes(aligned, "another") == ()
