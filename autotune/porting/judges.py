"""Judges of outputs without a reference: the caller's function, or the results of the first config.

A judge is called for each verified and measured config, and returns a remark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import Status, TrialFailure
from ..devices.base import Session
from ..source.registry import load_kernel
from ..trial.bench import Bench
from ..trial.case import POISONS, arrays_of, read_case, save_arrays
from ..trial.measure import timed_arguments
from ..trial.stations import UNVERIFIED
from ..trial.worker import Job
from .answers import Answer, Difference, stored_answer, unlike
from .array_memory import as_typed, digest_of, leaves, stored
from .call import Call, CallArgument
from .contents import beyond
from .probing import ProbeResult, loose


@dataclass(frozen=True)
class ByVerify:
    """Calls the caller's function on the outputs of each config."""

    call: Call
    bench: Bench
    verify: Callable[..., Any]
    answer: list[object]
    atol: float
    written: frozenset[str]  # arrays that a launch may change

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns an empty remark.

        Raises:
            TrialFailure: wrong, unless the function accepts the outputs.
        """
        pairs = list(zip(self.call.arguments, self.answer, strict=True))
        names = [each.name for each, value in pairs if value is not None and each.name in self.written]
        with self.bench.turn:
            results = self.bench.worker.written(job, names, deadline_s)
        outputs = [None if value is None else self._output(each, results) for each, value in pairs]
        try:
            is_right = self._is_verified(outputs)
        except Exception as error:  # the caller's function may raise anything
            raise TrialFailure(Status.WRONG, f"verify raised {type(error).__name__}: {error}") from error
        if not is_right:
            raise TrialFailure(Status.WRONG, "verify rejects the outputs")
        return ""

    def _output(self, each: CallArgument, results: Mapping[str, np.ndarray]) -> Any:
        """Returns an argument after the launch, with the caller's type and axes."""
        if not each.is_array:
            return each.number
        return each.memory.restored(results[each.name]) if each.name in results else each.memory.given

    @property
    def digest(self) -> str:
        """Returns a digest of the function's code and the answer; it changes when the judge changes."""
        code = getattr(self.verify, "__code__", None)
        text = repr(self.verify) if code is None else f"{code.co_code!r} {code.co_names} {_plain(code.co_consts)}"
        answers = [None if value is None else digest_of(np.asarray(value)) for value in self.answer]
        return sha256(f"{text} {answers} {self.atol}".encode()).hexdigest()[:12]

    def _is_verified(self, outputs: Sequence[object]) -> bool:
        try:
            return bool(np.all(self.verify(self.answer, outputs, atol=self.atol)))
        except TypeError as error:
            if "atol" not in str(error):
                raise
            return bool(np.all(self.verify(self.answer, outputs)))


def _plain(constants: tuple[object, ...]) -> list[str]:
    """Returns the constants of a function's code as text without addresses; nested code as its instructions."""
    return [repr(each.co_code) if isinstance(each, CodeType) else repr(each) for each in constants]


@dataclass(frozen=True)
class ContentCheck:
    """A launch with given contents of one array, and the expected content of an array afterwards, both in files.

    ``changed``: the array that begins with the contents ``before``; None: with the caller's contents. ``of``: a text
    for people that says what ``after`` is. ``dtype``: the type of the caller's array.
    """

    name: str
    changed: str
    before: str | None
    after: str
    of: str
    dtype: np.dtype[np.generic]
    tolerances: tuple[Tolerance, ...]
    or_after: str | None = None  # elements may hold these values instead


@dataclass(frozen=True)
class WithFirstConfig:
    """Compares the outputs of each config with those of the first config, which may be wrong themselves."""

    bench: Bench
    folder: Path
    checks: tuple[ContentCheck, ...]

    @staticmethod
    def of(bench: Bench, call: Call, written: Mapping[str, np.ndarray]) -> "WithFirstConfig":
        """Returns a judge that compares with ``written``; it stores these arrays in files of the bench."""
        folder = bench.folder(bench.join())
        save_arrays(folder, "check", written)
        typed = {each.name: each.memory.typed for each in call.arguments if each.name in written}
        checks = [
            ContentCheck(n, n, None, n, "the first config's", a.dtype, tuple(loose(a, ()))) for n, a in typed.items()
        ]
        return WithFirstConfig(bench, folder, tuple(checks))

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns the remark "unverified", with the first array that differs."""
        with self.bench.turn:
            answer = self.bench.worker.call(difference_of, job, self.folder, self.checks, deadline_s=deadline_s)
        if answer is None:
            return UNVERIFIED
        check, difference = answer
        return f"{UNVERIFIED}: {check.name} differs from {check.of} in {difference.n_bad} of {difference.n_total}"


@dataclass(frozen=True)
class WithAnswers:
    """Launches each config with other contents of outputs, and compares outputs that a reference cannot check."""

    bench: Bench
    folder: Path
    checks: tuple[ContentCheck, ...]
    digest: str  # digest of the answers and the checks

    @staticmethod
    def of(answers: Mapping[str, Answer], probed: ProbeResult, bench: Bench) -> "WithAnswers | None":
        """Returns the judge; None if the definition's reference can check everything.

        An output that the kernel adds to is compared with the result of the config that gave the right answers, from
        the same other contents. An element that this config does not write may hold its answer instead: with other
        blocks the grid reaches further into a padded array. Structures and bfloat16 are compared with their answers,
        number by number.
        """
        arrays: dict[str, np.ndarray] = {}
        checks = []
        for i, other in enumerate(probed.others):
            begin = f"before{i}"
            arrays[begin] = other.before
            for name, result in other.after.items():
                memory, answer = answers[name].argument.memory, answers[name]
                after, left = f"{name}.after{i}", f"{name}.left{i}"
                arrays[after] = result
                own = tuple(answer.tolerance_of(leaf.dtype) for _, leaf in leaves(memory.typed))
                is_own = name == other.argument.name and memory.is_plain
                if is_own:
                    arrays[left] = np.where(other.before == result, answer.typed, result)
                checks.append(
                    ContentCheck(
                        name=name,
                        changed=other.argument.name,
                        before=begin,
                        after=after,
                        of="the result of a correct config",
                        dtype=memory.typed.dtype,
                        tolerances=tuple(loose(memory.typed, own)),
                        or_after=left if is_own else None,
                    )
                )
        for name, answer in answers.items():
            memory = answer.argument.memory
            if memory.is_plain:
                continue
            arrays[name] = stored_answer(answer)
            own = tuple(answer.tolerance_of(leaf.dtype) for _, leaf in leaves(memory.typed))
            checks.append(ContentCheck(name, name, None, name, "its answer", memory.typed.dtype, own))
            if name in probed.overwritten:
                for i, content in enumerate(beyond(answer.typed)):
                    before = f"{name}.before{i}"
                    arrays[before] = stored(content)
                    checks.append(ContentCheck(name, name, before, name, "its answer", memory.typed.dtype, own))
        if not checks:
            return None
        folder = bench.folder(bench.join())
        save_arrays(folder, "check", arrays)
        # Results of atomics vary in their last bits, so only the caller's answers may name a record.
        digests = [(name, digest_of(stored_answer(answer))) for name, answer in answers.items()]
        tolerances = [(check.name, check.of, check.tolerances) for check in checks]
        return WithAnswers(bench, folder, tuple(checks), sha256(f"{digests} {tolerances}".encode()).hexdigest()[:12])

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns an empty remark.

        Raises:
            TrialFailure: wrong; the message names the first element that differs.
        """
        with self.bench.turn:
            answer = self.bench.worker.call(difference_of, job, self.folder, self.checks, deadline_s=deadline_s)
        if answer is None:
            return ""
        check, difference = answer
        where = "" if check.before is None else f", after a launch with other contents of {check.changed}"
        raise TrialFailure(Status.WRONG, f"{check.name}{difference}; compared with {check.of}{where}")


def difference_of(
    session: Session, job: Job, folder: Path, checks: Sequence[ContentCheck]
) -> tuple[ContentCheck, Difference] | None:
    """Launches a config for each check; returns the first that fails, or None. Runs in the device's process."""
    kernel = load_kernel(job.kernel)
    problem, arrays = kernel.problem(job.problem), arrays_of(folder, "check")
    assert job.case is not None
    placed = timed_arguments(session, kernel, read_case(kernel, problem, job.case))
    function, geometry = session.load(job.binary, session.timed_build), kernel.launch(problem, job.config)
    launched: str | None = ""  # the file with the contents of the last launch
    for check in checks:
        if check.before != launched:
            placed.poison(POISONS[0])
            if check.before is not None:
                placed.buffers[check.changed].write(np.ascontiguousarray(arrays[check.before]))
            placed.launch(function, geometry)
            launched = check.before
        buffer, want = placed.buffers[check.name], arrays[check.after]
        if want.dtype == check.dtype and not buffer.compare(want, check.tolerances[0], f"{folder} {check.after}").n_bad:
            continue  # the device compared them in place
        got = buffer.read()
        if check.or_after is not None:
            got = np.where(_near(got, arrays[check.or_after], check.tolerances[0]), want, got)
        difference = unlike(as_typed(got, check.dtype), as_typed(want, check.dtype), check.tolerances)
        if difference is not None:
            return check, difference
    return None


def _near(got: np.ndarray, other: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    """Returns which elements of ``got`` are within the tolerance of those of ``other``, bool."""
    if tolerance == Tolerance():
        return np.asarray(got == other)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), other.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.abs(a - b) <= tolerance.atol + tolerance.rtol * np.abs(b))
