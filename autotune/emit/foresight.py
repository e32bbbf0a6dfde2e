"""What a package answers problems with that nobody recorded: experience with its kernels, and configs rendered ahead.

The experience goes into ``measured.json``; what its predictions lose, into ``wisdom.json``.
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

N_AHEAD = 3  # configurations of a problem and architecture: one that does not compile gives way to the next


@dataclass(frozen=True)
class Foresight:
    """``experiences`` by kernel, and what each tier of predictions loses."""

    experiences: Mapping[str, Experience]
    losses: tuple[Loss, ...]

    def text(self, files: Mapping[str, str]) -> str:
        """Returns the text of ``measured.json``; ``files``: the definitions and templates that rankings follow from."""
        digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(files.items())).encode())
        return measured_text({**as_json(self.experiences.values()), "definitions": digest.hexdigest()})


def foresight(
    sweeps: Sequence[SweepRecord],
    kernels: Mapping[str, AnyKernel],
    tell: Callable[[str], None] = lambda line: None,
) -> Foresight:
    """Returns what the sweeps teach about each kernel, and what predictions from it lose.

    The user's cache keeps it, since it takes a minute of hundreds of sweeps. ``tell``: takes a line for each kernel
    that is not there.
    """
    found = Foresight({}, ())
    for name, kernel in kernels.items():
        own = [sweep for sweep in sweeps if sweep.kernel == name and sweep.median_s]
        if not own:
            continue
        path = _kept_path(kernel, own)
        one = _taken(path)
        if one is None:
            tell(f"{name}: learning from {len(own)} sweeps, each of which is left out in turn")
            one = _of_kernel(kernel, own)
            _keep(path, one)
        found = Foresight({**found.experiences, **one.experiences}, (*found.losses, *one.losses))
    return found


def _of_kernel(kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> Foresight:
    with one_thread():
        experience = experience_with(kernel, sweeps)
        if experience is None:
            return Foresight({}, ())
        best, lost = best_method(experience, kernel, sweeps)
    losses = (loss_summary(kernel.name, where, PREDICTED, values) for where, values in sorted(lost.items()))
    return Foresight({kernel.name: best}, tuple(loss for loss in losses if loss is not None))


# ---------------------------------------------------------------------- kept in the user's cache
def _kept_path(kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> Path:
    """Returns the path named by all that follows: the sweeps' medians, the definition, and how it is learnt from."""
    digest = hashlib.sha256(repr((kernel.name, VERSION, N_FITTED, N_STEPS, MOST_LEFT_OUT)).encode())
    for path in (*kernel.source_paths, *sorted(Path(model.__file__).parent.glob("*.py")), Path(predictions.__file__)):
        digest.update(path.read_bytes())
    for sweep in sorted(sweeps, key=lambda one: one.identity):
        digest.update(repr((sweep.identity, sweep.device, sorted(map(repr, sweep.median_s.items())))).encode())
    return cache_dir("foresight") / f"{kernel.name}-{digest.hexdigest()[:32]}.foresight"


def _keep(path: Path, one: Foresight) -> None:
    content = {**as_json(one.experiences.values()), "losses": [asdict(loss) for loss in one.losses]}
    with suppress(OSError):  # it is made again
        keep(path, json.dumps(content, allow_nan=False).encode(), {})


def _taken(path: Path) -> Foresight | None:
    with suppress(OSError, Unsound, TypeError):  # another version wrote it
        if (found := take(path)) is not None:
            content = parse(found[0])
            losses = tuple(Loss(**loss) for loss in content.pop("losses"))
            return Foresight(read_experiences(content), losses)
    return None


def rendered_ahead(
    lists: Iterable[Path], known: Foresight, kernels: Mapping[str, AnyKernel]
) -> tuple[list[Ahead], dict[str, str]]:
    """Returns configurations for the problems in ``lists``, on each architecture that was recorded, and their sources.

    Raises:
        UsageError: for a list that cannot be read, a kernel of which nothing is emitted, or a problem that is not
            possible.
    """
    found: list[Ahead] = []
    sources: dict[str, str] = {}
    for path in lists:
        name, problems = read_problems(path)
        if name not in known.experiences:
            raise UsageError(f"{path}: nothing is emitted of {name} (of {', '.join(known.experiences) or 'nothing'})")
        kernel, experience = kernels[name], known.experiences[name]
        devices = {one.device.arch: one.device for one in experience.problems}
        for values in problems:
            problem = kernel.asked(values)
            for device in devices.values():
                for ahead, source in _ahead(kernel, experience, problem, device):
                    found.append(ahead)
                    sources[ahead.source_key] = source
    return found, sources


def _ahead(kernel: AnyKernel, experience: Experience, problem: Problem, device: Device) -> list[tuple[Ahead, str]]:
    """Returns the configurations of one problem on one architecture, with their sources."""
    found = []
    for config in ranked(experience, kernel, problem, device, N_AHEAD):
        try:
            variant = render(kernel, problem, config)
        except TrialFailure:
            continue
        ahead = Ahead(kernel.name, device.arch, baked_values(problem), config, variant.key)
        found.append((ahead, variant.source))
    return found
