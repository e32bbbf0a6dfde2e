"""The calls of one kernel: their sizes, arrays and checks, in ``calls.json`` beside the definition that they share.

A kernel is its function, its source with macros, and the types of its arguments. Each size is a problem of it. Its
space has the values of all calls; a call that lacks a parameter of the others has a definition of its own.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..core.config import Value
from ..core.errors import UsageError
from ..core.expressions import checked_expression, value_of
from ..core.kept import is_own
from .answers import Outputs, stored_answer
from .argument_texts import number_in
from .array_memory import digest_of
from .call import DEFAULT_BLOCK, Call
from .sizes import CallSizes

CALLS = "calls.json"
MOST_OF_NAME = 24  # characters of a file's name
KINDS = ("in", "scratch", "out", "inout")  # a later one holds for all calls
N_DIGITS = 12  # digits of a digest in a file's name
DIGEST = re.compile("[0-9a-f]{64}")
ValuesOf = dict[str, tuple[Value, ...]]


@dataclass(frozen=True)
class KnownCall:
    """A call, as the definition states it.

    ``files``: array -> digest of its content; those of answers are called ``answer.NAME``. ``kinds``: roles of arrays,
    ``is_sure``: a config was seen to give the answers. ``tolerances``: those of the compared outputs, rtol, atol and
    of_rms. ``numbers``: the bytes, in hexadecimal, of arguments that are not integers. ``judged``: digest of the judge.
    """

    sizes: CallSizes
    files: Mapping[str, str]
    kinds: Mapping[str, str]
    is_sure: bool
    tolerances: Mapping[str, tuple[float, float, float]]
    numbers: Mapping[str, str]
    judged: str = ""

    @staticmethod
    def of(call: Call, sizes: CallSizes, outputs: Outputs) -> "KnownCall":
        files = {each.name: each.memory.digest for each in call.arrays}
        files |= {f"answer.{name}": digest_of(stored_answer(answer)) for name, answer in outputs.compared.items()}
        stated = {name: answer.tolerance for name, answer in outputs.compared.items()}
        tolerances = {name: (each.rtol, each.atol, each.of_rms) for name, each in stated.items()}
        numbers = {each.name: each.number.tobytes().hex() for each in call.other_numbers}
        return KnownCall(sizes, files, outputs.kinds, outputs.is_sure, tolerances, numbers, outputs.judged)

    @staticmethod
    def read(given: Any) -> "KnownCall":
        """Returns the call in a record; raises ValueError, TypeError, KeyError or AttributeError if it is not one."""
        sizes = given["sizes"]
        shapes = {str(name): tuple(map(int, shape)) for name, shape in sizes["shapes"].items()}
        whole = {str(name): int(n) for name, n in sizes["whole"].items()}
        spans = tuple(None if n is None else int(n) for n in sizes["spans"])
        own = CallSizes(whole, spans, shapes, re.sub(r"[^\w.+]", "", str(sizes["label"])))
        files = {str(name): str(digest) for name, digest in given["files"].items()}
        kinds = {str(name): KINDS[KINDS.index(kind)] for name, kind in given["kinds"].items()}
        tolerances = {str(n): (float(r), float(a), float(rms)) for n, (r, a, rms) in given["tolerances"].items()}
        numbers = {str(name): bytes.fromhex(number).hex() for name, number in given["numbers"].items()}
        if not all(map(DIGEST.fullmatch, files.values())) or kinds.keys() - files.keys():
            raise ValueError
        judged = re.sub(r"\W", "", str(given["judged"]))
        return KnownCall(own, files, kinds, bool(given["is_sure"]), tolerances, numbers, judged)


@dataclass(frozen=True)
class KnownCalls:
    """The calls of a kernel before the present one, oldest first, and the space that they share.

    ``since``: by parameter that later calls brought, its value in older configs. ``data`` names the kernel for people
    and in records, ``folder`` the one of its definition.
    """

    folder: Path
    data: str
    space: ValuesOf = field(default_factory=dict)
    since: Mapping[str, Value] = field(default_factory=dict)
    calls: tuple[KnownCall, ...] = ()

    @staticmethod
    def of(call: Call, results: Path, alone: object = None) -> "KnownCalls":
        """Returns what is known of the call's kernel; ``alone``: what else identifies it, if calls share nothing."""
        for own in (alone, (alone, sorted(call.space))):
            digest = sha256(str((_identity(call), own)).encode()).hexdigest()[:12]
            folder = results / "definitions" / f"{call.name}-{digest}"
            found = _read(folder / CALLS)
            if not found.space.keys() - call.space.keys() - found.since.keys():
                break
        stem = re.sub(r"\W+", "_", Path(call.source.file).stem, flags=re.ASCII)[:MOST_OF_NAME].strip("_") or "source"
        return replace(found, folder=folder, data=f"{stem}-{digest}")  # the stem tells people the sources apart

    @property
    def is_sure(self) -> bool:
        """Returns whether a config of any call was seen to give the answers."""
        return any(each.is_sure for each in self.calls)

    @property
    def kinds(self) -> dict[str, str]:
        """Returns the roles that arrays have in all calls; one without a right config counts only if all are so."""
        sure = [each for each in self.calls if each.is_sure] or self.calls
        return {name: max((each.kinds[name] for each in sure), key=KINDS.index) for name in self.calls[-1].kinds}

    def widened(self, call: Call) -> Call:
        """Returns the call with the parameters and values of all calls; ``since`` has those that it lacks."""
        lacking = {name: values for name, values in self.space.items() if name not in call.space}
        return replace(call, space={name: self._values(name, of) for name, of in {**call.space, **lacking}.items()})

    def _values(self, name: str, given: tuple[Value, ...]) -> tuple[Value, ...]:
        known = self.space.get(name, ())
        both = (*known, *(value for value in given if not any(_is_same(value, own) for own in known)))
        numbers = all(type(value) in (int, float) for value in both)
        return tuple(sorted(both)) if numbers and known and len(both) > len(known) else both or given

    def with_call(self, call: Call, known: KnownCall) -> "KnownCalls":
        """Returns the calls with a new one last, which replaces one of the same sizes."""
        newer = [name for name in call.space if name not in self.space and self.calls]
        since = {name: value for name in newer if (value := _by_source(call, name)) is not None}
        others = tuple(each for each in self.calls if each.sizes.key != known.sizes.key)
        return replace(self, space=dict(call.space), since={**self.since, **since}, calls=(*others, known))

    def written(self) -> bytes:
        """Returns the content of ``calls.json``."""
        content = {"space": self.space, "since": self.since, "calls": [asdict(each) for each in self.calls]}
        return json.dumps(content, indent=1).encode()


def _identity(call: Call) -> tuple[object, ...]:
    types = [(e.name, str(e.memory.stored.dtype), e.memory.stored.ndim) for e in call.arrays]
    types += [(each.name, str(each.number.dtype), 0) for each in call.arguments if not each.is_array]
    macros = {name: None if name in call.whole_macros else value for name, value in call.macros.items()}
    sizes = call.problem_size if isinstance(call.problem_size, tuple | list) else [call.problem_size]
    texts = [str(each) for each in sizes if isinstance(each, str)]
    defines = {name: "" if callable(value) else str(value) for name, value in (call.defines or {}).items()}
    return call.given_name, call.source.digest, types, sorted(macros.items()), texts, defines


def _is_same(a: Value, b: Value) -> bool:
    return a == b and type(a) is type(b)


def _by_source(call: Call, name: str) -> Value | None:
    """Returns the value of a parameter where a call did not name it: the block's default, the source's macro, or the
    first one of a name that the source does not have.
    """
    is_named = name in call.source.defined or re.search(rf"\b{re.escape(name)}\b", call.source.text)
    if not is_named and name not in call.block_names:
        first: Value = call.space[name][0]
        return first
    text = call.source.defined.get(name, "")
    if call.defines is None and name in call.block_names:
        text = str(DEFAULT_BLOCK[call.block_names.index(name)])
    said = number_in(text)
    if said is None:
        with suppress(UsageError, ArithmeticError, TypeError, ValueError):
            said = value_of(checked_expression(text, (), name), {})
    return next((value for value in call.space[name] if str(value) == text or value == said), None)


def _read(path: Path) -> KnownCalls:
    """Returns the calls in a file; none if it is missing, damaged, or may be another user's."""
    none = KnownCalls(path.parent, "")
    if not path.exists() or not is_own(path):
        return none
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, IndexError):
        given = json.loads(path.read_bytes())
        space = {str(name): tuple(values) for name, values in given["space"].items()}
        since = {str(name): value for name, value in given["since"].items()}
        plain = all(isinstance(v, bool | int | float | str) for v in (*sum(space.values(), ()), *since.values()))
        if plain:
            return replace(none, space=space, since=since, calls=tuple(map(KnownCall.read, given["calls"])))
    return none
