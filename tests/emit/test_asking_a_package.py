"""What a package answers when it is asked for a choice, and what each tier loses."""

import json
from pathlib import Path
from typing import Any

import pytest

from autotune import UsageError
from autotune.emit.winners import gather, valid
from autotune.runtime.bounds import LOSS_AFTER
from autotune.runtime.lookup import report_choice
from autotune.runtime.wisdom import Wisdom

from ..conftest import EXAMPLE
from ..recorded import H100, H200, WIDE, record
from .conftest import MEDIANS


@pytest.mark.quick
def test_report_is_the_packages_own_choice(package: Path) -> None:
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "NVIDIA H200")
    assert (answer["tier"], answer["config"]) == ("nearest", dict(WIDE))
    assert answer["expected_loss"] == pytest.approx(1.25 * (1 + LOSS_AFTER[6][0]) - 1, abs=1e-4)


@pytest.mark.parametrize(
    ("kernel", "values", "device", "message"),
    [
        ("ddc", {}, "NVIDIA H200", "it has detect"),
        ("detect", {"n_time": "many"}, "NVIDIA H200", "n_time"),
        ("detect", {"n_time": 100, "colour": 3}, "NVIDIA H200", r"'colour'.*has n_time, n_chan"),
    ],
)
def test_report_errors_are_usage_errors(
    package: Path, kernel: str, values: dict[str, Any], device: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        report_choice(package, kernel, values, device)


def test_report_needs_a_package(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a package"):
        report_choice(tmp_path, "detect", {}, "NVIDIA H200")


def test_damaged_wisdom_is_told(package: Path) -> None:
    path = package / "wisdom.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(UsageError, match="format 99"):
        Wisdom.load(path)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(UsageError, match="damaged"):
        Wisdom.load(path)


def test_two_definitions_of_one_name_cannot_share_a_package(tmp_path: Path) -> None:
    copy = tmp_path / "copied.py"
    copy.write_text(Path(EXAMPLE).read_text())
    copy.with_name("copied.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS)
    record(tmp_path / "results", H100, MEDIANS, definition=str(copy))
    with pytest.raises(UsageError, match=r"both define detect; name one of them"):
        gather(valid([tmp_path / "results"], kernels=[EXAMPLE, copy]))
    wisdom, _, kernels, _ = gather(valid([tmp_path / "results"], kernels=[copy]))
    assert (len(wisdom.entries), list(kernels)) == (2, ["detect"]), "both render as they were measured"
    assert kernels["detect"].source_path == copy


def test_losses_reach_the_one_who_asks(package: Path) -> None:
    """Two problems prove no bound below what choices of other kernels have."""
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "NVIDIA H200")
    known = answer["left_out"]
    assert (known["where"], known["tier"], known["n"], known["bound"]) == ("NVIDIA H200", "nearest", 2, 0.3)
    assert "(median; at most 30.0 % in nine of ten, from 2 held-out problems)" in answer["text"]
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "sm_75")
    assert (answer["tier"], answer["left_out"], answer["expected_loss"]) == ("default", None, None)
