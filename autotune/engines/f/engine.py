"""An F-engine: samples of one antenna in, voltages of one or several bands out.

One thread reads chunks into pinned memory. The caller's thread copies them to the device and starts the kernels, and
does not wait for them. For each band one thread writes finished heaps. All bands share the copy to the device.
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
        cores: the cores of threads, by thread name without number: reads, returns, compute (the caller's thread, while
            it runs), writes. Memory that sources fill is allocated near the cores of reads. Other threads run anywhere.
            Linux only.
        report: takes a line of progress now and then.
        trace: takes the spans of the device's work when they are over.
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
        """Take no more chunks, but finish the one in flight. Another thread calls it, even while the source waits."""
        self._ending.asked.set()

    def next_time(self) -> int | None:
        """Returns the time from which all heaps use the delays and gains that are set now.

        It is None if all heaps will. Values that are set for a later time hold from then on. Any thread may call it.
        """
        return self._chain.next_time()

    @property
    def is_stopped(self) -> bool:
        """Returns whether the engine was asked to end, by ``stop`` or Ctrl-C."""
        return self._ending.asked.is_set()

    def run(self) -> list[FCounters]:
        """Run to the end of the source, or until ``stop`` or Ctrl-C. Returns the counts of each output.

        Raises:
            UsageError: the error of the source or a sink. Heaps written before stay.
        """
        for counters in self.counters:
            counters.began = time.monotonic()
        reads, writes = self._chain.input.readers(), self._chain.writers()
        run_beside(self._ending, reads, writes, self._compute, self._backend.finish, self._cores)
        return self.counters

    def _compute(self) -> None:
        for _ in self._chain.steps():
            self.progress.tick(lambda: "; ".join(counters.line() for counters in self.counters))
