"""Reads binary files by position, which may grow meanwhile, the header fields of text headers, and times in them."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...core import schema
from ...core.errors import UsageError, one_line
from ..streams.samples import SampleInfo, Samples
from ..streams.times import DECIMAL, MOST_S, exact_time, leap_seconds, step_of
from . import checks
from .turned import SIDEBANDS

MOST_PACKET = 4096  # samples of a packet, where a format has none of its own
LEAST_PACKET = 8  # samples that are whole bytes at any number of bits
MOST_GAP_S = 3600  # that a recording may have; times further apart are damage
MOST_BYTES = 1 << 30  # of a frame or a block: what a damaged header may ask for
KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}
COARSE = Fraction(1, 10)  # of a sample: starts that are known less exactly are told

Tell = Callable[[str], None]


def untold(line: str) -> None:
    """Takes a line for people, and shows it to nobody."""


CHECKS = {
    **{name: schema.optional(checks.SAMPLES[name]) for name in ("sample_rate_hz", "antenna", "position_m", "n_pols")},
    **{name: schema.optional(checks.SAMPLES[name]) for name in ("centre_frequency_hz", "sync_time_unix")},
    "threads": schema.optional(schema.sequence_of(schema.as_count)),
    "sideband": schema.optional(schema.one_of(SIDEBANDS)),
}


@dataclass(frozen=True)
class HeaderOverrides:
    """Fields of a header that the caller states: each takes the place of the file's own."""

    sample_rate_hz: float | None = None
    antenna: str | None = None
    position_m: tuple[float, float, float] | None = None
    centre_frequency_hz: float | None = None
    sync_time_unix: Fraction | float | str | None = None
    channel: int | tuple[int, int] | None = None  # that is read, of several; two: they are the polarisations
    threads: tuple[int, ...] | None = None  # of VDIF: that are the polarisations
    n_pols: int | None = None  # of GUPPI RAW, where NPOL = 2 may mean 1 or 2
    order: str | None = None  # of DADA with several channels and polarisations: TFP or TPF
    sideband: str | None = None  # lower: the samples' band falls with frequency; upper: it rises, whatever headers say

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            try:
                check(list(value) if isinstance(value, tuple) else value)
            except schema.Unsound as error:
                raise UsageError(f"{name} {error}") from None

    def over(self, info: SampleInfo) -> SampleInfo:
        """Returns ``info`` with what is given instead of its own."""
        names = {field.name for field in fields(SampleInfo)} & {field.name for field in fields(self)} - {"n_pols"}
        said = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(info, **said)

    def one_channel(self, path: Path, n_channels: int) -> int:
        """Returns the channel that is to be read.

        Raises:
            UsageError: when there are several and none is given, or the one given is not there.
        """
        if self.channel is None and n_channels == 1:
            return 0
        if not isinstance(self.channel, int) or not 0 <= self.channel < n_channels:
            found = "none is chosen" if self.channel is None else f"channel={self.channel} is not one of them"
            why = f"it has {n_channels} channels, and {found}: choose one, channel=0 to {n_channels - 1}"
            raise LackingError(path, why, "channel", 0)
        return self.channel


def refuse(path: Path, why: str) -> NoReturn:
    """Raises UsageError in one line that begins with the file's name."""
    raise UsageError(one_line(f"{path}: {why}"))


class LackingError(UsageError):
    """An error about a field that a header lacks, or has wrong, and that a caller can give.

    Args:
        field: its name in ``HeaderOverrides``.
        example: a value with which the file can be opened, which may be the right one.
        hint: what is to be said of the example.
    """

    def __init__(self, path: Path, why: str, field: str, example: Any, hint: str = "") -> None:
        super().__init__(one_line(f"{path}: {why}{hint}"))
        self.why, self.field, self.example = one_line(why), field, example


def must_be_file(path: Path) -> None:
    """Raises UsageError for what is there and no file: opening a pipe would wait, and positions are read here."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # opening it tells why
    found = next((name for is_kind, name in KINDS.items() if is_kind(mode)), None)
    if found is not None:
        more = ": write what comes out of it to a file first" if found == "a pipe" else ""
        refuse(path, f"it is {found}, and a file is read here{more}")


class Bytes:
    """A file that is read by position; it may grow meanwhile.

    Raises:
        UsageError: from all methods, when the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        must_be_file(path)
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        except (OSError, ValueError) as error:
            refuse(path, f"it cannot be opened: {getattr(error, 'strerror', None) or error}")
        self.size()

    def size(self) -> int:
        """Returns how long the file is now."""
        try:
            return os.fstat(self._file.fileno()).st_size
        except (OSError, ValueError) as error:
            refuse(self.path, f"it cannot be read: {error}")

    def fill(self, out: np.ndarray, offset: int) -> int:
        """Reads into ``out``, uint8 and contiguous, from byte ``offset`` on; returns how many bytes there were."""
        view, n = out.data.cast("B"), 0
        try:
            while n < len(view) and (got := os.preadv(self._file.fileno(), [view[n:]], offset + n)):
                n += got
        except (OSError, ValueError) as error:
            refuse(self.path, f"byte {offset + n} cannot be read: {error}")
        return n

    def take(self, offset: int, n: int) -> np.ndarray:
        """Returns ``n`` bytes from ``offset`` on, fewer at the file's end: uint8."""
        n = max(0, min(n, self.size() - offset))
        out = np.empty(n, np.uint8)
        return out[: self.fill(out, offset)]

    def close(self) -> None:
        self._file.close()


class Header:
    """Fields of a text header, each checked when it is asked for."""

    def __init__(self, path: Path, where: str, values: Mapping[str, object]) -> None:
        self.path, self.where, self.values = path, where, values

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Returns a field as text, without characters that a terminal would obey."""
        return one_line(str(self.values.get(name, default)))

    def integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Returns an integer from ``least`` to ``most``.

        Raises:
            UsageError: when it is another one, or lacks where there is no default.
        """
        text = self._found(name, None if default is None else str(default))
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            refuse(
                self.path, f"{self.where} has {name}={schema.value_text(text)}, must be an integer, {least} to {most}"
            )
        return value

    def number(self, name: str, default: float | None = None, instead: str = "") -> Fraction:
        """Returns a finite number, exactly as it is written; ``instead`` names the argument that may say it.

        Raises:
            UsageError: when it is not one, or lacks where there is no default.
        """
        text = self._found(name, None if default is None else str(default), instead)
        try:
            value = schema.as_number(float(text))
        except (ValueError, schema.Unsound):
            refuse(self.path, f"{self.where} has {name}={schema.value_text(text)}, must be a number")
        return Fraction(text if DECIMAL.fullmatch(text) else value)

    def _found(self, name: str, default: str | None, instead: str = "") -> str:
        text = self.values.get(name, default)
        if text is None and instead:
            raise LackingError(self.path, f"{self.where} lacks {name}: give {instead}", instead, 1.0)
        if text is None:
            refuse(self.path, f"{self.where} lacks {name}")
        return str(text)


def cut_off(file: Bytes, where: str) -> NoReturn:
    """Raises UsageError for a file that ends where it must not; what is before was read."""
    refuse(file.path, f"it ends at byte {file.size()}, {where}: it was cut off, or is still being written")


# ---------------------------------------------------------------------- times
@dataclass(frozen=True)
class Start:
    """The time, UTC, at which a stream's time was 0, as a file or a caller states it."""

    time: Fraction  # seconds since 1970
    said: str  # NAME=VALUE
    step_s: Fraction = Fraction(0)  # between times that could have been said; 0: it is exact


def unix_of_mjd(day: Fraction | int) -> Fraction:
    """Returns the seconds since 1970 of a modified Julian date, UTC."""
    return Fraction((day - 40587) * 86400)


def settled(path: Path, info: SampleInfo, start: Start | None, given: HeaderOverrides, tell: Tell) -> SampleInfo:
    """Returns ``info`` with the start that a header says, as UTC has it, and with what is given instead.

    Leap seconds between the start and the first sample are counted by samples, but not by UTC. A start that is known to
    less than a tenth of a sample is told.
    """
    if start is not None:
        if abs(start.time) > MOST_S:
            refuse(path, f"{start.said} is not a time of a recording")
        elapsed_s = info.first_timestamp / Fraction(info.sample_rate_hz)
        info = replace(info, sync_time_unix=start.time - leap_seconds(start.time, elapsed_s))
    info = given.over(info)
    if given.sync_time_unix is not None:
        start = start_of(given.sync_time_unix)
    tell_coarse(path, info, start, tell)
    return info


def start_of(value: Any) -> Start:
    """Returns what ``sync_time_unix`` says, as text or as a number. Floats lie some 10^-7 s apart; text is exact."""
    step_s = step_of(value) if isinstance(value, float) else Fraction(0)
    return Start(exact_time(value), f"sync_time_unix={value}", step_s)


def tell_coarse(path: Path, info: SampleInfo, start: Start | None, tell: Tell) -> None:
    """Tells a start whose resolution is more than a tenth of a sample."""
    if start is not None and (samples := start.step_s * Fraction(info.sample_rate_hz)) > COARSE:
        tell(
            one_line(
                f"{path}: {start.said} says its start to {float(start.step_s):.2g} s, which are {float(samples):.2g} "
                "samples: give sync_time_unix as text with all of its digits"
            )
        )


# ---------------------------------------------------------------------- packets


def packet_of(path: Path, n_samples: int) -> int:
    """Returns the packet of a recording that has none: the largest power of two up to 4096 that divides its length.

    It is 8 samples at least, so that packets are whole bytes; up to 7 samples at the end are then left out.

    Raises:
        UsageError: for a recording of fewer than 8 samples.
    """
    if n_samples < LEAST_PACKET:
        refuse(path, f"it holds {n_samples} samples of each polarisation, fewer than {LEAST_PACKET}, the least")
    return min(MOST_PACKET, max(LEAST_PACKET, n_samples & -n_samples))


def packets_in(out: np.ndarray, info: SampleInfo) -> int:
    """Returns how many packets fit into ``out`` of ``Source.read``.

    Raises:
        UsageError: when it has not one row for each polarisation, or is not of whole packets.
    """
    bits = 8 * out.itemsize  # that one element of it takes
    kind = np.dtype(np.complex64 if info.is_complex else np.uint8)
    n_packets, rest = divmod(int(out.shape[-1]) * bits, info.packet * info.sample_bits)
    if out.dtype != kind or out.ndim != 2 or out.shape[0] != info.n_pols or rest or not n_packets:
        raise UsageError(
            f"samples are read into {out.dtype} {list(out.shape)}, must be {kind} with {info.n_pols} rows of whole "
            f"packets, {info.packet} samples of {info.sample_bits} bits each"
        )
    return n_packets


def came(time: int, n_pols: int, n_packets: int) -> Samples:
    """Returns a chunk of which nothing is missing."""
    return Samples(time, np.ones((n_pols, n_packets), bool))
