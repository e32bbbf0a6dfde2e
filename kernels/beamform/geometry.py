"""The geometry of a variant of beamform: what follows from the problem and the config, derived once."""

from dataclasses import dataclass

from autotune import Config, ceil_div

from .problem import Problem

LANES = 32  # threads of a warp
GROUP = 8  # antennas that are multiplied together; weights are made for whole groups
ROW_PAD = 32  # bytes between rows of a stage, so that lanes that read four rows at once find them in different banks


@dataclass(frozen=True)
class Geometry:
    """A block makes a tile of beams x times, of one channel and of some batches, one after another."""

    problem: Problem
    config: Config

    @property
    def is_tensor(self) -> bool:
        return bool(self.config.ALGORITHM == "mma_sync")

    @property
    def n_sums(self) -> int:
        """Returns the complex sums of a thread, each of two registers."""
        planes = 2 if self.is_tensor and self.problem.precision == "planes" else 1
        return int(self.config.BEAMS_PER_BLOCK * self.config.COARSEN) * planes

    @property
    def n_threads(self) -> int:
        return int(self.config.TIMES // self.config.COARSEN)

    @property
    def n_warps(self) -> int:
        return self.n_threads // LANES

    # ------------------------------------------------------------------ shared memory
    @property
    def stage_bytes(self) -> int:
        """Returns the bytes of a warp's stage: a row of its times for each antenna."""
        row = LANES * int(self.config.COARSEN) * self.problem.jones_bytes + ROW_PAD
        return row * int(self.config.ANTENNAS_PER_STAGE)

    @property
    def ring_bytes(self) -> int:
        """Returns the bytes of all warps' stages."""
        return self.n_warps * int(self.config.STAGES) * self.stage_bytes

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of one antenna's weight in one beam: float32, float16 or two planes of Jones vectors."""
        if self.is_tensor and self.problem.precision == "planes":
            return 8
        return (4 if self.is_tensor else 8) * self.problem.n_pols

    @property
    def scale_bytes(self) -> int:
        """Returns the bytes of the scales of all beams, and their inverses."""
        return 8 * int(self.config.BEAMS_PER_BLOCK) if self.is_tensor else 0

    @property
    def n_weighted(self) -> int:
        """Returns the antennas whose weights are in shared memory at once."""
        if self.config.WEIGHTS == "kept":
            return ceil_div(self.problem.n_antennas, GROUP) * GROUP
        return int(self.config.ANTENNAS_PER_STAGE)

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of dynamic shared memory: the ring of stages, the scales, and the weights."""
        weights = self.n_weighted * int(self.config.BEAMS_PER_BLOCK) * self.weight_bytes
        return self.ring_bytes + self.scale_bytes + weights

    # ------------------------------------------------------------------ the grid
    @property
    def beam_tiles(self) -> int:
        return ceil_div(self.problem.n_beams, int(self.config.BEAMS_PER_BLOCK))

    @property
    def time_tiles(self) -> int:
        return ceil_div(self.problem.n_times, int(self.config.TIMES))

    @property
    def n_blocks(self) -> int:
        """Returns the blocks; those of one tile of voltages are neighbours, and share them in the L2."""
        return self.problem.n_channels * int(self.config.SPLIT) * self.time_tiles * self.beam_tiles
