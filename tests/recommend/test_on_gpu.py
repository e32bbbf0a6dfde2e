"""What packages predict, checked and launched on a GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.emit.writer import write_package
from autotune.source.registry import all_kernels

from ..fake_gpu import import_package
from ..recorded import KERNELS
from .test_packaged import recorded_on

RESULTS = Path(__file__).parents[2] / "results"
ASKED: dict[str, dict[str, Any]] = {  # small, and none of them recorded
    "accumulate": {"n_accumulators": 5, "n_channels": 9, "n_receivers": 21},
    "channelise": {"taps": 7, "n_channels": 128, "sample_bits": 9, "spectra_per_heap": 11, "n_heaps": 3},
    "correlate": {"bits": 8, "layout": "batches", "n_receivers": 37, "n_times": 48, "n_channels": 5, "n_batches": 3},
    "ddc": {"taps": 99, "decimation": 11, "sample_bits": 9, "n_samples": 40001},
    "dequantize": {"out_type": "bfloat16", "missing": True, "n_beams": 3, "n_freqs": 7, "n_times": 1032},
    "pfb_fir": {"taps": 5, "n_channels": 90, "sample_bits": 7, "n_spectra": 33},
    "postproc": {"n_channels": 77, "bits": 4, "spectra_per_heap": 13, "n_heaps": 5},
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(ASKED))
def test_what_nobody_recorded_is_right(name: str, tmp_path: Path) -> None:
    """Checked at edge sizes by a package of one GPU's records itself, and called with inputs of the problem."""
    import cupy

    kernel = all_kernels()[name]
    folder = write_package([RESULTS / "NVIDIA_H200" / name], tmp_path / "tuned")
    package = import_package(folder, f"tuned_{name}")
    function = getattr(package, name)(**ASKED[name], verify=True)
    assert function.choice.verified and "edge sizes" in function.choice.why, function.choice
    problem = kernel.problem(ASKED[name])
    inputs = kernel.inputs(problem, np.random.default_rng(1))
    given = {n: cupy.asarray(v) if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
    function(**given)
    assert function.choice.config == getattr(package, name)(**ASKED[name]).choice.config


@pytest.mark.gpu
def test_a_wrong_config_gives_way(tmp_path: Path) -> None:
    """A template that is wrong for one config alone: its check at edge sizes finds it."""
    from autotune.devices import find_device

    device = find_device("cuda:0").device
    folder = write_package([recorded_on(device, tmp_path / "results")], tmp_path / "tuned", kernels=KERNELS)
    tuned = import_package(folder, "tuned_wrong")
    best = tuned.detect(n_time=100).choice.config
    template, sum_is = folder / "kernels" / "detect.cu.j2", "\n        power[c] = "
    wrong = f"{{% if config.BLOCK_C == {best.BLOCK_C} and config.BLOCK_T == {best.BLOCK_T} %}}1.01f * {{% endif %}}"
    assert template.read_text().count(sum_is) == 1
    template.write_text(template.read_text().replace(sum_is, f"{sum_is}{wrong}"))
    tuned = import_package(folder, "tuned_wrong_2")
    assert tuned.detect(n_time=100).choice.config == best, "unchecked, nothing shows"
    checked = tuned.detect(n_time=100, verify=True).choice
    assert checked.config != best and checked.verified and "gives way" in checked.why and "reference" in checked.why
