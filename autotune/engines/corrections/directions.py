"""Directions on the sky, with astropy: from text, in ICRS, and as seen by an array on the Earth.

Nothing is downloaded. The Earth's orientation comes from astropy's installed table (astropy-iers-data).
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import degrees, hypot
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo

DEGREES = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LEAST_RADIUS_M, MOST_RADIUS_M = 6.3e6, 6.4e6
MOST_UT1_S = 0.9  # the largest difference between UT1 and UTC
ARCSEC_A_SECOND = 15.04  # rotation of the Earth


def direction_of_text(text: str) -> PhaseCentre:
    """Returns the ICRS direction in a text: "12h29m06.7s +2d03m09s", or in degrees "187.2779 2.0524".

    The right ascension is in hours if it is written in three parts without letters, "12:29:06.7". Names of sources are
    not looked up.

    Raises:
        UsageError: when it is not a direction, or astropy is not installed.
    """
    must_have_astropy()
    from astropy.coordinates import SkyCoord

    words = text.replace(",", " ").split()
    are_degrees = len(words) == 2 and all(DEGREES.fullmatch(word) for word in words)
    try:
        seen = SkyCoord(" ".join(words), unit=("deg" if are_degrees else "hourangle", "deg"), frame="icrs")
    except (ValueError, TypeError, IndexError):
        raise UsageError(
            f"a phase centre is {text!r}, must be a right ascension and a declination of ICRS, as "
            '"12h29m06.7s +2d03m09s", or "187.2779 2.0524" in degrees; names are not looked up'
        ) from None
    return PhaseCentre(float(seen.dec.deg), right_ascension_deg=float(seen.ra.deg), name=" ".join(words))


def location_of(positions_m: np.ndarray) -> Any:
    """Returns astropy's EarthLocation of an array: the mean of its positions, float64 [n_antennas, 3]."""
    from astropy import units
    from astropy.coordinates import EarthLocation

    return EarthLocation.from_geocentric(*positions_m.mean(axis=0), unit=units.m)


def icrs_of(centre: PhaseCentre, location: Any) -> tuple[float, float]:
    """Returns a phase centre's right ascension and declination in radians. ``location`` sees an apparent one."""
    from astropy import units
    from astropy.coordinates import HADec, SkyCoord
    from astropy.time import Time

    if centre.right_ascension_deg is not None:
        return float(np.radians(centre.right_ascension_deg)), float(np.radians(centre.declination_deg))
    assert centre.time_unix is not None and centre.hour_angle_deg is not None and centre.longitude_deg is not None
    hour_angle_deg = centre.hour_angle_deg + location.lon.deg - centre.longitude_deg
    with offline():
        seen = HADec(
            hour_angle_deg * units.deg,
            centre.declination_deg * units.deg,
            obstime=Time(float(centre.time_unix), format="unix"),
            location=location,
        )
        icrs = SkyCoord(seen).icrs
    return float(icrs.ra.rad), float(icrs.dec.rad)


def towards(icrs: tuple[float, float], location: Any, times: Any) -> np.ndarray:
    """Returns the direction of a source from a place on the Earth: float64 [n_times, 3], geocentric axes (ITRS).

    It includes precession, nutation, polar motion, and the aberration of the Earth's motion and rotation, but not
    refraction.

    Args:
        icrs: right ascension and declination, radians.
        location: astropy's EarthLocation.
        times: astropy's Time [n_times].
    """
    from astropy import units
    from astropy.coordinates import HADec, SkyCoord

    with offline():
        source = SkyCoord(*icrs, unit=units.rad, frame="icrs")
        seen = source.transform_to(HADec(obstime=times, location=location))
    at_greenwich, declination = seen.ha.rad - location.lon.rad, seen.dec.rad
    across = np.cos(declination)
    return np.column_stack([across * np.cos(at_greenwich), -across * np.sin(at_greenwich), np.sin(declination)])


def orientation_error(time: Any) -> tuple[str, float]:
    """Returns text about a problem with the Earth's orientation at a time, and the possible error in arc seconds.

    The text is empty if the orientation was measured. ``time``: astropy's Time.
    """
    from astropy.utils import iers

    with offline():
        table = iers.earth_orientation_table.get()
        held, status = table.ut1_utc(time, return_status=True)
    if status in (iers.FROM_IERS_A, iers.FROM_IERS_B):
        return "", 0.0
    if status != iers.FROM_IERS_A_PREDICTION:
        return "is not in", ARCSEC_A_SECOND * (MOST_UT1_S + abs(float(held.value)))
    row = table[min(int(np.searchsorted(table["MJD"].value, time.mjd)), len(table) - 1)]
    motion = [float(row[name].value) for name in ("e_PM_x_A", "e_PM_y_A")]
    return "is only predicted in", hypot(ARCSEC_A_SECOND * float(row["e_UT1_UTC_A"].value), *motion)


def least_elevation(directions: np.ndarray, location: Any) -> float:
    """Returns the lowest elevation of a source in degrees. ``directions`` come from ``towards``."""
    latitude, longitude = location.lat.rad, location.lon.rad
    up = [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    return degrees(float(np.arcsin(np.min(directions @ up))))


def why_not_geocentric(antenna: SampleInfo) -> str:
    """Returns why an antenna's position is not geocentric; "" if it may be."""
    radius_m = float(np.linalg.norm(antenna.position_m or ()))
    if LEAST_RADIUS_M < radius_m < MOST_RADIUS_M:
        return ""
    return f"antenna {antenna.antenna} is {radius_m / 1e3:.6g} km from the Earth's centre, not geocentric"


@contextmanager
def offline() -> Iterator[None]:
    """Keeps astropy from the network and its warnings from the terminal. Old tables are used as they are."""
    from astropy.utils import iers

    with (
        warnings.catch_warnings(),
        iers.conf.set_temp("auto_download", False),
        iers.conf.set_temp("auto_max_age", None),
        iers.conf.set_temp("iers_degraded_accuracy", "warn"),
    ):
        warnings.simplefilter("ignore")
        yield


def must_have_astropy() -> None:
    """Raises UsageError when astropy is not installed."""
    try:
        import astropy  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"a phase centre needs astropy ({error}): pip install astropy, or autotune's extra uv"
        ) from None
