"""Prepares a package for problems without a record: experience with its kernels, and configs rendered in advance.

The experience goes into ``measured.json``, and the losses of its predictions into ``wisdom.json``.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..analysis import predictions
from ..analysis.losses import loss_summary
from ..analysis.predictions import MOST_LEFT_OUT, best_method, experience_with
from ..core.definition import AnyKernel, Device, baked_values
from ..core.errors import TrialFailure, UsageError
from ..core.kept import keep, take
from ..core.problem import Problem
from ..core.schema import Unsound, parse
from ..prediction.packaged import measured_text
from ..records.record import SweepRecord
from ..rendering.render import render
from ..runtime.lookup import PREDICTED
from ..runtime.wisdom import Ahead, Loss
from ..sweep.problem_list import read_problems
from ..system.cache import cache_dir
from ..system.installation import VERSION
from ..system.one_thread import one_thread
from ..transfer import model
from ..transfer.experience import N_FITTED, N_STEPS, Experience, as_json, ranked, read_experiences

N_AHEAD = 3  # configurations per problem and architecture: if one does not compile, the next one is used


@dataclass(frozen=True)
class Foresight:
    """``experiences`` by kernel, and the losses of their predictions."""

    experiences: Mapping[str, Experience]
    losses: tuple[Loss, ...]

    def text(self, files: Mapping[str, str]) -> str:
        """Returns the text of ``measured.json``; ``files``: the definitions and templates that determine rankings."""
        digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(files.items())).encode())
        return measured_text({**as_json(self.experiences.values()), "definitions": digest.hexdigest()})


def foresight(
    sweeps: Sequence[SweepRecord],
    kernels: Mapping[str, AnyKernel],
    tell: Callable[[str], None] = lambda line: None,
) -> Foresight:
    """Returns the experience that the sweeps give for each kernel, and the losses of its predictions.

    Hundreds of sweeps take a minute, so the user's cache stores the result. ``tell``: takes a line for each kernel that
    the cache lacks.
    """
    combined = Foresight({}, ())
    for name, kernel in kernels.items():
        own = [sweep for sweep in sweeps if sweep.kernel == name and sweep.median_s]
        if not own:
            continue
        path = _kept_path(kernel, own)
        one = _cached(path)
        if one is None:
            if len(own) > 1:
                tell(f"{name}: learning from {len(own)} sweeps, predicting each from the others")
            one = _of_kernel(kernel, own)
            _keep(path, one)
        combined = Foresight({**combined.experiences, **one.experiences}, (*combined.losses, *one.losses))
    return combined


def _of_kernel(kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> Foresight:
    with one_thread():
        experience = experience_with(kernel, sweeps)
        if experience is None:
            return Foresight({}, ())
        best, lost = best_method(experience, kernel, sweeps)
    losses = (loss_summary(kernel.name, where, PREDICTED, values) for where, values in sorted(lost.items()))
    return Foresight({kernel.name: best}, tuple(loss for loss in losses if loss is not None))


# ---------------------------------------------------------------------- the user's cache
def _kept_path(kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> Path:
    """Returns the path in the cache, named by a digest of the sweeps' medians, the definition and the learning code."""
    digest = hashlib.sha256(repr((kernel.name, VERSION, N_FITTED, N_STEPS, MOST_LEFT_OUT)).encode())
    for path in (*kernel.source_paths, *sorted(Path(model.__file__).parent.glob("*.py")), Path(predictions.__file__)):
        digest.update(path.read_bytes())
    for sweep in sorted(sweeps, key=lambda one: one.identity):
        digest.update(repr((sweep.identity, sweep.device, sorted(map(repr, sweep.median_s.items())))).encode())
    return cache_dir("foresight") / f"{kernel.name}-{digest.hexdigest()[:32]}.foresight"


def _keep(path: Path, one: Foresight) -> None:
    content = {**as_json(one.experiences.values()), "losses": [asdict(loss) for loss in one.losses]}
    with suppress(OSError):  # the next call computes it again
        keep(path, json.dumps(content, allow_nan=False).encode(), {})


def _cached(path: Path) -> Foresight | None:
    with suppress(OSError, Unsound, TypeError):  # another version wrote it
        if (stored := take(path)) is not None:
            content = parse(stored[0])
            losses = tuple(Loss(**loss) for loss in content.pop("losses"))
            return Foresight(read_experiences(content), losses)
    return None


def rendered_ahead(
    lists: Iterable[Path], known: Foresight, kernels: Mapping[str, AnyKernel]
) -> tuple[list[Ahead], dict[str, str]]:
    """Returns configurations for the problems in ``lists`` on each recorded architecture, and their sources.

    Raises:
        UsageError: for a list that cannot be read, a kernel that is not emitted, or an impossible problem.
    """
    rendered: list[Ahead] = []
    sources: dict[str, str] = {}
    for path in lists:
        name, problems = read_problems(path)
        if name not in known.experiences:
            raise UsageError(f"{path}: {name} is not emitted; emitted are {', '.join(known.experiences) or 'none'}")
        kernel, experience = kernels[name], known.experiences[name]
        devices = {one.device.arch: one.device for one in experience.problems}
        for values in problems:
            problem = kernel.problem_with(values)
            for device in devices.values():
                for ahead, source in _ahead(kernel, experience, problem, device):
                    rendered.append(ahead)
                    sources[ahead.source_key] = source
    return rendered, sources


def _ahead(kernel: AnyKernel, experience: Experience, problem: Problem, device: Device) -> list[tuple[Ahead, str]]:
    """Returns the configurations for one problem on one architecture, with their sources."""
    rendered = []
    for config in ranked(experience, kernel, problem, device, N_AHEAD):
        try:
            variant = render(kernel, problem, config)
        except TrialFailure:
            continue
        ahead = Ahead(kernel.name, device.arch, baked_values(problem), config, variant.key)
        rendered.append((ahead, variant.source))
    return rendered
