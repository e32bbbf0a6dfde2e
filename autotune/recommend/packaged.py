"""An emitted package predicts for problems without a record, and tunes them at their first use if it is asked to.

It predicts from ``measured.json`` and its templates. What tunes is the installed autotune.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Device, Kernel, baked_values
from ..core.errors import UsageError, one_line
from ..core.files import content_of
from ..core.problem import Problem
from ..core.schema import Unsound, parse, seal, sealed
from ..rendering.texts import texts_digest
from ..runtime import gpu, nvrtc
from ..runtime.package import Package
from ..runtime.tune_once import Effort, FirstUse, Surroundings, TellLine, Tuner
from .experience import Experience, read_experience
from .predictor import NO_JINJA, Predictor, Text

MEASURED = "measured.json"
TUNER = "autotune.first_use.tuner"  # a string, since a package may be used where autotune is not installed
digest_of_texts = cache(texts_digest)  # it takes 10 ms, and each call of a new size asks for it


class PredictingPackage(Package):
    """A package with ``measured.json``; its templates lie in the folder of its rooms."""

    @cached_property
    def predicting(self) -> Predictor:
        path = self.folder / MEASURED  # it has a digest of definitions, templates and rooms
        return Predictor(lambda: self._experiences, self._ahead, lambda: sha256(content_of(path)).hexdigest())

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

    @cached_property
    def _experiences(self) -> "Experiences":
        return Experiences(self.folder / MEASURED)


class Experiences(Mapping[str, Experience]):
    """The experiences in a ``measured.json`` by kernel; each is read when asked for: one takes milliseconds.

    The file of an older version has no experiences.

    Raises:
        UsageError: when the file is missing or damaged, or, when it is asked for, an experience.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, dict[str, Experience]()
        try:
            content: dict[str, Any] = parse(content_of(path))
            sealed(content, needed=True)
            if not isinstance(content.get("kernels"), dict):
                raise Unsound("it has no kernels")
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}); `autotune emit` writes it") from error
        except Unsound as error:
            raise UsageError(f"{path} is damaged: {error}. Emit it again") from error
        rows, self._devices = content["kernels"], content.get("devices")
        self._kernels = {name: row for name, row in rows.items() if not (isinstance(row, dict) and "scales" in row)}

    def __getitem__(self, kernel: str) -> Experience:
        if kernel not in self._read:
            row = self._kernels[kernel]
            try:
                self._read[kernel] = read_experience(kernel, row, self._devices)
            except Unsound as error:
                raise UsageError(f"{self._path} is damaged: {kernel} {error}. Emit it again") from error
        return self._read[kernel]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)


def measured_text(content: Mapping[str, object]) -> str:
    """Returns the sealed text of a ``measured.json``."""
    return json.dumps(seal(content), separators=(",", ":"), allow_nan=False) + "\n"


def this_gpu(kernel: Kernel[Problem], device: Device) -> tuple[Surroundings, str, str]:
    """Returns the current GPU as ``FirstUse.place``. Raises UsageError when Jinja2 or NVRTC is missing."""
    if (why := NO_JINJA if find_spec("jinja2") is None else nvrtc.available()) is not None:
        raise UsageError(why)
    around = Surroundings(device, gpu.driver(), nvrtc.described(device.arch), digest_of_texts(kernel))
    return around, f"cuda:{gpu.current()}", str(kernel.source_path.resolve())


def installed_tuner() -> Tuner:
    """Returns the tuner of the installed autotune. Raises UsageError when there is none, and says what is missing."""
    try:
        tuner: Tuner = import_module(TUNER).tune_first
    except ImportError as error:
        why = f"tune= needs autotune itself in this Python ({one_line(str(error))})"
        raise UsageError(f"{why}: install its checkout, or leave tune= out") from error
    return tuner
