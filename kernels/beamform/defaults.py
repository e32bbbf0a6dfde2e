"""The starting config of beamform, for a problem without records."""

from collections.abc import Iterator
from typing import Any

from .problem import Problem


def starting_configs(problem: Problem) -> Iterator[dict[str, Any]]:
    """Yields configs, the preferred one first: less shared memory follows, in which weights are made again."""
    is_tensor = problem.precision == "planes" or (problem.precision == "half" and problem.n_beams > 1)
    if is_tensor:
        widest = 32 if problem.precision == "planes" else 64
        n_beams = next((n for n in (8, 16, 32) if n >= problem.n_beams and n <= widest), widest)
        coarsen, antennas = 1, 16
    else:
        n_beams = max(n for n in (1, 2, 4, 8, 16) if n < 2 * problem.n_beams)
        coarsen, antennas = {1: 4, 2: 4, 4: 2, 8: 2, 16: 1}[n_beams], 16
    times = 32 * coarsen
    while times < min(problem.n_times, 256 if is_tensor else 128 * coarsen):
        times *= 2
    usual = {
        "ALGORITHM": "mma_sync" if is_tensor else "threads",
        "BEAMS_PER_BLOCK": n_beams,
        "TIMES": times,
        "COARSEN": coarsen,
        "ANTENNAS_PER_STAGE": antennas if problem.n_antennas > 8 else 8,
        "SPLIT": max(n for n in (1, 2, 4) if n <= len(problem.batches)),
        "STORE": "plain",
    }
    for weights in ("kept", "staged"):
        for stages in (4, 3, 2):
            yield {**usual, "STAGES": stages, "WEIGHTS": weights}
