"""Turns live samples into voltages, with a source of your own in Python.

    python examples/live_source.py [DEVICE]

The source stands for a digitiser: it makes samples of a tone and of noise at its own pace, whether they are taken or
not. Anything that fills an array can be one: a socket, shared memory, a generator.
"""

import sys
import time

import numpy as np

from autotune.engines import Bands, Running, channelise
from autotune.engines.streams.samples import SampleInfo, Samples

RATE_HZ, N_SAMPLES, PACKET = 2e6, 400_000, 1000
TONE_HZ = 640e3
LOST = range(120, 123)  # packets that never arrive
N_CHANNELS = 64


class Digitiser:
    """Real samples of 8 bits, one polarisation. An engine reads `info` and `is_live`, and calls `read` and `close`."""

    is_live = True  # the source cannot wait: an engine that is too slow drops whole chunks, and counts them

    def __init__(self) -> None:
        self.info = SampleInfo(sample_bits=8, n_pols=1, sample_rate_hz=RATE_HZ, packet=PACKET, antenna="m000")
        self._rng = np.random.default_rng(1)
        self._next = 0  # packets so far
        self._began_s = 0.0

    def read(self, out: np.ndarray) -> Samples | None:
        """Fills `out`, uint8 [n_pols, n_bytes], with the next packets, and waits until there are some."""
        if self._next == 0:
            self._began_s = time.monotonic()
        n_packets = min(out.shape[1] // PACKET, N_SAMPLES // PACKET - self._next)
        if n_packets <= 0:
            return None  # the end
        first = self._next * PACKET
        t = first + np.arange(n_packets * PACKET)
        time.sleep(max(0.0, self._began_s + t[-1] / RATE_HZ - time.monotonic()))
        wave = 30 * np.cos(2 * np.pi * TONE_HZ / RATE_HZ * t) + self._rng.normal(0, 10, t.size)
        out[0, : t.size] = np.rint(wave).clip(-127, 127).astype(np.int8).view(np.uint8)
        came = np.isin(np.arange(self._next, self._next + n_packets), LOST, invert=True)
        self._next += n_packets
        return Samples(first, came[np.newaxis])  # the time of the chunk's first sample, and which packets arrived

    def close(self) -> None:
        """There is nothing to close."""


def main(device: str = "auto") -> None:
    # The gain is given, since a stream cannot be read twice: once for its level, once for its voltages. Chunks are
    # short, so that voltages come soon.
    bands = Bands(N_CHANNELS, spectra_per_heap=32, gains=0.1, max_delay_diff=0)
    made = channelise(Digitiser(), bands, running=Running(device=device, chunk=1 << 14))
    info, counted = made.bands[0].info, made.bands[0].counters
    missing, late = counted.packets_missing, counted.chunks_dropped
    print(f"{counted.samples_in} samples, {missing} packets missing, {late} chunks too late")
    print(f"{counted.heaps_out} heaps of {info.heap_samples} samples, {counted.heaps_missing} missing")

    # voltages: int8 [n_heaps, C, spectra_per_heap, n_pols, 2]; timestamps give the first sample of each heap.
    power = np.mean(made.voltages.astype(float) ** 2, axis=(0, 2, 3, 4))
    width_hz = RATE_HZ / 2 / N_CHANNELS
    print(
        f"most power is in channel {power.argmax()}, {power.argmax() * width_hz:.0f} Hz; the tone has {TONE_HZ:.0f} Hz"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
