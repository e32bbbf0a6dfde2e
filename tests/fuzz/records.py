"""Every command that reads records, over records of which one file is damaged."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import autotune
from autotune.core.errors import Status
from autotune.devices import find_device
from autotune.records.folder import SweepFolder
from autotune.records.pack import pack
from autotune.records.trial import Trial
from autotune.records.trial_log import append
from autotune.search.warm_start import known, warm_start
from autotune.source.registry import load_kernel
from autotune.sweep.estimate import estimate
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

from .. import commands, outcomes
from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, TALL, WIDE, record, unsealed, write_verdict
from .mutate import damaged, forged, n_seals
from .run import Ended, as_command, call, command

LINES, TABLE = "trials.jsonl", "trials.csv"
OF_KERNEL = ("setup-*.json", "space-*.json")  # beside the folders of the sweeps that share them
FILES = (LINES, LINES, TABLE, TABLE, "sweep.json", "verdict.json", *OF_KERNEL)
ONE = "results/simulated/detect/n_time=1024,n_chan=256"
OTHER = "results/NVIDIA_H200/detect/n_time=100,n_chan=4096"
FILTER = "results/NVIDIA_H200/filter/taps=16,n_samples=4096"
READERS: tuple[tuple[str, ...], ...] = (
    ("show", "results"),
    ("show", "results", "--all"),
    ("show", "results", "--all", "--json"),
    ("show", "results", "--json"),
    ("show", FILTER),
    ("show", OTHER),
    ("show", ONE, "--json"),
    ("report", FILTER, "--out", "out/one.html"),
    ("report", "results", "--out", "out/many.html"),
    ("compare", "whole", "results"),
    ("compare", "results", "whole", "--json"),
    ("export", "results"),
    ("export", "results", "--format", "csv", "--out", "out/trials.csv"),
    ("export", "results", "--format", "parquet", "--out", "out/trials.parquet"),
    ("export", "results", "--format", "t4", "--out", "out/t4"),
    ("export", "results", "--format", "kernel-tuner", "--out", "out/kernel-tuner"),
    ("portfolio", "results"),
    ("portfolio", "results", "--json", "--k", "2"),
    ("emit", "results", "--out", "out/tuned", "--kernel", EXAMPLE),
    ("emit", "results", "--out", "out/tuned", "--kernel", EXAMPLE, "--portfolio", "2"),
    ("emit", "results", "--out", "out/tuned"),
    ("pack", "results", "--kernel", EXAMPLE),
    ("digest", ONE, "--kernel", EXAMPLE, "--compile-processes", "1"),
)
INTERRUPTED = ", as if interrupted earlier"  # the end of a record without a verdict is gone: nothing can tell
UNSEALED = ", as an older version wrote it"  # without a checksum
FORGED = ", with checksums that fit"
PYTHON = ("load", "estimate", "neighbours", "resume", "beside")


def make(folder: Path, bench: Bench) -> None:
    """Recorded sweeps of several kernels and devices, as old versions wrote them and packed; one of them by a sweep on
    a simulated device, and one that goes on beside its table."""
    for name in ("whole", "results"):
        tree = folder / name
        for n_chan in (1024, 4096):
            record(tree, H200, {DEFAULT: 30.0, WIDE: 20.0, TALL: 25.0}, n_chan=n_chan)
        goes_on = record(tree, A100, {DEFAULT: 40.0, WIDE: 50.0}, verdict=False)
        record(tree, H100, {DEFAULT: 3.0, WIDE: 2.0}, n_time=7)
        record(tree, replace(H200, name="simulated", kind="simulated"), {DEFAULT: 4.0, WIDE: 5.0}, n_chan=512)
        outcomes.sweep(tree)
        without_verdict = outcomes.sweep(tree, taps=32, verdict=False)
        for path in tree.rglob("verdict.json"):
            _with_stamps(path)
        for path in (goes_on, without_verdict, tree / OTHER.partition("/")[2], tree / FILTER.partition("/")[2]):
            pack(SweepFolder(path))
        append(goes_on, Trial(number=2, status=Status.WRONG, config=TALL, key="key", message="y[3] is 4"))
    kernel = load_kernel(EXAMPLE)
    settings = Settings(results=folder / "results", trials=14, hints=0, finalist_samples=3, checked_launches=0)
    sweep = run_sweep(kernel, kernel.problem({"n_chan": 256}), bench, settings)
    relative = sweep.path.relative_to(folder / "results")
    shutil.copytree(sweep.path.parent, folder / "whole" / relative.parent, dirs_exist_ok=True)
    if f"results/{relative}" != ONE:
        raise AssertionError(f"the sweep is at {relative}")


def _with_stamps(path: Path) -> None:
    """Adds the stamps that a sweep writes: the made-up verdicts say less of their trials."""
    folder = SweepFolder(path.parent)
    verdict = unsealed(path.read_text())
    write_verdict(folder.path, verdict | {"stamps": {str(t.number): t.stamp for t in folder.trials()}})


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """The working directory for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _python(name: str, bench: Bench) -> Callable[[], object]:
    """What the commands do with neighbours' records, without a process for each."""
    kernel, target, results = load_kernel(EXAMPLE), bench.target, Path("results")
    problem = kernel.problem({"n_chan": 300})

    def load() -> None:
        print(autotune.load("results").to_csv())

    def neighbours() -> None:
        near = known(results, kernel, problem, target.device)
        enumeration = kernel.space.enumerate(problem, target.device)
        warm_start(kernel, problem, target.device, enumeration, near, {}, 4, ())

    def swept(n_chan: int, trials: int) -> Callable[[], object]:
        settings = Settings(results=results, trials=trials, finalist_samples=3, checked_launches=0)
        return lambda: run_sweep(kernel, kernel.problem({"n_chan": n_chan}), bench, settings)

    actions: dict[str, Callable[[], object]] = {
        "load": load,
        "estimate": lambda: print(estimate(results, kernel, target.device, 10, 1)),
        "neighbours": neighbours,
        "resume": swept(256, 14),
        "beside": swept(300, 2),
    }
    return actions[name]


def _answer(ended: Ended) -> str:
    """What was written and printed, but for where."""
    return re.sub(r"wrote \S+|`pip install.*|\S+ MB \w+", "", ended.out) + ended.written


def _written(out: Path) -> str:
    """Names and hashes of the files in ``out``."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return "\n".join(f"{path.relative_to(out)} {sha256(path.read_bytes()).hexdigest()}" for path in files)


class Records:
    """The recorded sweeps, and what every reader says of them while they are whole."""

    def __init__(self, folder: Path, seed: int, bench: Bench) -> None:
        self.folder, self.seed, self.bench = folder, seed, bench
        make(folder / "base", bench)
        self._n, self.changed = 0, ""
        self._whole: dict[tuple[str, ...], Ended] = {}

    def run(self, n: int) -> Iterator[tuple[str, Ended]]:
        """``n`` runs: what was done to which file, and by which reader, and how it ended."""
        readers = [*READERS, *((name,) for name in PYTHON)]
        for i in range(n):
            reader = readers[i % len(readers)]
            if reader not in self._whole:
                self._whole[reader] = self._ended(reader, None)[1]
            what, ended = self._ended(reader, Random(f"{self.seed} {i}"))
            whole = self._whole[reader]
            said = set(ended.err.splitlines()) - set(whole.err.splitlines())
            differs = ended.code == 0 and _answer(ended) != _answer(whole) and not said
            if differs and reader[0] != "beside" and not what.endswith((INTERRUPTED, UNSEALED, FORGED)):
                ended.faults.append(f"another answer, and not a word of it on stderr: {self.changed}")
            yield f"{' '.join(reader)} over {what}", ended

    def fresh(self, n: int) -> Iterator[tuple[str, Ended]]:
        """``n`` runs in processes of their own, which must print what they print in this one."""
        readers = [reader for reader in READERS if "--out" not in reader]
        for i in range(n):
            reader = readers[i % len(readers)]
            what, ended = self._ended(reader, Random(f"{self.seed} fresh {i}"), keep=True)
            case = self.folder / what.partition("/")[0]
            began = time.monotonic()
            done = commands.autotune(*reader, cwd=case)
            again = Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - began)
            if (again.code, _answer(again), bool(again.err)) != (ended.code, _answer(ended), bool(ended.err)):
                again.faults.append(f"it prints otherwise than in this process, which said {ended.err!r}")
            if "Traceback" in again.err:
                again.faults.append("a traceback on stderr")
            shutil.rmtree(case)
            yield f"{' '.join(reader)} over {what}, in a process of its own", again

    def _ended(self, reader: tuple[str, ...], rng: Random | None, keep: bool = False) -> tuple[str, Ended]:
        self._n += 1
        case = self.folder / f"case{self._n}"
        shutil.copytree(self.folder / "base", case)
        what, self.changed = "whole records", ""
        if rng is not None:
            name = rng.choice(FILES)
            folder = case / reader[1] if len(reader) > 1 and reader[1].startswith("results/") else case / "results"
            found = sorted(folder.rglob(name)) or (sorted(folder.parent.glob(name)) if name in OF_KERNEL else [])
            file = rng.choice(found or sorted(folder.rglob("trials.*")))
            whole = file.read_bytes()
            is_forged = file.name != LINES and rng.random() < 0.4
            file.write_bytes(forged(whole, rng) if is_forged else damaged(whole, rng))
            what = str(file.relative_to(self.folder))
            if is_forged:
                what += FORGED
            elif n_seals(file.read_bytes()) < n_seals(whole) and name not in OF_KERNEL:
                what += UNSEALED
            before, after = whole.split(b"\n"), file.read_bytes().split(b"\n")
            new, old = ([a[:800] for a in x if a not in y][:3] for x, y in ((after, before), (before, after)))
            self.changed = f"{new} in place of {old}"
            if file.name in (LINES, TABLE) and not file.with_name("verdict.json").exists():
                what += INTERRUPTED * whole.startswith(file.read_bytes().rpartition(b"\n")[0])
        allowed = [case / "results", case / "out"]
        (case / "out").mkdir()
        with inside(case):
            if len(reader) == 1:
                action = _python(reader[0], self.bench)
                ended = call(as_command(action) if what.endswith(FORGED) else action, allowed)
            else:
                ended = command(reader, allowed)
        ended.written = _written(case / "out")
        if not ended.faults and not keep:
            shutil.rmtree(case)
        return what, ended


def open_bench() -> Bench:
    """A simulated device, opened once for all runs."""
    return Bench(find_device("simulated"), 1)
