"""What a large record costs to read: seconds and memory of `load`, `show` and `report`, each in a process of its own.

    python benchmarks/large_record.py --trials 100000

The record is made up: configs of ten parameters, four of five measured, with times that depend on the parameters.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from autotune import Config, Device
from autotune.core.device import Ceilings
from autotune.core.errors import Status
from autotune.records.about import About
from autotune.records.folder import SweepFolder
from autotune.records.outcome import Finalist, Outcome, Relation
from autotune.records.pack import pack
from autotune.records.paths import sweep_path
from autotune.records.trial import Trial
from autotune.records.trial_log import TRIALS, line_of

DEVICE = Device("NVIDIA H200", "cuda", "sm_90", n_multiprocessors=132)
CEILINGS = Ceilings(bytes_per_s=4e12, flops_per_s=6e13)
SPACE = {f"P{i}": (1, 2, 4, 8) for i in range(10)}
N_SAMPLES = 12
CALL = "from autotune.cli import main; sys.argv = ['autotune', {}]; main()"
COMMANDS = {
    "load": "import autotune; autotune.load(sys.argv[1])",
    "show": CALL.format("'show', sys.argv[1]"),
    "show --json": CALL.format("'show', sys.argv[1], '--json'"),
    "report": CALL.format("'report', sys.argv[1], '--out', sys.argv[1] + '.html'"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="where the record is made, and stays")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1) as pool:  # a child's memory counts from what its parent had
            path = pool.submit(make, given.keep or Path(folder), given.trials).result()
        n_bytes = sum(file.stat().st_size for file in path.iterdir())
        print(f"{given.trials} trials, {n_bytes / 1e6:.1f} MB")
        for name, code in COMMANDS.items():
            seconds, megabytes = measured(code, path)
            print(f"{name:<12} {seconds:6.1f} s {megabytes:6.0f} MB")
        page = Path(f"{path}.html")
        print(f"the page has {page.stat().st_size / 1e6:.1f} MB")


def measured(code: str, path: Path) -> tuple[float, float]:
    """Returns the seconds of a program, and the most memory that it had, in MB."""
    most = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    program = f"import sys\ntry:\n    exec({code!r})\nfinally:\n    {most}\n"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began, int(done.stderr.split()[-1]) / 1024


def make(results: Path, n: int, is_packed: bool = True) -> Path:
    """Returns the folder of a made-up sweep of ``n`` trials, which has a verdict; packed, as a sweep that has ended."""
    path = sweep_path(results, DEVICE.name, "filter", "n=4096")
    folder = SweepFolder.opened(path)
    trials = list(_trials(n))
    (path / TRIALS).write_bytes(b"".join(map(line_of, trials)))
    about = About(
        kernel="filter",
        definition="filter",
        problem={"n": 4096},
        runtime=("n",),
        work={"bytes": 1e6, "flops": 1e9, "unit": "float32"},
        device=DEVICE,
        clock="GPU time",
        compiler="NVRTC 13.0.88",
        default=trials[0].config,
        space=SPACE,
        started="2026-11-01T10:00:00+00:00",
    )
    folder.take_up(about)
    best = sorted((t for t in trials if t.median_s), key=lambda t: t.median_s or 0.0)[:3]
    finalists = tuple(
        replace(Finalist.of_search(t), relation=Relation.SAME, interval_s=(t.q1_s or 0.0, t.q3_s or 0.0)) for t in best
    )
    counts = {str(s): sum(t.status == s for t in trials) for s in (Status.MEASURED, Status.WRONG)}
    runs = ((0, n - 1),)
    folder.write_outcome(
        Outcome(winner=finalists[0], finalists=finalists, counts=counts, trials=runs, n_configs=n, ceilings=CEILINGS)
    )
    if is_packed:
        pack(folder)
    return path


def _trials(n: int) -> Iterator[Trial]:
    rng = random.Random(1)
    for number, values in enumerate(_drawn(rng, n)):
        config = Config(dict(zip(SPACE, values, strict=True)))
        trial = Trial(
            number=number,
            status=Status.MEASURED,
            config=config,
            key=f"{number:012x}",
            stamp="0" * 16,
            compiler="NVRTC 13.0.88",
            code=f"{number:016x}",
            conditions="0" * 16,
            at="2026-11-01T10:00:00+00:00",
            compile_s=0.5,
            verify_s=0.01,
        )
        if number % 5 == 4:
            yield replace(
                trial, status=Status.WRONG, message=f"y[{number}] is 1, reference 2; 3 of 1000 beyond rtol 1e-06"
            )
            continue
        median_s = 1e-4 * (1 + sum(abs(v - 4) * 0.05 for v in values)) * rng.uniform(0.98, 1.02)
        samples = tuple(sorted(median_s * (1 + (i - N_SAMPLES // 2) * 1e-3) for i in range(N_SAMPLES + 1)))
        yield replace(
            trial,
            median_s=median_s,
            q1_s=samples[3],
            q3_s=samples[9],
            n_samples=len(samples),
            registers=32 + number % 90,
            shared_bytes=1024,
            spill_bytes=0,
            grid=(132, 1, 1),
            block=(128, 1, 1),
            max_error=1e-7,
            rms_error=1e-8,
            cold=True,
            rule=1,
            seed=0,
        )


def _drawn(rng: random.Random, n: int) -> list[tuple[int, ...]]:
    found: dict[tuple[int, ...], None] = {}
    while len(found) < n:
        found[tuple(rng.choice(values) for values in SPACE.values())] = None
    return list(found)


if __name__ == "__main__":
    main()
