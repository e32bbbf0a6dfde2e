"""The bay of an engine: the objects that its parts share, passed on as a whole."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from ..kernels.choice import Kernels
from ..machine.activity import KERNELS, SPANS, Activity, Span
from ..machine.backend import Backend
from .cores import ThreadCores
from .queues import Ending


class EngineOptions(TypedDict, total=False):
    """The options of all engines; ``Bay`` says what they are."""

    cores: Mapping[str, Sequence[int]] | None
    report: Callable[[str], None]
    trace: Callable[[list[Span]], None] | None


class Bay:
    """The device, the choice of kernels, the times of the device's work, and the reason of the end, for one engine.

    Args:
        cores: the cores of threads, by thread name without number: reads, returns, compute (the caller's thread, while
            it runs), writes. Memory that sources fill is allocated near the cores of reads. Other threads run anywhere.
            Linux only.
        report: takes a line of progress now and then.
        trace: takes the spans of the device's work when they are over.
    """

    def __init__(
        self,
        backend: Backend,
        kernels: Kernels,
        cores: Mapping[str, Sequence[int]] | None = None,
        report: Callable[[str], None] = lambda line: None,
        trace: Callable[[list[Span]], None] | None = None,
    ) -> None:
        self.backend, self.kernels, self.report, self.trace = backend, kernels, report, trace
        self.cores, self.ending = ThreadCores(cores or {}), Ending()
        self.activity = Activity(backend, SPANS if trace else (KERNELS,))
