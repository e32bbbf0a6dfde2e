"""Collects the provenance of a sweep: the machine, the versions and the commit."""

import os
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..system.installation import DISTRIBUTION


@dataclass(frozen=True)
class Provenance:
    """The machine and the software of a sweep."""

    machine: str
    versions: Mapping[str, str]  # versions of Python and of packages
    commit: str  # commit of the checkout; "" outside a checkout


@lru_cache(maxsize=1)
def provenance() -> Provenance:
    """Returns the machine, the versions and the commit."""
    versions = {"python": platform.python_version()}
    for package in (DISTRIBUTION, "numpy", "optuna", "jinja2", "cupy-cuda13x", "cupy-cuda12x"):
        with suppress(PackageNotFoundError):
            versions["autotune" if package == DISTRIBUTION else package] = version(package)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return Provenance(machine, versions, _commit())


def _commit() -> str:
    """Returns AUTOTUNE_COMMIT if it is set; else the commit of this checkout, with "+changes" if it is edited."""
    if commit := os.environ.get("AUTOTUNE_COMMIT"):
        return commit
    git = ["git", "-C", str(Path(__file__).parents[1])]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        status = [*git, "status", "--porcelain", "--untracked-files=no", "--", "..", ":!../results"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")
