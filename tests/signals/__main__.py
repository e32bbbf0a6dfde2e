"""python -m tests.signals: signals at random moments to commands and engines; a sample is tests/test_signals.py."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import engines, processes
from .fed import Fed

MOST_S = 3.0  # from the signal to the end
EACH = 50  # engines of a process


def command(seed: int, fed: Fed) -> tuple[str, list[str], float]:
    with tempfile.TemporaryDirectory(prefix="autotune-signals-") as name:
        ended = processes.run(seed, Path(name), fed)
    what = f"{ended.what}{'' if ended.has_begun else ', starting'}"
    if processes.is_before_us(ended) and ended.status is not None:
        return f"{what}, Python itself", [], ended.took_s
    return what, [f"seed {seed}, {fault}" for fault in processes.faults(ended, MOST_S)], ended.took_s


def several(seed: int, n: int) -> int:
    """Runs engines in this process, and prints a line for each."""
    with Fed() as fed:
        for each in range(seed, seed + n):
            with tempfile.TemporaryDirectory(prefix="autotune-signals-") as name:
                what, wrong = engines.tried(each, Path(name), fed, MOST_S)
            for fault in wrong:
                print(f"FAULT seed {each}, {fault}")
            print(f"ended {len(wrong)} {what}", flush=True)
    return 0


def in_process(seed: int, n: int) -> list[tuple[str, list[str]]]:
    words = [sys.executable, "-m", "tests.signals", "--within", str(n), "--seed", str(seed)]
    env = {**os.environ, "PYTEST_XDIST_WORKER": f"gw{seed // EACH}"}  # which chooses ports
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found, said = list[tuple[str, list[str]]](), list[str]()
    for line in done.stdout.splitlines():
        if not line.startswith("ended "):
            said.append(line)
            continue
        _, n_wrong, what = line.split(" ", 2)
        found.append((what, ["\n".join(said)] if said or int(n_wrong) else []))
        said = []
    if len(found) < n or done.returncode or said:
        found.append(("a process", [f"{n - len(found)} engines have not run, status {done.returncode}: {said[-30:]}"]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=300, help="commands in processes of their own")
    parser.add_argument("--engines", type=int, default=1000, help="engines within processes")
    parser.add_argument("--seed", type=lambda text: int(text, 0), default=None, help="of the first [default: the time]")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--within", type=int, help="run so many engines in this process")
    given = parser.parse_args()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell lets what it leaves in the background ignore it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = int(time.time()) % 10**6 if given.seed is None else given.seed
    if given.within is not None:
        return several(seed, given.within)
    print(f"seed {seed}", flush=True)
    began, counted, n_faults, longest_s = time.monotonic(), Counter[str](), 0, 0.0
    feds = [Fed() for _ in range(given.jobs)]
    for fed in feds:
        fed.__enter__()
    with ThreadPoolExecutor(given.jobs) as pool:

        def slot(number: int) -> list[tuple[str, list[str], float]]:
            return [command(each, feds[number]) for each in range(seed + number, seed + given.processes, given.jobs)]

        for some in pool.map(slot, range(given.jobs)):
            for what, wrong, took_s in some:
                counted[f"process: {what}"] += 1
                longest_s = max(longest_s, took_s)
                n_faults += len(wrong)
                for fault in wrong:
                    print(f"FAULT {fault}", flush=True)
        print(f"{given.processes} processes: {n_faults} faults, the longest took {longest_s:.2f} s", flush=True)
        for fed in feds:
            fed.__exit__(None, None, None)
        n_before, firsts = n_faults, range(seed, seed + given.engines, EACH)
        sizes = [min(EACH, seed + given.engines - first) for first in firsts]
        for found in pool.map(in_process, firsts, sizes):
            for what, wrong in found:
                counted[f"engine: {what}"] += 1
                n_faults += len(wrong)
                for fault in wrong:
                    print(fault, flush=True)
    for what, n in sorted(counted.items()):
        print(f"{n:4} {what}")
    print(f"{given.engines} engines: {n_faults - n_before} faults; {time.monotonic() - began:.0f} s in all")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
