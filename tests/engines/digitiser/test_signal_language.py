"""The language of signals takes what it says, and refuses all else in one line, at little cost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune import UsageError
from autotune.engines.digitiser.signal_language import MOST_PARTS, named_values, parsed_signal

pytestmark = pytest.mark.quick

RATE = 1e9


def refused(text: str, **names: str) -> str:
    with pytest.raises(UsageError) as caught:
        parsed_signal(text, RATE, named_values(names, RATE, "names"), "signals[0]")
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700, message
    return message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.5", "'0.5' is the number 0.5; for a signal write constant(level)"),
        ("tone(1e6, 1) + 1", "adds a number to a signal; write constant(level)"),
        ("2 - noise(1, seed=1)", "adds a number to a signal"),
        ("1 / tone(1e6, 1)", "divides by a signal; only numbers can divide"),
        ("tone(1e6, 1) / 0", "'tone(1000000.0, 1) / 0' is not a finite number"),
        ("tone(1e6, 1/0)", "'1 / 0' is not a finite number"),
        ("tone(1e6)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("tone(1e6, 1, 0, 0)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("tone(1e6, 1, amplitude=1)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("tone(1e6, 1, colour=1)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("tone(*x)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("tone(1e6, *x)", "'*x' is not of the language"),
        ("tone(1e6, **x)", "must be tone(frequency_hz, amplitude, phase=0)"),
        ("noise(0.1)", "must be noise(rms, seed)"),
        ("noise(0.1, seed=1.0)", "seed is '1.0', must be an integer, 0 to 9223372036854775807"),
        ("noise(0.1, seed=True)", "seed is 'True', must be an integer"),
        ("noise(0.1, seed=-1)", "seed is '-1', must be an integer"),
        ("noise(0.1, seed=2**9)", "seed is '2 ** 9', must be an integer"),
        (f"noise(0.1, seed={1 << 63})", "must be an integer, 0 to 9223372036854775807"),
        ("noise(-0.1, seed=1)", "rms is -0.1, must be 0 to 1e+09"),
        ("tone(-1, 1)", "frequency_hz is -1, must be 0 to 1e+13"),
        ("tone(1e14, 1)", "frequency_hz is 1e+14, must be 0 to 1e+13"),
        ("tone(1, 1, 1e7)", "phase is 1e+07, must be -1e+06 to 1e+06"),
        ("tone(noise(1, seed=1), 1)", "frequency_hz is 'noise(1, seed=1)', a signal; it must be a number"),
        ("comb(0, 1)", "must be more than 0, and at most sample_rate_hz=1000000000"),
        ("comb(1e9 + 1, 1)", "must be more than 0, and at most sample_rate_hz=1000000000"),
        ("constant(1e10)", "level is 1e+10, must be -1e+09 to 1e+09"),
        ("constant(1e9) * constant(1e9)", "may reach 1e+18 times full scale; 1e+09 are allowed"),
        ("constant(1e300 * 1e300)", "'1e+300 * 1e+300' is not a finite number"),
        ("noise(1e9, seed=1)", "may reach 6.4e+10 times full scale"),
        ("delay(1, 1)", "'1' is a number; delay(signal, seconds) delays signals"),
        ("delay(tone(1e6, 1), 1e7)", "seconds is 1e+07, must be -1e+06 to 1e+06"),
        (
            "delay(noise(1, seed=1), 1.6e-9)",
            "1.6 samples, and noise can be delayed by whole samples only: write 2/1000000",
        ),
        (
            "delay(tone(1, 1) + comb(1, 1), 5e-10)",
            "5e-10 s are 0.5 samples, and a comb can be delayed by whole samples",
        ),
        ("tone", "there is no 'tone'; there are tone, comb, noise, constant, delay"),
        ("sky", "there is no 'sky'"),
        ("nan", "there is no 'nan'"),
        ("constant(nan)", "there is no 'nan'"),
        ("constant(inf)", "there is no 'inf'"),
        ("constant(1e999)", "'1e309' is not a finite number"),
        ("constant(-1e999)", "'1e309' is not a finite number"),
        (f"constant({'9' * 400})", "is not a finite number"),
        ("constant(True)", "'True' is not of the language"),
        ("constant(1j)", "'1j' is not of the language"),
        ("constant('1')", "is not of the language"),
        ("constant(2 ** 3)", "'2 ** 3' is not of the language"),
        ("tone(1, 1) ** 2", "is not of the language; it has numbers, names, + - * /, tone("),
        ("9**9**9**9", "'9 ** 9 ** 9 ** 9' is not of the language"),
        ("1 << 99999999999", "is not of the language"),
        ("~tone(1, 1)", "is not of the language"),
        ("tone(1, 1) if 1 else tone(2, 1)", "is not of the language"),
        ("tone(1, 1).__class__", "'tone(1, 1).__class__' is not of the language"),
        ("().__class__.__bases__[0].__subclasses__()", "is not of the language"),
        ("__import__('os').system('true')", "is not of the language"),
        ("open('x')", "\"open('x')\" is not of the language"),
        ("(lambda: 1)()", "is not of the language"),
        ("[tone(1, 1) for x in y]", "is not of the language"),
        ("f'{x}'", "is not of the language"),
        ("(x := 1)", "is not of the language"),
        ("tone(1, 1); tone(1, 1)", "is not an expression"),
        ("x = 1", "is not an expression"),
        ("", "is not an expression"),
        ("tone(1,", "is not an expression"),
        ("tone(1, 1)\0", "is not an expression"),
        ("(" * 300 + "1" + ")" * 300, "too many nested parentheses"),
        ("-" * 500 + "tone(1, 1)", "is nested too deeply; 100 levels are allowed"),
        ("tone(1, 1)" + "+tone(1, 1)" * 110, "is nested too deeply; 100 levels are allowed"),
        ("tone(1, 1)" + " " * 3000, "has 3010 characters; 2000 are allowed"),
    ],
)
def test_what_is_not_of_the_language_is_told(text: str, why: str) -> None:
    message = refused(text)
    assert message.startswith("signals[0] ") and why in message, message


def test_names_stand_for_signals_and_numbers_before_them() -> None:
    named = named_values({"level": "1 / 4", "sky": "noise(level, seed=7)", "both": "sky + sky"}, RATE, "names")
    assert named["level"] == 0.25
    found = parsed_signal("both", RATE, named, "it")
    assert (found.block(5) == parsed_signal("2 * noise(0.25, seed=7)", RATE, {}, "it").block(5)).all()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"a": "a"}, "names.a 'a': there is no 'a'"),
        (
            {"a": "b", "b": "constant(1)"},
            "names.a 'b': there is no 'b'; there are tone, comb, noise, constant, delay, and",
        ),
        (
            {"tone": "constant(1)"},
            "names: 'tone' cannot be a name; take 40 letters, digits and _ at most, a letter first, and none of tone",
        ),
        (
            {"a b": "constant(1)"},
            "names: 'a b' cannot be a name; take 40 letters",
        ),
        ({"if": "constant(1)"}, "names: 'if' cannot be a name"),
        ({"ﬁ": "constant(1)"}, "names: 'ﬁ' cannot be a name"),
        ({"x" * 41: "constant(1)"}, "cannot be a name; take 40 letters"),
        ({f"{i:x>30}": "1" for i in range(99)} | {"y": "z"}, "more characters), and names that come before it"),
        ({"a": "exit()"}, "names.a 'exit()': 'exit()' is not of the language"),
    ],
)
def test_names_that_cannot_be_are_told(names: dict[str, str], why: str) -> None:
    assert why in refused("constant(1)", **names)


def test_names_cannot_make_a_signal_of_any_size() -> None:
    names = {"x0": "constant(1)"} | {f"x{i + 1}": f"x{i} + x{i}" for i in range(60)}
    assert f"it has {2 * MOST_PARTS} tones, combs" in refused("x60", **names)
    halves = {"x0": "tone(1, 0.5)"} | {f"x{i + 1}": f"x{i} * x{i}" for i in range(8)}
    assert parsed_signal("x8", RATE, named_values(halves, RATE, "names"), "it").n_parts == MOST_PARTS


def test_no_warning_of_python_is_shown(recwarn: pytest.WarningsRecorder) -> None:
    refused("1(tone)")
    assert not recwarn.list


TOKENS = st.sampled_from(
    [*"()+-*/,=.1x ", "1e300", "tone", "comb", "noise", "constant", "delay", "seed", "**", "if", "[", "'"]
)


@given(st.one_of(st.text(max_size=30), st.lists(TOKENS, max_size=20).map("".join)))
@settings(max_examples=300, deadline=None)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_any_text_is_a_signal_or_is_refused(text: str) -> None:
    try:
        signal = parsed_signal(text, RATE, {}, "it")
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert signal.most <= 1e9
