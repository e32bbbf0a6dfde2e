"""Questions to a package, drawn over the whole ranges of the fields: is each answered with a stated loss?

    python benchmarks/questions.py tuned --seed 7 --questions 200 --device "NVIDIA H100 80GB HBM3"

No GPU is needed; where NVRTC is, every predicted config is compiled. Printed are the answers by tier, what had no
answer or no stated loss, how many of the compiled ones spill, and the time of an answer.
"""

import argparse
import logging
import random
import re
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from statistics import median

from drawing import KERNELS, drawn

from autotune.core.errors import UsageError
from autotune.core.problem import named_fields
from autotune.devices.cuda import of_architecture
from autotune.source.registry import load_kernel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--device", default="NVIDIA H200")
    given = parser.parse_args()
    logging.disable()
    sys.path.insert(0, str(given.package.resolve().parent))
    package = import_module(given.package.name)
    rng, device = random.Random(given.seed), of_architecture("sm_90")
    tiers, spilling, seconds, bad = Counter[str](), 0, list[float](), list[str]()
    while sum(tiers.values()) + len(bad) < given.questions:
        name = rng.choice(KERNELS)
        kernel = load_kernel(name)
        (problem,) = drawn(kernel, 1, rng.getrandbits(31))
        fields = named_fields(problem)
        try:
            kernel.default_config(problem, device)
        except UsageError:  # the constraints allow nothing there
            continue
        began = time.process_time()
        try:
            choice = getattr(package, name)(**fields, device=given.device).choice
        except package.UsageError as error:
            bad.append(f"{name} {fields}: {str(error)[:300]}")
            continue
        seconds.append(time.process_time() - began)
        if choice.expected_loss is None or choice.bound is None:
            bad.append(f"{name} {fields}: {choice}")
        tiers[choice.tier] += 1
        spilling += bool(re.match(r"[^;]*\bspills \d", choice.why))
    print(*bad, sep="\n")
    print(f"{given.device}, seed {given.seed}: {sum(tiers.values())} answers: {dict(tiers)}; {len(bad)} without a loss")
    print(f"{spilling} spill; an answer takes {median(seconds):.2f} s of CPU (median, compiles included)")
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
