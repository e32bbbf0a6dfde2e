"""One antenna of an engine: its samples, its bands, and the sinks of their voltages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..corrections.delays import DelayModel
from ..corrections.gains import Gains
from ..machine.backend import Event
from ..run.bay import Bay
from ..run.counters import FCounters
from ..streams.samples import SampleInfo, Source
from ..streams.voltages import VoltageInfo, VoltageSink
from .band import Band
from .input import FInput
from .narrow_band import NarrowBand, NarrowSettings
from .output import FOutput
from .voltage_buffers import BandSettings, Voltages

Deliver = Callable[[Voltages], tuple[Event, ...]]


@dataclass
class Output:
    """A band and the sink of its voltages. Delays and gains may be changed while the engine runs.

    ``sink``: None if voltages do not leave the device.
    """

    settings: BandSettings | NarrowSettings
    sink: VoltageSink | None
    delays: Sequence[DelayModel]
    gains: Gains


class FChain:
    """The chain of one antenna: a copy to the device, its bands, and a copy out for each.

    Args:
        chunk_packets: packets of each polarisation that go to the device together.
        joins: also takes voltages on the device. Returns the events after which they are not needed.
    """

    def __init__(
        self,
        bay: Bay,
        source: Source,
        outputs: Sequence[Output],
        chunk_packets: int,
        joins: Deliver | None = None,
    ) -> None:
        info = source.info
        self.counters = [FCounters(info.sample_bits, info.n_pols) for _ in outputs]
        self.outputs: list[FOutput] = []
        self._bands: list[Band | NarrowBand] = []
        for output, counters in zip(outputs, self.counters, strict=True):
            header = voltage_info(info, output.settings)
            out = FOutput(bay, bank(output.settings), header, output.sink, counters, source.is_live)
            self.outputs.append(out)
            deliver = out.deliver if joins is None else _to_both(out.deliver, joins)
            self._bands.append(_band(bay, info, output, deliver, chunk_packets * info.packet))
        self.input = FInput(bay, source, self._bands, self.counters, chunk_packets)
        self._begin, self.name = info.first_timestamp, info.antenna

    def writers(self) -> dict[str, Callable[[], None]]:
        """Returns the functions of the writing threads, by thread name."""
        return {f"writes-{i}": output.write for i, output in enumerate(self.outputs)}

    def first_heap(self) -> int:
        """Returns the time of the first heap of any band."""
        return min(band.first_heap(self._begin) for band in self._bands)

    def next_time(self) -> int | None:
        """Returns the time from which all heaps use the delays and gains that are set now.

        It is None if all heaps will.
        """
        end = self.input.end
        return None if end is None else max(band.first_heap(end) for band in self._bands)

    def steps(self) -> Iterator[None]:
        """Yields after each chunk; ends when all voltages are delivered."""
        yield from self.input.steps()
        for output in self.outputs:
            output.finish()


def _band(bay: Bay, info: SampleInfo, output: Output, deliver: Deliver, chunk: int) -> Band | NarrowBand:
    settings, delays, gains = output.settings, output.delays, output.gains
    if isinstance(settings, NarrowSettings):
        return NarrowBand(bay, info, settings, delays=delays, gains=gains, deliver=deliver, chunk=chunk)
    return Band(bay, info, settings, delays=delays, gains=gains, deliver=deliver)


def bank(settings: BandSettings | NarrowSettings) -> BandSettings:
    """Returns the settings of the filter bank."""
    return settings.band if isinstance(settings, NarrowSettings) else settings


def voltage_info(samples: SampleInfo, settings: BandSettings | NarrowSettings) -> VoltageInfo:
    """Returns the header of a band's voltages."""
    centre = samples.centre_frequency_hz
    band = bank(settings)
    if isinstance(settings, NarrowSettings):
        step = band.n_channels * settings.decimation
        if centre is not None:  # the centre lies at a quarter of the sample rate
            centre += (settings.centre - 0.25) * samples.sample_rate_hz
    else:
        step = band.shape(samples).step
    return VoltageInfo(
        n_channels=band.n_channels,
        n_pols=samples.n_pols,
        bits=band.bits,
        spectra_per_heap=band.spectra_per_heap,
        step=step,
        samples=samples,
        centre_frequency_hz=centre,
        channel_width_hz=samples.sample_rate_hz / step,
        nibbles=band.nibbles,
        middle_samples=settings.middle,
    )


def _to_both(first: Deliver, second: Deliver) -> Deliver:
    return lambda voltages: (*first(voltages), *second(voltages))
