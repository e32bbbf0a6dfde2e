"""Walks one config through the code: which modules it enters, in which process, from the command line to its row.

    python benchmarks/walk.py                         the example kernel on the simulated device
    python benchmarks/walk.py --device host --json

A sweep runs with every Python call in its processes watched (sys.setprofile). Printed is the walk of one config in the
middle of it, when nothing is set up any more: the calls that lead to the loop, then all that is done for this config.

- A module is entered when a function of it is called from another module. Several calls from one visit of a module are
  one entry: who works with a tool enters it once. Two entries are two modules that call a third one for this config.
- `core/` is listed apart: all others may use it at any time. So is what the search does until it proposes the config,
  since that is done for all of them.
- `system/processes.py` carries tasks to other processes: its entries are counted as round trips.
- All files of a device's driver (`devices/`), and what it alone calls, count as one module.
- What verifying and measuring share may be entered by both (SHARED): the case, the binding, the driver.

Exits with 1 when there are more than MOST_MODULES modules, or when another one is entered twice in one process.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from autotune.records.folder import find_sweeps

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = f"{ROOT / 'autotune'}{os.sep}"
EXAMPLE = ROOT / "docs" / "example" / "detect.py"
MOST_MODULES = 30
HOPS = "system/processes.py"
LOOP = "sweep/loop.py"
SEARCH = ("search/", "recommend/", "system/one_thread.py")
ANY = "any"  # config of what the loop does that is not for one of them
DRIVER = "devices/"
SHARED = ("trial/case.py", "runtime/binding.py", "records/figure.py", "records/cell.py", DRIVER)
FOLDER = "AUTOTUNE_WALK"  # environment variable: where the watched processes write what they see
N_TRIALS = 8  # of the sweep; the last that was measured is told
HOLDERS = ("Variant", "Proposal", "CompileResult", "Job", "Trial", "Started")  # what holds a config on its way
ROLES = {"autotune-build": "compile process", "autotune-device": "device's process"}
POOL = "parent, a thread of the pool"


# ---------------------------------------------------------------------- in every process: watching calls
@dataclass
class Visit:
    """One visit of a module, by another visit; ``children`` are those that it makes, by module."""

    module: str
    number: int
    by: int  # number of the visit that made this one; -1: the first
    children: dict[str, "Visit"] = field(default_factory=dict)


@dataclass
class Part:
    """What one thread does for one config, from the call that names the config until that returns."""

    via: list[str]  # the modules that lead to it
    config: str  # "": not known yet
    first: Visit
    visits: list[Visit]
    core: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Place:
    """The module that a frame is of, and the visit that it is part of, if it is done for a config."""

    module: str
    part: Part | None = None
    visit: Visit | None = None


class Watcher:
    """The profile function of one process; each thread has a stack of the places of its frames."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.local, self.writing = folder, threading.local(), threading.Lock()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(PACKAGE) or frame.f_code.co_name == "<module>":
            return
        here = self.local.__dict__
        stack: list[Place] = here.setdefault("stack", [])
        generators: dict[FrameType, Place] = here.setdefault("generators", {})
        if event == "call":
            place = generators.get(frame) or self._place(frame, path.removeprefix(PACKAGE), stack)
            if frame.f_code.co_flags & inspect.CO_GENERATOR:
                generators[frame] = place
            stack.append(place)
        elif stack:
            part = stack.pop().part
            if part is not None and not any(place.part is part for place in stack):
                self._tell(part, argument)

    def _place(self, frame: FrameType, module: str, stack: list[Place]) -> Place:
        """Returns where a call leads."""
        outer = stack[-1] if stack else Place("")
        if outer.part is not None and outer.visit is not None:
            if module.startswith("core/") and module not in outer.part.core:
                outer.part.core.append(module)
            if module.startswith("core/") or module == outer.visit.module or _is_inside_search(module, outer):
                return Place(module, outer.part, outer.visit)
            return Place(module, outer.part, self._visit(outer.part, outer.visit, module))
        is_given = "" if module.startswith("core/") else _config_of(frame.f_locals.values())
        if outer.module == LOOP and not module.startswith((LOOP, "core/")) and frame.f_code.co_name != "propose":
            is_given = is_given or ANY
        if module == LOOP or not (is_given or frame.f_code.co_name == "propose"):
            return Place(module)
        via = [each for each in dict.fromkeys(place.module for place in stack) if not each.startswith("core/")]
        if via[-1:] == [module]:
            via.pop()
        first = Visit(module, 0, -1)
        return Place(module, Part(via, is_given or "", first, [first]), first)

    @staticmethod
    def _visit(part: Part, by: Visit, module: str) -> Visit:
        if module not in by.children:
            by.children[module] = Visit(module, len(part.visits), by.number)
            part.visits.append(by.children[module])
        return by.children[module]

    def _tell(self, part: Part, result: Any) -> None:
        config = part.config or _config_of([result])
        role = ROLES.get(Path("/proc/self/comm").read_text().strip(), "parent")
        if role == "parent" and threading.current_thread() is not threading.main_thread():
            role = POOL
        told = {
            "part": f"{os.getpid()} {id(part)} {part.began}",
            "began": part.began,
            "role": role,
            "config": config,
            "via": part.via,
            "visits": [(visit.module, visit.by) for visit in part.visits],
            "core": part.core,
        }
        with self.writing, open(self.folder / f"{os.getpid()}.jsonl", "a") as file:
            file.write(json.dumps(told) + "\n")


def _is_inside_search(module: str, outer: Place) -> bool:
    return module.startswith(SEARCH) and outer.module.startswith(SEARCH)


def _config_of(values: Any, depth: int = 2) -> str:
    """Returns the config that is among ``values``, or in one of them: a variant, a job, a trial, a task's arguments."""
    for value in list(values):
        kind = type(value).__name__
        if kind == "Config" or kind in HOLDERS:
            return str(value if kind == "Config" else value.config)
        if depth and isinstance(value, tuple) and (found := _config_of(value, depth - 1)):
            return found
    return ""


def watch() -> None:
    """Watches this process from now on. What starts Python with FOLDER set and this file's path does it."""
    watcher = Watcher(Path(os.environ[FOLDER]))
    threading.setprofile(watcher)
    sys.setprofile(watcher)


# ---------------------------------------------------------------------- the sweep, and what it told
@dataclass(frozen=True)
class Step:
    """A module that a config enters: in which process, called from which module."""

    role: str
    module: str
    by: str


@dataclass(frozen=True)
class Walk:
    """The walk of one config."""

    config: str
    steps: tuple[Step, ...]  # in order
    core: tuple[str, ...]
    n_trips: dict[str, int]  # round trips, by process

    @property
    def modules(self) -> list[str]:
        """Returns the modules, each once; a driver's files and what it alone calls are one."""
        callers: dict[str, set[bool]] = {}
        for step in self.steps:
            callers.setdefault(step.module, set()).add(step.by.startswith(DRIVER))
        is_drivers = {m for m, by in callers.items() if m.startswith(DRIVER) or by == {True}}
        return list(dict.fromkeys(DRIVER if step.module in is_drivers else step.module for step in self.steps))

    def as_json(self) -> dict[str, Any]:
        """Returns what the picture of the walk is drawn from: [process, module, entered from] for each step."""
        steps = [[step.role, step.module, step.by] for step in self.steps]
        return {"steps": steps, "core": sorted(self.core), "round_trips": self.n_trips}

    @property
    def twice(self) -> dict[str, list[str]]:
        """Returns the modules that are entered more than once in one process, with who enters them."""
        entries: dict[tuple[str, str], list[str]] = {}
        for step in self.steps:
            if step.module != HOPS:
                entries.setdefault((step.module, step.role), []).append(step.by)
        return {f"{module} in the {role}": by for (module, role), by in entries.items() if len(by) > 1}


def walk(device: str) -> Walk:
    """Returns the walk of the last config that was measured in a sweep of the example on ``device``."""
    with tempfile.TemporaryDirectory() as folder:
        customize = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import walk; walk.watch()\n"
        (Path(folder) / "sitecustomize.py").write_text(customize)
        environment = {**os.environ, FOLDER: folder, "PYTHONPATH": os.pathsep.join([folder, str(ROOT)])}
        environment["AUTOTUNE_CACHE_DIR"] = f"{folder}/cache"  # all is compiled
        command = [sys.executable, "-m", "autotune", "sweep", "--kernel", str(EXAMPLE), "--device", device]
        command += ["--trials", str(N_TRIALS), "--results", f"{folder}/results", "--compile-processes", "1", "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        parts = [json.loads(line) for path in Path(folder).glob("*.jsonl") for line in path.read_text().splitlines()]
        (record,) = find_sweeps(Path(folder) / "results")
        config = str(next(trial.config for trial in reversed(record.trials()) if trial.median_s))
    whole = {part["part"]: part for part in parts}  # a generator tells what it has done each time that it yields
    begun = sorted((part for part in whole.values() if part["config"] in (config, ANY)), key=lambda p: p["began"])
    own = [i for i, part in enumerate(begun) if part["config"] == config and LOOP in part["via"]]
    mine = begun[own[0] : own[-1] + 1]  # the final round comes after them
    mine.sort(key=lambda part: part["config"] == ANY)
    core = dict.fromkeys(module for part in mine for module in part["core"])
    trips = Counter(part["role"] for part in mine if part["role"] in ROLES.values())
    return Walk(config, tuple(_steps(mine)), tuple(core), dict(trips))


def _steps(parts: list[dict[str, Any]]) -> Iterator[Step]:
    """Yields the steps of a walk: the loop enters a module once, however often it comes back to it."""
    seen: set[tuple[str, str, str]] = set()
    last = ("", "", "")  # how often a wait looks again is a matter of time
    for part in parts:
        by = "python"
        for module in part["via"]:
            if (step := (part["role"], module, by)) not in seen:
                seen.add(step)
                yield Step(*step)
            by = module
        for module, number in part["visits"]:
            step = (part["role"], module, part["visits"][number][0] if number >= 0 else by)
            if step not in seen or (module == HOPS and step != last):
                seen.add(step)
                yield Step(*step)
            last = step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="simulated:0")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told = walk(given.device)
    if given.json:
        print(json.dumps(told.as_json(), indent=1))
        return 0
    role = ""
    for step in told.steps:
        if step.role != role:
            role = step.role
            print(f"{role}:")
        print(f"    {step.module:28s} from {step.by}")
    print(f"{len(told.modules)} modules: {', '.join(told.modules)}")
    print(f"core: {', '.join(told.core)}")
    print(f"round trips: {told.n_trips}")
    twice = {module: f"{module} is entered by {', '.join(by)}" for module, by in told.twice.items()}
    for module in [module for module in twice if module.startswith(SHARED)]:
        print(f"shared: {twice.pop(module)}")
    wrong = list(twice.values())
    if len(told.modules) > MOST_MODULES:
        wrong.append(f"{len(told.modules)} modules are more than {MOST_MODULES}")
    for line in wrong:
        print(line, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
