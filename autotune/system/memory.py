"""Checks whether a problem fits into this machine's memory before anything is allocated."""

from contextlib import suppress
from pathlib import Path

from ..core.definition import Kernel, problem_name, runtime_fields
from ..core.errors import UsageError
from ..core.problem import Problem

MEMORY = Path("/proc/meminfo")
LIMIT = Path("/sys/fs/cgroup/memory.max")  # memory limit of a container


def check_memory(kernel: Kernel[Problem], problem: Problem) -> None:
    """Raises UsageError if inputs and outputs do not fit into host memory, which every device needs.

    Raises:
        UsageError: when the arrays of ``problem`` alone take more than there is.
    """
    needed, free = sum(array.n_bytes for array in kernel.arrays(problem).values()), available_bytes()
    if free is not None and needed > free:
        sizes = ",".join(f"{name}=..." for name in runtime_fields(kernel.problem_type)) or "its fields"
        raise UsageError(
            f"the arrays of {kernel.name} {problem_name(problem)} take {needed / 1e9:.3g} GB, and this machine has "
            f"{free / 1e9:.3g} GB free; choose smaller sizes: --problem {sizes}, or host_sizes of the "
            "definition, on the device host"
        )


def available_bytes() -> int | None:
    """Returns the largest amount that any source reports, or None if none does.

    A virtual machine may be given memory only as it is used: what is free at the start is then less than there is.
    """
    told = []
    with suppress(OSError, KeyError, ValueError):  # not Linux
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines() if ":" in line)
        told.append(int(lines["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):  # no container limit
        told.append(int(LIMIT.read_text()))
    return max(told, default=None)
