"""Predicts configs for an engine's problems without records, from experience and with the installed templates."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from ...core.definition import AnyKernel
from ...prediction.predictor import Predictor
from ...system.installation import VERSION
from ...transfer import model
from ...transfer.experience import Experience, as_json


def predictor_of(kernel: AnyKernel, experience: Experience) -> Predictor:
    """Returns a predictor, which ranks configs of the kernel. Rankings are kept in the user's cache."""
    experiences: Mapping[str, Experience] = {kernel.name: experience}
    return Predictor(lambda: experiences, identity=lambda: _identity(kernel, experience))


def _identity(kernel: AnyKernel, experience: Experience) -> str:
    """Returns a digest of everything that decides a ranking: the experience, the definition, and the model's code."""
    digest = hashlib.sha256(f"{VERSION} {json.dumps(as_json([experience]), sort_keys=True)}".encode())
    for path in (*kernel.source_paths, *sorted(Path(model.__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()
