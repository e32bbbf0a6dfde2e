"""The project's own records: each winner is what today's templates make, as anybody can see without a compiler."""

from pathlib import Path

import pytest

from autotune.core.definition import Device
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.rendering.render import Variant
from autotune.validity import as_measured

RESULTS = Path(__file__).parents[1] / "results"
MOST_BYTES = 40e6


def test_recorded_winners_hold_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an edit of a template run `autotune digest results`, with the NVRTC that the records name."""

    def compiles(kind: str, variant: Variant, device: Device, code: str) -> bool:
        raise as_measured.CannotTell("it would be compiled")

    monkeypatch.setattr(as_measured, "_still_makes", compiles)
    sweeps = [folder for folder in find_sweeps(RESULTS) if folder.about().device.kind == "cuda" and folder.outcome()]
    assert len(sweeps) > 400
    wrong = [f"{folder.path}: {said}" for folder in sweeps if not (said := today(folder)).startswith("its text ")]
    assert not wrong, "\n".join(wrong[:5])


def today(folder: SweepFolder) -> str:
    outcome = folder.outcome()
    assert outcome is not None
    winner = outcome.winner
    return as_measured.validity_text(folder, folder.about().device, dict(winner.config), winner.key)


def test_records_stay_small() -> None:
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < MOST_BYTES
