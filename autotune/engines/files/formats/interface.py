"""The interface of a format of files: what a module for one offers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...streams.samples import Source
from ...streams.visibilities import VisibilityInfo, VisibilitySink
from ...streams.voltages import VoltageInfo, VoltageSink, VoltageSource
from ..reading import Bytes, HeaderOverrides, Tell

SAMPLES, VOLTAGES, VISIBILITIES = "samples", "voltages", "visibilities"  # what files of a format hold


def either(words: Sequence[str]) -> str:
    """Returns the words as a choice: a, b or c."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


class Format(Protocol):
    """The attributes of a module in ``autotune.engines.files.formats``, or of an installed package's.

    It has ``read`` or ``write`` besides, or both, as the protocol for what it holds has them.
    """

    suffixes: tuple[str, ...]  # ends of the names of its files, such as .h5; none where only the content says it
    holds: str  # SAMPLES, VOLTAGES or VISIBILITIES
    help: str  # what it is, in a few words, for help, errors and docs


class SampleFormat(Format, Protocol):
    """A format of recordings.

    One that can have several antennas in a file has ``antennas_of``, as GUPPI RAW has. One whose files, one behind the
    other, are a file as well has ``read_joined``, as VDIF has.
    """

    def recognises(self, file: Bytes) -> bool:
        """Returns whether a file is of this format, by its content or its name. Without it, the suffix says so."""

    def read(self, path: Path, given: HeaderOverrides, tell: Tell) -> Source:
        """Opens a recording; ``given`` takes the place of what its header says, and ``tell`` takes lines for people.

        A source with ``falls`` says there how its header has that the band falls with frequency; "" if it does not. One
        with ``overlap`` says by how many samples the next piece of a recording may begin before the end of this one.

        Raises:
            UsageError: when its header is wrong, or lacks what is needed and not given.
        """


class VoltageFormat(Format, Protocol):
    """A format of voltages, one file for each antenna.

    One that cannot say which spectra of a heap came has ``whole_heaps = True``: heaps that lack some are left out.
    """

    def write(self, path: Path, info: VoltageInfo, tell: Tell) -> VoltageSink:
        """Makes a new file. Raises UsageError when it cannot be made, or does not say which ``nibbles`` voltages have
        and they are real_high.
        """

    def read(self, paths: Sequence[Path]) -> VoltageSource:
        """Opens the files of several antennas. Raises UsageError when one is damaged, or they do not fit together."""


class VisibilityFormat(Format, Protocol):
    """A format of visibilities. One that has ``needs`` lists fields of ``SampleInfo`` that each antenna must say."""

    def write(self, path: Path, info: VisibilityInfo, tell: Tell) -> VisibilitySink:
        """Makes a new file; ``tell`` takes lines for people. Raises UsageError when it cannot be made."""
