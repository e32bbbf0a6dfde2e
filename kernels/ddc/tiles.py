"""What ddc computes, and what its tensor algorithm makes of it: steps, tiles of outputs, products and their samples."""

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from autotune import Config, ceil_div

from .problem import Problem

MAX_MATRIX_WORDS = 176  # sums and weights of a thread; the rest of its registers is for samples and addresses
LONG_CHAIN = 32  # products: more of them, and the tensor core's roundings are above those of float32
MAX_PART_WORDS = 128  # of sums, above which fewer samples are in registers together


@dataclass(frozen=True)
class Tiles:
    """What the tensor algorithm makes of a problem; the template derives the same."""

    problem: Problem
    config: Config

    @cached_property
    def step_samples(self) -> int:
        """New samples of a row in a step."""
        return int(self.config.STEP) * self.problem.decimation

    @cached_property
    def step_bytes(self) -> int:
        """Whole ones."""
        return self.step_samples * self.problem.sample_bits // 8

    @property
    def ragged(self) -> bool:
        """Steps start at any bit of a byte."""
        return self.step_samples * self.problem.sample_bits % 8 != 0

    @cached_property
    def uses_wgmma(self) -> bool:
        return bool(self.config.MMA != "mma_sync")

    @cached_property
    def takes_bytes(self) -> bool:
        """Samples and weights are bytes, or halves."""
        return bool(self.config.MMA == "wgmma_int8")

    @cached_property
    def by_fields(self) -> bool:
        """Bytes are made of each sample alone. Those that start at the same bit of a byte are as many as two products
        take, or four of an odd number of bits: parts may be of fewer, and steps start at any bit. Nine bits and more of
        an odd number are too many words for four products.
        """
        if not self.takes_bytes or self.apart <= 2:
            return False
        is_wide = self.apart == 8 and self.problem.sample_bits > 8
        return bool(is_wide or self.config.PART % (self.apart // 2) or self.ragged)

    @property
    def product(self) -> int:
        """Samples of a row that a product takes: 32 bytes."""
        return 32 if self.takes_bytes else 16

    @cached_property
    def products(self) -> int:
        """That a step takes: whole ones; where runs overlap, whole groups, filled up with the next step's samples."""
        together = self.together if self.overlaps else 1
        return together * ceil_div(self.step_samples, together * self.product)

    @property
    def can_multiply(self) -> bool:
        """Steps are whole products of whole words; or, where runs overlap, two parts of whole groups at least."""
        if self.overlaps:
            return self.parts >= 2 and self.part % self.together == 0
        return self.step_samples % (32 if self.problem.sample_bits % 2 else 16) == 0

    @property
    def work(self) -> int:
        """Multiply-adds of the tensor cores for an output and a row."""
        return self.products * self.product * self.live * self.columns

    @cached_property
    def live(self) -> int:
        """Tiles of outputs that are under way."""
        return ceil_div(self.problem.taps + (int(self.config.STEP) - 1) * self.problem.decimation, self.step_samples)

    @property
    def columns(self) -> int:
        """Of an output: two parts, with two halves of the weights each; or with three bytes and, where samples are two,
        or octets would not be whole, a fourth.
        """
        if not self.takes_bytes:
            return 4
        return 6 if self.sample_bytes == 1 and self.config.STEP > 2 else 8

    @cached_property
    def octets(self) -> int:
        """Of columns, of a tile."""
        return int(self.config.STEP) * self.columns // 8

    @cached_property
    def fill_octets(self) -> int:
        """Behind the last tile: products of bytes take an even number, above 4."""
        return self.live * self.octets % 2 if self.takes_bytes and self.live * self.octets > 4 else 0

    @cached_property
    def sum_words(self) -> int:
        """Of a lane."""
        return 4 * (self.live * self.octets + self.fill_octets)

    @property
    def fragments(self) -> int:
        """Of weights: two words of each lane."""
        return self.live * self.products * self.octets

    @property
    def weights_are_shared(self) -> bool:
        """Fragments that would fill a thread's registers stay in shared memory."""
        return 2 * self.fragments + self.sum_words > MAX_MATRIX_WORDS

    @cached_property
    def chain(self) -> int:
        """Products of a sum that the tensor core adds before float32 does, at most; 0: all of them."""
        if self.uses_wgmma:
            return int(self.config.get("CHAIN") or 0)
        if self.live * self.products <= LONG_CHAIN or self.products < 4:
            return 0
        return 8 if self.sum_words < MAX_PART_WORDS else 4

    @cached_property
    def overlaps(self) -> bool:
        """Runs share their outputs at the ends, or the samples that these need."""
        return self.takes_bytes or bool(self.config.get("CHAIN"))

    @property
    def sums_move(self) -> bool:
        """With each step, to the places that weights have; or weights do. Chains are added to them in any case."""
        return self.overlaps and (not self.takes_bytes or bool(self.config.SUMS == "move"))

    @cached_property
    def group(self) -> tuple[int, int]:
        """Consecutive samples of a lane, and the words that they lie in. Of even widths, samples that start at the same
        bit of a byte share a register; runs may have to start that much earlier for it. Bytes are made of whole words,
        or, if runs cannot start so much earlier, of one more.
        """
        bits, apart = self.problem.sample_bits, self.apart
        if self.by_fields:
            return 8, ceil_div(bits + 3 + self.ragged, 4)
        if self.takes_bytes:
            is_aligned = self.step_samples * bits % 32 == 0 and self.room >= 3 * apart
            return 4 * apart, apart * bits // 8 + (not is_aligned)
        if self.ragged:
            return 8, max(2, ceil_div(bits + 4, 4))
        samples = 8 if apart >= 4 else 4
        two_words = samples * bits // 8 + 3 <= 8
        even = self.step_bytes % 2 == 0 and self.room >= apart
        together = samples // 4
        whole = (self.config.PART if self.overlaps else self.products) % together == 0
        paired = bits % 2 == 0 and whole and (two_words or even)
        if not paired:
            samples = 8 if bits % 2 else 4
        return samples, max(2, ceil_div(samples * bits // 8 + (2 if paired and not two_words else 3), 4))

    @property
    def apart(self) -> int:
        """From a sample to the next one that starts at the same bit of a byte."""
        return 8 // gcd(8, self.problem.sample_bits)

    @property
    def sample_bytes(self) -> int:
        """Operands that a sample is made into."""
        return 2 if self.takes_bytes and self.problem.sample_bits > 8 else 1

    @property
    def room(self) -> int:
        """Zeros that are left in front of the weights and behind them."""
        problem = self.problem
        return self.live * self.step_samples - problem.taps - (int(self.config.STEP) - 1) * problem.decimation

    @property
    def together(self) -> int:
        """Products that whole groups are samples for."""
        return max(1, self.group[0] // (8 if self.takes_bytes else 4))

    @cached_property
    def part(self) -> int:
        """Products whose samples are in registers together; where runs overlap, a step's last part may have fewer."""
        if self.overlaps:
            return int(self.config.PART)
        part = max(self.together, self.chain or 2)
        while part > self.together and (self.products % part or part % self.together):
            part -= 1
        return part

    @property
    def parts(self) -> int:
        """Of a step."""
        return ceil_div(self.products, self.part)
