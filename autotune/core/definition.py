"""The base class of definitions. A definition states an operation's problem, arrays, mathematics and tolerance.

It does not state how CUDA computes the operation. A definition is one subclass of ``Kernel``. It needs only NumPy and
this module, so the same file serves the tuner and the packages that ``autotune emit`` writes.
"""

import dataclasses
import functools
import importlib.util
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar, get_args

import numpy as np

from .array import BEYOND_BYTES as BEYOND_BYTES
from .array import BEYOND_CONSTANTS as BEYOND_CONSTANTS
from .array import BEYOND_PATTERN as BEYOND_PATTERN
from .array import CONSTANT_BYTES as CONSTANT_BYTES
from .array import Array as Array
from .array import TensorMap as TensorMap
from .array import array_constant as array_constant
from .array import array_in as array_in
from .array import array_inout as array_inout
from .array import array_out as array_out
from .array import array_scratch as array_scratch
from .array import array_workspace as array_workspace
from .config import Config
from .derived import Shapes, arguments_in, asked_sizes, drawn_sizes, edge_sizes, first_config, sizes_of
from .device import Device as Device
from .device import compute_capability
from .errors import DefinitionError, Status, TrialFailure, UsageError, error_text
from .launch import Launch as Launch
from .launch import with_positions
from .library import library_path
from .problem import Problem, added_fields, size_fields
from .problem import baked_fields as baked_fields
from .problem import baked_values as baked_values
from .problem import problem_name as problem_name
from .problem import runtime_fields as runtime_fields
from .space import Space
from .structures import wrong_scalars
from .unnamed import besides, completed_problem, computed
from .work import Work as Work

PART = re.compile(r"^[ \t]*from \.(\w+) import", re.MULTILINE)  # an import of another file of the same definition
P = TypeVar("P", bound=Problem)
Inputs = Mapping[str, Any]


def ceil_div(a: int, b: int) -> int:
    """Returns the smallest integer >= a / b, for b > 0."""
    return -(-a // b)


def baked(default: object, help: str = "", added: bool = False) -> Any:
    """Declares a problem field that becomes a constant of the source: another value is another binary.

    ``added``: the field is newer than some recorded sweeps. Then ``default`` describes what the kernel did before, and
    must never change: a problem with this value keeps its name, and its records, packages and sources stay valid.
    """
    return dataclasses.field(default=default, metadata={"help": help, "added": added})


def runtime(default: object, help: str = "") -> Any:
    """Declares a problem field that becomes an argument of the kernel: one binary serves every value."""
    return dataclasses.field(default=default, metadata={"help": help, "runtime": True})


@dataclass(frozen=True)
class Tolerance:
    """Requires |out - reference| <= atol + rtol |reference| + of_rms rms(reference); all zero means exact.

    ``nibbles``: each byte of the output holds two signed integers of 4 bits, and the tolerance is that of each.
    """

    rtol: float = 0.0
    atol: float = 0.0
    of_rms: float = 0.0
    nibbles: bool = False

    def times(self, factor: float) -> "Tolerance":
        """Returns this tolerance multiplied by ``factor``."""
        return Tolerance(factor * self.rtol, factor * self.atol, factor * self.of_rms, self.nibbles)


DRAWN_FLOPS = 1e9  # most work of a drawn size: NumPy does it in about a second


class Kernel(ABC, Generic[P]):
    """One operation. Subclass it as ``class Detect(Kernel[Problem])`` where ``Problem`` is a frozen dataclass.

    Class attributes:
        space: the tuning space.
        default: the configuration to start from, for any problem and device; the nearest allowed one is used. By
            default the first value of each parameter.
        arguments: names in the order of the ``__global__`` signature: arrays, scalars, or runtime fields. By default
            they are read from the template beside the definition.
        tuned: the problems that the kernel is meant for; the first is the default. By default the problem of the
            fields' defaults.
        extra_problems: problems with other baked fields, which ``autotune verify`` also checks.
        host_sizes: runtime fields of the checked problems on the slow device ``host``.
        scalar_defaults: default values of inputs that are numbers.
        unchecked: names of checks (docs/record.md) that say nothing here, and so do not count as made.
        least_arch: the oldest architecture for which the source compiles, such as ``sm_80``.
    """

    problem_type: type[P]
    space: Space
    default: Mapping[str, Any]
    arguments: tuple[str, ...]
    tuned: tuple[P, ...]
    extra_problems: tuple[P, ...] = ()
    host_sizes: Mapping[str, int] = {}
    scalar_defaults: Mapping[str, float] = {}
    unchecked: tuple[str, ...] = ()
    least_arch: str = ""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            if args := get_args(base):
                cls.problem_type = args[0]
        if not dataclasses.is_dataclass(getattr(cls, "problem_type", None)):
            raise TypeError(f"{cls.__name__} must name its problem: class {cls.__name__}(Kernel[Problem])")
        for name in CONTRACT.keys() & vars(cls).keys():
            setattr(cls, name, _held_to_contract(name, vars(cls)[name]))

    def __init__(self) -> None:
        """Checks the attributes of the class.

        Raises:
            DefinitionError: for a class attribute that is missing, of another type, or misspelt, and for a default that
                is not in the space.
        """
        self._complete()
        problems = f"a tuple of {self.problem_type.__name__}"
        for name, kind, what in (
            ("space", Space, "a Space"),
            ("default", Mapping, "a dict: parameter -> value"),
            ("arguments", tuple, "a tuple of names"),
            ("tuned", tuple, problems),
            ("extra_problems", tuple, problems),
            ("host_sizes", Mapping, "a dict: runtime field -> size"),
            ("scalar_defaults", Mapping, "a dict: input -> number"),
            ("least_arch", str, "a name such as sm_80"),
        ):
            value = getattr(self, name, None)
            if not isinstance(value, kind):
                raise fault(self, "", f"has {name} = {value!r}; it must be {what}")
        for name in ("tuned", "extra_problems"):
            if not all(isinstance(problem, self.problem_type) for problem in getattr(self, name)):
                raise fault(self, "", f"has {name} = {getattr(self, name)!r}; it must be {problems}")
        if not self.tuned:
            raise fault(self, "", "has no tuned problem; the first of them is the default")
        for given in vars(type(self)).keys() - vars(Kernel).keys() - set(OPTIONAL):
            if meant := get_close_matches(given, OPTIONAL, n=1, cutoff=0.9):
                why = f"defines {given}, which nothing reads; rename it to {meant[0]}, or to _{given} if it is your own"
                raise fault(self, "", why)
        self._check_in_space(self.default, "", "has a default")

    def _check_in_space(self, config: Mapping[str, Any], method: str, does: str) -> None:
        for parameter, value in config.items():
            try:
                self.space.check_values(parameter, (value,))
            except UsageError as error:
                raise fault(self, method, f"{does} that is not in its space: {error}") from error

    def _complete(self) -> None:
        """Derives missing class attributes; raises DefinitionError if the template or its signature cannot be read."""
        if not hasattr(self, "tuned"):
            with suppress(TypeError):  # a field without a default: ``tuned`` must state the problem
                self.tuned = (self.problem_type(),)
        if not hasattr(self, "default") and isinstance(getattr(self, "space", None), Space):
            self.default = first_config(self.space)
        if not hasattr(self, "arguments"):
            template = self.template
            if not template.is_file():
                why = f"has no template: there is no {template.name} beside it; write it there, or if it lies elsewhere"
                raise fault(self, "", f"{why} name the function's arguments = (names in its order)")
            found = arguments_in(template.read_text(), self.name)
            if found is None:
                why = (
                    f"has a template, {template.name}, in which no function {self.name}() (the class's name in lower "
                    "case) with a plain signature is found; rename one of them, or state kernel_name and"
                )
                raise fault(self, "", f"{why} arguments = (names in its order)")
            self.arguments = found

    @property
    def name(self) -> str:
        """Returns the class's name in lower case, which is also the ``__global__`` function and the template's stem."""
        return getattr(type(self), "kernel_name", type(self).__name__.lower())

    @property
    def source_path(self) -> Path:
        """Returns the file of the definition."""
        return Path(inspect.getfile(type(self)))

    @property
    def template_beside(self) -> Path:
        """Returns the path of the template beside the definition, whether or not it exists."""
        return self.source_path.with_name(f"{self.source_path.stem}.cu.j2")

    @property
    def template(self) -> Path:
        """Returns the path of the template: beside the definition, or else among the package's own."""
        beside = self.template_beside
        return beside if beside.is_file() else library_path() / beside.name

    @property
    def source_paths(self) -> tuple[Path, ...]:
        """Returns the file of the definition and the files beside it that it imports (``from .space import``)."""
        found, unread = [self.source_path], [self.source_path]
        while unread:
            for name in PART.findall(unread.pop().read_text()):
                path = self.source_path.with_name(f"{name}.py")
                if path not in found and path.is_file():
                    found.append(path)
                    unread.append(path)
        return tuple(found)

    # ------------------------------------------------------------------ required methods
    @abstractmethod
    def arrays(self, problem: P) -> dict[str, Array]:
        """Returns every array by name: the arguments, and the arrays in constant memory."""

    @abstractmethod
    def launch(self, problem: P, config: Config) -> Launch:
        """Returns the launch geometry of a configuration: the only launch, or the first of several."""

    @abstractmethod
    def inputs(self, problem: P, rng: np.random.Generator) -> dict[str, object]:
        """Returns random inputs by name (arrays as ``arrays`` specifies, and scalars); never zeros."""

    @abstractmethod
    def reference(self, problem: P, **inputs: object) -> dict[str, np.ndarray]:
        """Returns the outputs by name, in float64, complex128 or exact integers, in the plainest NumPy."""

    @abstractmethod
    def tolerance(self, problem: P) -> Tolerance | Mapping[str, Tolerance]:
        """Returns the tolerance, derived and below the smallest real bug: one for all outputs, or one per output."""

    # ------------------------------------------------------------------ optional methods
    def sizes(self, problem: P, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the runtime fields that the inputs' shapes imply; ``problem`` has the baked fields.

        By default these are the sizes that an axis determines: extent = a x size + b. ``problem_for`` reports others.
        """
        return sizes_of(self._read_shapes, problem, size_fields(problem), shapes)

    def work(self, problem: P) -> Work:
        """Returns the work that every variant must do; by default no operations, and the bytes of all arrays."""
        return Work(0.0, self._moved_bytes(problem))

    def edge_problems(self, problem: P, config: Config) -> tuple[P, ...]:
        """Returns the edge sizes at which every binary is checked: minimal, not a multiple of a block, one more.

        By default they are derived from the runtime fields and ``launch``.
        """
        n_threads = self.launch(problem, config).n_threads
        return edge_sizes(
            problem, size_fields(problem), lambda at: self.launch(at, config).grid, self._shapes, n_threads
        )

    def drawn_problems(self, problem: P, config: Config, seed: int) -> tuple[P, ...]:
        """Returns further edge sizes, with the remainders of ``seed``; () if ``edge_problems`` has no other size."""
        names = size_fields(problem)
        if not names or self.edge_problems(problem, config) == (problem,):
            return ()
        n_threads = self.launch(problem, config).n_threads
        found = drawn_sizes(problem, names, lambda at: self.launch(at, config).grid, self._shapes, n_threads, seed)
        return tuple(each for each in found if self.work(each).flops <= DRAWN_FLOPS)

    def scalars(self, problem: P, inputs: Inputs) -> dict[str, np.generic]:
        """Returns the arguments that are not arrays, in the signature's types.

        Runtime fields that are arguments, but are not returned here, are passed as int32. A structure that is passed by
        value is a ``numpy.void`` of a dtype with ``align=True``.
        """
        fields = runtime_fields(self.problem_type)
        return {name: as_int32(name, getattr(problem, name)) for name in self.arguments_for(problem) if name in fields}

    def constants(self, problem: P, config: Config) -> dict[str, object]:
        """Returns further values for the template, beside ``problem`` and ``config``."""
        return {}

    def arguments_for(self, problem: P) -> tuple[str, ...]:
        """Returns the ``arguments`` of this problem's ``__global__`` function; by default all of them."""
        return self.arguments

    def unsupported(self, config: Config, device: Device) -> str | None:
        """Returns why this device cannot run the config (an instruction that only a GPU has), or None."""
        return None

    def check_arch(self, device: Device) -> None:
        """Raises UsageError if the device is older than ``least_arch``."""
        if 0 < device.compute_capability < compute_capability(self.least_arch):
            why = f"needs a GPU of {self.least_arch} or later; {device.name} ({device.arch}) is older"
            raise UsageError(f"{self.name} {why}")

    def meaningless(self, problem: P) -> tuple[str, ...]:
        """Returns the kinds of values that inputs never have, such as ``negative``, or ``negative x`` of one input.

        The kinds are large, small, tied (halves of odd numbers), negative and zeros. No config is checked with these.
        """
        return ()

    def judged_by(self, problem: P) -> str:
        """Returns a digest of what else judges outputs of this problem; its trials hold as long as it stays."""
        return ""

    def default_for(self, problem: P, device: Device) -> Mapping[str, Any]:
        """Returns the config to start from for a problem on a device; by default ``default``."""
        return self.default

    # ------------------------------------------------------------------ derived from the above
    def problem(self, values: Mapping[str, object] | None = None, *, base: P | None = None) -> P:
        """Returns ``base`` with ``values`` replaced; without a base, what ``problem_with`` finds for ``values``.

        Raises:
            UsageError: for an unknown field, or a value that the problem refuses.
        """
        if base is None:
            return self.problem_with(values or {})
        self._check_names(values or {})
        try:
            return dataclasses.replace(base, **(values or {}))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self.name}: {error}") from error

    def problem_with(
        self,
        values: Mapping[str, object],
        *,
        base: P | None = None,
        usual: Mapping[str, object] | None = None,
        known: Sequence[P] | None = None,
        refused: Callable[[P], str | None] = lambda problem: None,
    ) -> P:
        """Returns the problem that a user means by the fields ``values``, which stay as they are.

        The other fields come from ``usual``, or else from ``base`` (default: the first tuned problem). If a size among
        ``values`` is not the usual one, sizes that the definition computes follow from it. Where the others
        contradict ``values``, or are ``refused``, ``unnamed.completed_problem`` finds others: first in the ``known``
        problems (default: the tuned ones), then as the definition computes them.

        Raises:
            UsageError: for an unknown field, or where no other fields fit; the message says which ones to name as well.
        """
        self._check_names(values)
        added = added_fields(self.problem_type)
        if added and {f.name for f in dataclasses.fields(self.problem_type)} - added.keys() <= values.keys():
            fitting = [at for at in self.tuned if all(getattr(at, name) == value for name, value in values.items())]
            if not fitting or any(all(getattr(at, name) == of for name, of in added.items()) for at in fitting):
                values = {**added, **values}  # the name of a problem, which leaves them out
        base, usual = self.tuned[0] if base is None else base, usual or {}
        sizes = size_fields(base)
        if any(values[name] != usual.get(name, getattr(base, name)) for name in sizes if name in values):
            usual = {**usual, **{name: of for name, of in computed(base, values).items() if name in sizes}}
        why = self._why_not(base, {**usual, **values})
        if why is None:
            first = self.problem({**usual, **values}, base=base)
            if (why := refused(first)) is None:
                return first

        def judge(problem: P) -> int | None:
            with suppress(UsageError):
                return None if refused(problem) is not None else self._all_bytes(problem)
            return None

        def answer(named: Mapping[str, object]) -> P | None:
            return completed_problem(base, named, usual, self.tuned if known is None else known, judge)

        if len(values) < len(dataclasses.fields(base)):
            if (found := answer(values)) is not None:
                return found
            why = self._why_not(base, {**usual, **computed(base, values), **values}) or why  # why ``values`` alone fail
            examples = (*self.tuned, *self.extra_problems)
            if more := besides(base, values, examples, lambda named: answer(named) is not None):
                why = f"{why}; give {more} besides"
        raise UsageError(why)

    def _why_not(self, base: P, values: Mapping[str, object]) -> str | None:
        """Returns why ``base`` with ``values`` is not a problem, or None."""
        try:
            self.problem(values, base=base)
        except UsageError as error:
            return str(error)
        return None

    def _check_names(self, values: Mapping[str, object]) -> None:
        names = [f.name for f in dataclasses.fields(self.problem_type)]
        for name in values:
            if name not in names:
                raise UsageError(f"{name!r} is not a field of {self.name}'s problem (has {', '.join(names)})")

    def default_config(self, problem: P, device: Device) -> Config:
        """Returns the configuration of ``default_for``, or the allowed one nearest to it.

        Raises:
            UsageError: when no configuration is allowed.
            DefinitionError: when ``default_for`` returns values outside the space.
        """
        wanted = self.default_for(problem, device)
        self._check_in_space(wanted, "default_for", "returns a config")
        with suppress(UsageError):  # a parameter is missing, or does not apply
            found = self.space.parse(wanted)
            if self.space.broken(problem, found, device) is None:
                return found
        return self.space.nearest(problem, device, wanted)

    def problem_for(self, values: Mapping[str, object], inputs: Inputs) -> P:
        """Returns the problem of these inputs: the baked fields from ``values``, the runtime fields from the shapes.

        Raises:
            UsageError: when neither ``values`` nor the shapes give a runtime field.
        """
        problem = self.problem(values)
        shapes = {name: tuple(a.shape) for name, a in inputs.items() if hasattr(a, "shape") and len(a.shape)}
        if type(self).sizes is Kernel.sizes:
            unknown = [name for name in size_fields(problem) if name not in values]
            found = asked_sizes(self.name, self._read_shapes, problem, unknown, shapes)
            return self.problem(found, base=problem)
        try:
            sizes = self.sizes(problem, shapes)
        except KeyError as error:
            raise UsageError(f"{self.name} needs the input {error.args[0]}, an array") from error
        found = {name: size for name, size in sizes.items() if name not in values}
        return self.problem(found, base=problem)

    def _shapes(self, problem: P) -> Shapes:
        return {name: array.shape for name, array in self.arrays(problem).items()}

    def _read_shapes(self, problem: P) -> Shapes:
        return {name: array.shape for name, array in self.arrays(problem).items() if array.read}

    def _all_bytes(self, problem: P) -> int | None:
        arrays = self.arrays(problem).values()
        return None if any(min(array.shape, default=1) < 1 for array in arrays) else sum(a.n_bytes for a in arrays)

    def _moved_bytes(self, problem: P) -> float:
        return float(sum(array.n_bytes * (array.read + array.written) for array in self.arrays(problem).values()))


AnyKernel = Kernel[Any]  # a kernel of any problem type


def kernel_classes(module: ModuleType) -> tuple[ModuleType, list[type[Kernel[Problem]]]]:
    """Returns the defining module of ``module``, and the kernels that it defines.

    This is the module itself; for a package ``ddc`` it is ``ddc.ddc``.
    """
    name = f"{module.__name__}.{module.__name__.rpartition('.')[2]}"
    if hasattr(module, "__path__") and importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
    classes = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Kernel)]
    return module, [found for found in classes if found.__module__ == module.__name__]


def fault(kernel: Kernel[P], method: str, why: str) -> DefinitionError:
    """Returns the error for a method of a definition that breaks its contract.

    ``why`` says what is wrong and what the method must do: ``returns no 'power'; it must return every output``. If
    ``method`` is empty, the class is at fault.
    """
    path, line = kernel.source_path, 1
    owner = inspect.unwrap(getattr(type(kernel), method)) if method else type(kernel)
    with suppress(OSError, TypeError):  # there is no source file, or the class was created at run time
        path, line = Path(inspect.getfile(owner)), inspect.getsourcelines(owner)[1]
    return DefinitionError(f"{path}:{line}: {kernel.name}{f'.{method}()' if method else ''} {why}")


# ---------------------------------------------------------------------- checks of what methods return
def _is_dict_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(isinstance(each, kind) for each in value.values())


def _is_tuple_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(isinstance(each, kind) for each in value)


def _is_work(value: object) -> bool:
    return isinstance(value, Work) and _is_finite(value.flops) and (value.bytes == -1 or _is_finite(value.bytes))


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float | np.integer | np.floating):
        return False
    with suppress(OverflowError):  # an integer larger than any float
        return 0 <= float(value) < np.inf  # nan is neither
    return False


def _is_tolerance(value: object) -> bool:
    return isinstance(value, Tolerance) or _is_dict_of(Tolerance)(value)


CONTRACT: dict[str, tuple[Callable[[Any], bool], str]] = {
    "arrays": (_is_dict_of(Array), "a dict: name -> Array"),
    "launch": (lambda value: isinstance(value, Launch), "a Launch"),
    "work": (_is_work, "a Work of finite numbers, 0 or more"),
    "inputs": (_is_dict_of(object), "a dict: name -> array or number"),
    "reference": (_is_dict_of(object), "a dict: name of each output -> array"),
    "tolerance": (_is_tolerance, "a Tolerance, or a dict: name of each output -> Tolerance"),
    "edge_problems": (_is_tuple_of(object), "a tuple of problems"),
    "scalars": (_is_dict_of(object), "a dict: name -> NumPy number"),
    "constants": (_is_dict_of(object), "a dict: name -> value"),
    "meaningless": (_is_tuple_of(str), "a tuple of kinds of values"),
    "arguments_for": (_is_tuple_of(str), "a tuple of names"),
    "unsupported": (lambda value: value is None or isinstance(value, str), "None, or the reason as a string"),
    "judged_by": (lambda value: isinstance(value, str), "a digest as a string"),
    "default_for": (_is_dict_of(object), "a dict: parameter -> value"),
}
OPTIONAL = (  # names that a definition may leave out, so that a misspelt one would go unnoticed
    *("extra_problems", "host_sizes", "scalar_defaults", "sizes", "edge_problems", "scalars", "constants"),
    *("arguments_for", "unsupported", "default_for", "work", "default", "arguments", "tuned", "judged_by"),
    *("meaningless", "unchecked", "least_arch"),
)
OF_ONE_CONFIG = ("launch", "edge_problems", "constants", "unsupported")


def _held_to_contract(name: str, method: Any) -> Any:
    """Wraps ``method`` of a definition so that its exceptions and wrong results name its file and line.

    An error for one configuration fails its trial; an error for a problem ends the request.
    """
    is_right, wanted = CONTRACT[name]

    @functools.wraps(method)
    def checked(self: Kernel[Problem], *arguments: Any, **more: Any) -> Any:
        try:
            answer = method(self, *arguments, **more)
        except (UsageError, TrialFailure, MemoryError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # sys.exit() in a definition is a mistake like any other
            hint = ", and not write its inputs, which others use, too" if "read-only" in str(error) else ""
            wrong = fault(self, name, f"raises {error_text(error)}; it must return {wanted}{hint}")
        else:
            if isinstance(answer, Work) and is_right(answer) and answer.bytes < 0:
                return dataclasses.replace(answer, bytes=self._moved_bytes(*arguments, **more))
            why = None if is_right(answer) else f"returns {_brief(answer)}; it must return {wanted}"
            if why is None and name == "scalars":
                why = wrong_scalars(answer)
            if why is None and name == "launch":
                why = _wrong_sizes(answer)
            if why is None and name == "launch":
                answer, why = with_positions(self.name, answer, self.arguments_for(*arguments[:1], **more))
            if why is None:
                return answer
            wrong = fault(self, name, why)
        if name in OF_ONE_CONFIG:
            raise TrialFailure(Status.DEFINITION_FAILED, str(wrong))
        raise wrong

    return checked


def _wrong_sizes(launch: Launch) -> str | None:
    """Returns why a number of a launch is wrong, or None."""
    for step in launch.steps:
        for what, sizes in (("grid", step.grid), ("block", step.block), ("shared_bytes", (step.shared_bytes,))):
            if not all(isinstance(size, int | np.integer) for size in sizes):
                told = _brief(sizes if what != "shared_bytes" else step.shared_bytes)
                return f"returns a Launch with {what} = {told}; it must be whole numbers: divide by ceil_div() or //"
    return None


def _brief(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 80 else f"{type(value).__name__} {text[:77]}..."


def as_int32(name: str, value: Any) -> np.int32:
    """Returns an argument of the kernel as int32. Raises UsageError if it does not fit."""
    if not -(2**31) <= value < 2**31:
        raise UsageError(f"{name}={value} does not fit the kernel's 32-bit argument")
    return np.int32(value)
