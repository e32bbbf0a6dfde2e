"""``autotune -h`` is whole at 80 columns, in groups; values are in words; examples can be typed."""

import re
import shlex
from typing import Any

import pytest
import typer

from autotune.cli import app
from autotune.cli.help import EXAMPLES, GROUPS

from ..commands import autotune as typed
from ..test_docs import COMMANDS, wrong_command

pytestmark = pytest.mark.quick
NAMES = sorted(COMMANDS.commands)


def helped(name: str = "") -> str:
    command: Any = COMMANDS.commands[name] if name else typer.main.get_command(app)
    context = command.make_context("autotune", ["x"] * 9, resilient_parsing=True, terminal_width=80)
    return str(command.get_help(context))


def test_each_command_is_in_one_group_and_has_an_example() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == NAMES == sorted(EXAMPLES)


def test_all_commands_are_shown_whole_at_80_columns() -> None:
    lines = helped().splitlines()
    assert all(len(line) <= 80 and not line.endswith("...") for line in lines[1:])
    for group, commands in GROUPS.items():
        assert f"{group}:" in lines
        assert all(
            any(re.fullmatch(rf"  {name} +{re.escape(text)}", line) for line in lines)
            for name, text in commands.items()
        )


@pytest.mark.parametrize("name", NAMES)
def test_values_are_in_words_and_the_example_can_be_typed(name: str) -> None:
    text = helped(name)
    assert not re.search(r"<(list|str|path|int|float)[\[> ]", text)
    example = EXAMPLES[name]
    assert example in text
    words = example.replace("\\\n", " ").removeprefix("autotune ")
    assert wrong_command(words) is None
    command = COMMANDS.commands[name]
    command.make_context(name, shlex.split(words)[1:])  # raises for an option or a number that it does not take


def test_the_help_of_a_command_is_that_of_the_command_line() -> None:
    done = typed("show", "-h")
    assert done.returncode == 0 and "Example:\n  autotune show results/\n" in done.stdout
