"""python -m tests.recordings: the long run, with its figures; a sample of it is tests/test_recordings.py."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .compared import faults
from .drawn import draw


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="recordings")
    parser.add_argument("--seed", type=int, default=None, help="of the first one [default: the time]")
    parser.add_argument("--device", default="host", help="auto, host or cuda")
    given = parser.parse_args()
    seed = int(time.time()) % 10**6 if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    began, kinds, n_faults = time.monotonic(), Counter[str](), 0
    for number in range(seed, seed + given.count):
        night = draw(number)
        kinds.update(f"{s.kind} {'complex' if s.is_complex else 'real'}{' falling' * s.falls}" for s in night.stations)
        with tempfile.TemporaryDirectory(prefix="autotune-recordings-") as name:
            for fault in faults(night, Path(name), given.device):
                n_faults += 1
                print(f"FAULT {fault}\n    {night}", flush=True)
    told = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    print(f"{given.count} recordings of {told}: {n_faults} faults, {time.monotonic() - began:.0f} s")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
