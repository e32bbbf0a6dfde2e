"""F-engines of several antennas and an X-engine in one process: samples in, visibilities out.

Voltages stay on the device. Each antenna has a thread that reads. The caller's thread repeatedly takes a chunk of the
antenna that is furthest behind, and gives the batches that all antennas have passed to the X-engine. One thread writes
dumps.

A live antenna that is silent for ``patience_s`` while chunks of others wait is given up until it sends again: its data
are missing, and the others go on.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...core.errors import UsageError
from ..f.chain import FChain, Output, bank, voltage_info
from ..kernels.choice import Kernels
from ..machine.activity import KERNELS, SPANS, Span
from ..machine.backend import Backend
from ..run.bay import Bay
from ..run.cores import ThreadCores
from ..run.counters import FCounters, XCounters, si
from ..run.queues import Buckets
from ..run.stream_progress import StreamProgress
from ..run.threads import run_beside
from ..streams.samples import Source
from ..streams.visibilities import VisibilitySink
from ..x.engine import x_settings
from ..x.output import XOutput
from ..x.stage import XStage
from .joining import Joiner

LEAST_PATIENCE_S = 0.2
LOOK_S = 0.01  # an engine that waits for one antenna checks the others so often


class FXEngine:
    """Runs once: ``FXEngine(backend, sources, outputs, sink, kernels, batches_per_dump=...).run()``.

    Args:
        outputs: one for each source; all have the same settings.
        batches_per_dump: a batch is the heaps of one time.
        chunk_samples: samples of each polarisation that go to the device together, rounded to packets.
        complete_dumps: whether a baseline that lacks any spectrum of a dump has no data there, instead of a lower
            weight.
        send_empty: whether a dump in which no baseline has data is written, filled with the mark of missing data.
        patience_s: seconds for which the others wait for a live antenna; None takes the time of two chunks, but at
            least 0.2 s. Meanwhile there is room for up to four chunks of each other antenna.
        n_slices: parts of the batches of a launch, each with its own sums; None takes the number that should be the
            fastest. Visibilities do not depend on it.
        cores: the cores of threads, by thread name without number: reads, returns, compute (the caller's thread, while
            it runs), writes. Memory that sources fill is allocated near the cores of reads. Other threads run anywhere.
            Linux only.
        report: takes a line of progress now and then.
        trace: takes the spans of the device's work when they are over.

    Raises:
        UsageError: when the sources differ in a field that an X-engine needs to be the same.
    """

    def __init__(
        self,
        backend: Backend,
        sources: Sequence[Source],
        outputs: Sequence[Output],
        sink: VisibilitySink,
        kernels: Kernels,
        *,
        batches_per_dump: int,
        chunk_samples: int,
        complete_dumps: bool = False,
        send_empty: bool = True,
        n_slices: int | None = None,
        patience_s: float | None = None,
        cores: Mapping[str, Sequence[int]] | None = None,
        report: Callable[[str], None] = lambda line: None,
        trace: Callable[[list[Span]], None] | None = None,
    ) -> None:
        if not sources or len(sources) != len(outputs):
            raise UsageError(f"an F- and X-engine needs an output for each source, not {len(outputs)}, {len(sources)}")
        antennas = [voltage_info(s.info, o.settings) for s, o in zip(sources, outputs, strict=True)]
        x_defaults = x_settings(antennas, batches_per_dump, bank(outputs[0].settings).heaps_per_batch, n_slices)
        settings = replace(x_defaults, complete_dumps=complete_dumps)
        bay = Bay(backend, kernels, ThreadCores(cores or {}), SPANS if trace else (KERNELS,))
        self.counters = XCounters()
        self._backend, self._ending, self._cores = backend, bay.ending, bay.cores
        self._is_live = any(source.is_live for source in sources)
        chunk_s = max(chunk_samples / source.info.sample_rate_hz for source in sources)
        self._patience_s = max(LEAST_PATIENCE_S, 2 * chunk_s) if patience_s is None else patience_s
        self._silent_since: dict[int, float] = {}  # antennas for which others wait
        self._output = XOutput(bay, settings, sink, self.counters, send_empty, self._is_live)
        stage = XStage(bay, settings, self._output.deliver, self.counters)
        length = settings.batches_per_chunk * settings.batch_samples
        self._dump_samples = settings.batches_per_dump * settings.batch_samples
        longest = max(chunk_samples, *(source.info.packet for source in sources))  # samples in an antenna's step
        self._joiner = Joiner(backend, stage, -(-longest // length) + 3, self.counters)
        self._chains = []
        for antenna, (source, output) in enumerate(zip(sources, outputs, strict=True)):
            joins = partial(self._joiner.deliver, antenna)
            chunk_packets = max(1, chunk_samples // source.info.packet)
            self._chains.append(FChain(bay, source, [output], chunk_packets, joins))
            if not source.is_live:  # a live source begins with its first packets
                self._joiner.begins(antenna, self._chains[-1].first_heap())
        self.f_counters = [chain.counters[0] for chain in self._chains]
        queues: dict[str, Buckets[Any]] = {"in": self._chains[0].input.chunks, "dumps": self._output.buckets}
        self.progress = StreamProgress(bay.activity, queues, report, trace)
        backend.finish()

    def stop(self) -> None:
        """Take no more chunks, but finish the one in flight. Another thread calls it, even while a source waits."""
        self._ending.asked.set()

    def next_time(self) -> int | None:
        """Returns the time from which all dumps use the delays and gains that are set now.

        It is None if all dumps will. Any thread may call it.
        """
        times = [time for chain in self._chains if (time := chain.next_time()) is not None]
        if not times:
            return None
        return -(-max(times) // self._dump_samples) * self._dump_samples

    @property
    def is_stopped(self) -> bool:
        """Returns whether the engine was asked to end, by ``stop`` or Ctrl-C."""
        return self._ending.asked.is_set()

    def run(self) -> tuple[list[FCounters], XCounters]:
        """Run to the end of all sources, or until ``stop`` or Ctrl-C. Returns the counts of each antenna, and of dumps.

        Raises:
            UsageError: the error of a source or the sink. Dumps written before stay.
        """
        self.counters.began = time.monotonic()
        for counters in self.f_counters:
            counters.began = time.monotonic()
        reads: dict[str, Callable[[], None]] = {}
        writes: dict[str, Callable[[], None]] = {"writes-dumps": self._output.write}
        for antenna, chain in enumerate(self._chains):
            reads |= {f"{name}-{antenna}": run for name, run in chain.input.readers().items()}
            writes |= {f"{name}-{antenna}": run for name, run in chain.writers().items()}
        run_beside(self._ending, reads, writes, self._compute, self._backend.finish, self._cores)
        return self.f_counters, self.counters

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
