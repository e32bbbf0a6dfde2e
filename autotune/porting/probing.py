"""Finds the arrays that a kernel writes, by launches of its first config with the caller's contents and with others.

An output counts as overwritten if its result does not depend on its earlier content. The other contents are as large as
the results, since a small number could vanish in a sum.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import TrialFailure, UsageError
from .answers import SMALLEST_STEP, WHOLE, Answer, Outputs, unlike
from .array_memory import is_same, leaves, stored
from .call import Call, CallArgument
from .contents import beyond, shuffled_contents
from .launching import ConfigLauncher, Ready

LOOSE = Tolerance(rtol=1e-3, of_rms=1e-4)  # between two configs, which may add in another order
N_TRIED = 8  # most configs that run until one gives the answers; so many are compiled at a time once the first failed
ONE_SIZE = "the answer is for one size: other sizes cannot be checked"


@dataclass(frozen=True)
class Other:
    """The results of the first config when one output held other contents, in stored form."""

    argument: CallArgument
    before: np.ndarray
    after: Mapping[str, np.ndarray]  # results of this output, and of the outputs that it changes


@dataclass(frozen=True)
class ProbeResult:
    """The effect of the first config that runs.

    ``written``: the changed arrays, after the launch. ``others``: launches with other contents. ``doubt``: by output,
    why it is unknown whether the kernel reads it. ``failure``: why none of the first configs ran.
    """

    written: Mapping[str, np.ndarray] = field(default_factory=dict)
    overwritten: frozenset[str] = frozenset()
    others: tuple[Other, ...] = ()
    doubt: Mapping[str, str] = field(default_factory=dict)
    failure: TrialFailure | None = None


def probe(
    call: Call, answers: Mapping[str, Answer], launcher: ConfigLauncher, note: Callable[[str], Any]
) -> ProbeResult:
    """Launches configs on the caller's arrays until one gives the answers, then launches it with other contents.

    All configs are tried until one runs. If none of those that run gives the answers, the result only says which
    arrays the first of them writes.
    """
    failure: TrialFailure | None = None
    wrong: list[ProbeResult] = []
    names = [each.name for each in call.arguments if each.may_be_written]
    for number, ready in enumerate(_compiled(call, launcher)):
        if number == N_TRIED and not wrong:
            note(f"{call.name}: none of the first {number} configs ran ({failure}): looking for one among the others")
        try:
            if isinstance(ready, TrialFailure):
                raise ready
            if not wrong and (slow := launcher.told_slow(ready)):
                note(f"{call.name}: {slow}")
            first, again = (launcher.launched(ready, names, seed=seed) for seed in (0, 1))
        except TrialFailure as its_own:
            failure = failure or its_own
            continue
        probed = _Probe(call, answers, launcher, ready, first, again)
        differs = {name: why for name, answer in answers.items() if (why := answer.differs(first[name]))}
        if not differs:
            return probed.probed()
        doubt = {name: f"none of the first configs gives its answer: {name}{why}" for name, why in differs.items()}
        wrong.append(ProbeResult(probed.written(), doubt=doubt))
        if len(wrong) == N_TRIED:
            break
    return wrong[0] if wrong else ProbeResult(failure=failure)


def _compiled(call: Call, launcher: ConfigLauncher) -> Iterator[Ready | TrialFailure]:
    """Yields the configs, each compiled or with the failure of its compile.

    Raises:
        UsageError: if a formula cannot be computed at a config.
    """
    configs = call.enumeration.configs
    for first in (0, *range(1, len(configs), N_TRIED)):
        try:
            yield from launcher.ready(configs[first : first + (N_TRIED if first else 1)])
        except UsageError as error:
            raise UsageError(f"{call.name}: {error}") from error


@dataclass(frozen=True)
class _Probe:
    """A config that runs, with the results of two launches from the caller's contents."""

    call: Call
    answers: Mapping[str, Answer]
    launcher: ConfigLauncher
    ready: Ready
    first: Mapping[str, np.ndarray]
    again: Mapping[str, np.ndarray]

    def written(self) -> dict[str, np.ndarray]:
        """Returns the changed arrays, and unchanged ones that are probably outputs because they began blank."""
        left = [
            each
            for each in self.call.arguments
            if each.may_be_written
            and each.name not in self.answers
            and not _is_blank(each.memory.stored)
            and is_same(each.memory.typed, each.memory.as_typed(self.first[each.name]))
        ]
        inputs = {each.name for each in left if self._is_input(each)}
        return {name: array for name, array in self.first.items() if name not in inputs}

    def _is_input(self, each: CallArgument) -> bool:
        """Returns whether an unchanged array was not written; a counter, for example, may be 0 again."""
        try:
            self.launcher.launched(self.ready, [], read_only=[each.name])
        except TrialFailure:
            return False
        return True

    def probed(self) -> ProbeResult:
        overwritten, others, doubt = [], [], {}
        for name, answer in self.answers.items():
            try:
                launches = list(self._others(answer.argument))
            except TrialFailure as why:
                doubt[name] = why.message
                continue
            differing = [other for other in launches if not self._agree(other)]
            if launches and not differing:
                overwritten.append(name)
            others += differing
        return ProbeResult(self.written(), frozenset(overwritten), tuple(others), doubt)

    def _others(self, each: CallArgument) -> Iterator[Other]:
        """Yields launches with other contents; contents that would break an index come last, if still needed."""
        initial, result = each.memory.typed, each.memory.as_typed(self.first[each.name])
        agree = True
        for contents in (shuffled_contents(initial, result), beyond(result)):
            for before in contents:
                launch = self._launched(each, stored(np.ascontiguousarray(before)))
                agree = agree and self._agree(launch)
                yield launch
            if not agree:
                return

    def _launched(self, each: CallArgument, before: np.ndarray) -> Other:
        """Launches with other contents of one output; returns the outputs with an answer whose results change."""
        results = self.launcher.launched(self.ready, list(self.answers), {each.name: before})
        own = {name: after for name, after in results.items() if name == each.name or not self._agrees(name, after)}
        return Other(each, before, own)

    def _agree(self, other: Other) -> bool:
        """Returns whether other contents of an output change no result."""
        return all(self._agrees(name, after) for name, after in other.after.items())

    def _agrees(self, name: str, after: np.ndarray) -> bool:
        """Returns whether a result equals the one from the caller's contents: bit for bit, unless launches vary."""
        typed = self.answers[name].argument.memory.as_typed
        first, again = typed(self.first[name]), typed(self.again[name])
        if is_same(typed(after), first):
            return True
        return not is_same(first, again) and not unlike(typed(after), first, loose(first, ()))


def loose(typed: np.ndarray, tolerances: Sequence[Tolerance]) -> list[Tolerance]:
    """Returns the tolerance between two configs, for each leaf; wider than ``tolerances``, but exact stays exact."""
    tolerances_of = []
    for i, (_, leaf) in enumerate(leaves(typed)):
        own = tolerances[i] if tolerances else LOOSE
        if own == Tolerance() or (not tolerances and leaf.dtype.kind in WHOLE):
            tolerances_of.append(Tolerance())
        else:
            step = 16 * SMALLEST_STEP.get(leaf.dtype.name, 0.0)
            rtol = max(LOOSE.rtol, 2 * own.rtol, step)
            tolerances_of.append(Tolerance(rtol, 2 * own.atol, max(LOOSE.of_rms, step)))
    return tolerances_of


def outputs_of(call: Call, probed: ProbeResult, answers: Mapping[str, Answer]) -> Outputs:
    """Returns the role of each array.

    An output that the kernel overwrites is poisoned before each launch. An output that it adds to, or writes in part,
    or of which this is unknown, starts with the caller's content. A written array without an answer is not compared.

    Raises:
        UsageError: if all outputs begin with their answers, so that a kernel that does nothing would win.
    """
    kept = {name: answer for name, answer in answers.items() if name not in probed.overwritten}
    is_seen = {other.argument.name for other in probed.others if _shows(other, answers[other.argument.name])}
    passes = [name for name, answer in kept.items() if not answer.differs(answer.argument.memory.stored)]
    if answers and len(passes) == len(answers) and not is_seen.intersection(passes):
        raise UsageError(_nothing_shown(call, passes, probed))
    kinds = dict(unchecked(call, probed).kinds)
    compared: dict[str, Answer] = {}
    for name, answer in answers.items():
        if answer.argument.memory.is_plain:
            kinds[name], compared[name] = ("inout" if name in kept else "out"), answer
        else:
            kinds[name] = "scratch"
    unsure = [name for name in passes if name not in is_seen]
    doubts = f"; {', '.join(unsure)} held the answer before: not checked to be written" if unsure else ""
    return Outputs(kinds, compared, ONE_SIZE + doubts, is_sure=probed.failure is None and not probed.doubt)


def _shows(other: Other, answer: Answer) -> bool:
    """Returns whether this launch would expose a kernel that does nothing."""
    own = other.after[other.argument.name]
    before, after = (other.argument.memory.as_typed(each) for each in (other.before, own))
    tolerances = [answer.tolerance_of(leaf.dtype) for _, leaf in leaves(before)]
    return unlike(before, after, loose(before, tolerances)) is not None


def _nothing_shown(call: Call, passes: Sequence[str], probed: ProbeResult) -> str:
    name = passes[0]
    why = probed.failure.message if probed.failure else probed.doubt.get(name, "")
    unknown = f"it is unknown what the kernel does to it ({why})"
    seen = unknown if why else "the first config does not change it beyond the tolerance"
    return (
        f"{call.name}: {name} holds its answer before the launch, and {seen}, so a kernel that does nothing would "
        f"pass: give {name} other contents, such as zeros"
    )


def unchecked(call: Call, probed: ProbeResult, note: str = "") -> Outputs:
    """Returns roles without answers: written arrays are scratch; if no config ran, all arrays that may be written."""
    may = {each.name for each in call.arguments if each.may_be_written}
    scratch = may if probed.failure is not None else may & probed.written.keys()
    kinds = {e.name: "scratch" if e.name in scratch else "in" for e in call.arguments if e.is_array}
    return Outputs(kinds, {}, note, is_sure=probed.failure is None)


def _is_blank(array: np.ndarray) -> bool:
    """Returns whether all elements are equal."""
    return array.size > 1 and not (array != array.flat[0]).any()
