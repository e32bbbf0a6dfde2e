"""The language of signals, as ``tone(232.3e6, 0.2) + noise(0.05, seed=1)``: text is parsed, and never run.

    tone(frequency_hz, amplitude, phase=0)  amplitude cos(2 pi frequency_hz t + phase), phase in radians
    comb(frequency_hz, amplitude)           an impulse of one sample every 1 / frequency_hz s, at the nearest sample
    noise(rms, seed)                        white Gaussian noise; the same seed is the same noise everywhere
    constant(level)
    delay(signal, seconds)                  the signal later: by any time where it has tones and constants only, by
                                            whole samples where it has noise or combs
    a + b, a - b, a * b, a / 2, -a, (a)     of signals, and of numbers; a number times a signal is a signal
    sky                                     a signal or a number that the configuration gives a name

Amplitudes are parts of full scale: 1 is the largest sample value. Time is counted from the stream's zero on.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from keyword import iskeyword
from math import isfinite, pi
from typing import NoReturn

from ...core.errors import UsageError, clipped
from ...core.expressions import expression_text, parsed
from .counter_noise import MOST_SEED
from .waveforms import CombinedSignal, CombSignal, ConstantSignal, NoiseSignal, PartOfSample, Signal, ToneSignal

MOST_PARTS = 256  # tones, combs, noises and constants of one signal
MOST_VALUE = 1e9  # the largest signal or level, in units of full scale
MOST_HZ, MOST_DELAY_S, MOST_RADIANS = 1e13, 1e6, 1e6
MOST_LETTERS = 40
NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MOST_LETTERS - 1}}}")
OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
ARGUMENTS = {
    "tone": ("frequency_hz", "amplitude", "phase"),
    "comb": ("frequency_hz", "amplitude"),
    "noise": ("rms", "seed"),
    "constant": ("level",),
    "delay": ("signal", "seconds"),
}
OPTIONAL = ("phase",)
FORMS = {
    name: f"{name}({', '.join(f'{each}=0' if each in OPTIONAL else each for each in known)})"
    for name, known in ARGUMENTS.items()
}

Operand = float | Signal


def parsed_signal(text: str, sample_rate_hz: float, named: Mapping[str, Operand], what: str) -> Signal:
    """Returns the signal that a text describes.

    Args:
        named: the values of names, from ``named_values``.
        what: the place of the text, for errors.

    Raises:
        UsageError: in one line, for a text that is not of the language above, or describes what cannot be made.
    """
    value = _Reader(text, sample_rate_hz, named, what).value_of_text()
    if isinstance(value, float):
        raise UsageError(f"{what} {expression_text(text)} is the number {value:g}; for a signal write constant(level)")
    return value


def named_values(texts: Mapping[str, str], sample_rate_hz: float, what: str) -> dict[str, Operand]:
    """Returns the signals and numbers of names. A text may use the names that come before it.

    Raises:
        UsageError: as ``parsed_signal`` does, and for a name that cannot be one.
    """
    named: dict[str, Operand] = {}
    for name, text in texts.items():
        if name in ARGUMENTS or iskeyword(name) or not NAME.fullmatch(name):
            raise UsageError(
                f"{what}: {name[:MOST_LETTERS]!r} cannot be a name; take {MOST_LETTERS} letters, digits and _ at most, "
                f"a letter first, and none of {', '.join(ARGUMENTS)} and the words of Python"
            )
        named[name] = _Reader(text, sample_rate_hz, named, f"{what}.{name}").value_of_text()
    return named


@dataclass(frozen=True)
class _Reader:
    """Reads one text."""

    text: str
    sample_rate_hz: float
    named: Mapping[str, Operand]
    what: str

    def value_of_text(self) -> Operand:
        return self._value(parsed(self.text, self.what).body)

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(f"{self.what} {expression_text(self.text)}: {why}")

    def _value(self, node: ast.AST) -> Operand:
        number = node.value if isinstance(node, ast.Constant) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            return self._finite(node, lambda: float(number))
        if isinstance(node, ast.Name):
            if node.id not in self.named:
                names = clipped(", ".join((*ARGUMENTS, *self.named)), 200)
                self._refuse(f"there is no {_shown(node)}; there are {names}, and names that come before it")
            return self.named[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self._value(node.operand)
            return value if isinstance(node.op, ast.UAdd) else self._combined(node, ast.Mult, -1.0, value)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            return self._combined(node, type(node.op), self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS:
            return self._called(node, node.func.id)
        self._refuse(
            f"{_shown(node)} is not of the language; it has numbers, names, + - * /, {', '.join(FORMS.values())}"
        )

    def _finite(self, node: ast.AST, compute: Callable[[], float]) -> float:
        try:
            value = compute()
        except (OverflowError, ZeroDivisionError):
            value = float("nan")
        if not isfinite(value):
            self._refuse(f"{_shown(node)} is not a finite number")
        return value

    def _combined(self, node: ast.AST, kind: type[ast.operator], left: Operand, right: Operand) -> Operand:
        """Returns the sum, difference, product or quotient of two values."""
        if isinstance(left, float) and isinstance(right, float):
            operands = left, right
            return self._finite(node, lambda: OPERATIONS[kind](*operands))
        if kind is ast.Div:
            if not isinstance(right, float):
                self._refuse(f"{_shown(node)} divides by a signal; only numbers can divide")
            divisor = right
            kind, right = ast.Mult, self._finite(node, lambda: 1 / divisor)
        if kind is not ast.Mult and (isinstance(left, float) or isinstance(right, float)):
            self._refuse(f"{_shown(node)} adds a number to a signal; write constant(level) for the number")
        if kind is ast.Sub:
            kind, right = ast.Add, self._combined(node, ast.Mult, -1.0, right)
        sides = [ConstantSignal(side) if isinstance(side, float) else side for side in (left, right)]
        signal = CombinedSignal(OPERATIONS[kind], *sides)
        if signal.n_parts > MOST_PARTS:
            self._refuse(
                f"it has {signal.n_parts} tones, combs, noises, constants and factors; {MOST_PARTS} are allowed"
            )
        return self._bounded(node, signal)

    def _bounded(self, node: ast.AST, signal: Signal) -> Signal:
        if not signal.most <= MOST_VALUE:
            self._refuse(f"{_shown(node)} may reach {signal.most:.3g} times full scale; {MOST_VALUE:g} are allowed")
        return signal

    def _called(self, node: ast.Call, name: str) -> Signal:
        arguments = self._arguments(node, name)
        if name == "delay":
            return self._delayed(arguments)
        if name == "noise":
            return self._bounded(
                node, NoiseSignal(self._number(arguments, "rms", 0, MOST_VALUE), self._seed(arguments["seed"]))
            )
        if name == "constant":
            return ConstantSignal(self._number(arguments, "level", -MOST_VALUE, MOST_VALUE))
        frequency = Fraction(self._number(arguments, "frequency_hz", 0, MOST_HZ)) / Fraction(self.sample_rate_hz)
        amplitude = self._number(arguments, "amplitude", -MOST_VALUE, MOST_VALUE)
        if name == "tone":
            phase = self._number(arguments, "phase", -MOST_RADIANS, MOST_RADIANS) if "phase" in arguments else 0.0
            return ToneSignal(frequency, amplitude, Fraction(phase / (2 * pi)))
        if not 0 < frequency <= 1:
            rate = f"{self.sample_rate_hz:.12g}"
            self._refuse(f"the frequency_hz of {_shown(node)} must be more than 0, and at most sample_rate_hz={rate}")
        return CombSignal(frequency, amplitude)

    def _arguments(self, node: ast.Call, name: str) -> dict[str, ast.AST]:
        """Returns the arguments of a call by name."""
        parameters = ARGUMENTS[name]
        names = [*parameters[: len(node.args)], *(keyword.arg or "**" for keyword in node.keywords)]
        is_right = len(node.args) <= len(parameters) and len({*names}) == len(names) and {*names} <= {*parameters}
        if not is_right or not {*parameters} - {*OPTIONAL} <= {*names}:
            self._refuse(f"{_shown(node)} must be {FORMS[name]}")
        return dict(zip(names, (*node.args, *(keyword.value for keyword in node.keywords)), strict=True))

    def _number(self, arguments: Mapping[str, ast.AST], name: str, least: float, most: float) -> float:
        value = self._value(arguments[name])
        if not isinstance(value, float):
            self._refuse(f"{name} is {_shown(arguments[name])}, a signal; it must be a number")
        if not least <= value <= most:
            self._refuse(f"{name} is {value:g}, must be {least:g} to {most:g}")
        return value

    def _seed(self, node: ast.AST) -> int:
        value = node.value if isinstance(node, ast.Constant) else None
        if type(value) is not int or not 0 <= value <= MOST_SEED:
            self._refuse(f"seed is {_shown(node)}, must be an integer, 0 to {MOST_SEED}")
        return value

    def _delayed(self, arguments: Mapping[str, ast.AST]) -> Signal:
        signal = self._value(arguments["signal"])
        if isinstance(signal, float):
            self._refuse(f"{_shown(arguments['signal'])} is a number; delay(signal, seconds) delays signals")
        seconds = self._number(arguments, "seconds", -MOST_DELAY_S, MOST_DELAY_S)
        try:
            return signal.delayed(Fraction(seconds) * Fraction(self.sample_rate_hz))
        except PartOfSample as error:
            nearest = round(error.samples)
            self._refuse(
                f"{seconds:g} s are {float(error.samples):.6g} samples, and {error.name} can be delayed by whole "
                f"samples only: write {nearest}/{self.sample_rate_hz:.12g}, or delay a tone"
            )


def _shown(node: ast.AST) -> str:
    """Returns a part of a text for an error."""
    return expression_text(ast.unparse(node))
