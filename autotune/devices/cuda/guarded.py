"""Device memory without mapped memory before and behind it, so that an access there is an illegal address.

It uses the driver's virtual memory management: addresses are reserved, and memory is mapped in their middle. Source:
CUDA driver API, "Virtual Memory Management". A mapping is a multiple of 2 MiB, also the page of large allocations by
cudaMalloc. Small mappings are kept for the next buffer of their size, so that trials do not call the driver.
"""

import ctypes
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...core.errors import Status, TrialFailure

GUARD_BYTES = 1 << 30  # unmapped addresses on each side; a multiple of every granularity
KEPT_BYTES = 1 << 30  # most memory that is kept for the next buffer
LARGEST_KEPT = 1 << 28  # larger mappings are freed at once

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
SUPPORTED = 102  # CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
PINNED, ON_DEVICE, READ_AND_WRITE, MINIMUM = 1, 1, 3, 0  # values of CUmemAllocationType and related enums


class Unavailable(Exception):
    """Guarded memory is not available; the message says why."""


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("requested_handle_types", ctypes.c_int),
        ("location", Location),
        ("win32_handle_meta_data", ctypes.c_void_p),
        ("compression_type", ctypes.c_ubyte),
        ("gpu_direct_rdma_capable", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", ctypes.c_int))


_ADDRESS = ctypes.c_uint64  # CUdeviceptr, and CUmemGenericAllocationHandle
_SIZE = ctypes.c_size_t
_FLAGS = ctypes.c_uint64  # unsigned long long
_NUMBER, _NUMBERS = ctypes.c_int, ctypes.POINTER(ctypes.c_int)
SIGNATURES: dict[str, tuple[object, ...]] = {
    "cuDeviceGet": (_NUMBERS, _NUMBER),
    "cuDeviceGetAttribute": (_NUMBERS, _NUMBER, _NUMBER),
    "cuMemGetAllocationGranularity": (ctypes.POINTER(_SIZE), ctypes.POINTER(Properties), _NUMBER),
    "cuMemAddressReserve": (ctypes.POINTER(_ADDRESS), _SIZE, _SIZE, _ADDRESS, _FLAGS),
    "cuMemAddressFree": (_ADDRESS, _SIZE),
    "cuMemCreate": (ctypes.POINTER(_ADDRESS), _SIZE, ctypes.POINTER(Properties), _FLAGS),
    "cuMemRelease": (_ADDRESS,),
    "cuMemMap": (_ADDRESS, _SIZE, _SIZE, _ADDRESS, _FLAGS),
    "cuMemUnmap": (_ADDRESS, _SIZE),
    "cuMemSetAccess": (_ADDRESS, _SIZE, ctypes.POINTER(Access), _SIZE),
    "cuCtxSynchronize": (),
    "cuGetErrorName": (_NUMBER, ctypes.POINTER(ctypes.c_char_p)),
}


@dataclass(frozen=True)
class Mapping:
    """Device memory with nothing else mapped within GUARD_BYTES of it."""

    address: int
    n_bytes: int


class GuardedMemory:
    """The guarded memory of the GPU ``index``, whose context is current.

    Raises:
        Unavailable: if the driver or the GPU does not support it; the message says why.
    """

    def __init__(self, index: int, driver: Any = None) -> None:
        self._driver = driver or _library()
        self._waiting: dict[int, list[Mapping]] = defaultdict(list)  # kept mappings by size
        try:
            self._look_at(index)
            self.give_back(self.take(1))
        except (TrialFailure, MemoryError) as error:
            raise Unavailable(f"the driver's virtual memory management does not work here ({error})") from error

    def take(self, n_bytes: int) -> Mapping:
        """Returns a mapping of at least ``n_bytes``; its content is undefined.

        Raises:
            MemoryError: if there is not enough memory.
            TrialFailure: if the context is lost.
        """
        n_bytes = -(-max(1, n_bytes) // self._granularity) * self._granularity
        if self._waiting[n_bytes]:
            return self._waiting[n_bytes].pop()
        try:
            return self._map(n_bytes)
        except MemoryError:
            self.release_waiting()
            return self._map(n_bytes)

    def give_back(self, mapping: Mapping) -> None:
        """Keeps the mapping for the next request of its size; unmaps it if it is too large."""
        waiting = sum(size * len(mappings) for size, mappings in self._waiting.items())
        if mapping.n_bytes <= LARGEST_KEPT and waiting + mapping.n_bytes <= KEPT_BYTES:
            self._waiting[mapping.n_bytes].append(mapping)
        else:
            self._unmap([mapping])

    def release_waiting(self) -> None:
        """Returns the kept memory to the driver."""
        waiting = [mapping for mappings in self._waiting.values() for mapping in mappings]
        self._waiting.clear()
        self._unmap(waiting)

    def _look_at(self, index: int) -> None:
        device, supported, granularity = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
        self._must(self._driver.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
        status = self._driver.cuDeviceGetAttribute(ctypes.byref(supported), SUPPORTED, device)
        if status or not supported.value:
            raise Unavailable("this GPU has no virtual memory management")
        self._properties = Properties(type=PINNED, location=Location(ON_DEVICE, device.value))
        self._access = Access(Location(ON_DEVICE, device.value), READ_AND_WRITE)
        status = self._driver.cuMemGetAllocationGranularity(
            ctypes.byref(granularity), ctypes.byref(self._properties), MINIMUM
        )
        self._must(status, "cuMemGetAllocationGranularity")
        self._granularity = granularity.value

    def _map(self, n_bytes: int) -> Mapping:
        driver, n_reserved = self._driver, n_bytes + 2 * GUARD_BYTES
        reserved, handle = ctypes.c_uint64(), ctypes.c_uint64()
        found = driver.cuMemAddressReserve(ctypes.byref(reserved), n_reserved, self._granularity, 0, 0)
        self._must(found, "cuMemAddressReserve")
        address = reserved.value + GUARD_BYTES
        try:
            created = driver.cuMemCreate(ctypes.byref(handle), n_bytes, ctypes.byref(self._properties), 0)
            self._must(created, "cuMemCreate")
            mapped = driver.cuMemMap(address, n_bytes, 0, handle.value, 0)
            self._must(driver.cuMemRelease(handle.value), "cuMemRelease")  # the mapping keeps the allocation alive
            self._must(mapped, "cuMemMap")
            try:
                accessible = driver.cuMemSetAccess(address, n_bytes, ctypes.byref(self._access), 1)
                self._must(accessible, "cuMemSetAccess")
            except BaseException:
                driver.cuMemUnmap(address, n_bytes)
                raise
        except BaseException:
            driver.cuMemAddressFree(reserved.value, n_reserved)
            raise
        return Mapping(address, n_bytes)

    def _unmap(self, mappings: list[Mapping]) -> None:
        """Unmaps memory once no launch can use it any more. A lost context frees its memory itself."""
        if not mappings or self._driver.cuCtxSynchronize():
            return
        for mapping in mappings:
            self._must(self._driver.cuMemUnmap(mapping.address, mapping.n_bytes), "cuMemUnmap")
            freed = self._driver.cuMemAddressFree(mapping.address - GUARD_BYTES, mapping.n_bytes + 2 * GUARD_BYTES)
            self._must(freed, "cuMemAddressFree")

    def _must(self, status: int, call: str) -> None:
        if status == OUT_OF_MEMORY:
            raise MemoryError(f"{call}: no room on the device")
        if status:
            name = ctypes.c_char_p()
            self._driver.cuGetErrorName(status, ctypes.byref(name))
            text = (name.value or b"").decode() or f"error {status}"
            raise TrialFailure(Status.LAUNCH_FAILED, f"{call}: {text}", sticky=True)


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        library = ctypes.CDLL("libcuda.so.1")
        for name, types in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, ctypes.c_int
    except (OSError, AttributeError) as error:
        raise Unavailable(f"the driver has no virtual memory management ({error})") from error
    return library
