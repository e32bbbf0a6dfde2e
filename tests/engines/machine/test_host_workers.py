"""Pieces of a step go to all usable cores, and come back in their order."""

import threading

import pytest

from autotune.engines.machine import host_workers
from autotune.engines.machine.host_workers import HostWorkers

pytestmark = pytest.mark.quick


def test_pieces_are_done_side_by_side_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_workers, "n_cpus", lambda: 3)
    together, workers = threading.Barrier(3, timeout=20), HostWorkers()

    def work(piece: int) -> tuple[int, str]:
        together.wait()
        return piece, threading.current_thread().name

    done = workers.each(work, list(range(6)))
    assert [piece for piece, _ in done] == list(range(6)) and len({name for _, name in done}) == 3
    assert workers.each(lambda piece: piece, []) == []


def test_an_error_of_a_piece_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_workers, "n_cpus", lambda: 2)
    workers = HostWorkers()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            workers.each(lambda piece: 1 // piece, [1, 0, 2])


def test_one_core_works_in_the_thread_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_workers, "n_cpus", lambda: 1)
    here = threading.current_thread().name
    assert HostWorkers().each(lambda piece: threading.current_thread().name, [0, 1]) == [here, here]
