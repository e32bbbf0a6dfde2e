"""The geometry of the tensor algorithm: steps, tiles and products; groups, stages and boxes; weights and windows.

docs/design/ddc.md explains the words. Each property says whether it belongs to a row, a warp or a block.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd

from autotune import Config, Device, TensorMap, ceil_div

from .geometry import Geometry
from .problem import Problem

ROWS_PER_WARP = 16  # runs of a warp, which are rows of the samples' matrix
DRIFTING_ROWS = 8  # rows in a box of the copy engine if rows drift in the box
SAMPLES = 1  # place of the samples among the kernel's arguments
MAX_WARPS = 16  # warps of a multiprocessor for which the algorithm is designed
MAX_MATRIX_WORDS = 176  # sums and weights of a thread; the rest of its registers is for samples and addresses
MAX_PART_WORDS = 128  # words of sums above which fewer samples are in registers together
LONG_CHAIN = 32  # products; if the tensor core adds more, its rounding errors exceed those of float32
WGMMA_REGISTERS = 65536  # registers of a multiprocessor of sm_90, the only architecture with wgmma
WGMMA_DEVICE = Device("a GPU", "cuda", "sm_90")  # its shared memory is the default of Device


@dataclass(frozen=True)
class TensorGeometry(Geometry):
    """A warp computes 16 runs of consecutive outputs, step by step. The runs are rows of a matrix of samples."""

    # ------------------------------------------------------------------ the product
    @cached_property
    def uses_wgmma(self) -> bool:
        return bool(self.config.MMA != "mma_sync")

    @cached_property
    def takes_bytes(self) -> bool:
        """Returns whether samples and weights are bytes. Otherwise they are halves."""
        return bool(self.config.MMA == "wgmma_int8")

    @property
    def samples_per_mma(self) -> int:
        """Returns the samples of a row in a product, which are 32 bytes of operands."""
        return 32 if self.takes_bytes else 16

    @property
    def operands_per_sample(self) -> int:
        """Returns the number of operands of a sample, which becomes a half, a byte, or two bytes."""
        return 2 if self.takes_bytes and self.problem.sample_bits > 8 else 1

    @property
    def columns_per_output(self) -> int:
        """Returns 4 for halves: both parts of an output, each with two halves of the weights. With bytes, each part has
        three columns, and a fourth if samples are two bytes or if octets of columns would not be whole.
        """
        if not self.takes_bytes:
            return 4
        return 6 if self.operands_per_sample == 1 and self.outputs_per_step > 2 else 8

    @cached_property
    def columns_per_mma(self) -> int:
        """Returns the columns of a product by wgmma: those of all tiles under way and of the fill."""
        return 8 * (self.n_tiles * self.octets_per_tile + self.fill_octets)

    @cached_property
    def sums_per_lane(self) -> int:
        return self.columns_per_mma // 2

    # ------------------------------------------------------------------ steps and tiles
    @property
    def outputs_per_step(self) -> int:
        return int(self.config.STEP)

    @property
    def outputs_per_run(self) -> int:
        return int(self.config.RUN)

    @property
    def outputs_per_window(self) -> int:
        return int(self.config.WINDOW)

    @property
    def steps_per_iteration(self) -> int:
        return int(self.config.get("UNROLL", 1))

    @property
    def steps_per_window(self) -> int:
        return self.outputs_per_window // self.outputs_per_step

    @cached_property
    def samples_per_step(self) -> int:
        """Returns the number of new samples of a row in a step."""
        return self.outputs_per_step * self.problem.decimation

    @cached_property
    def bits_per_step(self) -> int:
        return self.samples_per_step * self.problem.sample_bits

    @cached_property
    def steps_are_bytes(self) -> bool:
        """Returns whether steps are whole bytes. Otherwise they start at any bit of a byte."""
        return self.bits_per_step % 8 == 0

    @cached_property
    def mmas_per_step(self) -> int:
        """Returns the number of products in a step. If runs overlap, they take whole groups of samples, and samples of
        the next step fill the last product.
        """
        together = self.mmas_per_group if self.runs_overlap else 1
        return together * ceil_div(self.samples_per_step, together * self.samples_per_mma)

    @cached_property
    def n_tiles(self) -> int:
        """Returns the number of tiles under way, which is also the number of blocks of weights."""
        n_samples = self.problem.taps + (self.outputs_per_step - 1) * self.problem.decimation
        return ceil_div(n_samples, self.samples_per_step)

    @cached_property
    def octets_per_tile(self) -> int:
        """Returns the number of octets of columns in a tile."""
        return self.outputs_per_step * self.columns_per_output // 8

    @cached_property
    def fill_octets(self) -> int:
        """Returns the octets of zeros behind the last tile. Products of bytes need an even number of octets above 4."""
        n_octets = self.n_tiles * self.octets_per_tile
        return n_octets % 2 if self.takes_bytes and n_octets > 4 else 0

    @cached_property
    def runs_overlap(self) -> bool:
        """Returns whether runs share the outputs at their ends. Otherwise they share the samples of these outputs."""
        return self.takes_bytes or bool(self.config.get("CHAIN"))

    @property
    def sums_move(self) -> bool:
        """Returns whether each step moves sums to the places before their own. Otherwise weights move. The additions of
        chains always move sums.
        """
        return self.runs_overlap and (not self.takes_bytes or bool(self.config.SUMS == "move"))

    @property
    def warm_up_steps(self) -> int:
        """Returns the number of steps before the first outputs of a run are done."""
        return ceil_div(self.n_tiles - 1, self.steps_per_iteration) * self.steps_per_iteration

    @property
    def steps_per_run(self) -> int:
        """Returns the number of steps in a run. If runs do not overlap, the warm-up is extra."""
        return self.outputs_per_run // self.outputs_per_step + (0 if self.runs_overlap else self.warm_up_steps)

    @property
    def multiplications(self) -> int:
        """Returns the multiply-adds of tensor cores for an output of a row."""
        return self.mmas_per_step * self.samples_per_mma * self.n_tiles * self.columns_per_output

    @property
    def can_multiply(self) -> bool:
        """Returns whether steps are whole products of whole words or, if runs overlap, at least two parts of whole
        groups.
        """
        if self.runs_overlap:
            return self.parts_per_step >= 2 and self.mmas_per_part % self.mmas_per_group == 0
        return self.samples_per_step % (32 if self.problem.sample_bits % 2 else 16) == 0

    # ------------------------------------------------------------------ parts of a step, and chains
    @cached_property
    def mmas_per_chain(self) -> int:
        """Returns the most products of a sum that the tensor core adds before float32 does, or 0 for all products."""
        if self.uses_wgmma:
            return int(self.config.get("CHAIN") or 0)
        if self.n_tiles * self.mmas_per_step <= LONG_CHAIN or self.mmas_per_step < 4:
            return 0
        return 8 if self.sums_per_lane < MAX_PART_WORDS else 4

    @cached_property
    def mmas_per_part(self) -> int:
        """Returns the number of products whose samples are in registers together. If runs overlap, a step's last part
        may have fewer.
        """
        if self.runs_overlap:
            return int(self.config.PART)
        part = max(self.mmas_per_group, self.mmas_per_chain or 2)
        while part > self.mmas_per_group and (self.mmas_per_step % part or part % self.mmas_per_group):
            part -= 1
        return part

    @property
    def parts_per_step(self) -> int:
        return ceil_div(self.mmas_per_step, self.mmas_per_part)

    # ------------------------------------------------------------------ groups of samples
    @property
    def byte_period(self) -> int:
        """Returns the distance from a sample to the next one that starts at the same bit of a byte."""
        return 8 // gcd(8, self.problem.sample_bits)

    @property
    def spare_samples(self) -> int:
        """Returns the number of zeros before and behind the weights together."""
        first = (self.outputs_per_step - 1) * self.problem.decimation
        return self.n_tiles * self.samples_per_step - self.problem.taps - first

    @cached_property
    def takes_fields(self) -> bool:
        """Returns whether each sample is decoded alone, instead of four that share a register.

        Four samples that share a register start at the same bit of a byte. That takes groups of two products, or of
        four if the width is odd. Samples are decoded alone if parts have fewer products, if steps start at any bit, or
        if the width is odd and at least 9, since four products would then have too many words.
        """
        if not self.takes_bytes or self.byte_period <= 2:
            return False
        is_wide = self.byte_period == 8 and self.problem.sample_bits > 8
        return bool(is_wide or self.config.PART % (self.byte_period // 2) or not self.steps_are_bytes)

    @cached_property
    def groups_are_words(self) -> bool:
        """Returns whether groups of bytes start at words, for which runs start up to 3 BYTE_PERIOD samples earlier."""
        return self.takes_bytes and self.bits_per_step % 32 == 0 and self.spare_samples >= 3 * self.byte_period

    @cached_property
    def samples_are_paired(self) -> bool:
        """Returns whether two samples become halves at a time. Such samples start at the same bit of a byte."""
        if self.takes_bytes or not self.steps_are_bytes or self.problem.sample_bits % 2:
            return False
        n_mmas = int(self.config.PART) if self.runs_overlap else self.mmas_per_step
        may_start_even = self.bits_per_step % 16 == 0 and self.spare_samples >= self.byte_period
        return n_mmas % (self._paired_samples // 4) == 0 and (self._pairs_fit_two_words or may_start_even)

    @cached_property
    def groups_start_even(self) -> bool:
        """Returns whether groups of pairs must start at an even byte, so that runs may start earlier."""
        return self.samples_are_paired and not self._pairs_fit_two_words

    @property
    def _paired_samples(self) -> int:
        return 8 if self.byte_period >= 4 else 4

    @property
    def _pairs_fit_two_words(self) -> bool:
        """Returns whether two words hold a group of pairs, wherever it starts."""
        return self._paired_samples * self.problem.sample_bits // 8 + 3 <= 8

    @cached_property
    def samples_per_group(self) -> int:
        """Returns the number of consecutive samples that a lane decodes together. They are whole bytes."""
        if self.takes_fields:
            return 8
        if self.takes_bytes:
            return 4 * self.byte_period
        if self.samples_are_paired:
            return self._paired_samples
        return 8 if self.problem.sample_bits % 2 or not self.steps_are_bytes else 4

    @cached_property
    def words_per_group(self) -> int:
        """Returns the number of words that hold a group, wherever it starts."""
        n_bytes = self.bits_per_group // 8
        if self.takes_bytes and not self.takes_fields:
            return n_bytes // 4 + (not self.groups_are_words)
        before = 2 if self.groups_start_even else 3 if self.steps_are_bytes else 4  # bytes, one of which it may share
        return max(1 if self.takes_fields else 2, ceil_div(n_bytes + before, 4))

    @property
    def bits_per_group(self) -> int:
        return self.samples_per_group * self.problem.sample_bits

    @property
    def mmas_per_group(self) -> int:
        """Returns the number of products that a row's four lanes fill with one group each, or 1."""
        return max(1, self.samples_per_group // (8 if self.takes_bytes else 4))

    @property
    def groups_per_part(self) -> int:
        """Returns the number of groups of a lane in a part, for each of its two rows."""
        return self.mmas_per_part * self.samples_per_mma // (4 * self.samples_per_group)

    @property
    def group_stride(self) -> int:
        """Returns the words from one group of a lane to its next. The groups of three other lanes lie between."""
        return 4 * self.bits_per_group // 32

    @property
    def part_stride(self) -> int:
        """Returns the words from part to part."""
        return self.groups_per_part * self.group_stride

    # ------------------------------------------------------------------ the block
    @property
    def n_warps(self) -> int:
        return int(self.config.get("WARPS", 4))

    @property
    def n_threads(self) -> int:
        return 32 * self.n_warps

    @property
    def runs_per_block(self) -> int:
        """Returns the runs whose outputs a block stores. If runs overlap, the last run is the next block's first."""
        return ROWS_PER_WARP * self.n_warps - self.runs_overlap

    @property
    def outputs_per_block(self) -> int:
        return self.runs_per_block * self.outputs_per_run

    @cached_property
    def min_blocks(self) -> int:
        """Returns the number of blocks for which a multiprocessor has registers; if runs overlap, as many as fit."""
        if not self.runs_overlap:
            return int(self.config.get("RESIDENT", MAX_WARPS)) // self.n_warps
        by_registers = WGMMA_REGISTERS // (32 * self.n_warps * ceil_div(self.registers, 8) * 8)
        n_blocks = max(1, min(MAX_WARPS // self.n_warps, by_registers))
        while n_blocks > 1 and not WGMMA_DEVICE.has_shared(self.most_shared_bytes, n_blocks):
            n_blocks -= 1
        return n_blocks

    # ------------------------------------------------------------------ stages of samples
    @property
    def steps_per_stage(self) -> int:
        return int(self.config.STAGE)

    @property
    def n_stages(self) -> int:
        return int(self.config.STAGES)

    @property
    def stages_per_run(self) -> int:
        return ceil_div(self.steps_per_run, self.steps_per_stage)

    @property
    def bits_per_stage(self) -> int:
        """Returns the bits of a row from stage to stage."""
        return self.steps_per_stage * self.bits_per_step

    @property
    def run_bytes(self) -> int:
        """Returns the bytes of samples from run to run, and so from row to row."""
        return self.outputs_per_run * self.problem.decimation * self.problem.sample_bits // 8

    @property
    def box_pitch(self) -> int:
        """Returns the bytes from row to row of a box of the copy engine, a multiple of 16."""
        return (self.run_bytes + 8) // 16 * 16

    @property
    def drift(self) -> int:
        """Returns by how many bytes each row starts further behind its copies than the previous row."""
        return self.run_bytes - self.box_pitch

    @property
    def rows_per_box(self) -> int:
        return DRIFTING_ROWS if self.drift else ROWS_PER_WARP

    @property
    def first_drift(self) -> int:
        """Returns by how many bytes a box's first row starts behind its copies, so that none starts before them."""
        return max(0, -self.drift) * (self.rows_per_box - 1)

    @cached_property
    def pieces_per_row(self) -> int:
        """Returns the number of pieces of 16 bytes that are copied for a row of a stage."""
        return self._pieces((self.rows_per_box - 1) * abs(self.drift))

    @property
    def stage_pitch(self) -> int:
        """Returns the pieces from row to row of a stage. The number is odd, against bank conflicts."""
        return self.pieces_per_row | 1

    def _pieces(self, drift: int) -> int:
        """Returns the pieces up to the words of a stage's last group, if rows drift by at most ``drift`` bytes."""
        n_mmas = (self.steps_per_stage - 1) * self.samples_per_step + self.mmas_per_step * self.samples_per_mma
        first_bit = 8 * drift + (120 if self.steps_are_bytes else 127)  # the latest, from the start of the copies
        last_group = n_mmas * self.problem.sample_bits + first_bit - self.bits_per_group
        return ceil_div(last_group // 32 * 4 + 4 * self.words_per_group, 16)

    @property
    def tensor_map(self) -> TensorMap:
        """Returns the samples of all streams as rows. A row has the samples of a run and the further samples that its
        last outputs need. If runs are not whole pieces, rows drift in a box, and a warp's rows are two boxes.
        """
        n_bytes = self.problem.n_pols * self.problem.row_bytes
        longest = self.box_pitch + 16 * self.stage_pitch
        longest += self.stages_per_run * (self.bits_per_stage // 8 + (not self.steps_are_bytes))
        drifted = self.rows_per_box * self.run_bytes if self.drift else 0
        shape = (longest + drifted) // 4, n_bytes // self.box_pitch + 1
        box = 4 * self.stage_pitch, self.rows_per_box
        return TensorMap(SAMPLES, shape, (self.box_pitch,), box, element=4)

    # ------------------------------------------------------------------ weights
    @cached_property
    def weight_gap(self) -> tuple[int, int]:
        """Returns (shift, gap): mixed weight k lies in shared memory at k + (k >> shift) gap."""
        alone = 4 if self.takes_fields and self.problem.sample_bits > 2 else 1
        register = 0 if not self.takes_bytes else 16 if self.byte_period == 1 else alone
        return weight_gap(self.problem.decimation, self.samples_per_group, register)

    @cached_property
    def mixed_bytes(self) -> int:
        """Returns the bytes of the mixed weights, a zero behind them, and the largest weight of each warp."""
        taps, (shift, gap) = self.problem.taps, self.weight_gap
        return ceil_div(8 * (taps + (taps >> shift) * gap + 1) + 4 * self.n_warps, 16) * 16

    @property
    def n_fragments(self) -> int:
        """Returns the number of fragments of weights that mma.sync takes. A fragment has two words of each lane."""
        return self.n_tiles * self.mmas_per_step * self.octets_per_tile

    @property
    def weights_are_shared(self) -> bool:
        """Returns whether fragments stay in shared memory, since they would fill a thread's registers."""
        return 2 * self.n_fragments + self.sums_per_lane > MAX_MATRIX_WORDS

    @property
    def blocks_in_ring(self) -> int:
        """Returns the number of blocks of weights in the ring. The ring is unrolled if sums stay in their places."""
        return self.n_tiles if self.sums_move else 2 * self.n_tiles - 1

    @cached_property
    def ring_bytes(self) -> int:
        return self._bytes_of_blocks(self.blocks_in_ring)

    @property
    def unrolled_ring_bytes(self) -> int:
        """Returns the bytes of the ring if sums stayed in their places."""
        return self._bytes_of_blocks(2 * self.n_tiles - 1)

    def _bytes_of_blocks(self, n: int) -> int:
        octets = 2 * self.mmas_per_step * n * self.octets_per_tile
        return 128 * (octets + (self.operands_per_sample > 1) + self.fill_octets)

    # ------------------------------------------------------------------ shared memory
    @property
    def overlap_at(self) -> int:
        """Returns the words of a window's row before its part of the run before it: outputs and phasors."""
        return 2 * self.outputs_per_window + 4

    @property
    def window_pitch(self) -> int:
        """Returns the words from row to row of a window. They are an odd multiple of 4, against bank conflicts."""
        overlap = 2 * self.outputs_per_step * self.warm_up_steps if self.runs_overlap else 0
        return self.overlap_at + ceil_div(overlap, 8) * 8

    @property
    def windows_bytes(self) -> int:
        return 4 * self.n_warps * ROWS_PER_WARP * self.window_pitch

    @property
    def fragments_at(self) -> int:
        """Returns the byte of the scratch memory at which fragments start: behind the mixed weights, and if fragments
        stay there, also behind the windows.
        """
        return max(self.windows_bytes, self.mixed_bytes) if self.weights_are_shared else self.mixed_bytes

    @property
    def scratch_bytes(self) -> int:
        """Returns the bytes of the scratch memory, which first holds mixed weights and fragments, and then windows."""
        if self.uses_wgmma:
            return max(self.windows_bytes, self.mixed_bytes)
        return max(self.windows_bytes, self.fragments_at + 256 * self.n_fragments)

    @property
    def shared_bytes(self) -> int:
        return self._shared_bytes(self.stage_pitch)

    @cached_property
    def most_shared_bytes(self) -> int:
        """Returns the most bytes of shared memory that any RUN needs."""
        never_drifts = self.problem.decimation * self.problem.sample_bits % 16 == 0 or not self.runs_overlap
        return self._shared_bytes(self._pieces(0 if never_drifts else (DRIFTING_ROWS - 1) * 8) | 1)

    def _shared_bytes(self, stage_pitch: int) -> int:
        stages = self.n_warps * self.n_stages * ROWS_PER_WARP * 16 * stage_pitch
        if not self.uses_wgmma:
            return stages + self.scratch_bytes
        barriers = ceil_div(8 * self.n_warps * self.n_stages, 16) * 16
        return self.ring_bytes + stages + self.scratch_bytes + barriers

    # ------------------------------------------------------------------ registers, fits to the numbers of NVRTC
    @cached_property
    def registers(self) -> int:
        if self.uses_wgmma:
            return self._wgmma_registers
        own = 0 if self.weights_are_shared else 2 * self.n_fragments
        extra = (
            8 * bool(self.config.get("UNROLL") != 2)
            + 4 * (self.words_per_group > 2 and self.problem.sample_bits != 10)
            + 4 * bool(self.outputs_per_window == 64)
            + 40 * self.weights_are_shared
            + 16 * (self.mmas_per_chain > 0)
        )
        return self.sums_per_lane + own + 8 * self.mmas_per_part + self._half_words + extra + 32

    @property
    def _wgmma_registers(self) -> int:
        part = self.mmas_per_part
        if self.takes_bytes:
            words = 16 * part // self.samples_per_group * self.words_per_group
            if self.samples_per_group == 32:  # parts of four products, whose samples are not all in registers at once
                return self.sums_per_lane + 8 * part + words + 30
            return self.sums_per_lane + 12 * part * self.operands_per_sample + words + 40
        if self.mmas_per_chain:  # twice the sums, and a part's samples three times
            return 2 * self.sums_per_lane + 12 * part + self._half_words + 26 + 8 * (not self.steps_are_bytes)
        return self.sums_per_lane + 8 * self.mmas_per_step + self._half_words + 40

    @property
    def _half_words(self) -> int:
        """Returns the number of words of a part that become halves."""
        return 2 * self.mmas_per_part // (self.samples_per_group // 4) * self.words_per_group


@lru_cache(maxsize=1024)
def weight_gap(decimation: int, group: int, register: int) -> tuple[int, int]:
    """Returns the (shift, gap) with the fewest bank conflicts for weights at places k + (k >> shift) gap of 8 bytes.

    Lanes of a warp take weights `decimation` and `group` apart. With halves (`register` is 0) each lane takes one half,
    16 lanes for each of two outputs. With bytes, half a warp takes 8 bytes per lane for two outputs and two registers,
    which are `register` samples apart.
    """

    def conflicts(shift: int, gap: int, first: int) -> int:
        banks: defaultdict[int, set[int]] = defaultdict(set)
        for lane in range(16 if register else 32):
            output, is_second = (lane // 8, lane // 4 % 2) if register else (lane // 16, 0)
            k = first + lane % 4 * group - output * decimation + is_second * register
            word = 2 * (k + (k >> shift) * gap) + (0 if register else lane // 8 % 2)
            banks[word % 32].add(word)
        return max(map(len, banks.values()))

    firsts = range(decimation, decimation + 512, 37)
    choices = [(4, 1), (3, 1), (5, 1), (6, 1), (7, 1), (3, 2), (4, 2), (5, 2)]
    return min(choices, key=lambda choice: sum(conflicts(choice[0], choice[1], first) for first in firsts))


@lru_cache(maxsize=64)  # constraints ask one after another, for the same config
def tensor_geometry(problem: Problem, config: Config) -> TensorGeometry:
    """Returns the geometry of the tensor algorithm, the same object for the same problem and config."""
    return TensorGeometry(problem, config)
