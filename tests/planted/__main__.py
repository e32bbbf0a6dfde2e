"""python -m tests.planted: sweeps all planted faults, and says what found each; a sample is tests/test_planted.py."""

import argparse
import sys
import tempfile
from pathlib import Path

from .swept import KERNELS, N_FAULTS, outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="host", help="auto, host or cuda")
    given = parser.parse_args()
    n_missed = 0
    with tempfile.TemporaryDirectory(prefix="autotune-planted-") as name:
        for kernel, faults in KERNELS.items():
            found = outcomes(kernel, faults, given.device, Path(name))
            for fault, (status, message) in found.items():
                is_missed = (status == "measured") != (fault == "RIGHT")
                n_missed += is_missed
                print(f"{'MISSED ' * is_missed}{kernel} {fault}: {status} {message[:150]}", flush=True)
    print(f"{N_FAULTS} faults, {n_missed} judged wrongly")
    return int(n_missed > 0)


if __name__ == "__main__":
    sys.exit(main())
