"""Tunes an engine's kernels at their first use on its device, while the engine is built."""

from collections.abc import Sequence

from ...core.config import Config
from ...core.definition import AnyKernel, Device
from ...core.problem import Problem
from ...devices import device_module
from ...first_use.tuner import tune_first
from ...rendering.render import render
from ...rendering.texts import texts_digest
from ...runtime import gpu
from ...runtime.tune_once import Attempt, Effort, FirstUse, Surroundings, TellLine
from ...source.registry import kernel_reference
from .sources import ConfigSource


def first_tuning(identifier: str, known: Sequence[ConfigSource], effort: Effort, tell: TellLine) -> FirstUse:
    """Returns what tunes the configs that ``known`` ranks first, on the device ``identifier``."""

    def place(kernel: AnyKernel, device: Device) -> tuple[Surroundings, str, str]:
        driver = gpu.driver() if device.kind == "cuda" else ""
        around = Surroundings(device, driver, device_module(device.kind).compiler(device), texts_digest(kernel))
        return around, identifier, kernel_reference(kernel)

    def candidates(kernel: AnyKernel, problem: Problem, device: Device, n: int) -> Sequence[Attempt]:
        predictors = [one.known(kernel, device).predictor for one in known]
        found = [each for one in predictors for each in one.contenders(kernel, problem, device, n)]
        return list({one.config: one for one in found}.values())[:n]

    def key_of(kernel: AnyKernel, problem: Problem, config: Config) -> str:
        return render(kernel, problem, config, numbered=False).key

    return FirstUse(effort, tell, place, candidates, key_of, lambda: tune_first)
