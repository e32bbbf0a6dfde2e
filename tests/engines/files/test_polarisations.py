"""Names of polarisations in headers, and for files of their own."""

from pathlib import Path

import numpy as np
import pytest

from autotune.engines import Bands, channelise
from autotune.engines.files.header_fields import overrides_of, parsed_header
from autotune.engines.files.opening import open_samples
from autotune.engines.files.paired import open_paired
from autotune.engines.files.reading import untold
from autotune.engines.files.scans import open_scans
from autotune.engines.jobs import Running

from . import makers
from .baseband_files import integers, vdif_file
from .common import read_all, refused

BLOCK = np.random.default_rng(4).integers(-9, 9, (1, 64, 2, 2))


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"FD_POLN": "LIN"}, "XY"),
        ({"FD_POLN": "LIN", "FD_HAND": -1}, "XY"),
        ({"FD_POLN": "CIRC", "FD_HAND": 1}, "LR"),
        ({"FD_POLN": "CIRC", "FD_HAND": -1}, "RL"),
        ({"FD_POLN": "CIRC"}, ""),
        ({"FD_POLN": "N/A", "FD_HAND": 1}, ""),
        ({}, ""),
    ],
)
def test_guppi_names_two(tmp_path: Path, said: dict[str, object], names: str) -> None:
    makers.guppi(tmp_path / "x", [BLOCK], [0], {"TBIN": "1E-6", "PKTSIZE": 32, **said})
    assert open_samples(tmp_path / "x").info.polarisations == names
    told = list[str]()
    given = open_samples(tmp_path / "x", polarisations="hv", tell=told.append).info
    assert given.polarisations == "HV"
    assert any(f"polarisations=hv replaces {names} of its header" in line for line in told) == bool(names)
    makers.guppi(tmp_path / "y", [BLOCK[:, :, :1]], [0], {"TBIN": "1E-6", "PKTSIZE": 32, **said})
    assert open_samples(tmp_path / "y", n_pols=1).info.polarisations == "", "which of two it is is not said"


@pytest.mark.parametrize("names", ["XY", "LR", "RL", "YX", "HV", ""])
def test_guppi_keeps_them(tmp_path: Path, names: str) -> None:
    rows = np.random.default_rng(5).integers(-90, 91, (2, 4096)).astype(np.int8)
    header = {"sample_rate_hz": 1e6, "sync_time_unix": 1.7e9, "polarisations": names or None}
    channelise(
        rows, Bands(4, 4, spectra_per_heap=16), tmp_path / "x.raw", header=header, running=Running(device="host")
    )
    kept = names if names in ("XY", "LR", "RL") else ""  # the cards have no others
    assert open_samples(tmp_path / "x.raw", channel=1).info.polarisations == kept


@pytest.mark.parametrize(("said", "names"), [("Linear", "XY"), ("Circular", ""), (None, "")])
def test_dada_names_linear_ones(tmp_path: Path, said: str | None, names: str) -> None:
    for n_pols in (1, 2):
        makers.dada(tmp_path / "x", BLOCK[0, :, np.newaxis, :n_pols, :1], {"TSAMP": 1, "BASIS": said})
        assert open_samples(tmp_path / "x").info.polarisations == (names if n_pols == 2 else "")


def test_capitals_do_not_matter() -> None:
    assert parsed_header(["polarisations=lr"]) == {"polarisations": "LR"}


def test_a_thread_alone_has_one_name(tmp_path: Path) -> None:
    expected = vdif_file(tmp_path / "x.vdif", 8)
    for threads in (1, (1,)):
        source = open_samples(tmp_path / "x.vdif", threads=threads, polarisations="L")
        assert source.info.polarisations == "L" and source.info.places == (1,)
        assert (integers(read_all(source), 8)[:, 0] == expected[:, 1, 0]).all()
    with refused("x.vdif: polarisations=L, as it was given, of 2 polarisations; name what is read, in its order"):
        open_samples(tmp_path / "x.vdif", polarisations="L")
    with refused("threads is -1"):
        open_samples(tmp_path / "x.vdif", threads=-1)


def raw(path: Path, names: str = "", first: int = 0) -> Path:
    path.with_suffix(".bin").write_bytes(bytes(range(1, 65)))
    said = f'polarisations = "{names}"\n' if names else ""
    said += f"first_timestamp = {first}\nsample_rate_hz = 1e6\n"
    path.write_text(f'file = "{path.stem}.bin"\nsample_bits = 8\nn_pols = 1\n{said}')
    return path


def test_each_of_two_files_has_one_name(tmp_path: Path) -> None:
    files = [[raw(tmp_path / "a.toml")], [raw(tmp_path / "b.toml")]]
    assert open_paired(files, overrides_of({}), untold).info.polarisations == ""
    assert open_paired(files, overrides_of({"polarisations": "LR"}), untold).info.polarisations == "LR"
    with refused("a.toml: polarisations=R: name both, in the order of their files"):
        open_paired(files, overrides_of({"polarisations": "R"}), untold)
    files = [[raw(tmp_path / "y.toml", "Y")], [raw(tmp_path / "x.toml", "X")]]
    assert open_paired(files, overrides_of({}), untold).info.polarisations == "YX"
    files[1] = [raw(tmp_path / "r.toml", "R")]
    with refused("r.toml: its polarisation is R, but that of", "y.toml is Y"):
        open_paired(files, overrides_of({}), untold)


def test_pieces_of_an_antenna_have_the_same(tmp_path: Path) -> None:
    pieces = [raw(tmp_path / "a.toml", "L"), raw(tmp_path / "b.toml", "R", first=64)]
    with refused("b.toml: its polarisations is 'R', but that of", "a.toml is 'L': they are not of one antenna"):
        open_scans(pieces, overrides_of({}), untold)


@pytest.mark.parametrize(("thread", "said", "name", "place"), [(1, None, "", 1), (0, None, "", 0), (1, "RL", "L", 1)])
def test_the_second_of_two_threads_is_the_second_polarisation(
    tmp_path: Path, thread: int, said: str | None, name: str, place: int
) -> None:
    frames = [makers.vdif_frame(bytes(640), 777, k, thread=t) for k in range(40) for t in (0, 1)]
    (tmp_path / "x.vdif").write_bytes(b"".join(frames))
    given = {"polarisations": said} if said else {}
    info = open_samples(tmp_path / "x.vdif", sample_rate_hz=64_000, threads=thread, **given).info
    assert (info.polarisations, info.places, info.label(0)) == (name, (place,), name or str(place))
