"""Makes the pictures of docs/: `python docs/pictures/make.py` writes them; with `--check` it says which are stale.

Each module beside this one that has a function ``picture()`` makes the SVG of its own name.
"""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = (
    "chain",
    "channelise_flow",
    "channelise_part",
    "ddc_efficiency",
    "ddc_tile",
    "ddc_timeline",
    "ddc_waits",
    "engine_flow",
    "engine_plots",
    "engine_timeline",
    "overview",
    "phase_centre",
    "rooms",
    "trial",
    "walk",
)
MOST_BYTES = 60_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a picture is not current")
    check = parser.parse_args().check
    sys.path.insert(0, str(HERE))
    n_stale = 0
    for name in PICTURES:
        made = importlib.import_module(name).picture()
        path = HERE / f"{name}.svg"
        if len(made.encode()) > MOST_BYTES:
            print(f"{path.name} has {len(made.encode())} bytes, more than {MOST_BYTES}", file=sys.stderr)
            n_stale += 1
        if not check:
            path.write_text(made)
        elif not path.exists() or path.read_text() != made:
            print(f"{path.name} is not what {name}.py makes now: run python docs/pictures/make.py", file=sys.stderr)
            n_stale += 1
    return int(n_stale > 0)


if __name__ == "__main__":
    sys.exit(main())
