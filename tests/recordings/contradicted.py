"""Nights with one wrong statement each. What data, physics or the clock contradict is refused; what is right is not.

``SURE`` are the kinds that are always found, ``OTHERS`` those that recordings alone often cannot tell.
"""

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autotune.core.errors import UsageError
from autotune.engines.files.toml import written
from autotune.engines.jobs import Bands, Running, correlate

from .drawn import Night, Station, draw
from .written import write

Table = dict[str, Any]  # of an antenna in array.toml
MOST_NIGHTS = 200  # that are drawn for a statement
NEAR = 16  # frames on both sides of the end of a second that must have come
PHASE_CENTRE = "[phase_centre]\nright_ascension_deg = 123.25\ndeclination_deg = 48.5\n"
KM, DEGREES = 1e3, 57.29577951308232
DWINGELOO = np.array([3839348.97, 430403.5, 5057990.1])  # m, geocentric; other antennas are some km away
M5B_BYTES = 10_000


@dataclass
class Case:
    """A night as its files and array.toml state it, and the same with one wrong statement.

    ``told``: what the refusal must say, if data, physics or the clock contradict the statement.
    """

    right: list[Table]
    wrong: list[Table]
    told: tuple[str, ...] = ()
    can_insist: bool = True
    night: Night | None = None  # in place of the drawn one
    has_fringes: bool = False  # whether fringes are looked for, of which a line is the refusal
    insists: Table = field(default_factory=dict)  # what each antenna says besides trust_header, to keep the statement


Maker = Callable[[np.random.Generator, Night, Path], Case | None]  # None: the night has nothing of the kind


# ---------------------------------------------------------------------- files and tables
def tables(rng: np.random.Generator, night: Night, folder: Path) -> list[Table]:
    """Writes a night's files, and returns the tables that state them, with places of antennas."""
    found = []
    for station, (path, header) in zip(night.stations, write(night, folder), strict=True):
        said = {name: list(value) if isinstance(value, tuple) else value for name, value in header.items()}
        place = (DWINGELOO + rng.uniform(-3e3, 3e3, 3)).tolist()
        found.append({"name": station.name, "files": [path.name], "position_m": place, **said})
    return found


def changed(right: list[Table], number: int, **said: object) -> list[Table]:
    """Returns tables of which one says other values."""
    return [each | said if n == number else each for n, each in enumerate(right)]


def array_file(folder: Path, antennas: list[Table]) -> Path:
    """Writes array.toml, with a phase centre if antennas have places."""
    text = (
        ""
        if "position_m" not in antennas[0]
        else "[phase_centre]\nright_ascension_deg = 123.25\ndeclination_deg = 48.5\n"
    )
    for table in antennas:
        text += "[[antenna]]\n" + "".join(written(*each) for each in table.items())
    path = folder / "array.toml"
    path.write_text(text)
    return path


def refusal(night: Night, folder: Path, device: str, has_fringes: bool, antennas: list[Table]) -> str:
    """Returns the error with which a correlation of the tables ends, or lines about polarisations; "" without both."""
    bands = Bands(night.n_channels, night.taps, spectra_per_heap=night.spectra_per_heap)
    path, running = array_file(folder, antennas), Running(device=device)
    plot = folder / "fringes.png" if has_fringes else None
    try:
        made = correlate(path, bands, accumulate=night.accumulate, running=running, plot=plot, overwrite=has_fringes)
    except UsageError as error:
        return str(error)
    names = [each.antenna for each in made.info.antennas]
    return "\n".join(left.text(names) for left in made.residual_delays if left.products)


# ---------------------------------------------------------------------- always found
def a_rate_that_frames_count(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """VDIF over the end of a second, with a rate that is not the one of its frames' numbers."""
    for station in (each for each in night.stations if each.kind == "vdif"):
        n_frames, per_second = station.n // station.packet, int(night.rate_hz) // station.packet
        came = station.came[:, :: station.packet].all(axis=0)
        ends = [k for k in range(NEAR, n_frames - NEAR) if came[k - NEAR : k + NEAR].all()]
        factors = [f for f in (Fraction(1, 2), 2, Fraction(4, 5), Fraction(5, 4), 3) if abs(per_second * (f - 1)) >= 4]
        factors = [f for f in factors if (per_second * f) % 1 == 0]
        if ends and factors:
            end, factor = int(rng.choice(ends)), Fraction(factors[int(rng.integers(len(factors)))])
            seconds = station.first // station.packet // per_second + 1
            moved = replace(station, first=(seconds * per_second - end) * station.packet)
            alone = replace(night, stations=(moved,))
            right, wrong_hz = tables(rng, alone, folder), float(night.rate_hz * factor)
            told = f"sample_rate_hz={wrong_hz:.17g}, as it was given", f"{night.rate_hz:.17g} Hz"
            return Case(right, changed(right, 0, sample_rate_hz=wrong_hz), told)
    return None


def a_rate_that_packets_count(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """GUPPI RAW whose header has the time at which PKTIDX was 0, and that of PKTSTART."""
    night = replace(night, stations=tuple(each for each in night.stations if each.kind == "guppi")[:1])
    if not night.stations:
        return None
    right = tables(rng, night, folder)
    path, rate = folder / right[0]["files"][0], Fraction(night.rate_hz)
    n = int(10 * rate)
    header = {"SYNCTIME": int(night.stations[0].sync), "PKTSTART": n}
    day, second = divmod(Fraction(header["SYNCTIME"]) + n / rate, 86400)
    header |= {"STT_IMJD": int(day) + 40587, "STT_SMJD": int(second)}
    _rewrite_cards(path, header)
    wrong_hz = float(rate * Fraction(rng.choice([0.5, 0.75, 1.5, 2])))
    told = f"sample_rate_hz={wrong_hz:.17g}, as it was given", f"{night.rate_hz:.17g} Hz"
    return Case(right, changed(right, 0, sample_rate_hz=wrong_hz), told)


def _rewrite_cards(path: Path, header: dict[str, int]) -> None:
    """Replaces cards of each header, and adds those that it lacks."""
    data, made = path.read_bytes(), b""
    while data:
        n_cards = data.index(b"END".ljust(80)) // 80
        cards = [data[k * 80 : k * 80 + 80] for k in range(n_cards)]
        said = {card[:8].decode().strip(): card for card in cards}
        said |= {name: f"{name:<8}= {value:>20}".ljust(80).encode() for name, value in header.items()}
        n_block = int(said["BLOCSIZE"][10:30])
        begin = (n_cards + 1) * 80
        made += b"".join(said.values()) + b"END".ljust(80) + data[begin : begin + n_block]
        data = data[begin + n_block :]
    path.write_bytes(made)


def bits_of_mark_5b(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """Mark 5B over the end of a second, with other bits or channels, or another rate."""
    bits, n_channels = int(rng.integers(1, 3)), int(2 ** rng.integers(0, 4))
    per_second, n = int(rng.choice([126, 400, 1000])), int(rng.integers(40, 90))
    first = 3600 * per_second - int(rng.integers(NEAR, n - NEAR))
    frames = []
    for number in range(first, first + n):
        day_second = f"821{number // per_second:05}"
        words = 0xABADDEED, number % per_second, int(day_second, 16), 0
        frames.append(struct.pack("<4I", *words) + rng.bytes(M5B_BYTES))
    (folder / "Xx.m5b").write_bytes(b"".join(frames))
    rate_hz = float(per_second * 8 * M5B_BYTES // (bits * n_channels))
    said = {"n_channels": n_channels, "sample_bits": bits, "sample_rate_hz": rate_hz, "mjd": 56821, "channel": 0}
    right = [{"name": "Xx", "files": ["Xx.m5b"], "position_m": DWINGELOO.tolist(), "centre_frequency_hz": 1e9, **said}]
    kinds: list[dict[str, object]] = [{"sample_bits": 3 - bits}, {"n_channels": 2 * n_channels}]
    kinds += [{"n_channels": n_channels // 2}] if n_channels > 1 else []
    kinds += [{"sample_rate_hz": rate_hz * 2}, {"sample_rate_hz": rate_hz / 2}]
    wrong = kinds[int(rng.integers(len(kinds)))]
    stated = {**said, **wrong}
    told = f"{stated['n_channels']} channels of {stated['sample_bits']} bits, as they were given", f"count {per_second}"
    return Case(right, changed(right, 0, **wrong), told)


def bits_of_a_stated_length(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """A TOML header of packed samples, which states their number and bits that do not make the file's length."""
    numbers = [n for n, each in enumerate(night.stations) if each.kind == "toml" and not each.is_complex]
    if not numbers:
        return None
    number = int(rng.choice(numbers))
    right, station = tables(rng, night, folder), night.stations[number]
    path = folder / right[number]["files"][0]
    bits = int(rng.choice([each for each in range(2, 17) if each != station.bits]))
    text = path.read_text().replace(f"sample_bits = {station.bits}\n", f"sample_bits = {bits}\n")
    wrong = path.with_stem(f"{path.stem}-wrong")
    wrong.write_text(text)
    told = f"polarisations of {bits} bits", f"as {station.bits} bits make"
    return Case(right, changed(right, number, files=[wrong.name]), told)


def a_band_below_0_hz(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A frequency in MHz or GHz where Hz are asked for."""
    right, number = tables(rng, night, folder), int(rng.integers(len(night.stations)))
    wrong_hz = night.centre_hz / float(rng.choice([1e6, 1e9]))
    told = f"centre_frequency_hz={wrong_hz:g}, as it was given", "below 0"
    return Case(right, changed(right, number, centre_frequency_hz=wrong_hz), told)


def a_place_off_the_earth(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A position in km, feet, or degrees and a height, from the Earth's surface, or nowhere."""
    right, number = tables(rng, night, folder), int(rng.integers(len(night.stations)))
    x, y, z = right[number]["position_m"]
    radius = float(np.hypot(np.hypot(x, y), z))
    degrees = [DEGREES * np.arcsin(z / radius), DEGREES * np.arctan2(y, x), 72.0]
    kinds = [[x / KM, y / KM, z / KM], [x * 3.28084, y * 3.28084, z * 3.28084], degrees, [0.0, 0.0, 0.0]]
    kinds += [[100.0, 250.0, 3.0]]  # from the middle of the array
    return Case(right, changed(right, number, position_m=kinds[int(rng.integers(len(kinds)))]), ("position_m, as it",))


def an_end_in_the_future(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A start in milliseconds, or in a year to come."""
    right, number = tables(rng, night, folder), int(rng.integers(len(night.stations)))
    sync = night.stations[number].sync
    ahead = int(rng.integers(2 * 86400, 10**9)) + int(time.time())
    if rng.integers(2):
        told = "must be seconds since 1970"
        return Case(right, changed(right, number, sync_time_unix=float(sync * 1000)), (told,), can_insist=False)
    words = f"sync_time_unix={ahead}, as it was given", "days in the future"
    return Case(right, changed(right, number, sync_time_unix=float(ahead)), words)


def a_piece_of_another_station(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """A recording in two pieces, of which the second says another antenna's name."""
    station = night.stations[int(rng.integers(len(night.stations)))]
    step = station.packet if station.kind in ("vdif", "guppi") else 8 * station.packet
    n_steps = (station.n - station.n_repeated) // step
    if n_steps < 2:
        return None
    n = int(rng.integers(1, n_steps)) * step
    halves = _part(station, 0, n), _part(station, n, n_steps * step)
    found: dict[str, list[Table]] = {}
    for name, second in (("right", halves[1]), ("wrong", replace(halves[1], name="Zz"))):
        here = folder / name
        files = []
        for place, half in enumerate((halves[0], second)):
            (here / str(place)).mkdir(parents=True)
            ((path, header),) = write(replace(night, stations=(half,)), here / str(place))
            files.append(str(path.relative_to(folder)))
        said = {key: list(value) if isinstance(value, tuple) else value for key, value in header.items()}
        found[name] = [{"files": files, "position_m": DWINGELOO.tolist(), **said}]
        if station.n % 2:
            found[name][0]["name"] = "m000"
    return Case(found["right"], found["wrong"], (repr("Zz"), repr(station.name)), insists={"name": "m000"})


def _part(s: Station, begin: int, end: int) -> Station:
    here = slice(begin, end + s.n_repeated)
    return replace(s, first=s.first + begin, samples=s.samples[:, here], came=s.came[:, here])


def polarisations_exchanged(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A station that recorded Y first, of which X is said, with a source of 10 times the noise or more in each hand."""
    n, n_stations = 1 << 15, int(rng.integers(2, 4))
    n_spectra = n // (2 * night.n_channels) - night.taps
    least = 12 / np.sqrt(n_spectra * night.n_channels)  # a little more than 10, since filters and rounding lose some
    power = rng.uniform(least, 3 * least)  # of the source in each station, next to noise that makes it 1
    sky, stations = rng.normal(size=(2, n + 64)), []
    swapped = int(rng.integers(n_stations))
    for number in range(n_stations):
        late = int(rng.integers(0, night.n_channels // 4))
        wave = np.sqrt(power) * sky[:, late : late + n] + np.sqrt(1 - power) * rng.normal(size=(2, n))
        samples = np.clip(np.rint(wave * 30), -127, 127).astype(np.int64)
        samples = samples[::-1] if number == swapped else samples
        came = np.ones(samples.shape, bool)
        name, sync = f"{chr(65 + number)}n", Fraction(1_700_000_000)
        stations.append(Station(name, "toml", 8, False, False, sync, 0, 4096, samples, came))
    night = replace(night, stations=tuple(stations), accumulate=1 + n_spectra // (4 * night.spectra_per_heap))
    names = ("XY", "YX")
    tables_of = tables(rng, night, folder)
    for table in tables_of:
        del table["position_m"]
    right = [each | {"polarisations": names[number == swapped]} for number, each in enumerate(tables_of)]
    told = "in the cross hands", f'polarisations = "YX" of {stations[swapped].name}'
    wrong = changed(right, swapped, polarisations="XY")
    return Case(right, wrong, told, can_insist=False, has_fringes=True, night=night)


# ---------------------------------------------------------------------- what recordings often cannot tell
def a_rate_that_nothing_counts(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """Another rate for all antennas, or for one, of formats without counters."""
    if any(each.kind == "vdif" for each in night.stations):
        return None
    right, wrong_hz = tables(rng, night, folder), float(night.rate_hz * rng.choice([0.5, 2]))
    of_all = [each | {"sample_rate_hz": wrong_hz} for each in right]
    return Case(right, of_all if rng.integers(2) else changed(right, 0, sample_rate_hz=wrong_hz))


def a_band_the_other_way_round(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A band that rises where it falls, or falls where it rises."""
    right, number = tables(rng, night, folder), int(rng.integers(len(night.stations)))
    sideband = "upper" if night.stations[number].falls else "lower"
    return Case(right, changed(right, number, sideband=sideband))


def another_frequency(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A frequency that may be, for all antennas or for one."""
    right, wrong_hz = tables(rng, night, folder), night.centre_hz + float(rng.choice([-0.5, 1])) * night.rate_hz
    of_all = [each | {"centre_frequency_hz": wrong_hz} for each in right]
    return Case(right, of_all if rng.integers(2) else changed(right, 0, centre_frequency_hz=wrong_hz))


def a_start_that_may_be(rng: np.random.Generator, night: Night, folder: Path) -> Case:
    """A clock that is off, by a sample or by up to an hour."""
    right, number = tables(rng, night, folder), int(rng.integers(len(night.stations)))
    off = Fraction(int(rng.choice([1, 3600])) * round(float(rng.uniform(1, 1e6))), 10**6)
    off = off if off > 1 else 1 / Fraction(night.rate_hz)
    sync = float(night.stations[number].sync - off)
    return Case(right, changed(right, number, sync_time_unix=sync))


def the_places_of_two_antennas(rng: np.random.Generator, night: Night, folder: Path) -> Case | None:
    """The positions of two antennas, exchanged, or another place on the Earth."""
    if len(night.stations) < 2:
        return None
    right = tables(rng, night, folder)
    wrong = changed(right, 0, position_m=right[1]["position_m"])
    return Case(right, changed(wrong, 1, position_m=right[0]["position_m"]))


SURE: dict[str, Maker] = {
    "a rate, and frames count": a_rate_that_frames_count,
    "a rate, and packets count": a_rate_that_packets_count,
    "bits, channels or a rate of Mark 5B": bits_of_mark_5b,
    "bits, and the length tells": bits_of_a_stated_length,
    "a band below 0 Hz": a_band_below_0_hz,
    "a position off the Earth": a_place_off_the_earth,
    "an end in the future": an_end_in_the_future,
    "a piece of another station": a_piece_of_another_station,
    "polarisations, exchanged": polarisations_exchanged,
}
OTHERS: dict[str, Maker] = {
    "a rate, and nothing counts": a_rate_that_nothing_counts,
    "a band the other way round": a_band_the_other_way_round,
    "a frequency that may be": another_frequency,
    "a start that may be": a_start_that_may_be,
    "the positions of two antennas, exchanged": the_places_of_two_antennas,
}
KINDS = SURE | OTHERS


@dataclass(frozen=True)
class Finding:
    """What became of a drawn statement. ``fault``: what must not be; "" if all is well."""

    kind: str
    is_found: bool
    fault: str = ""


def tried(seed: int, folder: Path, kind: str = "", device: str = "host") -> Finding:
    """Draws a wrong statement (of ``kind``) and a night that may have it; correlates the right and the wrong array."""
    rng = np.random.default_rng([seed, 65])
    kind = kind or str(rng.choice(list(KINDS)))
    for number in range(seed, seed + MOST_NIGHTS):
        (here := folder / str(number)).mkdir()
        night = draw(number)
        if (case := KINDS[kind](rng, night, here)) is not None:
            return _judged(kind, case.night or night, here, case, device)
    raise AssertionError(f"seed {seed}: no night may have {kind}")


def _judged(kind: str, night: Night, folder: Path, case: Case, device: str) -> Finding:
    say = partial(refusal, night, folder, device, case.has_fringes)
    if right := say(case.right):
        return Finding(kind, False, f"a right night is refused: {right}")
    why = say(case.wrong)
    if kind in OTHERS:
        return Finding(kind, bool(why))
    told = (*case.told, "trust_header") if case.can_insist else case.told
    if lacking := [words for words in told if words not in why]:
        return Finding(kind, bool(why), f"{lacking} are not in the refusal: {why or 'none'}")
    if case.can_insist and "trust_header" in (
        insisted := say([each | {"trust_header": True} | case.insists for each in case.wrong])
    ):
        return Finding(kind, True, f"trust_header does not help: {insisted}")
    return Finding(kind, True)
