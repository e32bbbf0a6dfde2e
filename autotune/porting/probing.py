"""Finds out what a kernel writes, by launches of its first config from the caller's contents and from others.

An output is overwritten only if its results are the same whatever it held. Other contents differ by values of the
result's size, since what is small enough adds to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import TrialFailure, UsageError
from .answers import SMALLEST_STEP, WHOLE, Answer, Answers, unlike
from .array_memory import is_same, leaves, stored
from .call import Call, CallArgument
from .contents import beyond, shuffled_contents
from .launching import ConfigLauncher, Ready
from .outputs import Outputs

LOOSE = Tolerance(rtol=1e-3, of_rms=1e-4)  # of configs among each other, whose sums may have another order
N_TRIED = 8  # configs, until one runs
ONE_SIZE = "the answer is of one size: other sizes cannot be checked"


@dataclass(frozen=True)
class Other:
    """What the first config made of outputs when one of them held other contents, as they are stored."""

    argument: CallArgument
    before: np.ndarray
    after: Mapping[str, np.ndarray]  # that output, and others whose results it changes


@dataclass(frozen=True)
class ProbeResult:
    """What the first config that runs wrote.

    ``written``: arrays that changed, as they were after the launch. ``others``: launches from other contents.
    ``doubt``: why nothing is known of an output. ``failure``: why none of the first configs ran.
    """

    written: Mapping[str, np.ndarray] = field(default_factory=dict)
    overwritten: frozenset[str] = frozenset()
    others: tuple[Other, ...] = ()
    doubt: Mapping[str, str] = field(default_factory=dict)
    failure: TrialFailure | None = None


def probe(call: Call, answers: Answers, launcher: ConfigLauncher) -> ProbeResult:
    """Launches configs on the caller's arrays until one gives the answers, and that one on other contents of outputs.

    Where none does, it is told what the first one writes, and nothing of what outputs held before.
    """
    failure: TrialFailure | None = None
    wrong: ProbeResult | None = None
    names = [each.name for each in call.arguments if each.may_be_written]
    for config in call.enumeration.configs[:N_TRIED]:
        try:
            ready = launcher.ready(config)
            first, again = (launcher.launched(ready, names, seed=seed) for seed in (0, 1))
        except TrialFailure as its_own:
            failure = failure or its_own
            continue
        except UsageError as error:  # a size that cannot be computed there
            raise UsageError(f"{call.name}: {error}") from error
        found = _Probe(call, answers, launcher, ready, first, again)
        differs = {name: why for name, answer in answers.each.items() if (why := answer.differs(first[name]))}
        if not differs:
            return found.probed()
        doubt = {name: f"none of the first configs gives its answer: {name}{why}" for name, why in differs.items()}
        wrong = wrong or ProbeResult(found.written(), doubt=doubt)
    return wrong or ProbeResult(failure=failure)


@dataclass(frozen=True)
class _Probe:
    """A config that runs, with what two launches from the caller's contents left."""

    call: Call
    answers: Answers
    launcher: ConfigLauncher
    ready: Ready
    first: Mapping[str, np.ndarray]
    again: Mapping[str, np.ndarray]

    def written(self) -> dict[str, np.ndarray]:
        """Returns the arrays that changed; those that began blank are rather outputs, also where none did."""
        left = [
            each
            for each in self.call.arguments
            if each.may_be_written
            and each.name not in self.answers.each
            and not _is_blank(each.memory.stored)
            and is_same(each.memory.typed, each.memory.as_typed(self.first[each.name]))
        ]
        inputs = {each.name for each in left if self._is_input(each)}
        return {name: array for name, array in self.first.items() if name not in inputs}

    def _is_input(self, each: CallArgument) -> bool:
        """Returns whether an array that is as it was has not been written; a counter may be 0 again."""
        try:
            self.launcher.launched(self.ready, [], read_only=[each.name])
        except TrialFailure:
            return False
        return True

    def probed(self) -> ProbeResult:
        overwritten, others, doubt = [], [], {}
        for name, answer in self.answers.each.items():
            try:
                found = list(self._others(answer.argument))
            except TrialFailure as why:
                doubt[name] = why.message
                continue
            differing = [other for other in found if not self._agree(other)]
            if found and not differing:
                overwritten.append(name)
            others += differing
        return ProbeResult(self.written(), frozenset(overwritten), tuple(others), doubt)

    def _others(self, each: CallArgument) -> Iterator[Other]:
        """Yields launches from other contents; those that no index allows are tried last, if the others say nothing."""
        given, result = each.memory.typed, each.memory.as_typed(self.first[each.name])
        agree = True
        for contents in (shuffled_contents(given, result), beyond(result)):
            for before in contents:
                made = self._launched(each, stored(np.ascontiguousarray(before)))
                agree = agree and self._agree(made)
                yield made
            if not agree:
                return

    def _launched(self, each: CallArgument, before: np.ndarray) -> Other:
        """Launches from other contents of one output; what becomes of all answered ones shows what they mean."""
        found = self.launcher.launched(self.ready, list(self.answers.each), {each.name: before})
        own = {name: after for name, after in found.items() if name == each.name or not self._agrees(name, after)}
        return Other(each, before, own)

    def _agree(self, other: Other) -> bool:
        """Returns whether other contents of an output make no difference to any result."""
        return all(self._agrees(name, after) for name, after in other.after.items())

    def _agrees(self, name: str, after: np.ndarray) -> bool:
        """Returns whether a result is that from the caller's contents: bit for bit, unless that varies by itself."""
        typed = self.answers.each[name].argument.memory.as_typed
        first, again = typed(self.first[name]), typed(self.again[name])
        if is_same(typed(after), first):
            return True
        return not is_same(first, again) and not unlike(typed(after), first, loose(first, ()))


def loose(typed: np.ndarray, tolerances: Sequence[Tolerance]) -> list[Tolerance]:
    """Returns how near two configs must be to each other, number by number: integers exactly, if they must be so."""
    found = []
    for i, (_, leaf) in enumerate(leaves(typed)):
        own = tolerances[i] if tolerances else LOOSE
        if own == Tolerance() or (not tolerances and leaf.dtype.kind in WHOLE):
            found.append(Tolerance())
        else:
            step = 16 * SMALLEST_STEP.get(leaf.dtype.name, 0.0)
            rtol = max(LOOSE.rtol, 2 * own.rtol, step)
            found.append(Tolerance(rtol, 2 * own.atol, max(LOOSE.of_rms, step)))
    return found


def outputs_of(call: Call, probed: ProbeResult, answers: Answers) -> Outputs:
    """Returns what becomes of each array.

    An output that the kernel overwrites is poisoned before each launch; one that it adds to, or writes in part, or of
    which nothing is known, starts as the caller's array. What is written and has no answer is not compared.

    Raises:
        UsageError: when outputs start as what passes, so that a kernel that does nothing would win.
    """
    kept = {name: answer for name, answer in answers.each.items() if name not in probed.overwritten}
    is_seen = {other.argument.name for other in probed.others if _shows(other, answers.each[other.argument.name])}
    passes = [name for name, answer in kept.items() if not answer.differs(answer.argument.memory.stored)]
    if answers.each and len(passes) == len(answers.each) and not is_seen.intersection(passes):
        raise UsageError(_told_nothing(call, passes, probed))
    kinds = dict(unchecked(call, probed).kinds)
    compared: dict[str, Answer] = {}
    for name, answer in answers.each.items():
        if answer.argument.memory.is_plain:
            kinds[name], compared[name] = ("inout" if name in kept else "out"), answer
        else:
            kinds[name] = "scratch"
    unsure = [name for name in passes if name not in is_seen]
    told = f"; {', '.join(unsure)} held the answer before: not checked to be written" if unsure else ""
    return Outputs(kinds, compared, ONE_SIZE + told)


def _shows(other: Other, answer: Answer) -> bool:
    """Returns whether a kernel that does nothing would differ from this launch by more than configs may."""
    own = other.after[other.argument.name]
    before, after = (other.argument.memory.as_typed(each) for each in (other.before, own))
    tolerances = [answer.tolerance_of(leaf.dtype) for _, leaf in leaves(before)]
    return unlike(before, after, loose(before, tolerances)) is not None


def _told_nothing(call: Call, passes: Sequence[str], probed: ProbeResult) -> str:
    name = passes[0]
    why = probed.failure.message if probed.failure else probed.doubt.get(name, "")
    unknown = f"what the kernel does to it could not be found out ({why})"
    seen = unknown if why else "the first config leaves it as it is, within the tolerance"
    return (
        f"{call.name}: {name} holds its answer before the launch, and {seen}, so a kernel that does nothing would "
        f"pass: give {name} other contents, such as zeros"
    )


def unchecked(call: Call, probed: ProbeResult, note: str = "") -> Outputs:
    """Returns outputs of which nothing is known: those that were written, or that the kernel may write."""
    may = {each.name for each in call.arguments if each.may_be_written}
    scratch = may if probed.failure is not None else may & probed.written.keys()
    kinds = {e.name: "scratch" if e.name in scratch else "in" for e in call.arguments if e.is_array}
    return Outputs(kinds, {}, note)


def _is_blank(array: np.ndarray) -> bool:
    """Returns whether all elements are the same."""
    return array.size > 1 and not (array != array.flat[0]).any()
