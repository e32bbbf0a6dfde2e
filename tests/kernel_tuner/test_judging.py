"""What a kernel does to its outputs is found out, so that right ones pass and a kernel that does nothing does not."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from autotune import UsageError
from autotune.kernel_tuner import run_kernel, tune_kernel
from autotune.source.registry import load_kernel

N = 1300
HEAD = "__global__ void f(float *y, const float *x, int n) { int i = blockIdx.x * block_size_x + threadIdx.x; "
X = np.random.default_rng(11).standard_normal(N).astype(np.float32)


def tuned(results: Path, body: str, y: Any, answer: Any, also: Any = None, **more: Any) -> tuple[Any, dict[str, Any]]:
    given: dict[str, Any] = {
        "kernel_source": HEAD + body + " }",
        "arguments": [y, X, np.int32(N)],
        "answer": [answer, also, None],
        "tune_params": {"block_size_x": [96]},
        "atol": 1e-4,
    }
    return tune_kernel("f", problem_size=N, device="host", results=results, quiet=True, **{**given, **more})


def statuses(found: Any) -> list[str]:
    return [str(status) for status in found.sweep.trials["status"]]


def kind_of(env: dict[str, Any], name: str = "y") -> tuple[bool, bool]:
    kernel = load_kernel(env["definition"])
    spec = kernel.arrays(kernel.tuned[0])[name]
    return spec.read, spec.written


INNER = np.concatenate([[0], (X[:-2] + X[1:-1]) + X[2:], [0]]).astype(np.float32)
SUMS = np.concatenate([X.reshape(130, 10).astype(np.float64).sum(0), np.zeros(N - 10)])


@pytest.mark.parametrize(
    ("body", "begin", "answer"),
    [
        ("if (i < n) y[i] += x[i];", 0.0, X),
        ("if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i] + x[i + 1];", 0.0, INNER),
        ("if (i < n) atomicAdd(&y[i % 10], x[i]);", 0.0, SUMS),
        ("if (i < n) y[i] = fmaxf(y[i], x[i]);", -1e30, X),
    ],
)
def test_what_is_added_to_zeros_or_written_in_part_is_right(
    body: str, begin: float, answer: np.ndarray, tmp_path: Path
) -> None:
    found, env = tuned(tmp_path, body, np.full(N, begin, np.float32), answer)
    assert statuses(found) == ["measured"] and kind_of(env) == (True, True)


def test_an_index_that_is_read_stays_in_range(tmp_path: Path) -> None:
    source = """
    __global__ void step(int *where, float *y, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i < n) { y[where[i]] = 3; where[i] = n - 1 - where[i]; }
    }
    """
    where = np.random.default_rng(4).permutation(N).astype(np.int32)
    found, env = tune_kernel(
        "step",
        source,
        N,
        [where, np.zeros(N, np.float32), np.int32(N)],
        {"block_size_x": [96]},
        answer=[N - 1 - where, np.full(N, 3, np.float32), None],
        device="host",
        results=tmp_path,
        quiet=True,
    )
    assert statuses(found) == ["measured"]
    assert kind_of(env, "where") == (True, True) and kind_of(env, "y") == (False, True)


def test_a_call_whose_output_holds_its_answer_is_refused_where_nothing_would_pass(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="y holds its answer before the launch, and the first config does not change it"
    ):
        tuned(tmp_path, "", X.copy(), X)
    out_of_range = "if (i < n) y[(int)y[i] == 0 ? i : i + 1000000] = 0;"  # other contents are not indices
    with pytest.raises(
        UsageError, match=r"it is unknown what the kernel does to it \(.*give y other contents, such as zeros"
    ):
        tuned(tmp_path, out_of_range, np.zeros(N, np.float32), np.zeros(N, np.float32))
    with pytest.raises(UsageError, match="and the first config does not change it beyond the tolerance"):
        tuned(tmp_path, "if (i < n) y[i] += x[i];", np.full(N, 1e7, np.float32), X + np.float32(1e7))
    params = {"block_size_x": [96], "idle": [0, 1]}
    found, _ = tuned(tmp_path, "if (i < n && !idle) y[i] = x[i];", X.copy(), X, tune_params=params)
    assert statuses(found) == ["measured", "wrong"]


def test_what_other_configs_make_of_other_contents_is_compared(tmp_path: Path) -> None:
    params = {"block_size_x": [96], "sets": [0, 1]}
    body = "if (i < n) y[i] = sets ? x[i] : y[i] + x[i];"
    found, _ = tuned(tmp_path, body, np.zeros(N, np.float32), X, tune_params=params)
    trials = found.sweep.trials.set_index("sets")
    assert trials.status[0] == "measured" and trials.status[1] == "wrong"
    assert "after a launch with other contents of y" in trials.message[1]
    params = {"block_size_x": [96], "sets": [2, 0, 1]}  # the first one is wrong, and cannot judge
    body = "if (i < n) y[i] = sets == 2 ? 7 : sets ? x[i] : y[i] + x[i];"
    found, _ = tuned(tmp_path, body, np.zeros(N, np.float32), X, tune_params=params)
    assert dict(zip(found.sweep.trials["sets"], statuses(found), strict=True)) == {
        2: "wrong",
        0: "measured",
        1: "wrong",
    }


@pytest.mark.parametrize(
    ("y", "answer", "told"),
    [
        (np.zeros(N, np.int32), np.full(N, 1.5), r"the answer of y is float64, and the output is int32: give whole"),
        (np.zeros(N, np.float32), X * 1j, "the answer of y is complex, and the output is float32"),
        (
            np.zeros(N, np.float32),
            np.where(X > 0, X, np.nan),
            r"the answer of y has \d+ of 1300 values that are not fin",
        ),
        (np.zeros(N, np.float32), np.full(N, 4e38), r"the answer of y has values up to 4e\+38, beyond float32"),
        (np.zeros(N, np.int16), np.full(N, 40000), "the answer of y has values from 40000 to 40000, beyond int16"),
        (np.zeros(N, np.float32), np.full(N, "a"), "the answer of y is an array of <U1: give numbers"),
        (
            np.zeros(N, np.float64),
            X,
            r"the argument y is an array of float64, and the kernel takes float\*: give .astype",
        ),
    ],
)
def test_answers_and_arrays_of_another_kind_are_refused_by_name(
    y: np.ndarray, answer: np.ndarray, told: str, tmp_path: Path
) -> None:
    source = (
        HEAD + "}" if y.dtype.kind == "f" else HEAD.replace("float *y", "short *y" if y.itemsize == 2 else "int *y")
    )
    with pytest.raises(UsageError, match=told):
        tuned(tmp_path, "", y, answer, kernel_source=source + " }")
    assert not (tmp_path / "definitions").exists()


def test_an_answer_of_an_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the answer of x: f takes it as const, and cannot write it: give None"):
        tuned(tmp_path, "", np.zeros(N, np.float32), X, also=X)


ROWS = """
__global__ void rows(float *s, const float *a, int m, int k) {   // a: element (i, j) at i + j * m
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < m) { for (int j = 0; j < k; j++) s[i + j * m] = a[i + j * m] + j; }
}
"""


def test_arrays_are_passed_as_they_lie(tmp_path: Path) -> None:
    m, k = 7, 4
    a = np.asfortranarray(np.random.default_rng(3).standard_normal((m, k)).astype(np.float32))
    given = [np.zeros_like(a), a, np.int32(m), np.int32(k)]
    assert given[0].flags.f_contiguous
    after = run_kernel("rows", ROWS, m, given, {"block_size_x": 64}, device="host", quiet=True)
    assert np.array_equal(after[0], a + np.arange(k, dtype=np.float32)) and np.array_equal(after[1], a)
    answer = np.ascontiguousarray(a + np.arange(k))
    said: dict[str, Any] = {"device": "host", "results": tmp_path, "quiet": True}
    found, env = tune_kernel("rows", ROWS, m, given, {"block_size_x": [64]}, answer=[answer, None, None, None], **said)
    assert statuses(found) == ["measured"]
    kernel = load_kernel(env["definition"])
    assert kernel.arrays(kernel.tuned[0])["a"].shape == (k, m), "a package takes a.T"
    assert "s, a with axes in the order of memory" in (type(kernel).__doc__ or "")
    given[1] = np.zeros((2 * m, k), np.float32)[::2]
    with pytest.raises(UsageError, match=r"argument a has gaps, or runs backwards .*give np.ascontiguousarray"):
        tune_kernel("rows", ROWS, m, given, {"block_size_x": [64]}, **said)


def test_structures_are_passed_and_compared_by_their_fields(tmp_path: Path) -> None:
    source = """
    struct P { char mark; double b; int n; };
    __global__ void f(P *out, const P *in, P p) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i >= p.n) return;
        out[i].b = in[i].b * p.b; out[i].n = in[i].n + (p.mark == 3) + (wrong && i == 90); out[i].mark += 2;
    }
    """
    structure = np.dtype([("mark", "i1"), ("b", "f8"), ("n", "i4")], align=True)
    given = np.zeros(100, structure)
    given["b"], given["n"], given["mark"] = np.linspace(1, 2, 100), np.arange(100), 5
    by_value = np.array([(3, 1.5, 100)], structure)[0]
    answer = given.copy()
    answer["b"], answer["n"], answer["mark"] = given["b"] * 1.5, given["n"] + 1, 3
    out = np.zeros(100, structure)
    out["mark"] = 1
    said: dict[str, Any] = {"device": "host", "results": tmp_path, "quiet": True}
    params = {"block_size_x": [64], "wrong": [0, 1]}
    found, _ = tune_kernel("f", source, 100, [out, given, by_value], params, answer=[answer, None, None], **said)
    assert statuses(found) == ["measured", "wrong"]
    assert "out[90].n is 92, not 91; 1 of 100 differ; compared with" in found.sweep.trials["message"][1]
    found, _ = tune_kernel("f", source, 100, [out, given, by_value], params, **said)
    assert found.sweep.trials["message"][1] == "unverified: out differs from the first config's in 1 of 100"
    packed = np.dtype([("mark", "i1"), ("b", "f8"), ("n", "i4")])
    for arguments, name in (
        ([out, given, by_value.astype(packed)], "p"),
        ([out, given.astype(packed), by_value], "in"),
    ):
        with pytest.raises(UsageError, match=f"argument {name} is a structure without align=True"):
            tune_kernel("f", source, 100, arguments, params, **said)


def test_bfloat16_is_that_of_ml_dtypes(tmp_path: Path) -> None:
    head = HEAD.replace("float *y", "__nv_bfloat16 *y").replace("const float *x", "const __nv_bfloat16 *x")
    source = f"#include <cuda_bf16.h>\n{head} if (i < n) y[i] = x[i] * x[i] + __float2bfloat16(1.0f + WRONG); }}"
    x = X.astype(ml_dtypes.bfloat16)
    given = [np.zeros(N, ml_dtypes.bfloat16), x, np.int32(N)]
    said: dict[str, Any] = {"device": "host", "results": tmp_path, "quiet": True}
    params, answer = {"block_size_x": [64], "WRONG": [0, 1]}, [x * x + ml_dtypes.bfloat16(1), None, None]
    found, _ = tune_kernel("f", source, N, given, params, answer=answer, **said)
    assert statuses(found) == ["measured", "wrong"]
    with pytest.raises(
        UsageError, match=r"y is an array of float32, and the kernel takes __nv_bfloat16\*: give ml_dty"
    ):
        tune_kernel("f", source, N, [X, *given[1:]], params, **said)


@pytest.mark.parametrize(
    ("rule", "n"),
    [
        (lambda *a: a[0] * a[1] <= 192, 3),
        (lambda block_size_x, tile: block_size_x * tile <= 96, 1),
        ([(lambda x, t: x * t <= 192, ["block_size_x", "tile"])], 3),
        ((lambda t: t == 2, ["tile"]), 2),
        (lambda p: p["tile"] == 1, 2),
    ],
)
def test_restrictions_are_taken_in_the_ways_of_scripts(rule: Any, n: int, tmp_path: Path) -> None:
    params = {"block_size_x": [96, 192], "tile": [1, 2]}
    found, _ = tuned(
        tmp_path, "if (i < n) y[i] = x[i];", np.zeros(N, np.float32), X, tune_params=params, restrictions=rule
    )
    assert len(found) == n


@pytest.mark.parametrize("rule", [["block_size_x % tile == 0"], lambda p: p["block_size_x"] % p["tile"] == 0])
def test_a_restriction_that_cannot_be_computed_is_named(rule: Any, tmp_path: Path) -> None:
    params = {"block_size_x": [96], "tile": [0, 2]}
    with pytest.raises(UsageError, match=r"the restriction .* raises ZeroDivisionError at block_size_x=96, tile=0"):
        tuned(tmp_path, "", np.zeros(N, np.float32), X, tune_params=params, restrictions=rule)


def test_grids_of_other_blocks_may_reach_further_into_padding(tmp_path: Path) -> None:
    n_padded = N + 200
    x = np.concatenate([X, np.zeros(200, np.float32)])
    given = [np.zeros(n_padded, np.float32), x, np.int32(N)]
    params = {"block_size_x": [52, 96, 128], "late": [0, 1]}  # the first one covers N without a rest
    found, env = tuned(tmp_path, "y[i] = late ? y[i] : x[i];", None, x, arguments=given, tune_params=params)
    trials = found.sweep.trials
    assert kind_of(env) == (True, True)
    assert set(trials.status[trials.late == 0]) == {"measured"} and set(trials.status[trials.late == 1]) == {"wrong"}


def test_an_array_without_axes_is_one_element(tmp_path: Path) -> None:
    source = (
        "__global__ void f(int *count, int n) { if (blockIdx.x * block_size_x + threadIdx.x < n) atomicAdd(count, 1); }"
    )
    given = [np.array(4, np.int32), np.int32(N)]
    said: dict[str, Any] = {"device": "host", "quiet": True}
    found, _ = tune_kernel(
        "f", source, N, given, {"block_size_x": [96]}, answer=[np.array(4 + N), None], results=tmp_path, **said
    )
    assert statuses(found) == ["measured"]
    assert run_kernel("f", source, N, given, {"block_size_x": 96}, **said)[0] == 4 + N


def test_sums_whose_order_varies_make_one_record(tmp_path: Path) -> None:
    body = "if (i < n) atomicAdd(&y[i % 7], x[i] * 1e-3f);"
    answer = np.zeros(N)
    np.add.at(answer, np.arange(N) % 7, X.astype(np.float64) * 1e-3)
    first, env = tuned(tmp_path, body, np.zeros(N, np.float32), answer)
    again, same = tuned(tmp_path, body, np.zeros(N, np.float32), answer)
    assert statuses(first) == ["measured"] and env["record"] == same["record"]
    assert first[0]["timestamp"] == again[0]["timestamp"] and first[0]["times"] == again[0]["times"]


def test_what_two_outputs_held_may_change_places(tmp_path: Path) -> None:
    source = """
    __global__ void swap(float *a, float *b, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i < n) { float old = a[i]; a[i] = b[i]; b[i] = forgets ? 0.0f : old; }
    }
    """
    a, b = X.copy(), 1 - X
    params = {"block_size_x": [96], "forgets": [0, 1]}
    said: dict[str, Any] = {"device": "host", "results": tmp_path, "quiet": True}
    found, env = tune_kernel("swap", source, N, [a, b, np.int32(N)], params, answer=[b, a, None], **said)
    assert statuses(found) == ["measured", "wrong"]
    assert kind_of(env, "a") == (True, True) and kind_of(env, "b") == (True, True)
    zeros = [np.zeros(N, np.float32), b, np.int32(N)]  # to forget what was 0 is wrong, too
    found, env = tune_kernel("swap", source, N, zeros, params, answer=[b, zeros[0], None], **said)
    assert statuses(found) == ["measured", "wrong"]
    assert "b[0] is 0.0, not " in found.sweep.trials["message"][1]
    assert "after a launch with other contents of a" in found.sweep.trials["message"][1]


def test_a_counter_that_is_zero_again_is_no_input(tmp_path: Path) -> None:
    source = """
    __global__ void last_block(float *sum, unsigned int *count, const float *x, int n) {
        if (threadIdx.x == 0) {
            __threadfence();
            if (atomicInc(count, gridDim.x - 1) == gridDim.x - 1) {
                float all = 0;
                for (int i = 0; i < n; i++) all += x[i];
                *sum = all;
            }
        }
    }
    """
    given = [np.zeros(1, np.float32), np.zeros(1, np.uint32), X, np.int32(N)]
    answer = [X.sum(dtype=np.float64).reshape(1), None, None, None]
    said: dict[str, Any] = {"device": "host", "results": tmp_path, "quiet": True}
    found, _ = tune_kernel("last_block", source, N, given, {"block_size_x": [96]}, answer=answer, atol=1e-3, **said)
    assert statuses(found) == ["measured"], found.sweep.trials["message"][0]
