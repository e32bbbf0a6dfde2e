"""Renders a recorded config as it is today, and shows by text or machine code that it is the measured one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ..core.definition import AnyKernel, Device
from ..core.errors import TrialFailure, UsageError
from ..devices import device_module
from ..records.as_recorded import config_of, of_definition, problem_of
from ..records.folder import SweepFolder
from ..rendering.render import Variant, render
from ..runtime.lookup import refusal
from ..runtime.wisdom import KEY, fields_text
from ..source.registry import kernel_reference, recorded_kernel
from ..system.shell import command
from ..trial.compile import N_ANEW, code_of

log = logging.getLogger("autotune")

TEXT, MACHINE_CODE = "text", "machine code"


class CannotTell(UsageError):
    """A recorded config cannot be compared with the measured one: texts differ, and machine code is unknown."""


@dataclass(frozen=True)
class MeasuredVariant:
    """A variant that equals the measured one; ``by`` says what showed this: TEXT or MACHINE_CODE."""

    variant: Variant
    by: str


def as_measured(
    folder: SweepFolder, kernel: AnyKernel, device: Device, config: Mapping[str, object], key: str | None
) -> MeasuredVariant:
    """Returns the variant of a config, which the sweep in ``folder`` measured under ``key``.

    If the text has changed, it compiles the present one, unless `autotune digest` has stored the digest of its code.

    Raises:
        UsageError: when the machine code differs today, or the device can no longer run it; it says what to do.
        CannotTell: when the machine code cannot be compared here.
        TrialFailure: when the config no longer renders.
    """
    about = folder.about()
    problem = problem_of(kernel, about)
    options = ("--kernel", kernel_reference(kernel), "--problem", about.problem_name)
    again = f"Sweep again: {command('autotune', 'sweep', *options)}"
    if key is None or not KEY.fullmatch(key):
        raise UsageError(f"its record has no key for {fields_text(config)}, by which its source is known. {again}")
    chosen = config_of(kernel, config)
    if (reason := refusal(kernel, problem, chosen, device)) is not None:
        raise UsageError(f"{device.name} can no longer run {chosen}: {reason}. {again}")
    variant = render(kernel, problem, chosen, numbered=False)
    if key == variant.key:
        return MeasuredVariant(variant, TEXT)
    variant = render(kernel, problem, chosen)
    was = f"the template of {kernel.name} has changed since: {key}, which was measured, is now {variant.key}, and"
    try:
        if not _is_same_code(folder.of_space(kernel.space), device, variant):
            raise UsageError(f"{was} its machine code differs, too. {again}")
    except CannotTell as unknown:
        raise CannotTell(
            f"{was} whether its machine code is the same cannot be checked here: {unknown}. {again}"
        ) from None
    return MeasuredVariant(variant, MACHINE_CODE)


def validity_text(folder: SweepFolder, device: Device, config: Mapping[str, object], key: str | None) -> str:
    """Returns in words whether a recorded config is unchanged today; "" if its definition is not installed."""
    try:
        kernel = recorded_kernel(folder.about().content, {})
    except UsageError:
        return ""
    try:
        by = of_definition(kernel, as_measured, folder, kernel, device, config, key).by
    except CannotTell as unknown:
        return f"unknown: {unknown}"
    except (UsageError, TrialFailure) as stale:
        return f"stale: {stale}"
    return "its text is unchanged" if by == TEXT else "its text has changed, its machine code has not"


def _is_same_code(folder: SweepFolder, device: Device, variant: Variant) -> bool:
    """Returns whether ``variant`` has the recorded machine code. Raises CannotTell with the reason."""
    trial = next((t for t in reversed(folder.current()) if t.config == variant.config), None)
    if trial is None:
        raise CannotTell("its trial is missing in the record")
    digests = folder.digests()
    if (pair := digests.of_text(variant.key, trial)) is not None:
        now, then = pair
        return now == then
    made_by = digests.made_by(trial)
    if not made_by:
        raise CannotTell("no digest of it is recorded")
    module, digest = device_module(device.kind), command("autotune", "digest", str(folder.path))
    where = " or ".join(sorted(made_by))
    try:
        compiler = module.compiler(device)
    except UsageError as error:
        raise CannotTell(f"{error}; or store a digest where there is {where}: {digest}") from None
    if compiler not in made_by:
        raise CannotTell(f"no digest by {compiler} is recorded; store one where there is {where}: {digest}")
    return _still_makes(device.kind, variant, device, made_by[compiler])


@lru_cache(maxsize=1024)  # a caller that needs times and then sources calls twice
def _still_makes(kind: str, variant: Variant, device: Device, code: str) -> bool:
    _tell_that_it_takes_a_while()
    return code_of(kind, variant, device, code) == code


@cache
def _tell_that_it_takes_a_while() -> None:
    most = 1 + N_ANEW
    log.warning("texts of recorded configs have changed: compiling up to %d times each, to compare machine code", most)
