"""Tunes problems of an emitted package at their first use, with the autotune that is installed beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

from ..core.definition import Device, Kernel, problem_name
from ..core.errors import TrialFailure, UsageError, one_line
from ..core.problem import Problem, named_fields
from ..runtime import gpu, nvrtc
from ..runtime.first_use_choice import ONLY_READ, choice_of, is_recorded
from ..runtime.lookup import Choice
from ..runtime.tune_once import Contender, Effort, Tuner, TuningPlace, kept_outcome, tuned_once
from ..runtime.tuned_here import Surroundings, TunedHere, outcome_path
from ..runtime.wisdom import Wisdom
from .predictor import JINJA, Predictor

TUNER = "autotune.first_use.tuner"  # a string, since a package may be used where autotune is not installed


@dataclass(frozen=True)
class PackageTuning:
    """Implements ``runtime.first_use_choice.TuningHere``.

    Args:
        wisdom: the package's records.
        predictor: ranks configs, and keeps the sources of those that are chosen.
        effort: what a first use may take.
        tell: takes lines for the log.
    """

    wisdom: Wisdom
    predictor: Predictor
    effort: Effort
    tell: Callable[[str], None]
    _said: set[tuple[str, str]] = field(default_factory=set)
    _texts: dict[str, str] = field(default_factory=dict)

    def choice(self, kernel: Kernel[Problem], problem: Problem, device: Device, may_not: str) -> Choice | None:
        if is_recorded(self.wisdom, kernel, problem, device):
            return None
        found = self._found(kernel, problem, device, may_not)
        if not isinstance(found, str):
            return found
        name = f"{kernel.name}[{problem_name(problem)}]"
        if found != ONLY_READ and (name, found) not in self._said:
            self._said.add((name, found))
            self.tell(f"{name}: without a first use: {found}")
        return None

    def _found(self, kernel: Kernel[Problem], problem: Problem, device: Device, may_not: str) -> Choice | str:
        """Returns the choice, or one line that says why there is none."""
        if find_spec("jinja2") is None:
            return f'rendering needs Jinja2, which is missing: pip install "{JINJA}"'
        if (why := nvrtc.available()) is not None:
            return why
        around = Surroundings(device, gpu.driver(), nvrtc.described(device.arch), self._digest_of(kernel))
        path = outcome_path(kernel.name, named_fields(problem), around)
        outcome: TunedHere | str | None = kept_outcome(path, self.tell)
        if outcome is None:
            outcome = may_not or gpu.shares_faults() or self._tuned(kernel, problem, device, around)
        if isinstance(outcome, str):
            return outcome
        return choice_of(outcome, kernel, problem, lambda config: self.predictor.rendered(kernel, problem, config))

    def _tuned(
        self, kernel: Kernel[Problem], problem: Problem, device: Device, around: Surroundings
    ) -> TunedHere | str:
        gpu.synchronize()  # the caller's earlier work would disturb the timing
        index = gpu.current()
        place = TuningPlace(around, f"cuda:{index}", str(kernel.source_path.resolve()), gpu.free_bytes(index))

        def contenders() -> tuple[Contender, ...]:
            return self.predictor.contenders(kernel, problem, device, self.effort.n)

        try:
            return tuned_once(kernel, problem, place, contenders, self.effort, installed_tuner(), self.tell)
        except (UsageError, TrialFailure) as error:
            return one_line(str(error))

    def _digest_of(self, kernel: Kernel[Problem]) -> str:
        if kernel.name not in self._texts:
            from ..rendering.texts import texts_digest

            self._texts[kernel.name] = texts_digest(kernel)
        return self._texts[kernel.name]


def installed_tuner() -> Tuner:
    """Returns the tuner of the installed autotune.

    Raises:
        UsageError: when there is none; one line says what is missing.
    """
    try:
        tuner: Tuner = import_module(TUNER).tune_first
    except ImportError as error:
        raise UsageError(
            f"tune= needs autotune itself in this Python ({one_line(str(error))}): install its checkout, "
            "or leave tune= out"
        ) from error
    return tuner
