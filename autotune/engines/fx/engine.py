"""F-engines of several antennas and an X-engine in one process: samples in, visibilities out.

Voltages stay on the device. Each antenna has a thread that reads. The caller's thread repeatedly takes a chunk of the
antenna that is furthest behind, and gives the batches that all antennas have passed to the X-engine. One thread writes
dumps.

A live antenna that is silent for ``patience_s`` while chunks of others wait is given up until it sends again: its data
are missing, and the others go on.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import Any, Unpack

from ...core.errors import UsageError
from ...system.setting import takes_old_names
from ..f.chain import FChain, Output, bank, voltage_info
from ..kernels.choice import Kernels
from ..machine.backend import Backend
from ..run.bay import Bay, EngineOptions
from ..run.counters import FCounters, XCounters, si
from ..run.lifecycle import Engine
from ..run.queues import Buckets
from ..streams.samples import Source
from ..streams.visibilities import VisibilitySink
from ..x.engine import x_settings
from ..x.output import XOutput
from ..x.stage import XStage
from .joining import Joiner

LEAST_PATIENCE_S = 0.2
LOOK_S = 0.01  # an engine that waits for one antenna checks the others so often


class FXEngine(Engine[tuple[list[FCounters], XCounters]]):
    """Runs once: ``FXEngine(backend, sources, outputs, sink, kernels, accumulate=...).run()``.

    Args:
        outputs: one for each source; all make the same channels, and heaps of the same spectra.
        accumulate, complete_dumps, send_empty, n_slices: as ``XEngine`` takes them.
        chunk_samples: samples of each polarisation of the first source that go to the device together, rounded to
            packets; of others as many as come in that time.
        patience_s: seconds for which the others wait for a live antenna; None takes the time of two chunks, but at
            least 0.2 s. Meanwhile there is room for up to four chunks of each other antenna.
        options: cores, report and trace; see ``Bay``.

    Raises:
        UsageError: when the sources differ in a field that an X-engine needs to be the same.
    """

    @takes_old_names(batches_per_dump="accumulate")
    def __init__(
        self,
        backend: Backend,
        sources: Sequence[Source],
        outputs: Sequence[Output],
        sink: VisibilitySink,
        kernels: Kernels,
        *,
        accumulate: int,
        chunk_samples: int,
        complete_dumps: bool = False,
        send_empty: bool = True,
        n_slices: int | None = None,
        patience_s: float | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        if not sources or len(sources) != len(outputs):
            raise UsageError(f"an F- and X-engine needs an output for each source, not {len(outputs)}, {len(sources)}")
        antennas = [voltage_info(s.info, o.settings) for s, o in zip(sources, outputs, strict=True)]
        n_batches = bank(outputs[0].settings).heaps_per_batch
        settings = x_settings(antennas, accumulate, n_batches, n_slices, complete_dumps)
        bay = Bay(backend, kernels, **options)
        self.counters = XCounters()
        self._is_live = any(source.is_live for source in sources)
        rate_hz = sources[0].info.sample_rate_hz
        self._patience_s = max(LEAST_PATIENCE_S, 2 * chunk_samples / rate_hz) if patience_s is None else patience_s
        self._silent_since: dict[int, float] = {}  # antennas for which others wait
        length = settings.batches_per_chunk * settings.batch_samples
        self._dump_samples = settings.accumulate * settings.batch_samples
        packets = (ceil(source.info.packet * rate_hz / source.info.sample_rate_hz) for source in sources)
        longest = max(chunk_samples, *packets)  # samples in an antenna's step
        n_chunks = -(-longest // length) + 3
        n_waiting = settings.dumps_of(n_chunks)
        self._output = XOutput(bay, settings, sink, self.counters, send_empty, self._is_live, n_waiting)
        stage = XStage(bay, settings, self._output.deliver, self.counters)
        heap_samples = [antenna.heap_samples for antenna in antennas]
        self._joiner = Joiner(backend, stage, heap_samples, n_chunks, self.counters)
        self._chains = []
        for antenna, (source, output) in enumerate(zip(sources, outputs, strict=True)):
            joins = partial(self._joiner.deliver, antenna)
            own_samples = round(chunk_samples * source.info.sample_rate_hz / rate_hz)
            chunk_packets = max(1, own_samples // source.info.packet)
            self._chains.append(FChain(bay, source, [output], chunk_packets, joins))
            if not source.is_live:  # a live source begins with its first packets
                self._joiner.begins(antenna, self._chains[-1].first_heap())
        self.f_counters = [chain.counters[0] for chain in self._chains]
        queues: dict[str, Buckets[Any]] = {"in": self._chains[0].input.chunks, "dumps": self._output.buckets}
        reads: dict[str, Callable[[], None]] = {}
        writes: dict[str, Callable[[], None]] = {"writes-dumps": self._output.write}
        for antenna, chain in enumerate(self._chains):
            reads |= {f"{name}-{antenna}": run for name, run in chain.input.readers.items()}
            writes |= {f"{name}-{antenna}": run for name, run in chain.writers().items()}
        counts = self.f_counters, self.counters
        super().__init__(bay, counts, [*self.f_counters, self.counters], reads, writes, queues)

    def next_time(self) -> int | None:
        """Returns the time from which all dumps use the delays and gains that are set now.

        It is None if all dumps will. Any thread may call it.
        """
        own = enumerate(chain.next_time() for chain in self._chains)
        times = [self._joiner.joint_time(antenna, time) for antenna, time in own if time is not None]
        if not times:
            return None
        return -(-max(times) // self._dump_samples) * self._dump_samples

    def _compute(self) -> None:
        steps = [chain.steps() for chain in self._chains]
        while (antenna := self._next()) is not None:
            if next(steps[antenna], self) is self:
                self._joiner.ended(antenna)
            self.progress.tick(self._line)
        self._output.finish()

    def _next(self) -> int | None:
        """Returns the antenna to step next, or None when all have ended.

        It waits for a live antenna, or gives it up.
        """
        joiner = self._joiner
        while True:
            for antenna in sorted(joiner.given_up):
                if self._chains[antenna].input.is_ready:
                    joiner.returns(antenna)
            order = joiner.order()
            if not order and not joiner.given_up:
                return None
            first = order[0] if order else min(joiner.given_up)
            waited_for = self._chains[first].input
            if order and (waited_for.is_ready or not self._is_live):
                self._silent_since.pop(first, None)
                return first
            if not any(self._chains[antenna].input.is_ready for antenna in order[1:]):
                self._silent_since.pop(first, None)
            elif time.monotonic() - self._silent_since.setdefault(first, time.monotonic()) >= self._patience_s:
                joiner.give_up(first)
                continue
            waited_for.chunks.wait(LOOK_S)
            self.progress.tick(self._line)

    def _line(self) -> str:
        rate = sum(counters.rate() for counters in self.f_counters)
        missing = sum(counters.packets_missing for counters in self.f_counters)
        lost = f", {missing} packets lost" if missing else ""
        silent = ", ".join(self._chains[antenna].name or str(antenna) for antenna in sorted(self._joiner.given_up))
        lost += f", nothing from {silent}" if silent else ""
        return f"{len(self._chains)} antennas, {si(rate)}S/s{lost}, {self.counters.line()}"
