"""Command lines of senseless values, for every command and option there is."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import typer

from autotune.cli.program import app

from ..conftest import EXAMPLE, FAULTY
from .records import inside
from .run import Ended, command

WORDS = """
x 0 -1 1 2 3.5 nan inf -inf 1e999 99999999999 0x10 true None , = a=b=c -- - [red]x[/] é
. .. nowhere/there results out/x x.py ../../ESC /proc/self/mem /dev/null t4 csv kernel-tuner parquet
detect ddc correlate host simulated simulated:0 cuda cuda:99 sm_90 sm_ quick full gp random
n_time=3,n_chan=5 n_chan=0 n_chan=-1 n_chan=99999999999 n_chan=x n_time=nan taps=3 n_chan=1,n_chan=2
BLOCK_C=32 BLOCK_C=32,BLOCK_T=4,UNROLL=1 UNROLL=9 UNROLL=1
"""
ODD = ("", "\n", "\udcff", "{{ x }}", "NVIDIA H200", "a" * 3000, "9" * 40)
VALUES = (*WORDS.split(), *ODD)
CHEAP = {"--trials": "2", "--device": "simulated", "--repeats": "1", "--samples": "3", "--jobs": "1", "--time": "0.5"}
OFTEN = {"--kernel": "", "--out": "out/tuned"}  # without which little runs; the example for the kernel
WHERE = ("--out", "--results", "--dashboard")
UNNAMED = ("/", "/dev", "/proc/self")  # of words that are no place to write to
ENDLESS = ("--watch",)  # it waits for a record, however long
SLOW = ("campaign", "worker")  # these start processes of their own: --help and missing files only


class CommandLines:
    """Over recorded sweeps in ``folder``."""

    def __init__(self, folder: Path, rng: Random) -> None:
        self.folder, self.rng = folder, rng
        # Copies: a command may be told to write its output over them.
        for path in (Path(EXAMPLE), Path(FAULTY)):
            for file in (path, path.with_name(f"{path.stem}.cu.j2")):
                (folder / file.name).write_bytes(file.read_bytes())
        self.example = str(folder / Path(EXAMPLE).name)
        self.values = (*VALUES, self.example, str(folder / Path(FAULTY).name))
        self.commands: dict[str, Any] = dict(typer.main.get_command(app).commands)

    def run(self, n: int) -> Iterator[tuple[str, Ended]]:
        """``n`` of them."""
        names = sorted(self.commands)
        for i in range(n):
            words = self._words(names[i % len(names)])
            (self.folder / "out").mkdir(exist_ok=True)
            with inside(self.folder):
                named = [Path(os.path.abspath(word)) for flag, word in pairwise(words) if flag in WHERE]
                named += [path.parent for path in named]  # a file may be named, or a folder
                ended = command(words, [self.folder, *(p for p in named if str(p) not in UNNAMED)], 60.0)
            yield " ".join(map(ascii, words)), ended

    def _words(self, name: str) -> list[str]:
        rng, words = self.rng, [name]
        if rng.random() < 0.03:
            return [rng.choice(self.values)]
        if name in SLOW:
            return [name, rng.choice(("--help", "/nowhere", "", "x.toml", "--devices", "tcp://"))]
        options = [p for p in self.commands[name].params if p.param_type_name == "option"]
        options = [option for option in options if not set(option.opts) & set(ENDLESS)]
        for parameter in self.commands[name].params:
            if parameter.param_type_name == "argument" and rng.random() < 0.95:
                words.append("results" if rng.random() < 0.7 else rng.choice(self.values))
        for option in rng.sample(options, min(len(options), rng.choice((0, 1, 1, 2, 3)))):
            flag = rng.choice(option.opts)
            words += [flag] if option.is_flag else [flag, self._value(flag)]
        there = {flag for option in options for flag in option.opts}
        for flag, value in OFTEN.items():
            if flag in there and flag not in words and rng.random() < 0.9:
                words += [flag, value or self.example]
        return [*words, *self._cheap(name, options, words)]

    def _value(self, flag: str) -> str:
        """Often one that the option takes."""
        if flag in CHEAP and self.rng.random() < 0.3:
            return CHEAP[flag]
        return self.rng.choice(self.values)

    def _cheap(self, name: str, options: list[Any], words: list[str]) -> list[str]:
        """What keeps a run short, where the words do not say otherwise."""
        there = {flag for option in options for flag in option.opts}
        more: list[str] = []
        for flag, value in CHEAP.items():
            if flag in there and flag not in words and not (flag == "--device" and name in ("portfolio", "lookup")):
                more += [flag, value]
        if name in ("sweep", "verify", "render") and "--problem" not in words:
            more += ["--problem", "n_time=3,n_chan=64"]
        return more
