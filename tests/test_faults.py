"""Every fault, for real: each ends as its own status with a message and a command; the sweep and its winner stand."""

import shlex
import time
from dataclasses import replace
from pathlib import Path

from autotune import Config
from autotune.devices import Target
from autotune.records.folder import SweepFolder
from autotune.rendering.render import render
from autotune.source.registry import load_kernel
from autotune.sweep.request import problem_on
from autotune.sweep.run import Sweep, run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

from .commands import autotune
from .conftest import FAULTY

EXPECTED = {  # fault -> (status, what its message says on host, and on a GPU)
    "wrong_element": ("wrong", "y[3] is", "y[3] is"),
    "unwritten_element": ("wrong", "y[3] is nan", "y[3] is nan"),
    "past_the_end": (("launch_failed", "wrong"), "out-of-bounds write", "past its end"),
    "far_write": ("launch_failed", "out-of-bounds write", "illegal memory access"),
    "early_write": (("launch_failed", "wrong"), "out-of-bounds write", "before its start"),
    "far_read": ("launch_failed", "out-of-bounds read", "illegal memory access"),
    "near_write_when_timed": ("wrong", "past its end", "past its end"),
    "early_write_when_timed": ("wrong", "before its start", "before its start"),
    "far_write_when_timed": ("launch_failed", "SIGSEGV", "illegal memory access"),
    "far_read_when_timed": ("launch_failed", "SIGSEGV", "illegal memory access"),
    "input_written": (("launch_failed", "wrong"), "read-only", "the input was written: x[0]"),
    "no_compile": ("compile_failed", "undeclared", "undeclared"),
    "compiles_for_ever": ("timed_out", "the compiler took longer", "the compiler took longer"),
    "too_much_static_shared": ("resources", "shared", "shared"),
    "too_much_dynamic_shared": ("resources", "300000 bytes of shared memory", "300000 bytes of shared memory"),
    "illegal_address": ("launch_failed", "out-of-bounds", "illegal memory access"),
    "segfault": ("launch_failed", "SIGSEGV", "SIGSEGV"),
    "exits": (("launch_failed", "wrong"), "exit code 0", "y[0] is nan"),
    "trap": ("launch_failed", "trap", "faulty: "),
    "endless_loop": ("timed_out", "verification took longer", "verification took longer"),
    "template_error": ("render_failed", "faulty.cu.j2:15", "faulty.cu.j2:15"),
    "gpu_of_the_future": ("skipped", "needs sm_999", "needs sm_999"),
}


def faulty_sweep(target: Target, folder: Path) -> Sweep:
    kernel = load_kernel(FAULTY)
    right = render(kernel, kernel.tuned[0], Config(kernel.default))
    target.module.compile(right, target.device, target.module.builds[:1])  # what compiles share is made
    other = replace(right, source=f"{right.source}// again\n", numbered=f"{right.numbered}// again\n")
    began = time.monotonic()
    target.module.compile(other, target.device)
    compile_s = time.monotonic() - began  # longer where others use the machine
    settings = Settings(results=folder, trials=100, deadline=max(8, 4 * compile_s), finalist_samples=9)
    with Bench(target, compile_deadline_s=max(6, 3 * compile_s)) as bench:
        return run_sweep(kernel, problem_on(kernel, {}, target), bench, settings)


def test_faults_have_their_statuses_and_the_sweep_finishes(target: Target, tmp_path: Path) -> None:
    """One test, since a sweep over all faults takes long, and each process of pytest-xdist would make its own."""
    sweep = faulty_sweep(target, tmp_path)
    check_each_fault_has_its_status_and_message(sweep, target)
    check_it_finishes_with_the_right_winner(sweep)
    check_the_command_of_a_failure_reproduces_it(sweep)


def check_each_fault_has_its_status_and_message(sweep: Sweep, target: Target) -> None:
    rows = {row["FAULT"]: row for row in sweep.trials.to_dict("records") if row["FAULT"] != "none"}
    assert set(rows) == set(EXPECTED)
    for fault, (statuses, on_host, on_gpu) in EXPECTED.items():
        allowed = statuses if isinstance(statuses, tuple) else (statuses,)
        assert rows[fault]["status"] in allowed, (fault, rows[fault]["status"], rows[fault]["message"])
        assert (on_host if target.kind == "host" else on_gpu) in rows[fault]["message"], rows[fault]["message"]
    assert rows["wrong_element"]["conditions"], "a wrong trial holds as a measured one does"


def check_it_finishes_with_the_right_winner(sweep: Sweep) -> None:
    assert sweep.best is not None and sweep.best.config["FAULT"] == "none"
    assert sweep.counts["measured"] == 3
    assert sweep.refused == {"the block is not the forbidden size": 1}
    assert sweep.best.max_error is not None and sweep.best.max_error < 1e-6


def check_the_command_of_a_failure_reproduces_it(sweep: Sweep) -> None:
    (row,) = [r for r in sweep.trials.to_dict("records") if r["FAULT"] == "wrong_element"]
    folder = SweepFolder(sweep.path)
    (trial,) = [t for t in folder.trials() if t.number == row["number"]]
    words = shlex.split(folder.about().reproduce(trial.config))
    assert words[0] == "autotune"
    again = autotune(*words[1:])
    assert again.returncode == 1
    assert "wrong" in again.stderr and "y[3] is" in again.stderr, again.stderr
