"""python -m tests.plays: plays of failing senders on loopback; a sample of them is tests/test_plays.py."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .compared import faults, write
from .drawn import Play, draw

MOST_TOLD = 8  # faults of a play
OF_A_PLAY = "played"  # the word in front of the result in the last line of a play's process


def told(play: Play) -> str:
    parts = (f"{each.kind} of {play.names[each.sender] if each.sender >= 0 else 'all'}" for each in play.troubles)
    sizes = f"{play.n_channels} of {play.channels} channels from {play.first_channel}, {play.spectra} spectra"
    times = f"{play.accumulate} heaps a dump, {play.batches_per_chunk} a chunk, {play.reorder_s:g} s of reordering"
    return f"{play.transport}, {play.n_antennas} antennas, {play.bits} bits, {sizes}, {times}: {', '.join(parts)}"


def one(seed: int) -> int:
    """Writes what is expected of a play, plays it, and says what is wrong."""
    play = draw(seed)
    with tempfile.TemporaryDirectory(prefix="autotune-plays-") as name:
        print(f"play {seed}: {told(play)}\n    must: {write(play, Path(name))}", flush=True)
        began = time.monotonic()
        wrong = faults(play, Path(name))
        for fault in wrong[:MOST_TOLD]:
            print(f"FAULT seed {seed}: {fault}")
    print(f"{OF_A_PLAY} {len(wrong)} {time.monotonic() - began:.1f} {play.transport}: {play.kinds}")
    return int(bool(wrong))


def in_process(seed: int) -> str:
    """Plays in a process of its own, so that a crash is a fault of its play."""
    command = [sys.executable, "-m", "tests.plays", "--one", str(seed)]
    env = {**os.environ, "PYTEST_XDIST_WORKER": f"gw{seed}"}  # which plays at once must not share: it chooses ports
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout if OF_A_PLAY in done.stdout else f"{done.stdout}\n{OF_A_PLAY} 1 0 ended with {done.returncode}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="plays")
    parser.add_argument(
        "--seed", type=lambda text: int(text, 0), default=None, help="of the first one [default: the time]"
    )
    parser.add_argument("--jobs", type=int, default=2, help="plays at once")
    parser.add_argument("--one", type=int, help="play this seed in this process")
    given = parser.parse_args()
    if given.one is not None:
        return one(given.one)
    seed = int(time.time()) % 10**6 if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    began, n_played, n_wrong, n_faults = time.monotonic(), Counter[str](), Counter[str](), 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for text in pool.map(in_process, range(seed, seed + given.count)):
            print(text, end="", flush=True)
            n, _, kinds = text.splitlines()[-1].removeprefix(f"{OF_A_PLAY} ").split(" ", 2)
            n_played[kinds] += 1
            n_wrong[kinds] += int(n) > 0
            n_faults += int(n)
    for kinds, n_of in sorted(n_played.items()):
        print(f"{n_of:4} {kinds}" + f": {n_wrong[kinds]} wrong" * (n_wrong[kinds] > 0))
    print(f"{given.count} plays: {sum(n_wrong.values())} wrong, {n_faults} faults, {time.monotonic() - began:.0f} s")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
