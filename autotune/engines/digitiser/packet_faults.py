"""A plan of a network's faults: packets that are lost, repeated, exchanged and damaged on purpose."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated

import numpy as np

from ...core.errors import UsageError
from ...system.setting import Setting
from ..files import checks
from ..simulated.sample_blocks import Blocks
from .counter_noise import BLOCK, LOSSES, MOST_SEED, generator_of

KINDS = ("lost", "repeated", "exchanged", "damaged")
SHARE = Setting("Probability for a packet.", checks.within(0, 1), "0")


@dataclass(frozen=True)
class Sends:
    """The packets to send instead of all packets in order, and the number of packets with each fault."""

    numbers: np.ndarray  # int64 [n_sends], of packets, in the order in which they are sent
    is_damaged: np.ndarray  # bool [n_sends]: the packet's bytes are changed before it is sent
    lost: int
    repeated: int
    exchanged: int  # packets that are sent behind the next one
    damaged: int  # packets, each counted once, also when it is repeated


@dataclass(frozen=True)
class Faults:
    """The probabilities with which a packet is lost, sent twice, sent behind the next one, or damaged.

    Each packet's faults depend on the seed, its stream and its number alone. A lost packet has no other fault, and no
    packet changes places with it. A packet that was sent before the one in front of it stays before the next one: of
    n packets about n exchanged / (1 + exchanged) are sent behind the next one.

    Raises:
        UsageError: for a probability that is not 0 to 1.
    """

    lost: Annotated[float, SHARE] = 0.0
    repeated: Annotated[float, SHARE] = 0.0
    exchanged: Annotated[float, SHARE] = 0.0
    damaged: Annotated[float, SHARE] = 0.0
    seed: Annotated[int, Setting("Seed of the faults.", checks.integer(0, MOST_SEED), "0")] = 0

    def __post_init__(self) -> None:
        for name in KINDS:
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"faults have {name}={getattr(self, name):g}, must be 0 to 1")

    def lost_of(self, begin: int, n: int, stream: int = 0) -> np.ndarray:
        """Returns whether each packet from number ``begin`` on is lost: bool [n]."""
        lost, *_ = self._faults_of(begin, n, stream)
        return lost

    def sends(self, begin: int, n: int, stream: int = 0, is_last: bool = False) -> Sends:
        """Returns the packets to send for ``n`` packets from number ``begin`` on. The stream begins with number 0.

        A packet that is sent behind the next one belongs to that one's range: the plans of neighbouring ranges, one
        after the other, are the plan of both.

        Args:
            stream: another one has other faults: a polarisation's number.
            is_last: no packet comes after these, so that the last one has none to change places with.
        """
        lost, repeated, exchanged, damaged = self._faults_of(begin - 1, n + 1, stream)
        if is_last:
            exchanged[-1] = False
        numbers = np.arange(begin - 1, begin + n)
        places = 2 * numbers + 3 * exchanged  # an exchanged packet goes just after the next one
        here = (places >= 2 * begin) & (places < 2 * (begin + n))
        order = np.argsort(places)
        order = order[(here & ~lost)[order]]
        order = np.repeat(order, 1 + repeated[order])
        counts = [int(np.count_nonzero(fault & here)) for fault in (lost, repeated, exchanged, damaged)]
        return Sends(numbers[order], damaged[order], *counts)

    def _faults_of(self, begin: int, n: int, stream: int) -> list[np.ndarray]:
        """Returns the faults of packets: bool [n] for each of KINDS."""
        return list(Blocks(partial(_faults, self, stream), BLOCK).take(begin, n))


@lru_cache(8)
def _faults(faults: Faults, stream: int, number: int) -> np.ndarray:
    """Returns the faults of the packets from ``number`` BLOCK on: bool [4, BLOCK]. The last one is not exchanged."""
    chances = generator_of(faults.seed, LOSSES + stream, number).random((len(KINDS), BLOCK))
    is_faulty = chances < np.array([[getattr(faults, name)] for name in KINDS])
    lost, repeated, exchanged, damaged = is_faulty
    exchanged &= ~lost & ~np.append(lost[1:], True)
    places = np.arange(BLOCK)
    before = np.maximum.accumulate(np.where(exchanged, -1, places))  # the last one that stays in its place
    exchanged &= (places - before) % 2 == 1  # of several in a row every second one: the others have changed places
    repeated &= ~lost
    damaged &= ~lost
    return is_faulty
