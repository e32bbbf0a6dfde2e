"""The bay of an engine: the objects that its parts share, passed on as a whole."""

from collections.abc import Collection
from dataclasses import dataclass, field

from ..kernels.choice import Kernels
from ..machine.activity import SPANS, Activity
from ..machine.backend import Backend
from .cores import ThreadCores
from .queues import Ending


@dataclass(frozen=True)
class Bay:
    """The device, the choice of kernels, the times of the device's work, and the reason of the end, for one engine.

    ``cores``: the cores of its threads. ``kinds``: the kinds of spans to time.
    """

    backend: Backend
    kernels: Kernels
    cores: ThreadCores = field(default_factory=ThreadCores)
    kinds: Collection[str] = SPANS
    activity: Activity = field(init=False)
    ending: Ending = field(init=False, default_factory=Ending)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activity", Activity(self.backend, self.kinds))
