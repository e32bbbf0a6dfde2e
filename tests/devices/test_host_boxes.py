"""Barriers in shared memory and copies of boxes on the host: what is wrong with them shows in one of few schedules."""

import re

import numpy as np
import pytest

from autotune import Launch, TensorMap, TrialFailure

from .bench import Bench, with_library

TEXT = with_library("tma", "boxes")
BUGS = {
    "nobody waits for copies": ("wait(copied + stage * 8, i / STAGES % 2);", "", "nobody has written|differs"),
    "nor for those who read": ("wait(released + stage * 8, i / STAGES % 2 ^ 1);", "", "differs|deadlock|have been"),
    "a parity": ("i / STAGES % 2 ^ 1", "i / STAGES % 2", r"deadlock: .* wait at mbarrier.try_wait \[text.cu.j2:\d+\]"),
    "too many are expected": ("* 8, CONSUMERS)", "* 8, CONSUMERS + 1)", "deadlock"),
    "too many arrive": (
        "if (lane == 0)\n            arrive",
        "arrive",
        "deadlock|all 2 arrivals of the phase have been",
    ),
    "no barrier": ("init_barrier(released + i * 8, CONSUMERS);", "", "was never initialised"),
    "nobody is expected": ("* 8, CONSUMERS)", "* 8, 0)", "nobody is expected"),
    "where a box starts": ("i * WORDS, first_row", "i * WORDS + 1, first_row", "starts at byte 4, no multiple of 16"),
    "where it goes": ("base + stage * STAGE, &map", "base + stage * STAGE + 64, &map", "no multiple of 128"),
    "bytes expected": ("* 8, STAGE);", "* 8, STAGE + 16);", "deadlock"),
    "the last box": (
        "        wait(copied",
        "        if (i < n_boxes - 1) wait(copied",
        "were under way|differs|nobody has",
    ),
}


def outcome(host: Bench, text: str, build: str, seed: int, width: int = 16) -> str:
    """The failure's message, or whether the output differs from a right one."""
    given = np.arange(32 * 160, dtype=np.uint32).reshape(32, 160)
    box_map = TensorMap(1, (160, 32), (640,), (width, 32), swizzle=64, element=4)
    launch = Launch((1, 1, 1), (96, 1, 1), 3 * (2048 + 16), (box_map,))
    arguments = {"out": np.zeros((32, 16), np.uint32), "in": given, "n": np.int32(10), "y": np.int32(0)}
    try:
        out = host.run("boxes", arguments, launch, build=build, outputs=("out",), seed=seed, text=text)["out"]
    except TrialFailure as failure:
        assert failure.status == "launch_failed"
        return failure.message
    return "right" if (out == given.reshape(32, 10, 16).sum(axis=1)).all() else "differs"


@pytest.mark.parametrize("name", BUGS)
def test_bugs_show(host: Bench, name: str) -> None:
    old, new, finds = BUGS[name]
    assert old in TEXT
    outcomes = [outcome(host, TEXT.replace(old, new), build, seed) for build in host.builds for seed in range(8)]
    found = [each for each in outcomes if each != "right"]
    assert found, "all is right"
    assert any(re.search(finds, each) for each in found), found


def test_what_is_right_passes(host: Bench) -> None:
    assert {outcome(host, TEXT, build, seed) for build in host.builds for seed in range(16)} == {"right"}


def test_rows_of_a_box_are_whole_pieces(host: Bench) -> None:
    assert "its rows are of 60 bytes, no multiple of 16" in outcome(host, TEXT, "plain", 0, width=15)
