"""Devices by name, recorded or not: a GPU's model tells its architecture, and this its limits."""

import dataclasses
import re

from ..core.architecture import ARCHITECTURES
from ..core.definition import Device
from ..core.errors import UsageError
from .wisdom import Wisdom

SMALLEST_SHARED_BYTES = 101376  # bytes per block that a kernel can opt in to on every architecture since sm_80
MODELS = {  # model in a GPU's name -> architecture, for GPUs without records
    **dict.fromkeys(("P100", "GP100"), "sm_60"),
    **dict.fromkeys(("1050", "1060", "1070", "1080", "P4", "P40"), "sm_61"),
    **dict.fromkeys(("V100", "V100S", "GV100"), "sm_70"),
    **dict.fromkeys(("T4", "T4G", "1650", "1660", "2060", "2070", "2080"), "sm_75"),
    **dict.fromkeys(("A100", "A30"), "sm_80"),
    **dict.fromkeys(("A10", "A16", "A2", "A40", "A4000", "A5000", "A6000", "3060", "3070", "3080", "3090"), "sm_86"),
    **dict.fromkeys(("L4", "L40", "L40S", "4060", "4070", "4080", "4090"), "sm_89"),
    **dict.fromkeys(("H100", "H200", "H800", "H20", "GH200"), "sm_90"),
    **dict.fromkeys(("B200", "GB200"), "sm_100"),
    **dict.fromkeys(("B300", "GB300"), "sm_103"),
    **dict.fromkeys(("5060", "5070", "5080", "5090", "Blackwell"), "sm_120"),  # Blackwell: as in RTX PRO 6000 Blackwell
}
ANY_GPU = Device("a GPU of no known architecture", "cuda", "unknown", max_shared_bytes=SMALLEST_SHARED_BYTES)
NUMBERED = re.compile(r"cuda(:\d+)?")


def device_named(wisdom: Wisdom, name: str) -> Device:
    """Returns the device of this name, which need not be recorded or present; ``sm_90`` names any GPU of that kind.

    A GPU that is neither recorded nor known by its model has an unknown architecture, and gets only the default.

    Raises:
        UsageError: for the number of a GPU, such as cuda:0.
    """
    if NUMBERED.fullmatch(name):
        raise UsageError(
            f"device={name!r} is the number of a GPU; give a name, such as 'NVIDIA H200', or leave it out for CuPy's "
            "current GPU"
        )
    devices = wisdom.devices()
    if name in devices:
        return devices[name]
    is_arch = name.startswith("sm_") and name[3:].isdigit()
    words = name.replace("-", " ").split()
    arch = name if is_arch else next((a for model, a in MODELS.items() if model in words), "unknown")
    title = f"a {name} GPU" if is_arch else name
    relatives = [d for d in devices.values() if d.arch == arch]
    if relatives:  # use a relative's limits; its name must not stand for this GPU
        return dataclasses.replace(relatives[0], name=title)
    n_shared = ARCHITECTURES[arch].shared_bytes if arch in ARCHITECTURES else SMALLEST_SHARED_BYTES
    return dataclasses.replace(ANY_GPU, name=title, arch=arch, max_shared_bytes=n_shared)
