"""Dask's processes: one worker for each device, here or on other hosts. A worker that dies is restarted."""

import asyncio
import logging
import ssl
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any

import dask.config
from distributed import Client, Nanny, Scheduler, Security, SpecCluster
from distributed.utils import get_ip

from ..core.errors import UsageError, one_line
from ..core.kept import retried
from ..devices import MODULES, Target, device_module, find_device
from ..system.processes import MOST_STARTS, n_cpus, without_main
from ..system.shell import command
from .security import Certificates, host_of, security_for, temporary
from .task_worker import COMPILE_PROCESSES, DEVICE_VARIABLE, SHARING, OneBench

LOOPBACK = "127.0.0.1"
N_SHARING = 12  # concurrent sweeps per device: one uses it, the others wait for compilers and references
# Dask's web pages are off; their port is any free one, since another campaign may use the default.
NO_PAGES: dict[str, object] = {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}
CONFIG = {
    "distributed.worker.profile.enabled": False,  # the profiler inspects all threads a hundred times a second
    "distributed.worker.daemon": False,  # a daemon may not have child processes, and a worker has some
    "distributed.scheduler.allowed-failures": 5,  # worker deaths during one sweep before the sweep fails
    "distributed.worker.memory.terminate": False,  # references are mapped files, which a memory limit should not count
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.http.routes": [],  # no pages or metrics: everybody could read them
    "distributed.scheduler.http.routes": [],
}


def all_devices() -> tuple[str, ...]:
    """Returns every GPU of this machine, or ``host`` if there is none."""
    for kind in MODULES:
        if identifiers := device_module(kind).identifiers():
            return tuple(identifiers)
    raise UsageError("no device found (see `autotune doctor`)")


@contextmanager
def local_client(devices: Sequence[str], compile_processes: int | None = None) -> Iterator[tuple[Client, list[Target]]]:
    """Yields a client of a new cluster on this machine, and its devices.

    Each of ``devices`` gets a worker process with its own compile processes.

    All processes listen on loopback only, and require the cluster's certificate: other users reach loopback, too.

    Raises:
        UsageError: for a device that does not exist.
    """
    security = temporary()
    specs = {device: worker_spec(device, LOOPBACK, security) for device in devices}
    with ThreadPoolExecutor(1) as finder, _quiet(), without_main():  # cluster and devices start slowly, so in parallel
        finding = finder.submit(_targets_of, devices, compile_processes)
        with _cluster(specs, security) as cluster, Client(cluster) as client:
            found = finding.result()
            _register(client, OneBench(found))
            yield client, [target for target, _ in found.values()]


@contextmanager
def remote_client(address: str, certificates: Certificates) -> Iterator[Client]:
    """Yields a client of the scheduler at ``address``, whose workers ``autotune worker`` provides.

    Raises:
        UsageError: if no scheduler answers, the certificates do not fit, or there is no worker.
    """
    security = security_for(address, certificates)
    with _quiet():
        try:
            client = Client(address, security=security, timeout="10s")
        except OSError as error:
            raise _unreachable(address, error) from error
        with client:
            if not client.scheduler_info()["workers"]:
                raise UsageError(
                    f"{address} has no workers; on each host run: {command('autotune', 'worker', address)}"
                )
            _register(client, OneBench())
            yield client


def _register(client: Client, plugin: OneBench) -> None:
    """Gives every worker the plugin; if a worker dies meanwhile, its replacement gets it."""
    retried(lambda: client.register_plugin(plugin), (OSError,), MOST_STARTS - 1)


def _targets_of(devices: Sequence[str], compile_processes: int | None) -> dict[str, tuple[Target, int]]:
    targets = {name: find_device(name) for name in devices}
    return {name: (target, compile_processes or share_of_cores(target.kind)) for name, target in targets.items()}


def worker_spec(device: str, host: str, security: Security, compile_processes: int | None = None) -> dict[str, Any]:
    """Returns Dask's specification of the worker for a device of this machine; a Nanny restarts it when it dies.

    Args:
        device: a name for ``find_device``.
        host: the address on which worker and Nanny listen.
        security: their certificates.
        compile_processes: the number of compile processes, or None if the plugin will set it.
    """
    environment = {DEVICE_VARIABLE: device, SHARING: str(N_SHARING)}
    if compile_processes is not None:
        environment[COMPILE_PROCESSES] = str(compile_processes)
    options = {"nthreads": N_SHARING, "env": environment, "memory_limit": 0, "silence_logs": 40}
    options |= {"host": host, "security": security, **NO_PAGES}
    return {"cls": Nanny, "options": options}


def share_of_cores(kind: str) -> int:
    """Returns the cores for each device: one core per device stays free, the rest is divided among all devices.

    Unused devices count, too, so that other campaigns on this machine have cores for them.
    """
    n_devices = max(1, len(device_module(kind).identifiers()))
    return max(1, (n_cpus() - n_devices) // n_devices)


def _cluster(specs: Mapping[str, object], security: Security) -> SpecCluster:
    """Starts scheduler and workers. It tries again if a process is killed during its start, where Dask gives up."""
    options = {"host": LOOPBACK, "protocol": "tls://", "security": security, **NO_PAGES}
    scheduler = {"cls": Scheduler, "options": options}
    make = partial(SpecCluster, specs, scheduler=scheduler, security=security, silence_logs=50)
    try:
        return retried(make, (RuntimeError,), MOST_STARTS - 1)
    except RuntimeError as error:
        why = " ".join(str(error.__cause__ or error).split())
        raise UsageError(f"the worker processes failed to start {MOST_STARTS} times ({why})") from error


@contextmanager
def _quiet() -> Iterator[None]:
    with dask.config.set(CONFIG), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Creating scratch directories")  # autotune writes little to them
        yield


def serve(address: str, devices: Sequence[str], security: Security, compile_processes: int | None = None) -> None:
    """Runs worker processes for a scheduler elsewhere, one for each of ``devices``, until interrupted.

    They listen on the address of this host that reaches the scheduler.

    Raises:
        UsageError: for a missing device, if no scheduler answers at ``address``, or if the certificates do not fit.
    """
    for device in devices:
        find_device(device)

    async def run() -> None:
        host = get_ip(host_of(address))
        async with AsyncExitStack() as stack:
            for device in devices:
                n_processes = compile_processes or share_of_cores(device.partition(":")[0])
                options = worker_spec(device, host, security, n_processes)["options"]
                await stack.enter_async_context(Nanny(address, **options))
            await asyncio.Event().wait()

    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    with _quiet(), without_main():
        try:
            asyncio.run(run())
        except (OSError, RuntimeError) as error:
            cause = error.__cause__ if isinstance(error, RuntimeError) else error  # Dask's "Nanny failed to start"
            if not isinstance(cause, OSError | TimeoutError):
                raise
            raise _unreachable(address, cause) from error
        except KeyboardInterrupt:
            return


def _unreachable(address: str, error: OSError) -> UsageError:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__
    if cause is not None:
        why = one_line(str(cause.reason or cause)) if isinstance(cause, ssl.SSLError) else ""
        return UsageError(
            f"the scheduler at {address} and this side do not trust each other ({why}): both need certificates of one "
            "authority (docs/campaigns.md)"
        )
    certificates = ", with certificates of one authority on both sides" if address.startswith("tls:") else ""
    return UsageError(f"no scheduler answers at {address} ({error}); start one with `dask scheduler`{certificates}")
