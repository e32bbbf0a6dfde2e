"""Summaries of voltages and visibilities against NumPy, however a stream is cut; pictures have their formats."""

import builtins
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.plots.drawing import check_path
from autotune.engines.plots.rows import Bins, Rows
from autotune.engines.plots.visibility_picture import plot_visibilities
from autotune.engines.plots.visibility_summary import VisibilitySummary
from autotune.engines.plots.voltage_picture import plot_voltages
from autotune.engines.plots.voltage_summary import VoltageSummary
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo
from autotune.engines.streams.voltages import VoltageInfo

from ..stand_ins import weights_of

RNG = np.random.default_rng(4)
SAMPLES = SampleInfo(10, 2, 1e6, 64, antenna="m000", centre_frequency_hz=1.4e9)
FIRST, DUMP, SPECTRA, C, N = (1 << 44) + 3, 4096, 64, 11, 4  # N antennas


# ---------------------------------------------------------------------- rows
@pytest.mark.parametrize("n_at_once", [1, 7, 200])
def test_rows_are_sums_however_they_were_merged(n_at_once: int) -> None:
    numbers = np.sort(RNG.choice(900, 200, replace=False))
    numbers -= numbers[0]
    arrays = RNG.integers(-(1 << 40), 1 << 40, (200, 3))
    rows = Rows(10, (3,), most=16)
    for at in range(0, 200, n_at_once):
        rows.add(FIRST + 10 * numbers[at : at + n_at_once], arrays[at : at + n_at_once])
    assert rows.merged == 64 and rows.row_samples == 640 and rows.n == numbers[-1] // 64 + 1
    expected = [arrays[numbers // 64 == row].sum(axis=0) for row in range(rows.n)]
    assert np.array_equal(rows.values, expected)
    assert rows.times.tolist() == [FIRST + 640 * (row + 0.5) for row in range(rows.n)]
    assert rows.units.sum() == numbers[-1] + 1 and (rows.units[:-1] == 64).all()


def test_a_gap_of_any_length_fits() -> None:
    rows = Rows(1, (), most=4)
    rows.add(np.array([5, 1 << 61]), np.array([3, 4]))
    assert rows.values.tolist()[0] == 3 and rows.values.tolist()[-1] == 4 and rows.n <= 4


def test_bins_of_channels() -> None:
    bins = Bins(11, 4)
    assert bins.counts.tolist() == [3, 3, 3, 2] and bins.middles.tolist() == [1, 4, 7, 9.5]
    assert bins.sums(np.arange(11), axis=0).tolist() == [3, 12, 21, 19]


# ---------------------------------------------------------------------- voltages
def unpacked(voltages: np.ndarray, bits: int) -> np.ndarray:
    """|v|^2 of each voltage, int64 [n, C, spectra, n_pols]."""
    wide = voltages.astype(np.int64)
    if bits == 8:
        return (wide**2).sum(axis=-1)
    real, imaginary = (wide & 15 ^ 8) - 8, wide >> 4
    return real**2 + imaginary**2


@pytest.mark.parametrize(("bits", "n_pols", "spectra"), [(8, 2, 16), (8, 1, 700), (4, 2, 16), (4, 1, 3)])
def test_voltages_are_summed_exactly(bits: int, n_pols: int, spectra: int) -> None:
    info = VoltageInfo(C, n_pols, bits, spectra, 2 * C, SAMPLES)
    heaps = np.concatenate([np.arange(20), np.arange(29, 50)])  # 9 are missing
    voltages = RNG.integers(-128, 128, (len(heaps), *info.heap_shape)).astype(np.int8)
    voltages[3] = -128  # whose squares are the largest
    came = RNG.random((len(heaps), spectra, n_pols)) < 0.9
    voltages[~np.broadcast_to(came.reshape(len(heaps), 1, spectra, n_pols, *[1] * (bits == 8)), voltages.shape)] = 0
    saturated = RNG.integers(0, 9, (len(heaps), n_pols)).astype(np.uint32)
    summary = VoltageSummary(info, most_rows=16, most_bins=4)
    for some in np.split(np.arange(len(heaps)), [0, 1, 4, 30]):
        summary.write(FIRST + heaps[some] * info.heap_samples, voltages[some], saturated[some], came[some])
    powers = unpacked(voltages, bits).sum(axis=2)
    assert np.array_equal(summary.spectrum, powers.sum(axis=0)) and summary.n_heaps == len(heaps)
    assert np.allclose(summary.mean_spectrum(), powers.sum(axis=0) / came.sum(axis=(0, 1)))
    assert summary.power.merged == 4
    for row in range(summary.power.n):
        of_row = heaps // 4 == row
        bins = np.add.reduceat(powers[of_row].sum(axis=0), [0, 3, 6, 9], axis=0)
        assert np.array_equal(summary.power.values[row], bins)
        assert np.array_equal(summary.saturated.values[row], saturated[of_row].sum(axis=0, dtype=int))
    shares = dict(zip(heaps.tolist(), came.mean(axis=(1, 2)), strict=True))
    expected = [np.mean([shares.get(heap, 0) for heap in range(4 * row, min(50, 4 * row + 4))]) for row in range(13)]
    assert np.allclose(summary.present_share(), expected)
    assert (np.isnan(summary.mean_power()).all(axis=(1, 2)) == (np.array(expected) == 0)).all()
    assert np.nansum(summary.saturated_share() * summary.spectra.values) * C == pytest.approx(saturated.sum())


# ---------------------------------------------------------------------- visibilities
def positions(n: int) -> list[tuple[float, float, float] | None]:
    return [(0.0, 0.0, 10.0 * k * k) for k in range(n)]


def visibility_info(n: int = N, are_known: bool = True) -> VisibilityInfo:
    places = positions(n) if are_known else [None] * n
    antennas = tuple(SampleInfo(10, 2, 1e6, 64, antenna=f"m{k}", position_m=p) for k, p in enumerate(places))
    return VisibilityInfo(C, DUMP, SPECTRA, antennas, 1.4e9, 1e6 / 32)


def dumps(n_dumps: int) -> tuple[np.ndarray, np.ndarray]:
    """Visibilities of voltages of 64 spectra, int32 [n_dumps, C, n_baselines, 4, 2], and their weights."""
    v = RNG.integers(-20, 21, (n_dumps, C, N, 2, 64, 2)) @ [1, 1j]
    v += 0.5 * v[:, :, :1]
    j, i = np.tril_indices(N)
    products = [np.sum(v[:, :, i, p] * v[:, :, j, q].conj(), axis=-1) for q in range(2) for p in range(2)]
    made = np.rint(np.stack(products, axis=-1)[..., np.newaxis].view(float)).astype(np.int32)
    weights = np.stack([weights_of(RNG.random(N) < 0.8, SPECTRA) for _ in range(n_dumps)])
    made[weights[:, np.newaxis].repeat(C, axis=1) == 0] = (-(2**31), 1)
    return made, weights


def test_visibilities_are_those_of_the_dumps_that_are_there() -> None:
    made, weights = dumps(300)
    summary = VisibilitySummary(visibility_info(), [(0, 1), (1, 3)])
    numbers = np.arange(300) + 7 * (np.arange(300) >= 200)  # 7 are missing
    for number, dump, there in zip(numbers.tolist(), made, weights, strict=True):
        summary.write(FIRST + number * DUMP, dump, there, 2)
    v, ok = made.astype(float) @ [1, 1j], made[:, 0, :, 0, 0] != -(2**31)
    autos = [0, 2, 5, 9]
    assert (summary.n_dumps, summary.n_clipped, summary.row_samples) == (300, 600, 2 * DUMP)
    assert summary.dumps.values.sum() == 300 and summary.dumps.units.sum() == 307
    assert np.allclose(summary.spectra()[:, 2], v[ok[:, 5]][:, :, 5][..., [0, 3]].real.mean(axis=0))
    for place, (i, j, number) in enumerate([(0, 1, 1), (1, 3, 7)]):
        some = v[ok[:, number]]
        powers = some[:, :, autos][..., [0, 3]].real
        sums = powers.sum(axis=0)
        for product, (at, p, q) in enumerate([(0, 0, 0), (3, 1, 1), (1, 1, 0), (2, 0, 1)]):  # aa, bb, ba, ab
            expected = some[:, :, number, at].sum(axis=0) / np.sqrt(sums[:, i, p] * sums[:, j, q])
            assert np.allclose(summary.coefficients()[:, place, product], expected)
        rho = some[:, :, number][..., [0, 3]]
        rms = np.sqrt(np.mean(np.abs(rho) ** 2 / (powers[:, :, i] * powers[:, :, j]), axis=(0, 1)))
        assert np.allclose([summary.coherence()[j, i], summary.coherence()[i, j]], rms, rtol=1e-5)
        row = 40  # of dumps 80 and 81
        pair = slice(80, 82)
        are_there = ok[pair, number][:, np.newaxis, np.newaxis]
        sums = [(are_there * x).sum(axis=0) for x in (v[pair, :, number], v[pair, :, autos[i]], v[pair, :, autos[j]])]
        with np.errstate(invalid="ignore"):
            found = sums[0] / np.sqrt(sums[1].real * sums[2].real)
        assert np.allclose(summary.rows()[row, :, place], found[:, [0, 3]], equal_nan=True)
    assert np.isnan(summary.rows()[101]).all(), "no dump came there"
    assert np.isnan(np.diagonal(summary.coherence())).all() and summary.noise_floor() == pytest.approx(128**-0.5)


def test_coefficients_are_of_means_where_spectra_are_missing() -> None:
    rng = np.random.default_rng(8)
    v = rng.standard_normal((7, C, N, 2, SPECTRA, 2)) @ [100, 100j]
    v += 2 * v[:, :, :1]
    came = rng.random((7, N, 2, SPECTRA)) < 0.6
    came[3, 1] = came[5, :, 1] = False
    v *= came[:, np.newaxis]
    j, i = np.tril_indices(N)
    summary = VisibilitySummary(visibility_info(), [(0, 1)])
    sums, counts = [], []
    for q, p in ((0, 0), (0, 1), (1, 0), (1, 1)):
        sums.append(np.sum(v[:, :, i, p] * v[:, :, j, q].conj(), axis=-1))
        counts.append((came[:, i, p] & came[:, j, q]).sum(axis=-1))
    made = np.rint(np.stack(sums, axis=-1)[..., np.newaxis].view(float)).astype(np.int32)
    weights = np.stack(counts, axis=-1).astype(np.uint32)
    for number in range(7):
        made[number, :, ~weights[number].any(axis=1)] = (-(2**31), 1)
        summary.write(number * DUMP, made[number], weights[number], 0)
    for pol, product in enumerate((0, 3)):
        n_there = weights[..., product].astype(float)
        some = n_there[:, 1] > 0
        total = np.where(weights[:, np.newaxis, :, product] > 0, made[..., product, :] @ [1, 1j], 0)
        means = [total[some, :, k].sum(axis=0) / n_there[some, k].sum() for k in (1, 0, 2)]
        expected = means[0] / np.sqrt(means[1].real * means[2].real)
        assert np.allclose(summary.coefficients()[:, 0, pol], expected) and np.abs(expected).mean() > 0.5
        own = total[:, :, 0].real.sum(axis=0) / n_there[:, 0].sum() * SPECTRA
        assert np.allclose(summary.spectra()[:, 0, pol], own)
        rho = total[some][:, :, [1, 0, 2]] / n_there[some][:, np.newaxis, [1, 0, 2]]
        rms = np.sqrt(np.mean(np.abs(rho[..., 0]) ** 2 / (rho[..., 1] * rho[..., 2]).real))
        assert np.allclose(summary.coherence()[(1, 0) if pol == 0 else (0, 1)], rms, rtol=1e-5)


def test_baselines_are_spread_in_length() -> None:
    lengths = [each.length_m for each in VisibilitySummary(visibility_info(9), n_baselines=4).baselines]
    assert lengths[0] == 10 and lengths[-1] == 640 and lengths == sorted(lengths, key=float)
    unknown = VisibilitySummary(visibility_info(are_known=False), n_baselines=2).baselines
    assert [(each.i, each.j, each.number, each.length_m) for each in unknown] == [(0, 1, 1, None), (0, 2, 3, None)]
    with pytest.raises(UsageError, match=r"no baseline \(2, 1\): its antennas must be 0 <= i < j < 4"):
        VisibilitySummary(visibility_info(), [(2, 1)])


# ---------------------------------------------------------------------- pictures
def voltage_picture(path: Path) -> None:
    info = VoltageInfo(C, 2, 8, 16, 2 * C, SAMPLES, 1.4e9, 1e6 / 22)
    summary = VoltageSummary(info)
    voltages = RNG.integers(-20, 20, (5, *info.heap_shape)).astype(np.int8)
    summary.write(
        np.array([0, 1, 2, 6, 7]) * info.heap_samples, voltages, np.zeros((5, 2), np.uint32), np.ones((5, 16, 2), bool)
    )
    plot_voltages(summary, path)


def visibility_picture(path: Path) -> None:
    summary = VisibilitySummary(visibility_info(), [(0, 1), (1, 3)])
    for number, (dump, weights) in enumerate(zip(*dumps(5), strict=True)):
        summary.write(number * DUMP, dump, weights, 0)
    asked: list[dict[str, Any]] = []

    def theory(i: int, j: int, times_s: np.ndarray, frequencies_hz: np.ndarray, **rest: Any) -> np.ndarray:
        asked.append(rest)
        return np.exp(1j * np.add.outer(1000 * times_s, frequencies_hz))

    plot_visibilities(summary, path, theory)
    assert all(each["pol"] == 0 and each["integration_s"] == DUMP / 1e6 for each in asked) and asked


FORMATS = [
    (voltage_picture, ".PDF", b"%PDF"),
    (visibility_picture, ".png", b"\x89PNG"),
    (visibility_picture, ".svg", b"<"),
]


@pytest.mark.parametrize(("picture", "suffix", "start"), FORMATS, ids=["pdf", "png", "svg"])
def test_pictures_are_of_the_format_of_their_names(
    tmp_path: Path, picture: Callable[[Path], None], suffix: str, start: bytes
) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    picture(tmp_path / f"x{suffix}")
    assert [each.name for each in tmp_path.iterdir()] == [f"x{suffix}"]
    assert (tmp_path / f"x{suffix}").read_bytes().startswith(start) and dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("names", "shown", "not_shown"),
    [
        (("RL", "RL"), ["R solid, L dotted", "below the diagonal R, above it L", "Baselines, R,"], "pol. 0"),
        (("RL", "XY"), ["R/X solid, L/Y dotted"], "pol. 0"),
        (("", ""), ["pol. 0 solid, pol. 1 dotted", "Baselines, pol. 0,"], "R solid"),
        (("RL", ""), ["pol. 0 solid"], "R solid"),
    ],
)
def test_pictures_name_polarisations(tmp_path: Path, names: tuple[str, str], shown: list[str], not_shown: str) -> None:
    info = visibility_info()
    antennas = tuple(replace(each, polarisations=names[n > 1]) for n, each in enumerate(info.antennas))
    summary = VisibilitySummary(replace(info, antennas=antennas), [(0, 1)])
    for number, (dump, weights) in enumerate(zip(*dumps(3), strict=True)):
        summary.write(number * DUMP, dump, weights, 0)
    plot_visibilities(summary, tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert [each for each in shown if each not in text] == [] and not_shown not in text


def test_a_path_is_checked_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_path(str(tmp_path / "x.svg")) == tmp_path / "x.svg"
    with pytest.raises(UsageError, match=r"a picture's name ends in \.png, \.svg, \.pdf, not in '\.jpg'"):
        check_path("x.jpg")
    with pytest.raises(UsageError, match=r"there is no directory .*no; make it"):
        check_path(tmp_path / "no" / "x.png")
    (tmp_path / "y.png").mkdir()
    with pytest.raises(UsageError, match="it cannot be written"):
        check_path(tmp_path / "y.png")
    with pytest.raises(UsageError, match="nothing to draw, since no heap came"):
        plot_voltages(VoltageSummary(VoltageInfo(C, 2, 8, 16, 2 * C, SAMPLES)), tmp_path / "x.png")
    with pytest.raises(UsageError, match="nothing to draw, since no dump came"):
        plot_visibilities(VisibilitySummary(visibility_info()), tmp_path / "x.png")
    imported = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(f"No module named {name!r}")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UsageError, match="pip install matplotlib, or autotune's extra plot"):
        check_path(tmp_path / "x.png")
