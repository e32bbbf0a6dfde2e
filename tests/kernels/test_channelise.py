"""channelise: the definition against its formula, variants of every parameter value against it, and mutants."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from autotune.kernels.channelise import Channelise
from autotune.kernels.channelise.geometry import Geometry
from autotune.kernels.pfb_fir import PfbFir
from autotune.kernels.postproc import Postproc

from autotune import Config, UsageError
from autotune.devices import Target, find_device
from autotune.devices.cuda import of_architecture

from .common import check, check_mutant, first_is_quick
from .goldens import check_golden, write_goldens

KERNEL = Channelise()
BOTH: dict[str, Any] = dict(
    SPECTRA=4, POLS="together", THREADS=128, MIN_BLOCKS=1, FIR_SPECTRA=4, FIR_TAPS=8, POST_SPECTRA=4,
    UNPACKING="in_place",
)  # fmt: skip
ONE = BOTH | dict(ALGORITHM="one", SAMPLES="when_read", TWIDDLES="global")
TWO = BOTH | dict(
    ALGORITHM="two", COLUMN_POINTS=2, COLUMNS=32, COLUMN_THREADS=128, COLUMN_BLOCKS=1, ROW_SPECTRA=4,
    BETWEEN="float32",
)  # fmt: skip
SMALL: dict[str, Any] = dict(taps=4, n_channels=64, spectra_per_heap=16, n_heaps=2, n_spectra=0, n_samples=0)
PAIRED = dict(
    SPECTRA=8, FIR_SPECTRA=8, POST_SPECTRA=8, POLS="in_turn", KEPT="registers"
)  # with 256 channels, 128 threads
HIGH: dict[str, Any] = dict(sample_bits=8, bits=4, nibbles="real_high")
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (dict(n_channels=256), TWO | dict(COLUMN_POINTS=4, COLUMNS=64, UNPACKING="shifted")),
    (
        dict(n_channels=128, taps=6, spectra_per_heap=70, n_heaps=1),
        TWO | dict(SPECTRA=32, FIR_SPECTRA=32, COLUMNS=64),  # more spectra than sums at once
    ),
    # Lanes store runs together; heaps end within a part.
    (dict(n_channels=256, sample_bits=9, spectra_per_heap=21), ONE | PAIRED),
    (
        dict(n_channels=256, sample_bits=7, layout="blocks", times_per_block=8),
        ONE | PAIRED | dict(KEPT="shared", MIN_BLOCKS=3, TWIDDLES="shared"),
    ),
    (dict(taps=5, sample_bits=13, layout="blocks", times_per_block=2), ONE | dict(TWIDDLES="shared")),
    (
        dict(n_channels=256, sample_bits=16),
        ONE | PAIRED | dict(SPECTRA=16, KEPT="shared"),  # not paired: a block has more spectra than a thread
    ),
    (
        dict(n_channels=128, sample_bits=64, layout="blocks", bits=4),  # complex
        ONE | dict(SPECTRA=8, POLS="in_turn", KEPT="registers"),
    ),
    (dict(n_channels=256, sample_bits=64), ONE | PAIRED),
    (dict(n_channels=512, sample_bits=64), TWO | dict(COLUMN_POINTS=8, COLUMNS=16, ROW_SPECTRA=2, POST_SPECTRA=2)),
    (
        dict(taps=1, sample_bits=2, bits=4, n_pols=1, spectra_per_heap=33),
        ONE | dict(SPECTRA=64, FIR_SPECTRA=32, MIN_BLOCKS=2),
    ),
    (
        dict(taps=33, n_channels=128, sample_bits=12, layout="blocks", times_per_block=1, bits=4),
        ONE | dict(FIR_TAPS=32),
    ),
    (HIGH | dict(spectra_per_heap=18), ONE),
    (HIGH | dict(n_channels=128, n_pols=1), TWO),
    (
        # Where a run of the first polarisation has a jump, and that of the second has none, both use the same weights.
        dict(taps=16, n_channels=128, spectra_per_heap=256, first_spectrum=17, n_spectra=108),
        ONE | dict(SPECTRA=16, FIR_SPECTRA=16, FIR_TAPS=16, THREADS=256, POST_SPECTRA=2),
    ),
    (
        dict(n_channels=4096, precision="half"),
        TWO
        | dict(COLUMN_POINTS=64, COLUMNS=8, SPECTRA=8, FIR_SPECTRA=8, BETWEEN="half")
        | dict(POLS="in_turn", KEPT="registers", ROW_SPECTRA=8, POST_SPECTRA=8),
    ),
]
DEFAULT = dict(taps=16, n_channels=1024, spectra_per_heap=17)


def small(values: dict[str, Any]) -> Any:
    return KERNEL.problem(SMALL | values)


# ---------------------------------------------------------------------- the definition
@pytest.mark.quick
@pytest.mark.parametrize(
    "values",
    [
        dict(n_channels=8, spectra_per_heap=3, first_spectrum=1, n_spectra=4, n_samples=200),
        dict(n_channels=5, sample_bits=7, bits=4, n_pols=1, layout="blocks", times_per_block=4),
        dict(n_channels=6, sample_bits=64, layout="blocks", times_per_block=2),
        dict(n_channels=5, bits=4, nibbles="real_high", spectra_per_heap=3),
    ],
)
def test_reference_is_that_of_its_stages(values: dict[str, Any]) -> None:
    """pfb_fir for one spectrum at a time, since each has its start; NumPy's transform; postproc for all heaps."""
    problem = small(values)
    inputs = KERNEL.inputs(problem, np.random.default_rng(3))
    made = range(problem.first_spectrum, problem.first_spectrum + problem.n_spectra)
    shape = (1, problem.n_pols, problem.n_times, problem.n_channels)
    spectra, power = np.zeros(shape, np.complex128), inputs.get("total_power", np.zeros(2, np.uint64)).copy()
    fir = PfbFir()
    for s in made:
        fields = {name: getattr(problem, name) for name in ("taps", "n_channels", "sample_bits", "n_pols", "n_samples")}
        given = {"weights": inputs["weights"], "samples": inputs["samples"], "offsets": inputs["offsets"][s]}
        given |= {} if problem.is_complex else {"total_power": power}
        found = fir.reference(fir.problem({**fields, "n_spectra": 1}), **given)
        power = found.get("total_power", power)
        transform = np.fft.fft if problem.is_complex else np.fft.rfft
        spectra[0, :, s] = transform(found["filtered"][:, 0])[:, : problem.n_channels]
    post = Postproc()
    names = ("n_channels", "n_pols", "bits", "nibbles", "layout", "times_per_block", "spectra_per_heap", "n_heaps")
    fields = {name: getattr(problem, name) for name in names}
    given = {name: inputs[name][np.newaxis] for name in ("delays", "phases", "gains")}
    given |= {"saturated": inputs["saturated"][:, np.newaxis], "spectra": spectra}
    wanted = post.reference(post.problem({**fields, "nyquist": 0, "n_receivers": 1}), **given)
    truth = KERNEL.reference(problem, **inputs)
    np.testing.assert_array_equal(truth["saturated"], wanted["saturated"][:, 0])
    assert "total_power" not in truth or (truth["total_power"] == power).all()
    voltages = wanted["voltages"].reshape(truth["voltages"].shape)
    axes = (1, 3) if problem.layout == "blocks" else (0, 2)
    times, before = (np.moveaxis(v, axes, (0, 1)).reshape(-1, v.size // problem.n_times)[: problem.n_times]
                     for v in (truth["voltages"], inputs["voltages"]))  # fmt: skip
    expected = np.moveaxis(voltages, axes, (0, 1)).reshape(times.shape)
    outside = [s for s in range(problem.n_times) if s not in made]
    np.testing.assert_array_equal(times[list(made)], expected[list(made)])
    np.testing.assert_array_equal(times[outside], before[outside])


@pytest.mark.parametrize("n_channels", [63, 96, 131072])
def test_other_channels_are_refused_with_the_reason(n_channels: int) -> None:
    problem = KERNEL.problem({"n_channels": n_channels, "n_spectra": 0, "n_samples": 0})
    broken = KERNEL.space.broken(problem, Config(ONE), of_architecture("sm_90"))
    assert broken is not None and "power of two from 64 to 65536" in broken.reason


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_every_number_of_channels_has_a_variant(arch: str) -> None:
    device = of_architecture(arch)
    for log in range(6, 17):
        problem = KERNEL.problem({"n_channels": 2**log, "n_heaps": 1, "n_spectra": 0, "n_samples": 0})
        config = first_allowed(problem, device)
        assert Geometry(problem, config).shared_bytes <= device.max_shared_bytes


def first_allowed(problem: Any, device: Any) -> Config:
    """One of a few configs that is allowed."""
    tried = (
        Config(ONE | dict(ALGORITHM="one", SPECTRA=spectra, POLS=pols) if algorithm == "one" else
               TWO | dict(COLUMN_POINTS=points, SPECTRA=spectra, POLS=pols))
        for algorithm in ("one", "two") for points in (2, 4, 8, 16, 32, 64)
        for spectra in (4, 8) for pols in ("in_turn", "together")
    )  # fmt: skip
    return next(c for c in tried if KERNEL.space.broken(problem, c, device) is None)


# ---------------------------------------------------------------------- variants
@pytest.mark.one_in(3)
@pytest.mark.parametrize(("values", "config"), first_is_quick(CASES))
def test_any_problem_is_right(values: dict[str, Any], config: dict[str, Any]) -> None:
    host = find_device("host")
    problem = small(values)
    broken = KERNEL.space.broken(problem, Config(config), host.device)
    assert broken is None, broken
    check(KERNEL, problem, Config(config), host, "check")


def test_the_default_is_right(target: Target) -> None:
    problem = small(DEFAULT)
    check(KERNEL, problem, Config(KERNEL.default), target, *(("plain",) if target.kind == "host" else ()))


@pytest.mark.gpu
@pytest.mark.parametrize(("values", "config"), CASES)
def test_variants_are_right_on_a_gpu(values: dict[str, Any], config: dict[str, Any], target: Target) -> None:
    check(KERNEL, small(values), Config(config), target)


# ---------------------------------------------------------------------- mutants
@pytest.mark.planted
@pytest.mark.parametrize(
    ("config", "old", "new"),
    first_is_quick(
        [
            pytest.param(ONE, "+ CODES - MOST", "+ CODES - MOST + 1", id="rounding"),
            pytest.param(ONE, "__syncthreads();  // the bins of all rows", "// the bins of all rows", id="barrier"),
            pytest.param(ONE, "__syncthreads();  // z is free", "// z is free", id="free"),
            pytest.param(ONE, "atomicAdd(n_taken, 1u) : 0", "atomicAdd(n_taken, 2u) : 0", id="ticket"),
            pytest.param(
                ONE,
                "put_plan(following, part_of_ticket(), start",
                "put_plan(following, part_of_ticket(), -1",
                id="start",
            ),
            pytest.param(ONE, "max(row - first, 0)", "max(row, 0)", id="jump"),
            pytest.param(ONE, "first >= 0 && own == first +", "first >= 0 || own == first +", id="offset"),
            pytest.param(ONE, "fabsf(re) > limit ||", "fabsf(re) > limit &&", id="saturated"),
            pytest.param(ONE, "(MOST + 0.5f) / (2 * MOST)", "(MOST + 1.0f) / (2 * MOST)", id="limit"),
            pytest.param(ONE, "left = SAMPLE_BITS - right", "left = SAMPLE_BITS - right - 1", id="second sample"),
            pytest.param(ONE, "even.x, -first.x", "even.x, first.x", id="split"),
            pytest.param(ONE | PAIRED, "pair + N2 / 2 : N2 - pair", "pair + N2 / 2 : N2 - 1 - pair", id="partner"),
            pytest.param(ONE | PAIRED, "__syncwarp();  // all have read", "// all have read", id="exchange"),
            pytest.param(ONE | PAIRED | dict(KEPT="shared"), "[N == 1 ? 0 : thread]", "[0]", id="kept"),
            pytest.param(TWO, "from_end / BLOCKS_OF_PART % N_GROUPS", "from_end / BLOCKS_OF_PART % 1", id="group"),
            pytest.param(
                TWO, "i / EACH * (1.0f / (N1 * RADIX_1))", "i / EACH * (0.5f / (N1 * RADIX_1))", id="row's twiddle"
            ),
        ]
    ),
)
def test_mutants_fail(config: dict[str, Any], old: str, new: str) -> None:
    values = dict(n_channels=256) if config is not ONE else dict(n_channels=64)
    given = config | dict(COLUMN_POINTS=4) if config is TWO else config
    check_mutant(KERNEL, small(values), Config(given), old, new)


@pytest.mark.parametrize("part", ["re", "im"])
def test_a_part_in_the_others_nibble_fails(part: str) -> None:
    low, high = "codes[i].im % 16", "codes[i].re % 16 << 4"
    wrong = f"codes[i].{part}"
    mutant = f"{low} | {high}".replace("codes[i].re", wrong).replace("codes[i].im", wrong)
    check_mutant(KERNEL, small(HIGH), Config(ONE), f"{low} | {high}", mutant, "wrong")


@pytest.mark.parametrize("precision", ["single", "half"])
def test_a_nibble_that_is_two_off_fails(precision: str) -> None:
    """Halves are rounded before they become integers, so each part may be one off; as a byte that would be 17."""
    low, high = "codes[i].im % 16", "codes[i].re % 16 << 4"
    mutant = f"(codes[i].im + 2) % 16 | {high}"
    check_mutant(KERNEL, small({**HIGH, "precision": precision}), Config(ONE), f"{low} | {high}", mutant, "wrong")


def test_nibbles_are_of_four_bits() -> None:
    with pytest.raises(UsageError, match="nibbles=real_high is for bits=4; with bits=8 each part has a byte"):
        small({"bits": 8, "nibbles": "real_high"})
    with pytest.raises(UsageError, match="nibbles=high must be real_low or real_high"):
        small({"bits": 4, "nibbles": "high"})


# ---------------------------------------------------------------------- goldens
GOLDENS = {
    "default": (KERNEL.tuned[0], KERNEL.default),
    "two": (KERNEL.tuned[1], TWO | dict(COLUMN_POINTS=8, SPECTRA=8, POLS="in_turn", KEPT="registers")),
    "narrow": (replace(KERNEL.extra_problems[1], layout="blocks"), ONE),
    "real_high": (small(HIGH), ONE),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
