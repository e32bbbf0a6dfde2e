"""Experience with kernels from recorded sweeps. Measuring its losses takes seconds, so the user's cache keeps it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import current_process
from pathlib import Path

from ..core.definition import AnyKernel
from ..core.digest import digest
from ..core.errors import UsageError
from ..core.kept import keep, take
from ..core.schema import Unsound, parse
from ..recommend import learning
from ..recommend.experience import Experience, MeasuredProblem, as_json, read_experience
from ..records.record import SweepRecord
from ..runtime import bounds
from ..runtime.tune_once import TellLine
from ..source.registry import kernel_reference, load_kernel, recorded_kernel
from ..system.cache import cache_dir
from ..system.installation import VERSION
from ..system.processes import Child, n_cpus


def measured_problem(sweep: SweepRecord) -> MeasuredProblem:
    """Returns the measured times of a sweep, which must have some."""
    won = sweep.outcome.won if sweep.outcome else lambda fastest: None
    return MeasuredProblem.of(sweep.about.problem, sweep.device, sweep.median_s, sweep.n_configs, won)


def experiences(
    sweeps: Sequence[SweepRecord], kernels: Mapping[str, AnyKernel], tell: TellLine = lambda line: None
) -> dict[str, Experience]:
    """Returns the experience, with losses, that the sweeps give for each kernel; none for one without a measurement.

    ``tell``: takes a line for each kernel that the cache lacks.
    """
    own = {name: [sweep for sweep in sweeps if sweep.kernel == name and sweep.median_s] for name in kernels}
    work = [(kernels[name], some) for name, some in own.items() if some]
    alone = len(work) == 1 or current_process().daemon  # one of these starts no process
    with ThreadPoolExecutor(min(n_cpus(), len(work)) or 1) as pool:
        found = list(pool.map(lambda each: _experience(each[0], each[1], tell, alone), work))
    return {one.kernel: one for one in found if one is not None}


def recorded_experiences(sweeps: Iterable[SweepRecord], named: Mapping[str, AnyKernel]) -> dict[str, Experience]:
    """Returns the experience of each kernel with a definition, whether or not its records still hold.

    ``named``: kernel -> definition, for definitions that are not installed.
    """
    valid, kernels = [], {}
    for sweep in sweeps:
        with suppress(UsageError):
            kernel = kernels[sweep.kernel] = recorded_kernel(sweep.about.content, named)
            valid.append(sweep.of_space(kernel.space))
    return experiences(valid, kernels)


def _experience(kernel: AnyKernel, sweeps: Sequence[SweepRecord], tell: TellLine, alone: bool) -> Experience | None:
    """Returns what sweeps teach, kept under a digest of all that it follows from; None if no problem is possible."""
    code = (*sorted(Path(learning.__file__).parent.glob("*.py")), Path(bounds.__file__), Path(__file__))
    texts = [path.read_bytes() for path in (*kernel.source_paths, *code)]
    times = sorted(repr((one.identity, one.device, sorted(map(repr, one.median_s.items())))) for one in sweeps)
    path = cache_dir("experience") / f"{kernel.name}-{digest(VERSION, texts, times)}.experience"
    with suppress(OSError, Unsound, KeyError, TypeError):  # another version wrote it
        if (stored := take(path)) is not None:
            content = parse(stored[0])
            return read_experience(kernel.name, content["kernels"][kernel.name], content["devices"])
    if len(sweeps) > 1:
        tell(f"{kernel.name}: learning from {len(sweeps)} sweeps, choosing for each from the others")
    problems = [measured_problem(sweep) for sweep in sweeps]
    try:
        one = learning.with_losses(kernel, problems) if alone else _learnt_beside(kernel_reference(kernel), problems)
    except ValueError:
        return None
    with suppress(OSError):  # the next call computes it again
        keep(path, json.dumps(as_json([one]), allow_nan=False).encode(), {})
    return one


def _learnt_beside(kernel: str, problems: Sequence[MeasuredProblem]) -> Experience:
    child = Child("autotune-learn", load_kernel, kernel)
    try:
        return child.call(_learnt, (kernel, problems))
    finally:
        child.stop()


def _learnt(kernel: str, problems: Sequence[MeasuredProblem]) -> Experience:
    return learning.with_losses(load_kernel(kernel), problems)
