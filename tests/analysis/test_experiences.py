"""What sweeps teach is the same whether kernels are learnt one by one or beside each other."""

from pathlib import Path

import pytest

from autotune.analysis.experiences import experiences
from autotune.recommend.experience import as_json
from autotune.records.record import SweepRecord, read_sweeps
from autotune.source.registry import load_kernel

RESULTS = Path(__file__).parents[2] / "results" / "NVIDIA_H200"
NAMES = ("accumulate", "pfb_fir")
FEW = 12


def test_kernels_that_are_learnt_beside_each_other_know_what_each_knows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = {name: load_kernel(name) for name in NAMES}
    sweeps = list[SweepRecord]()
    for name, kernel in kernels.items():
        sweeps += [sweep.of_space(kernel.space) for sweep in read_sweeps([RESULTS / name])[0][:FEW]]
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "beside"))
    beside = experiences(sweeps, kernels)
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "alone"))
    alone = {name: experiences(sweeps, {name: kernel})[name] for name, kernel in kernels.items()}
    assert list(beside) == list(NAMES) and as_json(beside.values()) == as_json(alone.values())
