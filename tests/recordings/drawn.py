"""What is drawn: stations with formats, clocks, senses and losses of their own, under one sky."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np

KINDS = ("toml", "vdif", "dada", "guppi")
RATES_HZ = (400e3, 390625.0, 1e6, 1.6e6, 2e6, 32e6)  # each has a decimal number of microseconds a sample
MOST_UNIT = 8192  # samples of a frame
LEAST_SPECTRA = 192  # of a dump, that coefficients may be compared
MOST = {2: 3, 4: 7, 8: 127}  # the largest part of a sample that is drawn: band-turned ones have no most negative value


@dataclass(frozen=True)
class Station:
    """The samples of one antenna: as they lie in the file, and which of them came."""

    name: str
    kind: str
    bits: int  # of a sample's part
    is_complex: bool
    falls: bool  # with frequency
    sync: Fraction  # UTC of time 0, seconds since 1970
    first: int  # timestamp of the first sample
    packet: int  # samples of a frame, of a block without what it repeats, or of a packet of other formats
    samples: np.ndarray = field(repr=False)  # int64, or complex128 of integers, [n_pols, n], as recorded
    came: np.ndarray = field(repr=False)  # bool [n_pols, n]
    n_threads: int = 2  # of VDIF: the first ones are polarisations
    n_channels: int = 1  # of DADA and GUPPI RAW: the last one is wanted
    n_repeated: int = 0  # samples that a block of GUPPI RAW repeats

    @property
    def n(self) -> int:
        return self.samples.shape[1]

    @property
    def n_read(self) -> int:
        """Returns the samples that are read: whole packets, and all of a last block."""
        return self.n if self.kind == "guppi" else self.n // self.packet * self.packet


@dataclass(frozen=True)
class Night:
    """What is recorded, and what is to be made of it."""

    seed: int
    rate_hz: float
    centre_hz: float
    stations: tuple[Station, ...]
    n_channels: int
    taps: int
    spectra_per_heap: int
    accumulate: int
    chunk: int

    def __str__(self) -> str:
        kinds = ", ".join(
            f"{s.kind} {s.bits} bits {'complex' if s.is_complex else 'real'}{' falling' * s.falls} from {s.first}"
            f"{float((s.sync - self.stations[0].sync) * Fraction(self.rate_hz)) % 1:+.3f}"
            f"{'' if s.came[:, : s.n_read].all() else ' with gaps'}"
            for s in self.stations
        )
        return (
            f"seed {self.seed}: {kinds}; {self.n_channels} channels, {self.taps} taps, {self.spectra_per_heap} spectra "
            f"a heap, {self.accumulate} heaps a dump, chunks of {self.chunk}, {self.rate_hz:g} Hz"
        )


def draw(seed: int) -> Night:
    """Draws a night from a seed."""
    rng = np.random.default_rng(seed)
    is_complex = bool(rng.integers(2))
    rate_hz = float(rng.choice(RATES_HZ))
    n_channels, taps = int(2 * rng.integers(4, 21)), int(rng.integers(1, 9))
    spectra_per_heap = int(4 * rng.integers(1, 9))
    n_stations, n_pols = int(rng.choice([1, 2, 2, 3])), 2
    if n_stations == 1:
        n_pols = int(rng.choice([1, 2]))
    step = n_channels * (1 if is_complex else 2)
    heap = step * spectra_per_heap
    accumulate = 1 if n_stations == 1 else -(-LEAST_SPECTRA // spectra_per_heap) + int(rng.integers(4))
    n = int(heap * accumulate * rng.uniform(2.5, 4.5) + heap * rng.uniform(2, 9))
    second = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) + int(rng.integers(1, 360 * 86400))
    sky = _Sky(rng, is_complex, n_pols, 4 * max(n, MOST_UNIT))
    stations = []
    for number in range(n_stations):
        clock = _clock(rng, rate_hz, second, int(rng.integers(0, n // 3)), is_complex)
        stations.append(_station(rng, f"{chr(65 + number)}n", clock, is_complex, sky, n, second, rate_hz))
    return Night(
        seed,
        rate_hz,
        float(rng.integers(10**8, 2 * 10**9)),
        tuple(stations),
        n_channels,
        taps,
        spectra_per_heap,
        accumulate,
        chunk=int(2 ** rng.uniform(10, 17)),
    )


@dataclass(frozen=True)
class _Clock:
    kind: str
    bits: int
    sync: Fraction
    first: int
    unit: int  # samples of a frame or a block; 1: there are none


def _clock(rng: np.random.Generator, rate_hz: float, second: int, start: int, is_complex: bool) -> _Clock:
    """Draws a format whose first sample is some ``start`` samples after ``second``."""
    kinds = [kind for kind in KINDS if is_complex or kind != "guppi"]  # GUPPI RAW is always complex
    if int(rate_hz) % 32:
        kinds.remove("vdif")
    kind = str(rng.choice(kinds))
    if kind == "vdif":
        unit = _frame(rng, rate_hz)
        year = datetime.fromtimestamp(second, UTC).year
        epochs = [datetime(year, 1, 1, tzinfo=UTC), datetime(year - 1, 7, 1, tzinfo=UTC)]
        sync = Fraction(int(epochs[int(rng.integers(2))].timestamp()))
        first = (int((second - sync) * int(rate_hz)) + start) // unit * unit
        return _Clock(kind, int(rng.choice([2, 8])), sync, first, unit)
    part = Fraction(int(rng.integers(10**9)), 10**9) if rng.integers(2) else Fraction(0)
    sync = second - int(rng.integers(1000)) + part
    first = int((second - sync) * int(rate_hz)) + start
    if kind == "guppi":
        unit = int(rng.choice([64, 100, 256, 1000]))
        return _Clock(kind, 8, sync, first // unit * unit, unit)
    bits = int(rng.integers(2, 17)) if kind == "toml" and not is_complex else 8
    return _Clock(kind, bits, sync, first, 1)


def _frame(rng: np.random.Generator, rate_hz: float) -> int:
    """Draws the samples of a frame, of which whole ones go into a second, and whole 8 bytes into a frame."""
    rate = int(rate_hz)
    return int(rng.choice([size for size in range(32, MOST_UNIT + 1, 32) if rate % size == 0]))


class _Sky:
    """Noise of a band, periodic, that can be taken at any time: its spectrum rises with the frequency of the sky."""

    def __init__(self, rng: np.random.Generator, is_complex: bool, n_pols: int, n: int) -> None:
        self.is_complex, self.n = is_complex, 2 * n
        n_lines = self.n if is_complex else self.n // 2 + 1
        self.lines = rng.normal(size=(n_pols, n_lines, 2)) @ [1, 1j]
        self.lines[1:] = 0.6 * self.lines[1:] + 0.8 * self.lines[:1]  # polarisations correlate, too
        if not is_complex:
            self.lines[:, [0, -1]] = 0

    def at(self, start: float, n: int, falls: bool) -> np.ndarray:
        """Returns the voltages from ``start`` on, of rms 1; ``falls``: mixed with a frequency above the band."""
        lines = self.lines
        if falls:
            lines = np.conj(np.roll(lines[:, ::-1], 1, axis=1) if self.is_complex else lines[:, ::-1])
        frequency = np.fft.fftfreq(self.n) if self.is_complex else np.fft.rfftfreq(self.n)
        lines = lines * np.exp(2j * np.pi * frequency * (start % self.n))
        made = np.fft.ifft(lines) if self.is_complex else np.fft.irfft(lines, self.n)
        return made[:, :n] / made.std()


def _station(
    rng: np.random.Generator,
    name: str,
    clock: _Clock,
    is_complex: bool,
    sky: _Sky,
    n: int,
    second: int,
    rate_hz: float,
) -> Station:
    n_pols = len(sky.lines)
    n_repeated = int(rng.integers(1, clock.unit)) if clock.kind == "guppi" and rng.integers(2) else 0
    n = _whole(rng, clock, n) + n_repeated
    start = (clock.sync - second) * Fraction(rate_hz) + clock.first
    falls = bool(rng.integers(2))
    noise = rng.normal(size=(n_pols, n, 2)) @ [1, 1j] / 2**0.5 if is_complex else rng.normal(size=(n_pols, n))
    wave = sky.at(float(start), n, falls) + rng.uniform(0.3, 1) * noise
    samples = _quantised(wave, clock)
    packet = clock.unit if clock.unit > 1 else min(4096, max(8, n & -n))
    came = _losses(rng, n_pols, n, packet, clock.kind, n_repeated)
    n_channels = int(rng.choice([1, 4])) if clock.kind in ("dada", "guppi") else 1
    n_threads = n_pols if rng.integers(2) else n_pols + 2
    return Station(
        name,
        clock.kind,
        clock.bits,
        is_complex,
        falls,
        clock.sync,
        clock.first,
        packet,
        samples,
        came,
        n_threads,
        n_channels,
        n_repeated,
    )


def _whole(rng: np.random.Generator, clock: _Clock, n: int) -> int:
    """Returns a length of whole frames or blocks, or any: of bytes then, at least."""
    return -(-n // clock.unit) * clock.unit if clock.unit > 1 else n + int(rng.integers(8))


def _quantised(wave: np.ndarray, clock: _Clock) -> np.ndarray:
    most = MOST.get(clock.bits, 2 ** (clock.bits - 1) - 1)
    if clock.kind == "vdif" and clock.bits == 2:
        return _parts(wave, lambda part: np.clip(2 * np.floor(part) + 1, -3, 3))
    if clock.kind == "toml" and clock.bits == 2:
        most = 1
    level = max(1.0, most / 4)
    return _parts(wave, lambda part: np.clip(np.rint(level * part), -most, most))


def _parts(wave: np.ndarray, quantise: object) -> np.ndarray:
    assert callable(quantise)
    if np.iscomplexobj(wave):
        return np.asarray(quantise(wave.real) + 1j * quantise(wave.imag))
    return np.asarray(quantise(wave)).astype(np.int64)


def _losses(rng: np.random.Generator, n_pols: int, n: int, packet: int, kind: str, n_repeated: int) -> np.ndarray:
    """Draws which samples came. The first and the last packet always do: a recording ends where its last one does."""
    n_packets = n // packet
    came = np.ones((n_pols, n_packets), bool)
    if kind != "dada" and n_packets > 8 and rng.integers(3):
        for _ in range(int(rng.integers(1, 3))):
            begin = int(rng.integers(1, n_packets - 1))
            end = min(n_packets - 1, begin + int(n_packets * rng.uniform(0, 0.3)) + 1)
            pols = slice(None) if kind == "guppi" or rng.integers(2) else int(rng.integers(n_pols))
            came[pols, begin:end] = False
    flags = np.zeros((n_pols, n), bool)
    for pol, number in np.argwhere(came).tolist():
        flags[pol, number * packet : (number + 1) * packet + n_repeated] = True
    return flags
