"""Implements an emitted package: its wisdom, definitions and sources, and the tuned kernels that it offers."""

import hashlib
import importlib
import logging
from collections.abc import Mapping
from pathlib import Path

from ..core.definition import Device, Kernel, kernel_classes
from ..core.errors import UsageError
from ..core.files import content_of
from ..core.problem import Problem
from .launcher import TunedKernel
from .lookup import Verifying
from .tune_once import Effort, FirstUse, TellLine, effort_of
from .wisdom import KEY, Wisdom


class Package:
    """One emitted package: ``name`` as imported, and its folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._kernels: dict[str, Kernel[Problem]] = {}
        self._wisdom: dict[str, Wisdom] = {}

    def wisdom(self, kernel: str) -> Wisdom:
        """Returns the records of one kernel."""
        if kernel not in self._wisdom:
            self._wisdom[kernel] = Wisdom.load(self.folder / "wisdom.json", kernel)
        return self._wisdom[kernel]

    def kernel(self, name: str) -> Kernel[Problem]:
        """Returns the definition in ``kernels/<name>.py`` or, if it has several files, ``kernels/<name>/<name>.py``."""
        if name not in self._kernels:
            module = importlib.import_module(f"{self.name}.kernels.{name}")
            self._kernels[name] = kernel_classes(module)[1][0]()
        return self._kernels[name]

    def source(self, key: str) -> str:
        """Returns the CUDA source ``sources/<key>.cu``, whose SHA-256 begins with ``key``.

        Raises:
            UsageError: when the package is incomplete or damaged.
        """
        if not KEY.fullmatch(key):
            raise UsageError(f"{key!r} is not a key of a source of {self.name}, which is 12 hexadecimal digits")
        path = self.folder / "sources" / f"{key}.cu"
        try:
            data = content_of(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}); install {self.name} again") from error
        if not hashlib.sha256(data).hexdigest().startswith(key):
            raise UsageError(f"{path} is damaged: its SHA-256 does not begin with {key}; install {self.name} again")
        return data.decode()

    @property
    def predicting(self) -> Verifying | None:
        """Returns the predictor for problems without a record, or None."""
        return None

    def tuned(
        self,
        kernel: str,
        values: Mapping[str, object],
        device: Device | str | None,
        verify: bool = False,
        tune: object = None,
    ) -> TunedKernel:
        """Returns the kernel for a problem; a field whose value is None is derived.

        ``verify``: check a predicted configuration at edge sizes before it is returned. ``tune``: a number of
        configurations, or a time such as "2 s", to tune it at its first use; None: as AUTOTUNE_FIRST_USE says.
        """
        given = {name: value for name, value in values.items() if value is not None}
        log, able = logging.getLogger(self.name), self.predicting
        predicting = able.verifying() if verify and able is not None else able
        effort = effort_of(tune)
        tuning = None if effort is None else self.tuning(effort, lambda text: log.warning("%s", text))
        wisdom = self.wisdom(kernel)
        return TunedKernel(self.kernel(kernel), wisdom, self.source, given, device, log, predicting, tuning)

    def tuning(self, effort: Effort, tell: TellLine) -> FirstUse | None:
        """Returns what tunes problems at their first use, or None."""
        return None
