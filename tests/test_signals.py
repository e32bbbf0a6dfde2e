"""A sample of `python -m tests.signals`, and faults that it must find."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.engines.service.run_service import ServiceState, quiet_where_lost

from .signals import engines, processes
from .signals.fed import Fed
from .waiting import DEADLINE_S


@pytest.fixture(scope="module")
def fed() -> Iterator[Fed]:
    with Fed() as sender:
        yield sender


@pytest.mark.parametrize("seed", range(4))
def test_a_command_ends(seed: int, tmp_path: Path, fed: Fed) -> None:
    ended = processes.run(seed, tmp_path, fed)
    assert processes.is_before_us(ended) or processes.faults(ended, DEADLINE_S) == []


@pytest.mark.parametrize("seed", range(8))
def test_an_engine_ends_and_leaves_nothing_behind(seed: int, tmp_path: Path, fed: Fed) -> None:
    assert engines.tried(seed, tmp_path, fed, DEADLINE_S)[1] == []


GOOD = processes.Ended("xengine, SIGINT", True, 1.0, 0.5, 0, '{"engines": 1}', "")


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"took_s": 3.1}, "it has not ended within 3 s"),
        ({"status": None}, "it has not ended within 3 s"),
        ({"status": 130}, "its status is 130"),
        ({"status": 1, "has_begun": False}, "its status is none of "),
        ({"out": ""}, "it does not end with its counts"),
        ({"err": "Traceback (most recent call last):"}, "it prints a traceback"),
        ({"err": "Exception ignored in: x", "has_begun": False, "status": -2}, "it prints a traceback"),
    ],
)
def test_a_wrong_end_is_found(wrong: dict[str, Any], text: str) -> None:
    assert processes.faults(GOOD, 3.0) == []
    assert any(text in fault for fault in processes.faults(replace(GOOD, **wrong), 3.0))


def test_an_engine_that_ends_with_an_error_is_found(tmp_path: Path, fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: ServiceState) -> None:
        self.stop()
        raise RuntimeError("the handler fails")

    monkeypatch.setattr(ServiceState, "interrupt", interrupt)
    assert any(engines.tried(seed, tmp_path, fed, DEADLINE_S)[1] for seed in range(64)), "the first one, mostly"


def test_only_while_an_engine_is_made_a_signal_raises() -> None:
    """Elsewhere what it raises may be lost, as in what the collector of garbage calls."""
    state = ServiceState()
    state.interrupt()
    assert state.asked.is_set()
    state.is_making = True
    with pytest.raises(SystemExit):
        state.interrupt()


def test_what_a_signal_raises_where_it_is_lost_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    state, shown = ServiceState(is_making=True), list[object]()

    class Freed:
        def __del__(self) -> None:
            state.interrupt()

    class Faulty:
        def __del__(self) -> None:
            raise ValueError

    monkeypatch.setattr(sys, "unraisablehook", lambda lost: shown.append(lost.exc_type))
    with quiet_where_lost():
        Freed()
        Faulty()
    assert state.asked.is_set() and shown == [ValueError]
