"""Finds what tunes problems of an emitted package at their first use: the GPU here, and the installed autotune."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from ..core.definition import Device, Kernel
from ..core.errors import UsageError, one_line
from ..core.problem import Problem
from ..rendering.texts import texts_digest
from ..runtime import gpu, nvrtc
from ..runtime.tune_once import Surroundings, Tuner
from .predictor import JINJA

TUNER = "autotune.first_use.tuner"  # a string, since a package may be used where autotune is not installed
digest_of = cache(texts_digest)  # it takes 10 ms, and each call of a new size asks for it


def this_gpu(kernel: Kernel[Problem], device: Device) -> tuple[Surroundings, str, str]:
    """Returns the current GPU as ``FirstUse.place``. Raises UsageError when Jinja2 or NVRTC is missing."""
    if find_spec("jinja2") is None:
        raise UsageError(f'rendering needs Jinja2, which is missing: pip install "{JINJA}"')
    if (why := nvrtc.available()) is not None:
        raise UsageError(why)
    around = Surroundings(device, gpu.driver(), nvrtc.described(device.arch), digest_of(kernel))
    return around, f"cuda:{gpu.current()}", str(kernel.source_path.resolve())


def installed_tuner() -> Tuner:
    """Returns the tuner of the installed autotune. Raises UsageError when there is none, and says what is missing."""
    try:
        tuner: Tuner = import_module(TUNER).tune_first
    except ImportError as error:
        why = f"tune= needs autotune itself in this Python ({one_line(str(error))})"
        raise UsageError(f"{why}: install its checkout, or leave tune= out") from error
    return tuner
