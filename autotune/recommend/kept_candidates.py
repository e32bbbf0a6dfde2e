"""Candidates in the user's cache, so that the second start of a program need not compute them again."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from ..core.definition import Device, Kernel
from ..core.errors import UsageError
from ..core.kept import keep, make_folder, take
from ..core.problem import Problem
from ..core.schema import (
    Check,
    Unsound,
    as_config,
    as_number,
    as_text,
    as_word,
    members_of,
    optional,
    parse,
    sequence_of,
)
from ..runtime import gpu
from ..runtime.wisdom import Loss
from .candidates import Candidate, candidates
from .experience import AS_LOSS, Experience

FOLDER = "candidates"
_ROW = {"config": as_config, "tier": as_word, "why": as_text, "predicted": as_number, "loss": optional(AS_LOSS)}
_rows: Check = sequence_of(members_of(_ROW, needed=tuple(_ROW)))


def kept_candidates(
    identity: str, experience: Experience, kernel: Kernel[Problem], problem: Problem, device: Device, n: int
) -> tuple[Candidate, ...]:
    """Returns ``candidates``, from the cache if they are there.

    ``identity``: a digest of everything else on which they depend. A cache that cannot be used (no home, no space,
    others may write to it) is done without.
    """
    question = json.dumps([identity, kernel.name, asdict(problem), asdict(device), n], default=str)
    name = f"{kernel.name}-{hashlib.sha256(question.encode()).hexdigest()[:32]}.candidates"
    with suppress(OSError, UsageError, Unsound):
        path = make_folder(gpu.cache_folder().parent, FOLDER) / name
        if (stored := take(path)) is not None:
            return tuple(_candidate(kernel, row) for row in _rows(parse(stored[0])))
    found = candidates(experience, kernel, problem, device, n)
    with suppress(OSError, UsageError):
        path = make_folder(gpu.cache_folder().parent, FOLDER) / name
        keep(path, json.dumps([{**asdict(one), "config": dict(one.config)} for one in found]).encode(), {})
    return found


def _candidate(kernel: Kernel[Problem], row: dict[str, Any]) -> Candidate:
    """Returns the candidate; its config is in the space, since its values end up in code."""
    loss = None if row["loss"] is None else Loss(**row["loss"])
    return Candidate(**{**row, "config": kernel.space.parse(row["config"]), "loss": loss})
