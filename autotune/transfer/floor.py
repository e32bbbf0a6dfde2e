"""The time that a launch owes to its work by a device's data sheet: bytes over memory, and operations over arithmetic.

It is what times are compared with, not a bound: caches serve bytes faster, and no kernel reaches both rates at once.
"""

from dataclasses import dataclass
from math import prod

from ..core.definition import Device, Kernel
from ..core.problem import Problem

LATENCY_S = 2e-6  # of a launch that does nothing, as the GPU's clock sees it
MEMORY = {  # bytes per second, by words of the name: NVIDIA's data sheet of each
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
# Operations of a multiprocessor in a clock: float32 from the CUDA Programming Guide (5.1, throughput of arithmetic
# instructions, two operations each), dense tensor cores from the peak rates of NVIDIA's data sheets
OPERATIONS = {
    "sm_80": {"float32": 128, "float16": 2048, "int8": 4096},
    "sm_86": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_89": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_90": {"float32": 256, "float16": 4096, "int8": 8192},
    "sm_100": {"float32": 256, "float16": 8192, "int8": 16384},
    "sm_120": {"float32": 256, "float16": 1024, "int8": 2048},
}
USUAL = OPERATIONS["sm_90"]
THREADS = 256  # that keep a multiprocessor at work: two warps for each of its four schedulers
N_MULTIPROCESSORS, CLOCK_HZ = 100, 1.5e9  # where a record does not say them


@dataclass(frozen=True)
class Floor:
    """Seconds that bytes and operations take on the multiprocessors that have a block."""

    of_bytes: float
    of_operations: float

    @property
    def seconds(self) -> float:
        """Returns the sum of both, with the latency of a launch."""
        return self.of_bytes + self.of_operations + LATENCY_S


def bytes_per_s(device: Device) -> float | None:
    """Returns the nominal rate of the device's memory; None where its model is not known."""
    words = set(device.name.replace("-", " ").split())
    return next((rate for model, rate in MEMORY.items() if words.issuperset(model)), None)


def floor_of(kernel: Kernel[Problem], problem: Problem, device: Device, memory: float) -> Floor:
    """Returns the floor of a launch; ``memory``: bytes per second.

    A block runs on one multiprocessor: with fewer blocks, by the kernel's default config, or with few threads, only a
    share of the device is at work.
    """
    work, n = kernel.work(problem), device.n_multiprocessors or N_MULTIPROCESSORS
    steps = kernel.launch(problem, kernel.default_config(problem, device)).steps
    share = max(min(1.0, prod(step.grid) / n * min(1.0, prod(step.block) / THREADS)) for step in steps)
    rate = OPERATIONS.get(device.arch, USUAL)[work.unit] * n * (device.max_clock_hz or CLOCK_HZ)
    return Floor(work.bytes / memory / share, work.flops / rate / share)
