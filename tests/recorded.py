"""Recorded sweeps of the example kernel, made up for tests: the folders that ``autotune emit`` reads."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from autotune import Config, Device
from autotune.core.definition import baked_values, problem_name, runtime_fields
from autotune.core.problem import named_fields
from autotune.core.schema import seal
from autotune.records.about import About
from autotune.records.folder import SweepFolder
from autotune.records.paths import sweep_path
from autotune.records.trial import Trial
from autotune.records.trial_log import append, as_row
from autotune.rendering.render import render
from autotune.source.registry import load_kernel

from .conftest import DEFINITIONS, EXAMPLE

H200 = Device("NVIDIA H200", "cuda", "sm_90", n_multiprocessors=132)
H100 = Device("NVIDIA H100 PCIe", "cuda", "sm_90", n_multiprocessors=114)
A100 = Device("NVIDIA A100", "cuda", "sm_80", max_shared_bytes=166912, n_multiprocessors=108)
HOST = Device("host", "host", "host")

INTEGRATE = str(DEFINITIONS / "integrate.py")
KERNELS = (EXAMPLE, INTEGRATE)  # not installed: what emits their sweeps names them

DEFAULT = Config(BLOCK_C=64, BLOCK_T=4, UNROLL=1)
WIDE = Config(BLOCK_C=128, BLOCK_T=4, UNROLL=4)
TALL = Config(BLOCK_C=32, BLOCK_T=16, UNROLL=4)


def created(path: Path, about: dict[str, Any]) -> SweepFolder:
    """The folder of a sweep, as one that begins there leaves it."""
    folder = SweepFolder.opened(path)
    if about:
        folder.take_up(About.read(json.loads(json.dumps(about))))
    return folder


def record(
    results: Path,
    device: Device,
    medians_us: dict[Config, float],
    *,
    n_time: int = 100,
    n_chan: int = 4096,
    problem: Mapping[str, Any] | None = None,
    default: Config = DEFAULT,
    started: str = "2026-11-01T10:00:00+00:00",
    verdict: bool = True,
    definition: str = EXAMPLE,
    **changes: Any,
) -> Path:
    """A sweep in which each configuration took that many microseconds; ``changes`` are to its trials.

    Of detect, unless ``definition``, ``problem`` and ``default`` say otherwise.
    """
    kernel = load_kernel(definition)
    chosen = kernel.problem({"n_time": n_time, "n_chan": n_chan} if problem is None else problem)
    path = sweep_path(results, device.name, kernel.name, problem_name(chosen))
    about = {
        "kernel": kernel.name,
        "definition": definition,
        "problem": named_fields(chosen),
        "baked": tuple(baked_values(chosen)),
        "runtime": runtime_fields(type(chosen)),
        "device": asdict(device),
        "compiler": "NVRTC 13.0.88",
        "default": dict(default),
        "started": started,
        "commit": "0123456789ab",
    }
    folder = created(path, about)
    trials = []
    for number, (config, median_us) in enumerate(medians_us.items()):
        trial = Trial(
            number=number,
            status="measured",
            config=config,
            key=render(kernel, chosen, config).key,
            stamp=f"stamp{number}",
            registers=32,
            median_s=1e-6 * median_us,
            q1_s=0.99e-6 * median_us,
            q3_s=1.01e-6 * median_us,
            max_error=1.5e-7,
            verified_on=("n_chan=1", "n_chan=129"),
        )
        trials.append(replace(trial, **changes))
        append(folder.path, trials[-1])
    if verdict:
        winner = min(trials, key=lambda t: t.median_s or 1.0)
        default = next((as_row(t) for t in trials if t.config == default), None)
        write_verdict(path, {"winner": as_row(winner), "default": default, "ties": [7]})
    return path


def write_verdict(path: Path, verdict: dict[str, Any]) -> None:
    """Write the verdict.json of a sweep as it is given: an older version did not say all of an Outcome."""
    (path / "verdict.json").write_text(json.dumps(seal(json.loads(json.dumps(verdict))), indent=2) + "\n")


def rewrite_about(path: Path, **changes: Any) -> None:
    """Change fields of a recorded sweep.json."""
    content = json.loads(json.dumps(SweepFolder(path).about().content))
    (path / "sweep.json").write_text(json.dumps({**content, **changes}))


def unsealed(text: str) -> dict[str, Any]:
    """A file or a line of a record without its checksum, as an older version wrote it: a test may change it."""
    return {name: value for name, value in json.loads(text).items() if name not in ("sha256", "sum")}
