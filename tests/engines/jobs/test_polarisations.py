"""Polarisations have names; products are those of the names, whatever the order and number of rows of a recording.

The reference multiplies voltages that ``channelise`` makes of each antenna alone, in NumPy.
"""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.core.errors import UsageError
from autotune.engines import Bands, Running, channelise, correlate
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs import CorrelateResult

from ...commands import typed
from ..files.common import refused

C, HEAP, N, PER_DUMP = 6, 16, 3000, 2
RATE_HZ = 1e6
BASES = ("XY", "RL", "HV")
BANDS = Bands(C, 4, spectra_per_heap=HEAP)
ON_HOST = Running(device="host")
KINDS = {  # the polarisations of antennas, in the order of their rows; "" and "-" are one and two without names
    "one order": ("RL", "RL", "RL"),
    "one is swapped": ("RL", "LR", "RL"),
    "one beside two": ("XY", "X", "XY"),
    "the second beside two": ("HV", "V", "H"),
    "all are second": ("L", "L"),
    "no two alike": ("R", "L"),
    "linear beside circular": ("YX", "RL", "L"),
    "without names": ("-", "", "-"),
    "one has names": ("-", "YX", ""),
}
LETTERS = {"-": "XY", "": "X"}


def array(folder: Path, names: tuple[str, ...], more: str = "") -> Path:
    """Writes recordings of noise, and the array's file. A few packets of antenna 1's last row are missing."""
    rng, text = np.random.default_rng([len(names), *map(ord, "".join(names))]), more
    sky = rng.normal(0, 20, (2, N))
    for number, each in enumerate(names):
        rows = (
            sky[: max(1, len(each.replace("-", "xy")))]
            if each in LETTERS
            else sky[["RLXYHV".index(x) % 2 for x in each]]
        )
        rows = np.rint(rows + rng.normal(0, 10, rows.shape)).astype(np.int8)
        (folder / f"m{number}.bin").write_bytes(rows.tobytes())
        lost = f"missing = [[{len(rows) - 1}, {N // 2}, 70]]\n" if number == 1 else ""
        (folder / f"m{number}.toml").write_text(
            f'file = "m{number}.bin"\nsample_bits = 8\nn_pols = {len(rows)}\nn_samples = {N}\n'
            f'sample_rate_hz = {RATE_HZ}\nantenna = "m{number}"\n'
            f"position_m = [{5109360 + 100 * number}, 2006852.5, -3238948]\ncentre_frequency_hz = 1e9\n"
            f"sync_time_unix = 1700000000\n{lost}"
        )
        said = f'polarisations = "{each.lower() if number else each}"\n' if each not in LETTERS else ""
        text += f'[[antenna]]\nfiles = "m{number}.toml"\n{said}'
    (folder / "array.toml").write_text(text)
    return folder / "array.toml"


def check(folder: Path, names: tuple[str, ...], made: CorrelateResult, bands: Bands = BANDS) -> int:
    """Compares all products of all dumps with NumPy's; returns the number of those that are of two antennas."""
    length, n_cross = HEAP * 2 * C, 0
    each, came = {}, {}
    for number, own in enumerate(names):
        alone = channelise(folder / f"m{number}.toml", bands, running=ON_HOST)
        for row, letter in enumerate(LETTERS.get(own, own)):
            for time, heap, there in zip(alone.timestamps, alone.voltages, alone.present, strict=True):
                each[number, letter, time // length] = heap[:, :, row].astype(float) @ [1, 1j]
                came[number, letter, time // length] = there[:, row]
    assert len(made.timestamps) >= 6
    for time, visibilities, weights in zip(made.timestamps, made.visibilities, made.weights, strict=True):
        batches = range(time // length, time // length + PER_DUMP)
        baseline = 0
        for j in range(len(names)):
            for i in range(j + 1):
                for product, name in enumerate(made.info.products(i, j)):
                    ends = (i, name[0]), (j, name[1])
                    both = [b for b in batches if all((*end, b) in each for end in ends)]
                    expected = sum(
                        ((each[*ends[0], b] * each[*ends[1], b].conj()).sum(axis=1) for b in both), np.zeros(C)
                    )
                    n = sum(int((came[*ends[0], b] & came[*ends[1], b]).sum()) for b in both)
                    found = visibilities[:, baseline, product]
                    assert weights[baseline, product] == n
                    if weights[baseline].any():
                        assert np.array_equal(found @ [1, 1j], expected), (i, j, name)
                    n_cross += n > 0 and i != j
                baseline += 1
    return n_cross


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_names(tmp_path: Path, kind: str) -> None:
    names = KINDS[kind]
    made = correlate(array(tmp_path, names), BANDS, accumulate=PER_DUMP, running=ON_HOST)
    basis = next((basis for each in names for basis in BASES if each and each in (basis, basis[::-1])), "")
    called = tuple(basis[: len(LETTERS[each])] if each in LETTERS and basis else each for each in names)
    assert check(tmp_path, called, made) > 0
    n_lost = 1 - made.weights.sum() / (made.info.dump_spectra * made.info.possible().sum() * len(made.timestamps))
    assert made.share_missing == pytest.approx(n_lost) and 0 < n_lost < 0.2, "what is absent is not missing"
    assert made.present[:, [0, *range(2, len(names))]].all() and not made.present[:, 1].all()


@pytest.mark.parametrize("bits", [8, 4])
def test_kernels_give_the_same(tmp_path: Path, bits: int) -> None:
    names = KINDS["the second beside two"]
    path, bands = array(tmp_path, names), replace(BANDS, bits=bits)
    made = correlate(path, bands, accumulate=PER_DUMP, running=replace(ON_HOST, kernels_on_host=True))
    same = correlate(path, bands, accumulate=PER_DUMP, running=ON_HOST)
    assert np.array_equal(made.visibilities, same.visibilities) and np.array_equal(made.weights, same.weights)
    assert made.weights.any()


def test_the_order_of_the_file_does_not_show(tmp_path: Path) -> None:
    rows = np.random.default_rng(3).integers(-90, 91, (2, N)).astype(np.int8)
    found = []
    for name, order in (("XY", [0, 1]), ("YX", [1, 0])):
        folder = tmp_path / name
        folder.mkdir()
        path = array(folder, (name, name))
        for each in ("m0.bin", "m1.bin"):
            (folder / each).write_bytes(rows[order].tobytes())
        (folder / "m1.toml").write_text((folder / "m1.toml").read_text().replace("missing", "# "))
        found.append(correlate(path, BANDS, accumulate=PER_DUMP, running=ON_HOST))
    assert np.array_equal(found[0].visibilities, found[1].visibilities) and found[0].weights.all()
    assert found[1].info.gains == found[0].info.gains


def test_files_of_voltages_have_names_too(tmp_path: Path) -> None:
    names = ("RL", "LR")
    paths = array(tmp_path, names), [tmp_path / "m0.h5", tmp_path / "m1.h5"]
    for number, path in enumerate(paths[1]):
        channelise(tmp_path / f"m{number}.toml", BANDS, path, header={"polarisations": names[number]}, running=ON_HOST)
        with h5py.File(path) as file:
            assert file["samples"].attrs["polarisations"].decode() == names[number]
    together, apart = (
        correlate(each, BANDS if each == paths[0] else None, accumulate=2, running=ON_HOST) for each in paths
    )
    assert np.array_equal(together.visibilities, apart.visibilities) and np.array_equal(together.weights, apart.weights)
    assert apart.info.product_names == ["RR", "LR", "RL", "LL"]


def test_voltages_of_one_beside_two_are_refused_with_a_remedy(tmp_path: Path) -> None:
    array(tmp_path, ("XY", "X"))
    paths = [tmp_path / "m0.h5", tmp_path / "m1.h5"]
    for path in paths:
        channelise(path.with_suffix(".toml"), BANDS, path, running=ON_HOST)
    with refused("m1.h5: n_pols is 1, but in m0.h5 it is 2", "samples that differ so can be correlated"):
        correlate(paths, accumulate=2, running=ON_HOST)


def test_a_file_and_the_command_say_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = array(tmp_path, ("LR", "L")), tmp_path / "x.h5"
    words = ["correlate", str(path), "--channels", str(C), "--taps", "4", "--spectra-per-heap", str(HEAP)]
    typed([*words, "--accumulate", "2", "--device", "host", "--out", str(out)], monkeypatch)
    assert f"{C} channels x 3 baselines x 4 products (RR LR RL LL)" in capsys.readouterr().out
    with h5py.File(out) as file:
        assert (
            file.attrs["products"].decode() == "RR LR RL LL"
            and file.attrs["gains"][1, 0] == 0 < file.attrs["gains"][1, 1]
        )
        assert [file[f"antennas/{n}"].attrs["polarisations"].decode() for n in range(2)] == ["LR", "L"]
    assert VisibilityDumps(out).info.product_names == ["RR", "LR", "RL", "LL"]


def test_what_nothing_says_is_told(tmp_path: Path) -> None:
    told = list[str]()
    path = array(tmp_path, ("-", "RL", "-"))
    correlate(path, BANDS, accumulate=2, running=replace(ON_HOST, tell=told.append))
    assert "nothing says the polarisations of m0, m2; they are taken as those of others: m0 RL, m1 RL, m2 RL" in told
    (tmp_path / "mixed").mkdir()
    correlate(array(tmp_path / "mixed", ("XY", "RL")), BANDS, accumulate=2, running=replace(ON_HOST, tell=told.append))
    assert any("polarisations are not of one kind (m0 XY, m1 RL)" in line for line in told)
    (tmp_path / "known").mkdir()
    told.clear()
    correlate(array(tmp_path / "known", ("LR", "RL")), BANDS, accumulate=2, running=replace(ON_HOST, tell=told.append))
    assert not any("polarisation" in line for line in told)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("XR", ["polarisations is 'XR', must be one or both of X and Y, of R and L, or of H and V"]),
        ("RR", ["polarisations is 'RR'"]),
        ("Q", ["polarisations is 'Q'"]),
        ("", ["polarisations is ''"]),
        ("R", ["m0.toml: polarisations=R, as it was given, of 2 polarisations; name what is read"]),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, said: str, words: list[str]) -> None:
    path = array(tmp_path, ("-",))
    with refused(*words):
        open_samples(tmp_path / "m0.toml", polarisations=said)
    path.write_text(path.read_text() + f'polarisations = "{said}"\n')
    with refused("array.toml", words[0].partition(",")[0].removeprefix("m0.toml: ")):
        correlate(path, BANDS, accumulate=2, running=ON_HOST)
    rows = np.ones((2, N), np.int8)
    with pytest.raises(UsageError, match="polarisations"):
        correlate([rows, rows], BANDS, accumulate=2, header={"polarisations": said}, running=ON_HOST)
