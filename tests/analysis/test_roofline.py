"""What limits a sweep: the same as the definition's work says, found from the record's rates alone."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from autotune.analysis.roofline import UNITS, limit_of
from autotune.core.definition import Work
from autotune.core.device import Ceilings
from autotune.core.work import floor_s, rates_of
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.records.trial_log import as_row

from ..recorded import H200, WIDE, record, write_verdict

pytestmark = pytest.mark.quick

CEILINGS = Ceilings(bytes_per_s=4e12, flops_per_s=60e12, float16_per_s=900e12, int8_per_s=1900e12)
MEDIAN_US = 50.0


def recorded(results: Path, work: Work, ceilings: Ceilings = CEILINGS) -> SweepRecord:
    """A sweep whose only config did this work."""
    rates = {name: rate(1e-6 * MEDIAN_US) for name, rate in rates_of(work, ceilings).items()}
    path = record(results, H200, {WIDE: MEDIAN_US}, **rates)
    trial = SweepRecord.of(SweepFolder(path)).measured[0]
    write_verdict(path, {"winner": as_row(trial), "ceilings": asdict(ceilings)})
    return SweepRecord.of(SweepFolder(path))


@pytest.mark.parametrize("unit", ["float32", "float16", "int8"])
@pytest.mark.parametrize("intensity", [0.0, 1.0, 14.0, 100.0, 300.0, 1000.0])
def test_the_limit_is_that_of_the_work(tmp_path: Path, unit: str, intensity: float) -> None:
    work = Work(flops=intensity * 1e8, bytes=1e8, unit=unit)
    limit = limit_of(recorded(tmp_path, work))
    assert limit and limit.least_s == pytest.approx(floor_s(work, CEILINGS))
    assert limit.by_bytes == (floor_s(work, CEILINGS) == 1e8 / CEILINGS.bytes_per_s)
    own = next(name for name, told in UNITS.items() if told.endswith(unit))
    assert own in limit.units and (limit.by_bytes or limit.units == (own,))
    assert limit.name == ("bytes" if limit.by_bytes else UNITS[own])


def test_a_device_without_the_unit_computes_in_float32(tmp_path: Path) -> None:
    old = replace(CEILINGS, float16_per_s=0.0, int8_per_s=0.0)
    limit = limit_of(recorded(tmp_path, Work(flops=1e10, bytes=1e6, unit="float16"), old))
    assert limit and limit.name == "float32"


def test_nothing_is_said_where_the_roofline_is_another_or_not_known(tmp_path: Path) -> None:
    sweep = recorded(tmp_path, Work(flops=1e10, bytes=1e6))
    assert limit_of(sweep)
    content = {"winner": as_row(sweep.measured[0]), "ceilings": asdict(replace(CEILINGS, flops_per_s=90e12))}
    write_verdict(sweep.path, content)
    assert limit_of(SweepRecord.of(SweepFolder(sweep.path))) is None
    write_verdict(sweep.path, {"winner": as_row(sweep.measured[0])})
    assert limit_of(SweepRecord.of(SweepFolder(sweep.path))) is None
