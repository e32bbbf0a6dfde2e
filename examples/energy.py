"""Finds the fastest config, the one that takes the least energy, and those between them. It needs a GPU.

    python examples/energy.py [DEVICE]

The energy of a launch is that of the whole GPU over back-to-back launches (docs/objectives.md). NVML's counter has it,
so the extra `cuda13` or `cuda12` is needed; `host` has no such counter. `simulated` makes numbers up: it shows what is
printed.
"""

import sys

import autotune

KERNEL, PROBLEM = "ddc", {"taps": 128, "decimation": 8}
TRIALS = 60
ENERGY_S = 0.5  # duration of the launches that measure a trial's energy; the counter changes only a few times a second


def main(device: str = "auto") -> None:
    sweep = autotune.sweep(
        KERNEL,
        problem=PROBLEM,
        device=device,
        trials=TRIALS,
        objectives=("time", "energy"),  # ("energy",) would minimise energy alone
        metrics={"edp": "energy * time"},  # the energy-delay product of each trial
        energy_time=ENERGY_S,
    )
    # The final round measures the Pareto front again: configs that no other config beats in both.
    print(f"{sum(sweep.counts.values())} trials; {len(sweep.finalists)} configs in the final round:")
    for each in sorted(sweep.finalists, key=lambda finalist: finalist.median_s):
        cost = f"{1e6 * each.median_s:7.1f} us  {1e3 * each.joules:7.2f} mJ  {each.watts:5.0f} W"
        print(f"  {cost}  {each.relation:6} {each.config}")

    trials = sweep.trials.dropna(subset=["metric.edp"])
    best = trials.loc[trials["metric.edp"].idxmin()]  # among the first measurements of all trials
    print(f"least energy x time: {1e6 * best['median_s']:.1f} us, {1e3 * best['joules']:.2f} mJ")


if __name__ == "__main__":
    main(*sys.argv[1:2])
