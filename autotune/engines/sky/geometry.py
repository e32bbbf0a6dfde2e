"""Geometry of antennas and sources: geocentric positions, and directions on a sky that turns.

Axes are those of A. R. Thompson, J. M. Moran, G. W. Swenson, Interferometry and Synthesis in Radio Astronomy, 3rd
edition, section 4.1. Positions are in metres, angles in radians.
"""

from math import atan2, cos, pi, sin, sqrt

import numpy as np

from ..corrections.fringe_stopping import LIGHT_M_S

EQUATOR_M, FLATTENING = 6378137.0, 1 / 298.257223563  # WGS 84
EAST_WEST, RANDOM = "east-west", "random"


def geocentric(latitude: float, longitude: float, height_m: float) -> np.ndarray:
    """Returns x, y, z of a geodetic position, on the ellipsoid WGS 84: float64 [3]."""
    squashed = FLATTENING * (2 - FLATTENING)  # the ellipse's eccentricity, squared
    across = EQUATOR_M / sqrt(1 - squashed * sin(latitude) ** 2)
    x = (across + height_m) * cos(latitude)
    z = ((1 - squashed) * across + height_m) * sin(latitude)
    return np.array([x * cos(longitude), x * sin(longitude), z])


def array_positions(
    layout: str, n: int, spacing_m: float, site: tuple[float, float, float], rng: np.random.Generator
) -> np.ndarray:
    """Returns geocentric positions of antennas about a site's latitude, longitude and height: float64 [n, 3].

    EAST_WEST: on a line, ``spacing_m`` apart. RANDOM: anywhere on a disc, on which each has ``spacing_m`` squared.
    """
    latitude, longitude, _ = site
    east = np.array([-sin(longitude), cos(longitude), 0])
    north = np.array([-sin(latitude) * cos(longitude), -sin(latitude) * sin(longitude), cos(latitude)])
    if layout == EAST_WEST:
        along = spacing_m * (np.arange(n) - (n - 1) / 2)
        return np.asarray(geocentric(*site) + along[:, np.newaxis] * east)
    radius, angle = spacing_m * np.sqrt(n / pi * rng.random(n)), 2 * pi * rng.random(n)
    on_disc = np.outer(radius * np.cos(angle), east) + np.outer(radius * np.sin(angle), north)
    return np.asarray(geocentric(*site) + on_disc)


def axes(hour_angle: float, declination: float, longitude: float) -> np.ndarray:
    """Returns the directions in which u, v and w are measured, geocentric: float64 [3, 3], a row for each.

    w leads to the source, u to the east and v to the north of it (equation 4.1). ``hour_angle``: at ``longitude``.
    """
    h, d = hour_angle - longitude, declination  # the hour angle at longitude 0, where x is
    return np.array(
        [
            [sin(h), cos(h), 0],
            [-sin(d) * cos(h), sin(d) * sin(h), cos(d)],
            [cos(d) * cos(h), -cos(d) * sin(h), sin(d)],
        ]
    )


def delays_s(uvw_axes: np.ndarray, cosines: np.ndarray, baselines_m: np.ndarray) -> np.ndarray:
    """Returns the delays of waves at antennas after the reference point, in s: float64 [n_sources, n_antennas].

    tau = -(u l + v m + w sqrt(1 - l^2 - m^2)) / c: an antenna nearer to a source gets its waves earlier (section 3.1).

    Args:
        cosines: float64 [n_sources, 2], the direction cosines l and m of sources.
        baselines_m: float64 [n_antennas, 3], geocentric, from the reference point.
    """
    toward = np.sqrt(1 - np.sum(cosines**2, axis=1))
    directions = np.column_stack([cosines, toward]) @ uvw_axes
    return np.asarray(-(directions @ baselines_m.T) / LIGHT_M_S)


def longitude_of(position_m: np.ndarray) -> float:
    """Returns the longitude of a geocentric position."""
    return atan2(position_m[1], position_m[0])
