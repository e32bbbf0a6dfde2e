"""The rooms of autotune, in the order that import-linter holds: each imports from itself and from those below it."""

import tomllib
from pathlib import Path

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

CONFIG = Path(__file__).parents[2] / "pyproject.toml"
ROOMS = {
    "__main__": ("python -m autotune", GREY),
    "api": ("what `import autotune` offers", GREY),
    "cli": ("parse, call, print", GREY),
    "kernel_tuner": ("Kernel Tuner's functions", GREY),
    "engines": ("F-engine and X-engine", TEAL),
    "porting": ("kernels of plain .cu files", TEAL),
    "emit": ("packages of winners", TEAL),
    "campaign": ("sweeps on many devices", TEAL),
    "first_use": ("the best of a few, in seconds", TEAL),
    "report": ("pages with pictures", TEAL),
    "sweep": ("the loop, the final round", ORANGE),
    "analysis": ("noise, importance, portfolios", ORANGE),
    "search": ("samplers, warm start", PURPLE),
    "validity": ("whether what was recorded still holds", PURPLE),
    "trial": ("one config: compile, verify, measure", GREEN),
    "devices": ("drivers, one module for each kind", GREEN),
    "records": ("what sweeps leave on the disk; exports", PURPLE),
    "system": ("processes, cache, locks, memory", BLUE),
    "source": ("registry of kernels and what is installed", BLUE),
    "recommend": ("answers what nobody recorded", BLUE),
    "rendering": ("templates to CUDA", BLUE),
    "runtime": ("lookup, launcher, GPU", BLUE),
    "core": ("definition, space, config, errors, files", BLUE),
}
ADDED = {
    "source": ("a kernel", "autotune.kernels"),
    "devices": ("a device", "autotune.devices"),
    "engines": ("a format of files", "autotune.formats"),
    "search": ("a sampler", "autotune.samplers"),
    "records": ("an export format", "autotune.exports"),
}
LEFT, WIDTH, HEIGHT, STEP = 70, 560, 42, 50


def picture() -> str:
    layers = _layers()
    p = Picture(1000, 118 + STEP * len(layers), "The rooms of autotune")
    p.text(24, 34, "The rooms of autotune", "title")
    p.text(24, 56, "A room imports from itself and from the rooms below it, for types and lazily, too.", "muted")
    for i, layer in enumerate(layers):
        _layer(p, 76 + STEP * i, layer)
    bottom = 76 + STEP * len(layers)
    p.arrow((42, 80), (42, bottom - 12))
    p.text(
        LEFT,
        bottom + 16,
        "emit copies core, runtime, rendering and recommend into packages as they are.",
        "small muted",
    )
    p.text(660, 56, "Added from outside, by entry points:", "muted")
    return p.svg()


def _layers() -> list[list[str]]:
    contracts = tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"]
    layers = [[room.strip() for room in layer.split("|")] for layer in contracts[0]["layers"]]
    return [[room for room in layer if not room.startswith("(")] for layer in layers]  # what is to come has parentheses


def _layer(p: Picture, y: float, rooms: list[str]) -> None:
    width = (WIDTH - 10 * (len(rooms) - 1)) / len(rooms)
    for i, room in enumerate(rooms):
        what, fill = ROOMS[room]
        p.labelled(LEFT + i * (width + 10), y, width, HEIGHT, fill, (room, what))
        if room in ADDED:
            name, group = ADDED[room]
            p.arrow((670, y + HEIGHT / 2), (LEFT + WIDTH + 4, y + HEIGHT / 2), dashed=True)
            p.text(680, y + HEIGHT / 2 - 2, name, "small bold")
            p.text(680, y + HEIGHT / 2 + 15, group, "code")
