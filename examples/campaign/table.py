"""Shows what a campaign found: the time of each problem's winner, and how often each value wins.

    python examples/campaign/table.py [RESULTS]

A campaign is a file, diffuse.toml beside this one, and a command. What it leaves are records, which pandas reads.
"""

import sys

import autotune


def main(results: str = "results") -> None:
    trials = autotune.load(results).query("status == 'measured'")  # a row for each trial of each problem
    sizes = ["problem.width", "problem.height"]
    best = trials.loc[trials.groupby(sizes)["median_s"].idxmin()]  # the fastest trial of each problem

    # Time for each point: it falls with the size of a plate, until the device is busy.
    points = best["problem.width"] * best["problem.height"]
    table = best.assign(ns=1e9 * best["median_s"] / points).pivot(index=sizes[1], columns=sizes[0], values="ns")
    print("ns for each point, by width and height:")
    print(table.round(2).to_string(na_rep=""))

    counts = best[["BLOCK_X", "BLOCK_Y", "ROWS"]].value_counts()
    print("winners:")
    for config, n in counts.items():
        print(f"  {n} of {len(best)}: BLOCK_X={config[0]}, BLOCK_Y={config[1]}, ROWS={config[2]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
