"""The bands that a user asks for, and the engine settings that follow from them and from the samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...core import schema
from ...core.errors import UsageError
from ...system.limits import Range
from ...system.setting import CALLS, COMMANDS, Setting, check_settings, table_check, with_old_names
from ..corrections.delays import LONGEST, DelayModel
from ..corrections.gains import Gains
from ..f.chain import Output, bank
from ..f.filters import WINDOWS, low_pass, prototype
from ..f.narrow_band import NarrowSettings
from ..f.voltage_buffers import BandSettings
from ..files import checks
from ..files.delay_file import read_delays, read_phase_centre
from ..files.gain_file import read_gains
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo
from ..streams.voltages import REAL_LOW, check_nibbles
from .inputs import Input
from .level import Level, level_of, rms_of

LEAST_DELAY_DIFF = 1 << 12  # samples: the engine allows at least this difference
MOST_TAPS = 64  # the limit of pfb_fir and channelise
MOST_DELAY_DIFF = 1 << 26
ENDLESS_DELAY_DIFF = 1 << 20  # samples: the difference for a stream without an end
DELAYS_DIFFER = Setting("Samples by which delays may differ.", Range(0, MOST_DELAY_DIFF), "2^20")
MOST_LOW_PASS = 1 << 20  # the largest decimation of a narrow band, and the most taps of its filter
LEAST_OUTPUTS, MOST_OUTPUTS = 64, 1 << 13  # limits of a narrow band's ddc batch, which is about a quarter of a heap

DelayArgument = Path | str | Mapping[str, Sequence[DelayModel]] | Sequence[DelayModel] | None
GainArgument = Path | str | Mapping[str, Any] | Gains | complex | np.ndarray | None


def _gains(value: object) -> float | str:
    """Checks for a number, or the name of a file."""
    return schema.as_word(value) if isinstance(value, str) else checks.real(value)


@dataclass(frozen=True)
class Narrow:
    """A narrow band: its centre, and the filter in front of it."""

    centre_hz: Annotated[float, Setting("Sky frequency if it is known, else from frequency 0 on.", checks.real)]
    decimation: Annotated[int, Setting("Samples for each sample of the narrow band.", Range(2, MOST_LOW_PASS))]
    taps: Annotated[int, Setting("Taps of the low-pass filter: 8 to 16 times `decimation`.", Range(1, MOST_LOW_PASS))]


@with_old_names
@dataclass(frozen=True)
class Bands:
    """The bands to make of samples, the same for all antennas.

    ``delays``: path of a TOML file, or the models of both polarisations, by the antenna's name or for all antennas.
    ``gains``: path of .npz or .npy, or gains (a number, [channels] or [channels, n_pols]), by the antenna's name or
    for all antennas.
    ``phase_centre``: the direction whose fringes these delays stop; a file of delays may name it itself. ``correlate``
    computes the delays itself if it is given a direction.
    ``nibbles``: the nibble of a byte that holds the real part of a 4-bit voltage: real_low, or real_high as in SPEAD.
    ``max_delay_diff``: samples by which delays may differ between polarisations and in time. None takes the largest
    difference while the samples last, and 2^20 for samples without an end. Spectra beyond it are left out, and counted.
    ``whole_heaps``: whether a heap that lacks samples is left out as a whole, instead of only its incomplete spectra.
    """

    channels: Annotated[int, Setting("Channels of each band.", checks.CHANNELS, was=("n_channels",))]
    taps: Annotated[int, Setting("Taps of the filter bank: how many spectra a filter spans.", Range(1, MOST_TAPS))] = 16
    window: Annotated[str, Setting(f"Window of the filter: {', '.join(WINDOWS)}.", tuple(WINDOWS))] = "hann"
    bits: Annotated[int, Setting("Bits of a voltage's real part and of its imaginary part, each: 8 or 4.", (8, 4))] = 8
    spectra_per_heap: Annotated[
        int, Setting("Spectra in a heap. A heap is written as a whole.", Range(1, checks.MOST_SPECTRA))
    ] = 256
    delays: Annotated[DelayArgument, Setting("TOML of each antenna's delays.", schema.as_word, "none")] = field(
        default=None, repr=False
    )
    gains: Annotated[
        GainArgument,
        Setting(
            "Gains in .npz (by antenna) or .npy.", _gains, "gains that give voltages an rms of 16; of 3 for 4 bits"
        ),
    ] = field(default=None, repr=False)
    narrow: Annotated[
        tuple[Narrow, ...],
        Setting(
            "A narrow band in place of the whole one. As an option CENTRE,DECIMATION,TAPS: CENTRE is in Hz; TAPS are "
            "those of the low-pass filter in front of the decimation (8 to 16 times DECIMATION).",
            lambda value: (table_check(Narrow)(value),),
        ),
    ] = ()
    with_whole: Annotated[
        bool, Setting("With --narrow: also make the whole band, from the same samples.", where=COMMANDS)
    ] = False
    phase_centre: PhaseCentre | None = None
    max_delay_diff: Annotated[int | None, replace(DELAYS_DIFFER, where=CALLS)] = None
    nibbles: str = REAL_LOW
    whole_heaps: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        check_nibbles(self.nibbles, self.bits)

    def middle(self, info: SampleInfo) -> float:
        """Returns the number of samples from a spectrum's timestamp to the middle of its filter, in the first band."""
        step = self.channels if self.narrow or info.is_complex else 2 * self.channels
        if self.with_whole or not self.narrow:
            return self.taps * step / 2
        return self.taps * step * self.narrow[0].decimation / 2 + self.narrow[0].taps / 2

    def settings(self, info: SampleInfo, chunk_samples: int, delays: Sequence[DelayModel]) -> list[Any]:
        """Returns the settings of each band of one antenna. The whole band is the first, if it is made."""
        settings: list[BandSettings | NarrowSettings] = []
        difference = delay_difference(info, delays) if self.max_delay_diff is None else self.max_delay_diff
        if self.with_whole or not self.narrow:
            settings.append(self._bank(info.is_complex, chunk_samples, difference))
        for narrow in self.narrow:
            band = self._bank(True, chunk_samples // narrow.decimation, -(-difference // narrow.decimation))
            settings.append(narrow_settings(narrow, band, info))
        return settings

    def outputs(self, opened: Input, chunk_samples: int) -> tuple[list[Output], list[Level]]:
        """Returns one antenna's outputs, without sinks, and the level of each output; no levels if gains were given."""
        info = opened.info
        delays = self.delays_of(info)
        settings = self.settings(info, chunk_samples, delays)
        levels: list[Level] = []
        if self.gains is None:
            rms = rms_of(opened, info)
            levels = [level_of(rms, each) for each in settings]
            gains = [Gains(self.channels, info.n_pols, level.gains) for level in levels]
        else:
            gains = [self.gains_of(info) for _ in settings]
        return [self.output(each, delays, g) for each, g in zip(settings, gains, strict=True)], levels

    def output(self, settings: BandSettings | NarrowSettings, delays: Sequence[DelayModel], gains: Gains) -> Output:
        """Returns a band's output, without a sink. ``delays`` refer to the samples' band."""
        return Output(settings, None, _of_band(delays, settings), gains)

    def delays_of(self, info: SampleInfo) -> list[DelayModel]:
        """Returns the delay models of an antenna's polarisations."""
        delays: Any = read_delays(self.delays) if isinstance(self.delays, str | Path) else self.delays
        if delays is None:
            return [DelayModel() for _ in range(info.n_pols)]
        if isinstance(delays, Mapping):
            delays = _of_antenna(delays, info.antenna, "delays", self.delays)
        return list(delays)[: info.n_pols]

    def direction(self) -> PhaseCentre | None:
        """Returns the direction whose fringes the delays stop, or None. Raises UsageError for a wrong file."""
        if self.phase_centre is None and isinstance(self.delays, str | Path):
            return read_phase_centre(self.delays)
        return self.phase_centre

    def gains_of(self, info: SampleInfo) -> Gains:
        """Returns the gains of an antenna; ``gains`` must not be None."""
        shape = self.channels, info.n_pols
        gains: Any = read_gains(self.gains, *shape) if isinstance(self.gains, str | Path) else self.gains
        if isinstance(gains, Mapping):
            gains = _of_antenna(gains, info.antenna, "gains", self.gains)
        if isinstance(gains, Gains):
            return gains
        return Gains(*shape, gains[:, np.newaxis] if np.ndim(gains) == 1 else gains)

    def _bank(self, is_complex: bool, chunk_samples: int, max_delay_diff: int) -> BandSettings:
        weights = prototype(self.channels, self.taps, self.window, is_complex)
        length = weights.shape[1] * self.spectra_per_heap
        return BandSettings(
            self.channels,
            weights,
            self.bits,
            self.spectra_per_heap,
            heaps_per_batch=max(1, chunk_samples // length),
            max_delay_diff=max_delay_diff,
            nibbles=self.nibbles,
            whole_heaps=self.whole_heaps,
        )


def narrow_settings(narrow: Narrow, band: BandSettings, info: SampleInfo) -> NarrowSettings:
    """Returns the settings of a narrow band.

    Raises:
        UsageError: when its centre is not in the band of the samples, or its decimation is not 2 or more.
    """
    if info.is_complex:
        raise UsageError("a narrow band is cut out of real samples; these are complex")
    if narrow.decimation < 2:
        raise UsageError(f"the decimation of a narrow band is {narrow.decimation}, must be 2 or more")
    begin_hz = 0.0 if info.centre_frequency_hz is None else info.centre_frequency_hz - info.sample_rate_hz / 4
    centre = (narrow.centre_hz - begin_hz) / info.sample_rate_hz
    if not 0 < centre < 0.5:
        end_hz = begin_hz + info.sample_rate_hz / 2
        raise UsageError(
            f"a narrow band's centre is {narrow.centre_hz:.9g} Hz, which is not within the samples' band of "
            f"{begin_hz:.9g} to {end_hz:.9g} Hz"
        )
    outputs = LEAST_OUTPUTS  # a batch is made, or missing, as a whole; large batches need fewer launches
    while outputs < MOST_OUTPUTS and outputs * 8 <= band.n_channels * band.spectra_per_heap:
        outputs *= 2
    return NarrowSettings(band, low_pass(narrow.taps, narrow.decimation), centre, narrow.decimation, outputs)


def delay_difference(info: SampleInfo, delays: Sequence[DelayModel]) -> int:
    """Returns the difference of delays in samples, between polarisations and in time, while the samples last.

    It is 2^20 for samples without an end, whose delays may drift.

    Raises:
        UsageError: when a delay or the difference is more than an engine can keep.
    """
    if info.n_samples is None:
        return ENDLESS_DELAY_DIFF
    begin = info.first_timestamp
    end = begin + info.n_samples
    values = [value for model in delays for value in model.extremes(begin, end)]
    if (longest := max(map(abs, values))) > LONGEST:
        raise UsageError(
            f"a delay of {info.antenna or 'the antenna'} is {longest:.4g} samples while the samples last, and may be "
            f"{LONGEST:.4g}; begin its piece nearer to the samples"
        )
    difference = ceil(max(values) - min(values)) + 1
    if difference > MOST_DELAY_DIFF:
        raise UsageError(
            f"the delays of {info.antenna or 'the antenna'} differ by {difference} samples, between polarisations and "
            f"in time; {MOST_DELAY_DIFF} are possible"
        )
    return max(LEAST_DELAY_DIFF, difference)


def heap_samples(settings: BandSettings | NarrowSettings) -> int:
    """Returns the number of input samples from one heap to the next."""
    band = bank(settings)
    decimation = settings.decimation if isinstance(settings, NarrowSettings) else 1
    return int(band.spectra_per_heap * band.weights.shape[1] * decimation)


def _of_band(delays: Sequence[DelayModel], settings: BandSettings | NarrowSettings) -> list[DelayModel]:
    """Returns ``delays``, which refer to the middle of the samples' band, as they refer to the band's own middle."""
    if isinstance(settings, NarrowSettings):
        return [model.about(settings.centre - 0.25) for model in delays]
    return list(delays)


def _of_antenna(by_antenna: Mapping[str, Any], antenna: str, what: str, where: object) -> Any:
    if antenna in by_antenna:
        return by_antenna[antenna]
    if checks.ALL_OTHERS in by_antenna:
        return by_antenna[checks.ALL_OTHERS]
    names = ", ".join(list(by_antenna)[:8]) + (", .." if len(by_antenna) > 8 else "")
    place = f"{where}: " if isinstance(where, str | Path) else ""
    raise UsageError(f"{place}there are no {what} for antenna {antenna!r}, only for {names}; '*' stands for all others")
