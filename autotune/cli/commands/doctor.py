"""`autotune doctor` shows what works on this machine, and how to install what is missing."""

import typer

from ...core.errors import UsageError, one_line
from ...devices import MODULES, Target, device_module, find_device, findings
from ...devices.base import Finding
from ...source.installed import DEVICES, installed
from ..console import print_json, stdout
from .options import JsonOption


def doctor(json: JsonOption = False) -> None:
    """Check GPU, driver, NVRTC and host compiler; list the devices for tuning, and say how to install what is missing.

    The exit code is 1 if there is neither a usable GPU nor a host compiler.
    """
    reports, usable = findings(), [target for kind in (*MODULES, *installed(DEVICES)) for target in _usable(kind)]
    gpus = [target for target in usable if target.kind != "host"]
    try:
        auto, auto_is_there = f"{find_device().identifier}: {find_device().device.name}", True
    except UsageError as error:
        auto, auto_is_there = str(error), False
    if json:
        print_json(
            {
                "auto": auto,
                "tuned_on": [target.device.name for target in gpus],
                "checked_on": [target.device.name for target in usable],
                "findings": [vars(f) for f in reports],
            }
        )
    else:
        for each in reports:
            _print(each)
        stdout.print()
        for line in gpu_lines(gpus, is_host_there=len(usable) > len(gpus)):
            stdout.print(line, markup=False)
        if auto_is_there:
            stdout.print(f"--device auto is {auto}", markup=False)
    if not usable:
        raise typer.Exit(1)


def _print(each: Finding) -> None:
    state = "works" if each.works else "lacks"
    stdout.print(f"{each.what:<14} {state}  {one_line(each.detail)}", markup=False)
    if each.remedy and not each.works:
        stdout.print(f"{'':<14} fix    {one_line(each.remedy)}", markup=False)


def _usable(kind: str) -> list[Target]:
    """Returns the devices of a kind; none if a part that the kind needs is missing."""
    try:
        module = device_module(kind)
        if not all(finding.works for finding in module.findings()):
            return []
        return [Target(kind, identifier, module.describe(identifier)) for identifier in module.identifiers()]
    except UsageError:  # the module of an installed package fails; the findings say so
        return []


def gpu_lines(gpus: list[Target], is_host_there: bool) -> list[str]:
    """Returns the lines that say where kernels can be tuned and checked; ``gpus`` are all devices except the host."""
    host = "host, the CPU; its times say nothing about a GPU"
    if gpus:
        names = ", ".join(dict.fromkeys(f"{target.device.name} ({target.identifier})" for target in gpus))
        return [f"kernels can be tuned on: {names}"] + ["kernels can be checked on: " + host] * is_host_there
    if is_host_there:
        return ["kernels cannot be tuned for a GPU: none is usable", "kernels can be checked, and tuned, on: " + host]
    return ["no device can tune kernels: install what a GPU needs, or a host compiler"]
