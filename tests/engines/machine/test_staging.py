"""Small arrays reach the device as they were given, though it reads pinned memory later than the CPU writes it."""

from typing import Any

import numpy as np

from autotune.engines.machine.staging import N_SLOTS, Staging


class LateStream:
    """Copies nothing until an event after it is waited for."""

    def __init__(self) -> None:
        self.given: list[tuple[np.ndarray, np.ndarray]] = []
        self.n_done = self.n_events = self.n_sent = 0

    def send(self, pieces: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.given += pieces
        self.n_sent += 1

    def record(self) -> "LateEvent":
        self.n_events += 1
        return LateEvent(self, len(self.given))


class LateEvent:
    """The first ``n`` copies that a stream was given."""

    def __init__(self, stream: LateStream, n: int) -> None:
        self.stream, self.n = stream, n

    def wait(self) -> None:
        for to, source in self.stream.given[self.stream.n_done : self.n]:
            to[...] = source
        self.stream.n_done = max(self.stream.n_done, self.n)


class Pinned:
    """Memory that a device can read."""

    def pinned(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)


def test_all_arrays_arrive_as_they_were_given() -> None:
    stream: Any = LateStream()
    backend: Any = Pinned()
    staging = Staging(backend, ((5, 2), np.int64), ((5,), np.float32))
    n_sent, rng = 3 * N_SLOTS + 1, np.random.default_rng(1)
    given, sent = [], []
    for number in range(n_sent):
        n = number % 5 + 1
        values = rng.integers(0, 1 << 40, (n, 2)), rng.uniform(size=n).astype(np.float32)
        to = np.zeros((5, 2), np.int64), np.zeros(5, np.float32)
        for pinned, some in zip(staging.arrays(), values, strict=True):
            pinned[:n] = some
        staging.send(stream, *(each[:n] for each in to))
        given.append(values)
        sent.append(to)
    stream.record().wait()
    for (first, second), (to_first, to_second) in zip(given, sent, strict=True):
        np.testing.assert_array_equal(to_first[: len(first)], first)
        np.testing.assert_array_equal(to_second[: len(second)], second)
    assert stream.n_events == n_sent + 1 == stream.n_sent + 1  # one for each time, however many arrays
