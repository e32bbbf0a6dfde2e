"""What the check build must find, and what it must let pass: the sections of bugs.cu."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from autotune import Launch, TrialFailure
from autotune.devices.base import Function

from .bench import Bench, variant

PATH = Path(__file__).parent / "bugs.cu"
N = 100
LAUNCH = Launch((2, 1, 1), (64, 1, 1), shared_bytes=256)


@dataclass(frozen=True)
class Section:
    name: str
    text: str
    line: int  # where it starts in bugs.cu
    finds: str | None
    culprit: int | None  # the line to be named

    @property
    def is_alone(self) -> bool:
        """Whether it is compiled alone: what lies beyond its memory should not be another section's."""
        return "of-bounds" in (self.finds or "")


def sections() -> list[Section]:
    found = []
    text = PATH.read_text()
    for match in re.finditer(r"^//@ (\w+)\n(.*?)(?=^//@|\Z)", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start(2)) + 1
        body = match[2]
        finds = re.search(r"^// finds: (.*)$", body, re.MULTILINE)
        culprit = next((line + i for i, row in enumerate(body.splitlines()) if "// HERE" in row), None)
        found.append(Section(match[1], body, line, finds[1] if finds else None, culprit))
    return found


@lru_cache
def loaded(host: Bench, build: str, *given: Section) -> Function:
    """Sections that are compiled together."""
    text = "".join(f'#line {section.line} "bugs.cu.j2"\n{section.text}' for section in given)
    first, *others = (section.name for section in given)
    compiled = host.target.module.compile(
        replace(variant(text, first), also=tuple(others)), host.session.device, (build,)
    )
    return host.session.load(compiled, build)


def launch(host: Bench, section: Section, build: str, seed: int) -> str | None:
    """The failure's message, or None."""
    data = np.random.default_rng(1).normal(size=N).astype(np.float32)
    source = host.session.buffer("in", (N,), data.dtype, written=False)
    target = host.session.buffer("out", (N,), data.dtype, written=True)
    source.write(data)
    target.poison(0)
    try:
        with_it = (section,) if section.is_alone else TOGETHER
        loaded(host, build, *with_it).launch(
            replace(LAUNCH, function=section.name), [target, source, np.int32(N)], seed=seed
        )
    except TrialFailure as failure:
        assert failure.status == "launch_failed"
        return failure.message
    finally:
        source.free()
        target.free()
    return None


BUGS = [section for section in sections() if section.finds]
RIGHT = [section for section in sections() if not section.finds]
TOGETHER = tuple(section for section in sections() if not section.is_alone)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_is_found_and_its_line_named(host: Bench, bug: Section) -> None:
    message = launch(host, bug, "check", 0)
    assert message is not None, "nothing was reported"
    assert re.search(bug.finds or "", message), message
    assert message.startswith(f"kernel {bug.name}, block ("), message
    assert f"[bugs.cu.j2:{bug.culprit}]" in message, message


@pytest.mark.one_in(2)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_is_found_in_every_schedule(host: Bench, bug: Section) -> None:
    for seed in range(1, 7):
        assert launch(host, bug, "check", seed) is not None, f"seed {seed}"


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.name)
@pytest.mark.quick
def test_right_kernel_raises_no_alarm(host: Bench, right: Section) -> None:
    for build in ("check", "plain"):
        for seed in range(13):
            assert launch(host, right, build, seed) is None
