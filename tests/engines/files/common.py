"""What tests of files share: reading to the end, in chunks of any size, and a limit on the size of files."""

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.core.errors import UsageError
from autotune.engines.files.losses import DataLoss
from autotune.engines.files.opening import open_samples
from autotune.engines.streams.samples import Source

RUBBISH = 0xA5


@dataclass
class Read:
    """All that a source gave before its end, or before the error that ended it."""

    time: int | None = None
    samples: list[np.ndarray] = field(default_factory=list)
    flags: list[np.ndarray] = field(default_factory=list)
    error: str = ""
    lost: str = ""  # the lines about losses

    @property
    def rows(self) -> np.ndarray:
        """uint8 [n_pols, n_bytes], or complex64; what is missing is RUBBISH."""
        return np.concatenate(self.samples, axis=1)

    @property
    def received(self) -> np.ndarray:
        return np.concatenate(self.flags, axis=1)


def read_all(source: Source, packets: Sequence[int] = (3,), close: bool = True, no_flags: bool = False) -> Read:
    """Reads chunks of so many packets, in turn, and joins them; those left out are filled with RUBBISH.

    ``no_flags``: a chunk may have none.
    """
    info, read, end, is_last = source.info, Read(), None, False
    packet_bytes = info.packet * info.sample_bits // 8
    for n in cycle(packets):
        rows = np.full((info.n_pols, n * packet_bytes), RUBBISH, np.uint8)
        out = rows.view(np.complex64) if info.is_complex else rows
        try:
            chunk = source.read(out)
        except UsageError as error:
            read.error = str(error)
            assert "\n" not in read.error
            break
        if chunk is None:
            break
        n_came = chunk.received.shape[1]
        assert not is_last or n_came == 1, (
            "only the last chunk is short, but for a frame that waited for another thread"
        )
        is_last = n_came < n
        assert chunk.received.shape == (info.n_pols, n_came) and 0 < n_came <= n and (no_flags or chunk.received.any())
        if end is None:
            read.time = end = chunk.time
        gap, rest = divmod(chunk.time - end, info.packet)
        assert gap >= 0 and rest == 0 and (gap % n == 0 or len(packets) > 1)
        assert gap < 1000 or no_flags, "a test has no such gap"
        read.flags += [np.zeros((info.n_pols, gap), bool), chunk.received]
        for pol, packet in np.argwhere(~chunk.received).tolist():
            rows[pol, packet * packet_bytes : (packet + 1) * packet_bytes] = RUBBISH
        filled = np.full((info.n_pols, gap * packet_bytes), RUBBISH, np.uint8).view(out.dtype)
        read.samples += [filled, out[:, : n_came * packet_bytes // out.itemsize]]
        end = chunk.time + n_came * info.packet
    if close:
        source.close()
    return read


def read_file(path: Path, packets: Sequence[int] = (3,), no_flags: bool = False, **given: Any) -> Read:
    """Opens a recording, reads it, and keeps the lines about what it lacks."""
    told: list[str] = []
    read = read_all(open_samples(path, tell=told.append, **given), packets, no_flags=no_flags)
    read.lost = "; ".join(line for line in told if isinstance(line, DataLoss))
    return read


@contextmanager
def full_disk(n_bytes: int) -> Iterator[None]:
    """No file of this process may become longer: what a full disk refuses, at a size that a test chooses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def refused(*words: object) -> Iterator[None]:
    """One line that has all of these words."""
    with pytest.raises(UsageError) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert [word for word in map(str, words) if word not in str(caught.value)] == [], str(caught.value)
