"""The settings of a simulated digitiser: the part of its configuration that decides the samples.

sample_rate_hz = 1712e6
sample_bits = 10
packet = 4096
signals = ["tone(232.3e6, 0.2) + sky", "delay(tone(232.3e6, 0.2), 1.5e-9) + sky"]
dither = 1
period = 16777216
sync_time_unix = "1700000000.0"

[names]
sky = "noise(0.05, seed=7)"

[faults]
lost = 0.01
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from ..files import checks
from ..files.reading import Tell, refuse, untold
from ..files.toml import checked
from ..streams.samples import SampleInfo
from ..streams.times import moment
from .counter_noise import MOST_SEED
from .digitised_signal import DigitisedSignal
from .packet_faults import KINDS, Faults
from .repeated_signal import MOST_PERIOD, RepeatedSignal
from .signal_language import named_values, parsed_signal

MOST_PACKET = 1 << 16  # samples
SEED, SHARE = checks.integer(0, MOST_SEED), checks.within(0, 1)
FAULTS = schema.members_of({**dict.fromkeys(KINDS, SHARE), "seed": SEED})
MEMBERS: Mapping[str, schema.Check] = {
    "sample_rate_hz": checks.rate,
    "sample_bits": checks.integer(2, 16),
    "packet": checks.integer(1, MOST_PACKET),
    "signals": schema.sequence_of(schema.as_word),
    "names": schema.mapping_of(schema.as_word, schema.as_word),
    "dither": SEED,
    "period": checks.integer(1, MOST_PERIOD),
    "sync_time_unix": moment,
    "first_timestamp": checks.integer(-checks.MOST_FIRST, checks.MOST_FIRST),
    "faults": FAULTS,
}
NEEDED = ("sample_rate_hz", "signals")


@dataclass(frozen=True)
class DigitiserSettings:
    """The samples of one antenna, and the faults of their packets on purpose.

    Raises:
        UsageError: for signals outside the language, and for values that do not fit together.
    """

    sample_rate_hz: float  # the rate of each polarisation, more than 0, at most 1e13
    signals: tuple[str, ...]  # one for each of 1 or 2 polarisations, in the language of ``signal_language``
    sample_bits: int = 10  # two's complement, 2 to 16
    packet: int = 4096  # samples of a packet, whole bytes
    names: Mapping[str, str] = field(default_factory=dict)  # signals or numbers that others may use by name
    dither: int | None = None  # seed of what is added before rounding; None: nothing is added
    period: int | None = None  # samples that are made once and sent again and again; None: each is made when it is due
    sync_time_unix: Fraction | None = None  # UTC when the stream's time was 0; None: whoever sends decides
    first_timestamp: int = 0  # time of the first sample that is sent, in samples; a multiple of packet
    faults: Faults = field(default_factory=Faults)  # faults of the packets of each polarisation

    def __post_init__(self) -> None:
        if not 0 < self.sample_rate_hz <= checks.MOST_RATE_HZ:
            raise UsageError(
                f"sample_rate_hz={self.sample_rate_hz:g}, must be more than 0, at most {checks.MOST_RATE_HZ:g}"
            )
        self.exact()
        if self.first_timestamp % self.packet:
            nearest = round(self.first_timestamp / self.packet) * self.packet
            raise UsageError(
                f"first_timestamp={self.first_timestamp} is not a multiple of packet={self.packet}; give {nearest}"
            )
        if self.period is not None and self.period % self.packet:
            up = -(-self.period // self.packet) * self.packet
            raise UsageError(f"period={self.period} is not a multiple of packet={self.packet}; give {up}")

    def exact(self) -> DigitisedSignal:
        """Returns a maker of samples on the fly, without a period."""
        named = named_values(self.names, self.sample_rate_hz, "names")
        signals = [
            parsed_signal(text, self.sample_rate_hz, named, f"signals[{pol}]") for pol, text in enumerate(self.signals)
        ]
        return DigitisedSignal(signals, self.sample_bits, self.packet, self.dither)

    def packets(self, tell: Tell = untold) -> DigitisedSignal | RepeatedSignal:
        """Returns the maker of the packets to send: ``exact``, or one period if there is one.

        ``tell`` takes a line for each frequency that is rounded so that it fits into the period.
        """
        exact = self.exact()
        return exact if self.period is None else RepeatedSignal(exact, self.period, self.sample_rate_hz, tell)

    def info(self, n_samples: int | None = None, antenna: str = "") -> SampleInfo:
        """Returns the header of the samples."""
        return SampleInfo(
            sample_bits=self.sample_bits,
            n_pols=len(self.signals),
            sample_rate_hz=self.sample_rate_hz,
            packet=self.packet,
            n_samples=n_samples,
            first_timestamp=self.first_timestamp,
            antenna=antenna,
            sync_time_unix=self.sync_time_unix,
        )


def digitiser_settings(path: Path, content: Mapping[str, Any], where: str = "it") -> DigitiserSettings:
    """Returns the settings in a table of TOML.

    Args:
        path: the file's path, for errors.
        content: has no other members than the fields of ``DigitiserSettings``.
        where: the table's name in errors.

    Raises:
        UsageError: for a table that is wrong, in one line with the member.
    """
    settings = checked(path, where, schema.members_of(MEMBERS, NEEDED), content)
    try:
        return DigitiserSettings(**{**settings, "faults": Faults(**settings.get("faults", {}))})
    except UsageError as error:
        refuse(path, str(error))
