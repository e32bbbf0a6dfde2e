"""The interface of a file format: the attributes and functions of its module."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...streams.samples import Source
from ...streams.visibilities import VisibilityInfo, VisibilitySink
from ...streams.voltages import VoltageInfo, VoltageSink, VoltageSource
from ..reading import Bytes, HeaderOverrides, Tell

SAMPLES, VOLTAGES, VISIBILITIES = "samples", "voltages", "visibilities"  # the content of a format's files


def either(words: Sequence[str]) -> str:
    """Returns the words as a choice: a, b or c."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


class Format(Protocol):
    """The attributes of a module in ``autotune.engines.files.formats``, or in an installed package.

    It also has ``read`` or ``write``, or both, as in the protocol for its content.
    """

    suffixes: tuple[str, ...]  # suffixes of its files, such as .h5; none if only the content shows the format
    holds: str  # SAMPLES, VOLTAGES or VISIBILITIES
    help: str  # its name, in a few words, for help, errors and docs


class SampleFormat(Format, Protocol):
    """A format of recordings.

    A format whose files can hold several antennas has ``antennas_of``, like GUPPI RAW. A format whose files can be read
    one after the other as one file has ``read_joined``, like VDIF. A format whose headers lack something declares it as
    ``header_fields``: a dict of ``reading.HeaderField`` by name. ``--header``, array.toml, ``open_samples`` and their
    help then have it, too; ``overrides`` has its value, or None.
    """

    def recognises(self, file: Bytes) -> bool:
        """Returns whether a file is of this format, by its content or its name. Without it, the suffix decides."""

    def read(self, path: Path, overrides: HeaderOverrides, tell: Tell) -> Source:
        """Opens a recording. ``overrides`` replaces fields of its header, and ``tell`` takes lines for the user.

        A source's ``falls`` is the header field that says that the band falls with frequency, or "". Its ``overlap`` is
        the number of samples by which the next piece of the recording may begin before this one's end.

        Raises:
            UsageError: when its header is wrong, or lacks a needed field that is not given.
        """


class VoltageFormat(Format, Protocol):
    """A format of voltages, one file for each antenna.

    A format that cannot mark missing spectra has ``whole_heaps = True``: heaps that lack some are left out.
    """

    def write(self, path: Path, info: VoltageInfo, tell: Tell) -> VoltageSink:
        """Makes a new file. Raises UsageError when it cannot be made, or cannot hold ``nibbles`` real_high."""

    def read(self, paths: Sequence[Path]) -> VoltageSource:
        """Opens the files of several antennas. Raises UsageError when one is damaged, or they do not fit together."""


class VisibilityFormat(Format, Protocol):
    """A format of visibilities. Its ``needs``, if any, are the fields of ``SampleInfo`` that each antenna must have."""

    def write(self, path: Path, info: VisibilityInfo, tell: Tell) -> VisibilitySink:
        """Makes a new file; ``tell`` takes lines for the user. Raises UsageError when it cannot be made."""
