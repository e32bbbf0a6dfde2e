"""Runs a campaign over a grid of problems, and shows the winners.

    python examples/campaign/run.py [DEVICE]

A campaign is a file, diffuse.toml beside this one, and a command, which this script types; it needs the extra
`campaign`. What it leaves are records, one for each problem, which pandas reads.
"""

import subprocess
import sys
from pathlib import Path

import autotune

PLAN = Path(__file__).with_name("diffuse.toml")
PROBLEM, PARAMETERS = ["problem.width", "problem.height"], ["BLOCK_X", "BLOCK_Y", "ROWS"]


def main(device: str = "") -> None:
    results = Path("campaign").resolve()  # instead of the file's own
    words = ["campaign", str(PLAN), "--results", str(results), *(["--device", device] if device else [])]
    subprocess.run([sys.executable, "-m", "autotune", *words], cwd=Path(__file__).parent, check=True)

    trials = autotune.load(results).query("status == 'measured'")  # a row for each trial of each problem
    best = trials.loc[trials.groupby(PROBLEM)["median_s"].idxmin()]  # the fastest trial of each problem
    print("\nns for each point, and the winner:")
    for _, row in best.iterrows():
        width, height = row[PROBLEM]
        winner = ", ".join(f"{name}={row[name]}" for name in PARAMETERS)
        print(f"  {width:4} x {height:4}  {1e9 * row['median_s'] / (width * height):6.2f}  {winner}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
