"""The geometry of the algorithms without tensor cores: register and subgroup."""

from abc import abstractmethod
from dataclasses import dataclass

from autotune import ceil_div

from .geometry import Geometry


@dataclass(frozen=True)
class ThreadsGeometry(Geometry):
    """The geometry that both algorithms share: a tile of outputs, whose packed samples are unpacked in groups."""

    @property
    def n_threads(self) -> int:
        return int(self.config.WGS)

    @property
    def min_blocks(self) -> int:
        return int(self.config.get("MIN_BLOCKS", 1))

    @property
    def samples_per_group(self) -> int:
        """Returns the number of samples in a group, the unit of unpacking, which fills whole 32-bit words."""
        return 32 if self.problem.sample_bits % 2 else 16

    @property
    def words_per_group(self) -> int:
        return self.samples_per_group * self.problem.sample_bits // 32

    @property
    def groups_per_tile(self) -> int:
        """Returns the groups of a tile and of its halo, the samples that its last outputs share with the next tile."""
        n_rows = self.outputs_per_block + self.problem.rows_of_taps - 1
        return ceil_div(n_rows * self.problem.decimation, self.samples_per_group)

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of mixed weights, phasors and samples. Each of them is aligned to 16 bytes."""
        return sum(ceil_div(n_bytes, 16) * 16 for n_bytes in self._members)

    @property
    @abstractmethod
    def _members(self) -> tuple[int, ...]:
        """Returns the bytes of each member of the template's Shared."""


@dataclass(frozen=True)
class RegisterGeometry(ThreadsGeometry):
    """A thread computes COARSEN consecutive outputs, and unpacks the chunk of samples at which they begin."""

    @property
    def outputs_per_block(self) -> int:
        return self.n_threads * int(self.config.COARSEN)

    @property
    def samples_per_chunk(self) -> int:
        """Returns the samples from one thread's first sample to the next thread's."""
        return int(self.config.COARSEN) * self.problem.decimation

    @property
    def chunk_stride(self) -> int:
        """Returns the floats from chunk to chunk in shared memory, which are an odd number of vectors."""
        return int((self.samples_per_chunk // self.config.PHASES | 1) * self.config.PHASES)

    @property
    def chunks_per_tile(self) -> int:
        return ceil_div(self.groups_per_tile * self.samples_per_group, self.samples_per_chunk)

    @property
    def _members(self) -> tuple[int, ...]:
        n_weights = self.problem.rows_of_taps * self.problem.decimation
        return 8 * n_weights, 8 * int(self.config.COARSEN), 8, 4 * self.chunks_per_tile * self.chunk_stride

    @property
    def registers(self) -> int:
        """Returns a fit to the registers that nvcc 13.0 uses for sm_90."""
        return int(self.config.COARSEN * (2 + self.config.PHASES) + 4 * self.config.PHASES + 24)


@dataclass(frozen=True)
class SubgroupGeometry(ThreadsGeometry):
    """SG_SIZE threads share COARSEN outputs. Packed samples stay in registers, and are unpacked slice by slice."""

    @property
    def outputs_per_block(self) -> int:
        return self.n_threads * self.outputs_per_thread

    @property
    def n_slices(self) -> int:
        """Returns the number of slices. Each has SG_SIZE phases of the decimation."""
        return ceil_div(self.problem.decimation, self.config.SG_SIZE)

    @property
    def subgroup_stride(self) -> int:
        """Returns the floats from subgroup to subgroup in a slice, which are an odd number of rows."""
        return int((self.config.COARSEN | 1) * self.config.SG_SIZE)

    @property
    def chunks_per_slice(self) -> int:
        """Returns the number of chunks of COARSEN rows in a slice of a tile's samples."""
        n_rows = ceil_div(self.groups_per_tile * self.samples_per_group, self.problem.decimation)
        return ceil_div(n_rows, self.config.COARSEN)

    @property
    def outputs_per_thread(self) -> int:
        """Returns the outputs that a thread holds when the sums of its subgroup are complete."""
        return int(self.config.COARSEN) // int(self.config.SG_SIZE)

    @property
    def groups_per_thread(self) -> int:
        return ceil_div(self.groups_per_tile, self.n_threads)

    @property
    def words_per_thread(self) -> int:
        """Returns the words of packed samples that a thread holds."""
        return self.groups_per_thread * self.words_per_group

    @property
    def _members(self) -> tuple[int, ...]:
        n_weights = self.n_slices * self.config.SG_SIZE * self.problem.rows_of_taps
        return 8 * n_weights, 8 * self.outputs_per_thread, 8, 2 * 4 * self.chunks_per_slice * self.subgroup_stride

    @property
    def registers(self) -> int:
        """Returns a fit to the registers that nvcc 13.0 uses for sm_90."""
        return int(self.config.COARSEN * 3 + 2 * self.words_per_thread + 56)
