"""Gates: what begins in a span of time passes, whatever chunks it comes in."""

import numpy as np
import pytest

from autotune.engines.streams.gate import Gate, GatedVisibilities, GatedVoltages
from autotune.engines.streams.in_memory import KeptVisibilities, KeptVoltages

pytestmark = pytest.mark.quick
TIMES = np.arange(100, 200, 10)


@pytest.mark.parametrize("n_each", [1, 3, 10])
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(None, None, []), (0, None, TIMES), (125, None, TIMES[3:]), (130, 170, TIMES[3:7]), (0, 100, [])],
)
def test_heaps_and_dumps_of_the_span_pass(n_each: int, start: int | None, end: int | None, expected: list[int]) -> None:
    heaps, dumps = KeptVoltages(), KeptVisibilities()
    gates = GatedVoltages(heaps, start, end), GatedVisibilities(dumps, start, end)
    voltages = np.arange(10, dtype=np.int8).reshape(10, 1)
    for first in range(0, 10, n_each):
        some = slice(first, first + n_each)
        gates[0].write(TIMES[some], voltages[some], np.zeros((len(TIMES[some]), 2), np.uint32), voltages[some] % 2 == 0)
    for time in TIMES.tolist():
        gates[1].write(time, np.array([time]), np.ones((1, 4), np.uint32), 0)
    assert heaps.timestamps.tolist() == dumps.timestamps == list(expected)
    assert heaps.voltages.ravel().tolist() == [(t - 100) // 10 for t in expected]
    assert heaps.present.ravel().tolist() == [(t - 100) // 10 % 2 == 0 for t in expected]
    assert gates[0].n_stopped == gates[1].n_stopped == 10 - len(expected)


def test_a_gate_is_opened_and_shut_while_it_is_used() -> None:
    gate = Gate()
    assert not gate.passes(TIMES).any()
    gate.open(150)
    assert gate.passes(TIMES).tolist() == (TIMES >= 150).tolist()
    gate.shut(170)
    assert TIMES[gate.passes(TIMES)].tolist() == [150, 160]
    gate.open()
    assert gate.passes(TIMES).all() and gate.n_stopped == 10 + 5 + 8
