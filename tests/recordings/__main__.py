"""python -m tests.recordings: the long runs, with their figures; samples of them are tests/test_recordings.py."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from . import contradicted, damaged
from .compared import faults
from .drawn import draw

Tried = tuple[str, bool, list[str]]  # what was drawn, whether it was found, what is wrong


def right_night(seed: int, folder: Path, device: str) -> Tried:
    night = draw(seed)
    kinds = {f"{s.kind} {'complex' if s.is_complex else 'real'}{' falling' * s.falls}" for s in night.stations}
    return ", ".join(sorted(kinds)), False, [f"{fault}\n    {night}" for fault in faults(night, folder, device)]


def contradiction(seed: int, folder: Path, device: str) -> Tried:
    found = contradicted.tried(seed, folder, device=device)
    return found.kind, found.is_found, [found.fault] if found.fault else []


def damage(seed: int, folder: Path, device: str) -> Tried:
    kind, wrong = damaged.tried(seed, folder, device=device)
    return kind, False, wrong


def each(first: int, count: int, device: str, way: str) -> Iterator[Tried]:
    run = {"right": right_night, "contradict": contradiction, "damage": damage}[way]
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="autotune-recordings-") as name:
            kind, is_found, wrong = run(seed, Path(name), device)
        for fault in wrong:
            print(f"FAULT seed {seed}, {kind}: {fault}", flush=True)
        yield kind, is_found, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="recordings")
    parser.add_argument("--seed", type=int, default=None, help="of the first one [default: the time]")
    parser.add_argument("--device", default="host", help="auto, host or cuda")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--contradict", action="store_true", help="nights with one wrong statement each")
    ways.add_argument("--damage", action="store_true", help="nights of which one recording is damaged")
    given = parser.parse_args()
    seed = int(time.time()) % 10**6 if given.seed is None else given.seed
    way = "contradict" if given.contradict else "damage" if given.damage else "right"
    print(f"seed {seed}", flush=True)
    began, n_drawn, n_found, n_faults = time.monotonic(), Counter[str](), Counter[str](), 0
    for kind, is_found, wrong in each(seed, given.count, given.device, way):
        n_drawn[kind] += 1
        n_found[kind] += is_found
        n_faults += len(wrong)
    for kind, n in sorted(n_drawn.items()):
        must = " (always found)" * (kind in contradicted.SURE)
        print(f"{n:4} {kind}" + (f": {n_found[kind]} found{must}" if way == "contradict" else ""))
    print(f"{given.count} recordings: {n_faults} faults, {time.monotonic() - began:.0f} s")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
