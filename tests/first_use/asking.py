"""What tests of first use share: a request for a few configs of a test's definition, on the device host."""

from collections.abc import Iterable
from typing import Any

from autotune import Config
from autotune.core.problem import named_fields
from autotune.first_use.tuner import tune_first
from autotune.rendering.render import render
from autotune.runtime.tune_once import REQUEST_FORMAT
from autotune.source.registry import load_kernel

from ..conftest import DEFINITIONS, FAULTY

PARTIES = str(DEFINITIONS / "parties.py")
LONG_S = 60.0  # seconds on the device for tests that are not about time: other tests may run beside
NONE = Config(FAULT="none", WGS=128)


def faulty(*faults: str) -> list[Config]:
    """Configs with these faults; "none" may be there more than once, with other sizes of a block."""
    sizes = iter((128, 64, 256))
    return [Config(FAULT=fault, WGS=next(sizes)) if fault == "none" else Config(FAULT=fault) for fault in faults]


def ways(*names: str) -> list[Config]:
    """Configs of ``parties`` with these ways; each has its own size of a block."""
    sizes = {name: iter((64, 128, 256)) for name in names}
    return [Config(WAY=name, WGS=next(sizes[name])) for name in names]


def request(
    configs: Iterable[Config], definition: str = FAULTY, fields: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """What a package would ask of the tuner."""
    kernel = load_kernel(definition)
    problem = kernel.problem(fields or {"n": 3001})
    return {
        "format": REQUEST_FORMAT,
        "kernel": kernel.name,
        "reference": definition,
        "problem": named_fields(problem),
        "identifier": "host",
        "free_bytes": None,
        "seconds": LONG_S,
        "wait_s": LONG_S,
        "candidates": [
            {"config": dict(config), "origin": "predicted", "source_key": render(kernel, problem, config).key}
            for config in configs
        ],
        **changes,
    }


def answer(configs: Iterable[Config], **asked: Any) -> dict[str, Any]:
    """The tuner's answer; without ``refused``."""
    found = tune_first(request(configs, **asked), lambda line: None)
    assert "refused" not in found, found
    return found


def statuses(found: dict[str, Any]) -> list[str]:
    return [attempt["status"] for attempt in found["attempts"]]
