"""Kernels in plain CUDA, tuned on host as a script of Kernel Tuner's would have it."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.cli import program
from autotune.kernel_tuner import run_kernel, tune_kernel
from autotune.source.registry import load_kernel

from ..commands import ended

N = 3000
SAXPY = """
__global__ void saxpy(float *y, const float *x, float a, int n)
{
    __shared__ float s[block_size_x];
    int i = blockIdx.x * block_size_x + threadIdx.x;
#if fault == 2
    s[threadIdx.x] = x[threadIdx.x];
    if (i < n) y[i] = s[(threadIdx.x + 1) % block_size_x] + a;
#elif fault == 3
    while (((volatile float *)y)[0] != 123.0f) {}
#elif fault == 4
    y[i + n] = 1;
#else
    if (i < n) y[i] = a * x[i] + (fault == 1 ? 1.0f : 0.0f);
#endif
}
"""
X = np.random.default_rng(0).standard_normal(N).astype(np.float32)
ANSWER = np.float32(2.5) * X


def tuned(results: Path, source: Any = SAXPY, **more: Any) -> tuple[Any, dict[str, Any]]:
    given: dict[str, Any] = {
        "tune_params": {"block_size_x": [64, 128], "fault": [0]},
        "answer": [ANSWER, None, None, None],
        "arguments": [np.zeros_like(X), X, np.float32(2.5), np.int32(N)],
        "kernel_name": "saxpy",
    }
    return tune_kernel(
        kernel_source=source, problem_size=N, device="host", results=results, quiet=True, **{**given, **more}
    )


class OnGpu:
    """An array as CuPy has them."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.data = array, array.shape, array.data

    def get(self, order: str = "C") -> np.ndarray:
        return self.array


def test_answers_may_lie_on_a_gpu_and_strategies_may_be_modules(tmp_path: Path) -> None:
    import random  # any module

    x = np.arange(64, dtype=np.float32)
    results, env = tune_kernel(
        "twice",
        "__global__ void twice(float *y, const float *x) { int i = threadIdx.x; y[i] = 2 * x[i]; }",
        1,
        [np.zeros_like(x), OnGpu(x)],
        {"block_size_x": [64]},
        answer=[OnGpu(2 * x), None],
        strategy=random,
        device="host",
        results=tmp_path,
        quiet=True,
    )
    assert len(results) == 1
    parts: list[Any] = [value for name, value in env.items() if name.startswith("total_") or name == "overhead_time"]
    assert len(parts) == 6 and min(parts) >= 0 and sum(parts) > 0


def test_faults_are_trials_and_a_call_resumes(tmp_path: Path) -> None:
    params = {"block_size_x": [64, 128], "fault": [0, 1, 2, 3, 4]}
    restrictions = ["fault == 0 or block_size_x == 64"]
    found, env = tuned(tmp_path, tune_params=params, restrictions=restrictions, deadline=3.0)
    assert {(r["block_size_x"], r["fault"]) for r in found} == {(64, 0), (128, 0)}
    assert env["counts"] == {"measured": 2, "wrong": 1, "launch_failed": 2, "timed_out": 1}
    trials = found.sweep.trials.set_index("fault")
    assert "[kernel.cu:8]" in trials.message[2] and "kernel.cu:12" in trials.message[4]
    assert all(r["time"] > 0 and r["times"] == pytest.approx([r["time"]]) for r in found) and "one size" in found.note
    again, _ = tuned(tmp_path, tune_params=params, restrictions=restrictions, deadline=3.0)
    assert sorted(r["time"] for r in again) == sorted(r["time"] for r in found)  # nothing was measured anew
    kernel = load_kernel(env["definition"])
    assert kernel.arrays(kernel.tuned[0])["y"].read is False, "what is overwritten is poisoned before"


def test_without_an_answer_differences_are_told(tmp_path: Path) -> None:
    found, _ = tuned(tmp_path, answer=None, tune_params={"block_size_x": [64], "fault": [0, 1]})
    assert len(found) == 2 and "only compared with those of the first config" in found.note
    messages = found.sweep.trials.set_index("fault").message
    assert messages[0] == "unverified" and messages[1].startswith(
        "unverified: y differs from the first config's in 3000"
    )


def test_a_function_may_judge(tmp_path: Path) -> None:
    asked = []

    def verify(answer: list[Any], outputs: list[Any], atol: float | None = None) -> bool:
        asked.append(atol)
        return bool(np.isclose(answer[0].sum(), outputs[0].sum(), rtol=1e-3) and outputs[1] is None)

    params = {"block_size_x": [64], "fault": [0, 1]}
    found, env = tuned(tmp_path, verify=verify, atol=0.5, tune_params=params)
    assert [r["fault"] for r in found] == [0] and env["counts"]["wrong"] == 1 and asked == [0.5, 0.5]
    again, _ = tuned(tmp_path, verify=verify, atol=0.5, tune_params=params)
    assert len(again) == 1 and len(asked) == 2, "the same function was asked already"
    other, _ = tuned(tmp_path, verify=lambda answer, outputs: True, atol=0.5, tune_params=params)
    assert len(other) == 2


def test_what_is_added_to_starts_as_the_callers_array(tmp_path: Path) -> None:
    source = """
    __global__ void add(float *y, float *x, int *count, int n) {
        for (int i = threadIdx.x; i < n; i += block_size_x) {
            y[i] += x[i];
            atomicAdd(count, 1);
        }
    }
    """
    y = np.ones(N, np.float32)
    arguments = [y, X, np.full(1, 5, np.int32), np.int32(N)]
    answer = [1 + X, None, np.array([5 + N], np.int32), None]
    given: dict[str, Any] = {"kernel_name": "add", "arguments": arguments, "tune_params": {"block_size_x": [96]}}
    found, env = tuned(tmp_path, source, answer=answer, grid_div_x=[N], **given)
    kernel = load_kernel(env["definition"])
    specs = kernel.arrays(kernel.tuned[0])
    assert len(found) == 1 and specs["y"].read and specs["count"].read and not specs["x"].written
    after = run_kernel("add", source, 1, arguments, {"block_size_x": 96}, device="host", results=tmp_path)
    pairs = zip(arguments, after, strict=True)
    assert not any(np.shares_memory(np.asarray(a), np.asarray(b)) for a, b in pairs)
    assert np.allclose(after[0], answer[0]) and after[2][0] == 5 + N and np.array_equal(after[1], X)


def test_functions_may_say_sizes_macros_and_what_is_allowed(tmp_path: Path) -> None:
    source = """
    __global__ void fill(int *y) {
        #pragma unroll loop_unroll_factor_a
        for (int k = 0; k < width; k++)
            y[(blockIdx.x * blockDim.x + threadIdx.x) * width + k] = grid_size_x * loop_unroll_factor_a;
    }
    """
    params = {"block_size_x": [32, 64], "width": [2, 3], "loop_unroll_factor_a": [0, 2]}
    size = 32 * 2 * 5
    found, env = tune_kernel(
        "fill",
        lambda p: source,
        lambda p: (size // p["width"],),
        [np.zeros(size, np.int32)],
        params,
        restrictions=lambda p: p["width"] == 2 and p["block_size_x"] == 32,
        answer=None,
        metrics={"per_block": lambda p: p["time"] / 5, "twice": "per_block * 2"},
        device="host",
        results=tmp_path,
        quiet=True,
    )
    assert [r["loop_unroll_factor_a"] for r in found] == [0, 2]
    assert all(r["twice"] == pytest.approx(r["time"] * 0.4) for r in found)
    assert env["counts"] == {"measured": 2}


def test_constant_memory_is_given_by_its_symbol(tmp_path: Path) -> None:
    source = """
    __constant__ float weights[8], others[8];
    __global__ void other(float *y) { y[0] = others[0]; }
    __global__ void weigh(float *y, float *x, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i < n) y[i] = weights[i % 4] * x[i];
    }
    """
    weights = np.array([1, -2, 3, 0.5], np.float32)
    given = [np.zeros_like(X), X, np.int32(N)]
    answer = [np.tile(weights, N // 4) * X, None, None]
    params = {"block_size_x": [64]}
    said: dict[str, Any] = {"kernel_name": "weigh", "arguments": given, "answer": answer, "tune_params": params}
    found, _ = tuned(tmp_path, source, **said, cmem_args={"weights": weights, "others": weights})  # one is not used
    assert len(found) == 1
    found, env = tuned(tmp_path, source, **said, cmem_args={"weights": -weights})
    assert env["counts"] == {"wrong": 1} and not found


def test_the_command_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.cu").write_text(SAXPY)
    np.save("x.npy", X)
    np.save("answer.npy", ANSWER)
    words = ["autotune", "tune", "saxpy.cu", "--kernel", "saxpy", "--size", str(N), "--device", "host", "--json"]
    words += [
        "--param",
        "block_size_x=64,128",
        "--param",
        "fault=0,1",
        "--restrict",
        "fault == 0 or block_size_x == 64",
    ]
    words += ["--arg", f"y=zeros:float32:{N}", "--arg", "x=x.npy", "--arg", "a=float32:2.5", "--arg", f"n=int32:{N}"]
    monkeypatch.setattr(sys, "argv", [*words, "--answer", "y=answer.npy"])
    with pytest.raises(SystemExit) as end:
        program.main()
    told = json.loads(capsys.readouterr().out)
    assert end.value.code == 0 and told["trials"]["measured"] == 2 and told["trials"]["wrong"] == 1, told
    for more, why in (
        (["--arg", "z=int32:1"], "saxpy takes y, x, a, n; --arg gives y, x, a, n, z"),
        (["--answer", "z=x.npy"], "--answer z=..: saxpy takes y, x, a, n"),
        (["--arg", "y=zeros:float32:0"], "--arg y=zeros:float32:0: must be NAME=VALUE, each name once"),
    ):
        code, err = ended([*words[1:], *more], capsys, monkeypatch)
        assert code == 2 and why in err


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--param", "block_size_x=-3", "the values of block_size_x are threads along an axis of a block: -3 must be 1"),
        ("--param", "block_size_x=0.5", "the values of block_size_x are threads along an axis of a block: 0.5 must"),
        ("--arg", "n=int32:5000000000", "--arg n=int32:5000000000: int32 holds -2147483648 to 2147483647; give"),
        ("--arg", "n=uint8:-1", "--arg n=uint8:-1: the kernel takes int; give n=int32:-1"),
        ("--arg", "n=3000.5", "--arg n=3000.5: the kernel takes int: "),
        ("--arg", "x=NULL", "--arg x=NULL: a null pointer cannot be given, and what the kernel does without"),
        ("--arg", "x=3000", "--arg x=3000: the kernel takes an array; give zeros:float32:3000, or a file, x.npy"),
        ("--arg", "x=nowhere.npy", "nowhere.npy: there is no such file"),
        ("--arg", "a=float32:1e39", "--arg a=float32:1e39: float32 holds up to 3.4e+38; give a smaller number"),
        ("--arg", "n=U5:abc", "--arg n=U5:abc is of <U5, which CUDA lacks"),
        ("--arg", "x=zeros:object:3", "--arg x=zeros:object:3 is of object, which CUDA lacks"),
        ("--arg", "x=random:float32:3x", "--arg x=random:float32:3x: a shape is written with x, as"),
        ("--arg", "x=empty.npy", "empty.npy: not a NumPy array"),
        ("--arg", "x=both.npz", "both.npz: the file holds several arrays; save one of them, as .npy"),
        ("--answer", "y=words.npy", "the answer of y is an array of <U1: give numbers"),
        ("--answer", "y=phases.npy", "the answer of y is complex, and the output is float32"),
        ("--block-size-names", "ROWS", "--block-size-names ROWS: it is not a --param, which are block_size_x"),
        ("--size", "0", "the problem size 0 must be 1 or more"),
        ("--size", "1,2,3,4", "the problem size has 4 axes; a grid has 1 to 3"),
        ("--shared", "-16", "the size of smem_args is -16 at block_size_x=64"),
        ("--atol", "inf", "--atol inf: it must be a finite number"),
    ],
)
def test_a_wrong_option_ends_in_one_line(
    option: str,
    value: str,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.cu").write_text(SAXPY.replace("fault", "0"))
    Path("empty.npy").touch()
    np.savez("both.npz", a=X)
    np.save("words.npy", np.full(N, "w"))
    np.save("phases.npy", 1j * X)
    said = {"--size": [str(N)], "--param": ["block_size_x=64"], "--answer": [], "--shared": [], "--atol": []}
    said["--arg"] = [f"y=zeros:float32:{N}", f"x=random:float32:{N}", "a=2", f"n=int32:{N}"]
    name = value.partition("=")[0]
    said[option] = [*(old for old in said.get(option, []) if "=" in old and old.partition("=")[0] != name), value]
    words = [f"{each}={text}" for each, texts in said.items() for text in texts]
    code, err = ended(["tune", "saxpy.cu", "--kernel", "saxpy", "--device", "host", *words], capsys, monkeypatch)
    assert code == 2 and why in err and err.count("\n") <= 2


def test_a_definition_is_made_once_for_a_call(tmp_path: Path) -> None:
    tuned(tmp_path, tune_params={"block_size_x": [64], "fault": [0]})
    made = [path for path in (tmp_path / "definitions").iterdir() if path.name != "arrays"]
    assert len(made) == 1
    run_kernel("saxpy", SAXPY, N, [X, X, np.float32(1), np.int32(N)], {"block_size_x": 64, "fault": 0}, device="host")
    assert [path for path in (tmp_path / "definitions").iterdir() if path.name != "arrays"] == made


def test_a_function_may_write_each_configs_source(tmp_path: Path) -> None:
    def source(params: dict[str, Any]) -> str:
        if params["wrong"]:
            return "__global__ void copy(float *y, const float *x, int n) { y[threadIdx.x] = 1; }"
        return """
        __global__ void copy(float *y, const float *x, int n) {
            int i = blockIdx.x * BLOCK + threadIdx.x;
            if (i < n) y[i] = x[i];
        }
        """.replace("BLOCK", str(params["block_size_x"]))

    params = {"block_size_x": [64, 96], "wrong": [0, 1]}
    given = [np.zeros_like(X), X, np.int32(N)]
    found, env = tuned(
        tmp_path, source, kernel_name="copy", arguments=given, answer=[X, None, None], tune_params=params
    )
    assert [r["block_size_x"] for r in found] == [64, 96] and env["counts"] == {"measured": 2, "wrong": 2}


def test_of_two_objectives_the_front_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {"threads": lambda p: p["block_size_x"], "cost": "threads * 0 + (block_size_x == 128) + 2 * (time < 0)"}
    goals = {"threads": True, "cost": False}
    found, _ = tune_kernel(
        "saxpy",
        SAXPY,
        N,
        [np.zeros_like(X), X, np.float32(2.5), np.int32(N)],
        {"block_size_x": [32, 64, 128], "fault": [0]},
        metrics=metrics,
        objectives=goals,
        objective=None,
        device="host",
        results=tmp_path,
    )
    assert [result["block_size_x"] for result in found.front] == [128, 64], (
        "32 threads are beaten, and cost no less than 64"
    )
    assert capsys.readouterr().out.count("front: block_size_x=") == 2
