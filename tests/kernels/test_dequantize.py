"""dequantize: the definition against its formula, variants of every parameter value against the definition, mutants."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from autotune.kernels.dequantize import Dequantize, Problem, rounded

from autotune import Config, UsageError
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, session_on
from .goldens import check_golden, write_goldens

KERNEL = Dequantize()
FLAT = Config(GRID="flat", WGS=128, LOAD=4, EXCHANGE="none", UNROLL=2, READ="plain", STORE="plain", AHEAD=0, RESERVED=0)
SHUFFLE = Config({**FLAT, "LOAD": 16, "EXCHANGE": "shuffle"})
ROWS = Config(GRID="rows", WGS=128, LOAD=8, EXCHANGE="shuffle", UNROLL=2, READ="plain", STORE="plain")
DEFAULT = KERNEL.tuned[0]
FLOAT16 = {"out_type": "float16"}
BFLOAT16 = {"out_type": "bfloat16"}
SCALED = {"scale_offset": True}
MISSING = {"missing": True}
PROBLEMS: list[dict[str, Any]] = [
    {},
    FLOAT16,
    BFLOAT16,
    MISSING,
    FLOAT16 | MISSING,
    BFLOAT16 | MISSING,
    SCALED,
    FLOAT16 | SCALED,
    BFLOAT16 | SCALED,
    SCALED | MISSING,
    FLOAT16 | SCALED | MISSING,
    BFLOAT16 | SCALED | MISSING,
]


# ---------------------------------------------------------------------- the definition
def in_words(pattern: int, out_type: str) -> float:
    """The number that bits of ``out_type`` stand for."""
    if out_type == "bfloat16":
        return float(np.array(pattern << 16, np.uint32).view(np.float32))
    return float(np.array(pattern, f"u{np.dtype(out_type).itemsize}").view(out_type))


@pytest.mark.quick
@pytest.mark.parametrize("values", PROBLEMS, ids=lambda values: "-".join(map(str, values.values())))
def test_reference_is_the_formula(values: dict[str, Any]) -> None:
    """Sample by sample, in Python's integers and float64, which hold scale x + offset without an error."""
    problem = KERNEL.problem({**values, "n_beams": 2, "n_freqs": 1, "n_times": 768})
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    got = KERNEL.reference(problem, **inputs)["values"]
    assert got.shape == (2, 1, 768) and got.dtype == KERNEL.arrays(problem)["values"].dtype
    for beam, t in np.ndindex(2, 768):
        byte = int(inputs["samples"][beam, 0, t // 2])
        x = byte >> 4 if t % 2 else byte & 15
        x = x - 16 if x >= 8 else x
        exact = float(x)
        if problem.scale_offset:
            scale, offset = map(float, inputs["scale_offset"][beam, 0, t // 256])
            exact = scale * x + offset
        if problem.missing and x == -8:
            exact = 0.0
        in_float32 = np.float32(exact)
        if problem.out_type == "bfloat16":
            bits = int(got[beam, 0, t])
            lower, found, upper = (in_words(bits + i, "bfloat16") if bits else float(i) for i in (-1, 0, 1))
            error = abs(found - float(in_float32))
            assert error <= min(abs(lower - float(in_float32)), abs(upper - float(in_float32)))
        else:
            assert got[beam, 0, t] == in_float32.astype(problem.out_type)


def test_every_sample_value_is_exact_in_every_type() -> None:
    samples = np.arange(256, dtype=np.uint8).reshape(1, 1, 256)
    for values in ({}, FLOAT16, BFLOAT16):
        problem = KERNEL.problem({**values, "n_beams": 1, "n_freqs": 1, "n_times": 512})
        found = KERNEL.reference(problem, samples=samples)["values"][0, 0]
        if values == BFLOAT16:
            found = (found.astype(np.uint32) << 16).view(np.float32)
        expected = [n - 16 if n >= 8 else n for byte in range(256) for n in (byte % 16, byte // 16)]
        np.testing.assert_array_equal(found.astype(float), expected)


def test_bfloat16_is_rounded_to_even() -> None:
    """One bit of bfloat16 is 2^-7 at 1: halves of it are ties."""
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8, 3.4e38, np.nan, 0.0, -0.0], np.float32)
    found = rounded(values, "bfloat16")
    np.testing.assert_array_equal(found, [0x3F80, 0x3F82, 0x3F81, 0xBF80, 0x7F80, 0x7FFF, 0, 0x8000])


@pytest.mark.parametrize("values", [{}, FLOAT16 | SCALED, BFLOAT16 | SCALED | MISSING], ids=["plain", "half", "all"])
def test_reference_is_the_same_across_its_chunks(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = KERNEL.problem({**values, "n_beams": 2, "n_freqs": 3, "n_times": 1280})
    inputs = KERNEL.inputs(problem, np.random.default_rng(3))
    whole = KERNEL.reference(problem, **inputs)["values"]
    monkeypatch.setattr("autotune.kernels.dequantize.REFERENCE_GROUPS", 4)
    np.testing.assert_array_equal(KERNEL.reference(problem, **inputs)["values"], whole)


def test_problems_that_cannot_be_say_why() -> None:
    with pytest.raises(UsageError, match="out_type=int8 must be float32, float16, bfloat16"):
        KERNEL.problem({"out_type": "int8"})
    with pytest.raises(UsageError, match="n_times=12 must be a multiple of 8, so that rows are whole words"):
        KERNEL.problem({"n_times": 12})
    with pytest.raises(UsageError, match="n_times=264 must be a multiple of 256, with scale_offset"):
        KERNEL.problem({"n_times": 264, "scale_offset": True})
    with pytest.raises(UsageError, match="n_beams=2, n_freqs=0, n_times=32768: each is at least 1"):
        KERNEL.problem({"n_freqs": 0})
    with pytest.raises(UsageError, match="scale_offset=2 must be true or false"):
        KERNEL.problem({"scale_offset": 2})


def test_sizes_follow_from_the_samples() -> None:
    problem = KERNEL.problem_for(SCALED, {"samples": np.zeros((3, 5, 256), np.uint8)})
    assert (problem.n_beams, problem.n_freqs, problem.n_times) == (3, 5, 512)
    assert KERNEL.arrays(problem)["scale_offset"].shape == (3, 5, 2, 2)


def test_there_is_a_scale_offset_only_where_the_problem_has_one() -> None:
    assert KERNEL.arguments_for(KERNEL.problem(SCALED)) == KERNEL.arguments
    assert "scale_offset" not in (*KERNEL.arguments_for(DEFAULT), *KERNEL.arrays(DEFAULT))


# ---------------------------------------------------------------------- limits
@pytest.mark.parametrize(("values", "allowed"), [({"n_freqs": 65535}, True), ({"n_freqs": 65536}, False)])
def test_rows_are_as_many_as_a_grid_has(values: dict[str, int], allowed: bool) -> None:
    """y and z of a grid end at 65,535; its x axis, which flat uses, at 2^31 - 1."""
    device = find_device("host").device
    for n in (values, {"n_freqs": 1, "n_beams": values["n_freqs"]}):
        problem = KERNEL.problem({**n, "n_times": 64})
        broken = KERNEL.space.broken(problem, ROWS, device)
        assert (broken is None) == allowed
        assert broken is None or broken.name == "grid_fits"
        assert KERNEL.space.broken(problem, FLAT, device) is None


def test_a_flat_grid_serves_every_number_of_frequencies() -> None:
    gpu = Device("a GPU", "cuda", "sm_90")
    for n_freqs, n_times in ((262144, 32768), (2**31 - 1, 8), (2**31 - 1, 4096)):
        problem = KERNEL.problem({"n_beams": 1, "n_freqs": n_freqs, "n_times": n_times})
        configs = KERNEL.space.enumerate(problem, gpu).configs
        assert configs and all(config.GRID == "flat" for config in configs)
        assert all(KERNEL.launch(problem, config).grid[0] <= gpu.max_grid[0] for config in configs)


def test_every_problem_has_a_configuration() -> None:
    device = find_device("host").device
    for values in PROBLEMS:
        problem = KERNEL.problem(values)
        n = len(KERNEL.space.enumerate(problem, device).configs)
        assert 150 <= n <= 600, (values, n)
        KERNEL.default_config(problem, device)


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    for config in covering(KERNEL, DEFAULT, target):
        check(KERNEL, DEFAULT, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=lambda values: "-".join(map(str, values.values())))
def test_any_problem_is_right(values: dict[str, Any], target: Target) -> None:
    problem = KERNEL.problem(values)
    configs = KERNEL.space.enumerate(problem, target.device)
    for wanted in (FLAT, ROWS, SHUFFLE):
        check(KERNEL, problem, configs.nearest(wanted), target, session_on(target).check_builds[0])


@pytest.mark.parametrize("out_type", ["float32", "float16", "bfloat16"])
def test_scales_at_the_limits_of_float16(out_type: str, target: Target) -> None:
    """Infinities, subnormal numbers and zeros of both signs, which random inputs do not have."""
    problem = KERNEL.problem({**SCALED, "out_type": out_type, "n_beams": 1, "n_freqs": 1, "n_times": 4096})
    inputs = KERNEL.inputs(problem, np.random.default_rng(11))
    tiny = 2.0**-24
    pairs = [(65504, 65504), (-65504, 1), (tiny, 0), (tiny, -tiny), (0, -0.0), (-1, 0), (1, -3), (65504, 0.5)] * 2
    inputs["scale_offset"] = np.array(pairs, np.float16).reshape(1, 1, 16, 2)
    binary = target.module.compile(render(KERNEL, problem, SHUFFLE), target.device)
    session = session_on(target)
    with np.errstate(over="ignore"):  # of float16
        expected = KERNEL.reference(problem, **inputs)["values"]
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, SHUFFLE))
        got = placed.outputs()["values"]
    np.testing.assert_array_equal(got, expected)


LAST = "static_cast<int>(stored) + run * RUN + i * STEP"  # of a store: where it lies in its tile
MUTANTS: list[tuple[str, dict[str, Any], Config, str, str, str]] = [
    ("low nibble second", {}, FLAT, "position = I % 4 * 4", "position = (I ^ 1) % 4 * 4", ""),
    ("sign", {}, FLAT, "exponent | 8u << position", "exponent", ""),
    ("bias", {}, FLAT, "(1 << (23 - position)) + 8)", "(1 << (23 - position)) + 7)", ""),
    ("upper half of a word", BFLOAT16, FLAT, "word >> I / 4 * 16", "word", ""),
    ("halves in pairs", FLOAT16, FLAT, "high = 0x7632", "high = 0x5410", ""),
    ("bias of halves", FLOAT16, FLAT, "as_half2(0x64086408)", "as_half2(0x64006400)", ""),
    ("rounds down", BFLOAT16 | SCALED, SHUFFLE, "bits + 0x7fff + (bits >> 16 & 1)", "bits", ""),
    ("rounds ties up", BFLOAT16 | SCALED, SHUFFLE, "0x7fff + (bits >> 16 & 1)", "0x8000", ""),
    ("offset is scale", SCALED, SHUFFLE, "__high2float(scale_offset)", "__low2float(scale_offset)", ""),
    ("missing is scaled", SCALED | MISSING, SHUFFLE, "MISSING && x == -8.0f", "MISSING && x == -7.0f", ""),
    ("missing by two bits", MISSING, FLAT, "word << 1 | word << 2 | word << 3", "word << 1 | word << 2", ""),
    ("group of a store", SCALED, SHUFFLE, "i * STEP / GROUP_BYTES", "i * STEP / (2 * GROUP_BYTES)", ""),
    ("group of a run", SCALED, SHUFFLE, "run * RUN / GROUP_BYTES +", "0 +", ""),
    ("group of a tile", SCALED, FLAT, "scale_offset += begin / GROUP_BYTES", "scale_offset += 0", ""),
    ("no permuted load", {}, SHUFFLE, "lane % PIECES * (32 / PIECES) + lane / PIECES : lane", "lane : lane", ""),
    ("half-words not traded", {}, SHUFFLE, "? 0x3276 : 0x5410", "? 0x5410 : 0x5410", ""),
    ("words not traded", FLOAT16, SHUFFLE, "trade_words<2>(words, 2 * HALVES)", "", ""),
    ("trade in one direction", FLOAT16, SHUFFLE, "words[i] = upper ? received : words[i];", "", ""),
    ("row", {}, ROWS, "static_cast<long long>(gridDim.y) + blockIdx.y", "1ll + blockIdx.y", "wrong"),
    ("load that a row misaligns", {}, ROWS, "row_bytes % LOAD == 0", "true", "launch_failed"),
    ("last tile", {}, FLAT, "end - begin >= TILE", "end - begin >= TILE - 16", "launch_failed"),
    ("load past the end", {}, SHUFFLE, "WHOLE || 4 * i < n_bytes", "true", "launch_failed"),
    ("store past the end", {}, FLAT, LAST + " < n_bytes)", LAST + " <= n_bytes)", "launch_failed"),
    ("last store", {}, FLAT, LAST + " < n_bytes)", LAST + " + PIECE < n_bytes)", ""),
]  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize(
    ("values", "config", "old", "new", "status"), first_is_quick(m[1:] for m in MUTANTS), ids=[m[0] for m in MUTANTS]
)
def test_mutants_fail(values: dict[str, Any], config: Config, old: str, new: str, status: str) -> None:
    check_mutant(KERNEL, KERNEL.problem(values), config, old, new, status or "wrong")


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "float16_rows": (KERNEL.problem(FLOAT16 | MISSING), {**FLAT, "GRID": "rows", "STORE": "write_through"}),
    "bfloat16_scaled": (KERNEL.problem(BFLOAT16 | SCALED | MISSING), {**SHUFFLE, "READ": "streaming"}),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_dequantize`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


# ---------------------------------------------------------------------- size
@pytest.mark.gpu
def test_offsets_are_of_64_bits() -> None:
    """More than 2^32 values, which would take minutes on the host."""
    target = find_device("cuda:0")
    problem = Problem(out_type="float16", n_beams=2, n_freqs=65536 + 8, n_times=32768)
    rng = np.random.default_rng(1)
    row, turns = (rng.integers(0, 256, n, dtype=np.uint8) for n in (problem.row_bytes, (2, problem.n_freqs, 1)))
    samples = row ^ turns
    assert 2 * samples.size > 2**32
    binary = target.module.compile(render(KERNEL, problem, SHUFFLE), target.device)
    session = session_on(target)
    with CaseInMemory(session, KERNEL, problem, {"samples": samples}) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, SHUFFLE))
        got = placed.outputs()["values"]
    one = dataclasses.replace(problem, n_beams=1, n_freqs=1)
    for beam, freq in ((0, 0), (0, problem.n_freqs - 1), (1, 0), (1, problem.n_freqs - 1)):
        expected = KERNEL.reference(one, samples=samples[beam : beam + 1, freq : freq + 1])["values"]
        np.testing.assert_array_equal(got[beam, freq], expected[0, 0])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
