"""`autotune show --first-use` prints what was tuned on this machine when it was first used."""

from dataclasses import asdict

from ...analysis.fields import assignments
from ...core.units import seconds_text
from ...runtime.tune_once import TunedHere, all_outcomes, folder_of_outcomes
from ..console import note, print_json, stdout
from ..tables import print_table


def print_first_uses(kernel: str, in_full: bool, json: bool) -> None:
    """Prints one line for each outcome in the user's cache, or with ``in_full`` each candidate of it.

    ``kernel``: only outcomes of this kernel; "": all.
    """
    found = [one for one in all_outcomes(note) if kernel in ("", one.kernel)]
    found.sort(key=lambda one: (one.kernel, one.surroundings.device.name, one.at))
    if json:
        attempts = [[asdict(each) | {"config": dict(each.config)} for each in one.attempts] for one in found]
        return print_json([asdict(one) | {"attempts": own} for one, own in zip(found, attempts, strict=True)])
    of_kernel = f" of {kernel}" if kernel else ""
    if not found:
        return stdout.print(f"nothing{of_kernel} was tuned at first use ({folder_of_outcomes()})", markup=False)
    if in_full:
        for one in found:
            _print_outcome(one)
        return None
    rows = [
        (
            one.kernel,
            assignments(one.problem),
            one.surroundings.device.name,
            one.at[:10],
            f"{one.n_timed} of {len(one.attempts)}",
            seconds_text(fastest.median_s) if (fastest := one.fastest) else "-",
            "-" if (speed_up := _speed_up(one)) is None else f"{speed_up:.3f}",
            assignments(fastest.config) if fastest else one.why,
        )
        for one in found
    ]
    print_table(("kernel", "problem", "device", "date", "timed", "fastest", "speed-up", "config"), rows, below="config")
    return stdout.print("\nthese are not records; `autotune sweep` of such a problem tries its config first")


def _print_outcome(one: TunedHere) -> None:
    around = one.surroundings
    stdout.print(f"\n{one.kernel}[{assignments(one.problem)}] on {around.device.name}", markup=False, style="bold")
    stdout.print(
        f"{one.at}, in {seconds_text(one.took_s)}; driver {around.driver or '-'}; {around.compiler}", markup=False
    )
    if one.checked:
        stdout.print(f"the fastest was checked at {'; '.join(one.checked)}", markup=False)
    if one.why:
        stdout.print(f"nothing was chosen: {one.why}", markup=False)
    rows = [
        (
            "fastest" if number == one.winner else each.status,
            each.origin,
            seconds_text(each.median_s),
            f"{seconds_text(each.q1_s)} .. {seconds_text(each.q3_s)}" if each.q1_s and each.q3_s else "-",
            each.n_samples,
            assignments(each.config) + (f": {each.message}" if each.message else ""),
        )
        for number, each in enumerate(one.attempts)
    ]
    print_table(("end", "origin", "median", "quartiles", "launches", "config"), rows, below="config")


def _speed_up(one: TunedHere) -> float | None:
    """Returns the median of the default divided by that of the fastest; None if the default was not timed."""
    fastest = one.fastest
    return one.default_s / fastest.median_s if one.default_s and fastest and fastest.median_s else None
