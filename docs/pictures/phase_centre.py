"""An image of two sources, of fringes that a phase centre stopped, and of fringes that ran until pyuvdata phased them.

`python docs/pictures/phase_centre.py` simulates 16 antennas, correlates them twice on the device host and stores what
direct Fourier sums of the visibilities make, in phase_centre.json; ``picture`` draws that.
"""

import json
import re
import tempfile
from math import radians
from pathlib import Path

import numpy as np
from svg import INK, Picture

HERE = Path(__file__)
STORED = HERE.with_suffix(".json")
CELL_ARCSEC, HALF = 15, 20  # the image has 2 HALF + 1 cells a side
SOURCES = ((8, 5, 1.0), (-10, -3, 0.6))  # cells to the east and north of the phase centre, and flux
SHADES = ("#ffffff", "#e3ecf7", "#c2d8ee", "#93bfe1", "#5c9fd0", "#2f7ebc", "#125ba0", "#083471")
LIGHT_M_S = 299792458.0
TOP, SIDE = 74, 328  # pixels
CELL = SIDE / (2 * HALF + 1)
SKY = """
sample_rate_hz = 4e6
centre_frequency_hz = 1420e6
sample_bits = 8
n_pols = 2
n_samples = 262144
sync_time_unix = 1.7e9
seed = 4
[phase_centre]
hour_angle_deg = -25
declination_deg = -20
[noise]
level = 15
[array]
layout = "random"
n_antennas = 16
spacing_m = 200
latitude_deg = -30.7
longitude_deg = 21.4
"""


def picture() -> str:
    stored = json.loads(STORED.read_text())
    made = Picture(760, 440, "Images of two sources: fringes stopped by delays, and phased afterwards")
    made.text(24, 32, "Two sources beside a phase centre, imaged by a direct Fourier sum", "title")
    titles = ("stopped by --phase-centre", "running, phased by pyuvdata afterwards")
    for left, title, name in zip((24, 408), titles, ("stopped", "running"), strict=True):
        made.text(left, 62, title, "bold")
        for shade, colour in enumerate(SHADES[1:], 1):
            made.bars(_bars(stored[name], str(shade), left), colour, CELL + 0.2)
        for l, m, flux in SOURCES:  # noqa: E741
            made.text(left + CELL * (HALF - l + 0.5), TOP + CELL * (HALF - m - 2), f"{flux:g}", "bold", anchor="middle")
        made.box(left, TOP, SIDE, SIDE, "none", radius=0, edge=INK)
        made.text(left, TOP + SIDE + 18, "10 arc minutes across, north up, east to the left", "small muted")
    return made.svg()


def _bars(rows: list[str], shade: str, left: float) -> list[tuple[float, float, float]]:
    """Returns left end, middle and length of all runs of one shade."""
    return [
        (left + CELL * run.start(), TOP + CELL * (y + 0.5), CELL * len(run[0]))
        for y, row in enumerate(rows)
        for run in re.finditer(f"{shade}+", row)
    ]


def image(uvw_m: np.ndarray, frequencies_hz: np.ndarray, data: np.ndarray) -> list[str]:
    """Returns shades, from north to south and from east to west; ``data``: complex [n_rows, n_channels]."""
    waves = (uvw_m[:, np.newaxis] * frequencies_hz[:, np.newaxis] / LIGHT_M_S).reshape(-1, 3)
    cells = radians(CELL_ARCSEC / 3600) * np.arange(-HALF, HALF + 1)
    east = np.exp(-2j * np.pi * np.outer(cells[::-1], waves[:, 0]))  # the field is small: w does not count
    north = np.exp(-2j * np.pi * np.outer(cells[::-1], waves[:, 1]))
    sky = ((north * data.reshape(-1)) @ east.T).real
    shades = np.rint(np.clip(sky / sky.max(), 0, 1) * (len(SHADES) - 1)).astype(int)
    return ["".join(map(str, row)) for row in shades.tolist()]


def measured() -> dict[str, list[str]]:
    """Returns the images of a simulated recording."""
    from pyuvdata import UVData

    from autotune.engines import Bands, Running, correlate
    from autotune.engines.sky.description import read_sky
    from autotune.engines.sky.simulated_recording import Recording

    found, files = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        sky, night = Path(folder) / "sky.toml", Path(folder) / "night"
        cell = radians(CELL_ARCSEC / 3600)
        each = [f"[[source]]\nl = {x * cell}\nm = {y * cell}\nflux = {flux}\n" for x, y, flux in SOURCES]
        sky.write_text(SKY + "".join(each))
        for _ in Recording(sky, night).write():
            pass
        for name, centre in (("stopped", read_sky(sky).phase_centre), ("running", None)):
            out = Path(folder) / f"{name}.uvh5"
            running = Running(device="host")
            correlate(night, Bands(32, 8), out, accumulate=2, phase_centre=centre, running=running)
            files[name] = UVData.from_file(str(out))
    (there,) = files["stopped"].phase_center_catalog.values()
    files["running"].phase(lon=there["cat_lon"], lat=there["cat_lat"], cat_name="there", phase_frame="icrs")
    for name, file in files.items():
        rows = (file.ant_1_array != file.ant_2_array) & ~file.flag_array.all(axis=(1, 2))
        data = file.data_array[rows][:, 2:30]
        found[name] = image(file.uvw_array[rows], file.freq_array[2:30], data[..., 0] + data[..., 3])
    return found


if __name__ == "__main__":
    STORED.write_text(json.dumps(measured(), indent=1) + "\n")
