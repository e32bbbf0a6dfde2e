"""What a definition says is true, checked before any kernel is judged by it; and kernels that only look right."""

import signal
import sys
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Space,
    Tolerance,
    TrialFailure,
    UsageError,
    Work,
    array_in,
    array_out,
    baked,
    ceil_div,
    runtime,
)
from autotune.devices import find_device
from autotune.runtime.comparison import compare_arrays
from autotune.source.registry import load_kernel
from autotune.trial.case import numpy_case, write_case
from autotune.trial.verify import verify

from ..devices.bench import Bench, variant

pytestmark = pytest.mark.quick

CONFIG = Config({"WGS": 32})


@dataclass(frozen=True)
class Problem:
    """A row of numbers, tripled."""

    dtype: str = baked("float32")
    n: int = runtime(40)


class Triple(Kernel[Problem]):
    """y = 3 x, by a definition whose methods tests replace."""

    space = Space(WGS=(32, 64))
    default = {"WGS": 32}
    arguments = ("y", "x", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        return {"y": array_out(problem.dtype, problem.n), "x": array_in(problem.dtype, problem.n)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((ceil_div(problem.n, 32), 1, 1), (32, 1, 1))

    def work(self, problem: Problem) -> Work:
        return Work(problem.n, 8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.integers(1, 40, problem.n).astype(problem.dtype)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n=1), replace(problem, n=67)

    def reference(self, problem: Problem, *, x: np.ndarray) -> dict[str, np.ndarray]:
        wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind, np.int64)
        return {"y": 3 * x.astype(wide)}

    def tolerance(self, problem: Problem) -> Tolerance | dict[str, Tolerance]:
        return Tolerance(rtol=1e-6)


def lie(method: str, function: Any) -> Kernel[Any]:
    """``Triple`` with one method replaced."""
    made = type("Triple", (Triple,), {method: function, "__orig_bases__": (Kernel[Problem],)})
    return made()  # type: ignore[no-any-return]


def short(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": 3.0 * x[:1].astype(float)}


def truncated(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": (3 * x).real.astype(np.int64)}


def real(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": 3 * x.real.astype(np.float64)}


def floats(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": 3.4 * x.real.astype(np.float64)}


def narrow(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": (3 * x).astype(np.float16)}


def wide(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": 1000 * x.astype(np.int64)}


def listed(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": [3.0] * len(x)}


def more(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": 3.0 * x.astype(float), "z": x}


def none(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {}


def infinite(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    y = 3.0 * x.astype(float)
    y[0] = np.inf
    return {"y": y}


def writes(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    x *= 3
    return {"y": x.astype(float)}


@pytest.mark.parametrize(
    ("reference", "dtype", "complaint"),
    [
        (short, "float32", r"'y' with shape \[1\]; it must have \[40\]"),
        (truncated, "float32", "'y' as int64; the output is float32, so it must be floating point"),
        (real, "complex64", "'y' as float64; the output is complex64, so it must be complex"),
        (floats, "int32", "'y' as float64; the output is int32, so it must be integers"),
        (narrow, "float32", "'y' as float16; the output is float32, .* at least as wide"),
        (wide, "int8", "values from .* must fit the output's int8"),
        (listed, "float32", "'y' as list; it must be a NumPy array"),
        (more, "float32", "returns y, z; it must return the written arrays: y"),
        (none, "float32", "returns nothing; it must return the written arrays: y"),
        (infinite, "float32", "values that are not finite"),
        (writes, "float32", "and not write its inputs"),
    ],
)
def test_a_reference_that_hides_something_is_refused(
    reference: Any, dtype: str, complaint: str, tmp_path: Path
) -> None:
    kernel = lie("reference", reference)
    for make in (numpy_case, lambda k, p: write_case(k, p, tmp_path)):
        with pytest.raises(UsageError, match=complaint) as refused:
            make(kernel, Problem(dtype))
        assert f"{Path(__file__).name}:" in str(refused.value) and "triple.reference() " in str(refused.value)


def test_what_a_reference_may_be() -> None:
    for dtype in ("float16", "float32", "complex64", "int8", "uint8", "int64", "bool"):
        made = numpy_case(Triple() if dtype != "bool" else lie("reference", positive), Problem(dtype, 9))
        assert made.reference["y"].shape == (9,)


def positive(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    return {"y": x > 0}


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        (lambda self, problem, rng: {}, "returns no 'x'; it must be float32"),
        (lambda self, problem, rng: {"x": np.zeros(3, np.float32)}, r"returns 'x' as float32 \[3\]; it must be"),
        (lambda self, problem, rng: {"x": np.ones(problem.n)}, "returns 'x' as float64"),
        (lambda self, problem, rng: 1 / 0, "raises ZeroDivisionError"),
    ],
)
def test_inputs_are_as_arrays_states_them(inputs: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as refused:
        numpy_case(lie("inputs", inputs), Problem())
    assert "triple.inputs() " in str(refused.value)


@pytest.mark.parametrize(
    "work", [(np.nan, 1), (np.inf, 1), (-1.0, 1), (1, np.nan), (1, -2), (1, np.inf), (10**400, 1), ("1", 1)]
)
def test_work_is_finite(work: Any) -> None:
    kernel = lie("work", lambda self, problem: Work(*work))
    with pytest.raises(UsageError, match=r"triple\.work\(\) returns Work .*; it must return a Work of finite numbers"):
        kernel.work(Problem())


def test_work_may_be_numpys_and_may_leave_the_bytes_out() -> None:
    assert lie("work", lambda self, problem: Work(np.int64(3), np.float32(4))).work(Problem()) == Work(3, 4)
    assert lie("work", lambda self, problem: Work(flops=3)).work(Problem()).bytes == 320


def leaves(self: Any, problem: Any, *, x: np.ndarray) -> Any:
    sys.exit("so")


def test_a_definition_ends_no_process() -> None:
    with pytest.raises(UsageError, match=r"triple\.reference\(\) raises SystemExit: so"):
        numpy_case(lie("reference", leaves), Problem())


def test_a_ctrl_c_while_a_definition_computes_is_the_users() -> None:
    def computes(self: Any, problem: Any, *, x: np.ndarray) -> Any:
        signal.raise_signal(signal.SIGINT)
        return {"y": 3.0 * x}

    with pytest.raises(KeyboardInterrupt):
        numpy_case(lie("reference", computes), Problem())


@pytest.mark.parametrize(
    ("launch", "what"),
    [
        (Launch((1.5, 1, 1), (32, 1, 1)), r"grid = tuple \(1\.5, 1, 1\)"),
        (Launch((1, 1, 1), (32, np.float64(1), 1)), "block = tuple"),
        (Launch((1, 1, 1), (32, 1, 1), 4.5), "shared_bytes = float 4.5"),
        (Launch((1, 1, 1), (32, 1, 1), then=Launch((2.0, 1, 1), (32, 1, 1), function="more")), "grid = tuple"),
    ],
)
def test_the_numbers_of_a_launch_are_whole(launch: Launch, what: str) -> None:
    kernel = lie("launch", lambda self, problem, config: launch)
    with pytest.raises(TrialFailure, match=rf"triple\.launch\(\) returns a Launch with {what}") as failure:
        kernel.launch(Problem(), CONFIG)
    assert failure.value.status == "definition_failed"


# ---------------------------------------------------------------------- as a kernel is verified
TEXT = """
extern "C" __global__ void triple(float* y, const float* x, int n)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n)
        %s;
}
"""
RIGHT = TEXT % "y[i] = 3 * x[i]"
# 4e27 is what the second poison is
ADDS = TEXT % "y[i] = 3 * x[i] + (y[i] == y[i] && y[i] < 1e20f ? y[i] : 0.0f)"
LEAVES = TEXT % "if (!(y[i] == y[i] && y[i] < 1e20f)) y[i] = 3 * x[i]"


def verified(kernel: Kernel[Any], text: str) -> Any:
    bench = Bench(find_device("host"))
    binary = bench.target.module.compile(variant(text, "triple"), bench.session.device)
    return verify(bench.session, kernel, Problem(), CONFIG, binary)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ADDS, "where outputs held the answer before the launch: y"),
        (LEAVES, "where outputs held another answer before the launch: y"),
    ],
)
def test_what_outputs_hold_before_a_launch_does_not_matter(text: str, complaint: str) -> None:
    assert verified(Triple(), RIGHT).verified_on == tuple(f"dtype=float32,n={n}" for n in (1, 67, 64, 33))
    with pytest.raises(TrialFailure, match=complaint) as failure:
        verified(Triple(), text)
    assert failure.value.status == "wrong" and "plain build" in failure.value.message


@pytest.mark.parametrize(
    ("tolerance", "complaint"),
    [
        (Tolerance(rtol=float("inf")), "returns rtol=inf for 'y'; it must be a finite number"),
        (Tolerance(atol=float("nan")), "returns atol=nan"),
        (Tolerance(of_rms=-1.0), "returns of_rms=-1.0"),
        ({"z": Tolerance()}, "returns tolerances of z; it must return one for 'y'"),
        (Tolerance(nibbles=True), "returns nibbles for 'y', which is float32; only bytes have them"),
        (1e-6, "returns float 1e-06; it must return a Tolerance"),
    ],
)
def test_tolerances_are_finite_numbers(tolerance: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        verified(lie("tolerance", lambda self, problem: tolerance), RIGHT)


def test_a_reference_that_changes_its_mind_is_refused() -> None:
    calls = count()

    def moody(self: Any, problem: Any, *, x: np.ndarray) -> Any:
        return {"y": 3 * x.astype(float) * (1 + 0.01 * next(calls))}

    with pytest.raises(UsageError, match=r"returns another 'y' each time .*at dtype=float32,n=1"):
        verified(lie("reference", moody), RIGHT)


def test_the_reference_is_asked_twice_once_only() -> None:
    sizes = []

    def counted(self: Any, problem: Any, *, x: np.ndarray) -> Any:
        sizes.append(problem.n)
        return {"y": 3 * x.astype(float)}

    kernel = lie("reference", counted)
    verified(kernel, RIGHT)
    verified(kernel, RIGHT)
    plain = [n for n in sizes if n in (1, 67)]  # drawn sizes have other values, too
    assert plain.count(1) <= 3 and plain.count(67) <= 3  # at the largest size on other inputs, too


def test_a_definition_without_edge_sizes_is_refused() -> None:
    with pytest.raises(UsageError, match=r"returns nothing at .*; it must return one problem at least"):
        verified(lie("edge_problems", lambda self, problem, config: ()), RIGHT)


# ---------------------------------------------------------------------- the comparison itself
def test_a_reference_that_the_type_cannot_hold_is_no_match() -> None:
    for want in (300, -212):  # both are 44 in int8
        assert compare_arrays(np.array([44], np.int8), np.array([want]), Tolerance()).n_bad == 1
    assert compare_arrays(np.array([2**64 - 1], np.uint64), np.array([-1]), Tolerance()).n_bad == 1


def test_the_distance_of_integers_does_not_wrap() -> None:
    for dtype, a, b in ((np.int8, 127, -128), (np.uint8, 0, 255), (np.int64, 2**63 - 1, -(2**63))):
        for got, want in ((a, b), (b, a)):
            found = compare_arrays(np.array([got], dtype), np.array([want], dtype), Tolerance(atol=2))
            assert found.n_bad == 1


def test_an_rms_that_overflows_its_type_allows_nothing() -> None:
    want = np.full(4, 1e30, np.float32)
    assert compare_arrays(2 * want, want, Tolerance(of_rms=1e-3)).n_bad == 4


def test_inputs_with_nan_are_unchanged_when_their_bits_are() -> None:
    data = np.array([np.nan, 1.0, -np.inf], np.float32)
    assert compare_arrays(data.copy(), data, Tolerance()).n_bad == 0
    assert compare_arrays(np.array([np.nan, 2.0, -np.inf], np.float32), data, Tolerance()).first_bad == (1,)


@pytest.mark.parametrize(
    "name", ["accumulate", "beamform", "channelise", "correlate", "ddc", "dequantize", "pfb_fir", "postproc"]
)
def test_the_kernels_keep_the_contract(name: str) -> None:
    kernel = load_kernel(name)
    device = Device(name="any", kind="cuda", arch="sm_90")
    for problem in kernel.extra_problems:
        small = kernel.problem(kernel.host_sizes, base=problem)
        edge = kernel.edge_problems(small, kernel.default_config(small, device))[0]
        assert numpy_case(kernel, edge).reference
