"""An F-engine: samples of one antenna in, voltages of one or several bands out.

One thread reads chunks into pinned memory. The caller's thread copies them to the device and starts the kernels, and
waits for neither. For each band one thread writes what is finished. All bands share the copy in.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from ...core.errors import UsageError
from ..kernels.choice import Kernels
from ..machine.activity import KERNELS, SPANS, Span
from ..machine.backend import Backend
from ..run.bay import Bay
from ..run.cores import ThreadCores
from ..run.counters import FCounters
from ..run.stream_progress import StreamProgress
from ..run.threads import run_beside
from ..streams.samples import Source
from .chain import FChain, Output


class FEngine:
    """Runs once: ``FEngine(backend, source, [Output(...)], ...).run()``.

    Args:
        chunk_packets: packets of each polarisation that go to the device together.
        cores: those that threads run on, by their names without numbers: reads, returns, compute (the caller's, while
            it runs), writes. Memory that sources fill lies near to those of reads. Others run anywhere. Linux alone.
        report: takes a line of progress now and then.
        trace: takes the spans of the device's work, when they are over.
    """

    def __init__(
        self,
        backend: Backend,
        source: Source,
        outputs: Sequence[Output],
        chunk_packets: int,
        kernels: Kernels,
        *,
        cores: Mapping[str, Sequence[int]] | None = None,
        report: Callable[[str], None] = lambda line: None,
        trace: Callable[[list[Span]], None] | None = None,
    ) -> None:
        if not outputs:
            raise UsageError("an F-engine needs an output")
        bay = Bay(backend, kernels, ThreadCores(cores or {}), SPANS if trace else (KERNELS,))
        self._backend, self._ending, self._cores = backend, bay.ending, bay.cores
        self._chain = FChain(bay, source, outputs, chunk_packets)
        self.counters = self._chain.counters
        queues = {f"out {i}": output.buckets for i, output in enumerate(self._chain.outputs)}
        self.progress = StreamProgress(bay.activity, {"in": self._chain.input.chunks} | queues, report, trace)
        backend.finish()

    def stop(self) -> None:
        """Take no more chunks; the one in flight is finished. Another thread calls it, also while a source waits."""
        self._ending.asked.set()

    def next_time(self) -> int | None:
        """Returns the time from which all heaps are made with the delays and gains that have been set by now.

        None: all of them will be. What was set for a later time holds from that time on. Any thread may ask.
        """
        return self._chain.next_time()

    @property
    def is_stopped(self) -> bool:
        """Returns whether the engine was asked to end, by ``stop`` or Ctrl-C."""
        return self._ending.asked.is_set()

    def run(self) -> list[FCounters]:
        """Run to the end of the source, or until ``stop`` or Ctrl-C; returns the counts of each output.

        Raises:
            UsageError: of the source or a sink; what was written stands.
        """
        for counters in self.counters:
            counters.began = time.monotonic()
        reads, writes = self._chain.input.readers(), self._chain.writers()
        run_beside(self._ending, reads, writes, self._compute, self._backend.finish, self._cores)
        return self.counters

    def _compute(self) -> None:
        for _ in self._chain.steps():
            self.progress.tick(lambda: "; ".join(counters.line() for counters in self.counters))
