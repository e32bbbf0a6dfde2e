"""An array under one source of ICRS, in plain NumPy: no engine and nothing of ``sky`` is in it.

The source's direction is astropy's AltAz, and baselines are east, north and up of the array's middle. Station i samples
by its own clock what the middle gets: at a time u it has S(u - tau_i(u)), tau = -(direction, baseline) / c, mixed down
from the sky.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from astropy import units
from astropy.coordinates import AltAz, EarthLocation, SkyCoord
from astropy.time import Time
from astropy.utils import iers

from autotune.engines.streams.times import exact_time, time_text

iers.conf.auto_download = False
LIGHT_M_S = 299792458.0


@dataclass(frozen=True)
class PlainArray:
    """Antennas about a place, and when and how they sample; a delay is linear in time over a few seconds."""

    seed: int
    n_antennas: int = 6
    across_m: float = 1000.0
    rate_hz: float = 0.83e6
    centre_hz: float = 1.42e9
    n: int = 1 << 20
    is_complex: bool = True
    is_lower: bool = False  # of real samples: their band falls with frequency

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        where = EarthLocation.from_geodetic(rng.uniform(-180, 180), rng.uniform(-60, 60), rng.uniform(0, 3000))
        enu = rng.uniform(-1, 1, (self.n_antennas, 3)) * [1, 1, 0.05]
        enu -= enu.mean(axis=0)
        longest = max(np.linalg.norm(a - b) for a in enu for b in enu)
        lon, lat = where.lon.rad, where.lat.rad
        east = [-np.sin(lon), np.cos(lon), 0]
        north = [-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)]
        up = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
        enu *= self.across_m / longest
        for name, value in {
            "where": where,
            "enu_m": enu,
            "positions_m": np.array([x.to_value("m") for x in where.geocentric]) + enu @ np.array([east, north, up]),
            "sync": exact_time(f"{rng.integers(1_400_000_000, 1_750_000_000)}.{rng.integers(10**9):09}"),
            "first": int(rng.integers(10**9)),
            "altitude_azimuth_deg": (rng.uniform(35, 75), rng.uniform(0, 360)),
        }.items():
            object.__setattr__(self, name, value)

    def times(self, samples: np.ndarray) -> Time:
        """Times of samples that count from the first one."""
        begin = self.sync + Fraction(self.first) / Fraction(self.rate_hz)
        return Time(float(begin // 1), float(begin % 1) + np.asarray(samples) / self.rate_hz, format="unix")

    def source(self) -> SkyCoord:
        """A source that is up."""
        altitude, azimuth = self.altitude_azimuth_deg * units.deg
        frame = AltAz(obstime=self.times(0), location=self.where)
        return SkyCoord(az=azimuth, alt=altitude, frame=frame).icrs

    def tau_s(self, source: SkyCoord, samples: np.ndarray) -> np.ndarray:
        """float64 [n_antennas, n]: how late waves are, at the stations' times."""
        nodes = np.linspace(-0.01 * self.n, 1.01 * self.n, 5)
        seen = source.transform_to(AltAz(obstime=self.times(nodes), location=self.where))
        alt, az = seen.alt.rad, seen.az.rad
        towards = np.array([np.cos(alt) * np.sin(az), np.cos(alt) * np.cos(az), np.sin(alt)])
        late = -(self.enu_m @ towards) / LIGHT_M_S
        middle = nodes[2]
        return np.array([np.polyval(np.polyfit(nodes - middle, row, 2), samples - middle) for row in late])

    def samples(self, sources: list[tuple[SkyCoord, float]]) -> list[np.ndarray]:
        """Samples of each antenna, [1, n], of white noise from each source of an amplitude."""
        rng = np.random.default_rng(self.seed + 1)
        n, made = np.arange(self.n), np.zeros((self.n_antennas, self.n), complex)
        width = 1.0 if self.is_complex else 0.5  # of the rate, that the band has
        frequencies = np.fft.fftfreq(self.n)
        for source, amplitude in sources:
            tau = self.tau_s(source, n)
            noise = np.fft.fft(rng.normal(size=(self.n, 2)) @ [1, 1j]) * (abs(frequencies) < 0.48 * width)
            for row, late in zip(made, tau, strict=True):
                envelope = np.fft.ifft(noise * np.exp(-2j * np.pi * frequencies * late[self.n // 2] * self.rate_hz))
                row += amplitude * envelope * np.exp(-2j * np.pi * self.centre_hz * late)
        if self.is_complex:
            return [row[np.newaxis].astype(np.complex64) for row in made]
        quarter = np.exp(0.5j * np.pi * ((n + self.first) % 4))
        made = made.conj() if self.is_lower else made
        real = (made * quarter).real * 20 / np.std(made[0].real)
        return [np.rint(row).clip(-127, 127).astype(np.int8)[np.newaxis] for row in real]

    def write(self, folder: Path, sources: list[tuple[SkyCoord, float]]) -> Path:
        """Writes a recording of each antenna, of two polarisations that are alike; returns the folder."""
        folder.mkdir()
        for number, (row, place) in enumerate(zip(self.samples(sources), self.positions_m.tolist(), strict=True)):
            np.repeat(row, 2, axis=0).tofile(folder / f"m{number}.bin")
            (folder / f"m{number}.toml").write_text(
                f'file = "m{number}.bin"\nantenna = "m{number}"\nn_pols = 2\nposition_m = {place}\n'
                f"sample_bits = {64 if self.is_complex else 8}\nsample_rate_hz = {self.rate_hz}\n"
                f'first_timestamp = {self.first}\nsync_time_unix = "{time_text(self.sync)}"\n'
                f'centre_frequency_hz = {self.centre_hz}\nsideband = "{"lower" if self.is_lower else "upper"}"\n'
            )
        return folder
