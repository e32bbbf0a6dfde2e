"""An emitted package that predicts for problems without a record, from ``measured.json`` and its templates."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path

from ..core.config import Config
from ..core.definition import Device, baked_values
from ..core.errors import UsageError
from ..core.files import content_of
from ..core.problem import Problem
from ..core.schema import SEAL, Unsound, parse, seal, sealed
from ..runtime.package import Package
from ..runtime.tune_once import Effort, FirstUse, TellLine
from .experience import Experience, read_experience
from .package_tuning import installed_tuner, this_gpu
from .predictor import Predictor, Text

MEASURED = "measured.json"


class PredictingPackage(Package):
    """A package with ``measured.json``; its templates lie in the folder of its rooms."""

    @cached_property
    def predicting(self) -> Predictor:
        return Predictor(self._experiences, self._ahead, self._identity)

    def source(self, key: str) -> str:
        text = self.predicting.source(key)
        return super().source(key) if text is None else text

    def tuning(self, effort: Effort, tell: TellLine) -> FirstUse:
        return FirstUse(effort, tell, this_gpu, self.predicting.contenders, self.predicting.rendered, installed_tuner)

    def _ahead(self, kernel: str, problem: Problem, device: Device) -> Iterator[tuple[Config, Text]]:
        for entry in self.wisdom(kernel).ahead:
            if entry.kernel == kernel and entry.arch == device.arch and dict(entry.baked) == baked_values(problem):
                yield entry.config, partial(self._text, entry.source_key)

    def _text(self, key: str) -> tuple[str, str]:
        return key, Package.source(self, key)

    def _identity(self) -> str:
        """Returns the seal of ``measured.json``, which covers a digest of definitions, templates and rooms."""
        return str(self._content.get(SEAL, ""))

    @cached_property
    def _content(self) -> Mapping[str, object]:
        return read_measured(self.folder / MEASURED)

    def _experiences(self) -> "Experiences":
        return Experiences(self._content, self.folder / MEASURED)


def read_measured(path: Path) -> Mapping[str, object]:
    """Returns the content of a ``measured.json``, including its seal.

    Raises:
        UsageError: when the file is missing or damaged.
    """
    try:
        content: Mapping[str, object] = parse(content_of(path))
        sealed(content, needed=True)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); `autotune emit` writes it") from error
    except Unsound as error:
        raise UsageError(f"{path} is damaged: {error}. Emit it again") from error
    return content


class Experiences(Mapping[str, Experience]):
    """The experiences in a ``measured.json`` by kernel; each is read when asked for: one takes milliseconds.

    Asking raises UsageError if an experience is damaged. The file of an older version has none.
    """

    def __init__(self, content: Mapping[str, object], path: Path) -> None:
        self._content, self._path = content, path
        kernels = content.get("kernels")
        if not isinstance(kernels, dict):
            raise UsageError(f"{path} is damaged: it has no kernels. Emit it again")
        self._kernels = {name: row for name, row in kernels.items() if not (isinstance(row, dict) and "scales" in row)}
        self._read: dict[str, Experience] = {}

    def __getitem__(self, kernel: str) -> Experience:
        if kernel not in self._read:
            row = self._kernels[kernel]
            try:
                self._read[kernel] = read_experience(kernel, row, self._content.get("devices"))
            except Unsound as error:
                raise UsageError(f"{self._path} is damaged: {error}. Emit it again") from error
        return self._read[kernel]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


def measured_text(content: Mapping[str, object]) -> str:
    """Returns the sealed text of a ``measured.json``."""
    as_read = json.loads(json.dumps(content, allow_nan=False))
    return json.dumps(seal(as_read), separators=(",", ":")) + "\n"
