"""One baked field is a question, by every door: what is named stays, and sizes that are not named follow from it."""

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import autotune
from autotune import Array, Config, Kernel, UsageError
from autotune.campaign.campaign_plan import read_plan
from autotune.core.problem import baked_fields, baked_values, distance, named_fields, runtime_fields
from autotune.devices import Target, cuda, find_device
from autotune.emit.writer import write_package
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.records.folder import find_sweeps
from autotune.runtime.launcher import TunedKernel
from autotune.runtime.lookup import report_choice
from autotune.runtime.wisdom import Entry, Evidence, Fallback, Wisdom
from autotune.source.registry import all_kernels, load_kernel
from autotune.sweep.request import problem_on

from .commands import typed
from .fake_gpu import import_package

SEED = 20261125
DRAWS = 3  # values of each field
KERNELS = all_kernels()
H200 = Target("cuda", "sm_90", cuda.of_architecture("sm_90"))
HOST = find_device("host")
TARGETS = {"cuda": H200, "host": HOST}
OTHER_H100 = "NVIDIA H100 PCIe"  # of an architecture that is recorded
RECORDS = Path(__file__).parents[1] / "results"
Draw = Callable[[random.Random], Any]


def one_of(*values: Any) -> Draw:
    return lambda rng: rng.choice(values)


def octaves(low: int, high: int) -> Draw:
    """Any size of so many bits."""
    return lambda rng: round(2 ** rng.uniform(low, high))


def power(low: int, high: int) -> Draw:
    return lambda rng: 2 ** rng.randint(low, high)


SAMPLE_BITS = one_of(*range(2, 17))
SAMPLES = one_of(*range(2, 17), 64)
HEAPS: dict[str, Draw] = {
    **{"n_pols": one_of(1), "bits": one_of(4), "layout": one_of("blocks"), "times_per_block": power(0, 6)},
    "spectra_per_heap": octaves(0, 14),
}
LEGAL: dict[str, dict[str, Draw]] = {  # what the page of each kernel says that a baked field may be
    "accumulate": {"n_accumulators": octaves(0, 10)},
    "beamform": {  # nibbles need another field
        **{"n_beams": octaves(0, 12), "n_times": lambda rng: 4 * rng.randint(1, 512), "bits": one_of(4)},
        **{"mixes": one_of(True), "dither": one_of(True), "precision": one_of("half", "planes")},
    },
    "channelise": {
        **{"taps": one_of(*range(1, 65)), "n_channels": power(6, 16), "sample_bits": SAMPLES, **HEAPS},
        "precision": one_of("half"),
    },
    "correlate": {
        **{"bits": one_of(4, 16), "layout": one_of("batches"), "n_receivers": one_of(*range(1, 1025))},
        **{"overwrites": one_of(True), "count_lowest": one_of(True)},  # n_times needs another field: below
    },
    "ddc": {"taps": octaves(0, 12), "decimation": one_of(*range(1, 65)), "sample_bits": SAMPLE_BITS},
    "dequantize": {
        **{"out_type": one_of("float16", "bfloat16"), "scale_offset": one_of(True), "missing": one_of(True)},
    },
    "pfb_fir": {"taps": one_of(*range(1, 65)), "n_channels": octaves(0, 20), "sample_bits": SAMPLES},
    "postproc": {"n_channels": octaves(0, 24), "nyquist": one_of(0), **HEAPS},
}


def questions(kernel: str) -> Iterator[dict[str, Any]]:
    """Each baked field alone, with values that are drawn."""
    rng = random.Random(f"{SEED} {kernel}")
    for name, draw in LEGAL[kernel].items():
        yield from ({name: value} for value in dict.fromkeys(draw(rng) for _ in range(DRAWS)))


@cache
def recorded() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The kernel, the baked and the runtime fields of each recorded sweep."""
    abouts = [folder.about() for folder in find_sweeps(RECORDS)]
    return [(about.kernel, dict(about.baked_values), dict(about.runtime_values)) for about in abouts]


def named(problem: Any, asked: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in asked}


class Uncompiled(HostBackend):
    """Gives launchers that only know what they are of."""

    def launcher(self, kernel: Any, problem: Any, config: Config, source: str | None = None) -> Any:
        return SimpleNamespace(config=config)


def test_every_baked_field_is_asked() -> None:
    fields = {name: set(baked_fields(kernel.problem_type)) for name, kernel in KERNELS.items()}
    for kernel, name in (
        ("correlate", "n_times"),
        ("channelise", "nibbles"),
        ("postproc", "nibbles"),
        ("beamform", "nibbles"),
    ):
        fields[kernel].remove(name)  # it needs another field: below
    assert fields == {name: set(draws) for name, draws in LEGAL.items()}, "say in LEGAL what a new field may be"


# ---------------------------------------------------------------------- one field
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_baked_field_is_a_problem(kernel: str) -> None:
    """It is one for sweeps, verification and campaigns."""
    definition = KERNELS[kernel]
    for asked in questions(kernel):
        for kind, target in TARGETS.items():
            problem = problem_on(definition, asked, target)
            assert named(problem, asked) == asked, (asked, kind)
        assert named(definition.problem(asked), asked) == asked


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_baked_field_renders(
    kernel: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked in questions(kernel):
        (text,) = (f"{name}={value}" for name, value in asked.items())
        typed(["render", "--kernel", kernel, "--problem", text], monkeypatch)
        first = capsys.readouterr().out.split("\n")[0]
        assert first.startswith(f"// {kernel}[") and text in first.replace("|", ",").replace("[", ",").split(",")


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_baked_field_is_a_launcher_of_engines(kernel: str) -> None:
    kernels = Kernels(Uncompiled(), lambda line: None)
    for asked in questions(kernel):
        assert named(kernels.launcher(kernel, **asked)[1], asked) == asked


def test_what_a_field_needs_besides_is_told() -> None:
    """A batch of 32 samples is a block of 4 bits, or no block: the definition does not know which is meant."""
    kernel = KERNELS["correlate"]
    for n_times, needed in ((32, "bits=4 or layout=batches"), (4, "layout=batches"), (1024, "layout=batches")):
        for target in TARGETS.values():
            with pytest.raises(UsageError, match=f"n_times={n_times} must be .*; give {needed} besides$"):
                problem_on(kernel, {"n_times": n_times}, target)
            asked = {"n_times": n_times, "layout": "batches"}
            assert named(problem_on(kernel, asked, target), asked) == asked
    for name in ("beamform", "channelise", "postproc"):
        with pytest.raises(UsageError, match=r"nibbles=real_high is for bits=4; .*; give bits=4 besides$"):
            KERNELS[name].problem({"nibbles": "real_high"})
    assert kernel.problem({"bits": 4}).n_times == 32 and kernel.problem({"bits": 16}).n_times == 8
    assert kernel.problem({"bits": 4, "layout": "batches"}).n_times == 16, "nothing contradicts the default"


# ---------------------------------------------------------------------- recorded fields
def test_recorded_fields_are_a_problem_however_few_are_named() -> None:
    """All of them, or those that are not the default's."""
    assert len(recorded()) > 80
    for kernel, baked, _ in recorded():
        definition = KERNELS[kernel]
        usual = baked_values(definition.tuned[0])
        for asked in (baked, {name: value for name, value in baked.items() if value != usual[name]}):
            for target in TARGETS.values():
                assert baked_values(problem_on(definition, asked, target)) == baked


@cache
def wisdom() -> Wisdom:
    """What a package of all records knows, without its sources: to compile them takes a minute."""
    entries, fallbacks = [], []
    for folder in find_sweeps(RECORDS):
        about, outcome = folder.about(), folder.outcome()
        default = Config(about.default)
        inputs = tuple(name for name, array in arrays_of(about.kernel, about.problem).items() if array.read)
        fallbacks.append(Fallback(about.kernel, about.baked_values, default, "0" * 12, inputs))
        if outcome is not None:
            config, evidence = outcome.winner.config, Evidence(outcome.winner.median_s)
            sizes = about.runtime_values
            entries.append(Entry(about.kernel, about.device, about.baked_values, sizes, config, "0" * 12, evidence))
    return Wisdom(tuple(entries), tuple(fallbacks))


def arrays_of(kernel: str, problem: Mapping[str, Any]) -> dict[str, Array]:
    return KERNELS[kernel].arrays(KERNELS[kernel].problem(problem))


def apart(sizes: Mapping[str, Any], usual: Mapping[str, Any], kernel: str, baked: Mapping[str, Any]) -> float:
    """The ratio of the bytes, or a larger one of a size."""
    works = [KERNELS[kernel].work(KERNELS[kernel].problem({**baked, **each})).bytes for each in (sizes, usual)]
    pairs = [works, *((max(1, sizes[name]), max(1, usual[name])) for name in usual)]
    return max(abs(log(one / other)) for one, other in pairs)


def tuned(kernel: str, fields: Mapping[str, Any], device: str) -> TunedKernel:
    """What a package's function returns."""
    return TunedKernel(KERNELS[kernel], wisdom(), str, fields, device, logging.getLogger("questions"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_package_answers_for_all_fields_that_it_knows(kernel: str) -> None:
    """Its sizes are the default ones, or where these cannot be the nearest recorded ones."""
    usual = KERNELS[kernel].tuned[0]
    sizes = {name: getattr(usual, name) for name in runtime_fields(type(usual))}
    for baked in [baked for name, baked, _ in recorded() if name == kernel]:
        known = [entry for entry in wisdom().entries if (entry.kernel, dict(entry.baked)) == (kernel, baked)]
        if not known:  # its sweep was interrupted, and has no winner yet
            continue
        for device in ("NVIDIA H200", "NVIDIA H100 80GB HBM3", OTHER_H100):
            own = [entry for entry in known if entry.device.name == device]
            found = tuned(kernel, baked, device)
            meant = {name: getattr(found.problem, name) for name in sizes}
            nearest = min((own or known), key=lambda entry: apart(entry.runtime, meant, kernel, baked)).runtime
            assert (found.choice.tier, found.choice.runtime) == ("exact" if own else "architecture", None)
            assert all(f"{name}={size}" in found.choice.why for name, size in nearest.items())
            asked = min(known, key=lambda entry: distance(entry.runtime, sizes)).runtime
            assert named_fields(found.problem) in ({**baked, **sizes}, {**baked, **asked})


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_package_that_does_not_know_a_field_says_so(kernel: str) -> None:
    """It tells that, and never a contradiction among sizes that nobody named."""
    known = [baked for name, baked, _ in recorded() if name == kernel]
    for asked in questions(kernel):
        if baked_values(KERNELS[kernel].problem(asked)) not in known:
            with pytest.raises(UsageError, match=f"^{kernel} was not tuned for "):
                tuned(kernel, asked, "NVIDIA H200")


def test_an_emitted_package_and_lookup_answer_by_the_same_code(tmp_path: Path) -> None:
    folder = write_package([RECORDS / "NVIDIA_H200" / "pfb_fir"], tmp_path / "tuned_filters")
    package = import_package(folder, "questions_filters")
    fields = {"taps": 16, "n_channels": 8192, "sample_bits": 10}
    assert package.pfb_fir(**fields, device="NVIDIA H200").problem.n_spectra == 4096
    assert report_choice(folder, "pfb_fir", fields, "NVIDIA H200")["tier"] == "exact"
    assert report_choice(folder, "pfb_fir", {**fields, "n_spectra": 3500}, "NVIDIA H200")["tier"] == "nearest"
    for n_spectra in (1999, 99):
        choice = report_choice(folder, "pfb_fir", {**fields, "n_spectra": n_spectra}, "NVIDIA H200")
        assert choice["bound"] > 0 and choice["tier"] in ("nearest", "predicted", "default")


# ---------------------------------------------------------------------- launches and sweeps
@pytest.mark.parametrize(
    ("kernel", "asked"),
    [("pfb_fir", {"n_channels": 1600}), ("correlate", {"bits": 4}), ("accumulate", {"n_accumulators": 3})],
)
def test_one_launch_takes_a_field_and_the_inputs(kernel: str, asked: dict[str, Any]) -> None:
    definition: Kernel[Any] = load_kernel(kernel)
    problem = problem_on(definition, asked, HOST)
    inputs = definition.inputs(problem, np.random.default_rng(1))
    wanted = definition.reference(problem, **inputs)
    found = autotune.run(kernel, problem=asked, inputs=inputs, device="host")
    for name, array in wanted.items():
        given = found[name]
        if name == "filtered":  # the last spectrum is left to the start offsets
            assert given.shape[1] == array.shape[1] - 1
            array = array[:, :-1]
        elif name == "total_power":
            continue  # of one spectrum less
        np.testing.assert_allclose(given, array, rtol=1e-4, atol=1e-4 * np.abs(array).max())


def test_a_sweep_and_a_campaign_take_a_field(tmp_path: Path) -> None:
    asked = {"bits": 4, "n_receivers": 3}
    sweep = autotune.sweep("correlate", problem=asked, device="simulated:0", trials=6, finalists=1, results=tmp_path)
    assert "bits=4,layout=blocks,n_receivers=3,n_times=32," in sweep.path.name and sweep.best is not None
    path = tmp_path / "many.toml"
    path.write_text('kernel = "channelise"\n[grid]\nspectra_per_heap = [1, 8, 100]\n')
    problems = read_plan(path, tmp_path).problems(H200)
    assert sorted(problem.spectra_per_heap for problem in problems) == [1, 8, 100]
