"""The limits of NVIDIA architectures, for compiling and searching without such a GPU.

The source is the tables of technical specifications in the CUDA Programming Guide (CUDA 13, 5.1 Compute
Capabilities, https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html). On every
architecture a multiprocessor and a block have 65536 registers, and a thread at most 255: the defaults of ``Device``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """The capacity of one multiprocessor, and the shared bytes that a block may opt in to."""

    threads: int
    blocks: int
    shared_bytes: int  # per block: the multiprocessor's shared memory, less the part that the system reserves per block


ARCHITECTURES = {
    "sm_75": Architecture(threads=1024, blocks=16, shared_bytes=64 * 1024),
    "sm_80": Architecture(threads=2048, blocks=32, shared_bytes=163 * 1024),
    "sm_86": Architecture(threads=1536, blocks=16, shared_bytes=99 * 1024),
    "sm_89": Architecture(threads=1536, blocks=24, shared_bytes=99 * 1024),
    "sm_90": Architecture(threads=2048, blocks=32, shared_bytes=227 * 1024),
    "sm_100": Architecture(threads=2048, blocks=32, shared_bytes=227 * 1024),
    "sm_103": Architecture(threads=2048, blocks=32, shared_bytes=227 * 1024),
    "sm_120": Architecture(threads=1536, blocks=24, shared_bytes=99 * 1024),
}
