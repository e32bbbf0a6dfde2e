"""A recorded config as it renders today, and what shows that it is what was measured: its text, or its machine code."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ..core.definition import Device, Kernel
from ..core.errors import TrialFailure, UsageError
from ..devices import device_module
from ..records.as_recorded import config_of, of_definition, problem_of
from ..records.folder import SweepFolder
from ..runtime.lookup import refusal
from ..runtime.wisdom import KEY, fields_text
from ..source.registry import recorded_kernel, reference_of
from ..source.render import Variant, render
from ..system.shell import command
from ..trial.compile import N_ANEW, makes

log = logging.getLogger("autotune")

TEXT, MACHINE_CODE = "text", "machine code"


@dataclass(frozen=True)
class AsMeasured:
    """A variant that is what was measured; ``by`` says what showed it: TEXT or MACHINE_CODE."""

    variant: Variant
    by: str


def as_measured(
    folder: SweepFolder, kernel: Kernel[Any], device: Device, config: Mapping[str, Any], key: str | None
) -> AsMeasured:
    """The variant of a config that the sweep in ``folder`` measured under ``key``. Compiles where the text has changed.

    Raises:
        UsageError: when it is another one today, or the device cannot run it any more; says what to do.
        TrialFailure: when it no longer renders.
    """
    about = folder.about()
    problem = problem_of(kernel, about)
    asked = ("--kernel", reference_of(kernel), "--problem", about.problem_name)
    again = f"Sweep again: {command('autotune', 'sweep', *asked)}"
    if key is None or not KEY.fullmatch(key):
        raise UsageError(f"its record has no key for {fields_text(config)}, by which its source is known. {again}")
    chosen = config_of(kernel, config)
    if (reason := refusal(kernel, problem, chosen, device)) is not None:
        raise UsageError(f"{device.name} can no longer run {chosen}: {reason}. {again}")
    variant = render(kernel, problem, chosen)
    if key == variant.key:
        return AsMeasured(variant, TEXT)
    if (reason := _other_code(folder, device, variant)) is not None:
        raise UsageError(
            f"the template of {kernel.name} has changed since: {key}, which was measured, now renders as "
            f"{variant.key}, and {reason}. {again}"
        )
    return AsMeasured(variant, MACHINE_CODE)


def told(folder: SweepFolder, device: Device, config: Mapping[str, Any], key: str | None) -> str:
    """Whether a recorded config is what its definition makes today, for people; "" where the definition is not here."""
    try:
        kernel = recorded_kernel(folder.about().content, {})
    except UsageError:
        return ""
    try:
        by = of_definition(kernel, as_measured, folder, kernel, device, config, key).by
    except (UsageError, TrialFailure) as stale:
        return f"stale: {stale}"
    return "its text is as it was measured" if by == TEXT else "its text has changed, its machine code has not"


def _other_code(folder: SweepFolder, device: Device, variant: Variant) -> str | None:
    """None where the machine code of ``variant`` is the recorded one; else why not."""
    module = device_module(device.kind)
    try:
        compiler = module.compiler(device)
    except UsageError:
        return "no compiler is at hand to compare machine code"
    trial = next((t for t in reversed(folder.current()) if t.config == variant.config), None)
    code = folder.digests().code(trial, compiler) if trial is not None else ""
    if not code:
        return f"nothing is recorded of the machine code that {compiler.partition(' -')[0]} made of it"
    return None if _still_makes(device.kind, variant, device, code) else "its machine code is another, too"


@lru_cache(maxsize=1024)  # who wants times and then sources asks twice
def _still_makes(kind: str, variant: Variant, device: Device, code: str) -> bool:
    _tell_that_it_takes_a_while()
    return makes(kind, variant, device, code)


@cache
def _tell_that_it_takes_a_while() -> None:
    most = 1 + N_ANEW
    log.warning("texts of recorded configs have changed: compiling up to %d times each, to compare machine code", most)
