"""Tunes kernels of public CUDA files as they are: which run on the host, compile for sm_90, and tune on a GPU?

    python benchmarks/public_files.py CHECKOUTS [--device host|cuda:0] [--only NAME ...] [--steps ...]

CHECKOUTS is a folder of checkouts of kernel_tuner, benchmark_hub, KTT, xGPU, dedisp, bifrost, CudaSift, llm.c and
cuda-samples. public_files.toml says of each entry which file and kernel is meant, and how it is called; answers are
made by public_answers.py. Each entry takes two or three steps, each in a process of its own with a deadline:

- host: ``tune_kernel`` on the device host, at a small size, with all of the host's checks
- sm_90: NVRTC compiles each config to a cubin, which needs no GPU
- gpu: ``tune_kernel`` on that GPU, at a middling size; left out with ``--device host``

A step passes when every config does. Where some or all fail, the first failure is told in one line.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import public_answers

TABLE = Path(__file__).with_suffix(".toml")
DEADLINES_S = {"host": 240.0, "sm_90": 120.0, "gpu": 240.0}
SEED = 20
CLIPPED = 170  # characters of a reason
ARCHITECTURE = "sm_90"
CONFIG = re.compile(r"\b[\w:]+\[[^\]\n]*\]: ")  # the name of a variant, before what is wrong with it


@dataclass(frozen=True)
class Entry:
    """A kernel of a file, and how it is called; in all texts ``{name}`` stands for a size."""

    files: list[str]
    kernel: str
    arguments: list[str]
    size: list[str]
    space: list[str]
    host: dict[str, int]
    gpu: dict[str, int]
    constants: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    blocks: list[str] | None = None
    divisors: list[list[str]] = field(default_factory=list)
    restrictions: list[str] = field(default_factory=list)
    shared: str = "0"
    answer: str = ""
    atol: float = 1e-6


@dataclass(frozen=True)
class Outcome:
    """What became of a step: how many configs passed, of how many, and the first failure."""

    passed: int
    of: int
    reason: str
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """Returns yes, no, or how many configs passed."""
        return "yes" if self.of and self.passed == self.of else f"{self.passed} of {self.of}" if self.passed else "no"


def entries() -> dict[str, Entry]:
    """Returns the entries of the table by name."""
    given = tomllib.loads(TABLE.read_text())
    found = {}
    for name, own in given.items():
        like = given[own["like"]] if "like" in own else {}
        found[name] = Entry(**{key: value for key, value in (like | own).items() if key != "like"})
    return found


def count(text: str) -> int:
    """Returns the whole number that an expression says."""
    from autotune.core.expressions import checked_expression, value_of

    return int(value_of(checked_expression(text, (), "count"), {}))


def made(text: str, rng: np.random.Generator) -> Any:
    """Returns an array or a number, as the head of the table says what there is."""
    kind, *words = text.split()
    if len(words) == 1:
        number = words[0] if "." in words[0] else count(words[0])
        return np.bool_(number) if kind == "bool" else np.dtype(kind).type(number)
    dtype, n = np.dtype(words[0]), count(words[1])
    if kind == "struct":
        return np.zeros((), np.dtype([("values", dtype, (n,))]))[()]
    if kind == "normal":
        values = rng.standard_normal((n, 2 if dtype.kind == "c" else 1), np.float32)
        return values.view(dtype)[:, 0] if dtype.kind == "c" else values[:, 0].astype(dtype)
    if kind == "uniform":
        return rng.random(n).astype(dtype)
    if kind == "whole":
        return rng.integers(0, count(words[2]), n).astype(dtype)
    return np.arange(n, dtype=dtype) * dtype.type(words[2]) if kind == "steps" else np.zeros(n, dtype)


def called(entry: Entry, checkouts: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Returns what ``tune_kernel`` takes, by name."""
    rng = np.random.default_rng(SEED)
    files = [checkouts / file for file in entry.files]
    source = str(files[0]) if len(files) == 1 else "".join(f'#include "{file.name}"\n' for file in files)
    options = [option.format(**sizes) for option in entry.options]
    options = [f"-I{checkouts / option[2:]}" if option.startswith("-I") else option for option in options]
    for name in entry.empty:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    arguments = [made(text.format(**sizes), rng) for text in entry.arguments]
    constants = {name: made(text.format(**sizes), rng) for name, text in entry.constants.items()}
    size = tuple(int(text) if text.isdigit() else text for text in (each.format(**sizes) for each in entry.size))
    given: dict[str, Any] = {
        "kernel_name": entry.kernel,
        "kernel_source": source,
        "problem_size": size,
        "arguments": arguments,
        "tune_params": {name: json.loads(f"[{values}]") for name, values in (p.split("=") for p in entry.space)},
        "compiler_options": [*options, f"-I{files[0].parent}", f"-I{Path.cwd()}"],
        "restrictions": entry.restrictions,
        "smem_args": {"size": entry.shared.format(**sizes)},
        "cmem_args": constants,
        "block_size_names": entry.blocks,
    }
    return given | {f"grid_div_{axis}": divisor for axis, divisor in zip("xyz", entry.divisors, strict=False)}


def tuned(entry: Entry, checkouts: Path, device: str) -> Outcome:
    """Returns what became of all configs on a device."""
    from autotune.core.errors import Status
    from autotune.kernel_tuner import tune_kernel

    sizes = entry.host if device == "host" else entry.gpu
    given = called(entry, checkouts, sizes)
    arguments = given["arguments"]
    if entry.answer:
        answered = getattr(public_answers, entry.answer)([*arguments, *given["cmem_args"].values()], sizes)
        given |= {"answer": [answered.get(place) for place in range(len(arguments))], "atol": entry.atol}
    results, _ = tune_kernel(**given, device=device, iterations=3, quiet=True)
    trials = results.sweep.trials
    failed = trials[trials["status"] != Status.MEASURED]
    reason = "" if failed.empty else f"{failed.iloc[0]['status']}: {failed.iloc[0]['message']}"
    return Outcome(len(trials) - len(failed), len(trials), reason)


def compiled(entry: Entry, checkouts: Path) -> Outcome:
    """Returns what NVRTC makes of all configs, at the sizes of the host."""
    from autotune.core.errors import TrialFailure
    from autotune.devices import cuda
    from autotune.kernel_tuner.asked import options_of, silent
    from autotune.porting.call import read_call
    from autotune.porting.definition_writer import write_definition
    from autotune.porting.formulas import Formulas
    from autotune.porting.probing import ProbeResult, unchecked
    from autotune.porting.sizes import sizes_of_call
    from autotune.rendering.render import render
    from autotune.source.registry import load_kernel

    given = called(entry, checkouts, entry.host)
    macros, folders = options_of(given.pop("compiler_options"), silent)
    x, y, z = (given.pop(f"grid_div_{axis}", None) for axis in "xyz")
    call = read_call(**given, divisors=(x, y, z), macros=macros, folders=folders)
    formulas = Formulas.of(call, sizes_of_call(call))
    kernel: Any = load_kernel(str(write_definition(formulas, unchecked(call, ProbeResult()), Path("results"))))
    device, reasons = cuda.of_architecture(ARCHITECTURE), []
    configs = call.enumeration.configs
    for config in configs:
        try:
            cuda.compile(render(kernel, kernel.tuned[0], kernel.space.parse(config)), device)
        except TrialFailure as failure:
            reasons.append(str(failure))
    return Outcome(len(configs) - len(reasons), len(configs), reasons[0] if reasons else "")


def take_step(step: str, entry: Entry, checkouts: Path, device: str) -> None:
    """Takes a step here and prints what became of it as a line of JSON."""
    try:
        outcome = compiled(entry, checkouts) if step == "sm_90" else tuned(entry, checkouts, device)
    except Exception as error:  # whatever it is, it is the outcome of this file
        outcome = Outcome(0, 0, f"{type(error).__name__}: {error}")
    print(json.dumps([outcome.passed, outcome.of, outcome.reason]))


def step_in_process(step: str, name: str, checkouts: Path, device: str) -> Outcome:
    """Returns what became of a step in a process of its own, which is ended with all that it started."""
    words = [sys.executable, str(Path(__file__).resolve()), str(checkouts), "--only", name, "--step", step]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "stderr").open("w+") as errors:
        child = subprocess.Popen(
            [*words, "--device", device],
            cwd=scratch,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            printed = child.communicate(timeout=DEADLINES_S[step])[0].splitlines()
            errors.seek(0)
            last = (errors.read().strip().splitlines() or [""])[-1]
            told: list[Any] = [0, 0, f"the process ended with {child.returncode}: {last}"]
            if printed and child.returncode == 0:
                told = json.loads(printed[-1])
        except subprocess.TimeoutExpired:
            told = [0, 0, f"not done after {DEADLINES_S[step]:.0f} s"]
        finally:
            end_group(child.pid)
            child.communicate()
    passed, of, reason = told
    return Outcome(passed, of, one_line(reason.replace(f"{scratch}/", ""), checkouts), time.perf_counter() - began)


def end_group(pid: int) -> None:
    """Ends what is left of a process and of those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def one_line(reason: str, checkouts: Path) -> str:
    """Returns the first line of a failure, or the first line with an error in it, clipped."""
    told = CONFIG.sub("", reason.replace(f"{checkouts}/", ""), count=1)
    line, *lines = [line.strip() for line in told.splitlines() if line.strip()] or [""]
    if (found := next((each for each in lines if re.search(r"\berror\b", each)), None)) is not None:
        line = f"{line} | {found}"
    return line if len(line) <= CLIPPED else f"{line[: CLIPPED - 3]}..."


def main(words: Sequence[str] | None = None) -> None:
    table = entries()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--device", default="host", help="host, or a GPU such as cuda:0, which adds a step")
    parser.add_argument("--only", nargs="+", choices=table, metavar="NAME", default=list(table))
    parser.add_argument("--steps", nargs="+", choices=DEADLINES_S, help="by default all that the device allows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes there")
    parser.add_argument("--step", choices=DEADLINES_S, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    checkouts = given.checkouts.resolve()
    if given.step:
        device = given.device if given.step == "gpu" else "host"
        take_step(given.step, table[given.only[0]], checkouts, device)
        return
    steps = given.steps or ["host", "sm_90", *(["gpu"] if given.device != "host" else [])]
    found: dict[str, dict[str, Outcome]] = {}
    for name in given.only:
        found[name] = {}
        print(f"{name}: {table[name].files[-1]}, {table[name].kernel}")
        for step in steps:
            outcome = found[name][step] = step_in_process(step, name, checkouts, given.device)
            print(f"    {step:5}  {outcome.text:7} {outcome.seconds:5.0f} s  {outcome.reason}".rstrip(), flush=True)
    totals = Counter(step for each in found.values() for step, outcome in each.items() if outcome.text == "yes")
    some = Counter(step for each in found.values() for step, outcome in each.items() if outcome.passed)
    for step in steps:
        print(f"{step}: {totals[step]} of {len(found)} entries with all configs, {some[step]} with some")
    if given.json:
        told = {name: {step: vars(o) for step, o in each.items()} for name, each in found.items()}
        given.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
