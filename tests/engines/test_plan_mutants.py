"""Faults that are planted in the plans are found by the tests of any cut."""

import importlib
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from types import ModuleType

import pytest

from autotune.engines.x import plan

from . import stand_ins, test_plans

N_TRIES = 10  # examples are drawn at random: a rare fault may need more of them

# What is wrong: the module, its text, the text that takes its place, and the tests that must find it.
HEAPS = {
    "coarse delays are rounded down": ("corrections.delays", "round(delay / quantum)", "int(delay // quantum)"),
    "times are floats": ("f.plan", "[self._next - each for", "[int(float(self._next)) - each for"),
    "a piece begins late": ("corrections.delays", "-(-(after - start) // step)", "-(-(after + step - start) // step)"),
    "the next piece is not seen": ("corrections.delays", "if after < LATEST else n", "if False else n"),
    "rates are too large": (
        "corrections.delays",
        "np.multiply(since, piece.rate",
        "np.multiply(since, 1.5 * piece.rate",
    ),
    "changes of the coarse delay do not cut": ("corrections.delays", "while coarse != last:", "while False:"),
    "the first coarse delay holds one spectrum too long": (
        "corrections.delays",
        "float(delay[spectrum]) / quantum",
        "float(delay[max(spectrum - 1, begin)]) / quantum",
    ),
    "flags of the head are forgotten": ("f.plan", "self._came[:, n_old:], rec", "self._came[:, n_old:] | True, rec"),
    "only one polarisation cuts": ("f.plan", "*(until for _, until in runs), ", "runs[0][1], "),
    "holes do not cut": ("f.plan", "(np.flatnonzero(np.diff(present, axis=0).any(axis=1)) + 1).tolist()", "()"),
    "the last packet does not count": ("f.plan", "sums[pol, last + 1]", "1 + sums[pol, last]"),
    "batches begin with the stream": (
        "f.plan",
        "self._next // self.shape.batch_samples * self.shape.b",
        "self._next or b",
    ),
    "a heap with a hole is sent": ("f.plan", "if shape.whole_heaps else by", "if False else by"),
    "a gap is closed": ("f.plan", "        yield from self._gap(time)\n", ""),
    "the last batch is lost": ("f.plan", "            yield self._closed(self._batch)\n\n", "            pass\n\n"),
}
BACK = {
    "what was kept by chance is asked for again": (
        "f.plan",
        "-((first + shape.head - self._newest) // shape.step)",
        "-((first - self._low) // shape.step)",
    )
}
APART = {"what was kept by chance is used": ("f.plan", "n if first < end - shape.head else ", "")}
HEADS = {
    "the head is too short": ("f.plan", "-(-(self.window + self.max_delay_diff)", "-(-(self.window // 2)"),
    "the first batch is dropped": (
        "f.plan",
        "= self.first_heap(time)",
        "= -(-time // shape.batch_samples) * shape.batch_samples",
    ),
    "the first heap is dropped": ("f.plan", "        return heap\n", "        return heap + length\n"),
}
EARLIER = {"delays do not move the first heap": ("f.plan", "-(-(time + coarse) // length)", "-(-time // length)")}
GAPS = {
    "a gap is left a batch too late": (
        "f.plan",
        "        self._next = to\n",
        "        self._next = to + shape.batch_samples\n",
    ),
    "spectra of a gap are not counted": ("f.plan", "self._n_skipped += ", "self._n_skipped = 0 * "),
    "a heap outside is missing": (
        "f.plan",
        "end=(self._next - batch.time) // self.shape.step",
        "end=len(batch.present)",
    ),
    "heaps before the first are missing": (
        "f.plan",
        "// shape.spectra_per_heap - self.begin // shape.spectra_per_heap",
        "// shape.spectra_per_heap",
    ),
    "a long gap is gone through": ("f.plan", "            yield from self._skip(time)\n", ""),
}
GAPS_OF_ALL = {
    "the first dump is not whole": ("x.plan", "-(-self._next // self.accumulate", "(self._next // self.accumulate"),
    "a dump is counted that came": ("x.plan", "if self._n_came and n:", "if False:"),
    "gaps are not counted": ("x.plan", "number - self._last_dump - 1", "0"),
    "an antenna's absence in a gap is forgotten": ("x.plan", "self._absent + n_gap, 0)", "self._absent, 0)"),
}
LOST = {
    "a polarisation that is lost takes the other one along": ("f.plan", "if shape.whole_heaps:\n", "if True:\n"),
    "a heap with a hole is lost": ("f.plan", "if shape.whole_heaps else by", "if True else by"),
    "the end of a heap is not waited for": ("f.plan", "is_inside & (", "("),
    "one polarisation's loss is ignored": (
        "f.plan",
        "sums[pol, last + 1] - sums[pol, oldest]",
        "sums[0, last + 1] - sums[0, oldest]",
    ),
    "one packet more is needed": ("f.plan", "from_low + shape.window - 1", "from_low + shape.window"),
    "the filter's beginning is forgotten": (
        "f.plan",
        "oldest, last = from_low //",
        "oldest, last = (from_low + shape.step) //",
    ),
}
DELAYS = {"the quantum is forgotten": ("corrections.delays", "quantum * round(delay / quantum)", "round(delay)")}
DUMPS = {
    "dumps begin with the stream": ("x.plan", "self._next % self.accumulate", "(self._next - 1) % self.accumulate"),
    "weights of the last range only": (
        "x.plan",
        "self._paired.add(some",
        "self._paired.clear() or self._paired.add(some",
    ),
    "weights of the dump before are kept": ("x.plan", "            self._paired.clear()\n", ""),
    "holes of another batch": ("x.plan", "(b - first, a): came", "(max(b - first - 1, 0), a): came"),
    "a dump that lacks some is complete": ("x.plan", "if self._complete:", "if False:"),
    "all dumps must be complete": ("x.plan", "if self._complete:", "if True:"),
    "a product that lacks some is left, of those of a baseline": (
        "x.plan",
        "weights != self._dump_spectra).any(axis=1)",
        "weights != self._dump_spectra)",
    ),
    "one dump more at the end": ("x.plan", "int(came[-1]) + 1  #", "len(present)  #"),
    "one dump more at the beginning": ("x.plan", "int(came[0]), int", "0, int"),
    "a range begins early": ("x.plan", "yield BatchRange(first, n)", "yield BatchRange(max(first - 1, 0), n)"),
}


WEIGHTS = {
    "one antenna's loss is ignored": ("x.weights", "for antenna in antennas:", "for antenna in antennas[1:]:"),
    "the other antenna's polarisation": ("x.weights", "q, p = divmod", "p, q = divmod"),
    "heaps that did not come count": (
        "x.weights",
        "np.repeat(present[batch], N_POLS)",
        "np.repeat(present[batch] | True, N_POLS)",
    ),
    "whole batches are forgotten": ("x.weights", "self._n_whole += ", "self._n_whole = "),
    "batches without holes count once": ("x.weights", "self._n_spectra * (came.T", "(came.T"),
    "batches with holes count as whole ones, too": (
        "x.weights",
        "np.delete(present, list(by_batch), axis=0)",
        "present",
    ),
    "the last batch that lacks heaps alone": ("x.weights", "both if self._by_heaps is None else", "both if True else"),
    "the last batch with holes alone": ("x.weights", "both if self._by_spectra is None else", "both if True else"),
}


def in_gaps() -> None:
    for n_gap, whole_heaps in product(test_plans.GAPS, (False, True)):
        test_plans.test_a_gap_of_any_length_is_counted_and_costs_the_same(n_gap, 90.25, whole_heaps)


def in_gaps_of_all() -> None:
    for n_gap in test_plans.GAPS:
        test_plans.test_dumps_of_a_gap_are_counted_and_cost_nothing(n_gap)


FOUND_BY: dict[Callable[[], object], dict[str, tuple[str, str, str]]] = {
    test_plans.test_heaps_do_not_depend_on_how_a_stream_is_cut: HEAPS,
    test_plans.test_a_spectrum_is_missing_where_its_polarisation_lost_a_packet_and_nowhere_else: LOST,
    test_plans.test_delays_are_exact: DELAYS,
    test_plans.test_a_delay_that_grows_asks_for_what_is_gone: BACK,
    test_plans.test_polarisations_that_are_too_far_apart_give_nothing: APART,
    partial(test_plans.test_no_heap_is_lost_without_a_cause, delay=0.0, packet=16): HEADS,
    partial(test_plans.test_no_heap_is_lost_without_a_cause, delay=-100.0, packet=16): EARLIER,
    in_gaps: GAPS,
    in_gaps_of_all: GAPS_OF_ALL,
    test_plans.test_dumps_do_not_depend_on_how_a_stream_is_cut: DUMPS | WEIGHTS,
}


def mutated(name: str, before: str, after: str) -> ModuleType:
    module = importlib.import_module(f"autotune.engines.{name}")
    assert module.__file__ is not None
    with open(module.__file__) as file:
        source = file.read()
    assert before in source, f"{module.__file__} has no {before!r} any more"
    wrong = ModuleType(f"{module.__package__}.mutated_{name}")
    wrong.__package__ = module.__package__
    sys.modules[wrong.__name__] = wrong
    exec(compile(source.replace(before, after), f"mutated {name}", "exec"), vars(wrong))
    return wrong


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in what takes longer: a plan that is wrong may never end."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again and again: hypothesis tries a failure once more
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("find", "fault"),
    [pytest.param(find, fault, id=fault) for find, faults in FOUND_BY.items() for fault in faults],
)
def test_planted_faults_are_found(find: Callable[[], object], fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mutated(*FOUND_BY[find][fault])
    for module in (stand_ins, test_plans, plan):
        for word, value in vars(wrong).items():
            if getattr(value, "__module__", None) == wrong.__name__ and hasattr(module, word):
                monkeypatch.setattr(module, word, value)
    with within(20), pytest.raises(Exception) as found:
        for _ in range(N_TRIES):
            find()
    assert not isinstance(found.value, TimeoutError), "nothing was found until time was up"
