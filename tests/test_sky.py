"""A correlator made of the kernels, under a sky of two sources, against theory: pfb_fir, FFT, postproc, correlate,
accumulate.

Each figure has a bound, derived where it is made. `python -m tests.test_sky` prints them, as
docs/lab/2026-11-21-correlator-against-theory.md has them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import erf, pi, sqrt

import numpy as np
import pytest
from autotune.kernels.accumulate import Accumulate
from autotune.kernels.correlate import Correlate

from autotune.devices import Target, find_device
from autotune.engines.f.filters import prototype

from .interferometer import Sky, Source, Theory, baselines, compared, matrices, shared
from .sky import Figure, Outputs, Setting, channelised, correlations, launched, quantised_voltages

CORRELATE, ACCUMULATE = Correlate(), Accumulate()
C, L, TAPS, HEAP, N_SPECTRA, N_RECEIVERS, N_SLICES = 32, 64, 4, 128, 3072, 16, 2
N_SAMPLES = (N_SPECTRA + TAPS + 2) * L  # three spectra more than are made, for the offsets
WEIGHTS = prototype(C, TAPS)
FIRST = 64  # the sample from which on a stream is read that is not late
LIMIT, MISSING = 2**31 - 1, (-(2**31), 1)
BROKEN, FAR_TOO_HIGH = 5, 2.0  # a receiver, and its gain: 10 times what others have
KEPT = np.delete(np.arange(2 * N_RECEIVERS), [2 * BROKEN, 2 * BROKEN + 1])  # streams of the others
EARLIER, LATER = baselines(N_RECEIVERS)


def sky() -> Sky:
    """A first source of rms 8, linearly polarised 0.5 rad from polarisation a, and a second one of rms 6 in each,
    unpolarised. Receivers are spread over 40 by 40 samples of light; each polarisation has a cable of up to 3 samples.
    The first source is whole samples late at the broken receiver: nothing is left to its fine delays.
    """
    rng = np.random.default_rng(21)
    places, cables = rng.uniform(-20, 20, (N_RECEIVERS, 2)), rng.uniform(0, 3, (N_RECEIVERS, 2))
    late = (places @ [0.6, 0.5])[:, np.newaxis] + cables
    late[BROKEN] = np.rint(late[BROKEN])
    beyond = (places @ [0.2, -0.1])[:, np.newaxis]
    linear = Source(8.0 * np.array([[np.cos(0.5)], [np.sin(0.5)]]), late)
    return Sky((linear, Source(6.0 * np.eye(2), late + beyond)), rng.uniform(10, 14, (N_RECEIVERS, 2)))


SKY = sky()


@dataclass(frozen=True)
class Mode:
    """How voltages are made and ordered, and about the rms of their parts."""

    layout: str
    bits: int
    part: float

    @property
    def gains(self) -> np.ndarray:
        """complex64 [n_receivers, C, 2]: they make parts of 0.8 to 1.2 times that rms, at any angle. Those of the
        broken receiver are a power of two times one of i: its voltages are exact, and so is their count.
        """
        rng = np.random.default_rng(22)
        received = SKY.noises**2 + sum(np.diag(source.coherency) for source in SKY.sources)
        usual = self.part / np.sqrt(np.sum(WEIGHTS.astype(float) ** 2) * received / 2)
        sizes = usual[:, np.newaxis] * rng.uniform(0.8, 1.2, (N_RECEIVERS, C, 2))
        gains = sizes * np.exp(2j * pi * rng.uniform(size=sizes.shape))
        gains[:, 0] *= 0.01  # channel 0 is real, so its parts are not normal alike: it is kept out
        gains[BROKEN] = FAR_TOO_HIGH * np.array([1, 1j, -1, -1j])[rng.integers(0, 4, (C, 2))]
        return gains.astype(np.complex64)

    @property
    def given(self) -> list[Setting]:
        return SKY.settings(FIRST, N_SPECTRA, self.gains)

    @property
    def theory(self) -> Theory:
        """Of the streams that are kept, and all channels but 0."""
        largest = int(2 ** (self.bits - 1) - 1)
        return SKY.theory(WEIGHTS, self.gains, largest).of(slice(1, None), KEPT)


BLOCKS, BATCHES, NIBBLES = Mode("blocks", 8, 14.0), Mode("batches", 8, 14.0), Mode("blocks", 4, 1.8)


# ---------------------------------------------------------------------- the correlator
@cache
def sampled() -> np.ndarray:
    return SKY.samples(np.random.default_rng(23), N_SAMPLES, 10)


@cache
def spectra(target: Target) -> np.ndarray:
    """complex64 [n_receivers, 2, n_spectra, C + 1]."""
    offsets = [offset for each in BLOCKS.given for offset in each.offsets]
    found, _ = channelised(target, sampled(), WEIGHTS, offsets, N_SPECTRA)
    return found.reshape(N_RECEIVERS, 2, N_SPECTRA, C + 1)


def quantised_by(target: Target, mode: Mode, of: np.ndarray, given: Sequence[Setting]) -> Outputs:
    times = 128 // mode.bits
    return quantised_voltages(target, of, given, HEAP, layout=mode.layout, bits=mode.bits, times_per_block=times)


@cache
def voltages(target: Target, mode: Mode) -> Outputs:
    return quantised_by(target, mode, spectra(target), mode.given)


def correlated(
    target: Target, mode: Mode, of: np.ndarray, before: np.ndarray | None = None, n_used: int = 0
) -> np.ndarray:
    """int64 [n_slices, C, n_baselines, 4, 2], added to what was there before."""
    times = of.shape[4 if mode.layout == "blocks" else 3]
    how = {"bits": mode.bits, "layout": mode.layout, "n_receivers": N_RECEIVERS, "n_times": times, "overwrites": False}
    accumulators = np.zeros((N_SLICES, C, EARLIER.size, 4, 2), np.int64) if before is None else before
    inputs = {"voltages": of, "accumulators": accumulators}
    return launched(target, CORRELATE, {**how, "n_used": n_used}, inputs)["accumulators"]


@cache
def integrated(target: Target, mode: Mode) -> np.ndarray:
    return correlated(target, mode, voltages(target, mode)["voltages"])


def dumped(target: Target, mode: Mode, accumulators: np.ndarray) -> Outputs:
    """accumulate, without the baselines of receivers of which more than 1 in 20 voltages were saturated."""
    good = voltages(target, mode)["saturated"].sum(axis=(0, 2)) <= N_SPECTRA * 2 * C / 20
    present = (good[EARLIER] & good[LATER]).astype(np.uint8)
    inputs = {"accumulators": accumulators, "present": present, "saturated": np.zeros(1, np.uint64)}
    return launched(target, ACCUMULATE, {"n_accumulators": N_SLICES}, inputs)


@cache
def visibilities(target: Target, mode: Mode) -> np.ndarray:
    """int32 [C, n_baselines, 4, 2]."""
    return dumped(target, mode, integrated(target, mode))["visibilities"]


def products_of(of: np.ndarray) -> np.ndarray:
    """Mean products [C, u, v], of the streams that are kept, and all channels but 0."""
    return matrices(of)[1:, KEPT[:, np.newaxis], KEPT] / N_SPECTRA


# ---------------------------------------------------------------------- with theory
def sources(target: Target) -> list[Figure]:
    return compared(products_of(visibilities(target, BLOCKS)), BLOCKS.theory, N_SPECTRA)


def nibbles(target: Target) -> list[Figure]:
    """4 bits, parts of about 1.8; a part of 7.5 is saturated."""
    theory = NIBBLES.theory
    figures = compared(products_of(visibilities(target, NIBBLES)), theory, N_SPECTRA)
    power = np.diagonal(replace(NIBBLES, bits=8).theory.products, axis1=1, axis2=2)  # 127 is far away
    share = float(np.mean(1 - np.vectorize(erf)(7.5 / np.sqrt(power.real - 1 / 6)) ** 2))
    count = voltages(target, NIBBLES)["saturated"].reshape(-1, 2 * N_RECEIVERS)[:, KEPT].sum(dtype=float)
    n = N_SPECTRA * power.size
    # An even function of two voltages, as this is, is correlated by |rho|^2 at most.
    together = correlations(WEIGHTS)[1] * float(np.mean(shared(theory.products))) / KEPT.size
    return [*figures, Figure("saturated voltages, of all", count / n, share, 5 * sqrt(share * together / n), "")]


# ---------------------------------------------------------------------- exactly
@cache
def multiplied(target: Target, mode: Mode) -> np.ndarray:
    """Voltages of 8 bits as NumPy multiplies them: int64 [n_slices, C, n_baselines, 4, 2]."""
    of = voltages(target, mode)["voltages"]
    order = (0, 2, 3, 1, 4) if mode.layout == "blocks" else (2, 1, 4, 0, 3)  # to channel, receiver, pol, batch, time
    ordered = (of[..., 0] + 1j * of[..., 1]).transpose(order)
    slices = []
    for x in np.split(ordered.reshape(C, 2 * N_RECEIVERS, N_SPECTRA), N_SLICES, axis=2):
        products = x @ x.conj().transpose(0, 2, 1)  # sums below 2^53: exact
        of_pols = [products[:, 2 * EARLIER + p, 2 * LATER + q] for q in range(2) for p in range(2)]
        slices.append(np.stack(of_pols, axis=-1))
    return np.stack(slices).view(float).reshape(N_SLICES, C, -1, 4, 2).astype(np.int64)


def count(what: str, found: int, expected: int = 0) -> Figure:
    """Exact."""
    return Figure(what, int(found), int(expected), 0, "")


def layouts(target: Target) -> list[Figure]:
    """Sums of each, slice by slice."""
    others = [(mode.layout, integrated(target, mode) != multiplied(target, mode)) for mode in (BLOCKS, BATCHES)]
    return [count(f"layout {layout}: parts that NumPy has otherwise", other.sum()) for layout, other in others]


def broken(target: Target) -> list[Figure]:
    """The receiver whose gain is far too high."""
    counts = voltages(target, BLOCKS)["saturated"]
    v = spectra(target)[BROKEN, ..., :C] * BLOCKS.gains[BROKEN].T[:, np.newaxis]  # exact, as are gains
    recount = (np.rint(np.maximum(np.abs(v.real), np.abs(v.imag))) > 127).reshape(2, -1, HEAP, C).sum(axis=(2, 3)).T
    of_broken = (EARLIER == BROKEN) | (LATER == BROKEN)
    missing = (visibilities(target, BLOCKS) == MISSING).all(axis=-1)
    return [
        count(f"its saturated voltages, of {v.size}", counts[:, BROKEN].sum(), recount.sum()),
        count(f"heaps, of {recount.size}, with another count", (counts[:, BROKEN] != recount).sum()),
        count("saturated voltages of others", counts.sum() - counts[:, BROKEN].sum()),
        count("its visibilities that are (-2^31, 1)", missing[:, of_broken].sum(), 4 * C * N_RECEIVERS),
        count("others that are", missing[:, ~of_broken].sum()),
    ]


def full(target: Target) -> list[Figure]:
    """Two correlations are added to what is there before, which brings channel 3 to the edges of 32 bits."""
    rng = np.random.default_rng(24)
    once = multiplied(target, BLOCKS)
    before = np.zeros_like(once)
    edges = rng.choice([-1, 1], once[0, 3].shape) * (LIMIT + rng.integers(-2, 3, once[0, 3].shape))
    before[0, 3] = edges - 2 * once[:, 3].sum(axis=0)
    of = voltages(target, BLOCKS)["voltages"]
    twice = correlated(target, BLOCKS, of, correlated(target, BLOCKS, of, before))
    found = dumped(target, BLOCKS, twice)
    sums = (before + 2 * once).sum(axis=0)
    expected = np.clip(sums, -LIMIT, LIMIT)
    present = (EARLIER != BROKEN) & (LATER != BROKEN)
    n_clipped = (expected != sums).any(axis=-1)[:, present].sum()
    other = (found["visibilities"] != expected)[:, present]
    return [
        count(f"clipped visibilities, of {4 * present.sum()}", found["saturated"][0], n_clipped),
        count("parts that NumPy has otherwise", other.sum()),
        count("accumulators that are not cleared", np.count_nonzero(found["accumulators"])),
    ]


# ---------------------------------------------------------------------- the tests
FIGURES: list[Callable[[Target], list[Figure]]] = [sources, nibbles, layouts, broken, full]
WRONG = [
    "sign of a receiver's fine delays",
    "offset of a stream",
    "polarisations of a receiver",
    "a batch left out",
    "order of receivers",
    "sign of imaginary parts",
    "order of products",
]


@pytest.mark.parametrize("figures", FIGURES, ids=lambda figures: figures.__name__)
def test_figures_are_those_of_theory(figures: Callable[[Target], list[Figure]], target: Target) -> None:
    for figure in figures(target):
        assert figure.holds, figure


def visibilities_with(wrong: str, target: Target) -> np.ndarray:
    """Of layout batches, with something wrong."""
    right = visibilities(target, BATCHES)
    if wrong == "sign of imaginary parts":
        return right * np.array([1, -1])
    if wrong == "order of products":
        return right[..., [0, 2, 1, 3], :]
    of, given, n_used = spectra(target).copy(), BATCHES.given, 0
    if wrong == "sign of a receiver's fine delays":
        given[3] = replace(given[3], delays=-given[3].delays)
    elif wrong == "offset of a stream":
        late = given[-1].offsets[1] + 1
        of[-1, 1] = channelised(target, sampled()[-1:], WEIGHTS, [late], N_SPECTRA)[0]
    elif wrong == "polarisations of a receiver":
        of[3] = of[3, ::-1].copy()
    elif wrong == "a batch left out":
        n_used = N_SPECTRA // HEAP - 1
    found = quantised_by(target, BATCHES, of, given)["voltages"]
    if wrong == "order of receivers":
        found[:, [3, 4]] = found[:, [4, 3]]
    return dumped(target, BATCHES, correlated(target, BATCHES, found, n_used=n_used))["visibilities"]


def off_by(figures: list[Figure]) -> float:
    """Bounds that the worst is off by."""
    return max(abs(figure.measured - figure.expected) / figure.bound for figure in figures)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_shows(wrong: str, target: Target) -> None:
    assert off_by(compared(products_of(visibilities_with(wrong, target)), BATCHES.theory, N_SPECTRA)) > 5


def test_that_voltages_are_rounded_shows(target: Target) -> None:
    theory = NIBBLES.theory
    exact = replace(theory, products=theory.products - np.eye(KEPT.size) / 6)
    assert off_by(compared(products_of(visibilities(target, NIBBLES)), exact, N_SPECTRA)) > 5


if __name__ == "__main__":
    for of in FIGURES:
        print(f"\n| {of.__name__} | measured | theory | bound |\n| --- | --- | --- | --- |")
        for figure in of(find_device("host")):
            print(figure.row)
