"""What the tensor algorithm of ddc needs of a block: runs, registers and shared memory; and how samples get there."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

from autotune import Config, Device, TensorMap, ceil_div

from .problem import Problem
from .tiles import Tiles

TENSOR_ROWS = 16  # of a matrix of samples
BOX_ROWS = 8  # that the copy engine brings together where they drift
SAMPLES = 1  # their place among the kernel's arguments
MOST_WARPS = 16  # of a multiprocessor that tensor is made for
WGMMA_REGISTERS = 65536  # of a multiprocessor of sm_90, the only one that has wgmma
WGMMA_DEVICE = Device("a GPU", "cuda", "sm_90")  # which has the shared memory of the defaults


@dataclass(frozen=True)
class Matrices(Tiles):
    """And what of a block follows from it."""

    @property
    def warps(self) -> int:
        """Of a block."""
        return int(self.config.get("WARPS", 4))

    @cached_property
    def min_blocks(self) -> int:
        """Blocks that a multiprocessor has registers for: where wgmma needs many, as many as there is room for."""
        if not self.overlaps:
            return int(self.config.get("RESIDENT", MOST_WARPS)) // self.warps
        by_registers = WGMMA_REGISTERS // (32 * self.warps * ceil_div(self.registers, 8) * 8)
        n_blocks = max(1, min(MOST_WARPS // self.warps, by_registers))
        while n_blocks > 1 and not WGMMA_DEVICE.has_shared(self.most_shared_bytes, n_blocks):
            n_blocks -= 1
        return n_blocks

    @property
    def runs(self) -> int:
        """Of a block; where they overlap, the last one is the next block's first."""
        return TENSOR_ROWS * self.warps - self.overlaps

    @property
    def stage_bytes(self) -> int:
        """Of a row, without what its alignment adds."""
        return int(self.config.STAGE) * self.step_samples * self.problem.sample_bits // 8

    @cached_property
    def pitch_bytes(self) -> int:
        """From row to row of a stage: an odd number of pieces of 16 bytes."""
        return self._pitch_bytes((BOX_ROWS - 1) * abs(self.row_bytes - self.box_bytes))

    def _pitch_bytes(self, drift: int) -> int:
        samples, words = self.group
        group_bytes = samples * self.problem.sample_bits // 8
        read_samples = (int(self.config.STAGE) - 1) * self.step_samples + self.products * self.product
        first_bit = 8 * drift + (127 if self.ragged else 120)  # of the stage, behind its copies, at most
        last_group = read_samples * self.problem.sample_bits + first_bit - 8 * group_bytes
        return (ceil_div(last_group // 32 * 4 + 4 * words, 16) | 1) * 16

    @property
    def row_bytes(self) -> int:
        """From row to row of the samples: of a run of outputs."""
        return int(self.config.RUN) * self.problem.decimation * self.problem.sample_bits // 8

    @property
    def box_bytes(self) -> int:
        """From row to row of what the copy engine brings: whole pieces of 16 bytes."""
        return (self.row_bytes + 8) // 16 * 16

    @property
    def tensor_map(self) -> TensorMap:
        """The samples of all streams as rows of a run each, and of what its last outputs need besides. Where runs are
        no whole pieces, rows drift within a box, which is of half of a warp's; the other half is a box further on.
        """
        apart, drifts = self.box_bytes, self.row_bytes != self.box_bytes
        n_bytes = self.problem.n_pols * self.problem.row_bytes
        n_steps = int(self.config.RUN) // int(self.config.STEP) + (0 if self.overlaps else self.live - 1)
        n_stages = ceil_div(n_steps, int(self.config.STAGE))
        longest = apart + n_stages * (self.stage_bytes + self.ragged) + self.pitch_bytes
        shape = (longest + drifts * BOX_ROWS * self.row_bytes) // 4, n_bytes // apart + 1
        box = self.pitch_bytes // 4, BOX_ROWS if drifts else TENSOR_ROWS
        return TensorMap(SAMPLES, shape, (apart,), box, element=4)

    @cached_property
    def ring_bytes(self) -> int:
        """Of the weights as wgmma takes them; where sums stay in their places, unrolled."""
        return self._bytes_of_blocks(self.live) if self.sums_move else self.unrolled_bytes

    @property
    def unrolled_bytes(self) -> int:
        return self._bytes_of_blocks(2 * self.live - 1)

    def _bytes_of_blocks(self, n: int) -> int:
        octets = 2 * self.products * n * self.octets
        return 128 * (octets + (self.sample_bytes > 1) + self.fill_octets)

    @property
    def room_of_weights(self) -> tuple[int, int]:
        """Where mixed weight k lies in shared memory: at k + (k >> shift) room."""
        alone = 4 if self.by_fields and self.problem.sample_bits > 2 else 1
        register = 0 if not self.takes_bytes else 16 if self.apart == 1 else alone
        return room_of_weights(self.problem.decimation, self.group[0], register)

    @property
    def shared_bytes(self) -> int:
        return self._shared_bytes(self.pitch_bytes)

    @cached_property
    def most_shared_bytes(self) -> int:
        """Of any RUN."""
        is_whole = self.problem.decimation * self.problem.sample_bits % 16 == 0 or not self.overlaps
        return self._shared_bytes(self._pitch_bytes(0 if is_whole else (BOX_ROWS - 1) * 8))

    def _shared_bytes(self, pitch_bytes: int) -> int:
        warps = self.warps
        stages = warps * int(self.config.STAGES) * TENSOR_ROWS * pitch_bytes
        windows = warps * TENSOR_ROWS * (2 * int(self.config.WINDOW) + 4) * 4
        taps, (shift, room) = self.problem.taps, self.room_of_weights
        mixed = ceil_div(8 * (taps + (taps >> shift) * room + 1) + 4 * warps, 16) * 16
        if self.uses_wgmma:
            barriers = ceil_div(8 * warps * int(self.config.STAGES), 16) * 16
            if self.overlaps:
                windows += 4 * warps * TENSOR_ROWS * (ceil_div(2 * int(self.config.STEP) * (self.live - 1), 8) * 8)
            return self.ring_bytes + stages + max(windows, mixed) + barriers
        fragments_at = max(windows, mixed) if self.weights_are_shared else mixed
        return stages + max(windows, fragments_at + 256 * self.fragments)

    @cached_property
    def registers(self) -> int:
        if self.uses_wgmma:
            return self.wgmma_registers
        own = 0 if self.weights_are_shared else 2 * self.fragments
        words = 2 * self.part // (self.group[0] // 4) * self.group[1]
        extra = (
            8 * bool(self.config.get("UNROLL") != 2)
            + 4 * (self.group[1] > 2 and self.problem.sample_bits != 10)
            + 4 * bool(self.config.WINDOW == 64)
            + 40 * self.weights_are_shared
            + 16 * (self.chain > 0)
        )
        return self.sum_words + own + 8 * self.part + words + extra + 32

    @property
    def wgmma_registers(self) -> int:
        if self.takes_bytes:
            words = 16 * self.part // self.group[0] * self.group[1]
            if self.group[0] == 32:  # parts of four products, whose samples are not all there at a time
                return self.sum_words + 8 * self.part + words + 30
            return self.sum_words + 12 * self.part * self.sample_bytes + words + 40
        words = 2 * self.part // (self.group[0] // 4) * self.group[1]
        if self.chain:  # twice the sums, and a part's samples three times
            return 2 * self.sum_words + 12 * self.part + words + 26 + 8 * self.ragged
        return self.sum_words + 8 * self.products + words + 40


@lru_cache(maxsize=1024)
def room_of_weights(decimation: int, group: int, register: int) -> tuple[int, int]:
    """(shift, room) such that of weights at k + (k >> shift) room, 8 bytes each, the fewest meet in a bank.

    Lanes of a warp take weights `decimation` and `group` apart. Of halves (`register` 0) each takes one, of 16 lanes
    for each of two outputs; of bytes half a warp takes those of two outputs and two registers, which are `register`
    samples apart, 8 bytes at a time.
    """

    def conflicts(shift: int, room: int, first: int) -> int:
        banks: defaultdict[int, set[int]] = defaultdict(set)
        for lane in range(16 if register else 32):
            output, is_second = (lane // 8, lane // 4 % 2) if register else (lane // 16, 0)
            k = first + lane % 4 * group - output * decimation + is_second * register
            word = 2 * (k + (k >> shift) * room) + (0 if register else lane // 8 % 2)
            banks[word % 32].add(word)
        return max(map(len, banks.values()))

    firsts = range(decimation, decimation + 512, 37)
    choices = [(4, 1), (3, 1), (5, 1), (6, 1), (7, 1), (3, 2), (4, 2), (5, 2)]
    return min(choices, key=lambda choice: sum(conflicts(*choice, first) for first in firsts))


@lru_cache(maxsize=64)  # constraints ask one after another, for the same config
def matrices_of(problem: Problem, config: Config) -> Matrices:
    """What the tensor algorithm makes of a problem."""
    return Matrices(problem, config)
