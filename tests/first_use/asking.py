"""What tests of first use share: a request for a few configs of a test's definition, on the device host."""

from collections.abc import Iterable
from typing import Any

from autotune import Config
from autotune.core.problem import named_fields
from autotune.devices import find_device
from autotune.first_use.tuner import tune_first
from autotune.rendering.render import render
from autotune.runtime.tune_once import FORMAT, Attempt, Surroundings, TunedHere, checked_outcome
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
    around = Surroundings(find_device("host").device, "", "", "")
    attempts = tuple(Attempt(config, "predicted", render(kernel, problem, config).key) for config in configs)
    return {
        "format": FORMAT,
        "reference": definition,
        "identifier": "host",
        "free_bytes": None,
        "seconds": LONG_S,
        "wait_s": LONG_S,
        "outcome": TunedHere(kernel.name, named_fields(problem), around, attempts=attempts).as_json(),
        **changes,
    }


def answer(configs: Iterable[Config], **asked: Any) -> TunedHere:
    """The outcome in the tuner's answer, which is not ``refused``."""
    found = tune_first(request(configs, **asked), lambda line: None)
    assert "refused" not in found, found
    return checked_outcome(found["outcome"].encode())


def statuses(found: TunedHere) -> list[str]:
    return [attempt.status for attempt in found.attempts]
