"""The bay in which an engine works: what its parts share is made once, and passed on as a whole."""

from dataclasses import dataclass, field

from ..kernels.choice import Kernels
from ..machine.activity import Activity
from ..machine.backend import Backend
from .cores import ThreadCores
from .queues import Ending


@dataclass(frozen=True)
class Bay:
    """The device, the choice of kernels for it, what it did when, and why the engine ends. An engine has its own.

    ``cores``: those of its threads.
    """

    backend: Backend
    kernels: Kernels
    cores: ThreadCores = field(default_factory=ThreadCores)
    activity: Activity = field(init=False)
    ending: Ending = field(init=False, default_factory=Ending)

    def __post_init__(self) -> None:
        object.__setattr__(self, "activity", Activity(self.backend))
