"""A simulated sky through an F- and X-engine on host: phases, and amplitudes, are those that ``expected`` has."""

from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.files.delay_file import read_delays
from autotune.engines.files.opening import open_samples
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.sky.description import read_sky
from autotune.engines.sky.expected import DelaysByAntenna, theory_of, visibilities
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.sky.spec import Sky
from autotune.engines.streams.in_memory import KeptVisibilities
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo

from ...interferometer import in_channel
from ..stand_ins import good_antennas

C, TAPS, HEAP, PER_DUMP = 32, 4, 32, 16
L = 2 * C
DUMP = PER_DUMP * HEAP * L
WEIGHTS = prototype(C, TAPS)
RATE_HZ, CENTRE_HZ, LEVEL = 1e6, 1.4e9, 20.0
PAIRS = [(0, 1), (0, 2), (1, 2)]
SKY = f"""
sample_rate_hz = {RATE_HZ}
centre_frequency_hz = {CENTRE_HZ}
sample_bits = 10
n_pols = 2
n_samples = 200000
first_timestamp = 1000003
seed = 8
phase_centre = {{hour_angle_deg = 20, declination_deg = -25}}
noise = {{level = {LEVEL}}}
antenna = [
    {{name = "a", position_m = [5109000.0, 2006000.0, -3239000.0]}},
    {{name = "b", position_m = [5107000.0, 2012000.0, -3236000.0]}},
    {{name = "c", position_m = [5111000.0, 2001000.0, -3241000.0]}},
]
source = [
    {{l = 1e-3, m = 0, flux = 0.6}},
    {{l = -3e-3, m = 2e-3, flux = 0.4, polarised = 0.5, angle_deg = 90}},
]
"""


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("expected")
    (root / "sky.toml").write_text(SKY)
    for _ in (recording := Recording(root / "sky.toml", root / "night")).write():
        assert recording.n_blocks
    return root / "night"


def observed(night: Path, delays: DelaysByAntenna) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the dumps that are whole, seconds, and coefficients: complex128 [n_dumps, C, 3, q, p]."""
    backend, sink = HostBackend(), KeptVisibilities()
    settings = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=4, max_delay_diff=400)
    gains = Gains(C, 2, 24 / (LEVEL * sqrt(np.sum(WEIGHTS.astype(float) ** 2))))
    sources = [open_samples(night / f"{name}.toml") for name in "abc"]
    outputs = [Output(settings, None, list(delays[name]), gains) for name in "abc"]
    kernels = Kernels(backend, lambda line: None)
    FXEngine(backend, sources, outputs, sink, kernels, accumulate=PER_DUMP, chunk_samples=1 << 16).run()
    whole = good_antennas(sink.weights).all(axis=1)
    v = np.stack(sink.visibilities)[whole].astype(float) @ [1, 1j]
    power = v[:, :, [0, 2, 5]][..., [0, 3]].real  # [n, C, antenna, pol]
    v = v[:, :, [1, 3, 4]].reshape(len(v), C, 3, 2, 2)
    for baseline, (i, j) in enumerate(PAIRS):
        v[:, :, baseline] /= np.sqrt(power[:, :, i, np.newaxis] * power[:, :, j, :, np.newaxis])
    return (np.array(sink.timestamps)[whole] + DUMP / 2) / RATE_HZ, v


def theory(sky: Sky, times_s: np.ndarray, delays: DelaysByAntenna | None) -> np.ndarray:
    """What ``observed`` returns, by theory; a spectrum is that of the middle of its window."""
    since = times_s - (sky.first_timestamp - TAPS * L / 2) / RATE_HZ
    channels = CENTRE_HZ + (np.arange(C) - C / 2) * RATE_HZ / L
    found = np.empty((len(since), C, 3, 2, 2), complex)
    for baseline, (i, j) in enumerate(PAIRS):
        for q, p in np.ndindex(2, 2):
            found[:, :, baseline, q, p] = visibilities(sky, i, j, since, channels, delays, (p, q), DUMP / RATE_HZ)
    return found[:, INNER]


INNER = slice(3, C - 3)  # channels without the band's ends, where sources fade within a channel
SIGMA = sqrt(in_channel(WEIGHTS) / (PER_DUMP * HEAP))  # of a coefficient's noise, if it is small


def phase_off(found: np.ndarray, expected: np.ndarray) -> float:
    """The weighted rms of phases' differences, in units of what noise of SIGMA makes of it.

    A phase has the noise SIGMA / (|rho| sqrt 2), and so the weight |rho|^2. Where noise is as large as the coefficient,
    phases are no longer normal, and those below 3 SIGMA are left out.
    """
    strong = np.abs(expected) > 3 * SIGMA
    errors = np.angle(found[strong] * expected[strong].conj())
    return float(sqrt(np.mean((errors * np.abs(expected[strong]) * sqrt(2) / SIGMA) ** 2)))


@pytest.mark.parametrize("stopped", [True, False])
def test_phases_and_amplitudes_are_those_of_theory(night: Path, stopped: bool) -> None:
    sky = read_sky(night / "sky.toml")
    delays = read_delays(night / "delays.toml") if stopped else None
    times, found = observed(night, delays or {name: (DelayModel(), DelayModel()) for name in "abc"})
    found, expected = found[:, INNER], theory(sky, times, delays)
    n = np.count_nonzero(np.abs(expected) > 3 * SIGMA)
    assert len(times) >= 4 and n > found.size / 3
    # n phases, of which neighbouring channels and the baselines share noise: 1 within 5 %, three times that.
    assert 0.85 < phase_off(found, expected) < 1.15
    parallel = np.abs(expected[..., [0, 1], [0, 1]])
    lost = 1 if stopped else 0.9  # of what is late by up to 20 samples of a window of 256
    assert lost * 0.97 < np.sum(np.abs(found[..., [0, 1], [0, 1]])) / np.sum(parallel) < 1.05
    mirrored = theory(sky, times, None if stopped else read_delays(night / "delays.toml"))
    assert phase_off(found, expected.conj()) > 2 and phase_off(found, mirrored) > 2


def test_means_over_time_and_band_are_means(night: Path) -> None:
    sky = read_sky(night / "sky.toml")
    t, f = np.array([0.11]), np.array([CENTRE_HZ + 1e5])
    spans_s, spans_hz = (np.arange(400) + 0.5) / 400 - 0.5, (np.arange(200) + 0.5) / 200 - 0.5
    one = visibilities(sky, 0, 1, t, f, integration_s=0.4, width_hz=3e4)
    every = visibilities(sky, 0, 1, t + 0.4 * spans_s, f + 3e4 * spans_hz)
    assert abs(one[0, 0] - every.mean()) < 1e-3 < 0.05 < abs(one[0, 0] - visibilities(sky, 0, 1, t, f)[0, 0])
    own = visibilities(sky, 2, 2, t, f)
    assert own == pytest.approx(1) and visibilities(sky, 2, 2, t, f, pols=(0, 1)) == pytest.approx(0)
    turned = np.angle(visibilities(sky, 1, 2, t + np.array([0, 0.5]), f))
    assert abs(turned[1, 0] - turned[0, 0]) > pi / 4, "fringes turn meanwhile"


def test_pictures_ask_by_the_antennas_of_a_stream(night: Path) -> None:
    sky, delays = read_sky(night / "sky.toml"), read_delays(night / "delays.toml")
    infos = [SampleInfo(10, 2, RATE_HZ, 8, antenna=name) for name in "cab"]
    t, f = np.array([2.5]), np.array([CENTRE_HZ])
    found = theory_of(sky, VisibilityInfo(C, DUMP, 1, tuple(infos)), delays, TAPS * L)(1, 0, t, f, pol=1)
    lead_s = TAPS * L / 2 / RATE_HZ
    since = t - (sky.first_timestamp / RATE_HZ - lead_s)
    assert np.array_equal(found, visibilities(sky, 0, 2, since, f, delays, (1, 1), lead_s=lead_s))
    with pytest.raises(UsageError, match="the sky has no antenna 'd'; it has a, b, c"):
        theory_of(sky, VisibilityInfo(C, DUMP, 1, (SampleInfo(10, 2, RATE_HZ, 8, antenna="d"),)))
