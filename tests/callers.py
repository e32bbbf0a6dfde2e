"""python -m tests.callers --seed S: many threads call at random, and each must get its own outputs.

They call ``autotune.run``, a package and its prepared kernels (on a GPU that computes with NumPy, or the real one), an
F- and an X-engine, and sweeps; in 2, 4 and 8 threads, and in those of Dask's threaded scheduler.
"""

import argparse
import ctypes
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import dask.threaded
import numpy as np
import pytest

import autotune
from autotune.core.problem import named_fields
from autotune.emit.writer import write_package
from autotune.source.registry import load_kernel

from .engines.service.air import Air
from .fake_gpu import Launched, array, import_package, install
from .recorded import DEFAULT, H200, KERNELS, WIDE, record

DASK = 0  # stands for Dask's scheduler in place of a number of threads
CROWDS = (2, 4, 8, DASK)
N_DASK = 4
N_TIME, MOST_CHANNELS = 100, 64
RUN, PACKAGE, PREPARED, ENGINE, SWEEP = KINDS = "run", "package", "prepared", "engine", "sweep"
WEIGHTS = {RUN: 40, PACKAGE: 200, PREPARED: 200, ENGINE: 2, SWEEP: 1}

Call = Callable[[Random], bool]  # returns whether the outputs are those of its own inputs


class Detecting(list[Launched]):
    """The launches of a GPU that computes the example kernel, and keeps none."""

    def append(self, launched: Launched) -> None:
        power, voltage, n_chan = launched.arguments
        _memory(power)[: int(n_chan)] = _power(_memory(voltage))


def _power(voltage: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(voltage.astype(np.complex128)) ** 2).sum(0).astype(np.float32))


def _memory(fake: Any) -> np.ndarray:
    """Returns the data of an array on the GPU that is not there."""
    memory = (ctypes.c_char * fake.nbytes).from_address(fake.data.ptr)
    return np.frombuffer(memory, fake.dtype).reshape(fake.shape)


def _generator(random: Random) -> np.random.Generator:
    return np.random.default_rng(random.getrandbits(32))


def run_call(device: str) -> Call:
    """Returns a call of ``autotune.run``, compared with the kernel's reference."""

    def call(random: Random) -> bool:
        name = random.choice(("dequantize", "accumulate"))
        kernel = load_kernel(name)
        fields = {
            "dequantize": {"n_beams": 1, "n_freqs": random.randint(1, 3), "n_times": 256},
            "accumulate": {"n_accumulators": 2, "n_channels": random.randint(1, 3), "n_receivers": 3},
        }[name]
        problem = kernel.problem(fields)
        inputs = kernel.inputs(problem, _generator(random))
        found = autotune.run(name, inputs=inputs, problem=named_fields(problem), device=device)
        expected = kernel.reference(problem, **{each: deepcopy(value) for each, value in inputs.items()})
        return all(np.allclose(found[each], expected[each], 1e-3, 1e-3) for each in expected)

    return call


@contextmanager
def package_calls(folder: Path) -> Iterator[dict[str, Call]]:
    """Yields a call of a package and one of its prepared kernels, on a GPU that computes with NumPy."""
    record(folder / "results", H200, {DEFAULT: 30.0, WIDE: 20.0}, n_chan=1000)
    package = import_package(
        write_package([folder / "results"], folder / "tuned", kernels=KERNELS), "tuned_for_callers"
    )
    with pytest.MonkeyPatch.context() as patch:
        install(patch, package, H200).launched = Detecting()
        tuned = package.detect(n_time=N_TIME)
        prepared = tuned.prepare(n_chan=MOST_CHANNELS)

        def voltages(random: Random) -> np.ndarray:
            data = _generator(random).normal(size=(N_TIME, 2 * random.randint(1, MOST_CHANNELS))).astype(np.float32)
            return data.view(np.complex64)

        def call(random: Random) -> bool:
            data = voltages(random)
            power = tuned(array(data))  # its memory lives as long as it
            return np.array_equal(_memory(power), _power(data))

        def prepared_call(random: Random) -> bool:
            data = voltages(random)
            power = array(np.zeros(data.shape[1], np.float32))
            prepared(voltage=array(data), power=power, sizes={"n_chan": data.shape[1]})
            return np.array_equal(_memory(power), _power(data))

        yield {PACKAGE: call, PREPARED: prepared_call}


@contextmanager
def real_package_calls(folder: Path, records: Path) -> Iterator[dict[str, Call]]:
    """Yields the same of ``dequantize`` as recorded, on the current GPU."""
    import cupy

    package = import_package(write_package([records], folder / "tuned"), "tuned_for_callers")
    kernel = load_kernel("dequantize")
    usual = kernel.tuned[0]
    most = kernel.problem({"n_beams": 4, "n_freqs": 8}, base=usual)
    tuned = package.dequantize()
    prepared = tuned.prepare(n_beams=4, n_freqs=8)

    def drawn(random: Random) -> tuple[Any, dict[str, Any], np.ndarray]:
        sizes = {"n_beams": random.randint(1, 4), "n_freqs": random.randint(1, 8)}
        problem = kernel.problem(sizes, base=most)
        inputs = kernel.inputs(problem, _generator(random))
        return problem, inputs, kernel.reference(problem, **inputs)["values"]

    def on_gpu(inputs: dict[str, Any]) -> dict[str, Any]:
        return {name: cupy.asarray(v) if isinstance(v, np.ndarray) else v for name, v in inputs.items()}

    def call(random: Random) -> bool:
        _, inputs, expected = drawn(random)
        return np.allclose(tuned(**on_gpu(inputs)).get(), expected, 1e-3, 1e-3)

    def prepared_call(random: Random) -> bool:
        problem, inputs, expected = drawn(random)
        spec = kernel.arrays(problem)["values"]
        values = cupy.zeros(spec.shape, spec.dtype)
        prepared(values=values, sizes={"n_beams": problem.n_beams, "n_freqs": problem.n_freqs}, **on_gpu(inputs))
        return np.allclose(values.get(), expected, 1e-3, 1e-3)

    yield {PACKAGE: call, PREPARED: prepared_call}


def engine_call(folder: Path) -> Call:
    """Returns a run of engines, compared with a run of the same samples when nobody else called."""
    n_samples = 1 << 17
    firsts = [number << 20 for number in range(3)]

    def correlated(first: int) -> Any:
        own = Path(tempfile.mkdtemp(dir=folder))
        return Air(own, n_antennas=2).offline(n_samples, first)

    expected = {first: correlated(first).visibilities for first in firsts}

    def call(random: Random) -> bool:
        first = random.choice(firsts)
        return np.array_equal(correlated(first).visibilities, expected[first])

    return call


def sweep_call(folder: Path, device: str) -> Call:
    """Returns a sweep, whose trials must be those of its own problem."""

    def call(random: Random) -> bool:
        problem = {"n_beams": 1, "n_freqs": random.randint(1, 1000), "n_times": 256}
        results = Path(tempfile.mkdtemp(dir=folder))
        done = autotune.sweep("dequantize", problem=problem, device=device, results=results, trials=2)
        return f"n_freqs={problem['n_freqs']}" in done.path.name and len(done.trials) == 2

    return call


class Crowd:
    """Threads that make calls at random. ``made``: their numbers by kind; ``wrong``: what went wrong, in words."""

    def __init__(self, calls: dict[str, Call], seed: int) -> None:
        self._calls, self._seed = calls, seed
        self.made = Counter[str]()
        self.wrong = Counter[str]()

    def calls_for(self, seconds: float, n: int, patience_s: float = 120.0) -> None:
        """Let ``n`` threads call for so many seconds; DASK: those of its scheduler."""
        end = time.monotonic() + seconds
        if n == DASK:
            tasks = {f"thread {i}": (partial(self._serve, i, end),) for i in range(N_DASK)}
            dask.threaded.get(tasks, list(tasks), num_workers=N_DASK)
            return
        threads = [threading.Thread(target=self._serve, args=(number, end), daemon=True) for number in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + patience_s)
            if thread.is_alive():
                self.wrong["a thread does not return"] += 1

    def _serve(self, number: int, end: float) -> None:
        random = Random(f"{self._seed} {number} {end}")
        kinds = list(self._calls)
        while time.monotonic() < end:
            kind = random.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
            self.made[kind] += 1
            try:
                if not self._calls[kind](random):
                    self.wrong[f"{kind}: another's outputs"] += 1
            except Exception as error:
                self.wrong[f"{kind}: {type(error).__name__}: {error}"[:300]] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=lambda text: int(text, 16), default=0, help="hexadecimal digits")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--records", type=Path, help="records of dequantize on this GPU; with a real GPU")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="autotune-callers-") as name:
        folder = Path(name)
        packages = real_package_calls(folder, given.records) if given.records else package_calls(folder)
        with packages as calls:
            calls[RUN], calls[ENGINE] = run_call(given.device), engine_call(folder)
            calls[SWEEP] = sweep_call(folder, given.device)
            crowd = Crowd(calls, given.seed)
            for n in CROWDS:
                crowd.calls_for(given.seconds / len(CROWDS), n)
                print(f"{n or 'Dask'} threads: {dict(crowd.made)}; wrong {dict(crowd.wrong)}", flush=True)
    return int(bool(crowd.wrong))


if __name__ == "__main__":
    sys.exit(main())
