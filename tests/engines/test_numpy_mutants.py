"""Faults that are planted in what NumPy computes on host are found by the tests of its voltages and visibilities."""

import pytest

from autotune.engines.f import filter_bank

from .f import test_numpy_bank
from .test_plan_mutants import mutated
from .x import test_numpy_correlator

# What is wrong: the module, its text, and the text that takes its place.
VOLTAGES = {
    "the fine delay turns the other way": ("f.numpy_bank", "(-np.pi *", "(np.pi *"),
    "phases are left out": ("f.numpy_bank", "(phases.astype(np.float64)[:, np.newaxis] + slopes", "(slopes"),
    "complex delays count half": ("f.numpy_bank", "(2 if self._info.is_complex else 1)", "1"),
    "a run begins with the piece": ("f.numpy_bank", " + (begin - run.place) * self._step", ""),
    "gains end with the batch": (
        "f.numpy_bank",
        "for gains in self._gains.of(runs[0].batch):",
        "for gains in self._gains.of(runs[0].batch)[:1]:",
    ),
    "gains are those of the other polarisation": ("f.numpy_bank", "in enumerate(gains)", "in enumerate(gains[::-1])"),
    "no sample is saturated": ("f.numpy_bank", "return n_saturated", "return 0"),
    "the most negative value is kept": ("f.numpy_bank", "np.fmax(parts, -most,", "np.fmax(parts, -most - 1,"),
    "nibbles are exchanged": ("f.numpy_bank", "== REAL_LOW", "!= REAL_LOW"),
    "spectra lie in their heap from its beginning on": ("f.numpy_bank", "first : first + len(codes)", ": len(codes)"),
}
VISIBILITIES = {
    "too many spectra are added in float32": ("x.numpy_correlator", "EXACT = 1 << 24", "EXACT = 1 << 26"),
    "the conjugate is made": (
        "x.numpy_correlator",
        "parts[..., 1, 0] - parts[..., 0, 1]",
        "parts[..., 0, 1] - parts[..., 1, 0]",
    ),
    "polarisations are exchanged": ("x.numpy_correlator", "(0, 1, 4, 5, 2, 3, 6)", "(0, 1, 4, 2, 5, 3, 6)"),
    "a chunk's first batches are used": ("x.numpy_correlator", "used.first_batch : used.first_batch + ", ": "),
    "the last batches are lost": ("x.numpy_correlator", "range(0, len(rows), self._n_batches)", "range(1)"),
}


def of_bank() -> None:
    for seed in range(8):
        test_numpy_bank.test_voltages_are_those_of_the_formula(seed)


def of_correlator() -> None:
    for seed in range(8):
        test_numpy_correlator.test_any_batches_of_a_chunk_are_added_exactly(seed)


@pytest.mark.parametrize("fault", VOLTAGES)
def test_faults_of_voltages_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mutated(*VOLTAGES[fault])
    monkeypatch.setattr(filter_bank, "NumpyBank", wrong.NumpyBank)
    with pytest.raises(AssertionError):
        of_bank()


@pytest.mark.parametrize("fault", VISIBILITIES)
def test_faults_of_visibilities_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mutated(*VISIBILITIES[fault])
    monkeypatch.setattr(test_numpy_correlator, "NumpyCorrelate", wrong.NumpyCorrelate)
    with pytest.raises(AssertionError):
        of_correlator()
