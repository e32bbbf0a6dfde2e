"""Definitions that lie below results are run only if they are what the call says; sizes and numbers stay arguments."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, UsageError
from autotune.emit.writer import write_package
from autotune.porting.answers import Outputs, answers_of
from autotune.porting.call import Call, read_call
from autotune.porting.definition_writer import write_definition
from autotune.porting.formulas import Formulas
from autotune.porting.sizes import CallSizes, Sizes, sizes_of_call
from autotune.source.registry import load_kernel

from ..fake_gpu import array, import_package, install
from ..recorded import H200, record

N = 140
SAXPY = "__global__ void saxpy(float *y, const float *x, float a, int n) { y[0] = a * x[n - 1]; }"
FOREIGN = "raise SystemExit('this is not the definition of the call')\n"


def call_of(source: Any = SAXPY, problem_size: Any = N, arguments: Any = None, **more: Any) -> Call:
    x = np.arange(N, dtype=np.float32)
    given = [np.zeros_like(x), x, np.float32(1.25), np.int32(N)] if arguments is None else arguments
    space = {"block_size_x": [32, 64]}
    return read_call(more.pop("name", "saxpy"), source, problem_size, given, space, **more)


def written(results: Path, call: Call | None = None) -> Path:
    call = call or call_of()
    answers = answers_of(call, [np.ones(N, np.float32), None, None, None], 1e-6)
    kinds = {each.name: "out" if each.name == "y" else "in" for each in call.arrays}
    return write_definition(Formulas.of(call, sizes_of_call(call)), Outputs(kinds, answers), results)


def changed_text(path: Path) -> None:
    path.write_text(FOREIGN)


def changed_template(path: Path) -> None:
    path.with_name("saxpy.cu.j2").write_text("{{ cycler.__init__.__globals__.os.system('true') }}")


def changed_answer(path: Path) -> None:
    (answer,) = path.parent.glob("answer.y.*.npy")
    answer.chmod(0o644)
    with open(answer, "r+b") as file:  # the same file in the store changes, too
        file.seek(-4, os.SEEK_END)
        file.write(np.float32(7).tobytes())


def replaced_array(path: Path) -> None:
    (x,) = path.parent.glob("x.*.npy")
    x.unlink()
    np.save(x, np.zeros(N, np.float32))


def linked_text(path: Path) -> None:
    other = path.parents[2] / "foreign.py"
    other.write_text(path.read_text())
    path.unlink()
    path.symlink_to(other)


def planted_bytecode(path: Path) -> None:
    (path.parent / "__pycache__").mkdir(exist_ok=True)
    (path.parent / "__pycache__" / "saxpy.cpython-311.pyc").write_bytes(b"foreign")


def writable_by_others(path: Path) -> None:
    path.chmod(0o666)
    path.parent.chmod(0o777)


def files_of(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


@pytest.mark.quick
@pytest.mark.parametrize(
    "change",
    [
        changed_text,
        changed_template,
        changed_answer,
        replaced_array,
        linked_text,
        planted_bytecode,
        writable_by_others,
    ],
)
def test_what_somebody_changed_is_written_anew(change: Callable[[Path], None], tmp_path: Path) -> None:
    path = written(tmp_path)
    before = files_of(path)
    change(path)
    assert written(tmp_path) == path
    assert files_of(path) == before and not path.is_symlink()
    assert path.stat().st_mode & 0o022 == 0 and path.parent.stat().st_mode & 0o022 == 0
    kernel = load_kernel(str(path))
    assert kernel.reference(kernel.tuned[0])["y"].tolist() == [1.0] * N


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    uid = os.geteuid()
    if uid == 0:  # root trusts nobody but itself here
        os.chown(tmp_path / "definitions", 4321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(UsageError, match=r"definitions belongs to user \d+, and definitions in it are run"):
        written(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        'a"b.cu',
        "back\\slash.cu",
        '"""+__import__("os").system("true")+""".cu',
        "{{ 7 * 7 }}{% raw %}.cu",
        "new\nline.cu",
    ],
)
def test_a_files_name_is_no_code(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SAXPY)
    path = written(tmp_path, call_of(tmp_path / name))
    kernel = load_kernel(str(path))
    assert kernel.name == "saxpy"
    first, *_ = path.read_text().splitlines()
    assert set('"\\{}\n') & set(first.strip('"')) == set() and "49" not in path.with_name("saxpy.cu.j2").read_text()


@pytest.mark.parametrize("name", ["saxpy(", "../saxpy", "a b", ""])
def test_a_kernels_name_is_a_name(name: str) -> None:
    with pytest.raises(UsageError, match="is not a name in CUDA"):
        call_of(name=name)


# ---------------------------------------------------------------------- sizes
GEMM = "__global__ void gemm(float *c, const float *a, const float *b, int m, int n, int k, float alpha) {}"


def sizes(*known: tuple[int, int, int], problem_size: Any = None, source: str = GEMM) -> Sizes:
    """Returns the roles of the numbers m, n and k in several calls."""
    calls: list[CallSizes] = []
    for m, n, k in known:
        arrays = [np.zeros(shape, np.float32) for shape in ((m, n), (m, k), (k * n,))]
        given = [*arrays, np.int32(m), np.int32(n), np.int32(k), np.float32(1)]
        found = sizes_of_call(call_of(source, problem_size or (n, m), given, name="gemm"), calls)
        calls = list(found.calls)
    return found


def test_sizes_among_the_arguments_are_found() -> None:
    found = sizes((20, 30, 70))
    assert found.values == {"m": 20, "n": 30, "k": 70} and not found.demands and not found.why
    assert found.spans == ("problem.n", "problem.m")
    assert found.extents == {
        "c": ("problem.m", "problem.n"),
        "a": ("problem.m", "problem.k"),
        "b": ("problem.n * problem.k",),
    }


def test_what_was_equal_in_each_call_must_stay_equal_until_a_call_tells_them_apart() -> None:
    square = sizes((48, 48, 70), (32, 32, 70))
    assert square.spans == ("problem.m", "problem.m") and list(square.demands) == ["problem.m == problem.n"]
    assert "m and n were equal in each call, and either may set an extent: tune where they differ" in square.told
    apart = sizes((48, 48, 70), (32, 40, 70))
    assert apart.spans == ("problem.n", "problem.m") and not apart.demands


@pytest.mark.parametrize(
    ("problem_size", "source", "why"),
    [
        ((77, 20), GEMM, "the grid spans 77, which is not an argument"),
        (lambda p: (30, 20), GEMM, "functions compute the grid"),
        (("30", 20), GEMM, "the problem size '30' names no argument"),
        ((30, 20), GEMM.replace("{}", "{ c[0] = grid_size_x; }"), "the source uses grid_size_x, y or z"),
    ],
)
def test_where_a_larger_size_would_be_computed_in_part_sizes_are_fixed(
    problem_size: Any, source: str, why: str
) -> None:
    found = sizes((20, 30, 70), problem_size=problem_size, source=source)
    assert list(found.demands) == ["key_of(problem) in CALLS"]
    assert f"callable at this size only; m, n, k fixed, since {why}" in found.told


def blur(n: int, radius: int, halo: int) -> Call:
    source = "__global__ void blur(float *y, const float *x, float a, int n, int radius) {}"
    given = [np.zeros(n, np.float32), np.zeros(n + halo, np.float32), np.float32(1), np.int32(n), np.int32(radius)]
    return call_of(source, n, given, name="blur")


def test_what_a_halo_may_follow_from_is_fixed_until_it_differs() -> None:
    found = sizes_of_call(blur(N, 3, 6))
    assert found.extents["x"] == ("problem.n + 6",) and list(found.demands) == ["problem.radius == 3"]
    assert "radius fixed, since an array has a halo (146 is n + 6)" in found.told
    assert not sizes_of_call(blur(200, 5, 6), found.calls).demands
    other = sizes_of_call(blur(200, 5, 10), found.calls)
    assert "an array has 210 elements along an axis" in other.why
    assert other.extents["x"] == ("called(problem)['shapes']['x'][0]",)


def test_an_array_whose_length_nobody_says_fixes_the_sizes() -> None:
    x = np.zeros(3 * N + 1, np.float32)
    found = sizes_of_call(call_of(arguments=[x, x, np.float32(1), np.int32(N)]))
    assert list(found.demands) == ["key_of(problem) in CALLS"] and "an array has 421 elements" in found.why


def test_a_definition_serves_other_sizes(tmp_path: Path) -> None:
    kernel = load_kernel(str(written(tmp_path)))
    problem = kernel.problem({"n": 5000})
    assert kernel.arrays(problem)["x"].shape == (5000,)
    assert kernel.launch(problem, Config({"block_size_x": 64})).grid == (79, 1, 1)
    assert kernel.scalars(problem, {"a": 0.5}) == {"a": np.float32(0.5), "n": np.int32(5000)}


def test_names_that_python_has_already_are_no_trouble(tmp_path: Path) -> None:
    source = "__global__ void f(float *data, const float *in, int size, int lambda, int runtime, int _k) {}"
    arrays = [np.zeros((6, 7), np.float32), np.zeros((8, 9), np.float32)]
    given = [*arrays, np.int32(6), np.int32(7), np.int32(8), np.int32(9)]
    space = {"block_size_x": [32], "class": [1, 2], "yield": ["a'b", 'c"']}
    call = read_call("f", source, (6, 7), given, space, restrictions=["block_size_x > 1"])
    formulas = Formulas.of(call, sizes_of_call(call))
    path = write_definition(formulas, Outputs({"data": "scratch", "in": "in"}), tmp_path)
    kernel = load_kernel(str(path))
    assert asdict(kernel.tuned[0]) | {"data": ""} == {"size_": 6, "lambda_": 7, "runtime_": 8, "size_k": 9, "data": ""}
    config = Config({"block_size_x": 32, "class": 2, "yield": "a'b"})
    assert kernel.launch(kernel.tuned[0], config).grid == formulas.said(config).grid == (1, 7, 1)
    assert kernel.constants(kernel.tuned[0], config)["defines"] == formulas.said(config).defines


def test_a_package_is_called_with_sizes_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "results")
    kernel, config = load_kernel(str(path)), Config({"block_size_x": 64})
    tuned_at: Any = asdict(kernel.tuned[0])
    record(tmp_path / "results", H200, {config: 1.0}, problem=tuned_at, definition=str(path), default=config)
    package = import_package(write_package([tmp_path / "results"], tmp_path / "tuned", kernels=[path]), "tuned_from_cu")
    gpu = install(monkeypatch, package, H200)
    saxpy = package.saxpy()
    y = saxpy(array(np.ones(5000, np.float32)), 0.25)
    assert y.shape == (5000,) and gpu.last.grid == (79, 1, 1)
    assert gpu.last.arguments[2:] == (np.float32(0.25), np.int32(5000))
    saxpy(array(np.ones(77, np.float32)), a=3)
    assert gpu.last.grid == (2, 1, 1) and gpu.last.arguments[2:] == (np.float32(3), np.int32(77))
    assert "callable at others" in (package.saxpy.__doc__ or "")
