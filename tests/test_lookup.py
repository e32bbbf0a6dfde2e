"""Which tier answers, what it says, and what it never does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from autotune import Config, Device, UsageError
from autotune.catalogue import load_kernel
from autotune.lookup import choose, find_device
from autotune.wisdom import Elsewhere, Entry, Evidence, Fallback, Wisdom

from .conftest import EXAMPLE
from .recorded import A100, DEFAULT, H100, H200, HOST, TALL, WIDE

KERNEL = load_kernel(EXAMPLE)
BAKED = {"n_time": 100}


def entry(device: Device, n_chan: int, config: Config, *, baked: Mapping[str, Any] = BAKED, **more: Any) -> Entry:
    evidence = Evidence(median_s=2e-5, default_median_s=3e-5, verified_on=("a", "b"), max_error=1e-7, registers=40)
    return Entry("detect", device, baked, {"n_chan": n_chan}, config, f"key-{config.BLOCK_C}", evidence, **more)


def wisdom(*entries: Entry, fallbacks: tuple[Fallback, ...] | None = None) -> Wisdom:
    usual = (Fallback("detect", BAKED, DEFAULT, "key-default", ("voltage",)),)
    return Wisdom(entries, usual if fallbacks is None else fallbacks)


SMALL_AND_LARGE = wisdom(
    entry(H200, 1000, WIDE, elsewhere=(Elsewhere("NVIDIA H200", {"n_chan": 100_000}, 0.4),)),
    entry(H200, 100_000, TALL),
)


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


def test_exact_brings_its_evidence() -> None:
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 1000}, H200)
    assert choice.expected_loss == 0
    assert choice.evidence is not None and choice.evidence.speed_up == pytest.approx(1.5)
    text = str(choice)
    for part in ("exact", "1.50 times", "verified on 2 problems", "40 registers", "NVIDIA H200", "sources/key-128.cu"):
        assert part in text


def test_nearest_tells_the_recorded_loss() -> None:
    assert choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 2000}, H200).expected_loss == 0.4
    choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 50_000}, H200)
    assert choice.expected_loss is None and "no record tells" in str(choice)


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


def test_architecture_tells_the_loss_on_another_gpu_of_it() -> None:
    moved = (Elsewhere("NVIDIA A100", {"n_chan": 1000}, 0.9), Elsewhere("NVIDIA H200", {"n_chan": 1000}, 0.07))
    known = wisdom(entry(H100, 1000, TALL, elsewhere=moved), entry(H200, 10**6, WIDE), entry(A100, 1000, WIDE))
    choice = choose(known, KERNEL, BAKED, {"n_chan": 1000}, replace(H200, name="NVIDIA GH200"))
    assert (choice.tier, choice.expected_loss) == ("architecture", 0.07), "the A100 is another architecture"


def test_other_architecture_gets_the_default() -> None:
    choice = choose(wisdom(entry(H200, 1000, WIDE)), KERNEL, BAKED, {"n_chan": 1000}, A100)
    assert (choice.tier, choice.config, choice.source_key) == ("default", DEFAULT, "key-default")
    assert choice.evidence is None
    assert choice.expected_loss == pytest.approx(0.5), "the default was 1.5 times slower where both were measured"
    assert "autotune sweep --kernel detect --problem n_time=100" in choice.why


@pytest.mark.parametrize(("tuned_on", "asked_for"), [(HOST, H200), (H200, HOST)])
def test_host_and_gpu_are_never_mixed(tuned_on: Device, asked_for: Device) -> None:
    choice = choose(wisdom(entry(tuned_on, 1000, WIDE)), KERNEL, BAKED, {"n_chan": 1000}, asked_for)
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
    assert "not possible here" in choice.why and "max_threads_per_block" in choice.why


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
    assert find_device(known, "NVIDIA A100") == A100
    assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, find_device(known, "sm_90")).tier == "architecture"
    assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, find_device(known, "sm_120")).tier == "default"
    for name, arch, tier in (
        ("NVIDIA H100 80GB HBM3", "sm_90", "architecture"),
        ("NVIDIA A100-SXM4-80GB", "sm_80", "architecture"),
        ("NVIDIA GeForce RTX 4090", "sm_89", "default"),
        ("A GPU of the future", "unknown", "default"),
    ):
        device = find_device(known, name)
        assert (device.name, device.arch) == (name, arch)
        assert choose(known, KERNEL, BAKED, {"n_chan": 1000}, device).tier == tier


def test_choice_as_json_is_plain() -> None:
    import json

    for device in (H200, A100):
        choice = choose(SMALL_AND_LARGE, KERNEL, BAKED, {"n_chan": 77}, device)
        again = json.loads(json.dumps(choice.as_json()))
        assert again["tier"] == choice.tier and again["config"]["BLOCK_C"] == choice.config.BLOCK_C
