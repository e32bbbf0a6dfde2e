"""A field that is added to a problem: what was recorded before goes on, and is called what it was called."""

import dataclasses
import json
from pathlib import Path

import pytest

from autotune import Config, UsageError, emit
from autotune.core.problem import baked_values, named_fields, problem_name
from autotune.recommend.distance import MISMATCH, apart
from autotune.records.about import About
from autotune.records.as_recorded import problem_of
from autotune.records.folder import find_sweeps
from autotune.rendering.render import render
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..sweep.test_verdict import copied_example
from .test_standing import HELD, TEMPLATE, rows, sweep

FIELD = "    n_time: int = baked(1024,"
ADDED = '    weight: int = baked(1, "what each sample counts", added=True)\n'
OLD, NEW = "n_time=1024,n_chan=65536", "weight=2,n_time=1024,n_chan=65536"


def with_field(definition: Path) -> None:
    """Adds a field to the copied example: power is multiplied by it."""
    text = definition.read_text()
    for before, after in ((FIELD, ADDED + FIELD), ("np.abs(voltage", "problem.weight * np.abs(voltage")):
        assert text.count(before) == 1
        text = text.replace(before, after)
    definition.write_text(text)
    template = definition.with_name(TEMPLATE)
    source, store = template.read_text(), "= partial[0][threadIdx.x]"
    assert store in source
    factor = '{{ "" if problem.weight == 1 else problem.weight ~ " * " }}'
    template.write_text(source.replace(store, f"= {factor}partial[0][threadIdx.x]"))


@pytest.mark.quick
def test_a_problem_is_called_and_rendered_as_before(tmp_path: Path) -> None:
    before, definition = load_kernel(EXAMPLE), copied_example(tmp_path / "after")
    config, text = Config(before.default), render(before, before.tuned[0], Config(before.default)).source
    with_field(definition)
    kernel = load_kernel(str(definition))
    old, new = kernel.problem(), kernel.problem({"weight": 2})
    assert (problem_name(old), problem_name(new)) == (OLD, NEW)
    assert kernel.problem({"weight": 1}) == old and kernel.problem({"weight": 2, "n_chan": 7}).n_chan == 7
    assert (baked_values(old), baked_values(new)) == ({"n_time": 1024}, {"weight": 2, "n_time": 1024})
    assert render(kernel, old, config).source == text
    assert "[weight=2,n_time=1024|" in render(kernel, new, config).name
    assert apart(named_fields(new), named_fields(old)) == MISMATCH


@pytest.mark.quick
def test_a_record_is_read_with_what_older_ones_mean(tmp_path: Path) -> None:
    """The field may be missing, not only half: fields that were always there may not."""
    definition = copied_example(tmp_path / "kernel")
    with_field(definition)
    kernel = load_kernel(str(definition))
    fields = {"n_time": 100, "n_chan": 50}
    device, default = {"name": "a", "kind": "host", "arch": "host"}, dict(kernel.default)
    about = About.read(
        {"kernel": "detect", "problem": fields, "device": device, "default": default}
        | {"baked": ["n_time"], "runtime": ["n_chan"]}
    )
    assert problem_of(kernel, about) == kernel.problem(fields)
    named = dataclasses.replace(about, problem={**fields, "weight": 2}, baked=("weight", "n_time"))
    assert problem_of(kernel, named) == kernel.problem({**fields, "weight": 2})
    for wrong, why in (
        ({"baked": ("n_time", "weight")}, "lacks the problem's field weight"),
        ({"baked": ()}, "has the baked fields weight, n_time, but its record has others"),
        ({"problem": {**fields, "weight": "2"}}, "weight='2' of the record is not a plain value of the type int"),
    ):
        with pytest.raises(UsageError, match=why):
            problem_of(kernel, dataclasses.replace(about, **wrong))


def test_records_and_packages_go_on(tmp_path: Path) -> None:
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    sweep(definition, results)
    n = rows(results)
    with_field(definition)
    assert f"{n} {HELD}" in sweep(definition, results) and rows(results) == n, "nothing is swept anew"
    sweep(definition, results, "--problem", "weight=2")
    folders = sorted(find_sweeps(results), key=lambda one: one.path)
    sizes = folders[0].path.name.removeprefix("n_time=1024,")
    assert [one.path.name for one in folders] == [f"n_time=1024,{sizes}", f"weight=2,n_time=1024,{sizes}"]
    emit(results, tmp_path / "tuned", kernels=[definition])
    wisdom = json.loads((tmp_path / "tuned" / "wisdom.json").read_text())
    found = [entry["baked"] for entry in wisdom["entries"]]
    assert sorted(found, key=len) == [{"n_time": 1024}, {"weight": 2, "n_time": 1024}]
