"""One .cu is one kernel: each size that is tuned is a problem of it, and a new parameter keeps what was measured."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config
from autotune.core.definition import AnyKernel
from autotune.emit.writer import write_package
from autotune.kernel_tuner import tune_kernel
from autotune.records.edge_sizes import verified_on
from autotune.records.folder import SweepFolder
from autotune.records.record import read_sweeps
from autotune.records.trial import Trial
from autotune.runtime.lookup import report_choice
from autotune.source.registry import load_kernel

from ..commands import autotune
from .test_tune_command import ARGUMENTS, CONVOLVE, COPY, tuned

SCALE = """
#ifndef TILE
#define TILE 1
#endif
__global__ void scale(float *y, const float *x, float a, int n)
{
    for (int t = 0; t < TILE; t++) {
        int i = (blockIdx.x * TILE + t) * block_size_x + threadIdx.x;
        if (i < n) y[i] = a * x[i];
    }
}
"""


def scaled(results: Path, n: int, seed: int = 1, factor: float = 3.0, **params: Any) -> tuple[Any, dict[str, Any]]:
    x = np.random.default_rng(seed).random(n, np.float32)
    space = {"block_size_x": [32, 64], **params}
    divisor = ["block_size_x", *(name for name in params if name == "TILE")]
    return tune_kernel(
        "scale",
        SCALE,
        n,
        [np.zeros_like(x), x, np.float32(factor), np.int32(n)],
        space,
        grid_div_x=divisor,
        answer=[np.float32(factor) * x, None, None, None],
        device="host",
        results=results,
        quiet=True,
    )


def trials_of(results: Path, n: int) -> list[Trial]:
    (path,) = results.glob(f"*/scale/n={n},*")
    return SweepFolder(path).trials()


def choices(results: Path, definition: str, *problems: dict[str, object]) -> list[dict[str, Any]]:
    """Returns what a package of the records answers for each problem."""
    package = write_package([results], results.with_name("package"), kernels=[definition])
    return [report_choice(package, load_kernel(definition).name, each, "host") for each in problems]


def test_two_sizes_are_two_problems_of_one_kernel(tmp_path: Path) -> None:
    results = tmp_path / "results"
    first, second = scaled(results, 100)[1], scaled(results, 333, seed=2)[1]
    assert first["definition"] == second["definition"]
    kernel: AnyKernel = load_kernel(first["definition"])
    assert [each.n for each in kernel.tuned] == [100, 333]
    for n, seed in ((100, 1), (333, 2)):
        x = np.random.default_rng(seed).random(n, np.float32)
        problem = kernel.problem({"n": n})
        assert kernel.inputs(problem, np.random.default_rng(0))["x"].tolist() == x.tolist()
        assert kernel.reference(problem)["y"].tolist() == (np.float32(3) * x).tolist()
    found = choices(results, first["definition"], {"n": 100}, {"n": 333}, {"n": 200})
    assert [each["tier"] for each in found[:2]] == ["exact", "exact"]
    assert found[2]["tier"] in ("nearest", "predicted", "default")  # whichever lost least; times on a host vary
    of_winners = [each for each in found if each["tier"] in ("exact", "nearest")]  # others may never have been run
    assert all("verified on 1 problem," in each["text"] for each in of_winners)


def test_a_size_without_a_call_is_swept_and_said_to_be_unverified(tmp_path: Path) -> None:
    results = tmp_path / "results"
    path = scaled(results, 100)[1]["definition"]
    words = ("--kernel", path, "--problem", "n=5000", "--device", "host", "--results", str(results))
    assert autotune("sweep", *words).returncode == 0
    trials = trials_of(results, 5000)
    assert {trial.status for trial in trials} == {"measured"}
    assert {trial.message for trial in trials} == {"unverified: the definition has no answer for this size"}
    assert {trial.max_error for trial in trials} == {None}
    (sweep,) = (each for each in read_sweeps([results])[0] if each.problem["n"] == 5000)
    assert sweep.winner is not None and not sweep.winner.checked_launches
    assert not verified_on(sweep.about, sweep.winner, sweep.trials, load_kernel(path))
    shown = autotune("show", str(sweep.path)).stdout
    assert "correct as far as checked: without edge-sizes" in shown and "verified against" not in shown
    (found,) = choices(results, path, {"n": 5000})
    assert "unverified" in found["text"] and not found["verified"]


def test_a_new_parameter_keeps_what_was_measured(tmp_path: Path) -> None:
    scaled(tmp_path, 100)
    before = {trial.config: trial.median_s for trial in trials_of(tmp_path, 100)}
    results, about = scaled(tmp_path, 100, TILE=[1, 2])
    assert len(results) == 4 and [result["TILE"] for result in results] == [1, 1, 2, 2]
    trials = {trial.config: trial for trial in trials_of(tmp_path, 100)}
    for config, median_s in before.items():
        assert trials[Config({**config, "TILE": 1})].median_s == median_s
    assert load_kernel(about["definition"]).space.parameters["TILE"].since == 1
    scaled(tmp_path, 70, TILE=[1, 4])  # another size, other values
    scaled(tmp_path, 100, TILE=[1, 2])
    assert len(trials_of(tmp_path, 100)) == 4, "the value 4 was asked for at another size only"
    assert len(trials_of(tmp_path, 70)) == 4
    assert {each["tier"] for each in choices(tmp_path, about["definition"], {"n": 70}, {"n": 100})} == {"exact"}


def test_another_answer_is_measured_again_and_the_same_one_is_not(tmp_path: Path) -> None:
    scaled(tmp_path, 100)
    numbers = {trial.number for trial in trials_of(tmp_path, 100)}
    scaled(tmp_path, 80)
    scaled(tmp_path, 100)
    assert {trial.number for trial in trials_of(tmp_path, 100)} == numbers
    results, _ = scaled(tmp_path, 100, factor=5.0)
    assert not numbers & results.sweep.numbers
    scaled(tmp_path, 80)
    assert len(trials_of(tmp_path, 80)) == 2


def test_a_call_without_a_parameter_of_the_others_has_a_definition_of_its_own(tmp_path: Path) -> None:
    with_tile, without = scaled(tmp_path, 100, TILE=[1, 2])[1], scaled(tmp_path, 100)[1]
    assert with_tile["definition"] != without["definition"]
    assert scaled(tmp_path, 90, TILE=[2])[1]["definition"] == with_tile["definition"]


def test_what_a_function_says_is_known_of_one_call_only(tmp_path: Path) -> None:
    text = SCALE.replace("TILE", "ONE")
    paths = []
    for n in (100, 300, 100):
        x = np.arange(n, dtype=np.float32)
        _, about = tune_kernel(
            "scale",
            text,
            lambda config, n=n: n,
            [np.zeros_like(x), x, np.float32(2), np.int32(n)],
            {"block_size_x": [32]},
            defines={"block_size_x": lambda config: config["block_size_x"]},
            answer=[2 * x, None, None, None],
            device="host",
            results=tmp_path,
            quiet=True,
        )
        assert about["counts"] == {"measured": 1}
        paths.append(about["definition"])
    assert paths[0] == paths[2] != paths[1]


@pytest.mark.parametrize("own", ["#define TILE 2", "const int TILE = 2;", "static constexpr unsigned TILE = 2u;"])
def test_a_new_parameter_has_the_sources_value_before(own: str, tmp_path: Path) -> None:
    body = "{ int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) y[i] = TILE; }"
    text = f"{own}\n__global__ void f(int *y, int n) {body}"
    arguments = ("y=zeros:int32:100", "n=100")
    tuned(tmp_path, text, "f", "--size=100", "--param=block_size_x=64", arguments=arguments)
    given = ("--size=100", "--param=block_size_x=64", "--param=TILE=1,2")
    summary = tuned(tmp_path, text, "f", *given, arguments=arguments)
    assert load_kernel(summary["definition"]).space.parameters["TILE"].since == 2


@pytest.mark.parametrize("damage", ["", "{", '{"space": {"x": 1}, "since": {}, "calls": [{}]}', "[]"])
def test_damaged_calls_are_as_none(damage: str, tmp_path: Path) -> None:
    path = Path(scaled(tmp_path, 100)[1]["definition"])
    path.with_name("calls.json").write_text(damage)
    assert scaled(tmp_path, 80)[1]["definition"] == str(path)
    kernel: AnyKernel = load_kernel(str(path))
    assert [each.n for each in kernel.tuned] == [80]


def test_what_calls_say_is_no_code(tmp_path: Path) -> None:
    path = Path(scaled(tmp_path, 100)[1]["definition"])
    calls = json.loads(path.with_name("calls.json").read_text())
    for place in (calls["calls"][0]["sizes"], calls["calls"][0]):
        for name in ("label", "judged", "whole"):
            if name in place:
                place[name] = {"n": 100, "') or exit('": 1} if name == "whole" else "'); exit('"
    path.with_name("calls.json").write_text(json.dumps(calls))
    scaled(tmp_path, 80)
    load_kernel(str(path))


# ---------------------------------------------------------------------- sizes that are macros
BY_MACRO = """
#define BLOCK 64
__global__ void flip(float *y, const float *x)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < N) y[i] = x[N - 1 - i];
}
int main() { float *y, *x; flip<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(y, x); }
"""


def test_a_macro_may_be_the_size(tmp_path: Path) -> None:
    paths = set()
    for n in (100, 257):
        x = np.random.default_rng(n).random(n, np.float32)
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", x[::-1])
        given = (f"y=zeros:float32:{n}", f"x={tmp_path}/x.npy")
        words = ("--param=BLOCK=32,64", f"-DN={n}", f"--answer=y={tmp_path}/y.npy")
        summary = tuned(tmp_path, BY_MACRO, "flip", *words, arguments=given)
        assert summary["best"] is not None
        paths.add(summary["definition"])
    (path,) = paths
    kernel: AnyKernel = load_kernel(path)
    assert [each.N for each in kernel.tuned] == [100, 257]
    for each in kernel.tuned:
        n = each.N
        assert kernel.launch(each, Config({"BLOCK": 32})).grid == (-(-n // 32), 1, 1)
        assert kernel.arrays(each)["x"].shape == (n,)
    assert {each["tier"] for each in choices(tmp_path / "results", path, {"N": 100}, {"N": 257})} == {"exact"}


def test_what_the_grid_does_not_say_is_kept_for_each_call(tmp_path: Path) -> None:
    text = "__global__ void f(float *y) { y[blockIdx.x * block_size_x + threadIdx.x] = grid_size_x; }"
    paths = set()
    for n in (128, 512):
        answer = [np.full(n, n // 64, np.float32)]
        given = {"block_size_x": [64]}
        _, about = tune_kernel(
            "f", text, n, [np.zeros(n, np.float32)], given, answer=answer, device="host", results=tmp_path, quiet=True
        )
        assert about["counts"] == {"measured": 1}
        paths.add(about["definition"])
    (path,) = paths
    kernel: AnyKernel = load_kernel(path)
    assert [kernel.launch(each, Config({"block_size_x": 64})).grid[0] for each in kernel.tuned] == [2, 8]


def test_sizes_that_no_argument_says_are_told_apart(tmp_path: Path) -> None:
    text = "__global__ void f(float *y, int more) { int i = blockIdx.x * block_size_x + threadIdx.x; y[i] = i + more; }"
    about: dict[str, object] = {}
    for n in (128, 512, 128):
        arguments = [np.zeros(n, np.float32), np.int32(2)]
        answer = [np.arange(n, dtype=np.float32) + 2, None]
        results, about = tune_kernel(
            "f", text, n, arguments, {"block_size_x": [64]}, answer=answer, device="host", results=tmp_path, quiet=True
        )
        assert about["counts"] == {"measured": 1} and len(results) == 1
    kernel: AnyKernel = load_kernel(str(about["definition"]))
    assert {each.size for each in kernel.tuned} == {"128", "512"}
    assert len(list(tmp_path.glob("host/f/more=2,size=*"))) == 2
    found = choices(tmp_path, str(about["definition"]), {"size": 128}, {"size": "512"})
    assert [each["tier"] for each in found] == ["exact", "exact"]


def test_unused_headers_and_macros_do_not_change_the_machine_code(tmp_path: Path) -> None:
    text = "#include <cstdint>\n#include <cuda.h>\n#include <cuda_fp16.h>\n#define SCALE 1.5f\n#define LEAST -3\n"
    text += "#define MOST (1 << 3)\n#define TIMES (2 * 3) // so\n"
    text += "#ifndef U\n#define U 1\n#endif\n"
    text += (
        "__global__ void f(float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = SCALE; }"
    )
    words = ("--size=100", "--param=block_size_x=32")
    arguments = ("y=zeros:float32:100", "n=100")
    tuned(tmp_path, text, "f", *words, arguments=arguments)
    for more in (("U=1,2", "SCALE=1.5f", "LEAST=-3"), ("U=1", "SCALE=1.5f", "LEAST=-3", "MOST=8", "TIMES=6,7")):
        added = (*(f"--param={each}" for each in more), "--param=NOWHERE=5")
        told = tuned(tmp_path, text, "f", *words, *added, arguments=arguments)["told"]
        assert "recorded trials are still valid: their source changed, their machine code did not" in told


def test_the_command_adds_sizes_and_parameters(tmp_path: Path) -> None:
    def tune(width: int, height: int, *words: str) -> dict[str, Any]:
        x = np.random.default_rng(width).random((height, width + 2), np.float32)
        np.save(tmp_path / "in.npy", x)
        np.save(tmp_path / "answer.npy", x[:, :-2] + x[:, 2:])
        given = (f"out=zeros:float32:{height}x{width}", f"in={tmp_path}/in.npy", f"width={width}", f"height={height}")
        answer = f"--answer=out={tmp_path}/answer.npy"
        return tuned(tmp_path, CONVOLVE, "smooth", "--param=BX=8,32", answer, *words, arguments=given)

    tune(70, 5)
    tune(33, 7)
    last = tune(70, 5, "--param=TILE=1,2")
    assert "2 recorded trials are still valid: their source changed, their machine code did not" in last["told"]
    assert tune(40, 6)["trials"] == {"measured": 2}  # without the parameter, which later calls lack
    results = tmp_path / "results"
    sizes: list[dict[str, object]] = [{"width": w, "height": h} for w, h in ((70, 5), (33, 7), (40, 6))]
    assert {each["tier"] for each in choices(results, last["definition"], *sizes)} == {"exact"}


def test_sizes_that_are_macros_may_be_asked_for_untuned(tmp_path: Path) -> None:
    text = f"__global__ void f{COPY}".replace("int n)", "int dummy)").replace("i < n", "i < N")
    x = np.random.default_rng(1).random(3000, np.float32)
    for n in (3000, 1000):
        np.save(tmp_path / "x.npy", x[:n])
        given = (f"y=zeros:float32:{n}", f"x={tmp_path}/x.npy", "dummy=0")
        words = (f"-DN={n}", f"--size={n}", "--param=block_size_x=64", f"--answer=y={tmp_path}/x.npy")
        last = tuned(tmp_path, text, "f", *words, arguments=given)
    asked: list[dict[str, object]] = [{"N": n} for n in (3000, 1000, 2000)]
    found = choices(tmp_path / "results", last["definition"], *asked)
    assert [each["tier"] for each in found] == ["exact", "exact", "default"]


def test_an_extent_that_may_be_half_of_a_size_is_no_constant(tmp_path: Path) -> None:
    text = f"__global__ void f{COPY}".replace("int n)", "int n, const float *half)")
    for n_half, told in ((501, "an array has 501 elements along an axis, which is not an argument"), (3, "at others")):
        given = ("y=zeros:float32:1000", "x=random:float32:1000", "n=1000", f"half=zeros:float32:{n_half}")
        (folder := tmp_path / str(n_half)).mkdir()
        summary = tuned(folder, text, "f", "--size=1000", "--param=block_size_x=64", arguments=given)
        assert told in summary["told"], n_half


def test_an_empty_grid_is_told_as_one(tmp_path: Path) -> None:
    launch = "int main() { float *y; f<<<1000 / block_size_x, block_size_x>>>(y, y, 1000); }"
    summary = tuned(tmp_path, f"__global__ void f{COPY}\n{launch}", "f", "--param=block_size_x=64,1024")
    *_, empty = SweepFolder(Path(summary["path"])).trials()
    assert "the grid is (0, 1, 1); each extent must be 1 or more" in empty.message


def test_bytes_of_a_structure_are_no_extent_of_a_size(tmp_path: Path) -> None:
    text = "struct P { float a, b; };\n__global__ void f(float *y, const P *x, int n) { int i = threadIdx.x; "
    text += "i += blockIdx.x * blockDim.x; if (i < n) y[i] = x[i].a; }"
    np.save(tmp_path / "x.npy", np.zeros(90, [("a", "f4"), ("b", "f4")]))
    given = ("y=zeros:float32:90", f"x={tmp_path}/x.npy", "n=90")
    told = tuned(tmp_path, text, "f", "--size=90", "--param=block_size_x=64", arguments=given)["told"]
    assert "tuned at n=90, and callable at others" in told


def test_a_grid_of_the_caller_leaves_the_block_of_the_source(tmp_path: Path) -> None:
    launch = "int main() { float *y; dim3 b; b.x = TX; dim3 g; g.x = unknown(); f<<<g, b>>>(y, y, 1000); }"
    text = "#define TX 50\n" + f"__global__ void f{COPY}\n{launch}".replace("block_size_x", "TX")
    summary = tuned(tmp_path, text, "f", "--size=20", "--grid-div-x=1", "--param=TX=50,64")
    assert [trial.block for trial in SweepFolder(Path(summary["path"])).trials()] == [(50, 1, 1), (64, 1, 1)]
    asked = autotune("tune", tmp_path / "k.cu", "--kernel", "f", "--param=TX=50", *(f"--arg={a}" for a in ARGUMENTS))
    assert asked.returncode == 2 and "(if it is a number of blocks: with --grid-div-x 1): give --size" in asked.stderr


def test_other_values_of_a_parameter_are_all_tried(tmp_path: Path) -> None:
    words = ("--size=1000", "--param=block_size_x=64,128,256")
    tuned(tmp_path, f"__global__ void f{COPY}", "f", *words)
    for values, n in (("32,64,512", 5), ("32,512", 5), ("1024", 6)):
        summary = tuned(tmp_path, f"__global__ void f{COPY}", "f", "--size=1000", f"--param=block_size_x={values}")
        assert len(SweepFolder(Path(summary["path"])).trials()) == n
    assert "5 recorded trials of configs that are left out now still count" in summary["told"]


def test_a_call_may_lack_a_parameter_that_a_later_one_brought(tmp_path: Path) -> None:
    for params in ({}, {"TILE": [1, 2]}, {}):
        found, _ = scaled(tmp_path, 100, **params)
        assert len(found) == (4 if params else 2) and found.front[0]["block_size_x"] in (32, 64)
    assert len([path for path in (tmp_path / "definitions").iterdir() if path.name != "arrays"]) == 1
