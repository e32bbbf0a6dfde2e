"""Goldens: digests of a few variants' sources and machine code, so that a change of a template is made on purpose.

`tests/golden/<kernel>.json` has for each golden the text's digest, without comments and layout, and the digest of the
machine code that one NVRTC made of it for sm_90. A text that has changed must still become the same machine code.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from autotune import Config, Kernel, UsageError
from autotune.core.digest import digest
from autotune.devices import cuda
from autotune.devices.machine_code import without_comments
from autotune.rendering.render import render
from autotune.trial.compile import code_of

LINE = re.compile(r"^[ \t]*#[ \t]*(line\b|\d).*$", re.MULTILINE)
GOLDEN = Path(__file__).parents[1] / "golden"
DEVICE = cuda.of_architecture("sm_90")
Goldens = Mapping[str, tuple[Any, Mapping[str, Any]]]  # name -> problem and config


def check_golden(kernel: Kernel[Any], name: str, problem: Any, config: Mapping[str, Any]) -> None:
    """Fails where the variant's text has changed and its machine code has, too, or is unknown."""
    golden = json.loads((GOLDEN / f"{kernel.name}.json").read_text())[name]
    variant, renew = render(kernel, problem, Config(config)), "if that is meant, run this module (python -m tests...)"
    if _text_digest(variant.source) == golden["text"]:
        return
    try:
        compiler = cuda.compiler(DEVICE)
    except UsageError as error:
        compiler = str(error)
    if compiler != golden["compiler"]:
        pytest.fail(f"{name}: another text, whose machine code is unknown ({compiler}); {renew}")
    if code_of("cuda", variant, DEVICE, golden["code"]) != golden["code"]:
        differ = f"python benchmarks/machine_code.py --at HEAD --kernel {kernel.name}"
        pytest.fail(f"{name}: other machine code ({differ}); {renew}")


def write_goldens(kernel: Kernel[Any], goldens: Goldens) -> None:
    """Writes the digests of ``goldens`` by the NVRTC at hand, and keeps those of other modules' goldens."""
    path = GOLDEN / f"{kernel.name}.json"
    digests = json.loads(path.read_text()) if path.exists() else {}
    for name, (problem, config) in goldens.items():
        variant = render(kernel, problem, Config(config))
        digests[name] = {
            "variant": variant.name,
            "text": _text_digest(variant.source),
            "compiler": cuda.compiler(DEVICE),
            "code": cuda.compile(variant, DEVICE).code,
        }
    path.write_text(json.dumps(dict(sorted(digests.items())), indent=1) + "\n")


def _text_digest(text: str) -> str:
    return digest(*without_comments(LINE.sub("", text)).split())
