"""A GPU on paper: a launch takes as long as its waves of blocks, and nothing is computed.

All functions are those of `DeviceModule` in autotune/devices/base.py, whose docstrings say what each must do. A real
device compiles in `compile`, and its session owns the hardware. Here nothing runs, so nothing can be wrong: buffers,
which would hold the data, are those of autotune's own device of this sort, `simulated`.
"""

from math import ceil, prod

from autotune import Device
from autotune.core.device import Ceilings
from autotune.core.digest import digest
from autotune.devices import simulated
from autotune.devices.base import Binary, Defaults, Finding, LaunchRun, Sample
from autotune.system.cache import cache_dir

kind, clock, builds = "paper", "paper time", ("text",)
defaults = Defaults(trials=30, checked_launches=1, has_full_sizes=False)
MULTIPROCESSORS, THREADS = 100, 2048  # threads that each of them holds
BEGIN_S, WAVE_S = 2e-6, 5e-7  # the fixed time of a launch, and of each wave
BYTES_PER_S = 1e12


def identifiers():
    return ["paper:0"]


def describe(identifier):
    """Returns the limits for constraints."""
    return Device(name="A GPU on paper", kind=kind, arch="paper", n_multiprocessors=MULTIPROCESSORS)


def lock_name(identifier):
    return identifier.replace(":", "-")


def compiler(device):
    return "paper 1"  # a different text makes all recorded trials stale


def compile(variant, device, builds=None):
    """Returns a file of the source, as a compiler would return its machine code."""
    path = cache_dir(kind) / f"{variant.key}.cu"
    path.write_text(variant.source)
    return Binary(variant.name, variant.kernel, variant.key, digest(variant.source), {"text": path})


def compiled_anew(variant, device):
    return compile(variant, device).code


class Function:
    """Stands for a loaded kernel."""

    def launch(self, launch, arguments, *, seed=0):
        """Does nothing."""

    def samples(self, launch, arguments, n, *, cold):
        """Returns the times of n launches: waves of blocks, each with its share of the arrays to move."""
        at_once = MULTIPROCESSORS * max(1, THREADS // launch.n_threads)
        n_blocks, n_bytes = prod(launch.grid), sum(argument.data.nbytes for argument in arguments)
        wave_s = WAVE_S + at_once * n_bytes / n_blocks / BYTES_PER_S  # also for the last wave, if it is not full
        return [Sample(BEGIN_S + ceil(n_blocks / at_once) * wave_s)] * n

    def stream(self, launch, arguments, seconds):
        times = [sample.seconds for sample in self.samples(launch, arguments, 4, cold=False)]
        return LaunchRun(times, len(times))


def open(identifier):
    """Opens the device, in a process of its own that may die."""
    session = simulated.open("simulated:0")
    session.device, session.timed_build, session.check_builds = describe(identifier), "text", builds
    session.load = lambda binary, build: Function()
    session.ceilings = lambda: Ceilings(BYTES_PER_S, flops_per_s=1e13)  # the roofline; a real device measures it
    return session


def findings():
    """Returns the lines of `autotune doctor`."""
    return [Finding("paper", True, "a formula of launch geometry")]
