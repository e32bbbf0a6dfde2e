"""Reads the energy counter of a GPU from its driver (NVML, nvmlDeviceGetTotalEnergyConsumption)."""

import time
from typing import Any

LONGEST_TICK_S = 0.3  # longest wait for a change of the counter


class Meter:
    """The energy counter of the GPU at a PCI address; it reads None if there is no NVML, or no counter.

    The counter changes a few times a second, so it is read right after a change. Then the difference of two readings
    covers the whole time between them, and less than one more tick of the idle device.
    """

    def __init__(self, pci_bus_id: str) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml: Any = pynvml
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        except Exception:  # the package or the driver's library may be missing, or NVML raises its own error
            self._nvml = None

    def joules(self) -> float | None:
        """Returns the energy since the driver was loaded, right after the counter changed."""
        first = last = self._millijoules()
        end = time.monotonic() + LONGEST_TICK_S
        while last == first is not None and time.monotonic() < end:
            time.sleep(0.001)
            last = self._millijoules()
        return None if last is None else 1e-3 * last

    def _millijoules(self) -> int | None:
        if self._nvml is None:
            return None
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        except self._nvml.NVMLError:
            return None
