"""The description of a simulated sky: antennas, sources, tones, holes, and the sampling."""

from dataclasses import dataclass
from fractions import Fraction
from math import degrees, radians
from typing import Annotated

import numpy as np

from ...core import schema
from ..files import checks
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo
from .geometry import longitude_of

RESERVED = ("sky", "delays", checks.ALL_OTHERS)  # names of other files, and what stands for all antennas


def file_name(value: object) -> str:
    """Checks for an antenna's name, which its files have, too."""
    name: str = checks.beside(value)
    if name in RESERVED or name.startswith("."):
        raise schema.Unsound(f"is {schema.value_text(value)}, which no antenna can be called")
    return name


COSINE, ANGLE, COUNT = checks.within(-1, 1), checks.within(-360, 360), checks.integer(0, checks.MOST_TIME)
AMOUNT = checks.within(0, 1e6)


@dataclass(frozen=True)
class Antenna:
    """An antenna and its geocentric position."""

    name: Annotated[str, file_name]
    position_m: Annotated[tuple[float, float, float], checks.POSITION]


@dataclass(frozen=True)
class PointSource:
    """White noise from one direction, the same at all antennas."""

    l: Annotated[float, COSINE]  # noqa: E741 - the field's name: direction cosine to the east of the phase centre
    m: Annotated[float, COSINE]  # direction cosine to the north
    flux: Annotated[float, AMOUNT]  # power in a polarisation, mean of both, as a share of the noise's
    polarised: Annotated[float, checks.within(0, 1)] = 0.0  # share of it that is linearly polarised
    angle_deg: Annotated[float, ANGLE] = 0.0  # its angle, from polarisation 0 towards polarisation 1

    @property
    def components(self) -> np.ndarray:
        """Returns the rms of two independent noises in each polarisation: float64 [pol, noise]."""
        angle = radians(self.angle_deg)
        along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        strengths = np.sqrt(self.flux * np.array([1 + self.polarised, 1 - self.polarised]))
        return np.asarray(np.column_stack([along, across]) * strengths)


@dataclass(frozen=True)
class Tone:
    """amplitude cos(2 pi f t + phase), at both polarisations of some antennas, from the first sample on."""

    frequency_hz: Annotated[float, checks.real]  # the sky frequency
    amplitude: Annotated[float, AMOUNT]  # quantiser units
    phase: Annotated[float, checks.real] = 0.0  # radians
    antennas: Annotated[tuple[str, ...] | None, schema.sequence_of(schema.as_word)] = None  # None: all


@dataclass(frozen=True)
class Hole:
    """Samples that never came."""

    antenna: Annotated[str, schema.as_word]
    pol: Annotated[int, checks.integer(0, 1)]
    start: Annotated[int, COUNT]  # samples after the recording's first one
    n_samples: Annotated[int, COUNT]


@dataclass(frozen=True)
class Sky:
    """All that a simulated recording depends on. Angles are in radians."""

    sample_rate_hz: float
    sample_bits: int
    n_pols: int
    n_samples: int
    first_timestamp: int
    seed: int
    hour_angle: float  # the phase centre's, at the first sample and the array's reference point
    declination: float
    noise_level: float  # rms in units of the quantiser
    antennas: tuple[Antenna, ...]
    sources: tuple[PointSource, ...] = ()
    tones: tuple[Tone, ...] = ()
    holes: tuple[Hole, ...] = ()
    centre_frequency_hz: float | None = None
    sync_time_unix: Fraction | None = None

    @property
    def centre(self) -> float:
        """Returns the sky's frequency in the middle of the band, in cycles a sample; a quarter if none is stated."""
        return 0.25 if self.centre_frequency_hz is None else self.centre_frequency_hz / self.sample_rate_hz

    @property
    def low(self) -> float:
        """Returns the sky's frequency that the samples have at 0, in cycles a sample."""
        return self.centre - 0.25

    @property
    def positions_m(self) -> np.ndarray:
        """Returns float64 [n_antennas, 3], geocentric."""
        return np.array([antenna.position_m for antenna in self.antennas])

    @property
    def longitude(self) -> float:
        """Returns the longitude of the reference point, which is the mean of all positions."""
        return longitude_of(self.positions_m.mean(axis=0))

    @property
    def phase_centre(self) -> PhaseCentre | None:
        """Returns the direction whose fringes the recording's delays stop; None if it is not said when it was seen."""
        if self.sync_time_unix is None:
            return None
        return PhaseCentre(
            declination_deg=degrees(self.declination),
            hour_angle_deg=degrees(self.hour_angle),
            longitude_deg=degrees(self.longitude),
            time_unix=self.sync_time_unix + self.first_timestamp / Fraction(self.sample_rate_hz),
        )

    def info(self, antenna: Antenna) -> SampleInfo:
        """Returns the header of an antenna's samples."""
        return SampleInfo(
            sample_bits=self.sample_bits,
            n_pols=self.n_pols,
            sample_rate_hz=self.sample_rate_hz,
            packet=8,
            n_samples=self.n_samples,
            first_timestamp=self.first_timestamp,
            antenna=antenna.name,
            position_m=antenna.position_m,
            centre_frequency_hz=self.centre_frequency_hz,
            sync_time_unix=self.sync_time_unix,
        )
