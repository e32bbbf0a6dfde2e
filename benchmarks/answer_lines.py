"""Counts the lines of all modules that answer which config runs where, and how far it is from the best.

    python benchmarks/answer_lines.py

The list has whatever recommends, is tried at a first use, chooses for engines, or makes portfolios; nothing else may
take their work. Exits with 1 where they have more than MOST lines together.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1] / "autotune"
MOST = 3500
FIRST_USE = ("bounds", "chooser", "edge_check", "tune_once")
MODULES = (
    "recommend/*.py",
    "first_use/*.py",
    "engines/kernels/*.py",
    *(f"runtime/{name}.py" for name in FIRST_USE),
    *(f"search/{name}.py" for name in ("features", "warm_start")),
    *(f"analysis/{name}.py" for name in ("experiences", "portfolio")),
    "emit/rendered_ahead.py",
    "report/lookup_costs.py",
    "cli/commands/portfolio.py",
)


def lines() -> dict[str, int]:
    """Returns the number of lines of each entry of MODULES."""
    found = {}
    for entry in MODULES:
        paths = sorted(ROOT.glob(entry))
        if not paths:
            raise FileNotFoundError(f"{entry} is not there; take it out of MODULES")
        found[entry] = sum(len(path.read_text().splitlines()) for path in paths)
    return found


def main() -> int:
    found = lines()
    for entry, n in found.items():
        print(f"{n:6} {entry}")
    print(f"{sum(found.values()):6} of at most {MOST}")
    return int(sum(found.values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
