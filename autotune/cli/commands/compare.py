"""`autotune compare`: two sets of records side by side."""

from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from ...analysis.fields import assignments, common_fields, own_fields, told_common
from ...analysis.noise import noise, pairs
from ...core.errors import UsageError
from ...core.units import percent, seconds
from ...records.folder import find_sweeps
from ...records.outcome import Relation
from ...records.record import SweepRecord
from ..console import print_json, stdout
from ..tables import print_table
from .options import JsonOption


def compare(
    before: Annotated[Path, typer.Argument(help="A folder of recorded sweeps.")],
    after: Annotated[
        Path, typer.Argument(help="The folder to compare it with: a new driver, compiler or template, or other GPUs.")
    ],
    json: JsonOption = False,
) -> None:
    """Compare the winners of two sets of records for the same problems, within the noise of the device."""
    old, new = ([SweepRecord.of(folder) for folder in find_sweeps(path)] for path in (before, after))
    found = pairs(old, new)
    if not found:
        raise UsageError(f"{before} and {after} share no problem of the same kernel and device")
    device_noise = noise([*old, *new])
    if json:
        rows = [{**vars(p), "change": p.change, "relation": p.relation} for p in found]
        return print_json({"noise": [vars(n) for n in device_noise.values()], "problems": rows})
    different = sorted((p for p in found if p.relation != Relation.SAME), key=lambda p: -abs(p.change))
    if different:
        titles = _titles([sweep for sweep in old if sweep.title in {p.title for p in found}])
        lines = [
            (titles[p.title], seconds(p.before_s), seconds(p.after_s), f"{100 * p.change:+.2f} %", p.relation)
            for p in different
        ]
        print_table(("beyond the noise", "before", "after", "change", ""), lines, cut="beyond the noise")
    for one in device_noise.values():
        stdout.print(f"noise        {one}", markup=False)
    n_same, n_config = len(found) - len(different), sum(p.same_config for p in found)
    n_faster, n_slower = (sum(p.relation == one for p in found) for one in (Relation.FASTER, Relation.SLOWER))
    by_chance = round(0.05 * sum(p.allowed > 0 for p in found))  # equal pairs stay within the noise in 95 % of cases
    stdout.print(
        f"problems     {len(found)} in both: {n_same} same, "
        f"{n_faster} faster, {n_slower} slower; "
        f"{n_config} with the same winner" + (f"; {by_chance} expected to differ by chance" if by_chance else "")
    )
    changes = [p.change for p in found]
    stdout.print(
        f"change       {percent(median(changes))} (median), {percent(min(changes))} to {percent(max(changes))}"
    )
    losses = [(loss, p.allowed) for p in found for loss in p.exchanged]
    if losses:
        n_within = sum(loss <= allowed for loss, allowed in losses)
        stdout.print(
            f"exchanged    winners of one side timed on the other: {n_within} of {len(losses)} "
            f"are slower by no more than the noise; worst {percent(max(loss for loss, _ in losses))}"
        )


def _titles(sweeps: list[SweepRecord]) -> dict[str, str]:
    """Returns what tells each sweep from the others, by its title; what all have in common is printed."""
    kernels, devices = {sweep.kernel for sweep in sweeps}, {sweep.device.name for sweep in sweeps}
    common = common_fields([sweep.kernel for sweep in sweeps], [sweep.problem for sweep in sweeps])
    stdout.print(f"{', '.join(sorted(kernels))} on {', '.join(sorted(devices))}", markup=False, style="bold")
    for text in told_common(common):
        stdout.print(text, markup=False)
    titles = {}
    for sweep in sweeps:
        own = [assignments(own_fields(sweep.problem, common[sweep.kernel]))]
        kernel, device = [sweep.kernel] * (len(kernels) > 1), [f"on {sweep.device.name}"] * (len(devices) > 1)
        titles[sweep.title] = " ".join([*kernel, *own, *device])
    return titles
