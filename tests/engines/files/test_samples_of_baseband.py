"""The recordings that the package `baseband` brings: each is read as baseband reads it, or refused with a reason."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import astropy.units as u
import baseband.data
import numpy as np
import pytest
from baseband import dada, guppi, vdif

from autotune import unpack_samples
from autotune.core.errors import UsageError
from autotune.engines import Bands, Running, channelise
from autotune.engines.files.formats.hdf5_voltages import CHECKS, FORMAT, NEEDED
from autotune.engines.files.hdf5 import GrownFile
from autotune.engines.files.opening import open_samples

from .common import read_all, read_file
from .test_starts import posix

FOLDER = Path(baseband.data.__file__).parent
NONE_OF_THEM = "neither DADA nor GUPPI RAW nor Mark 5B nor an array of NumPy nor"
TRACKS = {"sample_16track.m4": 16, "sample_32track.m4": 32, "sample_32track_fanout2.m4": 32}
CUT_OFF = "it was cut off, or is still being written"


@dataclass(frozen=True)
class Case:
    """A file with what is given, and how reading it ends."""

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""  # words, when it is opened
    ends: str = ""  # words of the line about the end; "" if there is none
    rate: float | None = None  # that baseband must be given, too

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    def __str__(self) -> str:
        return f"{self.name}-{'-'.join(f'{name}={value}' for name, value in self.given.items())}"


MWA, CHIME = {"sample_rate_hz": 1.28e6}, {"sample_rate_hz": 390625.0}
MEERKAT = "after 14336 of 16384 samples of each polarisation: " + CUT_OFF
LEVEL = {4: 2.95, 8: 71 / 2}  # of baseband, in units of ours
READ = [
    Case("sample.vdif", {"threads": (0, 1)}),
    Case("sample.vdif", {"threads": (7, 2)}),
    Case("sample.vdif", {"threads": (5,), "sideband": "lower"}),
    Case("sample_vlbi.vdif", {"threads": (1, 3)}),  # threads 0, 2, 4 and 6 have other seconds
    Case("sample_vlbi.vdif", {"threads": (7, 5)}),
    Case("sample_vlbi.vdif", {"threads": (3,)}),
    Case("sample_mwa.vdif", {"channel": 0, "threads": (0,), **MWA}, rate=1.28e6),
    Case("sample_mwa.vdif", {"channel": (1, 0), "threads": (0,), **MWA}, rate=1.28e6),
    *(Case("sample_arochime.vdif", {"channel": c, **CHIME}, rate=390625.0) for c in (0, 1023)),
    Case("sample_arochime.vdif", {"channel": 5, "threads": (1,), "sideband": "lower", **CHIME}, rate=390625.0),
    *(Case("sample_bps1.vdif", {"channel": c, "sample_rate_hz": 8e6}, rate=8e6) for c in (0, (7, 15))),
    Case("sample_bps1.vdif", {"channel": 11, "sample_rate_hz": 8e6, "sideband": "lower"}, rate=8e6),
    Case("sample.dada"),
    Case("sample.dada", {"sideband": "lower"}),
    Case("sample_meerkat.dada", ends=MEERKAT),
    Case(
        "sample_meerkat.dada",
        {"sideband": "lower"},
        ends=MEERKAT,
    ),
    *(Case("sample_puppi.raw", {"channel": channel}) for channel in range(4)),
    Case("sample_puppi.raw", {"channel": 2, "sideband": "lower"}),
]
LONG = [case for case in READ if case.name != "sample_arochime.vdif"]  # enough for a heap
REFUSED = [
    Case("sample.vdif", refused="its first frames are of threads [0, 1, 2, 3, 4, 5, 6, 7]"),
    Case("sample_vlbi.vdif", {"threads": (0, 1)}, refused="its threads [0, 1] are 1.43524e+07 s apart"),
    Case("sample_mwa.vdif", refused="its frames do not state the sample rate: give sample_rate_hz"),
    Case("sample_drao_corrupted.vdif", refused="it has VDIF samples of 5 bits, but only 1, 2, 4, 8 and 16 can be read"),
    Case(
        "sample.m5b",
        refused="headers of Mark 5B do not say n_channels and sample_bits and sample_rate_hz and mjd: give",
    ),
    Case("sample_puppi.raw", refused="it has 4 channels, and none is chosen"),
    # the first 7 KB of a recording whose blocks have 130 MB
    Case("sample_blc.raw", {"channel": 63}, ends="in the middle of block 0, which begins at byte 7168: " + CUT_OFF),
    *(
        Case(path.name, refused=f"it is Mark 4 of {TRACKS.get(path.name, 64)} tracks: {NONE_OF_THEM}")
        for path in sorted(FOLDER.glob("*.m4"))
    ),
    *(
        Case(f"gsb/{path.name}", refused=f"it is GSB (GMRT): {NONE_OF_THEM}")
        for path in sorted(FOLDER.glob("gsb/sample*"))
    ),
]


VEGAS = Case("sample_vegas.raw", {"channel": 0, "sideband": "upper"})  # the first 14 KB of such a recording


def by_baseband(case: Case) -> tuple[np.ndarray, Fraction]:
    """What baseband reads, complex or real in units of the smallest level [n, n_pols], and when it begins."""
    kind = {".vdif": vdif, ".dada": dada, ".raw": guppi}[case.path.suffix]
    rate = {} if case.rate is None else {"sample_rate": case.rate * u.Hz}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with kind.open(str(case.path), "rs", squeeze=False, **rate) as file:
            read, bits, start_time = file.read(), file.bps, file.start_time
            start_time.precision = 9
            start = posix(start_time)
    parts = read.view(np.float32)
    if kind is vdif:
        few = np.where(abs(parts) > 2, 3, 1) * np.sign(parts)
        levels = np.rint(parts * LEVEL[bits] - 0.5 * (bits == 8)) if bits in LEVEL else few
        read = levels.astype(np.float32).view(read.dtype)
    channels = case.given.get("channel", 0)
    if isinstance(channels, tuple):
        return read[:, 0, list(channels)], start
    return read[:, list(case.given.get("threads", range(read.shape[1]))), channels], start


@pytest.mark.parametrize("case", READ, ids=str)
def test_samples_and_times_are_those_of_baseband(case: Case) -> None:
    expected, start = by_baseband(case)
    for packets in ((1,), (3,), (1000,)):
        source = open_samples(case.path, **case.given)
        info = source.info
        read = read_file(case.path, packets, **case.given)
        found = read.rows
        if not info.is_complex:
            n = found.shape[1] * 8 // info.sample_bits
            found = np.stack([unpack_samples(row, info.sample_bits, 0, n) for row in found])
        if case.given.get("sideband") == "lower":
            assert info.is_turned
            sign = 1 - 2 * ((info.first_timestamp + np.arange(found.shape[1])) % 2)
            found = found.conj() if info.is_complex else found * sign
            if not info.is_complex:  # the most negative value cannot be turned back
                found[found == 1 - 2 ** (info.sample_bits - 1)] = expected.T[found == 1 - 2 ** (info.sample_bits - 1)]
        assert read.received.all() and found.shape == expected.T.shape and (found == expected.T).all()
        assert abs(info.sync_time_unix + read.time / Fraction(info.sample_rate_hz) - start) < 1e-9
        assert read.error == "" and (case.ends in read.lost if case.ends else read.lost == "")
        assert case.ends or info.n_samples == len(expected)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_be_read_is_refused_with_the_reason(case: Case) -> None:
    with pytest.raises(UsageError) as caught:
        source = open_samples(case.path, **case.given)
        assert not case.refused
        read = read_all(source)
        assert read.samples == []
        raise UsageError(read.error)
    assert str(caught.value).startswith(f"{case.path}: ") and "\n" not in str(caught.value)
    assert (case.refused or case.ends) in str(caught.value)


def test_what_is_there_of_a_block_that_is_cut_off_is_read() -> None:
    read = read_file(VEGAS.path, (7,), no_flags=True, **VEGAS.given)
    assert f"in the middle of block 0, which begins at byte 6320: {CUT_OFF}" in read.lost
    parts = np.fromfile(VEGAS.path, np.int8, offset=6320)
    parts = parts[: len(parts) // 256 * 256].reshape(-1, 2, 2).astype(np.float32)
    assert (read.rows == (parts @ np.array([1, 1j], np.complex64)).T).all() and read.received.all()


def test_every_recording_of_vdif_dada_and_guppi_is_in_the_table() -> None:
    there = {path.name for suffix in ("vdif", "dada", "raw") for path in FOLDER.glob(f"*.{suffix}")}
    assert there == {
        case.name for case in [*READ, *REFUSED, VEGAS] if Path(case.name).suffix in (".vdif", ".dada", ".raw")
    }


@pytest.mark.parametrize(("case", "is_cut"), [(case, i % 2 == 0) for i, case in enumerate(LONG)], ids=str)
def test_an_engine_makes_all_heaps_of_what_is_read(case: Case, is_cut: bool, tmp_path: Path) -> None:
    info, n = open_samples(case.path, **case.given).info, len(by_baseband(case)[0])
    packet = info.packet
    step = 8 if info.is_complex else 16
    begin, length, needed = info.first_timestamp, 8 * step, (8 + 4 - 1) * step
    expected = range(-(-begin // length) * length, begin + n // packet * packet - needed + 1, length)
    path, chunk = tmp_path / "voltages.h5", packet if is_cut else 1 << 20
    running = Running(device="host", chunk=chunk, strict=True)
    made = channelise(case.path, Bands(8, 4, spectra_per_heap=8), path, header=case.given, running=running)
    assert made.bands[0].counters.heaps_missing == 0 and made.has_failed == bool(case.ends)
    assert case.ends in "".join(made.losses) and len(made.losses) == bool(case.ends)
    files = GrownFile(path, FORMAT, CHECKS, NEEDED)
    assert files.timestamps().tolist() == list(expected) and len(expected) > 0
    files.close()
