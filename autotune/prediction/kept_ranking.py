"""Rankings in the user's cache, so that the second start of a program need not compute them again."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.errors import UsageError
from ..core.kept import keep, make_folder, take
from ..core.problem import Problem
from ..core.schema import Unsound, as_config, parse, sequence_of
from ..runtime import gpu

FOLDER = "rankings"
_configs = sequence_of(as_config)


class KeptRankings:
    """The cached rankings of ``identity``, a digest of everything on which they depend.

    If the cache cannot be used (no home, no space, others may write to it), nothing is cached and nothing is found.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity

    def get(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[Config, ...]:
        """Returns the cached ranking, whose configs are in the space; () if there is none."""
        with suppress(OSError, UsageError, Unsound):
            if (stored := take(self._path(kernel, problem, device))) is not None:
                return tuple(map(kernel.space.parse, _configs(parse(stored[0]))))
        return ()

    def put(self, kernel: Kernel[Problem], problem: Problem, device: Device, configs: tuple[Config, ...]) -> None:
        """Writes a ranking to the cache."""
        with suppress(OSError, UsageError):
            keep(self._path(kernel, problem, device), json.dumps([dict(config) for config in configs]).encode(), {})

    def _path(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Path:
        question = json.dumps([self._identity, kernel.name, asdict(problem), asdict(device)], default=str)
        root = gpu.cache_folder().parent
        return make_folder(root, FOLDER) / f"{kernel.name}-{hashlib.sha256(question.encode()).hexdigest()[:32]}.ranking"
