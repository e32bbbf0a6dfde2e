"""The bay in which an engine works: what its parts share is made once, and passed on as a whole."""

from collections.abc import Collection
from dataclasses import dataclass, field

from ..kernels.choice import Kernels
from ..machine.activity import SPANS, Activity
from ..machine.backend import Backend
from .cores import ThreadCores
from .queues import Ending


@dataclass(frozen=True)
class Bay:
    """The device, the choice of kernels for it, what it did when, and why the engine ends. An engine has its own.

    ``cores``: those of its threads. ``kinds``: the spans of the device's work that are asked for.
    """

    backend: Backend
    kernels: Kernels
    cores: ThreadCores = field(default_factory=ThreadCores)
    kinds: Collection[str] = SPANS
    activity: Activity = field(init=False)
    ending: Ending = field(init=False, default_factory=Ending)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activity", Activity(self.backend, self.kinds))
