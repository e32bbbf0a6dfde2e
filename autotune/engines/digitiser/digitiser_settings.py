"""The settings of a simulated digitiser: the part of its configuration that decides the samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, read_settings, shared, table_check
from ..files import checks
from ..files.reading import Tell, header_setting, untold
from ..streams.samples import SampleInfo
from .counter_noise import MOST_SEED
from .digitised_signal import DigitisedSignal
from .packet_faults import Faults
from .repeated_signal import MOST_PERIOD, RepeatedSignal
from .signal_language import named_values, parsed_signal

SAMPLE_BITS = Setting("Bits of a sample in two's complement, 2 to 16.", checks.integer(2, 16))
PACKET = Setting("Samples in a heap, which is one packet of whole bytes.", checks.integer(1, 1 << 16))
TEXTS, NAMED = schema.sequence_of(schema.as_word), schema.mapping_of(schema.as_word, schema.as_word)
SEED, PERIOD, FIRST = checks.integer(0, MOST_SEED), checks.integer(1, MOST_PERIOD), checks.CHECKS["first_timestamp"]


@dataclass(frozen=True)
class DigitiserSettings:
    """The samples of one antenna, and the faults of their packets on purpose.

    Raises:
        UsageError: for signals outside the language, and for values that do not fit together.
    """

    sample_rate_hz: Annotated[float, header_setting("sample_rate_hz")]
    signals: Annotated[tuple[str, ...], Setting("A signal for each of 1 or 2 polarisations, as below.", TEXTS)]
    sample_bits: Annotated[int, SAMPLE_BITS] = 10
    packet: Annotated[int, PACKET] = 4096
    names: Annotated[Mapping[str, str], Setting("Named signals and numbers, for use in `signals`.", NAMED)] = field(
        default_factory=dict
    )
    dither: Annotated[int | None, Setting("Seed of the dither that is added before rounding.", SEED)] = None
    period: Annotated[
        int | None, Setting("Samples that are made once and sent repeatedly, which takes less CPU.", PERIOD)
    ] = None
    sync_time_unix: Annotated[Fraction | None, header_setting("sync_time_unix")] = None
    first_timestamp: Annotated[
        int, Setting("Time of the first sample, a multiple of `packet`.", FIRST, "by the clock")
    ] = 0
    faults: Annotated[Faults, Setting("Faults of packets on purpose, as below.", table_check(Faults), "none")] = field(
        default_factory=Faults
    )

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
        own = {"n_pols": len(self.signals), "n_samples": n_samples, "antenna": antenna}
        return SampleInfo(**shared(self, SampleInfo) | own)


def digitiser_settings(path: Path, content: Mapping[str, Any], where: str = "it") -> DigitiserSettings:
    """Returns the settings in a table of TOML; see ``read_settings``."""
    return read_settings(path, where, DigitiserSettings, content)
