"""The command lines of 0.2 work: each of its options is there, takes what it took, and has its default.

``options_of_0_2.json`` has them by command: "flag", "several" for one that may be repeated, or else the default.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ..commands import autotune as typed
from ..test_docs import COMMANDS

pytestmark = pytest.mark.quick
BEFORE = json.loads((Path(__file__).parent / "options_of_0_2.json").read_text())
GONE = {"replay": "It is a program of autotune's repository: python benchmarks/searches.py"}


def now(command: Any) -> dict[str, Any]:
    return {option: one for one in command.params for option in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("name", sorted(BEFORE.keys() - GONE.keys()))
def test_each_option_is_there_and_means_what_it_meant(name: str) -> None:
    options = now(COMMANDS.commands[name])
    assert not BEFORE[name].keys() - options.keys()
    for option, was in BEFORE[name].items():
        one = options[option]
        default = one.default() if callable(one.default) else one.default
        assert getattr(one, "is_flag", False) == (was == "flag"), option
        assert one.multiple == (was == "several"), option
        if was not in ("", "flag", "several"):
            told = rf"\[default: ([^\]]* )?{re.escape(was.removesuffix('.0'))}(\.0)?[\];]"
            assert str(default) == was or re.search(told, one.help), option


def test_what_is_gone_says_where_it_is() -> None:
    for name, where in GONE.items():
        assert name not in COMMANDS.commands and where in typed(name).stderr
