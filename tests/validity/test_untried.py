"""What sweeps could not try, since their kernel's space has had it only after them."""

import logging
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from autotune import Config, Space, since, when
from autotune.cli.commands.show import show
from autotune.core.definition import AnyKernel, baked_values, runtime_fields
from autotune.emit.winners import gather, valid
from autotune.records.about import About
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.source.registry import load_kernel
from autotune.validity.untried import untried, value_names

from ..conftest import EXAMPLE
from ..recorded import DEFAULT, H200, TALL, WIDE, record, rewrite_about

SPACE = {name: parameter.values for name, parameter in load_kernel(EXAMPLE).space.parameters.items()}
LESS = {**SPACE, "BLOCK_T": (1, 2, 4, 8)}  # TALL has 16


def about(kernel: AnyKernel, space: dict[str, Any], **settings: Any) -> About:
    problem = kernel.tuned[0]
    fields = {"baked": tuple(baked_values(problem)), "runtime": runtime_fields(type(problem))}
    return About(
        kernel=kernel.name,
        problem=asdict(problem),
        device=H200,
        default=DEFAULT,
        space=space,
        settings=settings,
        **fields,
    )


@pytest.fixture
def kernel() -> AnyKernel:
    """The example, whose space has grown: FOLD is newer than some records, and STEPS comes with it."""
    kernel = copy(load_kernel(EXAMPLE))
    values = {name: parameter.values for name, parameter in kernel.space.parameters.items()}
    grown = Space(**values, FOLD=since("tree", ("tree", "atomic", "host")), STEPS=when((1, 2), FOLD="atomic"))

    @grown.constraint("no device folds on the host", FOLD="host")
    def folds_itself(problem: Any, config: Config, device: Any) -> bool:
        return False

    kernel.space = grown
    return kernel


def test_values_that_are_newer_and_allowed_are_told(kernel: AnyKernel) -> None:
    assert untried(kernel, about(kernel, dict(SPACE))) == {"FOLD": ("atomic",)}
    whole = {name: parameter.values for name, parameter in kernel.space.parameters.items()}
    assert untried(kernel, about(kernel, whole)) == {}
    more = untried(kernel, about(kernel, LESS))
    assert more == {"BLOCK_T": (16,), "FOLD": ("atomic",)} and value_names(more) == ["BLOCK_T=16", "FOLD=atomic"]


def test_what_the_sweep_was_asked_to_leave_out_is_not_told(kernel: AnyKernel) -> None:
    asked = about(kernel, LESS, restrict={"FOLD": ["tree"], "BLOCK_T": [4, 16]})
    assert untried(kernel, asked) == {"BLOCK_T": (16,)}


def test_nothing_is_told_of_a_record_that_does_not_say_its_space(kernel: AnyKernel) -> None:
    assert untried(kernel, about(kernel, {})) == {}


def test_packages_and_tables_say_so(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SweepRecord, "n_configs", 1)
    path = record(tmp_path, H200, {WIDE: 2.0})
    assert gather(valid([tmp_path], kernels=[EXAMPLE]))[0].entries[0].evidence.n_configs == 1
    rewrite_about(path, space={name: list(values) for name, values in LESS.items()})
    with caplog.at_level(logging.WARNING):
        found = gather(valid([tmp_path], kernels=[EXAMPLE]))[0].entries[0].evidence
    assert found.n_configs is None, "one is newer"
    assert "detect: 1 sweep could not try BLOCK_T=16, which are newer" in caplog.text
    monkeypatch.setattr("autotune.analysis.show.recorded_kernel", lambda content, named: load_kernel(EXAMPLE))
    show([path])
    assert "BLOCK_T=16. Sweep it again" in " ".join(capsys.readouterr().out.split())
    rewrite_about(path, space={name: list(values) for name, values in SPACE.items()})
    assert untried(load_kernel(EXAMPLE), SweepFolder(path).about()) == {} and TALL.BLOCK_T == 16
