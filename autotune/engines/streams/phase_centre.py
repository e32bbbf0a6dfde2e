"""The direction in which an array points."""

from dataclasses import dataclass
from fractions import Fraction

from .times import exact_time


@dataclass(frozen=True)
class PhaseCentre:
    """The direction whose fringes delays stop: ICRS, by its right ascension, or apparent, by an hour angle.

    An hour angle holds at a longitude and a time, in seconds since 1970, UTC. Angles are in degrees.
    """

    declination_deg: float
    right_ascension_deg: float | None = None
    hour_angle_deg: float | None = None
    longitude_deg: float | None = None
    time_unix: Fraction | None = None
    name: str = "phase centre"

    def __post_init__(self) -> None:
        for field in ("declination_deg", "right_ascension_deg", "hour_angle_deg", "longitude_deg"):
            if (value := getattr(self, field)) is not None:
                object.__setattr__(self, field, float(value))  # NumPy's numbers, too
        if self.time_unix is not None:
            object.__setattr__(self, "time_unix", exact_time(self.time_unix))
