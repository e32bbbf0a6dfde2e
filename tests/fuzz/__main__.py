"""python -m tests.fuzz: the long run, with its figures; a sample of it is tests/test_fuzz.py."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from .command_lines import CommandLines
from .records import Records, make, open_bench
from .run import Ended
from .wisdoms import Wisdoms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1500, help="runs of readers over damaged records")
    parser.add_argument("--wisdoms", type=int, default=400, help="lookups in damaged packages")
    parser.add_argument("--command-lines", type=int, default=500, help="senseless command lines")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="autotune-fuzz-") as name:
        folder = Path(name)
        os.environ["AUTOTUNE_CACHE_DIR"] = str(folder / "cache")
        n_faults = 0
        with open_bench() as bench:
            records = Records(folder / "records", given.seed, bench)
            n_faults += report("damaged records", records.run(given.records))
            n_faults += report("damaged records, each in a process of its own", records.fresh(given.records // 50))
            make(folder / "deep" / "est" / "lines", bench)
        wisdoms = Wisdoms(folder / "wisdoms", Random(given.seed))
        n_faults += report("damaged wisdoms", wisdoms.run(given.wisdoms))
        n_faults += report("damaged sources", wisdoms.sources(given.wisdoms // 10))
        lines = CommandLines(folder / "deep" / "est" / "lines", Random(given.seed))
        n_faults += report("command lines", lines.run(given.command_lines))
    return int(n_faults > 0)


def report(title: str, cases: Iterable[tuple[str, Ended]]) -> int:
    """Prints every fault, and the figures; their number."""
    began, codes, n_faults, slowest = time.monotonic(), Counter[int](), 0, (0.0, "")
    for what, ended in cases:
        codes[ended.code] += 1
        slowest = max(slowest, (ended.seconds, what))
        for fault in ended.faults:
            n_faults += 1
            print(f"FAULT {title}: {what}\n{fault}\n{ended.err[-500:]}", flush=True)
    ends = ", ".join(f"{n} with {code}" for code, n in sorted(codes.items()))
    took = time.monotonic() - began
    print(f"{title}: {codes.total()} runs in {took:.0f} s, {n_faults} faults; ended {ends or '-'}")
    print(f"    the slowest took {slowest[0]:.1f} s: {slowest[1][:150]}", flush=True)
    return n_faults


if __name__ == "__main__":
    sys.exit(main())
