"""The command line: data to stdout, one clear line for each mistake, exit codes 0, 1 and 2, never a traceback."""

import io
import json
import re
import resource
import time
from pathlib import Path

import pandas as pd
import pytest

from autotune import Config, Device
from autotune.cli.commands.doctor import gpu_lines
from autotune.core.definition import problem_name
from autotune.devices import Target, find_device
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.source.registry import load_kernel
from autotune.system.installation import VERSION
from autotune.trial import verify_configs

from ..commands import autotune
from ..conftest import DEFINITIONS, EXAMPLE, FAULTY
from ..forked import Command

INTEGRATE = str(DEFINITIONS / "integrate.py")
ONE = "BLOCK_C=32,BLOCK_T=4,UNROLL=1"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded sweep over a part of the space."""
    results = tmp_path_factory.mktemp("cli")
    done = autotune("sweep", "--kernel", EXAMPLE, "--device", "host", "--only", "BLOCK_C=32", "--results", str(results))
    assert done.returncode == 0, done.stderr
    assert (
        "best" in done.stdout and "default" in done.stdout and "speed-up" in done.stdout and str(results) in done.stdout
    )
    assert "next         autotune emit" in done.stdout
    assert "time         " in done.stdout and "verifying" in done.stdout and "device       idle" in done.stdout
    (refused,) = [line for line in done.stdout.splitlines() if line.startswith("excluded")]  # one line; `show` has all
    assert "by 1 constraint (see `autotune show`)" in refused
    return results


@pytest.mark.thorough
def test_a_disk_that_fills_up_while_recording_ends_with_one_line_and_loses_nothing(tmp_path: Path) -> None:
    words = ["sweep", "--kernel", EXAMPLE, "--device", "host", "--only", "UNROLL=1", "--results", str(tmp_path)]
    sweep = Command(*words)
    while not (files := [p for p in tmp_path.rglob("trials.jsonl") if p.stat().st_size]) and sweep.poll() is None:
        time.sleep(0.02)
    limit = files[0].stat().st_size + 2500  # a trial or two more
    resource.prlimit(sweep.pid, resource.RLIMIT_FSIZE, (limit, limit))
    _, progress = sweep.communicate(timeout=120)
    assert sweep.returncode == 1 and "Traceback" not in progress, progress
    assert "cannot write" in progress.splitlines()[-1] and "What was recorded before is safe" in progress
    (folder,) = find_sweeps(tmp_path)
    n_before = len(folder.trials())
    assert n_before >= 1
    again = autotune(*words)
    assert again.returncode == 0 and f"{n_before} trials already recorded" in again.stderr


def test_exported_trials_are_one_row_each_with_all_columns(recorded: Path) -> None:
    done = autotune("export", str(recorded), "--format", "csv")
    table = pd.read_csv(io.StringIO(done.stdout))
    (folder,) = find_sweeps(recorded)
    assert len(table) == len(folder.trials()) == 8
    wanted = "BLOCK_C BLOCK_T UNROLL status median_s q1_s q3_s n_samples registers shared_bytes spill_bytes gb_per_s"
    wanted += " tflop_per_s efficiency compile_s max_error problem.n_chan device kernel"
    assert set(wanted.split()) <= set(table.columns)
    assert (table["status"] == "measured").all() and (table["median_s"] > 0).all() and (table["max_error"] < 1e-4).all()
    assert (table["n_samples"] > 2).all()


def test_show_tells_the_winner_and_the_search(recorded: Path) -> None:
    done = autotune("show", str(recorded))
    assert done.returncode == 0 and "final round" in done.stdout and "best so far" in done.stdout
    (about,) = json.loads(autotune("show", str(recorded), "--json").stdout)
    assert about["verdict"]["winner"]["median_s"] > 0


def test_sweep_json_is_for_programs(recorded: Path) -> None:
    words = (
        "sweep",
        "--kernel",
        EXAMPLE,
        "--device",
        "host",
        "--only",
        "BLOCK_C=32",
        "--results",
        str(recorded),
        "--json",
    )
    (summary,) = json.loads(autotune(*words).stdout)
    assert summary["best"]["median_s"] > 0 and summary["trials"] == {"measured": 8}
    assert SweepFolder(Path(summary["path"])).outcome() is not None


@pytest.mark.quick
def test_verify_passes_and_fails_by_exit_code() -> None:
    passed = autotune("verify", "--kernel", EXAMPLE, "--device", "host", "--config", ONE)
    assert passed.returncode == 0 and "1 passed, 0 failed, 0 skipped" in passed.stdout, passed.stderr
    failed = autotune("verify", "--kernel", FAULTY, "--device", "host", "--config", "FAULT=past_the_end")
    assert failed.returncode == 1 and "0 passed, 1 failed" in failed.stdout
    assert "past_the_end" in failed.stderr


def test_verify_leaves_out_a_size_for_which_numpy_would_need_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_kernel(EXAMPLE)
    problem = kernel.problem({"n_chan": 256})

    def outcome() -> str:
        work = [(problem, Config(kernel.default))]
        checking = verify_configs.Checking(find_device("host"), compile_processes=1)
        (one,) = verify_configs.check_all(kernel, work, checking)
        assert one.status == "passed", one.message
        return one.message

    assert problem_name(problem) in outcome()
    monkeypatch.setattr(verify_configs, "too_large_for_numpy", lambda kernel, problem: True)
    message = outcome()
    assert problem_name(problem) not in message and message.endswith(verify_configs.TOO_LARGE)


def test_verify_compiles_for_gpus_that_are_not_here() -> None:
    words = [word for arch in ("sm_80", "sm_100", "sm_120") for word in ("--compile-for", arch)]
    done = autotune("verify", "--kernel", EXAMPLE, "--device", "host", *words, "--sample", "3")
    assert done.returncode == 0 and "9 passed" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "--compile-for", "sm_90", "--all"],
        ["verify", "--compile-for", "sm_80", "--compile-for", "sm_120", "--sample", "1"],
        ["sweep", "--device", "simulated", "--trials", "2"],
    ],
)
def test_what_launches_nothing_needs_no_sizes_for_the_host(words: list[str], tmp_path: Path) -> None:
    large = ["--kernel", INTEGRATE, "--problem", "n_rows=11000"]  # 143 MB of arrays
    done = autotune(*words, *large, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    refused = autotune("verify", "--device", "host", *large, cwd=tmp_path)
    assert refused.returncode == 2 and "143 MB, too much for the device host" in refused.stderr


@pytest.mark.quick
def test_render_prints_the_source_of_one_variant() -> None:
    done = autotune("render", "--kernel", EXAMPLE, "--config", ONE)
    assert done.stdout.startswith(f"// detect[n_time=1024|{ONE}]") and "#line" not in done.stdout


def test_list_shows_a_kernel_of_a_file() -> None:
    shown = autotune("list", "--kernel", EXAMPLE).stdout
    assert "detect: " in shown and "(26 configs on sm_90)" in shown and "ddc" not in shown
    assert "26       allowed, of 30 combinations" in shown
    assert "4        violate: a block has 64 to max_threads_per_block threads" in shown


def test_verify_says_which_constraint_allows_nothing(tmp_path: Path) -> None:
    definition = tmp_path / "detect.py"
    definition.write_text(Path(EXAMPLE).read_text().replace("device.max_threads_per_block", "device.most_threads"))
    done = autotune("verify", "--kernel", str(definition), "--device", "host")
    assert done.returncode == 2 and not done.stdout
    assert "detect: no configuration is allowed for n_time=1024,n_chan=200: 2 violate: a block has" in done.stderr
    assert "; 28 cannot be judged: the constraint block_fits raises AttributeError: " in done.stderr


@pytest.mark.quick
def test_version_is_told() -> None:
    done = autotune("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"autotune {VERSION}\n", "")


def test_list_and_doctor_speak_to_people_and_programs() -> None:
    assert "ddc" in autotune("list").stdout
    assert any(row["kernel"] == "ddc" for row in json.loads(autotune("list", "--json").stdout))
    done = autotune("doctor")
    assert done.returncode == 0 and re.search("^kernels can be .*on: host, the CPU; ", done.stdout, re.MULTILINE)
    told = json.loads(autotune("doctor", "--json").stdout)
    assert told["findings"] and "host" in told["checked_on"] and "host" not in told["tuned_on"]


@pytest.mark.quick
def test_doctor_names_what_kernels_can_be_tuned_on() -> None:
    gpu = Target("cuda", "cuda:1", Device("NVIDIA H200", "cuda", "sm_90"))
    host = "host, the CPU; its times say nothing about a GPU"
    assert gpu_lines([gpu], is_host_there=True) == [
        "kernels can be tuned on: NVIDIA H200 (cuda:1)",
        f"kernels can be checked on: {host}",
    ]
    assert gpu_lines([gpu], is_host_there=False) == ["kernels can be tuned on: NVIDIA H200 (cuda:1)"]
    assert gpu_lines([], is_host_there=True)[1] == f"kernels can be checked, and tuned, on: {host}"


def test_doctor_fails_where_nothing_can_be_tuned(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    done = autotune("doctor", cwd=tmp_path, env=environment)
    assert done.returncode == 1 and "no device can tune kernels: install" in done.stdout, done.stderr
    assert re.search("^host compiler +lacks .*\n +fix +install g.*apt install g", done.stdout, re.MULTILINE), (
        done.stdout
    )


def test_without_a_compiler_the_error_says_what_to_install(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = autotune("sweep", "--kernel", "ddc", "--device", "host", cwd=tmp_path, env=environment)
    assert done.returncode == 2 and "apt install g++" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    environment = {"AUTOTUNE_CACHE_DIR": "/proc/cache", "PATH": "/usr/bin"}
    done = autotune("sweep", "--kernel", EXAMPLE, "--device", "host", cwd=tmp_path, env=environment)
    assert done.returncode == 2 and "/proc/cache" in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.quick
def test_help_states_defaults_and_units() -> None:
    text = " ".join(autotune("sweep", "--help").stdout.split())
    assert "Time limit for one compilation, in seconds. [default: 60.0]" in text
    assert "[default: 12; from 3 to 1000000]" in text
