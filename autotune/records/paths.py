"""Paths of records, which stay inside the folder of results for any names of devices, kernels and problems."""

import hashlib
from pathlib import Path

LONGEST_PART = 200  # bytes of a file or folder name; longer names are derived from it, and the limit is 255


def sweep_path(results: Path, device: str, kernel: str, problem: str) -> Path:
    """Returns results/<device>/<kernel>/<problem> as a valid path for any three names."""
    return kernel_path(results, device, kernel) / part(problem)


def kernel_path(results: Path, device: str, kernel: str) -> Path:
    """Returns the folder of all sweeps of a kernel on a device, whose name becomes a plain folder name."""
    return results / part("".join(c if c.isalnum() or c in "-_." else "_" for c in device)) / part(kernel)


def part(name: str) -> str:
    """Returns ``name`` as one path component: unchanged if possible, or else its valid characters and a hash."""
    is_plain = name not in ("", ".", "..") and name.isprintable() and "/" not in name
    if is_plain and len(name.encode()) <= LONGEST_PART:
        return name
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_=,.") else "_" for c in name)
    return f"{kept[: LONGEST_PART - 17]}~{hashlib.sha256(name.encode(errors='backslashreplace')).hexdigest()[:16]}"
