"""A dump's time is the middle of what was integrated: where the power of short pulses lies, with any filter."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.jobs import Bands, Narrow, Running, channelise, correlate
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo

ON_HOST = Running(device="host")
RATE, FIRST, N = 1e6, 3_000_017, 1 << 14
HEADER = {"sample_rate_hz": RATE, "centre_frequency_hz": 1e9}
BANDS = Bands(16, 8, spectra_per_heap=4, gains=0.03)
KINDS = {
    "real": BANDS,
    "rectangular": replace(BANDS, window="rectangular"),
    "complex": BANDS,
    "narrow": replace(BANDS, narrow=(Narrow(1e9 + 3e4, 4, 64),)),
}


def pulses(is_complex: bool) -> tuple[np.ndarray, np.ndarray]:
    """Samples of two polarisations, and where pulses of noise lie, which are far apart."""
    rng = np.random.default_rng(7)
    at = 2500 + 1600 * np.arange(8)  # at all eighths of dumps of 512 samples, and so of shorter ones
    x = rng.normal(0, 0.3, (2, N)) + 0j
    for place in at:
        x[:, place - 32 : place + 33] += rng.normal(0, 30, (2, 65)) + 1j * rng.normal(0, 30, (2, 65))
    return (x.astype(np.complex64) if is_complex else np.rint(x.real).clip(-127, 127).astype(np.int8)), at


@pytest.mark.parametrize("kind", KINDS)
def test_power_lies_where_the_times_of_dumps_say(kind: str) -> None:
    """Within a tenth of what half of the filter is more than half of a spectrum."""
    samples, at = pulses(kind == "complex")
    made = correlate([samples, samples], KINDS[kind], accumulate=1, header=HEADER, running=ON_HOST)
    power = made.visibilities[..., 0, 0, 0].astype(float).sum(axis=1) * made.present.all(axis=1)
    middles = made.timestamps + made.info.middle
    off = []
    for place in at:
        near = np.abs(middles - place) < 800
        off.append((power[near] * middles[near]).sum() / power[near].sum() - place)
    more = made.info.middle - made.info.dump_samples / 2
    assert more > 50 and abs(np.mean(off)) < more / 10


def test_files_say_it(tmp_path: Path) -> None:
    """Files of voltages say the middle too, for a later correlation; older files do not."""
    samples, _ = pulses(False)
    whole = correlate([samples, samples], BANDS, accumulate=3, header=HEADER, running=ON_HOST)
    assert whole.info.middle_samples == (3 * 4 * 32 - 32) / 2 + 8 * 32 / 2
    paths = [tmp_path / "a.h5", tmp_path / "b.h5"]
    for path in paths:
        channelise(samples, BANDS, path, header=HEADER, running=ON_HOST)
    correlate(paths, None, tmp_path / "x.h5", accumulate=3, running=ON_HOST)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["middle_samples"] == 8 * 32 / 2
    dumps = VisibilityDumps(tmp_path / "x.h5")
    assert dumps.info.middle_samples == whole.info.middle_samples
    dumps.close()
    for path in (paths[0], tmp_path / "x.h5"):
        with h5py.File(path, "r+") as file:
            del file.attrs["middle_samples"]
    dumps = VisibilityDumps(tmp_path / "x.h5")
    assert dumps.info.middle_samples is None and dumps.info.middle == 3 * 4 * 32 / 2
    dumps.close()
    made = correlate(paths, None, accumulate=3, running=ON_HOST)
    assert made.info.middle_samples is None, "one of them does not say it"


def test_uvh5_has_it(tmp_path: Path) -> None:
    pyuvdata = pytest.importorskip("pyuvdata")
    from autotune.engines.files.formats.uvdata import UvData

    places = {"a": (5109e3, 2006e3, -3239e3), "b": (5109e3, 2006.1e3, -3239e3)}
    infos = tuple(SampleInfo(8, 2, RATE, 1, None, 0, name, at, 1e9, Fraction(10**9)) for name, at in places.items())
    info = VisibilityInfo(4, 1 << 18, 1 << 16, infos, 1e9, 1e3, middle_samples=200000.5)
    sink = UvData(tmp_path / "x.uvh5", info)
    sink.write(5 << 18, np.full((4, 3, 4, 2), [1, 0], np.int32), np.full((3, 4), 1 << 16, np.uint32), 0)
    sink.close()
    (time,) = set(pyuvdata.UVData.from_file(str(tmp_path / "x.uvh5")).time_array)
    assert (time - 2440587.5) * 86400 - 1e9 == pytest.approx(((5 << 18) + 200000.5) / RATE, abs=1e-4)
