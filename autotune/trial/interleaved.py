"""Measures times that are compared with each other: interleaved, with buffers at several places in memory.

Interleaving spreads drifts of clock and temperature over all configs alike. The place of the buffers does not affect
them alike: on an H200 it shifts one config against another by about 1 %, until the buffers move. So close configs are
timed with the buffers at several places.
"""

import random
from contextlib import ExitStack

from ..core.config import Config
from ..core.definition import AnyKernel, Launch
from ..devices.base import Binary, Function, Session
from ..records.measurement import Measurement, Protocol
from .case import Case, CaseInMemory, bytes_of
from .measure import TimedSamples, check_after, timed_arguments

CLOSE = 0.01  # medians within 1 % of the fastest may change their order when the buffers move


def interleaved(
    session: Session,
    kernel: AnyKernel,
    case: Case,
    configs: list[tuple[Config, Binary]],
    protocol: Protocol,
    n_placements: int = 1,
) -> list[Measurement]:
    """Times several binaries in rounds, each round in a new random order, then checks the output of each.

    If several are CLOSE to the fastest, these are timed as often again in each further placement of the buffers:
    ``n_placements`` in all, as far as there is room.

    Raises:
        TrialFailure: wrong, noisy, or what the device raises.
    """
    contestants = [
        _Contestant(session, session.load(binary, session.timed_build), kernel.launch(case.problem, config), protocol)
        for config, binary in configs
    ]
    order = random.Random(0)
    _rounds(contestants, timed_arguments(session, kernel, case), case, protocol.n_samples, order)
    best = min(c.samples.median_s for c in contestants)
    close = [c for c in contestants if c.samples.median_s <= best * (1 + CLOSE)]
    if len(close) > 1:
        room = session.keep_bytes // max(1, bytes_of(kernel.arrays(case.problem)))
        with ExitStack() as kept:  # all buffers stay allocated, so that each placement differs
            for _ in range(min(n_placements, room) - 1):
                placed = kept.enter_context(CaseInMemory(session, kernel, case.problem, case.inputs))
                _rounds(close, placed, case, protocol.n_samples, order)
    return [c.samples.summary(False, c.errors) for c in contestants]


class _Contestant:
    """One binary, its samples so far, and the largest errors of its outputs."""

    def __init__(self, session: Session, function: Function, geometry: Launch, protocol: Protocol) -> None:
        self.function, self.geometry, self.n_warmup = function, geometry, protocol.n_warmup
        self.samples = TimedSamples(session, protocol.cold)
        self.errors = (0.0, 0.0)

    def check(self, placed: CaseInMemory, case: Case) -> None:
        largest, rms = check_after(self.function, self.geometry, placed, case)
        self.errors = max(self.errors[0], largest), max(self.errors[1], rms)


def _rounds(contestants: list[_Contestant], placed: CaseInMemory, case: Case, n: int, order: random.Random) -> None:
    """Takes ``n`` more samples of each contestant."""
    for c in contestants:
        c.samples.warm_up(c.function, c.geometry, placed, c.n_warmup)
    shuffled = list(contestants)
    for _ in range(n):
        order.shuffle(shuffled)
        for c in shuffled:
            c.samples.take(c.function, c.geometry, placed, len(c.samples.kept) + 1)
    for c in contestants:
        c.check(placed, case)
