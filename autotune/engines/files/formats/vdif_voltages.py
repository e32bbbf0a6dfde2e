"""Voltages as VDIF: complex, offset binary, all channels in a frame, and a thread for each polarisation.

A heap is one or more frames; a missing heap has none. Frames are numbered within a second, so a second must have a
whole number of spectra, and the first must begin with the second. VDIF states no frequencies.
"""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from ....core.errors import one_line
from ...streams.voltages import REAL_LOW, VoltageInfo
from ..appended_file import AppendedFile
from ..packing import nibbles_changed
from ..reading import Tell, refuse
from ..vdif_headers import HEADER_BYTES, NUMBER
from .interface import VOLTAGES

suffixes, holds, help = (".vdif",), VOLTAGES, "VDIF"
whole_heaps = True  # the format cannot mark single spectra of a heap as missing
USUAL_BYTES = 9000  # a frame's usual limit, that of packets
MOST_FRAME_BYTES = 8 * (1 << 24) - 8
MOST_KHZ = 1 << 23  # limit of the rate in extended data
FIRST_S, LAST_S = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2000, 2032))  # limits of epochs
SYNC = 0xACABFEED  # the sync word of extended data version 1
ELSE = "name the file x.raw (GUPPI RAW) or x.h5 instead"


def write(path: Path, info: VoltageInfo, tell: Tell) -> "VdifVoltages":
    """Makes a new file.

    Raises:
        UsageError: when it exists or cannot be made, or VDIF cannot hold such voltages or their times. The text says
            what it could hold.
    """
    division = frames_of(path, info)
    if info.centre_frequency_hz is not None:
        tell(one_line(f"{path}: VDIF has no frequencies: it lacks centre_frequency_hz={info.centre_frequency_hz:g}"))
    rate = Fraction(info.samples.sample_rate_hz) / info.step
    if not _is_said(rate):
        tell(one_line(f"{path}: VDIF states rates in kHz: give sample_rate_hz={float(rate):.0f} to its readers"))
    if len(name := info.samples.antenna) > 2:
        tell(one_line(f"{path}: VDIF has two letters for an antenna: it says {name[:2]}, not {name}"))
    return VdifVoltages(path, info, *division)


def frames_of(path: Path, info: VoltageInfo) -> tuple[int, int]:
    """Returns the spectra in a frame, and the frames in a second.

    Raises:
        UsageError: when the number of channels is not a power of two, or no frames of whole bytes have exact times.
    """
    start = info.samples.sync_time_unix
    if start is None:
        refuse(path, "VDIF states its start: give sync_time_unix of the samples")
    if info.n_channels & (info.n_channels - 1):
        refuse(
            path, f"VDIF needs a power of two of channels, and {info.n_channels} is not one: choose another, or {ELSE}"
        )
    rate = Fraction(info.samples.sample_rate_hz) / info.step
    if rate.denominator != 1:
        fits = [1 << k for k in range(25) if (rate * info.n_channels / (1 << k)).denominator == 1]
        some = f"choose --channels {', '.join(map(str, fits[-3:]))}, or " if fits else ""
        refuse(path, f"{float(rate):.6f} spectra in a second is not a whole number, as VDIF needs: {some}{ELSE}")
    spectrum = info.n_channels * info.bits // 4  # bytes of a polarisation's spectrum
    fits = [n for n in range(1, info.spectra_per_heap + 1) if info.spectra_per_heap % n == 0 and n * spectrum % 8 == 0]
    fits = [n for n in fits if rate % n == 0 and rate / n <= NUMBER and (start * rate / n).denominator == 1]
    fits = [n for n in fits if n * spectrum + HEADER_BYTES <= MOST_FRAME_BYTES]
    if not fits:
        if (start * rate).denominator != 1:
            why = f"second does not begin with a spectrum, as VDIF needs (sync_time_unix={float(start):.9f})"
        else:
            why = f"heap of {info.spectra_per_heap} spectra does not divide into frames that fill a second"
        refuse(path, f"a {why}: {ELSE}")
    n = max((n for n in fits if n * spectrum + HEADER_BYTES <= USUAL_BYTES), default=fits[0])
    return n, int(rate / n)


class VdifVoltages:
    """A sink of voltages: a VDIF file, which can be read while it grows."""

    def __init__(self, path: Path, info: VoltageInfo, n_spectra: int, per_second: int) -> None:
        self.info, self._n_spectra, self._per_second = info, n_spectra, per_second
        self._file = AppendedFile(path)
        self._words = np.zeros(8, np.uint32)  # the words of all headers, without times and threads
        self._zero: Fraction | None = None  # time of the stream's zero, in frames since the epoch

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Append heaps; see ``VoltageSink``.

        Raises:
            UsageError: when they cannot be stored, or VDIF cannot express their time.
        """
        frame_samples = self._n_spectra * self.info.step
        for time, heap in zip(timestamps.tolist(), voltages, strict=True):
            if self._zero is None:
                self._zero = self._begin(time)
            slot = self._zero + Fraction(time, frame_samples)
            assert slot.denominator == 1
            self._file.append(self._frames(int(slot), heap))

    def close(self) -> None:
        self._file.close()

    def _begin(self, first: int) -> Fraction:
        """Makes the words of all headers. Returns the time of the stream's zero in frames since the epoch."""
        samples, spectrum = self.info.samples, self.info.n_channels * self.info.bits // 4
        assert samples.sync_time_unix is not None
        rate = Fraction(samples.sample_rate_hz) / self.info.step
        begins = samples.sync_time_unix + first / Fraction(samples.sample_rate_hz)
        if not FIRST_S <= begins < LAST_S:
            refuse(
                self._file.path,
                f"its first heap is at {float(begins):.0f} s since 1970, but VDIF has only 2000 to 2031",
            )
        date = datetime.fromtimestamp(int(begins // 1), UTC)
        epoch = 2 * (date.year - 2000) + (date.month > 6)
        self._words[1] = epoch << 24
        self._words[2] = (HEADER_BYTES + self._n_spectra * spectrum) // 8
        self._words[2] |= (self.info.n_channels.bit_length() - 1) << 24 | 1 << 29  # version 1 of VDIF
        self._words[3] = _station(samples.antenna) | (self.info.bits - 1) << 26 | 1 << 31
        if _is_said(rate):
            self._words[4:6] = int(rate / 1000) | 1 << 24, SYNC
        epoch_s = int(datetime(date.year, 7 if date.month > 6 else 1, 1, tzinfo=UTC).timestamp())
        return (samples.sync_time_unix - epoch_s) * self._per_second

    def _frames(self, slot: int, heap: np.ndarray) -> np.ndarray:
        """Returns a heap's frames, the first with the time ``slot``: uint8 [n_frames, n_pols, n_bytes]."""
        info, n_pols = self.info, self.info.n_pols
        raw = heap.view(np.uint8).reshape(info.n_channels, info.spectra_per_heap, n_pols, -1)
        if info.bits == 4 and info.nibbles != REAL_LOW:
            raw = nibbles_changed(raw)
        raw = raw ^ np.uint8(0x80 if info.bits == 8 else 0x88)  # offset binary
        n = info.spectra_per_heap // self._n_spectra
        payload = raw.transpose(1, 2, 0, 3).reshape(n, self._n_spectra, n_pols, -1).swapaxes(1, 2)
        seconds, numbers = np.divmod(slot + np.arange(n), self._per_second)
        words = np.tile(self._words, (n, n_pols, 1))
        words[..., 0] = seconds[:, np.newaxis]
        words[..., 1] |= numbers[:, np.newaxis].astype(np.uint32)
        words[..., 3] |= np.arange(n_pols, dtype=np.uint32) << 16
        return np.concatenate([words.astype("<u4").view(np.uint8), payload.reshape(n, n_pols, -1)], axis=-1)


def _is_said(rate: Fraction) -> bool:
    """Returns whether extended data can state this rate of spectra."""
    return rate % 1000 == 0 and rate / 1000 < MOST_KHZ


def _station(name: str) -> int:
    """Returns a station's first two letters as the number for a header."""
    letters = name[:2].encode("ascii", "replace").ljust(2, b"\0")
    return letters[0] << 8 | letters[1]
