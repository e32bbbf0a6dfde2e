"""What the tests of every kernel do: variants that cover a space, and mutants that must fail."""

import dataclasses
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
import pytest

from autotune import Config, Kernel, TrialFailure
from autotune.devices import Target, find_device
from autotune.devices.base import Session
from autotune.rendering.render import Variant, render
from autotune.trial.bench import Bench
from autotune.trial.verify import verify
from autotune.trial.worker import Job

N_COMPARED = 100  # equally good configurations, of which the one with the smallest blocks is taken
_sessions: dict[str, Session] = {}


def session_on(target: Target) -> Session:
    """The device, opened once for the whole run."""
    return _sessions.setdefault(target.identifier, target.module.open(target.identifier))


def first_is_quick(cases: Iterable[Any]) -> list[Any]:
    """Cases of a parametrized test, of which the first is one of the quick tests too."""
    first, *others = cases
    if not hasattr(first, "marks"):  # it is not a pytest.param
        first = pytest.param(*first) if isinstance(first, tuple) else pytest.param(first)
    return [pytest.param(*first.values, id=first.id, marks=pytest.mark.quick), *others]


def covering(kernel: Kernel[Any], problem: Any, target: Target, **only: tuple[Any, ...]) -> list[Config]:
    """Few configurations with every value of every parameter among them; ``only`` narrows parameters.

    Of equally good ones that with the most blocks is taken: edge sizes are some blocks long, so they are the smallest.
    """
    chosen: list[Config] = []
    missing: set[tuple[str, Any]] = set()
    allowed = kernel.space.enumerate(problem, target.device, only).configs
    configs = [config for config in allowed if kernel.unsupported(config, target.device) is None]
    for config in configs:
        missing |= set(config.items())
    while missing:
        news = [len(missing & set(config.items())) for config in configs]
        best = [config for config, n_new in zip(configs, news, strict=True) if n_new == max(news)]
        some = best[:: -(-len(best) // N_COMPARED)]
        chosen.append(max(some, key=lambda config: prod(kernel.launch(problem, config).grid)))
        missing -= set(chosen[-1].items())
    return chosen


def check(kernel: Kernel[Any], problem: Any, config: Config, target: Target, *builds: str) -> None:
    """Compile and verify one variant, in all its builds or those named."""
    session = session_on(target)
    wanted = builds or tuple(session.check_builds)
    binary = target.module.compile(render(kernel, problem, config), target.device, wanted)
    verify(session, kernel, problem, config, binary, wanted)


def check_mutant(
    kernel: Kernel[Any], problem: Any, config: Config, old: str, new: str, status: str = "", *, full: bool = False
) -> None:
    """With ``old`` replaced in its source the variant fails, with ``status`` if given; ``full``: at its own size, too.

    On the host in its check build: races and accesses out of bounds are found before they do harm.
    """
    host = find_device("host")
    mutant = mutated(kernel, problem, config, old, new)
    with pytest.raises(TrialFailure) as failure:
        binary = host.module.compile(mutant, host.device, ("check",))
        verify(session_on(host), kernel, problem, config, binary, ("check",), full)
    assert failure.value.status == (status or failure.value.status), failure.value.message


def mutated(kernel: Kernel[Any], problem: Any, config: Config, old: str, new: str) -> Variant:
    """With ``old`` replaced in its source, where it must be."""
    variant = render(kernel, problem, config)
    assert old in variant.source
    source, numbered = variant.source.replace(old, new), variant.numbered.replace(old, new)
    return dataclasses.replace(variant, source=source, numbered=numbered)


def check_gpu_mutant(kernel: Kernel[Any], problem: Any, config: Config, old: str, new: str, bench: Bench) -> None:
    """In a process of its own, and not for ever: one that does not wait as it must may hang, or break the context."""
    binary = bench.target.module.compile(mutated(kernel, problem, config, old, new), bench.target.device)
    with pytest.raises(TrialFailure) as failure:
        bench.worker.verify(Job(kernel.name, dataclasses.asdict(problem), config, binary), 10.0, full=True)
    assert failure.value.status in ("wrong", "launch_failed", "timed_out")


def packed_bits(samples: np.ndarray, bits: int) -> np.ndarray:
    """Samples [n_pols, n] packed by way of their binary digits."""
    digits = samples[..., np.newaxis] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(digits.reshape(len(samples), -1).astype(np.uint8), axis=1)
