"""A definition in an emitted package is loaded with this autotune's words, and without running the package."""

import sys
from pathlib import Path

import numpy as np
import pytest

from autotune import Kernel
from autotune.emit.writer import write_package
from autotune.rendering.render import render
from autotune.source.registry import kernel_reference, load_kernel

from ..recorded import DEFAULT, H200, KERNELS, TALL, WIDE, record

pytestmark = pytest.mark.quick


def test_a_definition_of_a_package_is_a_kernel_here(tmp_path: Path) -> None:
    record(tmp_path / "results", H200, {DEFAULT: 3.0, WIDE: 2.0, TALL: 4.0})
    folder = write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    path, before = folder / "kernels" / "detect.py", sys.modules.get("tuned")
    kernel = load_kernel(str(path))
    assert isinstance(kernel, Kernel) and kernel.source_path == path and sys.modules.get("tuned") is before
    problem = kernel.problem({"n_time": 100, "n_chan": 4096})
    source = render(kernel, problem, WIDE)
    assert (folder / "sources" / f"{source.key}.cu").read_text() == source.source
    assert kernel.inputs(problem, np.random.default_rng(0))["voltage"].shape == (100, 4096)
    assert load_kernel(kernel_reference(kernel)) is not None and kernel_reference(kernel) == str(path)


def test_a_definition_in_several_files_is_one_too(tmp_path: Path) -> None:
    ddc = load_kernel("ddc")
    fields = {"taps": 64, "decimation": 8, "sample_bits": 8}
    config = ddc.default_config(ddc.problem(fields), H200)
    record(tmp_path / "results", H200, {config: 2.0}, problem=fields, definition="ddc", default=config)
    folder = write_package([tmp_path / "results"], tmp_path / "tuned")
    kernel = load_kernel(str(folder / "kernels" / "ddc" / "ddc.py"))
    assert kernel.name == "ddc" and {path.parent for path in kernel.source_paths} == {folder / "kernels" / "ddc"}
    assert render(kernel, kernel.problem(fields), config).source == render(ddc, ddc.problem(fields), config).source


def test_a_folder_of_that_name_without_a_package_is_a_plain_one(tmp_path: Path) -> None:
    from ..conftest import EXAMPLE

    (tmp_path / "kernels").mkdir()
    path = tmp_path / "kernels" / "detect.py"
    path.write_text(Path(EXAMPLE).read_text())
    assert load_kernel(str(path)).source_path == path
