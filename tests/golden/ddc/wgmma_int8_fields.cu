// ddc[taps=496,decimation=31,sample_bits=11|ALGORITHM=tensor,MMA=wgmma_int8,WARPS=4,PART=1,SUMS=stay,STEP=2,STAGE=4,STAGES=2,WINDOW=32,RUN=32]
// y[p][j] = sum over k < TAPS of w[k] x[p][j D + k] e^(2 pi i (f (j D + k) + phase)),  D = DECIMATION
//   baseband  out  float2 [n_pols][n_out]       (re, im)
//   samples   in   uint8  [n_pols][row_bytes]   SAMPLE_BITS wide, two's complement, most significant bit first
//   weights   in   float  [TAPS]
//   f = (frequency_high, frequency_low), a 128-bit fraction of a cycle a sample; phase, a 64-bit fraction of a cycle
// The mixer goes into the weights, h[k] = w[k] e^(2 pi i f k), so that real samples meet complex weights: two
// multiply-adds for a tap of an output. What is left of it is one rotation of each output.

constexpr int TAPS = 496;  // weights of the filter
constexpr int DECIMATION = 31;  // samples from one output to the next
constexpr int SAMPLE_BITS = 11;

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

// Copies of boxes of an array to shared memory by the tensor memory accelerator of sm_90 and later, and the barriers in
// shared memory that know when such copies have arrived. One thread issues a copy; nobody spends registers on it.
// The host has them, too. Source: PTX ISA, "Tensors" and "mbarrier".
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

__device__ __forceinline__ unsigned shared_address(const void* p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ unsigned char* shared_pointer(unsigned address)
{
    return static_cast<unsigned char*>(__cvta_shared_to_generic(address));
}

// A phase of a barrier is over when so many threads have arrived, and when all bytes that are expected are there.
__device__ __forceinline__ void init_barrier(unsigned barrier, int n_threads)
{
#ifdef AUTOTUNE_HOST
    cuda_host_init_barrier(barrier, n_threads);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(n_threads) : "memory");
#endif
}

// After the first threads' calls of init_barrier: copies, too, see the barriers.
__device__ __forceinline__ void publish_barriers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
#endif
}

__device__ __forceinline__ void arrive_and_expect(unsigned barrier, int n_bytes)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier, n_bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(n_bytes) : "memory");
#endif
}

// Returns when the phase of that parity is over: 0 for the first one, 1 for the next, and so on; a barrier that is new
// counts as being past a phase of parity 1.
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wait(barrier, parity);
#else
    unsigned is_over;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!is_over);
#endif
}

// What this thread wrote to shared memory before, copies and tensor cores see after.
__device__ __forceinline__ void publish_writes()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

// The box that starts at these coordinates, fastest axis first; its bytes count for the barrier.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap* map, unsigned barrier, int x, int y)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y});
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_box(
    unsigned to, const TensorMap* map, unsigned barrier, int x, int y, int z, int w)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y, z, w});
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4, %5, %6}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
#endif
}

// ALGORITHM tensor, MMA wgmma or wgmma_int8: the products of kernel_sync.cuh, by the four warps of a warpgroup together
// and while they decode the samples of the next step. The runs of the four are the 64 rows of a product. For sm_90a
// only.
// Steps   as there: SAMPLES_PER_STEP new samples of each row, and OUTPUTS_PER_STEP more outputs done. A tile stays in
//         the place where it began, since wgmma adds to sums where they are. So the weights move: they lie in shared
//         memory as a ring of blocks, unrolled, and each step reads it from one block further back.
//             blocks in memory     0  L-1 L-2 ..  1   0  L-1 ..  2       L = N_TILES
//             step v, v % L = 0   |tile places 0 to L-1|                  place i meets block (v - i) mod L:
//                     v % L = 1                  |tile places 0 to L-1|   the tile begun at step v is at place v mod L
//         The code of L steps is written out, so that places are registers (mainloop_unrolled.cuh), or there is that of
//         one, and runs overlap (mainloop_rolled.cuh). Then sums may move instead, to the places before their own with
//         each step, and blocks L-1 L-2 .. 0 stay: half the shared memory.
// wgmma       halves, sums in float32. Columns as there.
// wgmma_int8  bytes, exact sums in int32 (accumulators_bytes.cuh has their columns).

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
    static constexpr int MIN_BLOCKS = 2;  // of a multiprocessor, which has registers for them
    static constexpr int ROWS_PER_WARP = 16;  // of a matrix of samples

    // Steps and tiles
    static constexpr int OUTPUTS_PER_STEP = 2;  // of a row
    static constexpr int OUTPUTS_PER_RUN = 32;
    static constexpr int OUTPUTS_PER_WINDOW = 32;  // of a row
    static constexpr int SAMPLES_PER_STEP = 62;  // of a row
    static constexpr int BITS_PER_STEP = 682;  // of a row
    static constexpr bool STEPS_ARE_BYTES = false;  // they start at any bit of a byte otherwise
    static constexpr int STEPS_PER_ITERATION = 1;  // of the mainloop
    static constexpr int STEPS_PER_WINDOW = 16;
    static constexpr int STEPS_PER_RUN = 16;
    static constexpr int WARM_UP_STEPS = 8;  // before the first outputs of a run are done
    static constexpr int END_STEP = STEPS_PER_RUN - WARM_UP_STEPS;  // behind the last: step 0's are done first
    static constexpr int N_TILES = 9;  // under way; also the blocks of weights, one for each
    // The next run adds what a run's last samples begin; otherwise runs take the samples of their last outputs, too.
    static constexpr bool RUNS_OVERLAP = true;

    // Products (MMAs): a row's samples times a block's column of weights
    static constexpr int SAMPLES_PER_MMA = 32;  // of a row: 32 bytes of operands
    static constexpr int OPERANDS_PER_SAMPLE = 2;
    static constexpr int MMAS_PER_STEP = 2;  // samples of the next step fill the last one up
    static constexpr int MMAS_PER_PART = 1;  // a step's last part may have fewer
    static constexpr int PARTS_PER_STEP = 2;
    static constexpr int MMAS_PER_CHAIN = 0;  // that tensor cores add before float32 does; 0: all
    static constexpr int COLUMNS_PER_OUTPUT = 8;
    static constexpr int OCTETS_PER_TILE = 2;  // of columns
    static constexpr int FILL_OCTETS = 0;  // behind the last tile, where an even number is needed
    static constexpr int COLUMNS_PER_MMA = 144;  // by wgmma: of all tiles, and what fills them up
    static constexpr bool SUMS_MOVE = false;  // with each step; or weights do

    // Groups of samples
    static constexpr int BYTE_PERIOD = 8;  // samples, behind which one starts at the same bit of a byte
    static constexpr int SAMPLES_PER_GROUP = 8;  // whole bytes
    static constexpr int BITS_PER_GROUP = 88;
    static constexpr int WORDS_PER_GROUP = 4;  // that a group lies in, wherever it starts
    static constexpr int MMAS_PER_GROUP = 1;  // that whole groups are samples for
    static constexpr int GROUPS_PER_PART = 1;  // of a lane and a row
    static constexpr int GROUP_STRIDE = 11;  // words, from group to group of a lane
    static constexpr int PART_STRIDE = 11;  // words, from part to part
    static constexpr bool SAMPLES_ARE_PAIRED = false;  // halves are made two at a time
    static constexpr bool GROUPS_START_EVEN = false;  // at an even byte, of paired samples
    static constexpr bool GROUPS_ARE_WORDS = false;  // of bytes: they start at words

    // Stages and boxes of packed samples
    static constexpr int STEPS_PER_STAGE = 4;
    static constexpr int N_STAGES = 2;  // that there is room for
    static constexpr int STAGES_PER_RUN = 4;
    static constexpr int BITS_PER_STAGE = 2728;  // of a row
    static constexpr int PIECES_PER_ROW = 25;  // of 16 bytes, of a stage
    static constexpr int STAGE_PITCH = 25;  // pieces, from row to row
    static constexpr long long RUN_BYTES = 1364;  // from row to row of the samples
    static constexpr long long BOX_PITCH = 1360;  // bytes, from row to row of a box
    static constexpr int ROWS_PER_BOX = 8;
    static constexpr int DRIFT = 4;  // bytes by which a row starts further behind its copies than the last
    static constexpr int FIRST_DRIFT = 0;  // of a box's first row

    // Weights
    static constexpr int WEIGHT_GAP_SHIFT = 4;  // behind each 2^.. mixed weights in shared memory
    static constexpr int WEIGHT_GAP = 2;  // there is room for so many, against conflicts of banks
    static constexpr int MIXED_BYTES = 4496;  // of the mixed weights and what belongs to them
    static constexpr int N_FRAGMENTS = 36;  // of weights, as mma.sync takes them
    static constexpr bool WEIGHTS_ARE_SHARED = false;  // or in registers, by mma.sync
    static constexpr int BLOCKS_IN_RING = 17;  // of weights, as wgmma takes them

    // Windows of outputs
    static constexpr int WINDOW_PITCH = 100;  // words, from row to row
    static constexpr int OVERLAP_AT = 68;  // words of a row before what it has of the run before it
    static constexpr int WINDOWS_BYTES = 25600;
    static constexpr int FRAGMENTS_AT = 4496;  // bytes of the scratch memory before the fragments
    static constexpr int SCRATCH_BYTES = 25600;  // mixed weights and fragments, then the windows
    static constexpr int SHARED_BYTES = 94400;  // dynamic, what a launch asks for

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

// Decode, to bytes, sample by sample: each is shifted to the top of a word of its own.
// Needs     Shape; lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div), part.cuh (Words, Operands)
// Provides  DecodeFields: as DecodeBytes of decode_bytes.cuh, for steps that start at any bit, and for parts of any
//           number of products
// A word's top byte is the sample's first one; of samples of more than 8 bits the second one, unsigned, has the rest in
// its own top bits. So samples are multiplied by 2^(8 OPERANDS_PER_SAMPLE - SAMPLE_BITS).
// Any sample of a step may meet any row of the weights: lane l1 l0 of a row takes group l1 l0 of each four.
//     group              8 consecutive samples: whole bytes, and what a lane has of a product, four to a register
// (Where samples that start at the same bit of a byte share a register, a group is 16 of 2, 6, 10 or 14 bits, for two
// products, and 32 of odd ones, for four.)
// A group of 2 bits is two bytes, which fill a register twice, once moved by half a byte: that has four of its samples
// on top of bytes, and moved by one more sample it has the others.
template <class Shape>
struct DecodeFields {
    static constexpr int ALIGNED_WORDS = ceil_div(SAMPLE_BITS, 4);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    static_assert(Shape::SAMPLES_PER_GROUP == 8 && Shape::MMAS_PER_GROUP == 1);
    static_assert(Shape::GROUPS_PER_PART == Shape::MMAS_PER_PART);

    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    unsigned selector;  // of the four bytes of a word in two, the first one on top
    unsigned top_bits[Shape::OPERANDS_PER_SAMPLE];  // those of each byte that are its own

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit DecodeFields(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
#pragma unroll
        for (int i = 0; i < Shape::OPERANDS_PER_SAMPLE; ++i) {
            const int n_bits = SAMPLE_BITS - 8 * i < 8 ? SAMPLE_BITS - 8 * i : 8;
            top_bits[i] = opaque((0xff00u >> n_bits & 0xff) * 0x01010101u);
        }
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier: none, groups may start anywhere.
    __device__ __forceinline__ static int skew_of(long long)
    {
        return 0;
    }

    // Returns the sample of a product's row 0 (of 0 to 3: a lane), register `r` and byte `b` of it (0: the low one);
    // those of the other rows follow SAMPLES_PER_GROUP samples apart.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int b)
    {
        const int in_group = SAMPLE_BITS == 2 ? 4 * (1 - b % 2) + b / 2 * 2 + r : r * 4 + b;
        return product * (4 * Shape::SAMPLES_PER_GROUP) + in_group;
    }

    // Gets ready for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        selector = opaque(0x0123u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Makes bytes of the words of the part's first `n` products: samples in the top bits, whatever is below them.
    __device__ __forceinline__ void decode(Operands<Shape>& bytes, const Words<Shape>& words, int n) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::GROUPS_PER_PART; ++i) {
            const int g = i / 2, row = i % 2;
            if (g >= n)
                continue;
            unsigned whole[SHIFTED_WORDS], group[ALIGNED_WORDS];  // from a byte on; from the group's first bit on
#pragma unroll
            for (int w = 0; w < SHIFTED_WORDS; ++w)
                whole[w] = __byte_perm(
                    words[row][g][w], words[row][g][w + 1 < Shape::WORDS_PER_GROUP ? w + 1 : w], selector);
#pragma unroll
            for (int w = 0; w < ALIGNED_WORDS; ++w)
                group[w] = Shape::STEPS_ARE_BYTES
                    ? whole[w]
                    : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
            if constexpr (SAMPLE_BITS == 2) {
                decode_two_bits(bytes + g, row, group[0]);
            } else {
                decode_register<0>(bytes + g * Shape::OPERANDS_PER_SAMPLE, row, group);
                decode_register<1>(bytes + g * Shape::OPERANDS_PER_SAMPLE, row, group);
            }
        }
    }

    // Takes the bits below a byte's own away, by an instruction that the compiler cannot leave out or move; `number`:
    // of the operand among those of the part.
    __device__ __forceinline__ unsigned finished(unsigned bytes, int number) const
    {
        const unsigned own = top_bits[number % Shape::OPERANDS_PER_SAMPLE];
#ifdef AUTOTUNE_HOST
        return bytes & own;
#else
        unsigned result;
        asm volatile("and.b32 %0, %1, %2;" : "=r"(result) : "r"(bytes), "r"(own));
        return result;
#endif
    }

private:
    // Both registers of a product, of one row.
    __device__ __forceinline__ static void decode_two_bits(unsigned (*bytes)[4], int row, unsigned group)
    {
        const unsigned twice = __byte_perm(group, 0, 0x3232);
        bytes[0][row] = ((twice << 4 ^ twice) & 0xffff0000u) ^ twice;
        bytes[0][2 + row] = bytes[0][row] << 2;
    }

    // Register R of a product, of one row: samples 4 R to 4 R + 3 of a group.
    template <int R>
    __device__ __forceinline__ static void decode_register(
        unsigned (*bytes)[4], int row, const unsigned (&group)[ALIGNED_WORDS])
    {
        const unsigned a = field<4 * R>(group), b = field<4 * R + 1>(group);
        const unsigned c = field<4 * R + 2>(group), d = field<4 * R + 3>(group);
        // Second bytes, and first ones.
        const unsigned low = __byte_perm(a, b, 0x7362), high = __byte_perm(c, d, 0x7362);
        bytes[0][2 * R + row] = __byte_perm(low, high, 0x7632);
        if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
            bytes[1][2 * R + row] = __byte_perm(low, high, 0x5410);
    }

    // Sample number I of a group, most significant bit first, in the top bits of a word, whatever is below it.
    template <int I>
    __device__ __forceinline__ static unsigned field(const unsigned (&group)[ALIGNED_WORDS])
    {
        constexpr int at = I * SAMPLE_BITS % 32, word = I * SAMPLE_BITS / 32;
        if constexpr (at + SAMPLE_BITS > 32)
            return __funnelshift_l(group[word + 1], group[word], at);
        else
            return group[word] << at;
    }
};

// Weights as integers of 24 bits, and these as three signed bytes: h = byte 0 + byte 1 2^8 + byte 2 2^16. They are
// scaled by a power of two, so that the largest is in [2^22, 2^23), less what bytes 0 and 1 may take from byte 2. Sums
// of such products are exact.
// Needs     Shape; Decode: DecodeBytes or DecodeFields, whose sample_of says which sample meets which row
// Provides  WeightBytes: as weights_as_halves.cuh; BYTES_PER_WEIGHT and COLUMNS_PER_BYTE, of a tile's columns
// Columns of a tile: bytes 0 to BYTES_PER_WEIGHT - 1 of the weights, each of both parts of up to four outputs.
template <class Shape, class Decode>
struct WeightBytes {
    typedef uint2 Parts;  // of the real and the imaginary part: its bytes, 0 in the lowest bits, and 0 in the highest

    static constexpr int LARGEST = 22;  // the exponent of the largest weight
    static constexpr unsigned ALMOST = 65795;  // floats that are by so much below a power of two count as above it
    // The exponent of a largest weight of 2^-97, below which the scale of sums would underflow.
    static constexpr unsigned LEAST_EXPONENT = 30;
    // The exponent of what samples are multiplied by.
    static constexpr int SAMPLE_SCALE = 8 * Shape::OPERANDS_PER_SAMPLE - SAMPLE_BITS;
    static constexpr int BYTES_PER_WEIGHT = Shape::COLUMNS_PER_OUTPUT / 2;
    static constexpr int OCTETS_PER_UNIT = Shape::OUTPUTS_PER_STEP == 2 ? 2 : BYTES_PER_WEIGHT;  // of whole outputs
    static constexpr int COLUMNS_PER_BYTE = Shape::OUTPUTS_PER_STEP == 2 ? 4 : 8;  // from byte to byte
    static constexpr bool ALTERNATES_REGISTERS = true;  // see words_of
    // The upper byte of a sample is worth 2^8 times as much, so it is multiplied with columns that start earlier.
    static constexpr int COLUMNS_EARLIER = Shape::OPERANDS_PER_SAMPLE > 1 ? COLUMNS_PER_BYTE : 0;
    static_assert(TAPS < 1 << 15, "no sum of 383 x 128 for each tap overflows");

    __device__ __forceinline__ static Parts split(float re, float im)
    {
        return make_uint2(bytes_of(re), bytes_of(im));
    }

    struct Taken {
        Parts weights[4];  // that a lane has of a product: those of one register of the fragment that mma.sync takes
    };

    // Takes, for product `product` of a step and register `lane` / 4 % 2, what a block of weights has for outputs of
    // OCTETS_PER_UNIT octets of columns, from octet `unit` OCTETS_PER_UNIT on.
    __device__ __forceinline__ static Taken take(
        const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
    {
        constexpr int OUTPUTS = COLUMNS_PER_BYTE / 2;  // of an octet
        constexpr int REGISTER_SAMPLES = Decode::sample_of(0, 1, 0) - Decode::sample_of(0, 0, 0);  // of all products
        const int own = lane % 4 * Shape::SAMPLES_PER_GROUP + (lane / 4 % 2 != 0 ? REGISTER_SAMPLES : 0);
        const int back = own - lane / 8 % OUTPUTS * DECIMATION - skew;
        const int first = block * Shape::SAMPLES_PER_STEP - unit * (4 * DECIMATION);
        Taken taken;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const int of_row_0 = Decode::sample_of(product, 0, b);
            const bool is_own =
                Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP
                || own + of_row_0 < Shape::SAMPLES_PER_STEP;
            taken.weights[b] =
                weights[is_own ? Shape::place_of_any(back + (first + of_row_0)) : Shape::place_of_weight(TAPS)];
        }
        return taken;
    }

    // Makes the words of these octets, of the two parts of one output: the first of them of lane `lane` of that
    // fragment, the second one of lane `lane` ^ 4.
    __device__ __forceinline__ static void words_of(unsigned (&words)[OCTETS_PER_UNIT][2], const Taken& taken, int lane)
    {
        const Parts* const all = taken.weights;
        const int byte = lane / 8 / (COLUMNS_PER_BYTE / 2);  // of the first octet
        const bool is_second = lane / 4 % 2 != 0;  // of the registers
#pragma unroll
        for (int o = 0; o < OCTETS_PER_UNIT; ++o) {
            const unsigned selector = 0x40 + 0x11 * (o * (8 / COLUMNS_PER_BYTE) + byte);
            const unsigned re = __byte_perm(
                __byte_perm(all[0].x, all[1].x, selector), __byte_perm(all[2].x, all[3].x, selector), 0x5410);
            const unsigned im = __byte_perm(
                __byte_perm(all[0].y, all[1].y, selector), __byte_perm(all[2].y, all[3].y, selector), 0x5410);
            words[o][0] = is_second ? im : re;  // so that no two lanes store to one bank
            words[o][1] = is_second ? re : im;
        }
    }

private:
    __device__ __forceinline__ static unsigned bytes_of(float x)
    {
        return ((static_cast<unsigned>(__float2int_rn(x)) + 0x8080u) ^ 0x8080u) & 0xffffff;
    }
};

// Accumulators of bytes, by wgmma_int8: exact sums in int32, those of byte i of the weights worth 2^8i.
// Needs     Shape; Weights: WeightBytes, which says in which columns they are
// Provides  AccumulatorsBytes: as AccumulatorsHalves of accumulators_halves.cuh
// A column for each of the three bytes of the weights, of the real and of the imaginary part of each output, byte after
// byte of a tile of up to four outputs. Samples of more than 8 bits are two bytes, and have columns of zeros behind
// these: the lower byte is multiplied with all, and the upper one, which is worth 2^8 times as much, with those that
// start a byte earlier. Tiles of two outputs have such zeros in any case, for whole octets.
// A lane's numbers are of its first row, the warp's row `lane` / 4, and, if it has numbers of two, of the row 8
// further.
template <class Shape, class Weights>
struct AccumulatorsBytes {
    typedef int Sum;
    static constexpr int TILE_ROWS = Shape::OUTPUTS_PER_STEP == 2 ? 1 : 2;
    static constexpr int NUMBERS_PER_TILE = Shape::OUTPUTS_PER_STEP;  // both parts of an output, of TILE_ROWS rows
    // Two bytes of a number add up in an int.
    static constexpr bool TWO_ADD_UP = 257ll * (Shape::OPERANDS_PER_SAMPLE == 1 ? 128 : 383) * 128 * TAPS < 1ll << 31;

    __device__ __forceinline__ static int first_row_of(int lane)
    {
        return TILE_ROWS == 2 ? lane / 4 : lane / 4 + lane % 4 / 2 * 8;
    }

    __device__ __forceinline__ static int first_number_of(int lane)
    {
        return TILE_ROWS == 2 ? lane % 4 * 2 : lane % 2 * 2;
    }

    __host__ __device__ static constexpr int row_of(int i)
    {
        return i % 4 / 2 * (TILE_ROWS - 1);
    }

    __host__ __device__ static constexpr int place_of(int i)
    {
        return i / 4 * 8 + i % 2;
    }

    // Whole warps call it: lanes have two bytes of both rows' numbers in tiles of two outputs, and trade them.
    __device__ __forceinline__ static void numbers_of(float (&numbers)[NUMBERS_PER_TILE], const Sum* tile, int lane)
    {
        constexpr int BYTES = Weights::BYTES_PER_WEIGHT;
        if constexpr (TILE_ROWS == 2) {
#pragma unroll
            for (int i = 0; i < NUMBERS_PER_TILE; ++i) {
                const Sum* const bytes = tile + i / 4 * (4 * BYTES) + i % 4;  // 4 from one to the next
                float number = static_cast<float>(bytes[4 * (BYTES - 1)]);
                if constexpr (TWO_ADD_UP) {
                    if constexpr (BYTES == 4)
                        number = static_cast<float>(bytes[8] + bytes[12] * 256);
                    number = fmaf(number, 0x1p16f, static_cast<float>(bytes[0] + bytes[4] * 256));
                } else {
#pragma unroll
                    for (int b = BYTES - 2; b >= 0; --b)
                        number = fmaf(number, 0x1p8f, static_cast<float>(bytes[4 * b]));
                }
                numbers[i] = number;
            }
        } else {
            const bool has_odd = lane % 4 >= 2;  // bytes 1 and 3, or 0 and 2
            const float worth = has_odd ? 0x1p8f : 1.0f;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const Sum* const low = tile + i;
                const float first = fmaf(static_cast<float>(low[4]), 0x1p16f, static_cast<float>(low[0])) * worth;
                const float second = fmaf(static_cast<float>(low[6]), 0x1p16f, static_cast<float>(low[2])) * worth;
                numbers[i] = (has_odd ? second : first) + __shfl_xor_sync(0xffffffff, has_odd ? first : second, 2);
            }
        }
    }

    __device__ __forceinline__ static void pin(Sum& sum)
    {
#ifndef AUTOTUNE_HOST
        asm volatile("" : "+r"(sum));
#endif
    }
};

typedef DecodeFields<Shape> Decode;
typedef WeightBytes<Shape, Decode> Weights;
typedef AccumulatorsBytes<Shape, Weights> Accumulators;

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

// Weights as wgmma takes them: a ring of blocks in shared memory.
// Needs     Shape; Weights: WeightHalves or WeightBytes; lib/tma.cuh (publish_writes),
//           weights_mixed.cuh (MixedWeights)
// Provides  WeightRing, in shared memory: fill, by the whole block; address, and the descriptor of a product's blocks
// Blocks    of each product of a step, with L = N_TILES: 0, L-1, L-2 .. 1, 0, L-1 .. 2, so that blocks (v - i) mod L
//           for i = 0 .. L-1 follow each other, whatever v is; or, where sums move, L-1, L-2 .. 0 once. A block is
//           OCTETS_PER_TILE octets of 8 columns.
// Layout    as hardware reads it: a product's samples of a column are two pieces of 16 bytes; the first ones of all
//           columns follow each other, and the second ones behind them. Word l1 l0 of piece r of column c2 c1 c0 of an
//           octet is register r of lane c2 c1 c0 l1 l0 of the fragment that mma.sync takes.
// Zeros     an octet of columns before the blocks, for upper bytes of samples, which are multiplied with columns that
//           start earlier; and one behind them, which fills products up. Each is there where it is needed: bases may be
//           empty.
template <bool IS_THERE>
struct ZerosBefore {
    unsigned before[32];
};
template <>
struct ZerosBefore<false> {
};

template <bool IS_THERE>
struct ZerosBehind {
    unsigned behind[32];
};
template <>
struct ZerosBehind<false> {
};

template <class Shape>
struct RingBlocks : ZerosBefore<(Shape::OPERANDS_PER_SAMPLE > 1)> {
    // [product][piece][block][octet]
    unsigned words[Shape::MMAS_PER_STEP][2][Shape::BLOCKS_IN_RING][Shape::OCTETS_PER_TILE][32];
};

template <class Shape, class Weights>
struct WeightRing : RingBlocks<Shape>, ZerosBehind<(Shape::FILL_OCTETS > 0)> {
    typedef MixedWeights<Shape, Weights> Mixed;
    static constexpr int PIECE_WORDS = Shape::BLOCKS_IN_RING * Shape::OCTETS_PER_TILE * 32;  // of first pieces

    // Fills the ring from the mixed weights in `scratch`, which are not needed any more when it returns.
    __device__ __forceinline__ void fill(const unsigned char* scratch, int skew, int warp, int lane)
    {
        constexpr int UNITS = Shape::OCTETS_PER_TILE / Weights::OCTETS_PER_UNIT;
        const int first = Weights::ALTERNATES_REGISTERS ? lane / 4 % 2 * PIECE_WORDS + lane : lane;
        const int second = Weights::ALTERNATES_REGISTERS ? first ^ 4 : PIECE_WORDS + lane;
        // Each block once, for both its places. The weights of a unit are loaded before the words of the one before it
        // are stored: the compiler cannot tell that these do not change them.
        int at = warp % Shape::N_TILES, product = warp / Shape::N_TILES;
        typename Weights::Taken taken = Weights::take(Mixed::weights_in(scratch), block_at(at), product, 0, lane, skew);
#pragma unroll 1
        for (int i = warp; i < Shape::MMAS_PER_STEP * Shape::N_TILES; i += Shape::N_WARPS) {
            unsigned(*const to)[32] = this->words[product][0][at];
            const bool is_twice = !Shape::SUMS_MOVE && at < Shape::N_TILES - 1;
            const int block = block_at(at), of = product;
            at += Shape::N_WARPS % Shape::N_TILES, product += Shape::N_WARPS / Shape::N_TILES;
            if (at >= Shape::N_TILES)
                at -= Shape::N_TILES, ++product;
#pragma unroll
            for (int unit = 0; unit < UNITS; ++unit) {
                const bool is_last = unit + 1 == UNITS;  // behind the last block, what follows is not used
                const typename Weights::Taken next = Weights::take(
                    Mixed::weights_in(scratch), is_last ? block_at(at) : block, is_last ? product : of,
                    is_last ? 0 : unit + 1, lane, skew);
                unsigned made[Weights::OCTETS_PER_UNIT][2];
                Weights::words_of(made, taken, lane);
#pragma unroll
                for (int o = 0; o < Weights::OCTETS_PER_UNIT; ++o) {
                    unsigned* const octet = to[unit * Weights::OCTETS_PER_UNIT + o];
                    octet[first] = made[o][0];
                    octet[second] = made[o][1];
                    if (is_twice) {
                        octet[Shape::N_TILES * Shape::OCTETS_PER_TILE * 32 + first] = made[o][0];
                        octet[Shape::N_TILES * Shape::OCTETS_PER_TILE * 32 + second] = made[o][1];
                    }
                }
                taken = next;
            }
        }
        if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
            if (threadIdx.x < 32)
                this->before[threadIdx.x] = 0;
        if constexpr (Shape::FILL_OCTETS > 0)
            if (threadIdx.x < 32)
                this->behind[threadIdx.x] = 0;
        publish_writes();
        __syncthreads();  // the ring is complete
    }

    // Returns where the blocks of the first product start, in units of 16 bytes, as the hardware wants to be told.
    __device__ __forceinline__ unsigned address() const
    {
        return static_cast<unsigned>(__cvta_generic_to_shared(&this->words)) >> 4;
    }

    // Describes the N_TILES blocks from `block` on, for product `product` of a step; step v needs them from -v mod
    // N_TILES. No swizzle; 128 bytes from octet to octet. `ring`: its address; `before`: columns by which it starts
    // earlier. Source: PTX ISA, "Matrix Descriptor Format".
    __device__ __forceinline__ static unsigned long long blocks_of(
        unsigned ring, int product, int block, int before = 0)
    {
        constexpr unsigned PIECE = PIECE_WORDS * 4 / 16, OCTET = 128 / 16;
        const int columns = (product * 2 * Shape::BLOCKS_IN_RING + block) * (Shape::OCTETS_PER_TILE * 8) - before;
        return static_cast<unsigned long long>(OCTET) << 32 | (ring + ((PIECE << 16) + columns));
    }

private:
    // Returns the block of weights at place `at` of them, and again N_TILES further on.
    __device__ __forceinline__ static int block_at(int at)
    {
        return Shape::SUMS_MOVE ? Shape::N_TILES - 1 - at : at == 0 ? 0 : Shape::N_TILES - at;
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

// Pipeline, by the copy engine of sm_90 (TMA): all rows of a warp's stage at once, as one or two boxes of an array
// whose rows are BOX_PITCH apart, and longer than that.
// Needs     Shape; lib/tma.cuh (TensorMap, arrive_and_expect, copy_box, init_barrier, publish_barriers, shared_address,
//           wait), lib/async.cuh (wait_for_groups), pipeline_cp_async.cuh (CpAsyncPipeline)
// Provides  TmaPipeline: begin_stage, follow_stage, wait_for_stage, wait_for_begun; `pieces` says where stages start
// Where a box could reach out of the buffer, lanes copy pieces (pipeline_cp_async.cuh); and on the host, which looks
// for races only where no barriers in shared memory are used.
template <class Shape>
struct TmaPipeline {
    static constexpr int BOX_BYTES = Shape::ROWS_PER_BOX * Shape::STAGE_PITCH * 16;
    static constexpr int STAGE_BYTES = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 16;
    static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

    CpAsyncPipeline<Shape, false> pieces;
    const bool leads;  // the lane that has boxes copied
    const TensorMap* const map;
    const unsigned to;  // the first stage
    const unsigned barriers;  // 8 bytes for each stage: over when it is there
    const int y;  // of the boxes: their first row
    const int x;  // and where in it the first one starts, in words

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ TmaPipeline(
        int lane, uint4 (*stages)[Shape::ROWS_PER_WARP][Shape::STAGE_PITCH], const unsigned char* samples,
        long long n_bytes, long long first_byte, unsigned long long* barriers, const TensorMap& map)
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane == 0), map(&map), to(shared_address(stages)),
          barriers(shared_address(barriers)), y(static_cast<int>(pieces.first / Shape::BOX_PITCH)),
          x(static_cast<int>(pieces.first % Shape::BOX_PITCH / 4))
    {
#ifndef AUTOTUNE_HOST
        if (leads) {
#pragma unroll
            for (int i = 0; i < Shape::N_STAGES; ++i)
                init_barrier(this->barriers + 8 * i, 1);
            publish_barriers();
        }
        __syncwarp();  // before any lane waits at one
#endif
    }

    // Begins the next stage in the place of one that has been read; `loaded`: made of the words that were loaded last
    // from there. __syncwarp() does not wait for loads that are under way, and the copy engine does not queue behind
    // them.
    __device__ __forceinline__ void follow_stage(unsigned loaded)
    {
        begin_stage(static_cast<int>(loaded & blockIdx.z));  // which is 0 in all launches, and the compiler cannot tell
    }

    // Begins the copies of the next stage; `zero`: known only when all that was loaded from its place has been.
    __device__ __forceinline__ void begin_stage(int zero)
    {
        if (!by_boxes()) {
            pieces.begin_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        if (pieces.stage < Shape::STAGES_PER_RUN && leads) {
            const unsigned barrier = barriers + 8 * pieces.slot;
            const int start = x + pieces.start_of_stage() / 4 + zero;
            const unsigned stage = to + pieces.slot * STAGE_BYTES;
            arrive_and_expect(barrier, STAGE_BYTES);
#pragma unroll
            for (int b = 0; b < Shape::ROWS_PER_WARP / Shape::ROWS_PER_BOX; ++b)
                copy_box(
                    stage + b * BOX_BYTES, map, barrier,
                    start + b * static_cast<int>(Shape::ROWS_PER_BOX * Shape::RUN_BYTES / 4), y);
        }
#endif
        ++pieces.stage;
        pieces.slot = pieces.slot + 1 < Shape::N_STAGES ? pieces.slot + 1 : 0;
    }

    // Waits for the first N_STAGES stages, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        constexpr int N_BEGUN = Shape::N_STAGES < Shape::STAGES_PER_RUN ? Shape::N_STAGES : Shape::STAGES_PER_RUN;
        for (int i = 0; i < N_BEGUN && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // Waits for the stage at `slot`, the oldest under way; parity: of the rounds through all slots before it.
    __device__ __forceinline__ void wait_for_stage(int slot, unsigned parity)
    {
        if (!by_boxes()) {
            pieces.wait_for_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        wait(barriers + 8 * slot, parity);
#endif
        pieces.read_next();
    }

private:
    __device__ __forceinline__ bool by_boxes() const
    {
#ifdef AUTOTUNE_HOST
        return false;
#else
        return pieces.is_inside;
#endif
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

typedef Accumulators::Sum Sum;

// Products by the four warps of a warpgroup, for sm_90a only: A is 64 rows of 32 bytes in registers, as for lib/mma.cuh
// with 16 rows a warp; B is N columns of 32 bytes in shared memory; sums are added to where they are. They go on while
// the threads do, which must leave the registers of A and of the sums alone until they have waited.
// The host multiplies at once. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
// Needs     Sum, the type of the sums
// Provides  multiply, multiply_u8, begin_products, close_products, wait_for_products, rows_of_64_bytes
template <int N, bool ADDS = true>
__device__ __forceinline__ void multiply(Sum (&sums)[N / 2], const unsigned (&a)[4], unsigned long long b);

template <>
__device__ __forceinline__ void multiply<144>(
    Sum (&sums)[72], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wgmma_s8<144>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n144k32"
                 ".s32.s8.s8 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71}, "
                 "{ %72, %73, %74, %75}, %76, "
                 "add; }"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]), "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]), "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]), "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]), "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31]), "+r"(sums[32]), "+r"(sums[33]), "+r"(sums[34]), "+r"(sums[35]), "+r"(sums[36]), "+r"(sums[37]), "+r"(sums[38]), "+r"(sums[39]), "+r"(sums[40]), "+r"(sums[41]), "+r"(sums[42]), "+r"(sums[43]), "+r"(sums[44]), "+r"(sums[45]), "+r"(sums[46]), "+r"(sums[47]), "+r"(sums[48]), "+r"(sums[49]), "+r"(sums[50]), "+r"(sums[51]), "+r"(sums[52]), "+r"(sums[53]), "+r"(sums[54]), "+r"(sums[55]), "+r"(sums[56]), "+r"(sums[57]), "+r"(sums[58]), "+r"(sums[59]), "+r"(sums[60]), "+r"(sums[61]), "+r"(sums[62]), "+r"(sums[63]), "+r"(sums[64]), "+r"(sums[65]), "+r"(sums[66]), "+r"(sums[67]), "+r"(sums[68]), "+r"(sums[69]), "+r"(sums[70]), "+r"(sums[71])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

template <int N, bool ADDS = true>
__device__ __forceinline__ void multiply_u8(Sum (&sums)[N / 2], const unsigned (&a)[4], unsigned long long b);

template <>
__device__ __forceinline__ void multiply_u8<144>(
    Sum (&sums)[72], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wgmma_u8<144>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n144k32"
                 ".s32.u8.s8 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71}, "
                 "{ %72, %73, %74, %75}, %76, "
                 "add; }"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]), "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]), "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]), "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]), "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31]), "+r"(sums[32]), "+r"(sums[33]), "+r"(sums[34]), "+r"(sums[35]), "+r"(sums[36]), "+r"(sums[37]), "+r"(sums[38]), "+r"(sums[39]), "+r"(sums[40]), "+r"(sums[41]), "+r"(sums[42]), "+r"(sums[43]), "+r"(sums[44]), "+r"(sums[45]), "+r"(sums[46]), "+r"(sums[47]), "+r"(sums[48]), "+r"(sums[49]), "+r"(sums[50]), "+r"(sums[51]), "+r"(sums[52]), "+r"(sums[53]), "+r"(sums[54]), "+r"(sums[55]), "+r"(sums[56]), "+r"(sums[57]), "+r"(sums[58]), "+r"(sums[59]), "+r"(sums[60]), "+r"(sums[61]), "+r"(sums[62]), "+r"(sums[63]), "+r"(sums[64]), "+r"(sums[65]), "+r"(sums[66]), "+r"(sums[67]), "+r"(sums[68]), "+r"(sums[69]), "+r"(sums[70]), "+r"(sums[71])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

// Before the first product, and after threads have written to registers that the next one uses.
__device__ __forceinline__ void begin_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#endif
}

// The products since the last such call: a group.
__device__ __forceinline__ void close_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
}

// Wait until at most N groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
#endif
}

// What describes an operand to the hardware: rows of 64 bytes, pieces of 16 swizzled within them; groups of 8 rows lie
// 512 bytes apart. `address`: of the first row's 32 bytes.
__device__ __forceinline__ unsigned long long rows_of_64_bytes(unsigned address)
{
    constexpr unsigned long long SWIZZLE_64 = 2ull << 62, GROUP = 512ull / 16 << 32;
    constexpr unsigned UNUSED = 1 << 16;
    return (SWIZZLE_64 | GROUP) + ((address >> 4) + UNUSED);
}

// MMA, by wgmma: the products of a warpgroup with all blocks that a step meets, and its sums.
// Needs     Shape; Accumulators; lib/wgmma.cuh (multiply, multiply_u8, wait_for_products)
// Provides  Wgmma: Sums; product, and product_of_lower for the lower bytes of samples; wait, for all products;
//           finish, which makes operands of what decoding left; put_tile and put_place, from sums to the window
template <class Shape, class Accumulators>
struct Wgmma {
    typedef typename Accumulators::Sum Sum;
    typedef Sum Sums[Shape::COLUMNS_PER_MMA / 2];  // [N_TILES][OCTETS_PER_TILE][4]: tiles
    static constexpr int SUMS_PER_TILE = Shape::OCTETS_PER_TILE * 4;

    // Adds to the sums, or begins them.
    template <bool ADDS>
    __device__ __forceinline__ static void product(Sums& sums, const unsigned (&a)[4], unsigned long long b)
    {
        multiply<Shape::COLUMNS_PER_MMA, ADDS>(sums, a, b);
    }

    // Adds those of the lower bytes of samples, which have no sign.
    __device__ __forceinline__ static void product_of_lower(Sums& sums, const unsigned (&a)[4], unsigned long long b)
    {
        multiply_u8<Shape::COLUMNS_PER_MMA>(sums, a, b);
    }

    // Waits for the products. To the compiler they are over where they start: what uses the sums must not move to
    // before here.
    __device__ __forceinline__ static void wait(Sums& sums)
    {
        wait_for_products<0>();
#pragma unroll
        for (int i = 0; i < Shape::COLUMNS_PER_MMA / 2; ++i)
            Accumulators::pin(sums[i]);
    }

    // Makes the first `n` of N operands, which products take: decoding leaves its last instruction to here. ptxas lets
    // products go on while the next samples are decoded only if their registers are written by an instruction that it
    // cannot leave out, behind any branch.
    template <int N, class Decode>
    __device__ __forceinline__ static void finish(
        unsigned (&taken)[N][4], const unsigned (&decoded)[N][4], const Decode& decode, int n = N)
    {
#pragma unroll
        for (int i = 0; i < N * 4; ++i) {
            if (i >= n * 4)
                continue;
            taken[i / 4][i % 4] = decode.finished(decoded[i / 4][i % 4], i / 4);
        }
    }

    // Puts the outputs of a tile into the window; `to`: the lane's first one of its first row.
    __device__ __forceinline__ static void put_tile(float* to, const Sum* tile, int lane)
    {
        float numbers[Accumulators::NUMBERS_PER_TILE];
        Accumulators::numbers_of(numbers, tile, lane);
#pragma unroll
        for (int i = 0; i < Accumulators::NUMBERS_PER_TILE; ++i)
            to[Accumulators::row_of(i) * (8 * Shape::WINDOW_PITCH) + Accumulators::place_of(i)] = numbers[i];
    }

    // Puts those of the tile at PLACE; zeros are left for the next tile.
    template <int PLACE>
    __device__ __forceinline__ static void put_place(float* to, Sums& sums, int lane, Sum zero = 0)
    {
        Sum* const tile = sums + PLACE * SUMS_PER_TILE;
        put_tile(to, tile, lane);
#pragma unroll
        for (int i = 0; i < SUMS_PER_TILE; ++i)
            tile[i] = zero;
    }
};

// Mainloop, rolled: the code of one step, for chains that are cut (CHAIN 8) and for bytes; runs overlap.
// Needs     Shape; Decode: DecodeHalves, DecodeBytes or DecodeFields; Weights: WeightHalves or WeightBytes;
//           Ring: WeightRing; Mma: Wgmma; Accumulators; Pipeline: TmaPipeline; Output: Epilogue;
//           lib/opaque.cuh (opaque), lib/wgmma.cuh (begin_products, close_products, wait_for_products),
//           lib/vector.cuh (ceil_div), part.cuh (Words, Operands, load_words)
// Provides  MainloopRolled: run, for a warpgroup; skip, instead of it
// Chains  Products of halves are cut into chains of MMAS_PER_CHAIN at most: a chain has registers of its own, and
//         float32 adds it to the sums, and moves these as it adds a step's last one. Products of bytes are exact, and
//         all added to the sums by the tensor core.
// Parts   of a step: MMAS_PER_PART products, whose operands are in registers together; the last part may have fewer.
//             part p     |finish p|decode p + 1, load p + 2|finish p + 1|decode p + 2, load p + 3| ..
//                                 |  products of p         ..            |  products of p + 1   ..
//         Products take operands from two sets of registers by turns. The compiler would not decode between the start
//         of products and a wait for them, so the wait is for those of the part before; where a chain ends, for all.
//         Behind a step's last part follows the next step's first one. The words of a step are all loaded before its
//         last two parts: there the stage may end, and the next one's words follow without a gap.
// Loop    the code of one step, of at least two parts. Where sums stay, its only piece that depends on the place is the
//         one that takes the outputs that are done, for each place another; where they move, it is the first place.
// Runs    of a block's rows are consecutive. The outputs that the samples of a run begin and do not end are those that
//         the samples of the next run end and do not begin: overlap-add. The first WARM_UP_STEPS steps of a row leave
//         what it has of the run before it behind its window; at the end each row adds what the next one left to the
//         outputs that are still open. The last row of a block is there for that alone: the next block begins with it.
template <
    class Shape, class Decode, class Weights, class Ring, class Mma, class Accumulators, class Pipeline, class Output>
struct MainloopRolled {
    typedef typename Mma::Sum Sum;
    typedef typename Mma::Sums Sums;
    typedef Sum DoneTile[Mma::SUMS_PER_TILE];
    static constexpr bool CUTS_CHAINS = Shape::MMAS_PER_CHAIN > 0;
    static constexpr int PARTS_PER_CHAIN = Shape::MMAS_PER_CHAIN / Shape::MMAS_PER_PART;
    static_assert(Shape::PARTS_PER_STEP >= 2, "words are loaded two parts ahead");
    static_assert(Shape::RUNS_OVERLAP && Shape::END_STEP > 0, "what a run leaves open ends in the next one");
    static_assert(!CUTS_CHAINS || (Shape::MMAS_PER_CHAIN % Shape::MMAS_PER_PART == 0 && Shape::SUMS_MOVE),
        "whole parts a chain, and sums that move as it is added");

    // Takes the runs of a warpgroup, step after step. `rows`: the lane's first row of the first stage.
    __device__ __forceinline__ static void run(
        Pipeline& pipeline, Output& epilogue, Decode& decode, const unsigned* rows, float* lane_window, unsigned ring)
    {
        Stages stages(pipeline, rows, decode.bit);
        Sums sums = {};
        Operands<Shape> decoded;
        Words<Shape> words;
        const unsigned* from = stages.words();
        load_words<Shape>(words, from, Shape::mmas_of_part(0));
        decode.decode(decoded, words, Shape::mmas_of_part(0));
        load_words<Shape>(words, from + Shape::PART_STRIDE, Shape::mmas_of_part(1));
        float* to = lane_window + (Shape::WARM_UP_STEPS > 0 ? Shape::OVERLAP_AT : 0);
        int window_end = Shape::WARM_UP_STEPS > 0 ? 0 : Shape::STEPS_PER_WINDOW;
        // The compiler cannot tell that it is 0: it would keep a zero for each register of a tile, and move them
        // all from there.
        Sum zero = 0;
        if constexpr (!Shape::SUMS_MOVE)
            zero = opaque(static_cast<int>(blockIdx.z));
        int block = 0;  // of weights, that the first place meets
#pragma unroll 1
        for (int step = -Shape::WARM_UP_STEPS; step < Shape::END_STEP;) {
            DoneTile done;
            take_step(done, sums, decoded, words, from, stages, step, ring, block, decode);
            if constexpr (Shape::SUMS_MOVE) {
                Mma::put_tile(to, done, epilogue.lane);
            } else {
                put_place_of<0, Shape::N_TILES - 1>(block, to, sums, epilogue.lane, zero);
                block = block > 0 ? block - 1 : Shape::N_TILES - 1;
            }
            to += 2 * Shape::OUTPUTS_PER_STEP;
            if (++step == window_end) {
                if (step == 0)
                    rows_have_left();
                else
                    epilogue.drain(step * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
                to = lane_window;
                window_end += Shape::STEPS_PER_WINDOW;
            }
        }
        // There is no row behind the block's last one; what becomes of that one is not stored.
        const float* const overlap = lane_window + Shape::OVERLAP_AT + Shape::WINDOW_PITCH;
        // Rows, from the lane's first one on.
        const int n_behind = epilogue.n_rows - Accumulators::first_row_of(epilogue.lane);
        const float* const first = overlap - (n_behind < 1) * Shape::WINDOW_PITCH;
        put_overlap<0>(epilogue, lane_window, {first, overlap + (n_behind < 9 ? 7 : 8) * Shape::WINDOW_PITCH}, sums);
    }

    // Stands for `run` where no outputs are needed: the other warpgroups have the tensor cores for themselves. What is
    // added to the row before the warp's `window` is not stored either.
    __device__ __forceinline__ static void skip(float* window, int lane)
    {
        if (Shape::WARM_UP_STEPS > 0) {
            for (int i = lane; i < 2 * Shape::OUTPUTS_PER_STEP * Shape::WARM_UP_STEPS; i += 32)
                window[Shape::OVERLAP_AT + i] = 0.0f;
            rows_have_left();
        }
    }

private:
    static constexpr int LAST_GROUPS =  // of a step's last part
        ceil_div(Shape::mmas_of_part(Shape::PARTS_PER_STEP - 1) * Shape::GROUPS_PER_PART, Shape::MMAS_PER_PART);

    // The stages of a warp, which it loads words from one after the other.
    struct Stages {
        Pipeline& pipeline;
        const unsigned* const rows;  // the lane's first row of the first one
        int slot;  // of the one at hand
        unsigned parity;
        int end;  // the step behind it
        int bit;  // of the lane's first group of a step, in its row

        __device__ __forceinline__ Stages(Pipeline& pipeline, const unsigned* rows, int bit)
            : pipeline(pipeline), rows(rows), slot(0), parity(0),
              end(Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS), bit(bit)
        {
            pipeline.wait_for_stage(slot, parity);
        }

        // Returns the lane's words of the step.
        __device__ __forceinline__ const unsigned* words() const
        {
            return rows + slot * (Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 4) + (bit >> 5);
        }

        // Returns the words of the step behind `step`, whose last part's are `words_of_last`.
        __device__ __forceinline__ const unsigned* next_step(int step, const Words<Shape>& words_of_last)
        {
            if (step == Shape::END_STEP - 1)
                return words();  // what becomes of these is not used
            bit += Shape::BITS_PER_STEP;
            if (step + 1 == end) {
                __syncwarp();  // nobody reads the stage any more
                unsigned loaded = 0;
#pragma unroll
                for (int i = 0; i < 2 * LAST_GROUPS * Shape::WORDS_PER_GROUP; ++i) {
                    const int g = i / Shape::WORDS_PER_GROUP % LAST_GROUPS;
                    loaded |= words_of_last[i / (LAST_GROUPS * Shape::WORDS_PER_GROUP)][g][i % Shape::WORDS_PER_GROUP];
                }
                pipeline.follow_stage(loaded);
                if (++slot == Shape::N_STAGES)
                    slot = 0, parity ^= 1;
                pipeline.wait_for_stage(slot, parity);
                end += Shape::STEPS_PER_STAGE;
                bit = pipeline.pieces.start + pipeline.pieces.drift * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP;
            }
            return words();
        }
    };

    // Adds the products of a step with the N_TILES blocks of weights from `block` on to the sums; where these move, the
    // first of them are then `done`. decoded: the operands of its first part; words: of its second; from: where its
    // words are. All three are then the next step's.
    __device__ __forceinline__ static void take_step(
        DoneTile& done, Sums& sums, Operands<Shape>& decoded, Words<Shape>& words, const unsigned*& from,
        Stages& stages, int step, unsigned ring, int block, Decode& decode)
    {
        Sums chain;
        Operands<Shape> taken[2];
#pragma unroll
        for (int part = 0; part < Shape::PARTS_PER_STEP; ++part) {
            if (part == Shape::PARTS_PER_STEP - 2)
                from = stages.next_step(step, words);
            Mma::finish(taken[part % 2], decoded, decode, Shape::mmas_of_part(part) * Shape::OPERANDS_PER_SAMPLE);
            begin_products();
#pragma unroll
            for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
                if (k >= Shape::mmas_of_part(part))
                    continue;
                const unsigned (&operand)[4] = taken[part % 2][k * Shape::OPERANDS_PER_SAMPLE];
                const int product = part * Shape::MMAS_PER_PART + k;
                const unsigned long long blocks = Ring::blocks_of(ring, product, block, Weights::COLUMNS_EARLIER);
                if constexpr (CUTS_CHAINS) {
                    if (part % PARTS_PER_CHAIN == 0 && k == 0)
                        Mma::template product<false>(chain, operand, blocks);
                    else
                        Mma::template product<true>(chain, operand, blocks);
                } else {
                    Mma::template product<true>(sums, operand, blocks);
                    if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
                        Mma::product_of_lower(sums, taken[part % 2][k * 2 + 1], Ring::blocks_of(ring, product, block));
                }
            }
            close_products();
            if (Shape::BITS_PER_STEP % 32 != 0 && part == Shape::PARTS_PER_STEP - 1)
                decode.align_to(stages.bit);  // the next step's first part
            // While the products go on.
            decode.decode(decoded, words, Shape::mmas_of_part((part + 1) % Shape::PARTS_PER_STEP));
            const int loaded = (part + 2) % Shape::PARTS_PER_STEP;
            load_words<Shape>(words, from + loaded * Shape::PART_STRIDE, Shape::mmas_of_part(loaded));
            if constexpr (CUTS_CHAINS) {
                if (part % PARTS_PER_CHAIN == PARTS_PER_CHAIN - 1 || part == Shape::PARTS_PER_STEP - 1) {
                    Mma::wait(chain);
                    if (part == Shape::PARTS_PER_STEP - 1) {
                        move_sums(done, sums, chain);
                    } else {
#pragma unroll
                        for (int i = 0; i < Shape::COLUMNS_PER_MMA / 2; ++i)
                            sums[i] += chain[i];
                    }
                    continue;
                }
            } else if (part == Shape::PARTS_PER_STEP - 1) {
                Mma::wait(sums);
                if constexpr (Shape::SUMS_MOVE)
                    move_sums(done, sums, chain);
                continue;
            }
            wait_for_products<1>();  // the part before is done: its operands' registers are free
        }
    }

    // Takes the first tile out of the sums, after adding the chain's if there is one. The others move to the places
    // before their own, and leave zeros for a new one.
    __device__ __forceinline__ static void move_sums(DoneTile& done, Sums& sums, const Sums& chain)
    {
#pragma unroll
        for (int i = 0; i < Shape::N_TILES * Mma::SUMS_PER_TILE; ++i) {
            Sum& to = i < Mma::SUMS_PER_TILE ? done[i] : sums[i - Mma::SUMS_PER_TILE];
            if constexpr (CUTS_CHAINS)
                to = sums[i] + chain[i];
            else
                to = sums[i];
        }
#pragma unroll
        for (int i = 0; i < Mma::SUMS_PER_TILE; ++i)
            sums[(Shape::N_TILES - 1) * Mma::SUMS_PER_TILE + i] = 0;
    }

    // Puts the outputs that are done when blocks from `block` on have been met, which is from FIRST to LAST: few
    // comparisons.
    template <int FIRST, int LAST>
    __device__ __forceinline__ static void put_place_of(int block, float* to, Sums& sums, int lane, Sum zero)
    {
        if constexpr (FIRST == LAST) {
            Mma::template put_place<(Shape::N_TILES - FIRST + 1) % Shape::N_TILES>(to, sums, lane, zero);
        } else {
            constexpr int MIDDLE = (FIRST + LAST) / 2;
            if (block <= MIDDLE)
                put_place_of<FIRST, MIDDLE>(block, to, sums, lane, zero);
            else
                put_place_of<MIDDLE + 1, LAST>(block, to, sums, lane, zero);
        }
    }

    // Puts, behind the last step, the outputs that it leaves open, tile after tile, added to what the next rows have of
    // them; `overlap`: where the lane's first one is, for both its rows. `lane_window`: where the window begins for the
    // lane.
    template <int TILE>
    __device__ __forceinline__ static void put_overlap(
        Output& epilogue, float* lane_window, const float* const (&overlap)[2], const Sums& sums)
    {
        if constexpr (TILE < Shape::WARM_UP_STEPS) {
            constexpr int STEP_OF = Shape::END_STEP + TILE;
            constexpr int PLACE = Shape::SUMS_MOVE ? TILE : (Shape::STEPS_PER_RUN + 1 + TILE) % Shape::N_TILES;
            float* const to = lane_window + STEP_OF % Shape::STEPS_PER_WINDOW * (2 * Shape::OUTPUTS_PER_STEP);
            float numbers[Accumulators::NUMBERS_PER_TILE];
            Accumulators::numbers_of(numbers, sums + PLACE * Mma::SUMS_PER_TILE, epilogue.lane);
#pragma unroll
            for (int i = 0; i < Accumulators::NUMBERS_PER_TILE; ++i) {
                const int row = Accumulators::row_of(i), place = Accumulators::place_of(i);
                to[row * (8 * Shape::WINDOW_PITCH) + place] =
                    numbers[i] + overlap[row][TILE * (2 * Shape::OUTPUTS_PER_STEP) + place];
            }
            if constexpr ((STEP_OF + 1) % Shape::STEPS_PER_WINDOW == 0)
                epilogue.drain((STEP_OF + 1) * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
            put_overlap<TILE + 1>(epilogue, lane_window, overlap, sums);
        } else if constexpr (Shape::OUTPUTS_PER_RUN % Shape::OUTPUTS_PER_WINDOW != 0) {
            epilogue.drain(Shape::OUTPUTS_PER_RUN / Shape::OUTPUTS_PER_WINDOW * Shape::OUTPUTS_PER_WINDOW);
        }
    }

    // All rows of the block have left what the rows before them add.
    __device__ __forceinline__ static void rows_have_left()
    {
        __syncthreads();
    }
};

typedef MixedWeights<Shape, Weights> Mixed;
typedef WeightRing<Shape, Weights> Ring;
typedef TmaPipeline<Shape> Pipeline;
typedef Epilogue<Shape> Output;
typedef Wgmma<Shape, Accumulators> Mma;
typedef MainloopRolled<Shape, Decode, Weights, Ring, Mma, Accumulators, Pipeline, Output> Mainloop;

struct Shared {
    alignas(16) Ring ring;
    alignas(16) uint4 stages[Shape::N_WARPS][Shape::N_STAGES][Shape::ROWS_PER_WARP][Shape::STAGE_PITCH];  // 128 aligned
    alignas(16) unsigned char scratch[Shape::SCRATCH_BYTES];  // mixed weights, and then the windows
    alignas(16) unsigned long long barriers[Shape::N_WARPS][Shape::N_STAGES];
};
static_assert(sizeof(Shared) == Shape::SHARED_BYTES, "what the definition asks for at launch");
static_assert(sizeof(Ring) % 128 == 0, "boxes start at multiples of 128 bytes");
static_assert(sizeof(Mixed) <= Shape::MIXED_BYTES, "what is set aside for it");
static_assert(Shape::N_WARPS % 4 == 0 && Shape::COLUMNS_PER_MMA <= 256, "whole warpgroups, and what a product takes");

extern "C" __global__ void __launch_bounds__(Shape::N_THREADS, Shape::MIN_BLOCKS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes, const __grid_constant__ TensorMap map)
{
    constexpr int ROWS_PER_WARP = Shape::ROWS_PER_WARP;
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the same in all lanes, as the compiler sees, too
    const int lane = opaque(static_cast<int>(threadIdx.x % 32));  // to read threadIdx again would take longer
    Mixed::Fetched fetched;
    Mixed::fetch(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = Output::lead_of(row);
    // The warp's first run; past the last output: zeros, for products that need all warps.
    constexpr int RUNS_PER_BLOCK = Shape::N_WARPS * ROWS_PER_WARP - Shape::RUNS_OVERLAP;
    const long long run = static_cast<long long>(blockIdx.x) * RUNS_PER_BLOCK + warp * ROWS_PER_WARP;
    // The warp's first row starts here; below 0 before the buffer. It is exact, since `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y + run * Shape::RUN_BYTES
        - static_cast<long long>(lead) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = Decode::skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    Pipeline pipeline(
        lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte, shared.barriers[warp], map);
    Output::Pair pair(lane, row, lead);
#pragma unroll 1  // the code of stages once
    for (int i = 0; i < Shape::N_STAGES; ++i) {
        pipeline.begin_stage(0);
        if (i == 0) {  // while the first one's copies wait for each other, and weights are on their way
            pair.make_phasors(frequency);
            pair.scale_phasors(Mixed::mix(shared.scratch, fetched, frequency));
        }
    }
    shared.ring.fill(shared.scratch, skew, warp, lane);
    float* const window = reinterpret_cast<float*>(shared.scratch) + warp * (ROWS_PER_WARP * Shape::WINDOW_PITCH);
    // The warpgroup is needed if outputs of it are stored, or if it completes those of the runs before it.
    const int n_before = Shape::RUNS_OVERLAP ? Shape::WARM_UP_STEPS * Shape::OUTPUTS_PER_STEP : 0;
    const bool is_needed = (run - warp % 4 * ROWS_PER_WARP) * Shape::OUTPUTS_PER_RUN - n_before < n_out + lead;
    if (!is_needed) {
        pipeline.wait_for_begun();  // a block without any, which long leads may need, must not end before them
        Mainloop::skip(window, lane);
        return;
    }
    const unsigned ring = shared.ring.address();
    Decode decode(pipeline.pieces.offset + pipeline.pieces.drift);
    const int n_rows = Shape::RUNS_OVERLAP && warp + 1 == Shape::N_WARPS ? ROWS_PER_WARP - 1 : ROWS_PER_WARP;
    Output output(lane, window, row, n_out, lead, frequency, phase, pair, run * Shape::OUTPUTS_PER_RUN, n_rows);
    float* const lane_window = window + Accumulators::first_row_of(lane) * Shape::WINDOW_PITCH
        + Accumulators::first_number_of(lane);
    const unsigned* const rows = reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]);
    Mainloop::run(pipeline, output, decode, rows, lane_window, ring);
}
