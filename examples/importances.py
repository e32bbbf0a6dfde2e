"""Turns a recorded sweep into an Optuna study, and prints how much each parameter matters.

    python examples/importances.py [RECORD]

It reads a record, by default one of `ddc` on an H200 that lies in results/, and needs no device. docs/analysis.md says
how Optuna's importances and those of `autotune show` differ.
"""

import sys
from pathlib import Path

import optuna
from optuna.trial import TrialState

import autotune

ROOT = Path(__file__).parents[1] / "results" / "NVIDIA_H200" / "ddc"
RECORD = ROOT / "taps=128,decimation=8,sample_bits=10,n_pols=2,n_samples=33554432"
MOST = 6  # number of parameters to print


def main(record: str = str(RECORD)) -> None:
    study = autotune.study(record)  # in memory: changes to it are not recorded
    states = [trial.state.name for trial in study.trials]
    print(f"{study.user_attrs['kernel']}: {len(states)} trials, {states.count('COMPLETE')} with a time")
    print(f"the fastest takes {1e6 * study.best_value:.1f} us: {study.best_trial.params}")

    # These importances show which parameters distinguish the fastest tenth of the trials (PED-ANOVA).
    importances = optuna.importance.get_param_importances(study)
    print("importance of each parameter, as a share of all:")
    for name, share in list(importances.items())[:MOST]:
        print(f"  {name:10} {share:5.2f}")

    # The cost of a value is its best time over the best of all. Failures have no time.
    first, best_s = next(iter(importances)), {}
    for trial in study.get_trials(states=[TrialState.COMPLETE]):
        value = trial.params.get(first, "(none)")  # configs of another ALGORITHM lack it
        best_s[value] = min(trial.value, best_s.get(value, trial.value))
    print(f"slowdown of the best config with each {first}:")
    for value, seconds in sorted(best_s.items(), key=lambda item: item[1]):
        print(f"  {value!s:10} {seconds / study.best_value - 1:6.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
