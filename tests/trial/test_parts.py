"""Parts of an output that NumPy answers: which sizes are independent, and who may stand in for NumPy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.devices import find_device
from autotune.records.edge_sizes import verified_on
from autotune.records.folder import SweepFolder
from autotune.source.registry import load_kernel
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial import contract
from autotune.trial.bench import Bench
from autotune.trial.case import random_inputs
from autotune.trial.parts import parts_of

from ..conftest import EXAMPLE

PLANTED = Path(__file__).parents[1] / "planted"


@pytest.mark.parametrize(
    ("kernel", "fields", "field"),
    [
        (EXAMPLE, {"n_time": 9, "n_chan": 50}, "n_chan"),
        ("correlate", {"bits": 8, "n_receivers": 5, "n_channels": 7, "n_batches": 4}, "n_channels"),
        ("correlate", {"layout": "batches", "bits": 4, "n_receivers": 3, "n_channels": 9, "n_times": 16}, "n_channels"),
    ],
)
def test_a_part_is_what_the_whole_has_there(kernel: str, fields: dict[str, object], field: str) -> None:
    definition = load_kernel(kernel)
    problem = definition.problem(fields)
    inputs = random_inputs(definition, problem)
    parts = parts_of(definition, problem, inputs)
    assert {part.field for part in parts} == {field} and parts[-1].number == getattr(problem, field) - 1
    assert len({part.number for part in parts}) == 3
    whole = contract.expected_outputs(definition, problem, inputs)
    for part in parts:
        for name, answer in part.reference.items():
            assert np.allclose(part.of(name, whole[name]), answer)


@pytest.mark.parametrize("kernel", [PLANTED / "one.py", PLANTED / "two.py"])
def test_elements_that_depend_on_their_place_or_on_others_are_no_parts(kernel: Path) -> None:
    definition = load_kernel(str(kernel))
    problem = replace(definition.tuned[0], n=90)
    found = parts_of(definition, problem, random_inputs(definition, problem))
    assert {part.field for part in found} <= {"n_rows"}  # rows of two.py; no part of a row


def test_a_config_that_is_wrong_at_full_size_alone_does_not_stand_in_for_numpy(tmp_path: Path) -> None:
    definition = load_kernel(str(PLANTED / "large.py"))
    with Bench(find_device("host")) as bench:
        sweep = run_sweep(definition, definition.tuned[0], bench, Settings(results=tmp_path, trials=3))
    found = {str(t.config["FAULT"]): t for t in SweepFolder(sweep.path).trials()}
    assert [(name, str(t.status)) for name, t in sorted(found.items())] == [
        ("LAST_ROW_WRONG", "wrong"),
        ("RIGHT", "measured"),
        ("WRONG_AT_FULL_SIZE", "wrong"),
    ]
    assert "at full size, rows " in (found["WRONG_AT_FULL_SIZE"].message or "")
    folder = SweepFolder(sweep.path)
    told = verified_on(folder.about(), found["RIGHT"], folder.trials(), definition)[-1]
    assert "(against FAULT=RIGHT; NumPy answers rows " in told and told.endswith("rows 39)")
