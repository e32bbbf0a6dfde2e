"""Makes an image of visibilities whose fringes are stopped, by a direct Fourier sum: no grid, and no deconvolution.

    python image.py vis.uvh5 image.png [WIDTH_DEG]

It reads what pyuvdata reads. The sum is over all baselines, channels and times, weighted by the spectra in each datum.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from pyuvdata import UVData

LIGHT_M_S = 299792458.0
N = 201  # pixels a side


def image_of(data: UVData, cosines: np.ndarray) -> np.ndarray:
    """Returns the mean of all visibilities, turned to each direction: float64 [n_m, n_l]."""
    rows = data.ant_1_array != data.ant_2_array
    weights = np.where(data.flag_array, 0, data.nsample_array)[rows][..., [0, -1]]  # of xx and yy
    sums = (np.nan_to_num(data.data_array[rows][..., [0, -1]]) * weights).sum(axis=-1)
    u, v = (data.uvw_array[rows][:, :2] / LIGHT_M_S).T  # seconds; the field is small, so that w does not count
    image = np.zeros((len(cosines), len(cosines)))
    for channel, frequency in enumerate(data.freq_array):
        east = np.exp(-2j * np.pi * frequency * np.outer(cosines, u))
        north = np.exp(-2j * np.pi * frequency * np.outer(cosines, v))
        image += ((north * sums[:, channel]) @ east.T).real
    return image / weights.sum()


def main(path: str, picture: str, width_deg: str = "5") -> None:
    data = UVData.from_file(path)
    (centre,) = data.phase_center_catalog.values()
    half = np.radians(float(width_deg)) / 2
    cosines = np.linspace(-half, half, N)
    image = image_of(data, cosines)

    # What a pixel has of noise: most of them see nothing else.
    noise = 1.4826 * np.median(np.abs(image - np.median(image)))
    north, east = np.unravel_index(np.argmax(image), image.shape)
    l, m = cosines[east], cosines[north]  # noqa: E741
    print(f"{centre['cat_name']}: the peak is {image.max() / noise:.0f} times the noise, at l = {l:.4f}, m = {m:.4f}")

    degrees = np.degrees(half)
    plt.imshow(image[:, ::-1] / noise, origin="lower", extent=(degrees, -degrees, -degrees, degrees))
    plt.colorbar(label="times the noise of a pixel")
    plt.xlabel("east of the phase centre (degrees)")
    plt.ylabel("north of it (degrees)")
    plt.savefig(picture, dpi=120)
    print(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
