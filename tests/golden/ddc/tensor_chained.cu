// ddc[taps=1024,decimation=64,sample_bits=10|ALGORITHM=tensor,MMA=mma_sync,RESIDENT=4,STEP=2,RUN=64,STAGE=1,STAGES=2,UNROLL=1,WINDOW=32]
// y[p][j] = sum over k < TAPS of w[k] x[p][j D + k] e^(2 pi i (f (j D + k) + phase)),  D = DECIMATION
//   baseband  out  float2 [n_pols][n_out]       (re, im)
//   samples   in   uint8  [n_pols][row_bytes]   SAMPLE_BITS wide, two's complement, most significant bit first
//   weights   in   float  [TAPS]
//   f = (frequency_high, frequency_low), a 128-bit fraction of a cycle a sample; phase, a 64-bit fraction of a cycle
// The mixer goes into the weights, h[k] = w[k] e^(2 pi i f k), so that real samples meet complex weights: two
// multiply-adds for a tap of an output. What is left of it is one rotation of each output.

constexpr int TAPS = 1024;  // weights of the filter
constexpr int DECIMATION = 64;  // samples from one output to the next
constexpr int SAMPLE_BITS = 10;

// N consecutive floats that one instruction moves; the address must be a multiple of 4 N bytes.
template <int N>
struct alignas(4 * N) Floats {
    float at[N];
};

template <int N>
__device__ __forceinline__ Floats<N> load_floats(const float* address)
{
    return *reinterpret_cast<const Floats<N>*>(address);
}

template <int N>
__device__ __forceinline__ void store_floats(float* address, Floats<N> floats)
{
    *reinterpret_cast<Floats<N>*>(address) = floats;
}

__host__ __device__ constexpr int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

// (value & mask) ^ pattern in one instruction: a compiler that sees two constants makes two of it.
__device__ __forceinline__ unsigned and_xor(unsigned value, unsigned mask, unsigned pattern)
{
#ifdef AUTOTUNE_HOST
    return (value & mask) ^ pattern;
#else
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(value), "r"(mask), "r"(pattern));
    return result;
#endif
}

// Hides where a number came from: it stays in its register, because the compiler cannot compute it again from others
// wherever it is used.
template <class Number>
__device__ __forceinline__ Number opaque(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}

// A phase is a 64-bit fraction of a cycle, so that wrapping of integers is wrapping of the phase: exact for ever.
// A frequency, in cycles a sample, is a 128-bit fraction in two words: rounded at 2^-128, it adds up to less than
// 2^-64 cycles of error over any number of samples that fits 64 bits.
typedef unsigned long long Phase;

struct Frequency {
    Phase high, low;
};

// f * n modulo 1
__device__ __forceinline__ Phase advance(Frequency f, unsigned long long n)
{
    return f.high * n + __umul64hi(f.low, n);
}

// e^(2 pi i phase). Its top 32 bits as a signed fraction of half a cycle: within 2^-25 half cycles of the phase.
__device__ __forceinline__ float2 unit_vector(Phase phase)
{
    float2 z;
    sincospif(static_cast<float>(static_cast<int>(phase >> 32)) * 4.656612873077393e-10f, &z.y, &z.x);  // 2^-31
    return z;
}

__device__ __forceinline__ float2 multiply(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Copies from global to shared memory that the threads do not wait for, 16 bytes each; both addresses are multiples of
// 16. Of the 16 bytes, `n` are read, and the others become 0.
__device__ __forceinline__ void copy_async(void* to, const void* from, int n)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16, 16 - n);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(n)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_async(void* to, const void* from)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from)
                 : "memory");
#endif
}

// The copies so far, of this thread, since the last such call: a group.
__device__ __forceinline__ void close_group()
{
#ifdef AUTOTUNE_HOST
    __pipeline_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most N of this thread's groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_groups()
{
#ifdef AUTOTUNE_HOST
    __pipeline_wait_prior(N);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

// ALGORITHM tensor, MMA mma_sync: the filter as a product of matrices, on tensor cores.
// Work    a warp <-> ROWS_PER_WARP runs of OUTPUTS_PER_RUN consecutive outputs; a run is a row of the matrices
//         a block <-> N_WARPS warps that share nothing but the mixed weights; polarisation blockIdx.y
// Step    SAMPLES_PER_STEP new samples of each row become fragments of halves, MMAS_PER_STEP of them. A step begins
//         OUTPUTS_PER_STEP outputs of each row, a tile; N_TILES tiles are under way, and the samples meet a different
//         block of weights in each:
//             samples of step v      |  0  |  1  |  2  |  3  | ...         block q of the weights of output s:
//             tile 0  (outputs 0, 1) | w 0 | w 1 | w 2 | done                  h[q SAMPLES_PER_STEP + k - s D]
//             tile 1  (outputs 2, 3)       | w 0 | w 1 | w 2 | done        for sample k of the step: the output's
//             tile 2  (outputs 4, 5)             | w 0 | w 1 | ...         later start is zeros in front of it
//         so that no sample is decoded or moved twice.
// Columns 4 for each output: real and imaginary part, each with high and low halves of the weights; the low ones are
//         2^11 times too large. A lane's two columns are the high and low part of the same number.
// Window  finished outputs go to shared memory, and from there OUTPUTS_PER_WINDOW of a row to the baseband, 256 bytes a
//         store.

// Shape: the geometry of this variant. kernels/ddc/tensor.py derives it, under the same names, and says how; nothing
// here is derived again, only asserted. Parts take it as their template parameter Shape.
// Words    a run       consecutive outputs: a row of the samples' matrix; a warp has 16
//          a step      OUTPUTS_PER_STEP outputs of each row begin, a tile; N_TILES tiles are under way
//          a part      products of a step whose samples are in registers together
//          a stage     steps whose samples are copied together
//          a window    outputs of each row that are stored together
//          a group     consecutive samples that a lane decodes together; lane l1 l0 of a row takes each fourth one
struct Shape {
    // The block
    static constexpr int N_THREADS = 128;  // blockDim.x
    static constexpr int N_WARPS = 4;
    static constexpr int MIN_BLOCKS = 1;  // of a multiprocessor, which has registers for them
    static constexpr int ROWS_PER_WARP = 16;  // of a matrix of samples

    // Steps and tiles
    static constexpr int OUTPUTS_PER_STEP = 2;  // of a row
    static constexpr int OUTPUTS_PER_RUN = 64;
    static constexpr int OUTPUTS_PER_WINDOW = 32;  // of a row
    static constexpr int SAMPLES_PER_STEP = 128;  // of a row
    static constexpr int BITS_PER_STEP = 1280;  // of a row
    static constexpr bool STEPS_ARE_BYTES = true;  // they start at any bit of a byte otherwise
    static constexpr int STEPS_PER_ITERATION = 1;  // of the mainloop
    static constexpr int STEPS_PER_WINDOW = 16;
    static constexpr int STEPS_PER_RUN = 40;
    static constexpr int WARM_UP_STEPS = 8;  // before the first outputs of a run are done
    static constexpr int END_STEP = STEPS_PER_RUN - WARM_UP_STEPS;  // behind the last: step 0's are done first
    static constexpr int N_TILES = 9;  // under way; also the blocks of weights, one for each
    // The next run adds what a run's last samples begin; otherwise runs take the samples of their last outputs, too.
    static constexpr bool RUNS_OVERLAP = false;

    // Products (MMAs): a row's samples times a block's column of weights
    static constexpr int SAMPLES_PER_MMA = 16;  // of a row: 32 bytes of operands
    static constexpr int OPERANDS_PER_SAMPLE = 1;
    static constexpr int MMAS_PER_STEP = 8;  // samples of the next step fill the last one up
    static constexpr int MMAS_PER_PART = 8;  // a step's last part may have fewer
    static constexpr int PARTS_PER_STEP = 1;
    static constexpr int MMAS_PER_CHAIN = 8;  // that tensor cores add before float32 does; 0: all
    static constexpr int COLUMNS_PER_OUTPUT = 4;
    static constexpr int OCTETS_PER_TILE = 1;  // of columns
    static constexpr int FILL_OCTETS = 0;  // behind the last tile, where an even number is needed
    static constexpr int COLUMNS_PER_MMA = 72;  // by wgmma: of all tiles, and what fills them up
    static constexpr bool SUMS_MOVE = false;  // with each step; or weights do

    // Groups of samples
    static constexpr int BYTE_PERIOD = 4;  // samples, behind which one starts at the same bit of a byte
    static constexpr int SAMPLES_PER_GROUP = 8;  // whole bytes
    static constexpr int BITS_PER_GROUP = 80;
    static constexpr int WORDS_PER_GROUP = 3;  // that a group lies in, wherever it starts
    static constexpr int MMAS_PER_GROUP = 2;  // that whole groups are samples for
    static constexpr int GROUPS_PER_PART = 4;  // of a lane and a row
    static constexpr int GROUP_STRIDE = 10;  // words, from group to group of a lane
    static constexpr int PART_STRIDE = 40;  // words, from part to part
    static constexpr bool SAMPLES_ARE_PAIRED = true;  // halves are made two at a time
    static constexpr bool GROUPS_START_EVEN = true;  // at an even byte, of paired samples
    static constexpr bool GROUPS_ARE_WORDS = false;  // of bytes: they start at words

    // Stages and boxes of packed samples
    static constexpr int STEPS_PER_STAGE = 1;
    static constexpr int N_STAGES = 2;  // that there is room for
    static constexpr int STAGES_PER_RUN = 40;
    static constexpr int BITS_PER_STAGE = 1280;  // of a row
    static constexpr int PIECES_PER_ROW = 11;  // of 16 bytes, of a stage
    static constexpr int STAGE_PITCH = 11;  // pieces, from row to row
    static constexpr long long RUN_BYTES = 5120;  // from row to row of the samples
    static constexpr long long BOX_PITCH = 5120;  // bytes, from row to row of a box
    static constexpr int ROWS_PER_BOX = 16;
    static constexpr int DRIFT = 0;  // bytes by which a row starts further behind its copies than the last
    static constexpr int FIRST_DRIFT = 0;  // of a box's first row

    // Weights
    static constexpr int WEIGHT_GAP_SHIFT = 4;  // behind each 2^.. mixed weights in shared memory
    static constexpr int WEIGHT_GAP = 1;  // there is room for so many, against conflicts of banks
    static constexpr int MIXED_BYTES = 8736;  // of the mixed weights and what belongs to them
    static constexpr int N_FRAGMENTS = 72;  // of weights, as mma.sync takes them
    static constexpr bool WEIGHTS_ARE_SHARED = true;  // or in registers, by mma.sync
    static constexpr int BLOCKS_IN_RING = 17;  // of weights, as wgmma takes them

    // Windows of outputs
    static constexpr int WINDOW_PITCH = 68;  // words, from row to row
    static constexpr int OVERLAP_AT = 68;  // words of a row before what it has of the run before it
    static constexpr int WINDOWS_BYTES = 17408;
    static constexpr int FRAGMENTS_AT = 17408;  // bytes of the scratch memory before the fragments
    static constexpr int SCRATCH_BYTES = 35840;  // mixed weights and fragments, then the windows
    static constexpr int SHARED_BYTES = 58368;  // dynamic, what a launch asks for

    static_assert(N_THREADS == 32 * N_WARPS);
    static_assert(SAMPLES_PER_STEP == OUTPUTS_PER_STEP * DECIMATION && BITS_PER_STEP == SAMPLES_PER_STEP * SAMPLE_BITS);
    static_assert(N_TILES * SAMPLES_PER_STEP >= TAPS + (OUTPUTS_PER_STEP - 1) * DECIMATION, "each tile meets all taps");
    static_assert(MMAS_PER_STEP * SAMPLES_PER_MMA >= SAMPLES_PER_STEP, "products take all samples of a step");
    static_assert(MMAS_PER_STEP % MMAS_PER_GROUP == 0 && MMAS_PER_PART % MMAS_PER_GROUP == 0, "whole groups a part");
    static_assert(OUTPUTS_PER_STEP * COLUMNS_PER_OUTPUT == 8 * OCTETS_PER_TILE, "a tile has whole octets of columns");
    static_assert(OUTPUTS_PER_WINDOW % OUTPUTS_PER_STEP == 0 && OUTPUTS_PER_RUN % OUTPUTS_PER_STEP == 0, "whole steps");
    static_assert(RUNS_OVERLAP || OUTPUTS_PER_RUN % OUTPUTS_PER_WINDOW == 0, "whole windows a run");
    static_assert(BITS_PER_STAGE == STEPS_PER_STAGE * BITS_PER_STEP);
    static_assert(STAGES_PER_RUN * STEPS_PER_STAGE >= STEPS_PER_RUN);
    static_assert(STAGE_PITCH % 2 == 1, "loads of words by 8 rows of 4 lanes are mostly free of bank conflicts");
    static_assert(RUN_BYTES % 2 == 0, "a lane reads of rows 8 apart, which start alike within 16 bytes");
    static_assert(BOX_PITCH % 16 == 0 && DRIFT == RUN_BYTES - BOX_PITCH && (DRIFT == 0 || ROWS_PER_BOX == 8));
    static_assert(WINDOW_PITCH % 8 == 4, "stores by 8 rows of 4 lanes have no bank conflicts");

    static constexpr bool STAGES_START_ALIKE = BITS_PER_STAGE % 128 == 0;  // within 16 bytes

    // Returns the products of part `part` of a step.
    __host__ __device__ static constexpr int mmas_of_part(int part)
    {
        return part == PARTS_PER_STEP - 1 ? MMAS_PER_STEP - part * MMAS_PER_PART : MMAS_PER_PART;
    }

    // Returns where mixed weight k lies, 8 bytes each; a zero is at TAPS. Lanes take weights of outputs next to each
    // other, DECIMATION apart, and of groups of samples: gaps keep most of them from meeting in a bank.
    __host__ __device__ static constexpr unsigned place_of_weight(unsigned k)
    {
        return k + (k >> WEIGHT_GAP_SHIFT) * WEIGHT_GAP;
    }

    // Returns the place of the zero where there is no such weight; below 0 there is none either.
    __device__ __forceinline__ static unsigned place_of_any(int k)
    {
        return place_of_weight(min(static_cast<unsigned>(k), static_cast<unsigned>(TAPS)));
    }
};

// A part of a step: the packed words that a lane loads of it, and the operands that they become.
// Needs     Shape
// Provides  Words, Operands; load_words, from a stage to registers
template <class Shape>
using Words = unsigned[2][Shape::GROUPS_PER_PART][Shape::WORDS_PER_GROUP];  // [row of the lane's two]

template <class Shape>
using Operands = unsigned[Shape::MMAS_PER_PART * Shape::OPERANDS_PER_SAMPLE][4];  // [product][register]

// Loads the words of the part's first `n` products. `from`: the lane's first one of its first row.
template <class Shape>
__device__ __forceinline__ void load_words(Words<Shape>& words, const unsigned* from, int n = Shape::MMAS_PER_PART)
{
#pragma unroll
    for (int i = 0; i < 2 * Shape::GROUPS_PER_PART * Shape::WORDS_PER_GROUP; ++i) {
        const int r = i / (Shape::GROUPS_PER_PART * Shape::WORDS_PER_GROUP);
        const int g = i / Shape::WORDS_PER_GROUP % Shape::GROUPS_PER_PART, w = i % Shape::WORDS_PER_GROUP;
        if (g * Shape::MMAS_PER_PART < n * Shape::GROUPS_PER_PART)
            words[r][g][w] = from[r * (8 * Shape::STAGE_PITCH * 4) + g * Shape::GROUP_STRIDE + w];
    }
}

// Decode, to halves: packed samples become halves in the registers that a product takes them from.
// Needs     Shape; lib/bits.cuh (and_xor), lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div),
//           part.cuh (Words, Operands)
// Provides  DecodeHalves: skew_of, sample_of: which sample meets which row of the weights
//           its constructor, align_to, bit: where a lane's first group starts in its row of a stage
//           decode, then finished: words -> halves above BIAS -> halves. `unbiased` is finished for mma_sync
// Any sample of a step may meet any row of the weights: lane l1 l0 of a row takes SAMPLES_PER_GROUP
// consecutive ones, whole bytes, from each MMAS_PER_GROUP products.
//     fragment of product m: lane l has samples m 16 + 4 l + (0 1 2 3) of the row, if groups are of 4; a register holds
//     two, the first in its high half. Rows l4 l3 l2 and 8 + l4 l3 l2 alternate from register to register.
// A half is made of a field without a conversion: below the exponent of 1024 a field is worth what it says.
//     (field ^ sign bit) | half(1024) = 1024 + sample + 2^(SAMPLE_BITS-1), and one exact subtraction leaves the sample
// 11 and 12 bits are two fields, of which the upper one is multiplied by 4 as it is added.
// Samples of even widths that are BYTE_PERIOD apart start at the same bit of a byte. They share a register, so that one
// PRMT finds the bytes of both, and one shift and one mask serve both:
//     product m, lane l, pair j of its group (register j % 2)     samples j (high half) and j + BYTE_PERIOD
//                                                                 of 8 bits, 2 j and 2 j + 1
// Where a group then lies in two words only if it starts at an even byte, runs may have to start BYTE_PERIOD samples
// earlier (`skew`): the weights must leave the room.
// Where steps start at any bit of a byte, groups do, too: words are shifted into place, and samples taken one by one.
#include <cuda_fp16.h>

template <class Shape>
struct DecodeHalves {
    static constexpr int ALIGNED_WORDS = ceil_div(Shape::BITS_PER_GROUP, 32);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    // A pair of samples lies in the first 5 bytes of its group: one PRMT finds its bytes in two words, wherever they
    // start.
    static constexpr bool NARROW =
        Shape::STEPS_ARE_BYTES && !Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS % 2 == 0 && SAMPLE_BITS <= 10;
    static constexpr bool SAME_BYTES = SAMPLE_BITS <= 4;  // all pairs of a group are in the same two
    static constexpr int LOW_BITS = SAMPLE_BITS < 10 ? SAMPLE_BITS : 10;  // the mantissa's
    static constexpr int TOP_BITS = SAMPLE_BITS - LOW_BITS;
    static constexpr unsigned EXPONENT = 0x6400;  // of 1024
    // Decoding leaves halves that are too large by so much.
    static constexpr unsigned BIAS = TOP_BITS == 0 ? EXPONENT | 1u << (SAMPLE_BITS - 1) : 0;
    static_assert(Shape::MMAS_PER_GROUP * 4 == Shape::SAMPLES_PER_GROUP && Shape::OPERANDS_PER_SAMPLE == 1);
    static_assert(Shape::MMAS_PER_GROUP * SAMPLE_BITS % 2 == 0, "groups start alike within a word");

    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    // There is one for each pair, if samples are paired (selector_of); for samples 0 and 1, 2 and 3, if NARROW; or one.
    unsigned selectors[4];

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit DecodeHalves(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier, so that groups start where they should.
    __device__ __forceinline__ static int skew_of(long long first_byte)
    {
        return Shape::GROUPS_START_EVEN && first_byte % 2 != 0 ? Shape::BYTE_PERIOD : 0;  // an odd number of bytes
    }

    // Returns the sample of a product's row 0 (of 0 to 3: a lane), register `r` and half `h` of it (0: the low one);
    // those of the other rows follow SAMPLES_PER_GROUP samples apart.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int h)
    {
        const int first = product / Shape::MMAS_PER_GROUP * (4 * Shape::SAMPLES_PER_GROUP);
        const int in_group = product % Shape::MMAS_PER_GROUP;
        return Shape::SAMPLES_ARE_PAIRED ? first + leader_of(in_group * 2 + r) + Shape::BYTE_PERIOD * (1 - h)
                                     : first + in_group * 4 + r * 2 + 1 - h;
    }

    // Gets ready for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        const unsigned rest = 0x1111u * (group_bit >> 3 & 3);
        if constexpr (Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS == 10) {  // of four bytes; samples 0, 4; samples 3, 7
            selectors[0] = opaque(rest + 0x4321u);
            selectors[1] = opaque(0x0145u + (rest & 0xff00u));
            selectors[2] = opaque(0x2345u + (rest & 0x00ffu));
        } else if constexpr (Shape::SAMPLES_ARE_PAIRED) {
#pragma unroll
            for (int pair = 0; pair < (SAME_BYTES ? 1 : Shape::SAMPLES_PER_GROUP / 2); ++pair)
                selectors[pair] = opaque(rest + selector_of(leader_of(pair)));
        } else if constexpr (NARROW) {
            selectors[0] = opaque(rest + selector(0));
            selectors[1] = opaque(rest + selector(2));
        } else {
            selectors[0] = opaque(rest + 0x0123u);
        }
    }

    // Makes halves above BIAS of the words of the part's first `n` products.
    __device__ __forceinline__ void decode(
        Operands<Shape>& halves, const Words<Shape>& words, int n = Shape::MMAS_PER_PART) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::GROUPS_PER_PART; ++i) {
            const int g = i / 2, r = i % 2;
            if (g * Shape::MMAS_PER_GROUP >= n)
                continue;
            if constexpr (Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS == 10)
                decode_pairs_of_10(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
            else if constexpr (Shape::SAMPLES_ARE_PAIRED)
                decode_pairs(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
            else
                decode_group<0>(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
        }
    }

    // Takes BIAS away, by an instruction that the compiler cannot leave out or move.
    __device__ __forceinline__ unsigned finished(unsigned halves, int) const
    {
#ifdef AUTOTUNE_HOST
        return unbiased(halves);
#else
        constexpr unsigned LESS = BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001;
        unsigned result;
        asm volatile("add.f16x2 %0, %1, %2;" : "=r"(result) : "r"(halves), "r"(LESS));
        return result;
#endif
    }

    __device__ __forceinline__ static unsigned unbiased(unsigned halves)
    {
        return BIAS == 0 ? halves : as_word(__hadd2(as_halves(halves), __half2half2(__ushort_as_half(0x8000 | BIAS))));
    }

private:
    // ---- groups of samples that are taken one by one: the two registers of product IN_GROUP of a group, and behind it
    template <int IN_GROUP>
    __device__ __forceinline__ void decode_group(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
        if constexpr (IN_GROUP < Shape::MMAS_PER_GROUP) {
            if constexpr (NARROW) {
                const unsigned t0 = __byte_perm(words[0], words[1], selectors[0]);
                const unsigned t1 = __byte_perm(words[0], words[1], selectors[1]);
                halves[first][r] = two_halves(t0 >> shift_of(0), t0 >> shift_of(1));
                halves[first][2 + r] = two_halves(t1 >> shift_of(2), t1 >> shift_of(3));
            } else {
                unsigned aligned[ALIGNED_WORDS];
                unsigned whole[SHIFTED_WORDS];  // from a byte on
#pragma unroll
                for (int w = 0; w < SHIFTED_WORDS; ++w)
                    whole[w] = __byte_perm(words[w], words[w + 1 < Shape::WORDS_PER_GROUP ? w + 1 : w], selectors[0]);
#pragma unroll
                for (int w = 0; w < ALIGNED_WORDS; ++w)
                    aligned[w] = Shape::STEPS_ARE_BYTES
                        ? whole[w]
                        : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
                constexpr int A = IN_GROUP * 4;
                halves[first + IN_GROUP][r] = two_halves(place<A, 16>(aligned), place<A + 1, 0>(aligned));
                halves[first + IN_GROUP][2 + r] = two_halves(place<A + 2, 16>(aligned), place<A + 3, 0>(aligned));
            }
            decode_group<IN_GROUP + 1>(halves, first, r, words);
        }
    }

    __host__ __device__ static constexpr unsigned selector(int sample)
    {
        return byte_of(sample) * 0x1100u + 0x0100u + byte_of(sample + 1) * 0x0011u + 0x0001u;
    }

    // Returns which two bytes one PRMT takes for a sample, most significant first.
    __host__ __device__ static constexpr int byte_of(int sample)
    {
        const int first = sample * SAMPLE_BITS / 8;
        const bool in_one = (sample + 1) * SAMPLE_BITS <= (first + 1) * 8;
        return in_one && first > 0 ? first - 1 : first;  // the second of the two, so that none is past the group's end
    }

    // Returns the bits behind it in those two bytes.
    __host__ __device__ static constexpr int shift_of(int sample)
    {
        return (byte_of(sample) + 2) * 8 - (sample + 1) * SAMPLE_BITS;
    }

    // Bits [at, at + SAMPLE_BITS) are sample number SAMPLE of a group, most significant bit first.
    template <int SAMPLE, int AT>
    __device__ __forceinline__ static unsigned place(const unsigned (&group)[ALIGNED_WORDS])
    {
        constexpr int end = (SAMPLE + 1) * SAMPLE_BITS;
        constexpr int word = (end - 1) / 32;
        constexpr int right = (word + 1) * 32 - end - AT;  // how far to shift
        constexpr bool in_two = end - SAMPLE_BITS < word * 32;
        if constexpr (right < 0)
            return group[word] << -right;
        else if constexpr (in_two)
            return __funnelshift_r(group[word], group[word - in_two], right);
        else
            return group[word] >> right;
    }

    // ---- pairs of samples that start at the same bit of a byte: the registers of a group's products, from `first` on
    __device__ __forceinline__ void decode_pairs(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
#pragma unroll
        for (int pair = 0; pair < Shape::SAMPLES_PER_GROUP / 2; ++pair) {
            const int leader = leader_of(pair);
            const unsigned bytes = __byte_perm(words[0], words[1], selectors[SAME_BYTES ? 0 : pair]);
            halves[first + pair / 2][pair % 2 * 2 + r] =
                two_halves(bytes >> ((last_byte_of(leader) + 1) * 8 - (leader + 1) * SAMPLE_BITS));
        }
    }

    // The four registers of two products of 10 bits, for one row: a register has bytes i, i + 1, i + 5 and i + 6 of the
    // group.
    __device__ __forceinline__ void decode_pairs_of_10(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
        constexpr int LAST = Shape::WORDS_PER_GROUP - 1;
        const unsigned bytes_1 = __byte_perm(words[0], words[1], selectors[0]);  // 1 to 4
        const unsigned bytes_5 = __byte_perm(words[1], words[LAST], selectors[0]);  // 5 to 8
        halves[first][r] = two_halves(__byte_perm(words[0], bytes_5, selectors[1]) >> 6);
        halves[first][2 + r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x0156) >> 4);
        halves[first + Shape::MMAS_PER_GROUP - 1][r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x1267) >> 2);
        halves[first + Shape::MMAS_PER_GROUP - 1][2 + r] = two_halves(__byte_perm(bytes_1, words[LAST], selectors[2]));
    }

    // Returns the first sample of pair `pair` of a group.
    __host__ __device__ static constexpr int leader_of(int pair)
    {
        return Shape::BYTE_PERIOD == 1 ? 2 * pair : pair;
    }

    // Selects the bytes of sample `leader`, most significant first, and of the one BYTE_PERIOD behind it; where a
    // sample lies in one byte, twice that byte.
    __host__ __device__ static constexpr unsigned selector_of(int leader)
    {
        const int from_first_to_other = Shape::BYTE_PERIOD * SAMPLE_BITS / 8;
        return leader * SAMPLE_BITS / 8 * 0x1010u + last_byte_of(leader) * 0x0101u + from_first_to_other * 0x0011u;
    }

    __host__ __device__ static constexpr int last_byte_of(int sample) { return ((sample + 1) * SAMPLE_BITS - 1) / 8; }

    // ---- fields to halves
    // Makes halves above BIAS of samples in the low SAMPLE_BITS of halves, whatever is above them.
    __device__ __forceinline__ static unsigned two_halves(unsigned fields)
    {
        constexpr unsigned LOW = (1u << LOW_BITS) - 1;
        const unsigned lower = and_xor(fields, LOW * 0x10001, (EXPONENT | BIAS) * 0x10001);  // 1024 + the low bits
        if constexpr (TOP_BITS == 0) {
            return lower;
        } else {
            constexpr unsigned TOP = ((1u << TOP_BITS) - 1) << 8;  // worth 256 each
            const unsigned upper = and_xor(fields >> 2, TOP * 0x10001, (EXPONENT | 128u << TOP_BITS) * 0x10001);
            // 256 (top bits, signed) - 256, so that 4 times it takes the lower part's 1024 away as well
            const __half2 top = __hadd2(as_halves(upper), __half2half2(__int2half_rn(-(1280 + (128 << TOP_BITS)))));
            return as_word(__hfma2(top, __half2half2(__int2half_rn(4)), as_halves(lower)));
        }
    }

    // Does so with two words: one has a sample in the low SAMPLE_BITS of its high half, the other of its low half.
    __device__ __forceinline__ static unsigned two_halves(unsigned high, unsigned low)
    {
        if constexpr (TOP_BITS == 0) {
            constexpr unsigned LOW = (1u << LOW_BITS) - 1;
            return and_xor(low, LOW, and_xor(high, LOW << 16, BIAS * 0x10001));
        } else {
            constexpr unsigned ALL = (1u << SAMPLE_BITS) - 1;
            return two_halves(and_xor(low, ALL, and_xor(high, ALL << 16, 0)));
        }
    }

    __device__ __forceinline__ static __half2 as_halves(unsigned word)
    {
        return *reinterpret_cast<const __half2*>(&word);
    }

    __device__ __forceinline__ static unsigned as_word(__half2 halves)
    {
        return *reinterpret_cast<const unsigned*>(&halves);
    }
};

// Weights as two halves, each of 11 bits: h = high + low 2^-11. They are scaled by a power of two, so that the largest
// is in [2^14, 2^15): no half overflows, and what is 2^28 times smaller is still a normal number.
// Needs     Shape; Decode: DecodeHalves, whose sample_of says which sample meets which row
// Provides  WeightHalves: split, and the constants of its scale, for weights_mixed.cuh
//           take, words_of: what a lane has of a block, as mma.sync takes it, for weights_ring.cuh and
//           weights_fragments.cuh
#include <cuda_fp16.h>

template <class Shape, class Decode>
struct WeightHalves {
    typedef ushort4 Parts;  // (re high, re low, im high, im low)

    static constexpr int LARGEST = 14;  // the exponent of the largest weight
    static constexpr unsigned ALMOST = 0;  // floats that are by so much below a power of two count as above it
    // The exponent of a largest weight of 2^-100, below which the scale would overflow.
    static constexpr unsigned LEAST_EXPONENT = 27;
    static constexpr int SAMPLE_SCALE = 0;  // the exponent of what samples are multiplied by
    static constexpr int OCTETS_PER_UNIT = 1;  // octets of columns, which have whole outputs
    static constexpr bool ALTERNATES_REGISTERS = false;  // see words_of
    static constexpr int COLUMNS_EARLIER = 0;  // that a sample's first operand is multiplied with

    __device__ __forceinline__ static Parts split(float re, float im)
    {
        const ushort2 r = halves_of(re), i = halves_of(im);
        return make_ushort4(r.x, r.y, i.x, i.y);
    }

    struct Taken {
        unsigned short halves[2][2];  // that a lane has of a product: of both registers that mma.sync takes
    };

    // Takes, for product `product` of a step, what a block of weights has for the lane's column of octet `unit`.
    __device__ __forceinline__ static Taken take(
        const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
    {
        const int column = lane / 4, own = lane % 4 * Shape::SAMPLES_PER_GROUP;
        const int back = own - column / 4 * DECIMATION - skew;
        const int first = block * Shape::SAMPLES_PER_STEP - unit * (2 * DECIMATION);
        const unsigned short* const parts = &weights->x + column % 4;
        Taken taken;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int of_row_0 = Decode::sample_of(product, i / 2, i % 2);
            const bool is_own =
                Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP
                || own + of_row_0 < Shape::SAMPLES_PER_STEP;
            const unsigned place =
                is_own ? Shape::place_of_any(back + (first + of_row_0)) : Shape::place_of_weight(TAPS);
            taken.halves[i / 2][i % 2] = parts[place * 4];
        }
        return taken;
    }

    // Makes the two registers.
    __device__ __forceinline__ static void words_of(unsigned (&words)[OCTETS_PER_UNIT][2], const Taken& taken, int)
    {
#pragma unroll
        for (int r = 0; r < 2; ++r)
            words[0][r] = taken.halves[r][0] | taken.halves[r][1] << 16;
    }

private:
    __device__ __forceinline__ static ushort2 halves_of(float x)
    {
        const __half high = __float2half_rn(x);
        const __half low = __float2half_rn((x - __half2float(high)) * 2048.0f);
        return make_ushort2(__half_as_ushort(high), __half_as_ushort(low));
    }
};

// Weights are fetched, multiplied by the mixer's phasors, scaled and split, by the block.
// Needs     Shape; Weights: WeightHalves or WeightBytes, which says how they are split;
//           lib/phase.cuh (Frequency, advance, multiply, unit_vector), lib/vector.cuh (ceil_div)
// Provides  MixedWeights: fetch, then mix, to shared memory; weights_in, each at its Shape::place_of_weight
template <class Shape, class Weights>
struct MixedWeights {
    typedef typename Weights::Parts Parts;
    static constexpr int WEIGHTS_PER_THREAD = ceil_div(TAPS, Shape::N_THREADS);  // at most
    typedef float Fetched[WEIGHTS_PER_THREAD];

    Parts weights[Shape::place_of_weight(TAPS) + 1];  // a zero behind the last one
    unsigned largest[Shape::N_WARPS];  // of the warp's share of the weights, as bits

    // Fetches a thread's weights, before all else: behind samples they would wait for all of those.
    __device__ __forceinline__ static void fetch(Fetched& fetched, const float* __restrict__ weights)
    {
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i)
            fetched[i] = is_weight(i) ? weights[own_weight(i)] : 0.0f;
    }

    // Mixes weights to `scratch`, by the whole block. Returns what sums are to be multiplied by.
    __device__ __forceinline__ static float mix(unsigned char* scratch, const Fetched& fetched, Frequency frequency)
    {
        MixedWeights& mixed = *reinterpret_cast<MixedWeights*>(scratch);
        // The phasor of weight k is the product of those of weights k % 32, the lane's own, and k - k % 32, which lane
        // i % 32 has of the warp's i-th 32 weights.
        constexpr int FAR = ceil_div(WEIGHTS_PER_THREAD, 32);
        const int lane = threadIdx.x % 32;
        const float2 near = unit_vector(advance(frequency, lane));
        float2 far[FAR];
#pragma unroll
        for (int i = 0; i < FAR; ++i)
            far[i] = unit_vector(advance(frequency, own_weight(lane + 32 * i) - lane));
        if (threadIdx.x == 0)
            mixed.weights[Shape::place_of_weight(TAPS)] = {};  // which is no weight
        unsigned most = 0;
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i)
            most = max(most, __float_as_uint(fabsf(fetched[i])));  // floats above 0 are in the order of their bits
        most = __reduce_max_sync(0xffffffff, most);
        if (lane == 0)
            mixed.largest[threadIdx.x / 32] = most;
        __syncthreads();  // the largest of each warp is there
#pragma unroll
        for (int w = 0; w < Shape::N_WARPS; ++w)
            most = max(most, mixed.largest[w]);
        const unsigned exponent = max(most + Weights::ALMOST >> 23, Weights::LEAST_EXPONENT);
        const float scale = __uint_as_float((254 + Weights::LARGEST - exponent) << 23);
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i) {
            const float far_re = __shfl_sync(0xffffffff, far[i / 32].x, i % 32);
            const float far_im = __shfl_sync(0xffffffff, far[i / 32].y, i % 32);
            const float2 phasor = multiply(near, make_float2(far_re, far_im));
            const float weight = fetched[i] * scale;
            if (is_weight(i))
                mixed.weights[Shape::place_of_weight(own_weight(i))] =
                    Weights::split(weight * phasor.x, weight * phasor.y);
        }
        __syncthreads();  // the mixed weights are complete
        return __uint_as_float((exponent - Weights::LARGEST - Weights::SAMPLE_SCALE) << 23);
    }

    __device__ __forceinline__ static const Parts* weights_in(const unsigned char* scratch)
    {
        return reinterpret_cast<const MixedWeights*>(scratch)->weights;
    }

private:
    // Each 32 next to each other are of a warp: weight k is one of lane k % 32.
    __device__ __forceinline__ static int own_weight(int i)
    {
        return threadIdx.x + i * Shape::N_THREADS;
    }

    __device__ __forceinline__ static bool is_weight(int i)
    {
        return (i + 1) * Shape::N_THREADS <= TAPS || own_weight(i) < TAPS;
    }
};

// Weights as mma.sync takes them: fragments in registers, or in shared memory where there are too many.
// Needs     Shape; Weights: WeightHalves; weights_mixed.cuh (MixedWeights)
// Provides  WeightFragments, made by the whole block; `fragment`
template <class Shape, class Weights>
struct WeightFragments {
    typedef MixedWeights<Shape, Weights> Mixed;

    uint2 own[Shape::WEIGHTS_ARE_SHARED ? 1 : Shape::N_FRAGMENTS];
    const uint2* shared;

    // `scratch`: begins with the mixed weights, behind which fragments are made.
    __device__ __forceinline__ WeightFragments(unsigned char* scratch, int skew)
        : shared(reinterpret_cast<const uint2*>(scratch + Shape::FRAGMENTS_AT) + threadIdx.x % 32)
    {
        uint2* const fragments = reinterpret_cast<uint2*>(scratch + Shape::FRAGMENTS_AT);
#pragma unroll 1
        for (int i = threadIdx.x; i < Shape::N_FRAGMENTS * 32; i += Shape::N_THREADS) {
            const int octet = i / 32 % Shape::OCTETS_PER_TILE;
            const int product = i / 32 / Shape::OCTETS_PER_TILE % Shape::MMAS_PER_STEP;
            const int block = i / 32 / Shape::OCTETS_PER_TILE / Shape::MMAS_PER_STEP;
            const typename Weights::Taken taken =
                Weights::take(Mixed::weights_in(scratch), block, product, octet, i % 32, skew);
            unsigned words[Weights::OCTETS_PER_UNIT][2];
            Weights::words_of(words, taken, i % 32);
            fragments[i] = make_uint2(words[0][0], words[0][1]);
        }
        __syncthreads();  // the fragments are complete
        if constexpr (!Shape::WEIGHTS_ARE_SHARED) {
#pragma unroll
            for (int i = 0; i < Shape::N_FRAGMENTS; ++i)
                own[i] = shared[i * 32];
            __syncthreads();  // all have theirs: windows may take the place of the fragments
        }
    }

    __device__ __forceinline__ uint2 fragment(int block, int product, int octet) const
    {
        const int i = (block * Shape::MMAS_PER_STEP + product) * Shape::OCTETS_PER_TILE + octet;
        return Shape::WEIGHTS_ARE_SHARED ? shared[i * 32] : own[Shape::WEIGHTS_ARE_SHARED ? 0 : i];
    }
};

// Pipeline, by cp.async: lanes copy a warp's samples to shared memory, a stage of all its rows at a time.
// Needs     Shape; lib/async.cuh (copy_async, close_group, wait_for_groups), lib/vector.cuh (ceil_div)
// Provides  CpAsyncPipeline: begin_stage, wait_for_stage; where the stage at hand starts (offset, drift, start, shift)
// TAKES_ALL  or only what the copy engine of pipeline_tma.cuh leaves: stages near the ends of the buffer
// A stage of a row starts at any byte, and at any bit if steps are not whole bytes; its copies start at the multiple of
// 16 bytes before it.
// Rows    lie in boxes, as the copy engine wants them: BOX_PITCH apart, the multiple of 16 bytes that is nearest to
//         RUN_BYTES. So rows drift within their box: each starts by DRIFT bytes further behind its copies than the
//         one before it. Where they do, a box is of 8 rows, which the next 8 follow alike.

// Returns how many copies a lane begins for a stage, with so many lanes a row.
template <class Shape>
__host__ __device__ constexpr int copies_by(int lanes_per_row)
{
    return ceil_div(Shape::PIECES_PER_ROW, lanes_per_row) * ceil_div(Shape::ROWS_PER_WARP, 32 / lanes_per_row);
}

// Returns how many lanes copy pieces of one row: the largest of few numbers that needs the fewest copies.
template <class Shape>
__host__ __device__ constexpr int best_lanes()
{
    int best = Shape::PIECES_PER_ROW < 32 ? Shape::PIECES_PER_ROW : 32;
    if (Shape::DRIFT != 0 && Shape::ROWS_PER_BOX % (32 / best) != 0)
        best = 16;  // so that rows copied together are of one box
    for (int lanes = 16; lanes >= 4; lanes /= 2)
        if (copies_by<Shape>(lanes) < copies_by<Shape>(best))
            best = lanes;
    return best;
}

template <class Shape, bool TAKES_ALL>
struct CpAsyncPipeline {
    static constexpr int LANES = best_lanes<Shape>();  // that copy pieces of one row
    static constexpr int ROWS_AT_ONCE = 32 / LANES;
    static constexpr int UNUSED_BYTES =
        (Shape::STAGES_PER_RUN * Shape::STEPS_PER_STAGE - Shape::STEPS_PER_RUN) * Shape::BITS_PER_STEP / 8;
    static constexpr int LAST_PIECES = Shape::PIECES_PER_ROW - UNUSED_BYTES / 16;  // of a row's last stage
    // Bytes of a row that stages take at most.
    static constexpr long long RUN_SPAN =
        (Shape::STAGES_PER_RUN - 1ll) * Shape::BITS_PER_STAGE / 8 + Shape::STAGE_PITCH * 16;
    static constexpr int FAR = 1 << 30;

    const int lane_row;
    const int lane_piece;
    uint4* const stages;  // the lane's first piece in the first of them
    const unsigned char* const samples;
    const long long n_bytes;
    const long long first;  // where copies of the warp's first stage start, in the buffer: a multiple of 16
    const bool is_inside;  // no stage reaches out of the buffer
    const int offset;  // of the first stage behind its copies, of a row that does not drift
    const int drift;  // of the rows that the lane reads
    int start;  // of the stage that is read, in bits, as `offset`
    int stage;  // the next one
    int slot;  // where it goes

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ CpAsyncPipeline(
        int lane, uint4 (*stages)[Shape::ROWS_PER_WARP][Shape::STAGE_PITCH], const unsigned char* samples,
        long long n_bytes, long long first_byte)
        : lane_row(lane / LANES), lane_piece(lane % LANES), stages(&stages[0][lane_row][lane_piece]), samples(samples),
          n_bytes(n_bytes), first(first_byte - Shape::FIRST_DRIFT & ~15ll),
          is_inside(
              first_byte >= Shape::FIRST_DRIFT
              && first_byte + (Shape::ROWS_PER_WARP - 1) * Shape::RUN_BYTES + RUN_SPAN <= n_bytes),
          offset(static_cast<int>(first_byte - Shape::FIRST_DRIFT & 15)),
          drift(Shape::FIRST_DRIFT + lane / 4 * Shape::DRIFT),
          start(offset * 8 - Shape::BITS_PER_STAGE & 127), stage(0), slot(0)
    {
    }

    // Begins the copies of the next stage. Closes a group in any case, so that the number under way stays the same.
    __device__ __forceinline__ void begin_stage()
    {
        if (stage < Shape::STAGES_PER_RUN && (LANES * ROWS_AT_ONCE == 32 || lane_row < ROWS_AT_ONCE)) {
            if (TAKES_ALL && is_inside)
                copy<true>();
            else
                copy<false>();
        }
        close_group();
        ++stage;
        slot = slot + 1 < Shape::N_STAGES ? slot + 1 : 0;
    }

    // Waits for the oldest stage under way.
    __device__ __forceinline__ void wait_for_stage()
    {
        wait_for_groups<Shape::N_STAGES - 1>();
        __syncwarp();  // for every lane
        read_next();
    }

    // The next stage is read.
    __device__ __forceinline__ void read_next()
    {
        if constexpr (!Shape::STAGES_START_ALIKE)
            start = start + Shape::BITS_PER_STAGE & 127;
    }

    // Returns where the copies of the next stage start, from those of the first one.
    __device__ __forceinline__ int start_of_stage() const
    {
        return Shape::STAGES_START_ALIKE ? stage * (Shape::BITS_PER_STAGE / 8)
                                     : (offset * 8 + stage * Shape::BITS_PER_STAGE) / 128 * 16;
    }

    // Returns by how many words the stage that is read starts further than the first one, where stages are whole words.
    __device__ __forceinline__ int shift() const { return Shape::STAGES_START_ALIKE ? 0 : start - offset * 8 >> 5; }

private:
    // Begins the copies of a stage; what lies outside of the buffer becomes 0.
    template <bool IS_INSIDE>
    __device__ __forceinline__ void copy()
    {
        constexpr int ROW_COPIES = ceil_div(Shape::ROWS_PER_WARP, ROWS_AT_ONCE);
        static_assert(
            (Shape::ROWS_PER_WARP - 1) * Shape::RUN_BYTES + Shape::PIECES_PER_ROW * 16 < FAR, "places are ints");
        const int pieces = stage + 1 < Shape::STAGES_PER_RUN ? Shape::PIECES_PER_ROW : LAST_PIECES;
        const long long from = first + start_of_stage() + lane_row * Shape::BOX_PITCH + lane_piece * 16;
        const int begin = capped(-from), end = capped(n_bytes - from);  // of the buffer, from the lane's first piece
        uint4* const to = stages + slot * (Shape::ROWS_PER_WARP * Shape::STAGE_PITCH);
        const unsigned char* const address = samples + from;
#pragma unroll
        for (int i = 0; i < copies_by<Shape>(LANES); ++i) {
            const int r = i % ROW_COPIES * ROWS_AT_ONCE, p = i / ROW_COPIES * LANES;
            // All lanes have a piece to copy, but for the last rows and the last pieces.
            if ((r + ROWS_AT_ONCE > Shape::ROWS_PER_WARP && lane_row + r >= Shape::ROWS_PER_WARP)
                || (p + LANES > LAST_PIECES && lane_piece + p >= pieces))
                continue;
            const int further =
                r % Shape::ROWS_PER_BOX * Shape::BOX_PITCH +
                r / Shape::ROWS_PER_BOX * (Shape::ROWS_PER_BOX * Shape::RUN_BYTES) + p * 16;
            if constexpr (IS_INSIDE) {
                copy_async(to + r * Shape::STAGE_PITCH + p, address + further);
            } else {
                // Below 0 behind the buffer, and too much before it. A copy of no bytes may point anywhere.
                const int left = end - further;
                const int n = static_cast<unsigned>(left) > static_cast<unsigned>(end - begin) ? 0 : min(left, 16);
                copy_async(to + r * Shape::STAGE_PITCH + p, address + further, n);
            }
        }
    }

    __device__ __forceinline__ static int capped(long long n)
    {
        return n < -FAR ? -FAR : n > FAR ? FAR : static_cast<int>(n);
    }
};

// Epilogue: a warp's window of finished outputs in shared memory, rotated by the mixer's phasors and stored.
// Needs     Shape; lib/phase.cuh (Frequency, Phase, advance, multiply, unit_vector),
//           lib/vector.cuh (Floats, load_floats, store_floats)
// Provides  Epilogue: lead_of, Pair; `window`, which the mainloop fills, and drain
// Leads     Runs start `lead` outputs before output 0 of a polarisation, so that stores start at multiples of 128
//           bytes.
// Phasors   e^(2 pi i (f D j + phase)) of output j. A window is [ROWS_PER_WARP][OUTPUTS_PER_WINDOW], and behind each
//           row the phasors of two of its outputs, OUTPUTS_PER_PHASOR apart. The first of every OUTPUTS_PER_PHASOR
//           outputs has such a phasor; how far the others are from it, the lanes that take them know (Pair).
template <class Shape>
struct Epilogue {
    static constexpr int OUTPUTS_PER_PHASOR = Shape::OUTPUTS_PER_WINDOW < 32 ? Shape::OUTPUTS_PER_WINDOW : 32;
    static constexpr int LANES_PER_ROW = OUTPUTS_PER_PHASOR / 2;  // that store outputs of one row, two each
    static constexpr int ROWS_PER_STORE = 32 / LANES_PER_ROW;
    static constexpr int BITS_PER_OUTPUT = DECIMATION * SAMPLE_BITS;
    // Outputs whose samples are whole bytes, wherever they start.
    static constexpr int LEAD_UNIT =
        BITS_PER_OUTPUT % 8 == 0 ? 1 : BITS_PER_OUTPUT % 4 == 0 ? 2 : BITS_PER_OUTPUT % 2 == 0 ? 4 : 8;
    // The code of so many stores one by one is written out: where all are pairs, those are for both ends of a row
    // alone.
    static constexpr int UNPAIRED_STORES = LEAD_UNIT == 1 ? 1 : Shape::ROWS_PER_WARP / ROWS_PER_STORE;
    static_assert(Shape::OUTPUTS_PER_RUN % 2 == 0, "pairs of outputs; a last window may be cut");

    // Returns how many outputs runs start before a row's first, so that the first of them lies at a multiple of 128
    // bytes; fewer, if only they are a whole number of bytes of samples.
    __device__ __forceinline__ static int lead_of(const float2* row)
    {
        return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / LEAD_UNIT * LEAD_UNIT;
    }

    // A lane's two outputs of OUTPUTS_PER_PHASOR. Pairs of outputs lie at multiples of 16 bytes. If not, since rows may
    // have any length, and leads are of LEAD_UNIT outputs, the two are half of them apart, so that lanes still store
    // next to each other.
    struct Pair {
        const bool is_paired;
        const int apart;
        const int first;
        float2 phasors[2];  // from the first of OUTPUTS_PER_PHASOR outputs to these, and out of the weights' scale

        __device__ __forceinline__ Pair(int lane, const float2* row, int lead)
            : is_paired(LEAD_UNIT == 1 || reinterpret_cast<unsigned long long>(row - lead) % 16 == 0),
              apart(is_paired ? 1 : LANES_PER_ROW), first(lane % LANES_PER_ROW * (is_paired ? 2 : 1))
        {
        }

        __device__ __forceinline__ void make_phasors(Frequency frequency)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                phasors[i] = unit_vector(advance(frequency, (first + i * apart) * DECIMATION));
        }

        __device__ __forceinline__ void scale_phasors(float scale)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                phasors[i].x *= scale, phasors[i].y *= scale;
        }
    };

    const int lane;
    float* const window;
    const Frequency frequency;
    const Phase phase;  // of output -lead
    const long long first;  // output of the warp's runs; those before the lead are below 0
    const int lead;
    const int n_rows;  // that are stored: ROWS_PER_WARP, or one less
    const int begin, end;  // of what is in the baseband of these rows, from the first output on
    const bool is_whole;  // that is all
    const Pair pair;
    float2* const to;  // where the first of the pair goes, of the first OUTPUTS_PER_PHASOR

    // `first`: output of the warp's first run, counted from output -lead.
    __device__ __forceinline__ Epilogue(
        int lane, float* window, float2* row, long long n_out, int lead, Frequency frequency, Phase phase,
        const Pair& pair, long long first, int n_rows)
        : lane(lane), window(window), frequency(frequency), phase(phase - advance(frequency, lead * DECIMATION)),
          first(first - lead), lead(lead), n_rows(n_rows), begin(first < lead ? static_cast<int>(lead - first) : 0),
          end(static_cast<int>(
              max(0ll, min(n_out + lead - first, static_cast<long long>(n_rows * Shape::OUTPUTS_PER_RUN))))),
          is_whole(begin == 0 && end == n_rows * Shape::OUTPUTS_PER_RUN), pair(pair),
          to(row + (first - lead) + lane / LANES_PER_ROW * Shape::OUTPUTS_PER_RUN + pair.first)
    {
    }

    // Stores outputs [at, at + OUTPUTS_PER_WINDOW) of each run, or those of them that it has.
    __device__ __forceinline__ void drain(int at)
    {
        if (at % (2 * OUTPUTS_PER_PHASOR) == 0) {
            const int row = lane % Shape::ROWS_PER_WARP, second = lane / Shape::ROWS_PER_WARP;
            const long long output = first + lead + row * Shape::OUTPUTS_PER_RUN + at + second * OUTPUTS_PER_PHASOR;
            float* const phasors = window + row * Shape::WINDOW_PITCH + 2 * Shape::OUTPUTS_PER_WINDOW + second * 2;
            *reinterpret_cast<float2*>(phasors) = unit_vector(phase + advance(frequency, output * DECIMATION));
        }
        __syncwarp();  // the window and its phasors are complete
        const float* const outputs = window + lane / LANES_PER_ROW * Shape::WINDOW_PITCH;
#pragma unroll
        for (int part = 0; part < Shape::OUTPUTS_PER_WINDOW / OUTPUTS_PER_PHASOR; ++part) {
            const int phasor = 2 * (at / OUTPUTS_PER_PHASOR + part) % 4;
            const float* const phasors = outputs + 2 * Shape::OUTPUTS_PER_WINDOW + phasor;
            const float* const from = outputs + part * (2 * OUTPUTS_PER_PHASOR) + pair.first * 2;
            const int offset = at + part * OUTPUTS_PER_PHASOR;
            if (Shape::OUTPUTS_PER_RUN % Shape::OUTPUTS_PER_WINDOW != 0
                && offset + pair.first >= Shape::OUTPUTS_PER_RUN)
                continue;  // the run ends in this window; what is behind it was never put
            if (pair.is_paired && (is_whole || is_inside(offset))) {
#pragma unroll
                for (int r = 0; r < Shape::ROWS_PER_WARP; r += ROWS_PER_STORE)
                    if (r + ROWS_PER_STORE < Shape::ROWS_PER_WARP || r + lane / LANES_PER_ROW < n_rows) {
                        const Floats<4> y = load_floats<4>(from + r * Shape::WINDOW_PITCH);
                        const float2 a = rotated<0>(make_float2(y.at[0], y.at[1]), phasors + r * Shape::WINDOW_PITCH);
                        const float2 b = rotated<1>(make_float2(y.at[2], y.at[3]), phasors + r * Shape::WINDOW_PITCH);
                        store_floats<4>(&to[offset + r * Shape::OUTPUTS_PER_RUN].x, {a.x, a.y, b.x, b.y});
                    }
            } else {
                const int output = offset + lane / LANES_PER_ROW * Shape::OUTPUTS_PER_RUN + pair.first - begin;
                const bool has_second = Shape::OUTPUTS_PER_RUN % OUTPUTS_PER_PHASOR == 0
                    || offset + pair.first + pair.apart < Shape::OUTPUTS_PER_RUN;
#pragma unroll UNPAIRED_STORES
                for (int r = 0; r < Shape::ROWS_PER_WARP; r += ROWS_PER_STORE) {
                    const float2* const two = reinterpret_cast<const float2*>(from + r * Shape::WINDOW_PITCH);
                    const float2 a = rotated<0>(two[0], phasors + r * Shape::WINDOW_PITCH);
                    const float2 b = rotated<1>(two[pair.apart], phasors + r * Shape::WINDOW_PITCH);
                    if (is_stored(output + r * Shape::OUTPUTS_PER_RUN))
                        to[offset + r * Shape::OUTPUTS_PER_RUN] = a;
                    if (has_second && is_stored(output + r * Shape::OUTPUTS_PER_RUN + pair.apart))
                        to[offset + r * Shape::OUTPUTS_PER_RUN + pair.apart] = b;
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
    }

private:
    // Returns whether outputs [offset, offset + OUTPUTS_PER_PHASOR) of all runs, or those that these have, are in the
    // baseband.
    __device__ __forceinline__ bool is_inside(int offset) const
    {
        return offset >= begin
            && (n_rows - 1) * Shape::OUTPUTS_PER_RUN + min(offset + OUTPUTS_PER_PHASOR, Shape::OUTPUTS_PER_RUN) <= end;
    }

    // `output`: from the first one in the baseband on.
    __device__ __forceinline__ bool is_stored(int output) const
    {
        return static_cast<unsigned>(output) < static_cast<unsigned>(end - begin);
    }

    // Rotates the lane's first or second output of OUTPUTS_PER_PHASOR.
    template <int I>
    __device__ __forceinline__ float2 rotated(float2 y, const float* phasor) const
    {
        return multiply(y, multiply(*reinterpret_cast<const float2*>(phasor), pair.phasors[I]));
    }
};

// MMA, by mma.sync: the products of a warp with one fragment of weights each.
// Needs     nothing
// Provides  Tile, of sums; multiply_add
struct Tile {
    float at[4];  // rows l4 l3 l2 and 8 + l4 l3 l2, two columns of each
};

// Returns a b + c.
__device__ __forceinline__ Tile multiply_add(const unsigned (&a)[4], uint2 b, const Tile& c)
{
    Tile sum = c;
#ifdef AUTOTUNE_HOST
    const unsigned words[2] = {b.x, b.y};
    cuda_host_mma_m16n8k16_f16(sum.at, a, words);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
        "{ %10, %11, %12, %13};"
        : "=f"(sum.at[0]), "=f"(sum.at[1]), "=f"(sum.at[2]), "=f"(sum.at[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "f"(c.at[0]), "f"(c.at[1]), "f"(c.at[2]),
          "f"(c.at[3]));
#endif
    return sum;
}

// Mainloop, by mma.sync: part after part; the next part is decoded while tensor cores multiply this one.
// Needs     Shape; Decode: DecodeHalves; Fragments: WeightFragments; Pipeline: CpAsyncPipeline; Output: Epilogue;
//           part.cuh (Words, Operands, load_words), mma_sync.cuh (Tile, multiply_add)
// Provides  MainloopSync: run, for a warp, once
// A tile moves to the place before its own with the product that adds to it, since sums may be written to other
// registers than they are read from: place 0 is done.
template <class Shape, class Decode, class Fragments, class Pipeline, class Output>
struct MainloopSync {
    typedef Tile Tiles[Shape::N_TILES][Shape::OCTETS_PER_TILE];
    static_assert(Shape::BITS_PER_STEP % 32 == 0);
    static_assert(Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP);
    static_assert(Shape::STEPS_PER_STAGE % Shape::STEPS_PER_ITERATION == 0, "whole iterations a stage");
    static_assert(Shape::STEPS_PER_WINDOW % Shape::STEPS_PER_ITERATION == 0, "whole iterations a window");
    static_assert(Shape::DRIFT == 0, "rows start alike within 16 bytes");

    Words<Shape> words;  // of the next part
    Operands<Shape> part;  // the one at hand
    Tiles tiles = {};  // sums

    // Takes the runs of a warp, step after step. `lane_words`: the lane's first word of its first row of the first
    // stage.
    __device__ __forceinline__ void run(
        Pipeline& pipeline, Output& epilogue, const Decode& decode, const unsigned* lane_words,
        const Fragments& weights)
    {
        pipeline.wait_for_stage();
        const unsigned* from = lane_words;
        load_words<Shape>(words, from);
        decode_part(part, words, decode);
        int slot = 0;
        int stage_end = Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS;
#pragma unroll 1
        for (int step = -Shape::WARM_UP_STEPS; step < Shape::END_STEP;) {
#pragma unroll
            for (int i = 0; i < Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP; ++i) {
                Operands<Shape> next;
                if (i + 1 < Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP) {
                    load_words<Shape>(words, from + (i + 1) * Shape::PART_STRIDE);
                } else {
                    from += Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP * Shape::PART_STRIDE;
                    if (step + Shape::STEPS_PER_ITERATION == Shape::END_STEP) {
                        from = lane_words + slot * STAGE_WORDS;  // what becomes of these words is not used
                    } else if (step + Shape::STEPS_PER_ITERATION == stage_end) {
                        __syncwarp();  // nobody reads the stage any more
                        pipeline.begin_stage();
                        pipeline.wait_for_stage();
                        slot = slot + 1 < Shape::N_STAGES ? slot + 1 : 0;
                        from = lane_words + slot * STAGE_WORDS + pipeline.shift();
                        stage_end += Shape::STEPS_PER_STAGE;
                    }
                    load_words<Shape>(words, from);
                }
                multiply_part(tiles, part, weights, i % Shape::PARTS_PER_STEP);
                decode_part(next, words, decode);
                if (i % Shape::PARTS_PER_STEP == Shape::PARTS_PER_STEP - 1)
                    put(epilogue, tiles[0], step, i / Shape::PARTS_PER_STEP);
#pragma unroll
                for (int w = 0; w < Shape::MMAS_PER_PART * 4; ++w)
                    part[w / 4][w % 4] = next[w / 4][w % 4];
            }
            step += Shape::STEPS_PER_ITERATION;
            if (step > 0 && step % Shape::STEPS_PER_WINDOW == 0)
                epilogue.drain(step * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
        }
    }

private:
    static constexpr int STAGE_WORDS = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 4;

    __device__ __forceinline__ static void decode_part(
        Operands<Shape>& operands, const Words<Shape>& words, const Decode& decode)
    {
        decode.decode(operands, words);
#pragma unroll
        for (int i = 0; i < Shape::MMAS_PER_PART * 4; ++i)
            operands[i / 4][i % 4] = Decode::unbiased(operands[i / 4][i % 4]);
    }

    // Adds part number `part` of a step, MMAS_PER_PART fragments of samples times its weights, to all tiles. What the
    // first product of a step adds to is the tile in the place behind; behind the last there is a new one.
    __device__ __forceinline__ static void multiply_part(
        Tiles& tiles, const Operands<Shape>& samples, const Fragments& weights, int part)
    {
        constexpr Tile NEW = {};
        if constexpr (Shape::MMAS_PER_CHAIN == 0) {
#pragma unroll
            for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
#pragma unroll
                for (int i = 0; i < Shape::N_TILES * Shape::OCTETS_PER_TILE; ++i) {
                    const int t = i / Shape::OCTETS_PER_TILE, o = i % Shape::OCTETS_PER_TILE;
                    const uint2 b = weights.fragment(Shape::N_TILES - 1 - t, part * Shape::MMAS_PER_PART + k, o);
                    const int from = part == 0 && k == 0 ? t + 1 : t;
                    tiles[t][o] =
                        multiply_add(samples[k], b, from < Shape::N_TILES ? tiles[from % Shape::N_TILES][o] : NEW);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < Shape::N_TILES * Shape::OCTETS_PER_TILE; ++i) {
                const int t = i / Shape::OCTETS_PER_TILE, o = i % Shape::OCTETS_PER_TILE;
                Tile chain = NEW;
#pragma unroll
                for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
                    const uint2 b = weights.fragment(Shape::N_TILES - 1 - t, part * Shape::MMAS_PER_PART + k, o);
                    chain = multiply_add(samples[k], b, chain);
                }
                const int from = part == 0 ? t + 1 : t;
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    tiles[t][o].at[c] =
                        (from < Shape::N_TILES ? tiles[from % Shape::N_TILES][o].at[c] : 0.0f) + chain.at[c];
            }
        }
    }

    // Puts the tile of step `step` + `u` into the window: a lane has one part of one output of an octet, for two rows.
    __device__ __forceinline__ static void put(
        const Output& epilogue, const Tile (&tile)[Shape::OCTETS_PER_TILE], int step, int u)
    {
        const int first = (step & (Shape::STEPS_PER_WINDOW - 1)) * (2 * Shape::OUTPUTS_PER_STEP);
        float* const at = epilogue.window + epilogue.lane / 4 * Shape::WINDOW_PITCH + epilogue.lane % 4 + first;
#pragma unroll
        for (int o = 0; o < Shape::OCTETS_PER_TILE; ++o) {
            const int place = (u * Shape::OUTPUTS_PER_STEP + 2 * o) * 2;
            at[place] = tile[o].at[0] + tile[o].at[1] * 0x1p-11f;
            at[place + 8 * Shape::WINDOW_PITCH] = tile[o].at[2] + tile[o].at[3] * 0x1p-11f;
        }
    }
};

typedef DecodeHalves<Shape> Decode;
typedef WeightHalves<Shape, Decode> Weights;
typedef MixedWeights<Shape, Weights> Mixed;
typedef WeightFragments<Shape, Weights> Fragments;
typedef CpAsyncPipeline<Shape, true> Pipeline;
typedef Epilogue<Shape> Output;
typedef MainloopSync<Shape, Decode, Fragments, Pipeline, Output> Mainloop;

struct Shared {
    alignas(16) uint4 stages[Shape::N_WARPS][Shape::N_STAGES][Shape::ROWS_PER_WARP][Shape::STAGE_PITCH];
    alignas(16) unsigned char scratch[Shape::SCRATCH_BYTES];  // mixed weights and their fragments, then the windows
};
static_assert(sizeof(Shared) == Shape::SHARED_BYTES, "what the definition asks for at launch");
static_assert(sizeof(Mixed) <= Shape::MIXED_BYTES, "what is set aside for it");

// Returns the first output of a task, counted from the first one's.
__device__ __forceinline__ long long first_output(int task)
{
    return static_cast<long long>(task) * (Shape::ROWS_PER_WARP * Shape::OUTPUTS_PER_RUN);
}

extern "C" __global__ void __launch_bounds__(Shape::N_THREADS, Shape::MIN_BLOCKS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the same in all lanes, as the compiler sees, too
    const int lane = opaque(static_cast<int>(threadIdx.x % 32));  // to read threadIdx again would take longer
    Mixed::Fetched fetched;
    Mixed::fetch(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = Output::lead_of(row);
    // The last task first: where samples end, copies take longer.
    const int task = (gridDim.x - 1 - blockIdx.x) * Shape::N_WARPS + warp;
    // Outputs whose samples a task takes before those of its first ones, by as much as its warm-up is longer than it
    // must be.
    constexpr int N_BEFORE = (Shape::WARM_UP_STEPS - Shape::N_TILES + 1) * Shape::OUTPUTS_PER_STEP;
    // The warp's first row starts here; below 0 before the buffer. It is exact, since `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y + task * (Shape::ROWS_PER_WARP * Shape::RUN_BYTES)
        - (static_cast<long long>(lead) + N_BEFORE) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = Decode::skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    Pipeline pipeline(lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte);
    Output::Pair pair(lane, row, lead);
#pragma unroll 1  // the code of stages once
    for (int i = 0; i < Shape::N_STAGES; ++i) {
        pipeline.begin_stage();
        if (i == 0) {  // while the first one's copies wait for each other, and weights are on their way
            pair.make_phasors(frequency);
            pair.scale_phasors(Mixed::mix(shared.scratch, fetched, frequency));
        }
    }
    const Fragments fragments(shared.scratch, skew);
    const Decode decode(static_cast<int>(first_byte & 15));
    float* const window =
        reinterpret_cast<float*>(shared.scratch) + warp * (Shape::ROWS_PER_WARP * Shape::WINDOW_PITCH);
    Output output(lane, window, row, n_out, lead, frequency, phase, pair, first_output(task), Shape::ROWS_PER_WARP);
    const unsigned* const lane_words =
        reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]) + (decode.bit >> 5);

    if (first_output(task) >= n_out + lead)
        return;
    Mainloop mainloop;
    mainloop.run(pipeline, output, decode, lane_words, fragments);
}
