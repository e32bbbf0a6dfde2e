"""An F-engine: samples of one antenna in, voltages of one or several bands out.

One thread reads chunks into pinned memory. The caller's thread copies them to the device and starts the kernels, and
does not wait for them. For each band one thread writes finished heaps. All bands share the copy to the device.
"""

from collections.abc import Sequence
from typing import Unpack

from ...core.errors import UsageError
from ..kernels.choice import Kernels
from ..machine.backend import Backend
from ..run.bay import Bay, EngineOptions
from ..run.counters import FCounters
from ..run.lifecycle import Engine
from ..streams.samples import Source
from .chain import FChain, Output


class FEngine(Engine[list[FCounters]]):
    """Runs once: ``FEngine(backend, source, [Output(...)], ...).run()``.

    Args:
        chunk_packets: packets of each polarisation that go to the device together.
        options: cores, report and trace; see ``Bay``.
    """

    def __init__(
        self,
        backend: Backend,
        source: Source,
        outputs: Sequence[Output],
        chunk_packets: int,
        kernels: Kernels,
        **options: Unpack[EngineOptions],
    ) -> None:
        if not outputs:
            raise UsageError("an F-engine needs an output")
        bay = Bay(backend, kernels, **options)
        chain = self._chain = FChain(bay, source, outputs, chunk_packets)
        self.counters = chain.counters
        queues = {f"out {i}": output.buckets for i, output in enumerate(chain.outputs)}
        readers, writers = chain.input.readers, chain.writers()
        super().__init__(bay, chain.counters, chain.counters, readers, writers, {"in": chain.input.chunks} | queues)

    def next_time(self) -> int | None:
        """Returns the time from which all heaps use the delays and gains that are set now.

        It is None if all heaps will. Values that are set for a later time hold from then on. Any thread may call it.
        """
        return self._chain.next_time()

    def _compute(self) -> None:
        for _ in self._chain.steps():
            self.progress.tick(lambda: "; ".join(counters.line() for counters in self.counters))
