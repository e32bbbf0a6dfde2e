"""Problems of each kernel, drawn by a seed from the ranges in ``drawn/``, as strangers would ask for them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.campaign.campaign_plan import read_plan
from autotune.core.definition import AnyKernel

DRAWN = Path(__file__).parent / "drawn"
KERNELS = tuple(sorted(path.stem for path in DRAWN.glob("*.toml")))


def usual(kernel: AnyKernel, n: int, seed: int) -> Iterator[Any]:
    """Yields ``n`` problems whose launch is neither tiny nor huge, the same for the same seed."""
    return read_plan(DRAWN / f"{kernel.name}.toml", draw=n, seed=seed).draw.problems(kernel)


def drawn(kernel: AnyKernel, n: int, seed: int) -> Iterator[Any]:
    """Yields ``n`` problems of any size, the same for the same seed."""
    plan = read_plan(DRAWN / f"{kernel.name}.toml", draw=n, seed=seed)
    return replace(plan.draw, work={}).problems(kernel)
