"""A made-up sweep of a space with conditional parameters, in which trials end in every way there is."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from autotune import Config, Device
from autotune.core.errors import Status
from autotune.records.paths import sweep_path
from autotune.records.trial import Trial
from autotune.records.trial_log import append, as_row

from .recorded import created, write_verdict

REGISTER = [Config(ALGORITHM="register", WGS=wgs, PHASES=p) for wgs in (64, 128, 256) for p in (2, 4, 8)]
SUBGROUP = [Config(ALGORITHM="subgroup", WGS=wgs, SG_SIZE=s) for wgs in (64, 128, 256) for s in (2, 4)] + [
    Config(ALGORITHM="subgroup", WGS=256, SG_SIZE=8)
]
DEFAULT, BEST = REGISTER[0], REGISTER[4]
MEDIANS_S = dict(zip(REGISTER + SUBGROUP, (4e-4, 3e-4, 9e-4, 5e-4, 2e-4, 8e-4), strict=False))
FAILURES = [status for status in Status if status != Status.MEASURED]
NOT_COMPILED = ("constraint", "skipped", "definition_failed", "render_failed", "compile_failed")


def trials() -> list[Trial]:
    """Six measured ones, then one of every status that is a failure."""
    configs = REGISTER + SUBGROUP
    assert len(configs) == len(MEDIANS_S) + len(FAILURES)
    made = [_measured(i, config, median_s) for i, (config, median_s) in enumerate(MEDIANS_S.items())]
    for i, status in enumerate(FAILURES, len(made)):
        compile_s = None if status in NOT_COMPILED else 0.5
        trial = Trial(number=i, status=status, config=configs[i], key=None, stamp=f"stamp{i}", compile_s=compile_s)
        made.append(replace(trial, message=f"why {status}\nand more"))
    return made


def sweep(results: Path, *, device: str = "NVIDIA H200", taps: int = 16, verdict: bool = True, **about: Any) -> Path:
    """Record it."""
    problem = {"taps": taps, "n_samples": 4096}
    path = sweep_path(results, device, "filter", f"taps={taps},n_samples=4096")
    known = {
        "kernel": "filter",
        "definition": "filter",
        "problem": problem,
        "baked": ["taps"],
        "runtime": ["n_samples"],
        "device": asdict(Device(device, "cuda", "sm_90")),
        "clock": "GPU time",
        "compiler": "NVRTC 13.0.88",
        "default": dict(DEFAULT),
        "refused": {"a block has a warp": 3},
        "machine": "Linux x86_64, 16 CPUs",
        "versions": {"python": "3.12.3", "numpy": "2.5.2"},
        "commit": "0123456789ab",
        "started": "2026-11-01T10:00:00+00:00",
    }
    folder = created(path, known | about)
    made = trials()
    for trial in made:
        append(folder.path, trial)
    if verdict:
        winner, second, default = (_finalist(made[i], r) for i, r in ((4, "fastest"), (1, "same"), (0, "slower")))
        write_verdict(
            path,
            {
                "winner": winner,
                "default": default,
                "speed_up": default["median_s"] / winner["median_s"],
                "ties": [1],
                "preference_among_ties": "fewer registers",
                "finalists": [winner, second, default],
                "counts": {"measured": 6} | dict.fromkeys(FAILURES, 1),
                "n_configs": 15,
                "spent_s": {"measuring": 6.0, "searching": 2.0},
                "idle_share": 0.25,
            },
        )
    return path


def _measured(number: int, config: Config, median_s: float) -> Trial:
    return Trial(
        number=number,
        status="measured",
        config=config,
        key=f"key{number}",
        stamp=f"stamp{number}",
        at="2026-11-01T10:00:01+00:00",
        compile_s=0.25,
        verify_s=0.125,
        measure_s=0.0625,
        registers=40 + number,
        spill_bytes=0,
        shared_bytes=1024,
        grid=(8, 1, 1),
        block=(64, 1, 1),
        median_s=median_s,
        q1_s=0.9 * median_s,
        q3_s=1.1 * median_s,
        samples_s=(0.9 * median_s, median_s, 1.1 * median_s),
        cold=True,
        stopped_early=False,
        gb_per_s=100.0,
        efficiency=0.5,
        max_error=1.5e-7,
        verified_on=("taps=16,n_samples=1", "taps=16,n_samples=4096"),
    )


def _finalist(trial: Trial, relation: str) -> dict[str, Any]:
    """2 % slower than in the search, as a final round may find."""
    assert trial.median_s is not None
    median_s = 1.02 * trial.median_s
    row = {**as_row(trial), "median_s": median_s, "relation": relation}
    return {**row, "interval_s": [0.99 * median_s, 1.01 * median_s]}
