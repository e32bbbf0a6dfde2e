"""Lookups in packages whose wisdom.json, or one of whose sources, is damaged: the whole one's answer, or an error."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from autotune.emit.writer import write_package
from autotune.runtime.wisdom import Wisdom

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, TALL, WIDE, record
from .mutate import damaged
from .run import Ended, as_command, call, command

QUESTIONS = (
    ("n_time=100,n_chan=4096", "NVIDIA H200"),
    ("n_time=100,n_chan=5000", "NVIDIA H200"),
    ("n_time=100", "sm_75"),
    ("n_time=7", "NVIDIA H200"),
    ("n_time=100,n_chan=9", "NVIDIA H100 PCIe"),
)


class Wisdoms:
    """An emitted package, and its answers while it is whole."""

    def __init__(self, folder: Path, rng: Random) -> None:
        self.folder, self.rng = folder, rng
        for n_chan in (1024, 4096):
            record(folder / "results", H200, {DEFAULT: 30.0, WIDE: 20.0 + n_chan / 1e3, TALL: 25.0}, n_chan=n_chan)
        record(folder / "results", A100, {DEFAULT: 40.0, WIDE: 50.0})
        record(folder / "results", H100, {DEFAULT: 3.0, WIDE: 2.0}, n_time=7)
        self.package = write_package([folder / "results"], folder / "tuned", kernels=[EXAMPLE])
        self._wisdom = (self.package / "wisdom.json").read_bytes()
        self._whole = [self._ask(i) for i in range(len(QUESTIONS))]

    def run(self, n: int) -> Iterator[tuple[str, Ended]]:
        """``n`` lookups, each after another mutation."""
        path = self.package / "wisdom.json"
        loaded = Wisdom.load(path)
        for i in range(n):
            path.write_bytes(damaged(self._wisdom, self.rng))
            question = i % len(QUESTIONS)
            ended, whole = self._ask(question), self._whole[question]
            if ended.code == 0 and ended.out != whole.out:
                ended.faults.append("another answer than the whole one's")
            if ended.code == 0 and Wisdom.load(path) != loaded:
                ended.faults.append("another content than the whole one's")
            if ended.faults:
                shutil.copy(path, self.folder / f"wisdom{i}.json")
            yield f"lookup {QUESTIONS[question]} over {self.folder / f'wisdom{i}.json'}", ended
        path.write_bytes(self._wisdom)

    def sources(self, n: int) -> Iterator[tuple[str, Ended]]:
        """``n`` readings of a damaged source."""
        from autotune.runtime.package import Package

        package = Package("tuned", self.package)
        key = package.wisdom("detect").entries[0].source_key
        path = self.package / "sources" / f"{key}.cu"
        whole = path.read_bytes()
        for i in range(n):
            path.write_bytes(damaged(whole, self.rng))

            def read() -> None:
                print(package.source(key))

            ended = call(as_command(read), [self.folder / "nowhere"])
            if ended.code == 0:
                ended.faults.append("a damaged source was read")
            yield f"source {key}, damaged {i}", ended
        path.write_bytes(whole)

    def _ask(self, number: int) -> Ended:
        problem, device = QUESTIONS[number]
        words = ("lookup", str(self.package), "--kernel", "detect", "--problem", problem, "--device", device, "--json")
        return command(words, [self.folder / "nowhere"])
