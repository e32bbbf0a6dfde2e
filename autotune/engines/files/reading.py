"""Reads binary files by position while they may grow, fields of text headers, and times in headers."""

import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...core import schema
from ...core.errors import UsageError, one_line
from ...system.setting import Setting
from ..streams.samples import SampleInfo
from ..streams.times import DECIMAL, MOST_S, exact_time, leap_seconds, step_of
from . import checks
from .checks import HeaderField as HeaderField
from .turned import SIDEBANDS

MOST_PACKET = 4096  # the most samples in a packet, if the format has no packets
MOST_GAP_S = 3600  # the longest gap in a recording; times further apart are damage
MOST_BYTES = 1 << 30  # the most bytes of a frame or block, since a damaged header may ask for any number
KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}
COARSE = Fraction(1, 10)  # samples: the user gets a line about a start that is less exact

Tell = Callable[[str], None]


def untold(line: str) -> None:
    """Ignores a line for the user."""


def parsed_one_or_more(text: str) -> Any:
    """Returns a number, or several with commas between them. Raises ValueError for other texts."""
    parts = checks.numbers(int)(text)
    return parts if len(parts) > 1 else parts[0]


def _flag(text: str) -> object:
    return {"true": True, "false": False}.get(text.lower(), text)


def one_or_more(value: object) -> object:
    """Checks for a count, or a list of counts."""
    return schema.sequence_of(schema.as_count)(value) if isinstance(value, list) else schema.as_count(value)


OF_SAMPLES = {name: one for name, one in checks.SAMPLES.items() if one.help}
FIELDS: Mapping[str, HeaderField] = {  # every recording has these; a format declares others as its ``header_fields``
    **OF_SAMPLES,
    "channel": HeaderField("the channel to read; two become the polarisations", one_or_more, parsed_one_or_more),
    "sideband": HeaderField("lower: the band falls with frequency; upper: it rises", schema.one_of(SIDEBANDS)),
    "trust_header": HeaderField("true: keep what data, physics or the clock contradict", schema.as_flag, _flag),
}


def header_setting(name: str) -> Setting:
    """Returns a field of every header as a setting of a file."""
    one = FIELDS[name]
    return Setting(f"{one.help[0].upper()}{one.help[1:]}.", one.check, "none")


@dataclass(frozen=True)
class HeaderOverrides:
    """Fields of a header that the caller gives; each replaces the file's own. As an attribute, one that lacks is None.

    ``header_fields.overrides_of`` makes and checks them.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    replaced: dict[str, Any] = field(default_factory=dict)  # name -> the file's own value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.given.get(name)

    def instead(self, name: str, own: Any) -> Any:
        """Returns the given field, or else the file's ``own``; notes what is replaced. ``own``: None if it has none."""
        value = self.given.get(name, own)
        if own not in (None, "") and value != own:
            self.replaced[name] = own
        return value

    def of_one(self, place: int) -> "HeaderOverrides":
        """Returns the fields for one of a file's two polarisations, of which both may be named."""
        names = self.polarisations or ""
        given = {**self.given, "polarisations": names[place]} if len(names) > 1 else self.given
        return HeaderOverrides(given, self.replaced)

    def rate(self, own: Callable[[], float]) -> float:
        """Returns the given sample rate, or else the file's ``own``, which raises UsageError if it has none."""
        if self.sample_rate_hz is None:
            return own()
        with suppress(UsageError):
            self.instead("sample_rate_hz", own())
        return float(self.sample_rate_hz)

    def over(self, info: SampleInfo) -> SampleInfo:
        """Returns ``info``, in which given fields replace its own."""
        given = [name for name in OF_SAMPLES if name in self.given]
        return replace(info, **{name: self.instead(name, getattr(info, name)) for name in given})

    def one_channel(self, path: Path, n_channels: int) -> int:
        """Returns the channel to read.

        Raises:
            UsageError: when there are several channels and none is given, or the given one does not exist.
        """
        if self.channel is None and n_channels == 1:
            return 0
        if not isinstance(self.channel, int) or not 0 <= self.channel < n_channels:
            problem = "none is chosen" if self.channel is None else f"channel={self.channel} is not one of them"
            why = f"it has {n_channels} channels, and {problem}: choose one, channel=0 to {n_channels - 1}"
            raise LackingError(path, why, "channel", 0)
        return self.channel

    def channels(self, path: Path, n_channels: int) -> tuple[int, ...]:
        """Returns the channels to read: one, or two that become the polarisations. Raises as ``one_channel``."""
        if not isinstance(self.channel, tuple):
            return (self.one_channel(path, n_channels),)
        if len(set(self.channel)) != 2 or not all(0 <= channel < n_channels for channel in self.channel):
            chosen = ",".join(map(str, self.channel))
            refuse(path, f"it has {n_channels} channels, and channel={chosen} are not two of them")
        return self.channel


def refuse(path: Path, why: str) -> NoReturn:
    """Raises UsageError in one line that begins with the file's name."""
    raise UsageError(one_line(f"{path}: {why}"))


def refuse_existing(path: Path) -> NoReturn:
    """Raises UsageError: an output is never written over a file or folder that exists."""
    refuse(path, "it exists; give another name, or remove it")


class LackingError(UsageError):
    """An error about a header field that is missing or wrong, and that the caller can give.

    Args:
        field: the field's name in ``HeaderOverrides``.
        example: a value with which the file can be opened; it may be right.
        hint: text about the example.
    """

    def __init__(self, path: Path, why: str, field: str, example: Any, hint: str = "") -> None:
        super().__init__(one_line(f"{path}: {why}{hint}"))
        self.why, self.field, self.example = one_line(why), field, example


def must_be_file(path: Path) -> None:
    """Raises UsageError for folders, pipes and devices: opening a pipe would wait, and only files have positions."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # opening it gives the reason
    kind = next((name for is_kind, name in KINDS.items() if is_kind(mode)), None)
    if kind is not None:
        more = ": write its data to a file first" if kind == "a pipe" else ""
        refuse(path, f"it is {kind}, but must be a file{more}")


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
        """Returns the length of the file now, in bytes."""
        try:
            return os.fstat(self._file.fileno()).st_size
        except (OSError, ValueError) as error:
            refuse(self.path, f"it cannot be read: {error}")

    def fill(self, out: np.ndarray, offset: int) -> int:
        """Reads into ``out``, uint8 and contiguous, from byte ``offset`` on. Returns the number of bytes read."""
        view, n = out.data.cast("B"), 0
        try:
            while n < len(view) and (got := os.preadv(self._file.fileno(), [view[n:]], offset + n)):
                n += got
        except (OSError, ValueError) as error:
            refuse(self.path, f"byte {offset + n} cannot be read: {error}")
        return n

    def take(self, offset: int, n: int) -> np.ndarray:
        """Returns ``n`` bytes from ``offset`` on, or fewer at the file's end: uint8."""
        n = max(0, min(n, self.size() - offset))
        out = np.empty(n, np.uint8)
        return out[: self.fill(out, offset)]

    def close(self) -> None:
        self._file.close()


def whole_content(path: Path, most_bytes: int) -> bytes:
    """Returns the content of a file. Raises UsageError when it cannot be read, or is longer than ``most_bytes``."""
    with closing(Bytes(path)) as file:
        data = file.take(0, most_bytes + 1).tobytes()
    if len(data) > most_bytes:
        refuse(path, f"it is longer than {most_bytes} bytes, the most for such a file")
    return data


@contextmanager
def closed_on_error(files: Iterable[Any]) -> Iterator[None]:
    """Closes files and sources when an error, or Ctrl-C, comes meanwhile."""
    try:
        yield
    except BaseException:
        for file in files:
            file.close()
        raise


class Header:
    """The fields of a text header. Each is checked when it is read."""

    def __init__(self, path: Path, where: str, values: Mapping[str, object]) -> None:
        self.path, self.where, self.values = path, where, values

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """Returns a field as text, without a terminal's control characters."""
        return one_line(str(self.values.get(name, default)))

    def integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Returns an integer from ``least`` to ``most``.

        Raises:
            UsageError: when it is not such an integer, or is missing without a default.
        """
        text = self._value_text(name, None if default is None else str(default))
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
        """Returns a finite number, exactly as it is written. ``instead`` names the argument that can replace it.

        Raises:
            UsageError: when it is not a number, or is missing without a default.
        """
        text = self._value_text(name, None if default is None else str(default), instead)
        try:
            value = schema.as_number(float(text))
        except (ValueError, schema.Unsound):
            refuse(self.path, f"{self.where} has {name}={schema.value_text(text)}, must be a number")
        return Fraction(text if DECIMAL.fullmatch(text) else value)

    def _value_text(self, name: str, default: str | None, instead: str = "") -> str:
        text = self.values.get(name, default)
        if text is None and instead:
            raise LackingError(self.path, f"{self.where} lacks {name}: give {instead}", instead, 1.0)
        if text is None:
            refuse(self.path, f"{self.where} lacks {name}")
        return str(text)


def cut_text(file: Bytes, where: str, n_left: int = 0) -> str:
    """Returns the text about a file that ends too early. ``n_left``: bytes at its end that are of no use."""
    left = f"; {n_left} bytes there are left out" if n_left else ""
    return f"it ends at byte {file.size()}, {where}: it was cut off, or is still being written{left}"


def cut_off(file: Bytes, where: str) -> NoReturn:
    """Raises UsageError for a file that ends before its first data."""
    refuse(file.path, cut_text(file, where))


# ---------------------------------------------------------------------- times
@dataclass(frozen=True)
class Start:
    """The time, UTC, at which a stream's time was 0, as a file or a caller states it."""

    time: Fraction  # seconds since 1970
    said: str  # NAME=VALUE
    step_s: Fraction = Fraction(0)  # its resolution; 0 means exact


def unix_of_mjd(day: Fraction | int) -> Fraction:
    """Returns the seconds since 1970 of a modified Julian date, UTC."""
    return Fraction((day - 40587) * 86400)


def settled(path: Path, info: SampleInfo, start: Start | None, overrides: HeaderOverrides, tell: Tell) -> SampleInfo:
    """Returns ``info`` with the start from a header, in UTC, and with the given fields.

    Samples count the leap seconds between the start and the first sample, but UTC does not. ``tell`` takes a line about
    a start whose resolution is more than a tenth of a sample.
    """
    if start is not None:
        if abs(start.time) > MOST_S:
            refuse(path, f"{start.said} is not a time of a recording")
        elapsed_s = info.first_timestamp / Fraction(info.sample_rate_hz)
        info = replace(info, sync_time_unix=start.time - leap_seconds(start.time, elapsed_s))
    info = overrides.over(info)
    if overrides.sync_time_unix is not None:
        start = start_of(overrides.sync_time_unix)
    tell_coarse(path, info, start, tell)
    return info


def start_of(value: Any) -> Start:
    """Returns the start in ``sync_time_unix``, text or a number. Floats have steps of some 10^-7 s; text is exact."""
    step_s = step_of(value) if isinstance(value, float) else Fraction(0)
    return Start(exact_time(value), f"sync_time_unix={value}", step_s)


def tell_coarse(path: Path, info: SampleInfo, start: Start | None, tell: Tell) -> None:
    """Passes a line to ``tell`` about a start whose resolution is more than a tenth of a sample."""
    if start is not None and (samples := start.step_s * Fraction(info.sample_rate_hz)) > COARSE:
        says = f"{start.said} says its start to {float(start.step_s):.2g} s, which is {float(samples):.2g} samples"
        tell(one_line(f"{path}: {says}: give sync_time_unix as text with all of its digits"))


# ---------------------------------------------------------------------- packets


def packet_of(path: Path, n_samples: int, bits: int) -> int:
    """Returns the packet for a recording without packets: the largest power of two up to 4096 that divides its length.

    Packets are whole bytes. If samples of ``bits`` are not, up to 7 samples at the end are left out.

    Raises:
        UsageError: for a recording with fewer samples than one packet.
    """
    least = 8 // math.gcd(8, bits)
    if n_samples < least:
        refuse(path, f"it holds {n_samples} samples of each polarisation, fewer than {least}, the least")
    return min(MOST_PACKET, max(least, n_samples & -n_samples))


def packets_in(out: np.ndarray, info: SampleInfo) -> int:
    """Returns the number of packets that fit into ``out`` of ``Source.read``.

    Raises:
        UsageError: when it does not have one row for each polarisation, or a row does not hold whole packets.
    """
    bits = 8 * out.itemsize  # bits of one element of out
    kind = np.dtype(np.complex64 if info.is_complex else np.uint8)
    n_packets, rest = divmod(int(out.shape[-1]) * bits, info.packet * info.sample_bits)
    if out.dtype != kind or out.ndim != 2 or out.shape[0] != info.n_pols or rest or not n_packets:
        raise UsageError(
            f"samples are read into {out.dtype} {list(out.shape)}, must be {kind} with {info.n_pols} rows of whole "
            f"packets, {info.packet} samples of {info.sample_bits} bits each"
        )
    return n_packets
