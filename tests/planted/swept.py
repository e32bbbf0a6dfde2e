"""Sweeps planted faults as anybody sweeps configs, and tells how each ended, the final round included."""

from collections.abc import Sequence
from pathlib import Path

from autotune.devices import find_device
from autotune.records.folder import SweepFolder
from autotune.source.registry import load_kernel
from autotune.sweep.request import parse_restriction, problem_on
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

from .one import FAULTS as OF_ONE
from .two import FAULTS as OF_TWO

FOLDER = Path(__file__).parent
KERNELS = {"one": OF_ONE, "two": OF_TWO}
N_FAULTS = len(OF_ONE) + len(OF_TWO) - 2
MOST_FINALISTS = 12


def outcomes(kernel: str, faults: Sequence[str], device: str, results: Path) -> dict[str, tuple[str, str]]:
    """Returns the status and the message of each fault, and of RIGHT, which is among them.

    What is checked of winners alone may leave others measured: each of those is swept again without any to lose to.
    """
    target = find_device(device)
    with Bench(target) as bench:
        found = _swept(bench, kernel, ["RIGHT", *(fault for fault in faults if fault != "RIGHT")], results)
        for fault, (status, _) in found.items():
            if status == "measured" and fault != "RIGHT":
                found |= _swept(bench, kernel, [fault], results / fault)
    return found


def _swept(bench: Bench, kernel: str, faults: Sequence[str], results: Path) -> dict[str, tuple[str, str]]:
    definition = load_kernel(str(FOLDER / f"{kernel}.py"))
    only = parse_restriction(definition, [f"FAULT={fault}" for fault in faults])
    settings = Settings(results=results, trials=len(faults), finalists=MOST_FINALISTS, only=only)
    sweep = run_sweep(definition, problem_on(definition, {}, bench.target), bench, settings)
    return {str(t.config["FAULT"]): (str(t.status), t.message) for t in SweepFolder(sweep.path).trials()}
