"""Unpacks a commit of this tree beside the working tree, for benchmarks that compare the two."""

import subprocess
from pathlib import Path


def unpack(root: Path, commit: str, parts: tuple[str, ...], folder: Path) -> str | None:
    """Unpacks the ``parts`` of ``commit`` of the checkout ``root`` into ``folder``; a string says why it cannot.

    tar unpacks it, not tarfile: Python has a safe ``extractall`` only from 3.11.4 on.
    """
    packed = subprocess.run(["git", "archive", "--format=tar", commit, "--", *parts], cwd=root, capture_output=True)
    if packed.returncode:
        return packed.stderr.decode().strip()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return None
