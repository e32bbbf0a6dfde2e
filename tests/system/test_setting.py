"""A setting that is declared at its field is an option, a key of a file and a keyword at once, with its check."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from autotune import UsageError
from autotune.cli.commands.declared_options import given_of, with_settings
from autotune.system.limits import COUNT, DURATION
from autotune.system.setting import (
    CALLS,
    COMMANDS,
    FILES,
    Setting,
    check_settings,
    declared,
    settings_given,
    with_old_names,
)

pytestmark = pytest.mark.quick


@with_old_names
@dataclass(frozen=True)
class Oven:
    loaves: Annotated[int, Setting("How many loaves.", COUNT, was=("n_loaves",))] = 2
    bake: Annotated[float | None, Setting("Time in the oven.", DURATION, "until they are done")] = None
    kinds: Annotated[tuple[str, ...], Setting("A kind of bread.", option="--kind")] = ()
    door: Annotated[bool, Setting("Leave the door open.")] = False
    book: Annotated[Path | None, Setting("A file for notes.", where=COMMANDS)] = None
    humidity: Annotated[int, Setting("Steam.", COUNT, where=CALLS)] = 1
    own: int = 3  # it is no setting

    def __post_init__(self) -> None:
        check_settings(self)


def run(*words: str) -> tuple[Oven | None, str]:
    app, made = typer.Typer(rich_markup_mode=None), list[Oven]()

    @app.command()
    @with_settings(Oven)
    def bake(baker: str, name: str = "x", **options: Any) -> None:
        made.append(Oven(**settings_given(Oven, given_of(Oven, options), COMMANDS)))
        assert (baker, name) == ("ann", "x")

    done = CliRunner().invoke(app, ["ann", *words], env={"COLUMNS": "200"})
    return (made[0] if made else None), done.output


def test_what_is_given_at_the_command_line_arrives() -> None:
    assert run()[0] == Oven()
    words = "--loaves", "5", "--bake", "2m", "--kind", "rye", "--kind", "oat", "--door", "--book", "b.txt"
    assert run(*words)[0] == Oven(5, 120.0, ("rye", "oat"), True, Path("b.txt"))
    for option, value, says in (("--loaves", "0", "0 must be an integer"), ("--bake", "nan", "nan must be a finite")):
        made, text = run(option, value)
        assert made is None and says in text
    assert "No such option: --humidity" in run("--humidity", "3")[1]


def test_help_has_the_sentence_the_default_and_the_range() -> None:
    text = " ".join(run("--help")[1].split())
    for part in ("How many loaves. [default: 2; from 1]", "Time in the oven. [default: until they are done]"):
        assert part in text
    assert "SECONDS|5m|2h" in text and "--kind" in text and "humidity" not in text


def test_old_names_are_taken_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Oven(**settings_given(Oven, {"n_loaves": 4, "kinds": ["rye"]}, FILES)) == Oven(4, kinds=("rye",))
    assert [record.getMessage() for record in caplog.records] == [
        "n_loaves is called loaves now; the old name is taken until 0.4"
    ]
    with pytest.raises(UsageError, match="loaves is given twice"):
        Oven(n_loaves=4, loaves=4)  # type: ignore[call-arg]
    assert settings_given(Oven, {"book": "b.txt"}) == {"book": Path("b.txt")}


@pytest.mark.parametrize(("name", "where"), [("book", FILES), ("humidity", COMMANDS), ("own", CALLS), ("oven", CALLS)])
def test_a_name_that_does_not_belong_there_is_refused(name: str, where: int) -> None:
    with pytest.raises(UsageError, match=f"{name} is not a setting; settings are loaves, "):
        settings_given(Oven, {name: 1}, where)
    assert (name in declared(Oven)) == (where != CALLS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"loaves": True}, "loaves=True must be an integer from 1"),
        ({"loaves": None}, "loaves=None must be an integer"),
        ({"bake": -1.0}, "bake=-1.0 must be a finite number from 0 to 1e\\+06, or nothing"),
        ({"kinds": "rye"}, "kinds='rye' must be a tuple of texts"),
        ({"door": 1}, "door=1 must be true or false"),
        ({"book": "b.txt"}, "book='b.txt' must be a path, or None"),
    ],
)
def test_a_wrong_value_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Oven(**given)
    Oven(bake=None, book=None)
