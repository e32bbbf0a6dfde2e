"""Configs that fail in front of the first one that runs change no verdict: what is checked stays the same."""

import random
from pathlib import Path

import numpy as np
import pytest

from autotune.analysis.show import checks_text
from autotune.kernel_tuner import tune_kernel
from autotune.records.folder import SweepFolder

N = 1000
X = np.random.default_rng(0).normal(size=N).astype(np.float32)
SOURCE = """{include}
__global__ void f(float *y, const float *x, int n) {{
#if V < LATE
#error not supported
#endif
  int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i >= n) return;
#if BAD
  {body}
#else
  y[i] = 2 * x[i];
#endif
}}"""
BODIES = {  # of the config BAD=1; the other one is right
    "it is right, too": "y[i] = x[i] + x[i];",
    "every seventh is added": "if (i % 7) y[i] = 2 * x[i]; else y[i] += 2 * x[i];",
    "all are added": "y[i] += 2 * x[i];",
    "atomics add": "atomicAdd(&y[i], 2 * x[i]);",
    "the last is not written": "if (i < n - 1) y[i] = 2 * x[i];",
    "a lane is not written": "if (i % 32 != 5) y[i] = 2 * x[i];",
    "the larger one stays": "y[i] = fmaxf(y[i], 2 * x[i]);",
    "what is there stays": "if (y[i] == 0) y[i] = 2 * x[i];",
    "the old one counts a little": "y[i] = 2 * x[i] + 1e-30f * y[i];",
    "one is a bit off": "y[i] = i == 77 ? 2.01f * x[i] : 2 * x[i];",
}
BEGINS = {
    "zeros": np.zeros(N, np.float32),
    "ones": np.ones(N, np.float32),
    "numbers": X[::-1].copy(),
    "small": np.full(N, -1e30, np.float32),
}
CASES = [(body, begin) for body in BODIES for begin in BEGINS]
SAMPLE = random.Random(61).sample(CASES, 2)


def verdicts(
    results: Path, body: str, begin: str, late: int, include: str = ""
) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Returns status and checks of the configs after those that do not compile, by BAD."""
    space = {"block_size_x": [64], "V": list(range(late + 1)), "BAD": [0, 1], "LATE": [late]}
    source = SOURCE.format(include=include, body=BODIES[body])
    arguments = [BEGINS[begin].copy(), X, np.int32(N)]
    given = {"answer": [2 * X, None, None], "results": results, "iterations": 2, "quiet": True, "device": "host"}
    found, _ = tune_kernel("f", source, N, arguments, space, **given)
    trials = [trial for trial in SweepFolder(found.sweep.path).trials() if trial.config["V"] == late]
    assert len(trials) == 2
    return {int(trial.config["BAD"]): (str(trial.status), trial.checks) for trial in trials}


def check_alike(tmp_path: Path, body: str, begin: str) -> None:
    late = random.Random(f"{body} {begin}").randint(1, 50)
    first, later = (verdicts(tmp_path / str(n), body, begin, n) for n in (0, late))
    assert first == later and first[0][0] == "measured"
    assert (first[1][0] == "measured") == (body == "it is right, too"), (body, begin)


@pytest.mark.parametrize(("body", "begin"), SAMPLE)
def test_failing_configs_in_front_change_no_verdict(body: str, begin: str, tmp_path: Path) -> None:
    check_alike(tmp_path, body, begin)


@pytest.mark.thorough
@pytest.mark.parametrize(("body", "begin"), [case for case in CASES if case not in SAMPLE])
def test_failing_configs_in_front_never_change_a_verdict(body: str, begin: str, tmp_path: Path) -> None:
    check_alike(tmp_path, body, begin)


@pytest.mark.parametrize("include", ['#include "cuda_runtime.h"', "#include <cuda_runtime.h>"])
def test_a_quoted_header_of_cuda_changes_no_verdict(include: str, tmp_path: Path) -> None:
    found = verdicts(tmp_path, "every seventh is added", "zeros", 0, include)
    assert found[0][0] == "measured" and found[1][0] == "wrong"


def test_a_winner_says_which_usual_checks_it_lacks(tmp_path: Path) -> None:
    """The arrays of a call are of one size, and are the only ones."""
    arguments = [np.zeros(N, np.float32), X, np.int32(N)]
    source = SOURCE.format(include="", body="")
    given = {"answer": [2 * X, None, None], "results": tmp_path, "iterations": 2, "quiet": True, "device": "host"}
    space = {"block_size_x": [64], "V": [0], "BAD": [0], "LATE": [0]}
    found, _ = tune_kernel("f", source, N, arguments, space, **given)
    assert checks_text(found.sweep.best) == "correct as far as checked: without edge-sizes, values, fresh-inputs"
