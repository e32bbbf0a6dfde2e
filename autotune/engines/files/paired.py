"""One source for an antenna whose polarisations were recorded to separate files."""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from pathlib import Path

import numpy as np

from ..corrections.delays import BEFORE
from ..streams.polarisations import basis_of
from ..streams.samples import Samples, Source
from .clocks import Offset, offset_from, whole_bytes
from .fine_packets import FinePackets
from .reading import HeaderOverrides, Tell, closed_on_error, packets_in, refuse
from .scans import Late, Scan, must_be_alike, open_scans


def open_paired(
    files: Sequence[Sequence[Path]], overrides: HeaderOverrides, tell: Tell, follow_on: bool = False
) -> Source:
    """Opens the files of an antenna with ``open_scans``: one list for both polarisations, or one for each.

    Raises:
        UsageError: as ``open_scans`` does; and when separate files each have two polarisations, or differ in their
            headers.
    """
    if len(files) == 1:
        return open_scans(files[0], overrides, tell, follow_on)
    if (names := overrides.polarisations) is not None and len(names) != len(files):
        refuse(files[0][0], f"polarisations={names}: name both, in the order of their files")
    opened: list[Source] = []
    with closed_on_error(opened):
        for pol, each in enumerate(files):
            opened.append(open_scans(each, overrides.of_one(pol), tell, follow_on))
            if opened[-1].info.n_pols != 1:
                refuse(each[0], "it has two polarisations, but only files of one can be paired")
        alike = (replace(source.info, polarisations="") for source in opened)
        first, second = (Scan(tuple(each), info) for each, info in zip(files, alike, strict=True))
        must_be_alike(first, second)
        if all(named := [source.info.polarisations for source in opened]) and len(set(map(basis_of, named))) > 1:
            refuse(files[1][0], f"its polarisation is {named[1]}, but that of {files[0][0]} is {named[0]}")
        return PairedSource(*opened)


class PairedSource:
    """A source of two polarisations, one from each source. If only one has samples at a time, the other's are missing.

    A chunk is at most as long as the samples that both sources have read ahead.
    """

    is_live = False

    def __init__(self, first: Source, second: Source) -> None:
        offset = offset_from(first.info, second.info, whole_bytes(first.info))
        begins = [first.info.first_timestamp, second.info.first_timestamp + offset.whole]
        packet = gcd(first.info.packet, second.info.packet, begins[1] - begins[0])
        lengths = first.info.n_samples, second.info.n_samples
        ends = [begin + length for begin, length in zip(begins, lengths, strict=True) if length is not None]
        n_samples = max(ends) - min(begins) if len(ends) == len(begins) else None
        info = replace(first.info, n_pols=2, packet=packet, first_timestamp=min(begins), n_samples=n_samples)
        names = first.info.polarisations + second.info.polarisations
        self.info = replace(info, polarisations=names if len(set(names)) == 2 else "", first_pol=0)
        self._sources = FinePackets(first, packet, 0), FinePackets(second, packet, offset.whole)
        self._left: list[tuple[np.ndarray, Samples] | None] = [None, None]  # samples that were read but not returned
        self.n_recorded: int | None = getattr(first, "n_recorded", None)
        self.late = [Late(BEFORE, offset.rest, offset.phase, 1)] if offset != Offset(offset.whole) else []
        for pol, (source, shift) in enumerate(((first, 0), (second, offset.whole))):
            self.late += [replace(each, start=each.start + shift, pol=pol) for each in getattr(source, "late", ())]

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``. A chunk may have fewer packets than ``out``.

        Raises:
            UsageError: the error of either source.
        """
        for pol, source in enumerate(self._sources):
            if self._left[pol] is None:
                row = np.empty((1, out.shape[1]), out.dtype)
                if (samples := source.read(row)) is not None:
                    self._left[pol] = row[0], samples
        pending = [samples for _, samples in filter(None, self._left)]
        if not pending:
            return None
        packet = self.info.packet
        time = min(samples.time for samples in pending)
        ends = [each.time + each.received.shape[1] * packet if each.time == time else each.time for each in pending]
        n_room = packets_in(out, self.info)
        n = min(n_room, (min(ends) - time) // packet)
        width, received = out.shape[1] // n_room, np.zeros((2, n), bool)
        for pol, left in enumerate(self._left):
            if left is None or left[1].time != time:
                continue
            row, samples = left
            out[pol, : n * width], received[pol] = row[: n * width], samples.received[0, :n]
            rest = Samples(time + n * packet, samples.received[:, n:])
            self._left[pol] = (row[n * width :], rest) if rest.received.shape[1] else None
        return Samples(time, received)

    def close(self) -> None:
        for source in self._sources:
            source.close()
