"""Reads sky.toml, which describes a simulated sky; docs/engines-sky.md has a full example."""

from math import radians
from pathlib import Path
from typing import Any

import numpy as np

from ...core import schema
from ..files import checks
from ..files.reading import refuse
from ..files.toml import checked, read_toml
from ..streams.times import moment
from .geometry import EAST_WEST, RANDOM, array_positions
from .spec import Antenna, Hole, PointSource, Sky, Tone

MOST_BYTES = 1 << 22
MOST_S = 86400  # the longest recording


LENGTH = checks.within(0, 1e9)
PHASE_CENTRE = schema.members_of(
    {"hour_angle_deg": checks.within(-360, 360), "declination_deg": checks.within(-90, 90)},
    needed=("hour_angle_deg", "declination_deg"),
)
ANTENNA = schema.dataclass_of(Antenna)
SOURCE = schema.dataclass_of(PointSource, needed=("l", "m", "flux"))
TONE = schema.dataclass_of(Tone, needed=("frequency_hz", "amplitude"))
HOLE = schema.dataclass_of(Hole)
ARRAY = schema.members_of(
    {
        "layout": schema.one_of((EAST_WEST, RANDOM)),
        "n_antennas": checks.integer(1, checks.MOST_ANTENNAS),
        "spacing_m": LENGTH,
        "latitude_deg": checks.within(-90, 90),
        "longitude_deg": checks.within(-360, 360),
        "height_m": checks.within(-1e4, 1e9),
    },
    needed=("layout", "n_antennas", "spacing_m", "latitude_deg", "longitude_deg"),
)
SKY = schema.members_of(
    {
        "sample_rate_hz": checks.rate,
        "centre_frequency_hz": checks.real,
        "sample_bits": checks.integer(2, 16),
        "n_pols": checks.integer(1, 2),
        "n_samples": checks.integer(8, checks.MOST_TIME),
        "duration_s": schema.as_amount,
        "first_timestamp": checks.integer(-(1 << 61), 1 << 61),
        "sync_time_unix": moment,
        "seed": checks.integer(0, checks.MOST_TIME),
        "phase_centre": PHASE_CENTRE,
        "noise": schema.members_of({"level": checks.within(0, 1e6)}, needed=("level",)),
        "array": ARRAY,
        **dict.fromkeys(("antenna", "source", "tone", "hole"), schema.sequence_of(lambda table: table)),
    },
    needed=("sample_rate_hz", "sample_bits", "n_pols", "phase_centre", "noise"),
)


def read_sky(path: Path, seed: int | None = None) -> Sky:
    """Reads sky.toml. ``seed`` is for a file without a seed.

    Raises:
        UsageError: for a file that cannot be read or is wrong, in one line with the table and the field; when no seed
            is given, or two are.
    """
    content = checked(path, "it", SKY, read_toml(path, MOST_BYTES))
    if seed is None and "seed" not in content:
        refuse(path, "it has no seed: write seed = 1 into it, or give --seed 1")
    if seed is not None and "seed" in content:
        refuse(path, f"it has a seed, {content['seed']}: leave that out, or --seed")
    seed = content.get("seed", seed)
    hour_angle, declination = content["phase_centre"]["hour_angle_deg"], content["phase_centre"]["declination_deg"]
    sky = Sky(
        sample_rate_hz=content["sample_rate_hz"],
        sample_bits=content["sample_bits"],
        n_pols=content["n_pols"],
        n_samples=_n_samples(path, content),
        first_timestamp=content.get("first_timestamp", 0),
        seed=seed,
        hour_angle=radians(hour_angle),
        declination=radians(declination),
        noise_level=content["noise"]["level"],
        antennas=_antennas(path, content, seed),
        sources=_tables(path, content, "source", SOURCE),
        tones=_tables(path, content, "tone", TONE),
        holes=_tables(path, content, "hole", HOLE),
        centre_frequency_hz=content.get("centre_frequency_hz"),
        sync_time_unix=content.get("sync_time_unix"),
    )
    _fit(path, sky)
    return sky


def _tables(path: Path, content: dict[str, Any], name: str, check: schema.Check) -> tuple[Any, ...]:
    """Returns what the tables of a name say. Errors state the table's number."""
    return tuple(checked(path, f"[[{name}]] {i}", check, table) for i, table in enumerate(content.get(name, ()), 1))


def _n_samples(path: Path, content: dict[str, Any]) -> int:
    if ("n_samples" in content) == ("duration_s" in content):
        refuse(path, "it must have either n_samples or duration_s")
    n = content["n_samples"] if "n_samples" in content else round(content["duration_s"] * content["sample_rate_hz"])
    if not 8 <= n <= MOST_S * content["sample_rate_hz"]:
        refuse(path, f"it says {n} samples, must be 8 or more, and {MOST_S} seconds at most")
    return int(n)


def _antennas(path: Path, content: dict[str, Any], seed: int) -> tuple[Antenna, ...]:
    if ("antenna" in content) == ("array" in content):
        refuse(path, "it must have either [[antenna]] tables or one [array]")
    if "antenna" in content:
        return _tables(path, content, "antenna", ANTENNA)
    array = content["array"]
    site = radians(array["latitude_deg"]), radians(array["longitude_deg"]), float(array.get("height_m", 0))
    rng = np.random.default_rng([seed, 2])  # 0 and 1 are those of ``samples``
    positions = array_positions(array["layout"], array["n_antennas"], array["spacing_m"], site, rng)
    return tuple(Antenna(f"m{i:03d}", (x, y, z)) for i, (x, y, z) in enumerate(positions.tolist()))


def _fit(path: Path, sky: Sky) -> None:
    """Raises UsageError when parts do not fit together, though each is right."""
    names = {antenna.name for antenna in sky.antennas}
    if not names:
        refuse(path, "it has no antenna")
    if len(names) < len(sky.antennas):
        refuse(path, f"it has {len(sky.antennas)} antennas of {len(names)} names: each needs its own")
    if sky.low < 0:
        refuse(path, f"centre_frequency_hz={sky.centre_frequency_hz:g} is below a quarter of sample_rate_hz")
    for number, source in enumerate(sky.sources, 1):
        if source.l**2 + source.m**2 > 1:
            refuse(path, f"[[source]] {number} has l={source.l:g}, m={source.m:g}: l^2 + m^2 must be at most 1")
    for number, tone in enumerate(sky.tones, 1):
        if unknown := set(tone.antennas or ()) - names:
            refuse(path, f"[[tone]] {number} is at antenna {min(unknown)!r}, which is not there")
        if not 0 <= tone.frequency_hz / sky.sample_rate_hz - sky.low <= 0.5:
            low, high = (each * sky.sample_rate_hz for each in (sky.low, sky.low + 0.5))
            refuse(path, f"[[tone]] {number} has frequency_hz={tone.frequency_hz:g}; the band is {low:g} to {high:g}")
    for number, hole in enumerate(sky.holes, 1):
        end = hole.start + hole.n_samples
        if hole.antenna not in names or hole.pol >= sky.n_pols or not hole.n_samples or end > sky.n_samples:
            refuse(path, f"[[hole]] {number} is not within the {sky.n_samples} samples of an antenna's polarisation")
