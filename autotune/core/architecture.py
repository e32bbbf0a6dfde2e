"""The limits of NVIDIA architectures, for compiling and searching without such a GPU.

They are those of the tables of technical specifications in the CUDA Programming Guide (CUDA 13, 5.1 Compute
Capabilities, https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html). A
multiprocessor and a block have 65536 registers in all of them, a thread 255 at most: the defaults of ``Device``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What a multiprocessor holds at a time, and a block's shared bytes after opting in."""

    threads: int
    blocks: int
    shared_bytes: int  # of a block: the multiprocessor's less what the system reserves for each block


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
