"""A simulated recording through both engines on host: its delays stop the fringes, and visibilities are theory's."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import cos, pi, radians, sin, sqrt
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.files.delay_file import read_delays
from autotune.engines.files.opening import open_samples
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.sky.sky_samples import FADE
from autotune.engines.streams.in_memory import KeptVisibilities, KeptVoltages
from autotune.engines.streams.voltages import Batches, VoltageInfo
from autotune.engines.x.engine import XEngine

from ...interferometer import autocorrelation, in_channel

C, TAPS, HEAP, PER_DUMP = 64, 4, 32, 8
L = 2 * C
WEIGHTS = prototype(C, TAPS)
INNER = slice(int(2 * FADE * C) + 2, C - int(2 * FADE * C) - 2)  # channels in which sources do not fade
RATE_HZ, CENTRE_HZ, LEVEL, FLUX, SECOND, POLARISED = 1e6, 1.4e9, 20.0, 0.8, 0.5, 0.6
AUTOS, CROSSES, PAIRS = [0, 2, 5], [1, 3, 4], [(0, 1), (0, 2), (1, 2)]
L_M = (4e-3, -6e-3)  # direction cosines of the second source

SKY = f"""
sample_rate_hz = {RATE_HZ}
centre_frequency_hz = {CENTRE_HZ}
sample_bits = 10
n_pols = 2
n_samples = 200000
first_timestamp = 1000003
seed = 5
[phase_centre]
hour_angle_deg = 20
declination_deg = -25
[noise]
level = {LEVEL}
[[antenna]]
name = "a"
position_m = [5109000.0, 2006000.0, -3239000.0]
[[antenna]]
name = "b"
position_m = [5107000.0, 2012000.0, -3236000.0]
[[antenna]]
name = "c"
position_m = [5111000.0, 2001000.0, -3241000.0]
[[source]]
l = 0
m = 0
flux = {FLUX}
"""
SECOND_SOURCE = f"""
[[source]]
l = {L_M[0]}
m = {L_M[1]}
flux = {SECOND}
polarised = {POLARISED}
angle_deg = 30
"""
FIRST = 1000003
NONE = [DelayModel(), DelayModel()]


@dataclass
class Kept:
    """Voltages of several antennas in memory: int8 [n_batches, n_antennas, *heap_shape]."""

    antennas: tuple[VoltageInfo, ...]
    time: int
    voltages: np.ndarray
    is_live = False

    def read(self, out: np.ndarray) -> Batches | None:
        n = min(len(out), len(self.voltages))
        out[:n], time = self.voltages[:n], self.time
        self.voltages, self.time = self.voltages[n:], time + n * HEAP * L
        return Batches(time, np.ones((n, len(self.antennas)), bool)) if n else None

    def close(self) -> None:
        return


# ---------------------------------------------------------------------- what is found
def visibilities(folder: Path, models: Mapping[str, Sequence[DelayModel]]) -> tuple[np.ndarray, np.ndarray]:
    """Times of dumps, int64 [n], and correlation coefficients, complex128 [n, channel, baseline, q, p]."""
    backend, dumps = HostBackend(), KeptVisibilities()
    kernels, sinks, infos = Kernels(backend, lambda line: None), [], []
    gain = 24 / (LEVEL * sqrt((1 + FLUX) / 2 * np.sum(WEIGHTS.astype(float) ** 2)))
    for name in "abc":
        source, sink = open_samples(folder / f"{name}.toml"), KeptVoltages()
        settings = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=4, max_delay_diff=400)
        output = Output(settings, sink, list(models[name]), Gains(C, 2, gain))
        FEngine(backend, source, [output], 65536 // source.info.packet, kernels).run()
        sinks.append(sink)
        infos.append(VoltageInfo(C, 2, 8, HEAP, L, source.info))
    begin, end = max(s.timestamps[0] for s in sinks), min(s.timestamps[-1] for s in sinks)
    parts = [s.voltages[(s.timestamps >= begin) & (s.timestamps <= end)] for s in sinks]
    voltages = Kept(tuple(infos), begin, np.stack(parts, axis=1))
    XEngine(backend, voltages, dumps, kernels, accumulate=PER_DUMP, batches_per_chunk=8).run()
    whole = np.array([v[0, 0, 0, 0] > -(2**31) for v in dumps.visibilities])
    v = np.stack(dumps.visibilities)[whole].astype(float) @ [1, 1j]
    v = v[:, INNER].reshape(np.count_nonzero(whole), -1, 6, 2, 2)
    power = np.mean(v[:, :, AUTOS][..., [0, 1], [0, 1]].real)
    return np.array(dumps.timestamps)[whole], v[:, :, CROSSES] / power


# ---------------------------------------------------------------------- theory
def late(times: np.ndarray, l: float, m: float) -> np.ndarray:  # noqa: E741
    """Samples by which a wave is later at each antenna than in the middle of them: float64 [3, n].

    Antennas turn here, not the sky: the baseline in u, v and w by equation 4.1 of Thompson, Moran and Swenson.
    """
    positions = np.array([antenna["position_m"] for antenna in tomllib.loads(SKY)["antenna"]])
    middle = positions.mean(axis=0)
    x, y, z = (positions - middle).T
    longitude = np.arctan2(middle[1], middle[0])
    across, along = x * cos(longitude) + y * sin(longitude), y * cos(longitude) - x * sin(longitude)
    big_x, big_y, big_z = (each[:, np.newaxis] for each in (across, along, z))
    h, d = radians(20) + 7.292115e-5 * (times - FIRST) / RATE_HZ, radians(-25)
    u = np.sin(h) * big_x + np.cos(h) * big_y
    v = -sin(d) * np.cos(h) * big_x + sin(d) * np.sin(h) * big_y + cos(d) * big_z
    w = cos(d) * np.cos(h) * big_x - cos(d) * np.sin(h) * big_y + sin(d) * big_z
    return -(u * l + v * m + w * sqrt(1 - l**2 - m**2)) / 299792458.0 * RATE_HZ


def expected(times: np.ndarray, sources: Sequence[tuple[float, float, np.ndarray]], are_stopped: bool) -> np.ndarray:
    """The coefficients that theory has: complex128 [n, channel, baseline, q, p].

    A source that is e samples later at antenna i than at j gives A(e) B e^(-2 pi i f e), with the sky's frequency f of
    a channel; with fringes stopped, e in the phase is what it is later beyond the phase centre.
    """
    starts = times[:, np.newaxis] + L * np.arange(PER_DUMP * HEAP)
    middles = (starts + TAPS * L / 2).reshape(-1)
    channels = CENTRE_HZ / RATE_HZ - 1 / 4 + np.arange(C)[INNER] / L
    centre = late(middles, 0, 0)
    found = np.zeros((len(times), len(channels), 3, 2, 2), complex)
    for l, m, coherency in sources:  # noqa: E741
        tau = late(middles, l, m)
        seen = tau - centre if are_stopped else tau
        for baseline, (i, j) in enumerate(PAIRS):
            turns = np.exp(-2j * pi * np.multiply.outer(channels, seen[i] - seen[j]))
            lost = autocorrelation(WEIGHTS, np.array([np.mean(seen[i] - seen[j])])) / np.sum(WEIGHTS.astype(float) ** 2)
            mean = turns.reshape(len(channels), len(times), -1).mean(axis=-1).T * lost
            found[:, :, baseline] += mean[..., np.newaxis, np.newaxis] * coherency.T
    return found / (1 + sum(np.trace(coherency) / 2 for _, _, coherency in sources))


ONE = [(0.0, 0.0, FLUX * np.eye(2))]
ALONG = np.array([cos(radians(30)), sin(radians(30))])
TWO = [*ONE, (*L_M, SECOND * ((1 - POLARISED) * np.eye(2) + 2 * POLARISED * np.outer(ALONG, ALONG)))]


def off(found: np.ndarray, theory: np.ndarray) -> tuple[float, float, float]:
    """In units of what noise does to them, rms: the rms difference, the largest, and that of the means over all."""
    sigma = sqrt(in_channel(WEIGHTS) / (PER_DUMP * HEAP))
    errors = (found - theory) / sigma
    # Neighbouring channels share noise, and the three baselines antennas.
    means = np.abs(errors.mean(axis=(0, 1))) * sqrt(found.shape[0] * found.shape[1] / 3)
    return float(np.sqrt(np.mean(np.abs(errors) ** 2))), float(np.abs(errors).max()), float(means.max())


def agrees(found: np.ndarray, theory: np.ndarray) -> bool:
    rms, largest, mean = off(found, theory)
    return rms < 1.05 and largest < 6 and mean < 4


def recorded(root: Path, text: str) -> Path:
    (root / "sky.toml").write_text(text)
    recording = Recording(root / "sky.toml", root / "night")
    assert len(list(recording.write())) == recording.n_blocks
    return root / "night"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("one"), SKY)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("two"), SKY + SECOND_SOURCE)


def test_delays_stop_the_fringes_of_the_phase_centre(one: Path) -> None:
    times, found = visibilities(one, read_delays(one / "delays.toml"))
    assert len(times) >= 5 and agrees(found, expected(times, ONE, are_stopped=True)), off(
        found, expected(times, ONE, True)
    )
    flat = np.angle(found[..., [0, 1], [0, 1]].mean(axis=-1))
    by_time, by_channel = flat.mean(axis=1), flat.mean(axis=0)
    assert np.abs(by_time).max() < 0.08 and np.abs(by_channel).max() < 0.15


def test_without_delays_fringes_are_those_of_theory(one: Path) -> None:
    times, found = visibilities(one, dict.fromkeys("abc", NONE))
    theory = expected(times, ONE, are_stopped=False)
    assert agrees(found, theory), off(found, theory)
    assert not agrees(found, expected(times, ONE, are_stopped=True))
    turned = np.angle(theory[-1, 0, :, 0, 0] / theory[0, 0, :, 0, 0])
    assert np.abs(turned).max() > 1, "fringes turn meanwhile"


def test_a_source_beside_the_phase_centre_is_where_theory_has_it(two: Path) -> None:
    times, found = visibilities(two, read_delays(two / "delays.toml"))
    assert agrees(found, expected(times, TWO, are_stopped=True)), off(found, expected(times, TWO, True))
    mirrored = [*ONE, (-L_M[0], -L_M[1], TWO[1][2])]
    assert not agrees(found, expected(times, mirrored, are_stopped=True))
    assert not agrees(found, expected(times, [*ONE, (L_M[0], L_M[1], TWO[1][2] * [[1, -1], [-1, 1]])], True))


WRONG: dict[str, Callable[[Piece], Piece]] = {
    "delay of the other sign": lambda piece: replace(piece, delay=-piece.delay),
    "phase of the other sign": lambda piece: replace(piece, phase=-piece.phase, phase_rate=-piece.phase_rate),
    "no phase": lambda piece: replace(piece, phase=0, phase_rate=0),
    "a phase that stands": lambda piece: replace(piece, phase_rate=0),
    "a whole sample more": lambda piece: replace(piece, delay=piece.delay + (piece.delay > 0)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_delays_that_are_wrong_show(one: Path, wrong: str) -> None:
    right = read_delays(one / "delays.toml")
    models = {name: [DelayModel(*map(WRONG[wrong], m.pieces[1:])) for m in right[name]] for name in "abc"}
    times, found = visibilities(one, models)
    assert off(found, expected(times, ONE, are_stopped=True))[0] > 2
