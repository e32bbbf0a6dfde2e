"""A sample of `python -m tests.recordings`, and faults that it must find."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.engines.f import chain_bank, voltage_buffers
from autotune.engines.f.plan import Batch, FPlan
from autotune.engines.files import losses, statements, time_order, turned
from autotune.engines.files.formats import guppi, raw
from autotune.engines.jobs import station_clock
from autotune.engines.x import stage as x_stage
from autotune.engines.x.weights import PairedSpectra

from .engines.test_plan_mutants import mutated
from .recordings import contradicted, damaged
from .recordings.compared import faults
from .recordings.drawn import Night, draw

N_SAMPLE, N_TRIED = 20, 30


@pytest.mark.parametrize("seed", range(N_SAMPLE))
def test_a_night_is_what_an_independent_correlator_makes_of_it(seed: int, tmp_path: Path) -> None:
    assert faults(draw(seed), tmp_path) == []


def the_first_batch_is_dropped(patch: pytest.MonkeyPatch) -> None:
    def first_heap(self: FPlan, time: int) -> int:
        return -(-time // self.shape.batch_samples) * self.shape.batch_samples

    patch.setattr(FPlan, "first_heap", first_heap)


def the_band_of_complex_samples_begins_at_frequency_0(patch: pytest.MonkeyPatch) -> None:
    right = voltage_buffers.BandSettings.weights_on
    patch.setattr(voltage_buffers.BandSettings, "weights_on", lambda self, *given: right(self, *given[:2], False))


def the_sense_of_a_band_is_swapped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turned, "turn", lambda *given: None)


def a_station_is_shifted_by_a_sample(patch: pytest.MonkeyPatch) -> None:
    right = station_clock.ShiftedSource
    patch.setattr(station_clock, "ShiftedSource", lambda source, n, zero: right(source, n + 1, zero))


def what_is_left_of_a_start_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(station_clock.Station, "on_time", lambda self, delays: list(delays))


def an_odd_shift_of_a_falling_band_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    right = station_clock.offset_from

    def offset(*given: Any) -> station_clock.Offset:
        found = right(*given)
        return replace(found, phase=found.phase - round(found.phase / 3.1415927) * 3.1415927)

    patch.setattr(station_clock, "offset_from", offset)


def one_dump_more_is_made(patch: pytest.MonkeyPatch) -> None:
    wrong = mutated("x.plan", "int(came[-1]) + 1  #", "len(present)  #")
    for name in ("XPlan", "Integration", "BatchRange"):
        patch.setattr(x_stage, name, getattr(wrong, name))


def heaps_outside_are_missing(patch: pytest.MonkeyPatch) -> None:
    right = Batch.n_missing
    patch.setattr(Batch, "n_missing", lambda self, n: right(replace(self, begin=0), n))


def the_loss_of_one_antenna_is_ignored(patch: pytest.MonkeyPatch) -> None:
    right = PairedSpectra.add

    def add(self: PairedSpectra, present: np.ndarray, holes: dict[tuple[int, int], np.ndarray]) -> None:
        right(self, present, {(batch, antenna): came for (batch, antenna), came in holes.items() if antenna})

    patch.setattr(PairedSpectra, "add", add)


def what_a_buffer_held_is_correlated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(x_stage.XStage, "_clear", lambda self, voltages, present: None)
    patch.setattr(chain_bank, "ranges", lambda flags: [])


@pytest.mark.parametrize(
    "plant",
    [
        the_loss_of_one_antenna_is_ignored,
        what_a_buffer_held_is_correlated,
        the_first_batch_is_dropped,
        the_band_of_complex_samples_begins_at_frequency_0,
        the_sense_of_a_band_is_swapped,
        a_station_is_shifted_by_a_sample,
        what_is_left_of_a_start_is_forgotten,
        an_odd_shift_of_a_falling_band_is_forgotten,
        one_dump_more_is_made,
        heaps_outside_are_missing,
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(N_TRIED):
        folder, night = tmp_path / str(seed), draw(seed)
        folder.mkdir()
        if may_show(plant, night) and faults(night, folder):
            return
    pytest.fail("the fault was not found")


def may_show(plant: Callable[[pytest.MonkeyPatch], None], night: Night) -> bool:
    """Whether a fault of signs can be seen: real samples of a falling band, and clocks with different zeros."""
    if plant is not an_odd_shift_of_a_falling_band_is_forgotten:
        return True
    zeros = [round((s.sync - night.stations[0].sync) * Fraction(night.rate_hz)) % 2 for s in night.stations]
    return any(odd and s.falls and not s.is_complex for odd, s in zip(zeros, night.stations, strict=True))


# ---------------------------------------------------------------------- wrong statements
@pytest.mark.parametrize("kind", contradicted.SURE)
def test_a_wrong_statement_is_found_and_the_right_one_is_not_refused(kind: str, tmp_path: Path) -> None:
    assert contradicted.tried(11, tmp_path, kind) == contradicted.Finding(kind, is_found=True)


@pytest.mark.parametrize(
    "kind",
    [
        "a rate, and frames count",
        "a rate, and packets count",
        "bits, and the length tells",
        "a band below 0 Hz",
        "a position off the Earth",
    ],
)
def test_without_its_check_a_wrong_statement_is_not_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (statements, guppi, raw):
        monkeypatch.setattr(module, "contradicted", lambda *given: None)
    found = contradicted.tried(16, tmp_path, kind)
    assert "are not in the refusal" in found.fault


# ---------------------------------------------------------------------- damage
@pytest.mark.parametrize("seed", [30, 31])
@pytest.mark.parametrize("kind", damaged.KINDS)
def test_damage_costs_itself(kind: str, seed: int, tmp_path: Path) -> None:
    assert damaged.tried(seed, tmp_path, kind)[1] == []


def the_end_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(losses.Losses, "told", lambda self: None)


def frames_are_taken_as_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guppi.GuppiSamples, "most_early", 1)
    patch.setattr(time_order.FramedSource, "most_early", 1)


@pytest.mark.parametrize(
    ("kind", "plant"), [("cut off", the_end_is_not_told), ("exchanged", frames_are_taken_as_they_come)]
)
def test_damage_that_costs_more_is_found(
    kind: str, plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    seeds = ((seed, tmp_path / str(seed)) for seed in range(60, 70))
    assert any(folder.mkdir() or damaged.tried(seed, folder, kind)[1] for seed, folder in seeds)
