"""The space of a call, and what its definition makes of it: restrictions, blocks, names and values, functions."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Device, UsageError
from autotune.core.definition import AnyKernel
from autotune.devices import Target
from autotune.kernel_tuner import tune_kernel
from autotune.kernel_tuner.asked import settings_of, silent
from autotune.porting.answers import Outputs
from autotune.porting.call import FITS, Call, read_call
from autotune.porting.definition_writer import write_definition
from autotune.porting.formulas import Formulas
from autotune.porting.sizes import sizes_of_call
from autotune.source.registry import load_kernel
from autotune.sweep.request import parse_config

N = 1000
SOURCE = "__global__ void f(float *y, int n) { int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) y[i] = 1; }"
GPU = Device("a GPU", "cuda", "sm_90")
TEN = list(range(10))


def call_of(params: dict[str, Any], size: Any = N, source: Any = SOURCE, **more: Any) -> Call:
    given = [np.zeros(N, np.float32), np.int32(N)]
    return replace(read_call("f", source, size, given, params, **more), device=GPU)


def written(call: Call, results: Path) -> tuple[AnyKernel, Formulas]:
    formulas = Formulas.of(call, sizes_of_call(call))
    return load_kernel(str(write_definition(formulas, Outputs({"y": "scratch"}, {}), results))), formulas


def check_same(call: Call, results: Path, most_bytes: int) -> Formulas:
    """Whether a definition allows the configs of the call, in their order, and says of them what the call says."""
    kernel, formulas = written(call, results)
    problem = kernel.tuned[0]
    configs = call.enumeration.configs
    assert kernel.space.enumerate(problem, GPU).configs == configs
    assert kernel.default_config(problem, GPU) == call.default == configs[0]
    place = Target("cuda", "sm_90", GPU)
    assert [parse_config(kernel, str(config), problem, place) for config in configs[:9]] == list(configs[:9])
    for config in configs[:: 1 + len(configs) // 100]:
        launch, said = kernel.launch(problem, config), formulas.said(config)
        assert (launch.grid, launch.block, launch.shared_bytes) == (said.grid, said.block, said.shared_bytes)
        constants = kernel.constants(problem, config)
        assert constants["defines"] == said.defines
        if call.generate is not None and "source" in constants:
            assert constants["source"] == call.generated(config)
    assert kernel.source_path.stat().st_size < most_bytes
    return formulas


# ---------------------------------------------------------------------- restrictions, budgets, blocks
def test_the_first_config_comes_late_and_is_found_at_once() -> None:
    params = {"block_size_x": [1, 2, 4, 8], "block_size_y": [1, 2, 4, 8], **{f"p{i}": TEN for i in range(8)}}
    call = call_of(params, restrictions=["block_size_x * block_size_y >= 64", "p0 == 9"])
    assert call.default == {
        "block_size_x": 8,
        "block_size_y": 8,
        "p0": 9,
        **{f"p{i}": call.default[f"p{i}"] for i in range(1, 8)},
    }
    assert call.enumeration.n_allowed == 10**7
    with pytest.raises(UsageError, match=r"f: the restrictions allow no config: .* violate: "):
        call_of(params, restrictions=["block_size_x > 4 and p1 < 3", "block_size_x + p1 == 3"])
    chosen = call_of(
        params, restrictions=[lambda p: p["block_size_x"] * p["block_size_y"] > 32, lambda **p: p["p7"] > 8]
    )
    assert chosen.enumeration.n_allowed == 10**7 and chosen.default["block_size_y"] == 8


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            ["block_size_x % t == 0"],
            "the restriction 'block_size_x % t == 0' raises ZeroDivisionError at block_size_x=32, t=0",
        ),
        (lambda p: 8 // p["t"] > 1, r"the restriction <lambda> \(line \d+\) raises ZeroDivisionError at t=0: "),
        (
            [(lambda v: [5, 6][v] > 1, ["t"])],
            r"the restriction <lambda> \(line \d+\) raises IndexError at t=2: list index",
        ),
        (lambda block_size_x, t: block_size_x.bit_length() > t.real + None, "raises TypeError at block_size_x=32, t=0"),
    ],
)
def test_a_restriction_that_raises_is_named_with_the_combination(rule: Any, told: str) -> None:
    with pytest.raises(UsageError, match=f"{told}.*make it return False there"):
        call_of({"block_size_x": [32], "t": [0, 2]}, restrictions=rule).enumeration  # noqa: B018


@pytest.mark.parametrize(
    ("options", "restrictions", "n"),
    [
        ({"fraction": 0.25}, ["t < 2"], 2),
        ({"fraction": 0.5}, lambda t: t in (3, 4, 5), 6),
        ({"fraction": 0.001}, None, 1),
        ({"max_fevals": 7, "fraction": 0.25}, ["t < 2"], 7),
    ],
)
def test_a_fraction_is_of_the_allowed_configs(options: dict[str, Any], restrictions: Any, n: int) -> None:
    call = call_of({"block_size_x": [32, 64, 96, 128], "t": list(range(50))}, restrictions=restrictions)
    found = settings_of("random_sample", options, None, None, Path("results"), 60.0, call, None, silent)
    assert found.trials == n


@pytest.mark.parametrize(
    ("params", "names", "n_allowed"),
    [
        ({"block_size_x": [32 * i for i in range(1, 33)], "block_size_y": list(range(1, 33))}, None, 119),
        ({"block_size_x": [1024, 2048], "t": [1, 2]}, None, 2),
        ({"block_size_x": [2], "block_size_y": [1], "block_size_z": [32, 64, 128]}, None, 2),
        ({"wide": [512, 1024], "high": [2, 4]}, ["wide", "high"], 1),
        ({"block_size_y": [1, 4, 8]}, None, 2),
    ],
)
def test_blocks_that_the_device_has_not_are_refused_before_any_trial(
    params: dict[str, Any], names: Any, n_allowed: int, tmp_path: Path
) -> None:
    call = call_of(params, source=SOURCE.replace("block_size_x", "blockDim.x"), block_size_names=names)
    found, n_all = call.enumeration, np.prod([len(values) for values in params.values()])
    assert len(found.configs) == n_allowed and found.refused == {FITS: n_all - n_allowed}
    check_same(call, tmp_path, 6000)


def test_refused_blocks_are_told_once_with_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [np.zeros(N, np.float32), np.int32(N)]
    params = {"block_size_x": [512, 1024, 2048], "block_size_y": [1, 2, 4]}
    source = SOURCE.replace("block_size_x", "blockDim.x")
    results, _ = tune_kernel(
        "f", source, (N, 1), given, params, strategy="random_sample", strategy_options={"max_fevals": 2}, device="host",
        results=tmp_path,
    )  # fmt: skip
    told = [line for line in capsys.readouterr().out.splitlines() if FITS in line]
    assert told == [f"f: combinations left out: 6 violate: {FITS}"] and len(results) == 2


# ---------------------------------------------------------------------- names and values
@pytest.mark.quick
@pytest.mark.parametrize(
    "params",
    [
        {"T": ["pair<int, 4>", "int", "a=b"]},
        {"T": ['say "it"', "it's", "back\\slash", "ends\\", "two\nlines", "tab\t", ""]},
        {"T": ["naïve", "π", "🚀", "{{ x }}", "{% raw %}", "{x}", "%s"]},
        {"lambda": [1, 2], "config": [1, -2], "np": [0.5, -1e-30, 1e29]},
        {"self": [1, 2], "problem": [True, False], "c": [1], "def": [3], "None": [1]},
        {"SPACE": [1, 2], "json": [3], "fits": [4], "row_of": [5], "N": [-1, 0, 2**62]},
    ],
    ids=lambda params: "-".join(params),
)
@pytest.mark.parametrize("restrictions", [None, lambda p: str(next(iter(p.values()))) != "1"], ids=["free", "function"])
def test_a_definition_quotes_what_it_must(params: dict[str, Any], restrictions: Any, tmp_path: Path) -> None:
    call = call_of({"block_size_x": [32.0, 64.0], **params}, restrictions=restrictions)
    check_same(call, tmp_path, 20_000)
    names = [name for name in params if name.isidentifier() and name not in ("None",)]
    kernel, _ = written(call, tmp_path)
    assert kernel.source_path.read_text().isprintable() or "\n" in kernel.source_path.read_text()
    assert set(kernel.space.parameters) == {"block_size_x", *params} and names


def test_odd_names_and_values_are_tuned(tmp_path: Path) -> None:
    source = """
    template <class U, int m> struct pair { U first; U rest[m]; };
    __global__ void f(float *y, int n) { using t = T; if (threadIdx.x < n) y[threadIdx.x] = sizeof(t) * lambda; }
    """
    given = [np.zeros(N, np.float32), np.int32(64)]
    params = {"block_size_x": [64.0], "T": ["pair<int, 4>", "float"], "lambda": [-1, 1]}
    found, _ = tune_kernel("f", source, 1, given, params, grid_div_x=[], device="host", results=tmp_path, quiet=True)
    assert [(r["block_size_x"], r["T"], r["lambda"]) for r in found] == [
        (64, T, sign) for T in params["T"] for sign in (-1, 1)
    ]


def test_values_that_no_record_holds_are_refused() -> None:
    for value in (10**31, -1e31, "\x1b[2J"):
        with pytest.raises(UsageError, match=r"a value of t is .*, must be (a number of at|text of printable)"):
            call_of({"block_size_x": [32], "t": [1, value]})


def test_counts_beyond_all_records_are_kept(tmp_path: Path) -> None:
    params = {"block_size_x": [32, 64], **{f"p{i}": TEN for i in range(24)}}
    given: dict[str, Any] = {"strategy": "random_sample", "strategy_options": {"max_fevals": 1}, "device": "host"}
    arguments = [np.zeros(N, np.float32), np.int32(N)]
    for _ in range(2):  # the second reads the record of the first
        found, _ = tune_kernel(
            "f", SOURCE, N, arguments, params, restrictions=["p0 < p1"], results=tmp_path, quiet=True, **given
        )
        assert len(found) == 1


def test_values_that_print_alike_are_refused() -> None:
    for values in ([1, "1"], [True, "True"], ["0.5", 0.5]):
        with pytest.raises(UsageError, match=r"the values of t print alike: .* give each a text of its own"):
            call_of({"block_size_x": [32], "t": values})


# ---------------------------------------------------------------------- functions
@pytest.mark.parametrize(
    "said",
    [
        {"divisors": (lambda p: p["block_size_x"], None, None)},
        {"divisors": (lambda p: p["block_size_x"] * (2 if p["p0"] > 3 else 1), lambda p: 1, None)},
        {"size": lambda p: (N * p["p1"] + 1, 3)},
        {"smem_args": {"size": lambda p: 4 * max(p["block_size_x"], p["p0"])}},
        {"defines": {"block_size_x": lambda p: p["block_size_x"], "A": lambda p: "p1 + 1", "B": lambda p: p["p0"] > 2}},
        {"divisors": (lambda p: {**p}["block_size_x"] if str(p["p0"]) else 1, None, None)},
        {"size": lambda p: (int(f"{p['p1']}") + 1, p["block_size_x"])},
        {"smem_args": {"size": lambda p: sum(range(p["p0"]))}},
        {"defines": {"block_size_x": "block_size_x", "A": lambda p: f"{p['p0']}.f"}},
        {"restrictions": lambda p: len(str(p["p0"] * p["p1"])) == 2},
        {"source": lambda p: SOURCE + f" // {p['p0']}"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_functions_are_columns_of_what_they_say(said: dict[str, Any], tmp_path: Path) -> None:
    params = {"block_size_x": [32 * i for i in range(1, 21)], "p0": TEN, "p1": TEN[1:], "one": [7]}
    call = call_of(params, **said)
    n = len(call.enumeration.configs)
    check_same(call, tmp_path, 6000 + 32 * n)


# ---------------------------------------------------------------------- what Kernel Tuner measured
def cache_text(times: dict[int, Any]) -> str:
    rows = {
        f"{block},1": {"block_size_x": block, "one": 1, "time": time, "compile_time": 1.0}
        for block, time in times.items()
    }
    return json.dumps({"device_name": "a GPU", "kernel_name": "f", "tune_params_keys": ["block_size_x", "one"],
                       "tune_params": {"block_size_x": list(times), "one": [1]}, "cache": rows})  # fmt: skip


@pytest.mark.parametrize("name", ["cache.json", "cache"])
def test_a_cache_of_kernel_tuner_says_what_is_tried_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {32: 9.0, 64: "CompilationFailedConfig", 96: 0.5, 4096: 0.1, 128: 0.7, 160: 3.0}
    (tmp_path / "cache.json").write_text(cache_text(times))
    given: dict[str, Any] = {"strategy": "random_sample", "strategy_options": {"max_fevals": 3}, "device": "host"}
    found, _ = tune_kernel(
        "f", SOURCE, N, [np.zeros(N, np.float32), np.int32(N)], {"block_size_x": [32, 64, 96, 128, 160, 192]},
        cache=str(tmp_path / name), results=tmp_path, **given,
    )  # fmt: skip
    assert [r["block_size_x"] for r in found] == [32, 96, 128], "the default, and the two that were fastest there"
    assert "cache.json: 4 of its 5 measured configs are tried first" in capsys.readouterr().out
    assert found[1]["time"] != 0.5, "its times prove nothing"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            cache_text({7: 1.0}),
            "has 1 measured configs of block_size_x, one, and none of them is allowed here: name a file",
        ),
        ("{}", "is neither a Kernel Tuner cache"),
        ('{"cache": {"1": {"block_size_x": 1}}}', "is damaged: KeyError: 'tune_params_keys'"),
    ],
)
def test_a_file_that_says_nothing_of_the_call_is_refused(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "cache.json").write_text(text)
    with pytest.raises(UsageError, match=told):
        tune_kernel(
            "f", SOURCE, N, [np.zeros(N, np.float32), np.int32(N)], {"block_size_x": [32]}, device="host",
            cache=str(tmp_path / "cache.json"), results=tmp_path, quiet=True,
        )  # fmt: skip
