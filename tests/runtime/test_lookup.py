"""Which tier answers, what it says, and what it never does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from autotune import Config, Device, UsageError
from autotune.core.problem import baked_values
from autotune.runtime.bounds import LOSS_AFTER, loss_after, missed_text
from autotune.runtime.lookup import Prediction, choose
from autotune.runtime.named_devices import device_named
from autotune.runtime.wisdom import Entry, Evidence, Fallback, Loss, Wisdom
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, HOST, TALL, WIDE

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
BAKED = {"n_time": 100}
PREPARED = ("accumulate", "beamform", "channelise", "correlate", "ddc", "dequantize", "pfb_fir", "postproc")


def entry(device: Device, n_chan: int, config: Config, *, baked: Mapping[str, Any] = BAKED, **more: Any) -> Entry:
    evidence = Evidence(
        **dict(median_s=2e-5, default_median_s=3e-5, verified_on=("a", "b"), max_error=1e-7, registers=40),
        **dict(n_tried=30, n_configs=200),
    )
    return Entry("detect", device, baked, {"n_chan": n_chan}, config, f"key-{config.BLOCK_C}", evidence, **more)


def wisdom(*entries: Entry) -> Wisdom:
    return Wisdom(entries, (Fallback("detect", BAKED, DEFAULT, "key-default", ("voltage",)),))


def loss(where: str, tier: str, median: float, n: int = 14) -> Loss:
    return Loss(where, tier, 0.1, n, median, 3 * median)


class Known:
    """Knows losses, and predicts one config or nothing."""

    def __init__(self, *losses: Loss, predicts: Prediction | str = "nothing is known") -> None:
        self.losses, self.predicts = losses, predicts

    def predicted(self, kernel: Any, problem: Any, device: Device) -> Prediction | str:
        return self.predicts

    def default(self, kernel: Any, problem: Any, device: Device) -> Prediction | str:
        return "no Jinja2"

    def loss(self, kernel: Any, problem: Any, device: Device, tier: str, config: Config) -> Loss | None:
        return next((loss for loss in self.losses if loss.tier == tier), None)


SMALL_AND_LARGE = wisdom(entry(H200, 1000, WIDE), entry(H200, 100_000, TALL))


@pytest.mark.parametrize(
    ("n_chan", "config", "tier"),
    [
        (1000, WIDE, "exact"),
        (100_000, TALL, "exact"),
        (9_000, WIDE, "nearest"),  # the border is at 10,000, the geometric mean
        (11_000, TALL, "nearest"),
        (1, WIDE, "nearest"),
        (10**9, TALL, "nearest"),
    ],
)
def test_nearest_size_is_by_ratio(n_chan: int, config: Config, tier: str) -> None:
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": n_chan}, H200)
    assert (choice.config, choice.tier) == (config, tier)


def test_the_command_that_tunes_names_the_file_of_a_kernel_that_is_not_installed() -> None:
    known = replace(SMALL_AND_LARGE, definitions={"detect": "/a b/it's.py"})
    wanted = """autotune sweep --kernel '/a b/it'"'"'s.py' --problem n_time=100"""
    assert wanted in choose(known, KERNEL, BAKED, {"n_chan": 1000}, A100).why
    with pytest.raises(UsageError, match=r"To tune it: autotune sweep --kernel '/a b/it"):
        choose(known, KERNEL, {"n_time": 7}, None, H200)
    assert "autotune sweep --kernel detect " in choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 1000}, A100).why


def test_exact_brings_its_evidence() -> None:
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 1000}, H200)
    assert (choice.expected_loss, choice.bound) == LOSS_AFTER[28]
    assert choice.evidence is not None and choice.evidence.speed_up == pytest.approx(1.5)
    text = str(choice)
    assert "% in nine of ten sweeps; 30 of 200 configs were tried)" in text
    for part in ("exact", "1.500 x", "verified on 2 problems", "40 registers", "NVIDIA H200", "sources/key-128.cu"):
        assert part in text


def test_a_portfolios_member_tells_its_own_regret() -> None:
    choice = choose(wisdom(entry(H200, 1000, WIDE, regret=0.013)), KERNEL, BAKED, {"n_chan": 1000}, H200)
    assert (choice.tier, choice.left_out) == ("exact", None)
    assert choice.expected_loss == pytest.approx(0.013 + LOSS_AFTER[28][0])
    assert "; 1.3 % of it measured, as the fastest is not in the portfolio)" in str(choice)


def test_nearest_tells_what_was_lost_where_a_problem_was_left_out() -> None:
    known = Known(loss("NVIDIA H200", "nearest", 0.012))
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 2000}, H200, known)
    assert (choice.expected_loss, choice.bound) == (0.012, pytest.approx(0.036))
    assert choice.left_out == known.losses[0]
    told = "expected slowdown: 1.2 % (median; at most 3.6 % in nine of ten, from 14 held-out problems)"
    assert told in str(choice)
    assert choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 1000}, H200, known).left_out is None, "exact"


def test_where_nothing_was_left_out_nothing_is_said() -> None:
    for able in (None, Known(loss("NVIDIA H200", "default", 0.1))):
        choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 2000}, H200, able)
        assert choice.expected_loss is None and "expected slowdown: unknown" in str(choice)


@pytest.mark.parametrize(
    ("n_chan", "nearest", "learnt", "tier"),
    [
        (4000, 0.02, 0.03, "nearest"),
        (4000, 0.03, 0.02, "predicted"),
        (4000, 0.02, 0.02, "nearest"),  # it has run
        (4000, None, 0.5, "predicted"),  # what is known before what is not
        (4000, 0.5, None, "nearest"),
        (4000, None, None, "nearest"),
        (1100, 0.5, 0.01, "nearest"),  # so near that nothing is predicted
        (1000, 0.5, 0.01, "exact"),
    ],
)
def test_the_least_bound_goes_first(n_chan: int, nearest: float | None, learnt: float | None, tier: str) -> None:
    left_out = None if learnt is None else loss("NVIDIA H200", "predicted", learnt)
    prediction = Prediction(TALL, "key-learnt", "learnt", left_out=left_out)
    known = Known(*([] if nearest is None else [loss("NVIDIA H200", "nearest", nearest)]), predicts=prediction)
    choice = choose(wisdom(entry(H200, 1000, WIDE)), KERNEL, BAKED, {"n_chan": n_chan}, H200, known)
    assert (choice.tier, choice.config) == (tier, TALL if tier == "predicted" else WIDE)


def test_unknown_sizes_take_what_was_tuned_on_this_gpu() -> None:
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, None, H200)
    assert (choice.tier, choice.config) == ("exact", TALL), "the kernel's own default problem has 65,536 channels"
    assert "each call" in choice.why


def test_same_architecture_is_second_to_the_same_gpu() -> None:
    both = wisdom(entry(H100, 1000, TALL), entry(H200, 50_000, WIDE))
    assert choose(both, KERNEL, BAKED, {"n_chan": 1000}, H200).config == WIDE
    other = replace(H200, name="NVIDIA GH200")
    choice = choose(both, KERNEL, BAKED, {"n_chan": 1000}, other)
    assert (choice.tier, choice.config) == ("architecture", TALL)
    assert "NVIDIA H100 PCIe" in choice.why and choice.expected_loss is None


def test_a_loss_of_other_devices_is_told_as_theirs() -> None:
    known, told = wisdom(entry(H100, 1000, TALL)), "7.0 % (median; at most 21.0 % in nine of ten, from 14 held-out"
    for where, expected, start in (
        ("sm_90", None, f"unknown on this GPU; on others of sm_90: {told}"),
        ("NVIDIA H200", None, f"unknown on this GPU; on NVIDIA H200: {told}"),
        ("NVIDIA H20", 0.07, told),
    ):
        able, device = Known(loss(where, "architecture", 0.07)), replace(H200, name="NVIDIA H20")
        choice = choose(known, KERNEL, BAKED, {"n_chan": 1000}, device, able)
        assert (choice.tier, choice.expected_loss) == ("architecture", expected) and choice.loss.startswith(start)


def test_other_architecture_gets_the_default() -> None:
    choice = choose(wisdom(entry(H200, 1000, WIDE)), KERNEL, BAKED, {"n_chan": 1000}, A100, Known())
    assert (choice.tier, choice.config, choice.source_key) == ("default", DEFAULT, "key-default")
    assert choice.evidence is None
    assert choice.expected_loss is None and choice.loss == "unknown"
    assert "autotune sweep --kernel detect --problem n_time=100" in choice.why


@pytest.mark.parametrize(("tuned_on", "asked_for"), [(HOST, H200), (H200, HOST)])
def test_host_and_gpu_are_never_mixed(tuned_on: Device, asked_for: Device) -> None:
    known = wisdom(entry(tuned_on, 1000, WIDE))
    choice = choose(known, KERNEL, BAKED, {"n_chan": 1000}, asked_for)
    assert (choice.tier, choice.config) == ("default", DEFAULT)
    assert choice.expected_loss is None, "a ratio of host times says nothing of a GPU"


def test_times_of_different_gpus_are_not_compared() -> None:
    """The far faster figure of the other GPU changes nothing."""
    fast = replace(entry(H100, 1000, TALL), evidence=Evidence(median_s=1e-9))
    assert choose(wisdom(fast, entry(H200, 1000, WIDE)), KERNEL, BAKED, {"n_chan": 1000}, H200).config == WIDE


def test_what_the_device_cannot_run_is_passed_over() -> None:
    small = replace(H200, max_threads_per_block=256)  # WIDE has 512 threads
    known = wisdom(entry(H200, 1000, WIDE), entry(H200, 10**6, Config(BLOCK_C=32, BLOCK_T=8, UNROLL=4)))
    choice = choose(known, KERNEL, BAKED, {"n_chan": 1000}, small)
    assert choice.config.BLOCK_T == 8
    assert "cannot run here" in choice.why and "max_threads_per_block" in choice.why


def test_grid_limits_count() -> None:
    narrow = replace(H200, max_grid=(10, 1, 1))
    with pytest.raises(UsageError, match=r"gridDim.x"):
        choose(wisdom(entry(H200, 1000, WIDE)), KERNEL, BAKED, {"n_chan": 10**6}, narrow)


def test_unknown_baked_fields_are_listed_with_the_command() -> None:
    known = wisdom(entry(H200, 1000, WIDE), entry(A100, 1000, WIDE, baked={"n_time": 64}))
    with pytest.raises(UsageError) as raised:
        choose(known, KERNEL, {"n_time": 99}, None, H200)
    message = str(raised.value)
    assert "n_time=100 (NVIDIA H200)" in message and "n_time=64 (NVIDIA A100)" in message
    assert "autotune sweep --kernel detect --problem n_time=99" in message


def test_devices_by_name() -> None:
    known = wisdom(entry(H200, 1000, WIDE), entry(A100, 1000, TALL))
    assert device_named(known, "NVIDIA A100") == A100
    for number in ("cuda:0", "cuda"):
        with pytest.raises(UsageError, match="is the number of a GPU; give a name"):
            device_named(known, number)
    assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, device_named(known, "sm_90")).tier == "architecture"
    assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, device_named(known, "sm_120")).tier == "default"
    for name, arch, tier in (
        ("NVIDIA H100 80GB HBM3", "sm_90", "architecture"),
        ("NVIDIA A100-SXM4-80GB", "sm_80", "architecture"),
        ("NVIDIA GeForce RTX 4090", "sm_89", "default"),
        ("A GPU of the future", "unknown", "default"),
    ):
        device = device_named(known, name)
        assert (device.name, device.arch) == (name, arch)
        assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, device).tier == tier


@pytest.mark.parametrize(
    ("gpu", "arch"),
    [("Tesla V100-SXM2-16GB", "sm_70"), ("Tesla T4", "sm_75"), ("NVIDIA GeForce RTX 2080 Ti", "sm_75"), ("", "sm_75")],
)
def test_a_gpu_that_is_too_old_is_told_in_one_line(gpu: str, arch: str) -> None:
    nothing = wisdom()
    device = device_named(nothing, gpu or arch)
    assert device.arch == arch
    assert choose(nothing, KERNEL, BAKED, None, device).tier == "default"  # its source compiles everywhere
    for name in PREPARED:
        kernel = load_kernel(name)
        with pytest.raises(UsageError, match=rf"^{name} needs a GPU of sm_80 or later; .*{arch}.* is older$"):
            choose(nothing, kernel, baked_values(kernel.tuned[0]), None, device)
        kernel.check_arch(device_named(nothing, "NVIDIA A100-SXM4-80GB"))


def test_choice_as_json_is_plain() -> None:
    import json

    for device in (H200, A100):
        choice = choose(
            SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 77}, device, Known(loss(H200.name, "nearest", 0.012))
        )
        again = json.loads(json.dumps(choice.as_json()))
        assert again["tier"] == choice.tier and again["config"]["BLOCK_C"] == choice.config.BLOCK_C
        assert (again["left_out"] or {}).get("n") == (14 if device == H200 else None)


def test_what_a_sweep_missed_follows_from_its_trials() -> None:
    assert loss_after(60, 60) == (0.0, 0.0) and missed_text(60, 60) == "0.0 % (all 60 configs were tried)"
    assert loss_after(3, None) is None and missed_text(3, 1000) == "unknown, since only 3 of 1000 configs were tried"
    assert missed_text(0, None) == "unknown" and loss_after(500, 501) == LOSS_AFTER[max(LOSS_AFTER)]
    bounds = [LOSS_AFTER[n] for n in sorted(LOSS_AFTER)]
    assert bounds == sorted(bounds, reverse=True) and all(0 <= median < bound for median, bound in bounds)
