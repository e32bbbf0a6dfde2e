"""Sizes that a question does not name: what they follow from, in which order, and what never changes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from autotune import Config, Kernel, Launch, Space, Tolerance, UsageError, array_in, array_out, baked, runtime
from autotune.core.problem import replaced
from autotune.devices import Target, cuda, find_device
from autotune.runtime.lookup import asked_problem
from autotune.runtime.wisdom import Wisdom
from autotune.source.registry import all_kernels, load_kernel
from autotune.sweep.request import problem_on

pytestmark = pytest.mark.quick

PFB, CHANNELISE, DDC, CORRELATE = (load_kernel(name) for name in ("pfb_fir", "channelise", "ddc", "correlate"))
HOST, GPU = find_device("host"), Target("cuda", "sm_90", cuda.of_architecture("sm_90"))


def test_what_does_not_contradict_is_as_it_was() -> None:
    """The default sizes stay, though a tuned problem of the same baked fields has others; so do records' names."""
    postproc = load_kernel("postproc")
    assert postproc.problem({"n_channels": 8192}) == replace(postproc.tuned[0], n_channels=8192)
    assert PFB.problem({"n_channels": 512}) == replace(PFB.tuned[0], n_channels=512)
    for kernel in all_kernels().values():
        assert kernel.problem() == kernel.tuned[0]
        for problem in (*kernel.tuned, *kernel.extra_problems):
            assert kernel.problem(vars(problem)) == problem
            if (small := replaced(problem, kernel.host_sizes)) is not None:
                assert problem_on(kernel, {}, HOST, base=problem) == small


def test_a_tuned_problem_goes_before_what_the_definition_computes() -> None:
    assert CHANNELISE.problem({"n_channels": 8192}) == CHANNELISE.tuned[1]
    assert CHANNELISE.problem({"n_channels": 32768}) == CHANNELISE.tuned[2]
    computed = CHANNELISE.problem({"n_channels": 4096})
    assert computed == CHANNELISE.problem_type(n_channels=4096, n_heaps=32), "as much memory as by default"
    more = CHANNELISE.problem({"taps": 24})
    assert (more.n_heaps, more.n_spectra, more.n_samples) == (128, 32768, more.n_needed)


def test_the_nearest_known_problem_of_the_same_fields_goes_first() -> None:
    fields = {"n_channels": 4096, "n_samples": 2**26 + 2**17}
    known = [PFB.problem({**fields, "n_spectra": n}) for n in (100, 4096, 2000)]
    known += [PFB.problem({"n_channels": 8192, "n_spectra": 4096, "n_samples": 2**27})]
    assert PFB.problem_with({"n_channels": 4096}, known=known) == known[1]
    short = PFB.problem_with({"n_channels": 4096, "n_samples": 2**20}, known=known)
    assert short.n_spectra == 100, "the others cannot be"
    assert PFB.problem_with({"n_channels": 1024}, known=known) == PFB.tuned[0]


def test_named_sizes_stay_and_bring_others_along() -> None:
    problem = CHANNELISE.problem({"n_heaps": 16})
    assert (problem.n_heaps, problem.n_spectra) == (16, 4096)
    assert PFB.problem({"n_samples": 2**20}).n_spectra == 256
    longer = DDC.problem({"taps": 2**26})
    assert (longer.taps, longer.n_samples) == (2**26, 2**26)
    assert problem_on(DDC, {"taps": 100_000}, HOST).n_samples == 2**17


def test_the_host_keeps_to_small_sizes() -> None:
    """Those of a tuned problem would be too much for it."""
    problem = problem_on(CHANNELISE, {"n_channels": 8192, "spectra_per_heap": 4}, HOST)
    assert (problem.n_heaps, problem.n_spectra) == (2, 8)
    for asked in ({"n_channels": 65536}, {"taps": 64}, {"n_channels": 32768, "taps": 32}):
        arrays = PFB.arrays(problem_on(PFB, asked, HOST)).values()
        assert sum(array.n_bytes for array in arrays) < 2**26


@pytest.mark.parametrize(
    ("kernel", "values", "message"),
    [
        (PFB, {"n_samples": 1000}, r"n_samples=1000 is too few"),
        (PFB, {"n_channels": 8192, "n_spectra": 4096, "n_samples": 9}, r"n_samples=9 is too few: n_spectra=4096 of"),
        (PFB, {"sample_bits": 17}, r"^pfb_fir: sample_bits=17 must be 2 to 16, or 64 for complex float32$"),
        (DDC, {"n_samples": 255}, r"the first needs taps=256 samples; give taps=128 besides$"),
        (CHANNELISE, {"n_heaps": 0}, r"n_heaps=0: each is at least 1$"),
        (CORRELATE, {"bits": 16, "count_lowest": True}, r"count_lowest=True is for integers, and bits=16 is floating"),
        (CHANNELISE, {"colour": 1, "taps": 99}, r"'colour' is not a field of channelise's problem"),
    ],
)
def test_what_contradicts_itself_is_told(kernel: Kernel[Any], values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kernel.problem(values)


@dataclass(frozen=True)
class Windows:
    """Windows of a stream. A problem of too few samples is not refused: it has an empty array."""

    length: int = baked(16, "samples of a window")
    n_samples: int = runtime(1000, "samples")


class Unchecked(Kernel[Windows]):
    space, arguments = Space(WGS=(32,)), ("sums", "samples")

    def arrays(self, problem: Windows) -> dict[str, Any]:
        n_out = max(0, problem.n_samples - problem.length + 1)
        return {"sums": array_out(np.float32, n_out), "samples": array_in(np.float32, problem.n_samples)}

    def launch(self, problem: Windows, config: Config) -> Launch:
        return Launch((1, 1, 1), (config.WGS, 1, 1))

    def inputs(self, problem: Windows, rng: np.random.Generator) -> dict[str, Any]:
        return {}

    def reference(self, problem: Windows, **inputs: Any) -> dict[str, np.ndarray]:
        return {}

    def tolerance(self, problem: Windows) -> Tolerance:
        return Tolerance()


def test_sizes_that_only_make_an_array_empty_follow_too() -> None:
    kernel = Unchecked()
    assert problem_on(kernel, {"length": 3000}, GPU) == Windows(3000, 4000)
    with pytest.raises(UsageError, match=r"length=3000, n_samples=1000 makes the array sums \[0\]"):
        problem_on(kernel, {"length": 3000, "n_samples": 1000}, GPU)
    assert kernel.problem({"length": 3000}) == Windows(3000), "a launch may have nothing to compute"


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 4])
@pytest.mark.parametrize("door", ["lookup", "command"])
def test_sizes_that_a_question_leaves_out_follow_from_those_that_it_names(factor: float, door: str) -> None:
    """Upwards as downwards; where it names the default sizes, the default problem is meant."""

    def asked(kernel: Any, **sizes: int) -> Any:
        return asked_problem(Wisdom((), ()), kernel, sizes) if door == "lookup" else problem_on(kernel, sizes, GPU)

    n = int(32768 * factor)
    assert asked(PFB, n_spectra=n) == PFB.problem_type(n_spectra=n), "the fewest samples, as its text says"
    assert asked(PFB, n_spectra=n, n_samples=2**29).n_samples == 2**29
    assert asked(CHANNELISE, n_heaps=n // 256) == CHANNELISE.problem_type(n_heaps=n // 256), "all of their spectra"
    assert asked(CORRELATE, n_batches=n) == replace(CORRELATE.tuned[0], n_batches=n)
    assert asked(PFB, n_spectra=32768) == PFB.tuned[0]
