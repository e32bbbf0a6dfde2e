"""Correlates two VLBI recordings, and finds the delay between the stations in the visibilities.

    python examples/vlbi.py [DEVICE]

It writes two small VDIF files first, so that the truth is known: one noise, which comes to the second station DELAY
samples later, and each station's own noise. It needs the extra `files` (h5py).
"""

import struct
import sys
from pathlib import Path

import numpy as np

from autotune.engines import Bands, Running, correlate
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps

RATE_HZ, N_SAMPLES, PACKET = 16e6, 480_000, 8000  # samples of a frame: a second has a whole number of frames
DELAY = 21  # samples
N_CHANNELS = 64  # so a spectrum takes 128 samples, and lags within half of that either way are distinct
FINER = 16  # lags are computed in steps of 1 / FINER sample


def write_vdif(path: Path, station: str, samples: np.ndarray) -> None:
    """Writes real samples of 8 bits, int8 [n_pols, n]: a thread for each polarisation, from the start of 2025 on."""
    with path.open("wb") as file:
        for number in range(samples.shape[1] // PACKET):
            for thread, row in enumerate(samples[:, number * PACKET : (number + 1) * PACKET]):
                words = (
                    0,  # seconds since the epoch
                    number | 50 << 24,  # number of the frame in its second; the epoch, in half-years since 2000
                    (PACKET + 32) // 8 | 1 << 29,  # length in units of 8 bytes; version 1
                    int.from_bytes(station.encode(), "big") | thread << 16 | 7 << 26,  # 8 bits, less one; real
                )
                file.write(struct.pack("<8I", *words, 0, 0, 0, 0))
                file.write((row.view(np.uint8) ^ 0x80).tobytes())  # offset binary


def main(device: str = "auto") -> None:
    rng = np.random.default_rng(1)
    sky = rng.normal(0, 10, (2, N_SAMPLES + DELAY))  # two polarisations, which X-engines need
    for station, begin in (("On", DELAY), ("Ef", 0)):  # Ef gets each wave DELAY samples after On
        heard = sky[:, begin : begin + N_SAMPLES] + rng.normal(0, 20, (2, N_SAMPLES))
        write_vdif(Path(f"{station}.vdif"), station, np.rint(heard).clip(-127, 127).astype(np.int8))

    # A dump is 8 batches of 64 spectra. Frames do not state the sample rate, so it is given.
    bands = Bands(N_CHANNELS, spectra_per_heap=64)
    header = {"sample_rate_hz": RATE_HZ}
    running = Running(device=device, tell=print)
    made = correlate(["On.vdif", "Ef.vdif"], bands, "vlbi.h5", accumulate=8, header=header, running=running)
    print(f"{made.path}: {made.counters.dumps_out} dumps")

    # Baselines are (0, 0), (1, 0), (1, 1): number 1 is On times the conjugate of Ef. Product 0 is aa.
    dumps = list(VisibilityDumps("vlbi.h5"))
    cross = sum(dump.visibilities[:, 1, 0] @ [1, 1j] for dump in dumps if dump.present.all())

    # A stream that is late by d samples turns by -2 pi k d / (2 C) in channel k, so its conjugate turns forward.
    lags = np.abs(np.fft.fft(cross, 2 * N_CHANNELS * FINER))
    lag = (np.argmax(lags) + lags.size // 2) % lags.size - lags.size // 2
    print(f"Ef is late by {lag / FINER:.2f} samples, {1e6 * lag / FINER / RATE_HZ:.3f} us; it was made {DELAY} late")


if __name__ == "__main__":
    main(*sys.argv[1:2])
