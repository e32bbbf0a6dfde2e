"""Reads answers: the expected contents of arguments after a launch, in a type that holds them exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import UsageError
from ..runtime.comparison import compare_arrays, fits
from .array_memory import BFLOAT16, leaves, stored
from .call import Call, CallArgument

RTOL = 1e-5  # the default of numpy.allclose
EXACT = Tolerance()
ROUNDINGS = 2  # units in the last place of float16 and bfloat16 that an output may be off by
LARGEST = 1e150  # magnitude whose square is a float64
WHOLE = "biu"
SMALLEST_STEP = {"float16": 2.0**-10, BFLOAT16: 2.0**-7}  # relative; types whose rounding is coarser than RTOL


@dataclass(frozen=True)
class Difference:
    """The first wrong number of an array, and how many numbers are wrong."""

    place: str
    got: complex | float | int | None
    want: complex | float | int | None
    n_bad: int
    n_total: int

    def __str__(self) -> str:
        return f"{self.place} is {self.got}, not {self.want}; {self.n_bad} of {self.n_total} differ"


@dataclass(frozen=True)
class Answer:
    """The expected content of an argument. ``typed``: axes in the order of memory, in its type or a wider one."""

    argument: CallArgument
    typed: np.ndarray
    atol: float

    @property
    def tolerance(self) -> Tolerance:
        """Returns the tolerance of an output whose elements are numbers."""
        return self.tolerance_of(self.argument.memory.given.dtype)

    def tolerance_of(self, dtype: np.dtype[np.generic]) -> Tolerance:
        """Returns the tolerance of a type: exact for integers, and not below the type's rounding for floats."""
        if dtype.kind in WHOLE and self.atol < 1:
            return EXACT
        return Tolerance(rtol=max(RTOL, ROUNDINGS * SMALLEST_STEP.get(dtype.name, 0.0)), atol=self.atol)

    def differs(self, stored_result: np.ndarray) -> Difference | None:
        """Returns the first difference between the answer and a result that is stored like the argument, or None."""
        own = self.argument.memory.as_typed(stored_result)
        return unlike(own, self.typed, [self.tolerance_of(leaf.dtype) for _, leaf in leaves(own)])


def answers_of(call: Call, values: Sequence[object] | None, atol: float) -> dict[str, Answer]:
    """Returns the checked answers by argument name; {} if no expected output is known.

    Raises:
        UsageError: for an answer that its argument cannot hold; the message names it.
    """
    if not 0 <= atol < inf:
        raise UsageError(f"atol={atol}: it must be a finite number, 0 or more")
    if values is None:
        return {}
    if len(values) != len(call.arguments):
        n = len(call.arguments)
        raise UsageError(f"answer has {len(values)} entries, and {call.name} {n} arguments: give None for the others")
    pairs = zip(call.arguments, values, strict=True)
    by_name = {each.name: _answer(call, each, value, atol) for each, value in pairs if value is not None}
    if not by_name:
        raise UsageError("answer has None only: leave it out, or give what an output must hold")
    return by_name


def unlike(got: np.ndarray, want: np.ndarray, tolerances: Sequence[Tolerance]) -> Difference | None:
    """Returns the first difference between two arrays of one shape, number by number, or None."""
    for (field_name, a), (_, b), tolerance in zip(leaves(got), leaves(want), tolerances, strict=True):
        comparison = compare_arrays(_comparable(a), _comparable(b), tolerance)
        if comparison.n_bad:
            index = ", ".join(map(str, comparison.first_bad or ()))
            return Difference(
                f"[{index}]{field_name}", comparison.got, comparison.want, comparison.n_bad, comparison.n_total
            )
    return None


def _comparable(leaf: np.ndarray) -> np.ndarray:
    return leaf.astype(np.float32) if leaf.dtype.name == BFLOAT16 else np.ascontiguousarray(leaf)


def _answer(call: Call, argument: CallArgument, value: Any, atol: float) -> Answer:
    where = f"the answer of {argument.name}"
    try:
        is_on_gpu = hasattr(value, "get") and hasattr(value, "shape")
        array = np.asarray(value.get() if is_on_gpu else value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where} is not an array: {error}") from error
    if not argument.is_array:
        raise UsageError(f"{where} has the shape {list(array.shape)}, and {argument.name} is not an array: give None")
    if not argument.may_be_written:
        raise UsageError(f"{where}: {call.name} takes it as const, and cannot write it: give None")
    memory = argument.memory
    if array.size != memory.given.size:
        raise UsageError(f"{where} has the shape {list(array.shape)}, must be that of {argument.name}")
    dtype = memory.given.dtype
    if (why := _why_no_answer(array, dtype)) is not None:
        raise UsageError(f"{where} {why}")
    if not (np.can_cast(dtype, array.dtype, "safe") and array.dtype.kind == dtype.kind and dtype.names is None):
        array = array.astype(dtype)
    as_given = array.shape == memory.given.shape
    typed = array.transpose(memory.order) if as_given else array
    return Answer(argument, np.ascontiguousarray(typed).reshape(memory.typed.shape), atol)


def _why_no_answer(array: np.ndarray, dtype: np.dtype[Any]) -> str | None:
    """Returns why an output of ``dtype`` cannot hold the answer, and a remedy; None if it can."""
    if dtype.names is not None or array.dtype.names is not None:
        if array.dtype.names != dtype.names:
            return f"has elements of {array.dtype}, and the output of {dtype}: give a structure of the same fields"
        parts = zip(leaves(array.reshape(-1)), leaves(np.empty(0, dtype)), strict=True)
        whys = (why and f"{name} {why}" for (name, a), (_, b) in parts if (why := _why_no_answer(a, b.dtype)))
        return next(whys, None)
    if array.dtype.name == BFLOAT16:
        array = array.astype(np.float32)
    is_whole, is_complex = dtype.kind in WHOLE and dtype.name != BFLOAT16, dtype.kind == "c"
    if array.dtype.kind not in WHOLE + "fc":
        return f"is an array of {array.dtype}: give numbers"
    if is_whole and array.dtype.kind not in WHOLE:
        return f"is {array.dtype}, and the output is {dtype}: give whole numbers, as .astype({dtype}) makes them"
    if array.dtype.kind == "c" and not is_complex:
        return f"is complex, and the output is {dtype}: give its real part, if you mean that"
    if is_whole:
        return None if fits(array, dtype) else f"has values from {array.min()} to {array.max()}, beyond {dtype}"
    magnitude = np.abs(array) if array.size else np.zeros(1)
    if not np.isfinite(magnitude).all():
        n = int(np.count_nonzero(~np.isfinite(magnitude)))
        return f"has {n} of {array.size} values that are not finite, so it cannot be compared: leave it out"
    largest = min(LARGEST, float(np.finfo(np.float32 if dtype.name == BFLOAT16 else dtype).max))
    return None if float(magnitude.max()) <= largest else f"has values up to {magnitude.max():.3g}, beyond {dtype}"


def stored_answer(answer: Answer) -> np.ndarray:
    """Returns an answer in the form in which a definition stores it."""
    return answer.typed if answer.argument.memory.is_plain else stored(answer.typed)


@dataclass(frozen=True)
class Outputs:
    """The roles of arrays in a definition. ``kinds``: in, out, inout or scratch, by array.

    ``compared``: answers that the definition's reference returns. ``judged``: digest of the judge, if there is one;
    another judge makes another record.
    """

    kinds: Mapping[str, str]
    compared: Mapping[str, Answer] = field(default_factory=dict)
    note: str = ""  # names the missing checks
    judged: str = ""
    is_sure: bool = True  # a config ran, and gave the answers
