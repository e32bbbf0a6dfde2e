"""One source for the files of one antenna: pieces of a scan, and scans with gaps between them.

Files of frames or blocks that follow each other are read as one file. Others are read one after the other, and samples
in the gaps between them are missing. Files that overlap, are not in the order of time, or differ in their headers are
refused.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError, one_line
from ..streams.samples import SampleInfo, Samples, Source
from .clocks import SAME, Offset, offset_from, offset_of, span_text, whole_bytes
from .fine_packets import FinePackets
from .joined_bytes import joined_name
from .losses import DataLoss
from .opening import can_be_joined, open_joined
from .reading import FIELDS, HeaderOverrides, Tell, refuse, untold

ALIKE = (
    *("sample_bits", "n_pols", "sample_rate_hz", "centre_frequency_hz", "antenna", "position_m", "is_turned"),
    "polarisations",
)


@dataclass(frozen=True)
class Scan:
    """The samples of a file, or of several that are read as one, and their place on the first scan's clock."""

    paths: tuple[Path, ...]
    info: SampleInfo  # the files' own header
    offset: Offset = SAME
    overlap: int = 0  # samples by which the next file may begin before this one's end
    replaced: Mapping[str, Any] = field(default_factory=dict)  # values of the file's own that the caller replaces

    @property
    def name(self) -> Path:
        return joined_name(self.paths)

    @property
    def begin(self) -> int:
        return self.info.first_timestamp + self.offset.whole

    @property
    def end(self) -> int | None:
        """Returns the time after the last sample; None if it is not known."""
        return None if self.info.n_samples is None else self.begin + self.info.n_samples

    def joined(self, later: "Scan") -> "Scan":
        """Returns the scan of these files and those of a later one."""
        n_samples = None if later.end is None else later.end - self.begin
        info = replace(self.info, n_samples=n_samples)
        return replace(self, paths=self.paths + later.paths, info=info, overlap=later.overlap)


@dataclass(frozen=True)
class Late:
    """A change of the clock's rest at a time, which lies in the gap before a scan."""

    start: int
    rest: float  # samples
    phase: float  # radians
    pol: int | None = None  # the polarisation; None means all


def open_scans(paths: Sequence[Path], overrides: HeaderOverrides, tell: Tell, follow_on: bool = False) -> Source:
    """Opens the files of one antenna, in the order of time.

    Args:
        overrides: fields that replace those of the headers.
        follow_on: whether each file begins where the one before ends, whatever time its header has.

    Raises:
        UsageError: when a file cannot be opened, or two overlap, are not in the order of time, or are not alike.
    """
    if len(paths) == 1:
        return open_joined(paths, overrides, tell)
    looks = [_look(path, overrides, untold if number else tell) for number, path in enumerate(paths)]
    first = looks[0].info
    scans: list[Scan] = []
    for look in looks:
        if scans:
            must_be_alike(scans[-1], look)
            if follow_on:
                whole = _end_of(scans[-1]) - look.info.first_timestamp
                look = replace(look, offset=offset_of(first, whole))
            else:
                look = replace(look, offset=offset_from(first, look.info, whole_bytes(first)))
        if scans and not follow_on and _is_next_piece(scans[-1], look):
            scans[-1] = scans[-1].joined(look)
        else:
            if scans:
                _must_be_later(scans[-1], look)
            scans.append(look)
    return ScansSource(scans, overrides, tell) if len(scans) > 1 else open_joined(scans[0].paths, overrides, tell)


class ScansSource:
    """A source of scans, one after the other. Each is opened when its turn comes, and closed at its end.

    An error ends a scan, and ``tell`` takes a line about it; the error of the last scan is raised.
    """

    is_live = False

    def __init__(self, scans: Sequence[Scan], overrides: HeaderOverrides, tell: Tell) -> None:
        first, last = scans[0], scans[-1]
        packet = gcd(*(scan.info.packet for scan in scans), *(scan.begin - first.begin for scan in scans))
        n_samples = None if last.end is None else last.end - first.begin
        self.info = replace(first.info, packet=packet, n_samples=n_samples)
        self._scans, self._overrides, self._tell = list(scans), overrides, tell
        self._number, self._now = 0, self._opened(first)
        self._end = first.begin  # the end of the samples returned so far

    @property
    def late(self) -> list[Late]:
        """Returns the times at which the rest of the scans' clocks changes, and the changes."""
        changes = []
        for before, scan in pairwise(self._scans):
            rest, phase = scan.offset.rest - before.offset.rest, scan.offset.phase - before.offset.phase
            if rest or phase:
                changes.append(Late(((before.end or scan.begin) + scan.begin) // 2, rest, phase))
        return changes

    @property
    def n_recorded(self) -> int | None:
        """Returns the number of samples of each polarisation in all scans; None if it is not known."""
        counts = [scan.info.n_samples for scan in self._scans if scan.info.n_samples is not None]
        return sum(counts) if len(counts) == len(self._scans) else None

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``. A chunk has fewer packets at the end of each scan, too.

        Raises:
            UsageError: for an error of the last scan, and when a scan goes on past the beginning of the next one.
        """
        while self._number < len(self._scans):
            scan, is_last = self._scans[self._number], self._number == len(self._scans) - 1
            try:
                samples = self._now.read(out)
            except UsageError as error:
                if is_last:
                    raise
                self._tell(one_line(f"{error}; the rest of it is missing"))
                samples = None
            if samples is not None:
                if samples.time < self._end:
                    before = self._scans[self._number - 1].name
                    refuse(scan.name, f"it begins before the end of {before}, which has grown longer than it was")
                self._end = samples.time + samples.received.shape[1] * self.info.packet
                return samples
            self._number += 1
            if not is_last:
                self._now.close()
                self._now = self._opened(self._scans[self._number])
        return None

    def close(self) -> None:
        self._now.close()

    def _opened(self, scan: Scan) -> FinePackets:
        source = open_joined(scan.paths, self._overrides, self._tell_loss)
        return FinePackets(source, self.info.packet, scan.offset.whole)

    def _tell_loss(self, line: str) -> None:
        if isinstance(line, DataLoss):
            self._tell(line)


def _look(path: Path, overrides: HeaderOverrides, tell: Tell) -> Scan:
    """Returns a file as a scan."""
    with closing(open_joined([path], overrides, tell)) as source:
        own = {} if overrides.trust_header else dict(overrides.replaced)
        return Scan((path,), source.info, overlap=getattr(source, "overlap", 0), replaced=own)


def must_be_alike(before: Scan, later: Scan) -> None:
    """Raises UsageError when two scans are not of one antenna. The text names both, and the field that differs."""
    for name in ALIKE:
        has, had = (each.replaced.get(name, getattr(each.info, name)) for each in (later, before))
        if has != had:
            remedy = f"; if they are, give {name} and trust_header (--trust-header)" if name in FIELDS else ""
            differs = f"its {name} is {has!r}, but that of {before.name} is {had!r}"
            refuse(later.name, f"{differs}: they are not of one antenna{remedy}")
    if (later.info.sync_time_unix is None) != (before.info.sync_time_unix is None):
        knows, lacks = (later, before) if before.info.sync_time_unix is None else (before, later)
        refuse(lacks.name, f"it does not say when its time was 0 (sync_time_unix), but {knows.name} does")


def _is_next_piece(before: Scan, later: Scan) -> bool:
    """Returns whether a file can be read together with those before it as one file."""
    if before.info.packet != later.info.packet or before.info.sync_time_unix != later.info.sync_time_unix:
        return False
    if not can_be_joined(before.paths[0]) or not can_be_joined(later.paths[0]) or later.begin < before.begin:
        return False
    far = 0 if before.end is None else abs(later.begin - before.end)
    return far <= before.overlap and (later.begin - before.begin) % before.info.packet == 0


def _must_be_later(before: Scan, later: Scan) -> None:
    """Raises UsageError when a file begins before the end of the one before."""
    if later.begin >= (before.begin + 1 if before.end is None else before.end):
        return
    spans = f"{later.name} has samples from {span_text(later.info)}, and {before.name} from {span_text(before.info)}"
    if later.begin == before.begin:
        why = "they are of two antennas, or follow each other without saying so (follow_on = true)"
    elif later.begin < before.begin:
        why = "files of an antenna must be in the order of time"
    else:
        why = "files of one antenna must not overlap"
    raise UsageError(one_line(f"{spans}: {why}"))


def _end_of(scan: Scan) -> int:
    if scan.end is None:
        refuse(scan.name, "its end is damaged, so its length is not known, and no file can follow on")
    return scan.end
