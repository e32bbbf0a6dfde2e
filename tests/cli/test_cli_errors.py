"""Whatever is typed, printed by a definition, or set in the environment: one clear line, and data on stdout only."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.core.space import Space
from autotune.devices import find_device
from autotune.source.registry import load_kernel
from autotune.sweep.request import parse_config, problem_on, problems_on
from autotune.system import memory

from ..commands import autotune as typed
from ..commands import ended
from ..conftest import DEFINITIONS, EXAMPLE

TALKATIVE = str(DEFINITIONS / "talkative.py")
INTEGRATE = str(DEFINITIONS / "integrate.py")
SWEEP = ["sweep", "--kernel", EXAMPLE, "--device", "simulated"]
ON_HOST = ["--kernel", EXAMPLE, "--device", "host"]
WGMMA = ["render", "--kernel", "correlate", "--arch", "sm_120"]
WGMMA += ["--config", "MMA=wgmma,STAGES=7,IN_FLIGHT=1,CHAIN=1,FETCH=128,STORE=stream"]
WORKER = ["worker", "tcp://127.0.0.1:1"]


def mistake(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The exit code and the one line of a command that goes wrong."""
    code, line = ended(words, capsys, monkeypatch)
    assert line.endswith("\n") and line.startswith("autotune: "), line
    assert line.count("\n") == 1, line
    return code, line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["swep"], "No such command 'swep'"),
        (["sweep"], "Missing option '--kernel'"),
        (["sweep", "--kernel"], "requires an argument"),
        (["sweep", "--colour"], "No such option: --colour"),
        (["sweep", "--kernel", "\x1b[31mddc\nx"], r"no kernel is called '\x1b[31mddc\nx'"),
        (["sweep", "--kernel", ""], "no kernel is called ''"),
        (["sweep", "--kernel", "x.cu"], "`autotune tune x.cu ..` tunes a source as it is"),
        (["sweep", "--kernel", "./x.cu"], "`autotune tune ./x.cu ..` tunes a source as it is"),
        ([*SWEEP, "--problem", "n=1", "n_pols=2"], "separated by commas, as --problem taps=64,n_pols=2"),
        ([*SWEEP, "--time", "5q"], "5q must be seconds, or a time with a unit, as 90s, 5m, 1.5h or 2d"),
        ([*SWEEP, "--trials", "x"], "Invalid value for '--trials'"),
        ([*SWEEP, "--trials", "0"], "Invalid value for '--trials'"),
        *(
            ([*SWEEP, option, value], f"{value} must be a finite number from ")
            for option in ("--sustained", "--time", "--deadline", "--compile-deadline")
            for value in ("nan", "inf", "-1.0", "1e+300")
        ),
        ([*SWEEP, "--deadline", "0"], "must be a finite number from 0.001"),
        ([*SWEEP, "--compile-deadline", "0"], "must be a finite number from 0.001"),
        ([*SWEEP, "--seed", "-1"], "-1 must be an integer from 0"),
        ([*SWEEP, "--samples", "99999999999"], "Invalid value for '--samples'"),
        ([*SWEEP, "--trials", "99999999999999999999"], "must be an integer from 1"),
        (["verify", "--kernel", EXAMPLE, "--device", "host", "--deadline", "nan"], "must be a finite number from"),
        (["portfolio", "results", "--regret", "nan"], "must be a finite number from 0 to 1000"),
        (["portfolio", "results", "--regret", "inf"], "must be a finite number from 0 to 1000"),
        (
            ["replay", "results"],
            "No such command 'replay'. It is a program of autotune's repository: python benchmarks/searches.py",
        ),
        ([*SWEEP, "--problem", "n_chan=nan"], "n_chan=nan must be an integer"),
        ([*SWEEP, "--problem", "n_chan=1e5"], "n_chan=100000.0 must be an integer"),
        ([*SWEEP, "--problem", "n_chan=true"], "n_chan=True must be an integer"),
        ([*SWEEP, "--problem", "n_chan=0"], "n_chan=0 makes the array power [0]; each of its extents must be at least"),
        ([*SWEEP, "--problem", "n_chan=-4"], "n_chan=-4 makes the array power [-4]"),
        ([*SWEEP, "--problem", "n_time=0"], "n_time=0 makes the array voltage [0, 200]"),
        (["verify", "--kernel", INTEGRATE, "--problem", "n_rows=0"], "n_rows=0 makes the array samples [0, 1000]"),
        (["render", "--kernel", INTEGRATE, "--problem", "n_rows=0"], "n_rows=0 makes the array samples [0, 1000]"),
        ([*SWEEP, "--problem", "n_chan=99999999999"], "take 8.2e+05 GB, and this machine has "),
        (["sweep", "--kernel", "ddc", "--device", "host", "--problem", "n_samples=99999999999"], "GB free; choose"),
        (
            ["verify", "--kernel", INTEGRATE, "--device", "host", "--problem", "n_rows=100000"],
            'too much for the device host, where a CPU runs each thread; set host_sizes = {"n_samples": ...} in',
        ),
        (["sweep", "--kernel", "dequantize", "--problem", "missing=3"], "missing=3 must be true or false"),
        (["sweep", "--kernel", "dequantize", "--problem", "out_type=3"], "out_type=3 must be float32"),
        (["render", "--kernel", "ddc", "--config", "WGS=nan"], "WGS=nan is not in the space"),
        (["worker", "x"], "'x' is not a scheduler's address; write tls://host:8786"),
        (["worker", ""], "'' is not a scheduler's address"),
        (["campaign", "c.toml", "--scheduler", "host:8786"], "is not a scheduler's address"),
        (["campaign", "c.toml", "--tls-ca", "ca.pem"], "are for --scheduler tls://host:8786"),
        ([*WORKER, "--tls-cert", "x"], "--tls-cert has no effect at tcp://127.0.0.1:1"),
        (
            ["worker", "tls://127.0.0.1:1", "--tls-ca", "none", "--tls-cert", "none"],
            "cannot read the certificate or key",
        ),
        (["campaign", "none.toml"], "cannot read the campaign none.toml"),
        (["sweep", "--kernel", "dcd"], "no kernel is called 'dcd' (there are: "),
        (["sweep", "--kernel", "nowhere.py"], "nowhere.py does not exist"),
        (["sweep", "--kernel", "ddc", "--problem", "tabs=16"], "'tabs' is not a field of ddc's problem (has taps, "),
        (["sweep", "--kernel", "ddc", "--problem", "taps"], "'taps' in 'taps' is not name=value"),
        (["sweep", "--kernel", "ddc", "--problem", "taps=1.5"], "taps=1.5 must be an integer"),
        (["sweep", "--kernel", "ddc", "--problem", "sample_bits=17"], "sample_bits=17 must be 2 to 16"),
        (["sweep", "--kernel", "ddc", "--problem", "taps=16,taps=32"], "taps is given twice"),
        (["sweep", "--kernel", "ddc", "--only", "WGS=1"], "WGS=1 is not in the space; WGS may be "),
        ([*SWEEP, "--sampler", "annealing"], "no sampler is called 'annealing'"),
        (["sweep", "--kernel", "ddc", "--device", "cuda:99"], "device 'cuda:99' is not here; usable: "),
        (["verify", *ON_HOST, "--config", "BLOCK_C=32"], "the configuration lacks BLOCK_T"),
        (["verify", *ON_HOST, "--config", "BLOCK_C=32,BLOCK_T=1,UNROLL=1"], "which violates: a block has 64"),
        (["verify", *ON_HOST, "--config", "BLOCK_C=32,BLOCK_T=1,UNROLL=1"], "Allowed instead: BLOCK_C=64 or 128; or "),
        (WGMMA, "which violates: only sm_90 has wgmma (wgmma_exists). The nearest allowed config: MMA=mma_sync,"),
        (["verify", *ON_HOST, "--build", "debug"], "host has no build 'debug' (it has check, plain)"),
        (["verify", "--kernel", "ddc", "--compile-for", "sm_1"], "'sm_1' is not a known architecture"),
        (["sweep", "--kernel", "ddc", "--device", "host", "--results", "/proc/results"], "cannot write /proc/results"),
        (["show", "/nowhere"], "/nowhere holds no recorded sweep"),
        (["export", "/nowhere"], "/nowhere holds no recorded sweep"),
        (["emit", "/nowhere", "--out", "tuned"], "/nowhere"),
        (["sweep", "--kernel", "ddc", "--trials", "many"], "Invalid value for '--trials'"),
        (["show", "none"], "none"),
        (["emit", "none", "--out", "x"], "none"),
        (["lookup", "none", "--kernel", "ddc"], "is not a package"),
    ],
)
@pytest.mark.quick
def test_one_line(
    words: list[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, line = mistake(words, capsys, monkeypatch)
    assert code == 2 and says in line, line
    assert list(tmp_path.iterdir()) == [], "nothing was begun"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kernel = 3", "kernel=3 must be a kernel's name"),
        ("kernel = ['ddc']", "kernel=['ddc'] must be a kernel's name"),
        ("results = 3", "results=3 must be a path"),
        ("devices = 3", "devices=3 must be a device's name, or a list of names"),
        ("devices = []", "devices=[] must be"),
        ("devices = [3]", "devices=[3] must be"),
        ("pilots = 'x'", "pilots='x' must be an integer from 0"),
        ("pilots = 1.5", "pilots=1.5 must be an integer from 0"),
        ("pilots = -1", "pilots=-1 must be an integer from 0"),
        ("pilot_effort = 3", "pilot_effort=3 must be the name of an effort"),
        ("revisit = true", "revisit=True must be an integer from 0"),
        ("revisit = inf", "revisit=inf must be an integer from 0"),
        ("grid = 3", "grid=3 must be a table of lists"),
        ("problem = 3", "problem=3 must be a table"),
        ("sweep = 3", "sweep=3 must be a table"),
        ("[grid]\nn_chan = []", "[grid] has 0 combinations"),
        ("[grid]\nn_chan = [[1]]", "n_chan=[1] must be a number"),
        ("[grid]\nn_chan = [nan]", "n_chan=nan must be an integer"),
        ("[grid]\nn_chan = [0]", "n_chan=0 makes the array power [0]"),
        ("[grid]\nn_chan = {a = 1}", "n_chan={'a': 1} must be a number"),
        ("[grid]\nn_chan = [2026-01-01]", "must be a number, true or false, or text"),
        ("[grid]\n" + "\n".join(f"a{i} = {list(range(100))}" for i in range(9)), "combinations; it must have 1 to"),
        ("[problem]\nn_time = [1]", "n_time=[1] must be a number"),
        ("[problem]\nn_time = 'n_chan // 0'", "divides by zero"),
        ("[problem]\nn_time = 'n_chan * x'", "'n_chan * x' computes with 64 and 'x'; both must be integers"),
        (f"[problem]\nn_time = '{'*'.join(['99999'] * 99)}'", "overflows 64 bits"),
        (f"[problem]\nn_time = '{'(' * 999}1{')' * 999}'", "is not an expression"),
        ('[problem]\nn_time = "\\u0000"', "is not an expression"),
        ("[sweep]\ntrials = 'x'", "trials='x' must be an integer from 1"),
        ("[sweep]\ntime = nan", "time=nan must be a finite number from 0"),
        ("[sweep]\nsustained = inf", "sustained=inf must be a finite number from 0"),
        ("[sweep]\nsamples = 'x'", "samples='x' must be an integer from 3"),
        ("[sweep]\nsampler = 3", "sampler=3 must be a name"),
        ("[sweep]\nsampler = 'optuna:os.path'", "names a module to import, which a campaign's file may not do"),
        ("[sweep]\neffort = ['quick']", "unknown effort ['quick']"),
        ("[sweep]\nseed = -1", "seed=-1 must be an integer from 0"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("kernel = 'd\xe9tect'", "no kernel is called"),
    ],
)
def test_one_line_for_a_campaign(
    text: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = "" if text.startswith("kernel") else f"kernel = '{EXAMPLE}'\n"
    grid = "" if "grid" in text else "\n[grid]\nn_chan = [64]\n"
    (tmp_path / "c.toml").write_text(f"{begin}{text}{grid}" if "[" not in text[:1] else f"{begin}{grid}{text}")
    code, line = mistake(["campaign", str(tmp_path / "c.toml"), "--device", "simulated"], capsys, monkeypatch)
    assert code == 2 and says in line, line


def test_a_campaign_that_is_not_text(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe\x00")
    assert "is not TOML" in mistake(["campaign", str(tmp_path / "c.toml")], capsys, monkeypatch)[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"problem": "taps=3"}, "problem='taps=3' must be a dict"),
        ({"problem": {3: 4}}, "3 is not a field"),
        ({"problem": {"taps": "3"}}, "taps=3 must be an integer"),
        ({"problem": {"taps": None}}, "taps=None must be an integer"),
        ({"kernel": 3}, "kernel=3 must be a kernel's name"),
        ({"device": 3}, "device=3 must be a device's name"),
        ({"only": 3}, "only=3 must be a tuple of texts"),
        ({"only": [3]}, "values=3 must be text"),
        ({"restrict": 3}, "only=3 must be a tuple of texts"),
        ({"restrict": {"WGS": 64}}, r"only\['WGS'\]=64 must be a tuple"),
        ({"results": 3}, "results=3 must be a path"),
        ({"effort": [1]}, r"unknown effort \[1\]"),
        ({"compile_processes": 0}, "compile_processes=0 must be an integer from 1"),
        ({"trials": "x"}, "trials='x' must be an integer from 1"),
        ({"time_s": float("nan")}, "time=nan must be a finite number"),
        ({"launch_deadline_s": 0}, "deadline=0 must be a finite number from 0.001"),
        ({"protocol": 3}, "protocol is not a setting; settings are "),
        ({"trialz": 3}, "trialz is not a setting; settings are "),
    ],
)
@pytest.mark.quick
def test_what_python_gives_is_checked(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(autotune.UsageError, match=says):
        autotune.sweep(**{"kernel": "ddc", **arguments})


def test_what_python_gives_to_run_and_emit_is_checked() -> None:
    for call, says in (
        (lambda: autotune.run("ddc", inputs=3), "inputs=3 must be a dict"),
        (lambda: autotune.run("ddc", inputs={}, config="WGS=64"), "config='WGS=64' must be a dict"),
        (lambda: autotune.run("ddc", inputs={}, problem={"taps": "3"}), "taps=3 must be an integer"),
        (lambda: autotune.emit(3, "x"), "paths=3 must be a list of paths"),
        (lambda: autotune.emit([3], "x"), "path=3 must be a path"),
        (lambda: autotune.emit("x", 3), "out=3 must be a path"),
        (lambda: autotune.emit("x", "y", portfolio="z"), "portfolio='z' must be an integer from 1"),
    ):
        with pytest.raises(autotune.UsageError, match=says):
            call()


# ---------------------------------------------------------------------- values that read as something else
def test_a_config_reads_back_as_it_is_written() -> None:
    kernel = load_kernel(TALKATIVE)
    target = find_device("host")
    problem = problem_on(kernel, {}, target)
    configs = kernel.space.enumerate(problem, target.device).configs
    assert {config.WORD for config in configs} == {"nan", "inf", "1e5", "true", "007"}
    assert [parse_config(kernel, str(config), problem, target) for config in configs] == list(configs)
    assert parse_config(kernel, "WORD=nan,WGS=064,FLAG=true", problem, target).WGS == 64, "as it may be typed"
    for word in ("1e5", "nan", "true", "12"):
        assert problems_on(kernel, [f"word={word}"], target)[0].word == word


@pytest.mark.parametrize("values", [(True, "True"), (1, "1"), ("1.0", 1.0)])
def test_values_that_print_alike_are_refused(values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="parameter WORD has values that print alike"):
        Space(WORD=values)


def test_a_field_that_cannot_be_written_is_refused() -> None:
    kernel = load_kernel(TALKATIVE)
    for word in ("a,n=3", "", "a\nb", " a"):
        with pytest.raises(autotune.UsageError, match="cannot be written as a problem"):
            problem_on(kernel, {"word": word}, find_device("host"))


# ---------------------------------------------------------------------- data on stdout, and nothing else
def test_what_a_definition_prints_is_no_data(tmp_path: Path) -> None:
    on_host = ["--kernel", TALKATIVE, "--device", "host"]
    config = "WORD=1e5,WGS=64,FLAG=True"
    words = ["sweep", *on_host, "--only", "WORD=nan", "--only", "WGS=64", "--results", str(tmp_path / "r"), "--json"]
    swept = typed(*words)
    assert json.loads(swept.stdout)[0]["best"]["config"]["WORD"] == "nan", swept.stderr
    assert json.loads(typed("verify", *on_host, "--config", config, "--json").stdout)["passed"] == 1
    source = typed("render", "--kernel", TALKATIVE, "--config", config)
    assert source.stdout.startswith("// talkative[") and "talking" not in source.stdout, source.stdout
    for where in ("import", "a constraint"):
        assert f"talking in {where}\n" in source.stderr and f"talking in {where}, below Python\n" in source.stderr
    for where in ("launch", "reference", "arrays"):
        assert f"talking in {where}, below Python\n" in swept.stderr


def test_help_is_data() -> None:
    for words in ((), ("-h",), ("sweep", "-h")):
        done = typed(*words)
        assert done.returncode == 0 and done.stdout.startswith("Usage: autotune") and done.stderr == "", words


def test_any_encoding_and_missing_streams(tmp_path: Path) -> None:
    folder = tmp_path / "caf\xe9 \u2713"
    swept = typed(*SWEEP, "--trials", "3", "--results", str(folder))
    assert swept.returncode == 0, swept.stderr
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for words in (
        ["show", str(folder)],
        ["export", str(folder), "--format", "csv"],
        [*SWEEP, "--results", str(folder)],
    ):
        done = subprocess.run([sys.executable, "-m", "autotune", *words], capture_output=True, env=environment)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        done = subprocess.run(f"{sys.executable} -m autotune doctor {closed}", shell=True, capture_output=True)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, (closed, done.stderr)


def test_the_commands_that_are_printed_are_quoted(tmp_path: Path) -> None:
    import shlex

    folder = tmp_path / "it's; rm -rf *"
    words = ["sweep", "--kernel", TALKATIVE, "--device", "host", "--only", "WORD=nan", "--results", str(folder)]
    swept = typed(*words)
    (line,) = [line for line in swept.stdout.splitlines() if line.startswith("next ")]
    found = shlex.split(line)[1:]
    assert found[:2] == ["autotune", "emit"] and found[2].startswith(str(folder)), line
    assert found[3:] == ["--out", "tuned", "--kernel", TALKATIVE], line
    emitted = typed(*found[1:], cwd=tmp_path)
    assert emitted.returncode == 0 and "`pip install ./tuned`" in emitted.stdout, emitted


# ---------------------------------------------------------------------- the environment
@pytest.mark.parametrize("value", ["x", "nan", "inf", "-1", ""])
def test_nonsense_in_the_environment_is_one_line(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_BYTES", value)
    with pytest.raises(
        autotune.UsageError, match=r"AUTOTUNE_CACHE_BYTES=.* in the environment must be a finite number"
    ):
        autotune.sweep(EXAMPLE, device="simulated", results=tmp_path)


def test_a_simulated_compile_time_that_is_none_ends_the_sweep_in_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "AUTOTUNE_SIMULATED_COMPILE_S": "soon", "AUTOTUNE_CACHE_DIR": str(tmp_path / "c")}
    done = typed(*SWEEP, "--results", str(tmp_path / "r"), env=environment)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "AUTOTUNE_SIMULATED_COMPILE_S='soon' in the environment must be" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("words", [["sweep", "--device", "host"], ["verify", "--device", "host"], ["sweep"]])
def test_a_home_that_cannot_be_written_is_one_line(words: list[str], tmp_path: Path) -> None:
    environment = {name: v for name, v in os.environ.items() if not name.startswith(("AUTOTUNE", "XDG"))}
    environment["HOME"] = "/proc/1/no home"  # where root may not write, either
    done = typed(*words, "--kernel", EXAMPLE, cwd=tmp_path, env=environment)
    told = [line for line in done.stderr.splitlines() if line.startswith("autotune: ")]
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr and len(told) == 1, done.stderr
    assert "/proc/1/no home" in told[0]


def test_memory_is_the_most_that_the_system_or_the_container_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable:  700 kB\n")
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "LIMIT", tmp_path / "max")
    assert memory.available_bytes() == 700 * 1024
    (tmp_path / "max").write_text("max\n")
    assert memory.available_bytes() == 700 * 1024
    (tmp_path / "max").write_text("1000000\n")
    assert memory.available_bytes() == 1000000, "more is given when it is used"
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "none")
    monkeypatch.setattr(memory, "LIMIT", tmp_path / "none")
    assert memory.available_bytes() is None


@pytest.mark.parametrize("words", [["05:10:00", "+12:30:00"], ["05:10:00", "-1d2m"]])
def test_a_direction_without_quotes_is_shown_with_them(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["correlate", "a.toml", "--accumulate", "4", "--plot", "x.png", "--phase-centre", *words]
    code, told = mistake(line, capsys, monkeypatch)
    assert code == 2 and "--phase-centre '22:00:00 +20:00:00'" in told


def test_an_output_in_a_folder_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.npy").write_bytes(b"")
    np.save(tmp_path / "x.npy", np.zeros(1 << 14, np.int8))
    line = ["channelise", str(tmp_path / "x.npy"), "--channels", "64", "--spectra-per-heap", "4", "--device", "host"]
    code, told = mistake([*line, "--out", str(tmp_path / "nowhere" / "x.h5")], capsys, monkeypatch)
    assert code == 2 and f"there is no folder {tmp_path / 'nowhere'}: make it" in told
