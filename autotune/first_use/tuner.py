"""Serves the first use of one problem: candidates are compiled side by side, and meet in a contest on the device.

Request and answer are plain data (``runtime.tune_once``), since a package that asks has classes of its own.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from ..core.definition import AnyKernel, Launch
from ..core.device import Device
from ..core.errors import Status, TrialFailure, UsageError, one_line
from ..devices import Target, find_device
from ..devices.base import Binary
from ..rendering.render import Variant, render
from ..runtime.tune_once import REQUEST_FORMAT, TellLine
from ..source.registry import load_kernel
from ..system.cache import scratch_dir
from ..system.installation import VERSION
from ..system.lock import device_lock
from ..system.processes import Died, n_cpus
from ..trial.case import bytes_of
from ..trial.compile import CompilePool, Pending
from ..trial.stations import check_limits
from ..trial.worker import Job, Worker
from .contest import REFERENCES_S, START_S, Contest, Entrant, EntrantEnd, get_ready

COMPILE_S = 30.0  # deadline of each compile
INPUTS_S = 10.0  # time that the inputs may take after the compiles
LITTLE_FLOPS, LITTLE_BYTES = 1e8, 2e7  # operations and arrays of a reference that NumPy makes while compilers work
CONTEXT_BYTES = 700 << 20  # a CUDA context with its modules
OTHERS = 1  # number of the inputs: those of a sweep come with parts of a reference, which may take NumPy seconds


def tune_first(
    request: Mapping[str, Any], tell: TellLine, clock: Callable[[], float] = time.monotonic
) -> dict[str, Any]:
    """Returns the answer to a request: how each candidate ended, and which one won; or ``refused``, one line.

    ``tell`` takes lines for people. What a candidate does wrong is part of the answer, not an exception.
    """
    began = time.monotonic()
    try:
        contest = _contest(request, tell, clock)
    except (UsageError, TrialFailure, OSError, MemoryError, Died) as error:
        return {"refused": one_line(str(error)) or type(error).__name__}
    winner = contest.winner
    return {
        "attempts": [_told(*each) for each in zip(contest.ends, contest.entrants, strict=True)],
        "winner": winner,
        "checked": [] if winner is None else list(contest.ends[winner].checked),
        "why": contest.why,
        "is_final": contest.is_final,
        "took_s": time.monotonic() - began,
    }


def _contest(request: Mapping[str, Any], tell: TellLine, clock: Callable[[], float]) -> Contest:
    """Returns the contest after its end. Raises UsageError for a request that cannot be served."""
    if request["format"] != REQUEST_FORMAT:
        raise UsageError(f"this is autotune {VERSION}, and the package was written by another version: emit it again")
    kernel = load_kernel(request["reference"])
    problem = kernel.problem(request["problem"])
    target = find_device(request["identifier"])
    variants = [_variant(kernel, problem, one) for one in request["candidates"]]
    launches = [kernel.launch(problem, variant.config) for variant in variants]
    room = check_room(kernel, problem, target.device, request["free_bytes"])
    n_processes = min(len(variants) + 1, n_cpus())
    reference, fields, builds = request["reference"], dict(request["problem"]), target.module.builds[-1:]
    is_little = kernel.work(problem).flops <= LITTLE_FLOPS and bytes_of(kernel.arrays(problem)) <= LITTLE_BYTES
    with (
        ThreadPoolExecutor(1) as thread,
        scratch_dir() as folder,
        device_lock(target.module.lock_name(target.identifier), tell, request["wait_s"]),
        CompilePool(target, n_processes, COMPILE_S) as pool,
        Worker(target, tries=1) as worker,
    ):
        asked = reference, fields, [variant.config for variant in variants], REFERENCES_S
        ready = thread.submit(worker.call, get_ready, *asked, deadline_s=START_S)
        inputs = pool.prepare(reference, fields, folder / "case", is_little, number=OTHERS)
        compiles = [pool.submit(variant, builds) for variant in variants]
        job = partial(Job, reference, fields, case=folder / "case")
        entrants = [_entrant(target, room, job, *each) for each in zip(variants, compiles, launches, strict=True)]
        _wait_for(inputs)
        wait([ready])
        contest = Contest(
            kernel=kernel,
            problem=problem,
            reference=reference,
            fields=fields,
            default=kernel.default_config(problem, target.device),
            entrants=entrants,
            device=worker,
            builds=builds,
            has_reference=is_little,
            seconds=request["seconds"],
            clock=clock,
            makes_references=ready.exception() is None,
        )
        contest.run()
    return contest


def check_room(kernel: AnyKernel, problem: Any, device: Device, free_bytes: int | None) -> float:
    """Checks that the device has room for a process of its own with the problem's arrays.

    Returns the bytes that are left for a launch's workspace.

    Raises:
        UsageError: when more bytes are needed than ``free_bytes``; one line says both.
    """
    arrays = kernel.arrays(problem)
    outputs = sum(array.n_bytes for array in arrays.values() if array.is_compared)
    needed = 2 * (bytes_of(arrays) + outputs)  # outputs of one config, while another one runs, and both as references
    if device.kind == "cuda":
        needed += CONTEXT_BYTES + 2 * device.l2_bytes
    free = inf if free_bytes is None else free_bytes
    if needed > free:
        raise UsageError(
            f"a process that tries its configs needs {needed / 1e9:.3g} GB of memory on {device.name}, of which "
            f"{free / 1e9:.3g} GB are free"
        )
    return free - needed


def _variant(kernel: AnyKernel, problem: Any, candidate: Mapping[str, Any]) -> Variant:
    """Returns a candidate's variant, which compiles from its plain source: the caller compiles the same one.

    Raises:
        UsageError: if it is not the caller's source.
    """
    try:
        variant = render(kernel, problem, kernel.space.parse(candidate["config"]))
    except TrialFailure as failure:
        raise UsageError(f"{kernel.name} cannot be rendered: {failure.message}") from failure
    if variant.key != candidate["source_key"]:
        raise UsageError(
            f"the autotune that is installed here, {VERSION}, renders another source of {kernel.name} than the package "
            "does: emit it again with this one"
        )
    return replace(variant, numbered=variant.source)


def _entrant(
    target: Target, room: float, job: Callable[..., Job], variant: Variant, compiling: "Pending[Binary]", launch: Launch
) -> Entrant:
    """Waits for a compile, and returns the candidate, ready to run or with its failure."""
    try:
        binary = compiling.result()
        check_limits(binary, launch, target.device)
        if launch.workspace_bytes > room:
            why = f"its workspace of {launch.workspace_bytes / 1e9:.3g} GB does not fit into {room / 1e9:.3g} GB"
            raise TrialFailure(Status.RESOURCES, why)
    except TrialFailure as failure:
        return Entrant(variant.config, failure)
    shared_bytes = launch.shared_bytes + (binary.shared_bytes or 0)
    return Entrant(variant.config, job(variant.config, binary), binary.registers, shared_bytes)


def _wait_for(inputs: "Future[None]") -> None:
    """Waits for the inputs at the problem's own sizes. Raises UsageError if they take too long."""
    try:
        inputs.result(INPUTS_S)
    except TimeoutError as error:
        raise UsageError(
            f"NumPy needs more than {INPUTS_S:g} s for inputs of these sizes, after the compiles (a sweep waits)"
        ) from error


def _told(end: EntrantEnd, entrant: Entrant) -> dict[str, Any]:
    """Returns how a candidate ended, as plain data."""
    found = end.measurement
    return {
        "status": str(end.status),
        "message": end.message,
        "median_s": found and found.median_s,
        "q1_s": found and found.q1_s,
        "q3_s": found and found.q3_s,
        "n_samples": len(found.samples_s) if found else 0,
        "registers": entrant.registers,
    }
