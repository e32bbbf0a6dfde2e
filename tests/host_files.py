"""What all compiles for the host share, in caches that tests have of their own: it takes 3.4 s of CPU to compile."""

import shutil
from pathlib import Path

from autotune.devices.host.build import BUILD_FLAGS, runtime_library, shim_header


def with_host_files(cache: Path) -> Path:
    """Returns a cache, to which the runtime and the headers of this run are copied unless it is there."""
    if not (own := cache / "host").exists():
        own.mkdir(mode=0o700, parents=True)
        cache.chmod(0o700)
        for file in (runtime_library(), *map(shim_header, BUILD_FLAGS)):
            for part in file.parent.glob(f"{file.stem}.*"):
                shutil.copy2(part, own)
    return cache
