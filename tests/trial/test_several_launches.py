"""A definition with two launches and a workspace, from the definition's checks to the recorded row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune import Launch, TrialFailure, array_workspace
from autotune.core.errors import Status
from autotune.devices import host
from autotune.records.folder import SweepFolder
from autotune.records.measurement import Protocol
from autotune.rendering.render import render
from autotune.source.registry import load_kernel
from autotune.trial.case import POISONS, CaseInMemory, small_case
from autotune.trial.conditions import conditions_of
from autotune.trial.stations import check_limits
from autotune.trial.verify import verify

from ..conftest import DEFINITIONS

CENTRE = load_kernel(str(DEFINITIONS / "centre.py"))
PROBLEM = CENTRE.problem()
CONFIG = CENTRE.space.parse({"WIDTH": 32})


def binary_of(change: tuple[str, str] = ("", "")) -> Any:
    """The host's binary, after one change of its source."""
    variant = render(CENTRE, PROBLEM, CONFIG)
    assert variant.also == ("subtract",) and change[0] in variant.source
    texts = {name: getattr(variant, name).replace(*change) for name in ("source", "numbered") if change[0]}
    return host.compile(replace(variant, **texts), host.DEVICE)


@pytest.mark.quick
def test_both_launches_are_verified_on_a_poisoned_workspace() -> None:
    session = host.open("host")
    verify(session, CENTRE, PROBLEM, CONFIG, binary_of(), full=True)
    done = autotune.run(str(DEFINITIONS / "centre.py"), inputs=CENTRE.inputs(PROBLEM, np.random.default_rng(1)))
    assert abs(done["centred"].mean(axis=1)).max() < 1e-6


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("if (threadIdx.x == 0)", "if (threadIdx.x == 0 && blockIdx.x > 0)"), "centred.* is nan"),
        (("] = part[0]", " + gridDim.x * gridDim.y] = part[0]"), "out-of-bounds write|sums: .* past its end"),
        (("sum += sums[", "sum = sums["), "centred.* is .*, reference"),
    ],
)
def test_a_wrong_first_or_second_function_is_found(change: tuple[str, str], why: str) -> None:
    with pytest.raises(TrialFailure, match=why):
        verify(host.open("host"), CENTRE, PROBLEM, CONFIG, binary_of(change))


def test_each_size_has_its_own_workspace() -> None:
    session, case = host.open("host"), small_case(CENTRE, PROBLEM)
    with CaseInMemory(session, CENTRE, PROBLEM, case.inputs) as placed:
        placed.poison(POISONS[1])
        for width, n_chunks in ((32, 4), (64, 2)):
            geometry = CENTRE.launch(PROBLEM, CENTRE.space.parse({"WIDTH": width}))
            *given, sums = placed.arguments(geometry)
            assert len(given) == 3 and (sums.read().view(np.uint8) == POISONS[1]).all()
            assert sums.read().shape == (3, n_chunks)


def test_what_differs_in_a_later_launch_changes_the_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> str:
        return conditions_of(CENTRE, PROBLEM, CONFIG, Protocol())

    first, of = told(), type(CENTRE).launch
    assert told() == first
    digests = {first}
    for change in ({"function": "centre"}, {"arguments": ("centred", "values", "sums", "n", "n")}, {"grid": (9, 3, 1)}):
        monkeypatch.setattr(type(CENTRE), "launch", lambda self, p, c, to=change: _changed(of(self, p, c), to))
        digests.add(told())
    assert len(digests) == 4


def _changed(launch: Launch, change: dict[str, Any]) -> Launch:
    assert launch.then is not None
    positions = (*(launch.then.positions or ()), 2) if "arguments" in change else launch.then.positions
    return replace(launch, then=replace(launch.then, positions=positions, **change))


def test_limits_hold_for_each_launch() -> None:
    geometry = CENTRE.launch(PROBLEM, CONFIG)
    assert geometry.then is not None
    large = replace(geometry, then=replace(geometry.then, shared_bytes=1 << 20))
    with pytest.raises(TrialFailure, match=r"subtract\(\): 1048\d+ bytes of shared memory in a block") as caught:
        check_limits(binary_of(), large, host.DEVICE)
    assert caught.value.status == Status.RESOURCES


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (Launch((1, 1, 1), (32, 1, 1), function="other"), r"has no launch of centre\(\), whose name is the kernel's"),
        (Launch((1, 1, 1), (32, 1, 1), arguments=("sums",)), r"has centre\(\) take sums; it may take .*centred, val"),
        (
            Launch((1, 1, 1), (32, 1, 1), then=Launch((1, 1, 1), (9, 1, 1), workspace={"a": array_workspace("f4", 1)})),
            "a later launch with a workspace",
        ),
    ],
)
def test_launches_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch, launch: Launch, why: str) -> None:
    class Wrong(type(CENTRE)):
        kernel_name = "centre"

        def launch(self, problem: Any, config: Any) -> Launch:
            return launch

    with pytest.raises(TrialFailure, match=why):
        Wrong().launch(PROBLEM, CONFIG)


def test_a_sweep_records_each_launch(tmp_path: Path) -> None:
    found = autotune.sweep(str(DEFINITIONS / "centre.py"), device="simulated", results=tmp_path, effort="quick")
    row = next(trial for trial in SweepFolder(found.path).trials() if trial.median_s)
    assert [launch["function"] for launch in row.launches] == ["centre", "subtract"]
    assert row.workspace_bytes == 4 * 3 * -(-100 // row.config["WIDTH"])


def test_a_workspace_is_no_input_and_no_output() -> None:
    spec = array_workspace(np.float32, 3)
    assert not spec.read and not spec.is_compared
