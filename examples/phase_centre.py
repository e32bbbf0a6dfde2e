"""Follows a phase centre with a simulated array, and makes an image of the field around it.

    python examples/phase_centre.py [DEVICE]

The sky has one source beside the phase centre. `correlate` computes the delays that stop the fringes of the phase
centre, from positions and times; the phases that are left say where the source is. The image is a Fourier sum over all
baselines and channels, written out. It needs the extra `uv`, which brings astropy.
"""

import sys
from pathlib import Path

import numpy as np

from autotune.engines import Bands, Running, correlate
from autotune.engines.sky.geometry import axes, delays_s
from autotune.engines.sky.simulated_recording import Recording

N_CHANNELS = 64
SKY = """
sample_rate_hz = 64e6
centre_frequency_hz = 1284e6     # of a band of 32 MHz
sample_bits = 8
n_pols = 2
n_samples = 122880
sync_time_unix = 1.7e9
seed = 1

[phase_centre]                   # at the first sample
hour_angle_deg = 20
declination_deg = -30

[noise]
level = 20

[array]
layout = "random"
n_antennas = 8
spacing_m = 60
latitude_deg = -30.7
longitude_deg = 21.4

[[source]]                       # direction cosines from the phase centre: to the east, to the north
l = 0.004
m = -0.006
flux = 0.3
"""
PIXELS = np.linspace(-0.01, 0.01, 41)  # in l and in m, direction cosines


def image_of(cross: np.ndarray, frequencies_hz: np.ndarray, late_s: np.ndarray) -> np.ndarray:
    """Returns the image, float64 [n_m, n_l].

    cross: complex [n_channels, n_baselines], of antennas (j, i), i < j, i fastest; late_s: float64 [n_pixels,
    n_antennas], by how much waves from each pixel come later than those from the phase centre.
    """
    pairs = [(i, j) for j in range(late_s.shape[1]) for i in range(j)]
    image = np.zeros(len(late_s))
    for (i, j), visibility in zip(pairs, cross.T, strict=True):
        cycles = np.outer(late_s[:, i] - late_s[:, j], frequencies_hz)  # a source there turns a visibility backward
        image += (np.exp(2j * np.pi * cycles) @ visibility).real
    return image.reshape(len(PIXELS), -1) / cross.size


def main(device: str = "auto") -> None:
    Path("sky.toml").write_text(SKY)
    recording = Recording(Path("sky.toml"), Path("night"))  # as `autotune sky sky.toml --out night` does
    for _ in recording.write():
        pass

    # A direction is text with right ascension and declination; the simulation has an hour angle at a time instead.
    centre = recording.sky.phase_centre
    print(f"delays follow hour angle {centre.hour_angle_deg:.3f}, declination {centre.declination_deg:.3f} degrees")
    bands = Bands(N_CHANNELS, spectra_per_heap=64)
    made = correlate(["night"], bands, accumulate=2, phase_centre=centre, running=Running(device=device))
    dumps = made.visibilities[made.present.all(axis=1)]  # int32 [n_dumps, C, n_baselines, 4, 2]
    print(f"{len(dumps)} dumps of all {len(made.info.antennas)} antennas")

    # These are means of products aa, over the power of an antenna. Baselines (j, j) are autocorrelations.
    products = (dumps[:, :, :, 0] @ [1, 1j]).mean(axis=0)
    is_auto = np.isin(np.arange(made.info.n_baselines), [j * (j + 3) // 2 for j in range(len(made.info.antennas))])
    cross = products[:, ~is_auto] / products[:, is_auto].mean().real

    # The delay of a pixel's wave at an antenna follows from the antenna's coordinates u, v and w.
    sky, info = recording.sky, made.info
    east, north = (each.ravel() for each in np.meshgrid(PIXELS, PIXELS))
    cosines = np.column_stack([np.append(east, 0), np.append(north, 0)])  # the phase centre comes last
    offsets_m = sky.positions_m - sky.positions_m.mean(axis=0)
    *pixels, middle = delays_s(axes(sky.hour_angle, sky.declination, sky.longitude), cosines, offsets_m)
    frequencies_hz = info.centre_frequency_hz + (np.arange(N_CHANNELS) - N_CHANNELS / 2) * info.channel_width_hz

    image = image_of(cross, frequencies_hz, np.array(pixels) - middle)
    peak = np.argmax(image)  # a flux of 0.3 beside a noise of 1 is 0.23 of the power
    print(f"the peak, {image.max():.3f}, is at l = {east[peak]:.4f}, m = {north[peak]:.4f}; rms {image.std():.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
