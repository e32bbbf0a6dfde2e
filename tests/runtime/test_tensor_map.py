"""Tensor maps: what launches do with them where there is no GPU; that GPUs copy by them, test_correlate_wgmma says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from autotune.kernels.accumulate import Accumulate

from autotune import Launch, TensorMap, TrialFailure
from autotune.devices import find_device
from autotune.rendering.render import render
from autotune.runtime.tensor_map import addresses
from autotune.trial.case import CaseInMemory

from ..kernels.common import session_on

pytestmark = pytest.mark.quick

MAP = TensorMap(1, (64, 8), (64,), (64, 8), swizzle=64)


class Memory:
    ptr = 4096


class OnGpu:
    """As CuPy's arrays are."""

    data = Memory()


@pytest.mark.parametrize(("argument", "address"), [(OnGpu(), 4096), (8192, 8192), (np.int32(7), 0)])
def test_addresses_are_those_of_arrays(argument: Any, address: int) -> None:
    """Of CuPy's arrays, and of PyTorch's, which come as addresses; a scalar has none."""
    assert addresses([argument]) == [address]


def test_a_map_is_an_argument_on_the_host_too() -> None:
    """Which a kernel that does not take it refuses."""
    kernel, host = Accumulate(), find_device("host")
    problem = kernel.problem({"n_accumulators": 1, "n_channels": 1, "n_receivers": 2})
    config = kernel.default_config(problem, host.device)
    session = session_on(host)
    binary = host.module.compile(render(kernel, problem, config), host.device, ("plain",))
    launch: Launch = replace(kernel.launch(problem, config), maps=(MAP,))
    inputs, message = (
        kernel.inputs(problem, np.random.default_rng(0)),
        r"it has 6 parameters .*, 7 arguments were given",
    )
    with CaseInMemory(session, kernel, problem, inputs) as placed, pytest.raises(TrialFailure, match=message):
        placed.launch(session.load(binary, "plain"), launch)
