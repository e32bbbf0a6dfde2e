"""Streams of heaps at random, with all that goes wrong in them, close to where the rules change their mind."""

from random import Random

from autotune.engines.network import items
from autotune.engines.network.placing import MOST_DESCRIPTOR, PlaceRules

from .place_model import INTERFACE, WRAP, Heap, Model

NEAR_EDGE = (-1, 0, 0, 1)


def drawn(rng: Random, n_heaps: int) -> tuple[PlaceRules, list[Heap]]:
    """Returns rules, and heaps of a stream for them."""
    heap_samples = rng.choice((1, 3, 16, 4096))
    at_wrap = WRAP // heap_samples
    start = rng.choice((0, rng.randrange(100), at_wrap - rng.randrange(20), 4 * at_wrap + rng.randrange(1000)))
    time = start * heap_samples
    off = rng.choice(
        (0, rng.randrange(-100, 100), WRAP // 2 + rng.randrange(-2, 3), WRAP // 2 + rng.randrange(-2, 3) * heap_samples)
    )
    rules = PlaceRules(
        sender_item=items.FENG_ID,
        heap_bytes=rng.randint(1, 100),
        heap_samples=heap_samples,
        chunk_heaps=rng.randint(1, 8),
        n_senders=rng.randint(1, 4),
        most_jump=rng.randint(0, 100),
        by_sender=rng.random() < 0.5,
        sender_mask=rng.choice((1, 3, items.TIME_MASK, items.TIME_MASK)),
        ahead_chunks=rng.choice((0, 1, 2, 2, 3)),
        kept_chunks=rng.randint(1, 8),
        confirm=rng.choice((0, 1, 2, 3, 8)),
        quiet_ns=rng.choice((0, 1, 100)),
        near=rng.choice((0, max(0, time + off))),
        begin=rng.choice((0, 0, time + rng.randrange(20))),
        n_enders=rng.randint(1, 3),
        first_channel=rng.choice((0, 5)),
        is_numbered=rng.random() < 0.7,
        takes_offset=rng.random() < 0.3,
    )
    stream = Stream(rules, start, rng)
    if rng.random() < 0.3:
        stream.begin_and_jump()
    while len(stream.heaps) < n_heaps:
        stream.go_on()
    return rules, stream.heaps[:n_heaps]


class Stream:
    """Heaps so far. ``model`` says which time is known, so that what goes wrong lies beside it."""

    def __init__(self, rules: PlaceRules, start: int, rng: Random) -> None:
        self.rules, self.start, self.rng, self.model = rules, start, rng, Model(rules)
        self.heaps: list[Heap] = []
        self.clock_ns = rng.choice((0, rng.randrange(1000)))
        self.turn, self.is_unruly, self.n_interfaces = 0, rng.random() < 0.3, rng.choice((1, 1, 3))
        self.rest = rng.choice((0, rng.randrange(rules.heap_samples))) if rules.takes_offset else 0

    @property
    def newest(self) -> int:
        return self.start if self.model.newest is None else self.model.newest

    @property
    def most_ahead(self) -> int:
        return self.rules.ahead_chunks * self.rules.chunk_heaps

    def go_on(self) -> None:
        """Adds a few heaps: mostly those that come next, and now and then others."""
        good = [self.come_next] * 8
        self.rng.choice((*good, self.repeat, self.lag, self.hurry, self.jump, self.jump, self.spoil, self.spoil))()

    def begin_and_jump(self) -> None:
        """Adds as many heaps of one time as are believed, perhaps the end of all senders, and then others."""
        for _ in range(self.rules.confirm):
            self.add(self.start)
        for _ in range(self.rules.n_enders * self.rng.randrange(2)):
            self.append(Heap(-1, 0, -1, 2, self.clock_ns, self.number(self.rng.randrange(self.rules.n_senders))))
        self.jump()

    def come_next(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            self.add(self.newest + self.rng.choice((-2, -1, 0, 0, 1, 1, 1, 2)))

    def repeat(self) -> None:
        for heap in self.rng.sample(self.heaps[-30:], k=min(3, len(self.heaps))):
            self.append(heap._replace(clock_ns=self.clock_ns))

    def lag(self) -> None:
        """Adds heaps at the end of what is known of the past."""
        chunk = self.newest // self.rules.chunk_heaps - self.rules.kept_chunks
        for _ in range(self.rng.choice((1, 2, self.rules.confirm))):
            self.add((chunk + 1) * self.rules.chunk_heaps + self.rng.choice((*NEAR_EDGE, -self.rules.chunk_heaps)))

    def hurry(self) -> None:
        self.add(self.newest + self.most_ahead + self.rng.choice(NEAR_EDGE))

    def jump(self) -> None:
        """Adds heaps of a far time, perhaps after a while, perhaps among others."""
        rng, rules = self.rng, self.rules
        far = rng.choice((self.most_ahead + 1, rules.most_jump, -rules.kept_chunks * rules.chunk_heaps - 1, 1 << 20))
        number = self.newest + rng.choice((far, far, far, -far)) + rng.choice(NEAR_EDGE)
        self.clock_ns += rng.choice((0, rules.quiet_ns, rules.quiet_ns)) + rng.choice(NEAR_EDGE[1:])
        is_alone, may_differ = rng.random() < 0.8, rng.random() < 0.5
        if rng.random() < 0.2:
            number = self.newest + rng.choice(NEAR_EDGE)  # it may be far by its rest alone
        if rules.takes_offset and rng.random() < 0.3:
            self.rest = rng.randrange(rules.heap_samples)
        for _ in range(rules.confirm + rng.choice((-1, 0, 0, 1, 3))):
            self.add(number, waits=rng.random() < 0.1)
            if may_differ:
                number += rng.choice((1, -1)) * (self.most_ahead + rng.choice(NEAR_EDGE))
            if not is_alone and rng.random() < 0.2:
                self.add(self.newest)

    def spoil(self) -> None:
        """Adds a heap that would be good but for one of its items."""
        rng, rules = self.rng, self.rules
        number, last = self.newest + 1, self.heaps[-1].turn if self.heaps else 0
        self.add(
            number,
            **rng.choice(
                (
                    {"time": (number * rules.heap_samples + rng.choice((-1, 1))) % WRAP},
                    {"time": number * rules.heap_samples % WRAP + WRAP * rng.randrange(1, 100)},
                    {"time": -1},
                    {"sender": -1},
                    {"sender": rules.n_senders + rng.choice((-1, 0, 1))},
                    {"sender": rng.randrange(WRAP)},
                    {"sender": rng.randrange(4) << rng.choice((1, 2, 40))},
                    {"length": rng.choice((-1, 0, rules.heap_bytes - 1, rules.heap_bytes + 1))},
                    {"control": rng.choice((0, 1, 3))},
                    {"control": 2},
                    {"channel": rng.choice((-1, 0, 5, 64))},
                    {"status": rng.randrange(1 << 16) << rng.choice((0, 31, 32))},
                    {"turn": rng.randrange(100)},
                    {"time": -1, "turn": rng.randrange(100)},
                    {"sender": -1, "packet_size": MOST_DESCRIPTOR + rng.choice((0, 1))},
                    {"time": -1, "length": 0, "sender": -1, "control": 2},
                    {"time": -1, "length": 0, "sender": -1, "control": 2, "turn": -1},
                    {"time": -1, "length": 0, "sender": -1, "control": 2, "turn": last},
                    {"time": -1, "length": 0, "sender": -1, "turn": -1},
                    {"time": -1, "length": rules.heap_bytes + 1},
                    {"length": 0, "sender": rules.n_senders},
                )
            ),
        )

    def add(self, number: int, waits: bool = True, **other: int) -> None:
        """Adds the heap of this number, after a while or at once, with ``other`` in place of some of its items."""
        if number < 0:
            return
        if waits:
            self.clock_ns += self.rng.choice((0, 0, 1))
        time, sender = (number * self.rules.heap_samples + self.rest) % WRAP, self.rng.randrange(self.rules.n_senders)
        turn = self.number(sender & self.rules.sender_mask)
        channel, status = self.rules.first_channel, self.rng.choice((-1, 0, 3 << 32))
        heap = Heap(time, self.rules.heap_bytes, sender, -1, self.clock_ns, turn, channel, status)
        self.append(heap._replace(**other))

    def number(self, sender: int) -> int:
        """Returns the number of a heap on the wire: mostly the next one of its sender."""
        self.turn += self.rng.randrange(2)
        interface = self.rng.randrange(self.n_interfaces) * INTERFACE
        return interface + self.turn * self.rules.n_senders + sender + (self.is_unruly and self.rng.random() < 0.1)

    def append(self, heap: Heap) -> None:
        self.model.place(heap)
        self.heaps.append(heap)
