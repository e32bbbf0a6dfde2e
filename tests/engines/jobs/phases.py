"""What tests of phase centres share: correlation coefficients of whole dumps, and the phases that theory has."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from astropy.coordinates import SkyCoord

from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.jobs import Bands, Running, correlate
from autotune.engines.streams.phase_centre import PhaseCentre
from autotune.engines.streams.visibilities import VisibilityInfo

from ..plain_array import PlainArray

ON_HOST = Running(device="host")
C, TAPS = 16, 8  # of all bands, so that kernels are compiled once
J, I = np.tril_indices(6)  # noqa: E741
CROSS = J != I
BANDS = Bands(C, TAPS, spectra_per_heap=32)
DUMP = 4096  # samples


def inner(n_channels: int) -> slice:
    """Channels in which the source does not fade."""
    return slice(n_channels // 8 + 1, n_channels * 7 // 8)


def centre_of(source: SkyCoord) -> PhaseCentre:
    return PhaseCentre(source.dec.deg, right_ascension_deg=source.ra.deg, name="there")


@dataclass(frozen=True)
class Found:
    """Dumps that are whole, and the mean correlation coefficients of both polarisations.

    ``values``: complex [n_dumps, n_inner, n_cross], of inner channels.
    """

    info: VisibilityInfo
    timestamps: np.ndarray
    values: np.ndarray


def coefficients(info: VisibilityInfo, times: np.ndarray, visibilities: np.ndarray, present: np.ndarray) -> Found:
    whole = present.all(axis=1)
    values = visibilities[whole][:, inner(info.n_channels)][..., [0, 3], :] @ [1, 1j]
    power = values[:, :, J == I].real
    found = (values / np.sqrt(power[:, :, J] * power[:, :, I])).mean(axis=-1)
    return Found(info, times[whole], found[:, :, CROSS])


def correlated(
    night: Path, bands: Bands, at: PhaseCentre | str | None, heaps: int = DUMP // (32 * C), running: Running = ON_HOST
) -> Found:
    """Correlates a night into dumps of so many heaps."""
    made = correlate(night, bands, accumulate=heaps, phase_centre=at, running=running)
    return coefficients(made.info, made.timestamps, made.visibilities, made.present)


def stored(path: Path) -> Found:
    source = VisibilityDumps(path)
    dumps = list(source)
    source.close()
    times, present = np.array([dump.timestamp for dump in dumps]), np.array([dump.present for dump in dumps])
    return coefficients(source.info, times, np.array([dump.visibilities for dump in dumps]), present)


def largest_deg(found: np.ndarray, expected: np.ndarray | float = 1.0) -> float:
    """The largest phase of a channel and baseline, as a mean over either half of the dumps."""
    halves = np.array_split(found * np.conj(expected), 2)
    return float(max(np.degrees(np.abs(np.angle(half.mean(axis=0)))).max() for half in halves))


def channels(info: VisibilityInfo) -> np.ndarray:
    """The numbers of inner channels from the middle on."""
    return (np.arange(info.n_channels) - info.n_channels // 2)[inner(info.n_channels)]


def theory(array: PlainArray, found: Found, source: SkyCoord, centre: SkyCoord | None) -> np.ndarray:
    """e^(-2 pi i f (tau_i - tau_j)) in the middle of each dump, tau less that of the centre: [n_dumps, .., n_cross]."""
    times = found.timestamps - array.first + found.info.middle
    tau = array.tau_s(source, times) - (0 if centre is None else array.tau_s(centre, times))
    assert found.info.centre_frequency_hz is not None
    f = found.info.centre_frequency_hz + channels(found.info) * found.info.channel_width_hz
    late = (tau[I] - tau[J])[CROSS].T[:, np.newaxis]
    return np.asarray(np.exp(-2j * np.pi * f[:, np.newaxis] * late))
