"""The walk of one config through the code, as benchmarks/walk.py traced it: a box for each module that it enters."""

import json
from pathlib import Path

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

DATA = Path(__file__).with_name("walk.json")
LANES = {"parent": 24, "compile process": 330, "device's process": 590}  # x of each process
WIDTH, HEIGHT, STEP, INDENT = 200, 30, 42, 14
HOPS = "system/processes.py"
COLOURS = {
    "cli": GREY,
    "sweep": ORANGE,
    "search": PURPLE,
    "records": PURPLE,
    "validity": PURPLE,
    "source": BLUE,
    "rendering": BLUE,
    "runtime": BLUE,
    "system": BLUE,
    "devices": TEAL,
    "trial": GREEN,
}
DOES = {
    "cli/program.py": "the command line",
    "cli/commands/sweep.py": "autotune sweep",
    "sweep/run.py": "resumes, searches, ends",
    "sweep/loop.py": "one trial after another",
    "search/search.py": "proposes; is told the time",
    "trial/compile.py": "starts the compile",
    "compile process: trial/compile.py": "compiles",
    "rendering/render.py": "template to CUDA",
    "trial/stations.py": "limits, then the row",
    "trial/oracle.py": "what is right at full size",
    "trial/worker.py": "one call, two deadlines",
    "device's process: trial/worker.py": "verifies, then measures",
    "trial/verify.py": "edge sizes",
    "trial/conditions.py": "what else decides",
    "trial/measure.py": "cold L2, clock; full size",
    "trial/case.py": "inputs, outputs, buffers",
    "records/objectives.py": "what is looked for",
    "records/trial_log.py": "a line, on disk",
    "cli/console.py": "tells the user",
    "trial/ledger.py": "where the time went",
}


def picture() -> str:
    told = json.loads(DATA.read_text())
    steps = [tuple(step) for step in told["steps"] if step[0] in LANES]
    steps = [step for i, step in enumerate(steps) if step[1] != HOPS and step not in steps[:i]]
    p = Picture(1000, 190 + STEP * _n_rows(steps), "The walk of one config")
    p.text(24, 34, "The walk of one config", "title")
    p.text(24, 56, "Each module that it enters, in order, from the command line to its row.", "muted")
    p.text(24, 74, "Indented: called by one above. Traced in a sweep on the simulated device.", "muted")
    for name, x in LANES.items():
        p.text(x, 104, name, "bold")
    bottom = _lanes(p, steps, 118)
    files = {step[1] for step in steps} | {HOPS}
    trips = ", ".join(f"{n} to the {role}" for role, n in told["round_trips"].items())
    p.text(24, bottom + 26, f"{len(files)} modules, {HOPS} among them, which carries the tasks. Round trips: {trips}.")
    p.text(24, bottom + 46, f"Used anywhere: {', '.join(told['core'])}.", "small muted")
    return p.svg()


def _n_rows(steps: list[tuple[str, ...]]) -> int:
    return len(_rows(steps))


def _rows(steps: list[tuple[str, ...]]) -> list[tuple[str, str, int]]:
    """Returns (process, module, depth) of each box; what two modules of a process enter is drawn once."""
    depth: dict[tuple[str, str], int] = {}
    rows = []
    for role, module, by in steps:
        if (role, module) not in depth:
            depth[role, module] = depth.get((role, by), -1) + 1
            rows.append((role, module, depth[role, module]))
    return rows


def _lanes(p: Picture, steps: list[tuple[str, ...]], top: float) -> float:
    """Draws one box a row, in the column of its process, and an arrow where the process changes."""
    y, before = top, None
    for role, module, depth in _rows(steps):
        x = LANES[role] + INDENT * depth
        p.labelled(x, y, WIDTH, HEIGHT, COLOURS[module.split("/")[0]], module, "code")
        p.text(x + WIDTH + 6, y + 20, _does(role, module), "small muted")
        if before is not None and before[0] != role:
            _arrow(p, before[1], before[2] + HEIGHT, x, y)
        before = role, x, y
        y += STEP
    return y


def _arrow(p: Picture, from_x: float, from_y: float, x: float, y: float) -> None:
    """A task goes to a process on the right; what comes back goes between two rows."""
    if x > from_x:
        middle = from_x + WIDTH / 2
        p.arrow((middle, from_y), (middle, y + HEIGHT / 2), (x - 2, y + HEIGHT / 2))
    else:
        between = (from_y + y) / 2
        end = x + WIDTH - 10
        p.arrow((from_x + 8, from_y), (from_x + 8, between), (end, between), (end, y - 1), dashed=True)


def _does(role: str, module: str) -> str:
    if module.startswith("devices/"):
        return "the device's driver"
    return DOES.get(f"{role}: {module}") or DOES.get(module) or "files of the driver"
