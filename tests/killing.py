"""Commands whose processes are killed at random, and whose files must be those of undisturbed ones.

`python -m tests.killing --kills 100` runs as many as it takes and prints what was killed; the suite runs a few.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autotune.records.folder import SWEEP, find_sweeps
from autotune.records.packed import TABLE
from autotune.records.trial_log import TRIALS

from . import outcomes
from .conftest import DEFINITIONS, EXAMPLE
from .family import command_of, descendants, name_of
from .forked import Command
from .host_files import with_host_files
from .recorded import A100, DEFAULT, H100, H200, TALL, WIDE, record

WASTE = str(DEFINITIONS / "waste.py")
N_CONFIGS = 12
N_PROBLEMS = 4
SLOW = {"AUTOTUNE_SIMULATED_COMPILE_S": "0.15"}
PAUSE_S = 2.5  # between two kills
N_IN_FLIGHT = (
    4  # trials that end between two kills: what was in flight has ended, since a second death is the task's own
)
DEADLINE_S = 600.0

ROLES: dict[str, Callable[[int], bool]] = {
    "device worker": lambda pid: name_of(pid) == "autotune-device",
    "compile process": lambda pid: name_of(pid) == "autotune-build",
    "dask worker": lambda pid: "spawn_main" in command_of(pid) and not name_of(pid).startswith("autotune-"),
}


@dataclass
class Tally:
    """What was killed so far, and in how many runs."""

    killed: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Job:
    """A command that goes on where it stopped, when it is started again with the same results."""

    what: str
    arguments: tuple[str, ...]
    roles: tuple[str, ...]
    n_sweeps: int
    best: int  # the WASTE of every winner

    def start(self, folder: Path) -> Command:
        cache = folder / "cache"
        if "host" in self.arguments:
            with_host_files(cache)
        environment = {**os.environ, **SLOW, "AUTOTUNE_CACHE_DIR": str(cache)}
        return Command(*self.arguments, "--results", folder / "results", env=environment)


def sweep_job(device: str) -> Job:
    arguments = ("sweep", "--kernel", WASTE, "--device", device, "--compile-processes", "2")
    roles = ("parent", "device worker", "compile process")
    return Job(f"sweep on {device}", arguments, roles, 1, 1 if device == "host" else 16)


def campaign_job(folder: Path) -> Job:
    file = folder / "campaign.toml"
    numbers = list(range(1, N_PROBLEMS + 1))
    sweep = f"[sweep]\ntrials = {N_CONFIGS}\nsampler = 'exhaustive'"
    file.write_text(f"kernel = '{WASTE}'\nrevisit = 0\n[grid]\nnumber = {numbers}\n{sweep}\n")
    devices = ("--device", "simulated:0", "--device", "simulated:1", "--compile-processes", "1")
    roles = ("parent", "device worker", "compile process", "dask worker")
    return Job("campaign", ("campaign", str(file), *devices), roles, N_PROBLEMS, 16)


def disturb(job: Job, folder: Path, rng: random.Random, tally: Tally, most: int) -> None:
    """Run ``job`` until it ends by itself, killing ``most`` of its processes on the way; then look at its records."""
    n_killed, end = 0, time.monotonic() + DEADLINE_S
    tally.runs[job.what] += 1
    while True:
        process, began = job.start(folder), time.monotonic()
        next_kill, least = began + rng.uniform(0.2, PAUSE_S), 0  # when, and after how many trials
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
            if n_killed == most or time.monotonic() < next_kill or n_trials(folder) < least:
                continue
            if role := _kill(job, process.pid, rng):
                n_killed += 1
                tally.killed[role] += 1
                next_kill = time.monotonic() + PAUSE_S * rng.uniform(1.0, 1.5)
                least = n_trials(folder) + N_IN_FLIGHT
        if process.poll() is None:
            process.kill()
            raise AssertionError(f"{job.what} hangs: {process.communicate()}")
        out, told = process.communicate()
        if process.returncode == -signal.SIGKILL:
            continue
        assert process.returncode == 0 and "Traceback" not in told, f"{job.what} ended with {out} {told}"
        return check(job, folder)


def n_trials(folder: Path) -> int:
    """How many trials are recorded by now, as lines of running sweeps and in the tables of those that have ended."""
    swept = [Path(path) for path, _, files in os.walk(folder) if SWEEP in files]  # folders may vanish on the way
    return sum(max(_n_lines(path / TRIALS), _n_lines(path / TABLE) - 2) for path in swept)


def _n_lines(path: Path) -> int:
    """The lines of a file, which a sweep that ends may remove at any time."""
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _kill(job: Job, parent: int, rng: random.Random) -> str | None:
    """One process of a role drawn at random; the role, or None where there is no such process now."""
    role = rng.choice(job.roles)
    found = [parent] if role == "parent" else [pid for pid in descendants(parent) if ROLES[role](pid)]
    if not found:
        return None
    try:
        os.kill(rng.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return None
    return role


def check(job: Job, folder: Path) -> None:
    """Every config of every problem is there once, measured as without kills, and the right one won."""
    sweeps = find_sweeps(folder / "results")
    assert len(sweeps) == job.n_sweeps
    for sweep in sweeps:
        trials, outcome = sweep.trials(), sweep.outcome()
        rows = [t.config["WASTE"] for t in trials]
        assert len(rows) == len(set(rows)) == N_CONFIGS, f"{sweep.path}: {rows}"
        assert [t.number for t in trials] == list(range(N_CONFIGS))
        failed = [t for t in trials if t.status != "measured" and "the formula says no" not in t.message]
        assert not failed, failed
        assert (sweep.path / TABLE).exists() and not (sweep.path / TRIALS).exists(), "a sweep that has ended is packed"
        assert outcome is not None and outcome.winner.config["WASTE"] == job.best, outcome


def disturb_writing(what: str, folder: Path, rng: random.Random, tally: Tally, most: int) -> None:
    """Kill `pack` or `emit` at any time, as often as ``most`` says; then let it end, and compare its files."""
    made, whole, killed = (folder / name for name in ("made", "whole", "killed"))
    if what == "pack":
        for taps in range(1, 13):
            outcomes.sweep(made, taps=taps)
    else:
        for device in (A100, H100, H200):
            record(made, device, {DEFAULT: 100.0, WIDE: 50.0, TALL: 60.0})
    for each in (whole, killed):
        shutil.copytree(made, each / "results")
    own = () if what == "pack" else ("--kernel", EXAMPLE, "--out", "tuned")
    began = time.monotonic()
    done = Command(what, "results", *own, cwd=whole)
    assert done.wait(DEADLINE_S) == 0, done.communicate()
    lasted_s = time.monotonic() - began
    before = recorded(made)
    tally.runs[what] += 1
    for _ in range(most):
        process = Command(what, "results", *own, cwd=killed)
        time.sleep(rng.uniform(0.0, lasted_s))
        tally.killed[what] += process.poll() is None
        process.kill()
        process.communicate()
        assert recorded(killed / "results") == before
    assert Command(what, "results", *own, cwd=killed).wait(DEADLINE_S) == 0
    assert contents(killed) == contents(whole)


def recorded(folder: Path) -> dict[str, list[object]]:
    """Which configs each sweep has tried, and how they ended."""
    return {s.path.name: [(t.number, t.config, t.status, t.key) for t in s.trials()] for s in find_sweeps(folder)}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path in ``folder``, without what a killed process had not yet put in its place."""
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if "/." not in f"/{name}"}


def main() -> None:
    """Kill at least as many as asked for, spread over all roles and jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="processes to kill, in all")
    parser.add_argument("--each", type=int, default=3, help="of one run at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, tally, began = random.Random(given.seed), Tally(), time.monotonic()
    while sum(tally.killed.values()) < given.kills:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            jobs: list[Job | str] = [sweep_job("host"), sweep_job("simulated"), campaign_job(folder), "pack", "emit"]
            job = rng.choice(jobs)
            if isinstance(job, str):
                disturb_writing(job, folder, rng, tally, 4 * given.each)
            else:
                disturb(job, folder, rng, tally, given.each)
        print(f"{time.monotonic() - began:5.0f} s  {sum(tally.killed.values())} killed", file=sys.stderr, flush=True)
    for what, counts in (("killed", tally.killed), ("runs", tally.runs)):
        print(f"{what:8s}", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
