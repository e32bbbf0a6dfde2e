"""Checks whether a problem fits into this machine's memory before anything is allocated."""

from contextlib import suppress
from pathlib import Path

from ..core.definition import Kernel, problem_name, runtime_fields
from ..core.errors import UsageError
from ..core.problem import Problem

MEMORY = Path("/proc/meminfo")
LIMIT = Path("/sys/fs/cgroup/memory.max")  # the memory limit of a container


def check_memory(kernel: Kernel[Problem], problem: Problem) -> None:
    """Checks that inputs and outputs fit into host memory, which every device needs.

    Raises:
        UsageError: when the arrays of ``problem`` alone need more memory than is free.
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
    """Returns the largest number of free bytes that any source reports, or None.

    A virtual machine may get memory only as it uses it, so the free memory at the start may be too low.
    """
    sizes = []
    with suppress(OSError, KeyError, ValueError):  # not Linux
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines() if ":" in line)
        sizes.append(int(lines["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):  # no container limit
        sizes.append(int(LIMIT.read_text()))
    return max(sizes, default=None)
