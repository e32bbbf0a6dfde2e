"""Dask's processes: one worker for each device, here or on other hosts, each restarted when it dies."""

import asyncio
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import dask.config
from distributed import Client, Nanny, Scheduler, SpecCluster

from ..devices import MODULES, Target, device_module, find_device
from ..errors import UsageError
from ..processes import n_cpus, without_main
from .worker import COMPILE_PROCESSES, DEVICE, SHARING, OneBench

N_SHARING = 12  # sweeps under way on a device at a time: one has it, the others wait for compilers and references
CONFIG = {
    "distributed.worker.profile.enabled": False,  # it looks at all threads a hundred times a second
    "distributed.worker.daemon": False,  # a worker has processes of its own
    "distributed.scheduler.allowed-failures": 5,  # deaths of a worker that one sweep may be blamed for
    "distributed.worker.memory.terminate": False,  # references are mapped files: not what a limit should count
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
}


def all_devices() -> tuple[str, ...]:
    """Every GPU here; ``host`` where there is none."""
    for kind in MODULES:
        if identifiers := device_module(kind).identifiers():
            return tuple(identifiers)
    raise UsageError("there is no device here (see `autotune doctor`)")


@contextmanager
def local_client(devices: Sequence[str], compile_processes: int | None = None) -> Iterator[tuple[Client, list[Target]]]:
    """A cluster on this machine: a worker process for each of ``devices``, each with its own compile processes.

    Raises:
        UsageError: for a device that is not there.
    """
    specs = {device: worker_spec(device) for device in devices}
    with ThreadPoolExecutor(1) as finder, _quiet(), without_main():  # a driver takes its time; so does a cluster
        finding = finder.submit(_found, devices, compile_processes)
        with SpecCluster(specs, scheduler=_scheduler(), silence_logs=50) as cluster, Client(cluster) as client:
            found = finding.result()
            client.register_plugin(OneBench(found))
            yield client, [target for target, _ in found.values()]


@contextmanager
def remote_client(address: str) -> Iterator[Client]:
    """The cluster whose scheduler listens at ``address``, with the workers that ``autotune worker`` gave it.

    Raises:
        UsageError: when nobody answers, or there is no worker.
    """
    with _quiet():
        try:
            client = Client(address, timeout="10s")
        except OSError as error:
            raise UsageError(f"no scheduler answers at {address} ({error}); start one with `dask scheduler`") from error
        with client:
            if not client.scheduler_info()["workers"]:
                raise UsageError(f"{address} has no workers; on each host run: autotune worker {address}")
            client.register_plugin(OneBench())
            yield client


def _found(devices: Sequence[str], compile_processes: int | None) -> dict[str, tuple[Target, int]]:
    targets = {name: find_device(name) for name in devices}
    return {name: (target, compile_processes or share_of_cores(target.kind)) for name, target in targets.items()}


def worker_spec(device: str, compile_processes: int | None = None) -> dict[str, Any]:
    """How Dask starts the worker of a device of this machine: a Nanny restarts it when it dies.

    ``compile_processes``: None if the plugin will say.
    """
    environment = {DEVICE: device, SHARING: str(N_SHARING)}
    if compile_processes is not None:
        environment[COMPILE_PROCESSES] = str(compile_processes)
    options = {"nthreads": N_SHARING, "env": environment, "memory_limit": 0, "dashboard": False, "silence_logs": 40}
    return {"cls": Nanny, "options": options}


def share_of_cores(kind: str) -> int:
    """This machine's cores, less one for each device, shared out among all devices of the kind, in use here or not:
    what one does not use, the campaigns of others on this machine may.
    """
    n_devices = max(1, len(device_module(kind).identifiers()))
    return max(1, (n_cpus() - n_devices) // n_devices)


def _scheduler() -> dict[str, Any]:
    # Any free port for its pages: campaigns of others on this machine may have the usual one.
    return {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}}


@contextmanager
def _quiet() -> Iterator[None]:
    with dask.config.set(CONFIG), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Creating scratch directories")  # on a busy disk; little is written there
        yield


def serve(address: str, devices: Sequence[str], compile_processes: int | None = None) -> None:
    """Worker processes for a scheduler elsewhere, one for each of ``devices``, until interrupted.

    Raises:
        UsageError: for a device that is not here, or when nobody answers at ``address``.
    """
    for device in devices:
        find_device(device)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            for device in devices:
                n_processes = compile_processes or share_of_cores(device.partition(":")[0])
                options = worker_spec(device, n_processes)["options"]
                await stack.enter_async_context(Nanny(address, **options))
            await asyncio.Event().wait()

    with _quiet(), without_main():
        try:
            asyncio.run(run())
        except OSError as error:
            raise UsageError(f"no scheduler answers at {address} ({error}); start one with `dask scheduler`") from error
        except KeyboardInterrupt:
            return
