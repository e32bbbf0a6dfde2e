"""`autotune compare` shows two sets of records side by side."""

from pathlib import Path
from typing import Annotated

import typer

from ...analysis.fields import assignments, common_fields, own_fields, told_common
from ...analysis.noise import compared, matched
from ...core.errors import UsageError
from ...core.units import seconds_text
from ...records.folder import find_sweeps
from ...records.record import SweepRecord
from ..console import print_json, stdout
from ..tables import print_table
from .options import JsonOption


def compare(
    before: Annotated[Path, typer.Argument(help="A folder of recorded sweeps.")],
    after: Annotated[
        Path, typer.Argument(help="The folder to compare with: a new driver, compiler or template, or other GPUs.")
    ],
    json: JsonOption = False,
) -> None:
    """Compare the winners of two sets of records for the same problems, within the noise of the device."""
    old, new = ([SweepRecord.of(folder) for folder in find_sweeps(path)] for path in (before, after))
    comparison = compared(old, new)
    if not comparison.pairs:
        raise UsageError(f"{before} and {after} share no problem of the same kernel and device")
    if json:
        rows = [{**vars(p), "change": p.change, "relation": p.relation} for p in comparison.pairs]
        return print_json({"noise": [vars(n) for n in comparison.noise], "problems": rows})
    if comparison.beyond:
        titles = _titles([sweep for sweep, _ in matched(old, new)])
        lines = [
            (titles[p.title], seconds_text(p.before_s), seconds_text(p.after_s), f"{100 * p.change:+.2f} %", p.relation)
            for p in comparison.beyond
        ]
        print_table(("beyond the noise", "before", "after", "change", ""), lines, cut="beyond the noise")
    for one in comparison.noise:
        stdout.print(f"noise        {one}", markup=False)
    stdout.print(f"problems     {comparison.told_problems()}")
    stdout.print(f"change       {comparison.told_change()}")
    if exchanged := comparison.told_exchanged():
        stdout.print(f"exchanged    {exchanged}")


def _titles(sweeps: list[SweepRecord]) -> dict[str, str]:
    """Returns a short name for each sweep, by its title: the fields in which sweeps differ. Prints the common ones."""
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
