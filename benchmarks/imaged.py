"""Images a polarised source from voltages of linear and of circular receivers, with wsclean, and compares its Stokes.

The voltages are simulated here, from directions by astropy alone. It needs wsclean (a package of Debian), pyuvdata and
casacore.

    python benchmarks/imaged.py [--seed 1]
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from astropy import units as u
from astropy.coordinates import ITRS, EarthLocation, SkyCoord
from astropy.io import fits
from astropy.time import Time
from astropy.utils import iers
from astropy.wcs import WCS

from autotune.engines.jobs import Bands, correlate

C = 299_792_458.0
RATE_HZ, CENTRE_HZ, N = 200_000, 1.4e9, 1_200_000  # samples per second, Hz, samples
BLOCK = 2000  # samples that are delayed together
START = Time("2024-06-01T03:00:00", scale="utc")
SITE = EarthLocation.from_geodetic(6.6 * u.deg, 52.9 * u.deg, 20 * u.m)
N_ANTENNAS, EXTENT_M = 10, 400.0
STOKES = {"I": 1.0, "Q": 0.4, "U": 0.3, "V": -0.2}
OFFSET = (0.0041, -0.0033)  # l, m of the source
PIXEL_ARCSEC, MOST_STOKES, MOST_PIXELS = 10, 0.03, 1.0


def coherency(basis: str) -> np.ndarray:
    """Returns the mean products of both polarisations (IAU; Hamaker and Bregman, A&AS 117, 161, 1996)."""
    i, q, u_, v = STOKES.values()
    if basis == "XY":
        return np.array([[i + q, u_ + 1j * v], [u_ - 1j * v, i - q]])
    return np.array([[i + v, q + 1j * u_], [q - 1j * u_, i - v]])


def delays_s(places: np.ndarray, source: SkyCoord, times_s: np.ndarray) -> np.ndarray:
    """Returns how much later than at the site the source's waves arrive: float64 [n_antennas, n_times]."""
    towards = source.transform_to(ITRS(obstime=START + times_s * u.s, location=SITE))
    here = np.array([each.to_value(u.m) for each in SITE.to_geocentric()])
    return np.asarray(-(places - here) @ towards.cartesian.xyz.value / C)


def voltages(rng: np.random.Generator, basis: str, places: np.ndarray, source: SkyCoord) -> np.ndarray:
    """Returns complex64 [n_antennas, 2, N]."""
    pair = rng.normal(size=(2, N, 2)) @ [1, 1j] / 2**0.5
    wave = (np.linalg.cholesky(coherency(basis)) @ pair).reshape(2, -1, BLOCK)
    middles = (np.arange(N // BLOCK) + 0.5) * BLOCK / RATE_HZ
    lines, frequency = np.fft.fft(wave), np.fft.fftfreq(BLOCK, 1 / RATE_HZ)
    found = []
    for late, ends in zip(
        delays_s(places, source, middles), delays_s(places, source, np.array([0, 10.0])), strict=True
    ):
        block = np.fft.ifft(lines * np.exp(-2j * np.pi * frequency * late[:, np.newaxis]))
        rest = np.arange(BLOCK) / RATE_HZ - BLOCK / 2 / RATE_HZ
        turns = CENTRE_HZ * (late[:, np.newaxis] + (ends[1] - ends[0]) / 10 * rest)
        noise = rng.normal(size=(2, N, 2)) @ [1, 1j]
        found.append((block * np.exp(-2j * np.pi * turns)).reshape(2, N) + noise)
    return np.array(found, np.complex64)


def write_night(folder: Path, basis: str, seed: int) -> tuple[Path, SkyCoord, SkyCoord]:
    """Writes a night's recordings and array.toml. Returns its path, the phase centre, and the source."""
    rng = np.random.default_rng(seed)
    east_north = rng.uniform(-EXTENT_M, EXTENT_M, (N_ANTENNAS, 2))
    lon, lat = SITE.lon.rad, SITE.lat.rad
    east = np.array([-np.sin(lon), np.cos(lon), 0])
    north = np.array([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)])
    places = np.array([each.to_value(u.m) for each in SITE.to_geocentric()]) + east_north @ np.array([east, north])
    zenith = SkyCoord(alt=70 * u.deg, az=120 * u.deg, frame="altaz", obstime=START, location=SITE).icrs
    centre = SkyCoord(zenith.ra, zenith.dec)
    frame = WCS(naxis=2)
    frame.wcs.crval, frame.wcs.ctype, frame.wcs.crpix = (
        [centre.ra.deg, centre.dec.deg],
        ["RA---SIN", "DEC--SIN"],
        [0, 0],
    )
    frame.wcs.cdelt = [1e-3, 1e-3]  # degrees
    source = SkyCoord(*frame.all_pix2world([[np.degrees(each) * 1e3 for each in OFFSET]], 0)[0] * u.deg)
    text = f'polarisations = "{basis}"\ntelescope = "simulated"\n'
    text += (
        f"[phase_centre]\nright_ascension_deg = {float(centre.ra.deg)!r}\ndeclination_deg = {float(centre.dec.deg)!r}\n"
    )
    for number, rows in enumerate(voltages(rng, basis, places, source)):
        rows.tofile(folder / f"a{number}.bin")
        header = f'file = "a{number}.bin"\nsample_bits = 64\nn_pols = 2\nsample_rate_hz = {RATE_HZ}.0\n'
        header += f'centre_frequency_hz = {CENTRE_HZ}\nsync_time_unix = "{START.unix:.0f}"\nantenna = "a{number}"\n'
        (folder / f"a{number}.toml").write_text(header + f"position_m = {places[number].tolist()}\n")
        text += f'[[antenna]]\nfiles = "a{number}.toml"\ngains = 2.0\n'
    (folder / "array.toml").write_text(text)
    return folder / "array.toml", centre, source


def image(folder: Path, basis: str, source: SkyCoord) -> list[str]:
    """Images the night with wsclean. Returns what is wrong."""
    of = ["wsclean", "-pol", "IQUV", "-size", "512", "512", "-scale", f"{PIXEL_ARCSEC}asec", "-niter", "0"]
    subprocess.run([*of, "-name", "x", "x.ms"], cwd=folder, check=True, capture_output=True)
    planes = {name: fits.open(folder / f"x-{name}-image.fits")[0] for name in STOKES}
    data = {name: plane.data[0, 0] for name, plane in planes.items()}
    row, column = np.unravel_index(np.argmax(data["I"]), data["I"].shape)
    there = WCS(planes["I"].header).celestial.world_to_pixel(source)
    off = float(np.hypot(column - there[0], row - there[1]))
    seen = {name: float(plane[row, column] / data["I"][row, column]) for name, plane in data.items()}
    print(f"{basis}: the peak is {off:.2f} pixels of {PIXEL_ARCSEC} arcsec beside the source;", end=" ")
    print(", ".join(f"{name} {seen[name]:+.3f} (made {STOKES[name]:+.1f})" for name in STOKES))
    wrong = [f"{basis}: {name} is {seen[name]:+.3f}" for name in STOKES if abs(seen[name] - STOKES[name]) > MOST_STOKES]
    return wrong + [f"{basis}: the peak is {off:.1f} pixels off"] * (off > MOST_PIXELS)


def labels(folder: Path) -> str:
    """Returns the polarisations that pyuvdata reads in both files, and casacore in the Measurement Set."""
    from casacore.tables import table
    from pyuvdata import UVData

    read = {name: UVData.from_file(str(folder / name)).get_pols() for name in ("x.uvh5", "x.ms")}
    with table(f"{folder / 'x.ms'}::POLARIZATION", ack=False) as one:
        types = one.getcell("CORR_TYPE", 0).tolist()
    return f"pyuvdata: {read}; casacore: CORR_TYPE {types}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    seed, wrong = parser.parse_args().seed, list[str]()
    iers.conf.auto_download = False
    for basis in ("XY", "RL"):
        with tempfile.TemporaryDirectory(prefix="autotune-imaged-") as name:
            folder = Path(name)
            array, _, source = write_night(folder, basis, seed)
            for out in ("x.ms", "x.uvh5"):
                correlate(array, Bands(16, 4, spectra_per_heap=252), folder / out, accumulate=5)
            print(labels(folder))
            wrong += image(folder, basis, source)
    print("\n".join(wrong) or "all right")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
