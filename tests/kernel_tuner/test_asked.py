"""What calls of Kernel Tuner's may ask for and cannot get, by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.kernel_tuner import get_config_string, tune_kernel
from autotune.kernel_tuner.asked import options_of
from autotune.kernel_tuner.facade import SHORTER
from autotune.porting.config_lines import Lines

X, N = np.zeros(8, np.float32), np.int32(8)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"arguments": [X, X]}, r"takes 3 arguments \(y, x, n\); 2 were given"),
        ({"arguments": [X, X, 8]}, "the argument n is int, must be a NumPy number or structure of int"),
        ({"arguments": [X, X, np.int64(8)]}, r"the argument n is int64, and the kernel takes int: give np\.int32"),
        ({"arguments": [X, 3, N]}, "the argument x is int, must be a NumPy array"),
        ({"tune_params": {}}, "tune_params is empty"),
        ({"tune_params": {"a b": [1]}}, "'a b' of tune_params is not a name"),
        ({"tune_params": {"t": []}}, "the values of t must be numbers or texts"),
        ({"restrictions": ["u > 1"]}, "there is no 'u'; there are block_size_x"),
        ({"restrictions": lambda p: False}, "the restrictions allow no config"),
        ({"answer": [X]}, "answer has 1 entries, and f 3 arguments"),
        ({"answer": [None, None, None]}, "answer has None only"),
        ({"answer": [X[:4], None, None]}, r"the answer of y has the shape \[4\]"),
        ({"texmem_args": {"t": X}}, "texmem_args: textures are not supported"),
        ({"observers": [1]}, "observers are not supported"),
        ({"lang": "OpenCL"}, "kernels are CUDA C"),
        ({"compiler_options": ["--use_fast_math"]}, "--use_fast_math is not supported"),
        ({"objective": "speed"}, "objective 'speed' is neither time nor a metric"),
        ({"atol": -1e-6, "answer": [X, None, None]}, "atol=-1e-06: it must be a finite number"),
        ({"tune_params": {"block_size_x": [0]}}, "the values of block_size_x are threads along an axis of a block: 0"),
        ({"tune_params": {"t": [float("nan")]}}, "the values of t must be finite"),
        ({"tune_params": {"t": "12"}}, "the values of t must be a list, not '12'"),
        ({"problem_size": (8, 0)}, "the problem size 0 must be 1 or more"),
        ({"problem_size": "block_size_x - 40"}, "the grid along x is 0 at block_size_x=32; it must be 1 or more"),
        ({"smem_args": {"size": -8}}, "the size of smem_args, -8, must be bytes"),
        (
            {"smem_args": {"size": lambda p: 1 // 0}},
            "the size of smem_args raises ZeroDivisionError at block_size_x=32",
        ),
        ({"restrictions": [3]}, "the restriction 3 must be a text, a function"),
        ({"restrictions": [(max, ["u"])]}, "the restriction on u: there is no 'u'"),
        ({"kernel_name": "f g"}, "the kernel's name 'f g' is not a name in CUDA"),
        ({"nonsense": 1}, "no argument 'nonsense'"),
        ({"verify": lambda a, b: True}, "give answer, too"),
    ],
)
def test_what_cannot_be_served_is_told(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "kernel_name": "f",
        "kernel_source": "__global__ void f(float *y, const float *x, int n) {}",
        "problem_size": 8,
        "arguments": [X.copy(), X, N],
        "tune_params": {"block_size_x": [32]},
        "device": "host",
        "results": tmp_path,
        "quiet": True,
    }
    with pytest.raises(UsageError, match=told):
        tune_kernel(**{**given, **change})


def test_an_option_and_its_value_may_be_two_words() -> None:
    macros, folders = options_of(["-I", "a b", "-Ic", "-D", "N=3", "-DM"], print)
    assert (macros, folders) == ({"N": "3", "M": "1"}, [Path("a b"), Path("c")])


def test_a_call_of_many_configs_is_told_of_a_shorter_search() -> None:
    told: list[str] = []
    lines = Lines(told.append, False, SHORTER)
    lines.begin("few", 5000, 0)
    lines.begin("most are done", 9000, 5000)
    assert told == ["few", "most are done; 5000 trials already recorded"]
    lines.begin("many", 5001, 0)
    assert told[-1] == f"a search of 2 minutes in place of all configs: {SHORTER}"


def test_configs_as_text() -> None:
    assert get_config_string({"x": 2, "time": 0.5}, units={"time": "ms"}) == "x=2, time=0.5ms"
    assert get_config_string({"x": 2, "time": 0.5}, ["x"]) == "x=2"
