"""An X-engine: voltages of all antennas in, visibilities out.

One thread reads chunks of batches into pinned memory. The caller's thread copies them to the device and starts the
kernels, without waiting for either. One thread writes dumps.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ...core.errors import UsageError
from ...system.setting import takes_old_names
from ..kernels.choice import Kernels
from ..machine.activity import COPY_IN
from ..machine.backend import Backend, DeviceArray, Event
from ..run.bay import Bay, EngineOptions
from ..run.counters import FCounters, XCounters
from ..run.lent_chunks import chunks_of
from ..run.lifecycle import Engine
from ..run.queues import Buckets, Chunk
from ..streams.lending import Lends
from ..streams.samples import SampleInfo, places_of
from ..streams.visibilities import VisibilityInfo, VisibilitySink
from ..streams.voltages import REAL_HIGH, Batches, VoltageInfo, VoltageSource
from .one_polarisation import OnePolarisation
from .output import XOutput
from .stage import XStage
from .x_settings import XSettings

ALIKE = (
    *("n_channels", "bits", "nibbles", "spectra_per_heap"),
    *("centre_frequency_hz", "channel_width_hz", "phase_centre"),
)
ALIKE_VOLTAGES = "step", "n_pols"  # a source has one clock and one array for all antennas
ROUNDING = 1e-12  # relative rounding of frequencies
N_LOADED = 3  # chunks on the device


class XEngine(Engine[XCounters]):
    """Runs once: ``XEngine(backend, source, sink, kernels, accumulate=...).run()``.

    Args:
        accumulate: a batch is the heaps of one time.
        batches_per_chunk: batches that go to the device together.
        complete_dumps: whether a baseline that lacks any spectrum of a dump has no data there, instead of a lower
            weight.
        send_empty: whether a dump in which no baseline has data is written, filled with the mark of missing data.
        n_slices: parts of the batches of a launch, each with its own sums; None takes the number that should be the
            fastest. Visibilities do not depend on it.
        burst: dumps of a live source that may wait for the sink; None takes those of all chunks that come at once.
        options: cores, report and trace; see ``Bay``.
    """

    @takes_old_names(batches_per_dump="accumulate")
    def __init__(
        self,
        backend: Backend,
        source: VoltageSource,
        sink: VisibilitySink,
        kernels: Kernels,
        *,
        accumulate: int,
        batches_per_chunk: int = 8,
        complete_dumps: bool = False,
        send_empty: bool = True,
        n_slices: int | None = None,
        burst: int | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        for antenna in source.antennas[1:]:
            for name in ALIKE_VOLTAGES:
                _must_be_alike(name, source.antennas[0], antenna)
        if source.antennas[0].n_pols == 1:
            if isinstance(source, Lends):
                raise UsageError("a source that fills lent arrays must have two polarisations of each antenna, not one")
            source = OnePolarisation(source)
        settings = x_settings(source.antennas, accumulate, batches_per_chunk, n_slices, complete_dumps)
        bay = Bay(backend, kernels, **options)
        counters = self.counters = XCounters()
        self.f_counters: list[FCounters] = []  # no antenna has samples here
        n_chunks = 1 + (source.n_kept(settings.chunk_shape) if isinstance(source, Lends) else 1)
        n_waiting = burst or settings.dumps_of(n_chunks)
        self._output = XOutput(bay, settings, sink, counters, send_empty, source.is_live, n_waiting)
        self._stage = XStage(bay, settings, self._output.deliver, counters)
        self._copies = backend.stream()
        self._loaded = deque[tuple[DeviceArray, Event | None]](
            (backend.empty(settings.chunk_shape, np.int8), None) for _ in range(N_LOADED)
        )
        self._chunks: Buckets[Chunk[Batches]]
        self._chunks, readers = chunks_of(bay, source, settings.chunk_shape, np.int8, [counters])
        queues: dict[str, Buckets[Any]] = {"in": self._chunks, "dumps": self._output.buckets}
        super().__init__(bay, counters, [counters], readers, {"writes": self._output.write}, queues)

    def _compute(self) -> None:
        while (chunk := self._chunks.take()) is not None:
            self._take(chunk)
            self.progress.tick(self.counters.line)
        self._output.finish()

    def _take(self, chunk: Chunk[Batches]) -> None:
        assert chunk.answer is not None
        batches = chunk.answer
        voltages, used = self._loaded.popleft()
        if used is not None:
            self._copies.after(used)
        n = len(batches.present)
        with self._bay.activity.span(COPY_IN, self._copies) as span:
            self._copies.copy_in(voltages[:n], chunk.array[:n])
        chunk.copied = span.end
        self._chunks.give_back(chunk)
        self._stage.stream.after(span.end)
        self._loaded.append((voltages, self._stage.take(voltages, batches.time, batches.present, batches.holes)))


def x_settings(
    antennas: Sequence[VoltageInfo],
    accumulate: int,
    batches_per_chunk: int,
    n_slices: int | None,
    complete_dumps: bool = False,
) -> XSettings:
    """Returns the settings of an X-engine of these antennas.

    Raises:
        UsageError: when antennas differ in a field in which they must be alike.
    """
    first = antennas[0]
    if (each := 32 // first.bits) and first.spectra_per_heap % each:
        some = first.spectra_per_heap // each * each
        raise UsageError(
            f"spectra_per_heap={first.spectra_per_heap}: correlated heaps must have a multiple of {each} spectra, "
            f"with bits={first.bits}; choose {f'{some} or ' if some else ''}{some + each}"
        )
    for antenna in antennas[1:]:
        for name in ALIKE:
            _must_be_alike(name, first, antenna)
        _must_be_alike("sync_time_unix", first, antenna)
    if first.n_channels % 2 and len({antenna.samples.is_complex for antenna in antennas}) > 1:
        why = "real samples beside complex ones need an even number of channels"  # else signs of spectra alternate
        raise UsageError(f"n_channels={first.n_channels}: {why}")
    places = places_of([antenna.samples for antenna in antennas])
    return XSettings(
        n_antennas=len(antennas),
        n_channels=first.n_channels,
        spectra_per_heap=first.spectra_per_heap,
        batch_samples=first.heap_samples,
        accumulate=accumulate,
        batches_per_chunk=batches_per_chunk,
        bits=first.bits,
        n_pols=len(places),
        rows=tuple(_rows(antenna.samples, places) for antenna in antennas),
        alone=frozenset(number for number, antenna in enumerate(antennas) if antenna.n_pols == 1),
        n_slices=n_slices,
        complete_dumps=complete_dumps,
        is_conjugate=first.nibbles == REAL_HIGH,
    )


def _rows(samples: SampleInfo, places: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the row of an antenna's voltages for each place: 1, which is 0, where it lacks the polarisation."""
    return tuple(samples.places.index(place) if place in samples.places else 1 for place in places)


def _must_be_alike(name: str, *antennas: VoltageInfo) -> None:
    """Raises UsageError when two antennas differ. Numbers from headers may differ by rounding."""
    values = [getattr(each if hasattr(each, name) else each.samples, name) for each in antennas]
    both = all(isinstance(value, float) for value in values)
    if values[0] == values[1] or (both and math.isclose(*values, rel_tol=ROUNDING)):
        return
    first, other = (f"{a.samples.antenna or 'antenna'}: {value}" for a, value in zip(antennas, values, strict=True))
    more = "; samples that differ so can be correlated" if name in ALIKE_VOLTAGES else ""
    raise UsageError(f"antennas must have the same {name} to be correlated; {first}, {other}{more}")


def visibility_info(antennas: Sequence[VoltageInfo], accumulate: int) -> VisibilityInfo:
    """Returns the header of these antennas' visibilities. Times are those of the first antenna's samples."""
    first, places = antennas[0], places_of([antenna.samples for antenna in antennas])
    gains = tuple(_in_places(antenna, places) for antenna in antennas if antenna.gain is not None)
    length = accumulate * first.heap_samples
    middles = {None if each.middle_samples is None else each.middle_samples / each.step for each in antennas}
    middle = first.middle_samples if len(middles) == 1 else None
    return VisibilityInfo(
        n_channels=first.n_channels,
        dump_samples=length,
        dump_spectra=accumulate * first.spectra_per_heap,
        antennas=tuple(antenna.samples for antenna in antennas),
        centre_frequency_hz=first.centre_frequency_hz,
        channel_width_hz=first.channel_width_hz,
        gains=gains if len(gains) == len(antennas) else None,
        is_delayed=any(antenna.is_delayed for antenna in antennas),
        phase_centre=first.phase_centre,
        n_pols=len(places),
        middle_samples=None if middle is None else (length - first.step) / 2 + middle,
    )


def _in_places(antenna: VoltageInfo, places: tuple[int, ...]) -> tuple[float, ...]:
    """Returns the gain of each place of an antenna; 0 where it lacks the polarisation."""
    gain = antenna.gain or ()
    return tuple(gain[row] if row < len(gain) else 0.0 for row in _rows(antenna.samples, places))
