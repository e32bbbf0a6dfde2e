"""Kernels from plain text, run on any device: what the tests of devices share."""

import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune import Config, Launch
from autotune.devices import Target, device_module
from autotune.devices.base import Binary, Function, Session
from autotune.rendering.render import Variant

TEXTS = Path(__file__).parent / "conformance"


def with_library(library: str, text: str) -> str:
    """What templates call, and kernels that call it."""
    folder = Path(str(importlib.resources.files("autotune.templates")))
    return (folder / "lib" / f"{library}.cuh").read_text() + (TEXTS / f"{text}.cu").read_text()


def variant(text: str, kernel: str, file: str = "text.cu.j2", line: int = 1) -> Variant:
    """``text`` as if rendered from a template called ``file``, from its ``line`` on."""
    numbered = f'#line {line} "{file}"\n{text}'
    return Variant(kernel, f"{kernel}[]", f"{abs(hash(text)):012x}"[:12], text, numbered, Config())


class Bench:
    """A device, opened in this process, and what was compiled for it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.session: Session = target.module.open(target.identifier)
        self.builds = tuple(dict.fromkeys((*self.session.check_builds, self.session.timed_build)))
        self._binaries: dict[tuple[str, str], Binary] = {}

    def compile(self, text: str, kernel: str) -> Binary:
        if (text, kernel) not in self._binaries:
            module = device_module(self.target.kind)
            self._binaries[text, kernel] = module.compile(variant(text, kernel), self.session.device)
        return self._binaries[text, kernel]

    def load(self, text: str, kernel: str, build: str) -> Function:
        return self.session.load(self.compile(text, kernel), build)

    def run(
        self,
        kernel: str,
        arguments: Mapping[str, Any],
        launch: Launch,
        *,
        build: str,
        outputs: Sequence[str],
        text: str | None = None,
        seed: int = 0,
    ) -> dict[str, np.ndarray]:
        """The outputs after one launch of ``arguments``, in the signature's order: arrays (at first) and scalars.

        Inputs must be as before, and nothing beside a buffer written.
        """
        text = (TEXTS / f"{kernel}.cu").read_text() if text is None else text
        function = self.load(text, kernel, build)
        buffers = {}
        for name, value in arguments.items():
            if isinstance(value, np.ndarray):
                buffers[name] = self.session.buffer(name, value.shape, value.dtype, written=name in outputs)
                buffers[name].write(value)
        function.launch(launch, [buffers.get(name, value) for name, value in arguments.items()], seed=seed)
        read = {name: buffer.read() for name, buffer in buffers.items()}
        damage = [buffer.damage() for buffer in buffers.values()]
        for buffer in buffers.values():
            buffer.free()
        assert damage == [None] * len(damage)
        for name, value in arguments.items():
            if name in read and name not in outputs:
                np.testing.assert_array_equal(read[name], value)
        return {name: read[name] for name in outputs}
