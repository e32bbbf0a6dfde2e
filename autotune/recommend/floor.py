"""The time of a launch according to the device's data sheet: bytes / memory rate + operations / arithmetic rate.

It is a reference for times, not a bound: caches serve bytes faster, and no kernel reaches both rates at once.
"""

from dataclasses import dataclass
from math import prod

from ..core.definition import Device, Kernel
from ..core.problem import Problem

LATENCY_S = 2e-6  # time of an empty launch on the GPU's clock
MEMORY = {  # words of the name -> bytes per second, from NVIDIA's data sheets
    ("H200",): 4.8e12,
    ("H100", "HBM3"): 3.35e12,
    ("H100", "NVL"): 3.9e12,
    ("H100", "PCIe"): 2.0e12,
    ("A100", "SXM4", "80GB"): 2.039e12,
    ("A100", "PCIe", "80GB"): 1.935e12,
    ("A100", "40GB"): 1.555e12,
    ("A30",): 0.933e12,
    ("A40",): 0.696e12,
    ("3090",): 0.936e12,
    ("L40S",): 0.864e12,
    ("L4",): 0.3e12,
    ("4090",): 1.008e12,
    ("B200",): 8.0e12,
    ("5090",): 1.792e12,
}
# Operations per multiprocessor and clock: float32 from the CUDA Programming Guide (5.1, throughput of arithmetic
# instructions, two operations each), dense tensor cores from the peak rates in NVIDIA's data sheets.
OPERATIONS = {
    "sm_80": {"float32": 128, "float16": 2048, "int8": 4096},
    "sm_86": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_89": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_90": {"float32": 256, "float16": 4096, "int8": 8192},
    "sm_100": {"float32": 256, "float16": 8192, "int8": 16384},
    "sm_120": {"float32": 256, "float16": 1024, "int8": 2048},
}
USUAL = OPERATIONS["sm_90"]
THREADS = 256  # threads that keep a multiprocessor busy: two warps for each of its four schedulers
N_MULTIPROCESSORS, CLOCK_HZ = 100, 1.5e9  # assumed where a record lacks them


@dataclass(frozen=True)
class Floor:
    """The seconds for bytes, and for operations, on the multiprocessors that have a block."""

    of_bytes: float
    of_operations: float

    @property
    def seconds(self) -> float:
        """Returns the sum of both and the latency of a launch."""
        return self.of_bytes + self.of_operations + LATENCY_S


def bytes_per_s(device: Device) -> float | None:
    """Returns the nominal rate of the device's memory; None for an unknown model."""
    words = set(device.name.replace("-", " ").split())
    return next((rate for model, rate in MEMORY.items() if words.issuperset(model)), None)


def floor_of(kernel: Kernel[Problem], problem: Problem, device: Device, memory: float) -> Floor:
    """Returns the floor of a launch; ``memory``: bytes per second.

    A block runs on one multiprocessor: if the kernel's default config has fewer blocks than the device has
    multiprocessors, or few threads, only a share of the device is busy.
    """
    work, n = kernel.work(problem), device.n_multiprocessors or N_MULTIPROCESSORS
    steps = kernel.launch(problem, kernel.default_config(problem, device)).steps
    share = max(min(1.0, prod(step.grid) / n * min(1.0, prod(step.block) / THREADS)) for step in steps)
    rate = OPERATIONS.get(device.arch, USUAL)[work.unit] * n * (device.max_clock_hz or CLOCK_HZ)
    return Floor(work.bytes / memory / share, work.flops / rate / share)
