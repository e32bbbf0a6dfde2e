"""Files of VDIF, DADA and GUPPI RAW that `baseband` writes for tests, with the samples that it reads from them."""

import warnings
from pathlib import Path

import astropy.units as u
import numpy as np
from astropy.time import Time
from baseband import dada, guppi, vdif

from autotune import unpack_samples

from .common import Read

RNG = np.random.default_rng(3)
START = Time("2026-02-03T04:05:06", precision=9)
RATE = 8 * u.MHz
EPOCH = Time("2026-01-01T00:00:00")  # of VDIF


def integers(read: Read, bits: int) -> np.ndarray:
    """What was read as numbers: int64 [n, n_pols], or complex64."""
    if read.rows.dtype == np.complex64:
        return read.rows.T
    n = read.rows.shape[1] * 8 // bits
    return np.stack([unpack_samples(row, bits, 0, n) for row in read.rows], axis=1).astype(np.int64)


def vdif_file(
    path: Path, bits: int, n_threads: int = 2, n_channels: int = 1, is_complex: bool = False, edv=1, n_frames: int = 20
) -> np.ndarray:
    """Writes frames of 320 samples; returns what `baseband` reads, [n, n_threads, n_channels], in units of a level."""
    kind = dict(edv=edv, time=START, bps=bits, nchan=n_channels, complex_data=is_complex, samples_per_frame=320)
    if edv in (1, 3):
        kind["sample_rate"] = RATE
    if edv == 3:  # frames of this kind have one length
        kind["samples_per_frame"] = 5000 * 8 // bits // n_channels // (2 if is_complex else 1)
    header = vdif.VDIFHeader.fromvalues(station="Wb", thread_id=0, **kind)
    values = RNG.normal(0, 2.5, (n_frames * header.samples_per_frame, n_threads, n_channels, 2))
    values = values @ [1, 1j] if is_complex else values[..., 0]
    with vdif.open(str(path), "ws", header0=header, sample_rate=RATE, nthread=n_threads, squeeze=False) as file:
        file.write(values.astype(np.complex64 if is_complex else np.float32))
    with vdif.open(str(path), "rs", sample_rate=RATE, squeeze=False) as file:
        assert file.start_time == START
        read = file.read()
    if bits == 8:
        levels = read.view(np.float32) * (71 / 2)  # -127.5 to 127.5
        return np.rint(levels - 0.5).view(read.dtype)
    one_or_three = np.where(np.abs(read.view(np.float32)) > 2, 3, 1) * np.sign(read.view(np.float32))
    return one_or_three.astype(np.float32).view(read.dtype)


def dada_file(path: Path, n_pols: int = 2, n_channels: int = 1, is_complex: bool = False, n: int = 1000) -> np.ndarray:
    """Writes samples; returns what `baseband` reads, [n, n_pols, n_channels]."""
    header = dada.DADAHeader.fromvalues(
        time=START,
        offset=3 * u.s,
        npol=n_pols,
        nchan=n_channels,
        bps=8,
        complex_data=is_complex,
        sample_rate=RATE,
        samples_per_frame=n,
        FREQ=1400.0,
        TELESCOPE="PKS",
    )
    values = np.rint(RNG.normal(0, 40, (n, n_pols, n_channels, 2)).clip(-127, 127))
    values = values @ [1, 1j] if is_complex else values[..., 0]
    with dada.open(str(path), "ws", header0=header, squeeze=False) as file:
        file.write(values.astype(np.complex64 if is_complex else np.float32))
    with dada.open(str(path), "rs", squeeze=False) as file:
        return file.read()


def guppi_file(
    path: Path, n_pols: int = 2, n_channels: int = 4, overlap: int = 0, channels_first: bool = True, n_blocks: int = 6
) -> np.ndarray:
    """Writes blocks of 128 samples; returns what `baseband` reads, [n, n_pols, n_channels]."""
    header = guppi.GUPPIHeader.fromvalues(
        time=START,
        sample_rate=0.25 * u.MHz,
        samples_per_frame=128 + overlap,
        overlap=overlap,
        npol=n_pols,
        nchan=n_channels,
        bps=8,
        pktsize=32 * n_pols * n_channels * 2,
        PKTFMT="1SFA" if channels_first else "SIMPLE",
        OBSFREQ=1500.0,
        TELESCOP="GBT",
        offset=0.001024 * 5 * u.s,
        DIRECTIO=int(overlap > 0),
    )
    values = np.rint(RNG.normal(0, 30, (128 * n_blocks, n_pols, n_channels, 2)).clip(-127, 127)) @ [1, 1j]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open(path, "wb") as raw:
            for block in range(n_blocks):
                some = header.copy()
                some.mutable = True
                some["PKTIDX"] = header["PKTIDX"] + 4 * block
                piece = np.zeros((128 + overlap, n_pols, n_channels), np.complex64)
                part = values[128 * block : 128 * (block + 1) + overlap]
                piece[: len(part)] = part
                guppi.GUPPIFrame.fromdata(piece, some).tofile(raw)
        with guppi.open(str(path), "rs", squeeze=False) as file:
            assert abs((file.start_time - START).sec) < 1e-6
            read = file.read()
    assert (read[: len(values)] == values).all()
    return values
