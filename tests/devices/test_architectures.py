"""Architectures that are known without a GPU: their limits, and what is left out where instructions are missing."""

import pytest

from autotune.core.architecture import ARCHITECTURES
from autotune.devices import cuda
from autotune.source.registry import load_kernel

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("arch", "n_bytes"),
    [("sm_80", 166912), ("sm_90", 232448), ("sm_100", 232448), ("sm_103", 232448), ("sm_120", 101376)],
)
def test_shared_bytes_of_a_block(arch: str, n_bytes: int) -> None:
    device = cuda.of_architecture(arch)
    assert (device.arch, device.max_shared_bytes, device.registers_per_block) == (arch, n_bytes, 65536)
    assert device.has_shared(n_bytes) and not device.has_shared(n_bytes + 1)


@pytest.mark.parametrize("arch", sorted(set(ARCHITECTURES) - {"sm_75", "sm_86", "sm_89"}))
@pytest.mark.parametrize("name", ["correlate", "ddc"])
def test_wgmma_is_of_one_architecture_only(name: str, arch: str) -> None:
    kernel, device = load_kernel(name), cuda.of_architecture(arch)
    problem = kernel.tuned[0]
    found = kernel.space.enumerate(problem, device, {"MMA": kernel.space.parameters["MMA"].values})
    instructions = {str(config.get("MMA")).partition("_")[0] for config in found.configs} - {"None"}
    assert instructions == ({"mma", "wgmma"} if arch == "sm_90" else {"mma"})
    assert kernel.space.broken(problem, kernel.default_config(problem, device), device) is None
