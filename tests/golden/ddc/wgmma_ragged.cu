// ddc[taps=200,decimation=31,sample_bits=10|ALGORITHM=tensor,MMA=wgmma,WARPS=4,CHAIN=8,STEP=2,RUN=64,STAGE=3,STAGES=2,WINDOW=32,PART=2]
// y[p][j] = sum over k < TAPS of w[k] x[p][j D + k] e^(2 pi i (f (j D + k) + phase)),  D = DECIMATION
//   baseband  out  float2 [n_pols][n_out]       (re, im)
//   samples   in   uint8  [n_pols][row_bytes]   SAMPLE_BITS wide, two's complement, most significant bit first
//   weights   in   float  [TAPS]
//   f = (frequency_high, frequency_low), a 128-bit fraction of a cycle a sample; phase, a 64-bit fraction of a cycle
// The mixer goes into the weights, h[k] = w[k] e^(2 pi i f k), so that real samples meet complex weights: two
// multiply-adds for a tap of an output. What is left of it is one rotation of each output.

constexpr int TAPS = 200;  // weights of the filter
constexpr int DECIMATION = 31;  // samples from one output to the next
constexpr int SAMPLE_BITS = 10;
constexpr int WGS = 128;  // blockDim.x

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

// ALGORITHM tensor, MMA wgmma or wgmma_int8: the products of ddc/tensor.cuh, by the four warps of a warpgroup together
// and while they unpack the samples of the next step. The runs of the four are the 64 rows of a product.
// Steps   as there: STEP_SAMPLES new samples of each row, and STEP more outputs done. A tile stays in the place where
//         it began, since wgmma adds to sums where they are. So the weights move: they lie in shared memory as a
//         ring of blocks, unrolled, and each step reads it from one block further back.
//             blocks in memory     0  L-1 L-2 ..  1   0  L-1 ..  1       L = LIVE
//             step v, v % L = 0   |tile places 0 to L-1|                  place i meets block (v - i) mod L:
//                     v % L = 1                  |tile places 0 to L-1|   the tile begun at step v is at place v mod L
//         The code of LIVE steps is written out, so that places are registers (tensor_wgmma_places.cuh), or there is
//         that of one, and runs overlap (tensor_wgmma_loop.cuh). Then sums may move instead, to the places before their
//         own with each step, and blocks L-1 L-2 .. 0 stay: half the shared memory.
// wgmma       halves, sums in float32. Columns as there.
// wgmma_int8  bytes, exact sums in int32. A column for each of the three bytes of the weights, of the real and of the
//             imaginary part of each output, byte after byte of a tile of up to four outputs. Samples of more than 8
//             bits are two bytes, and have columns of zeros behind these: the lower byte is multiplied with all, and
//             the upper one, which is worth 2^8 times as much, with those that start a byte earlier. Sums of byte i are
//             thus worth 2^8i. Two outputs have such zeros in any case, for whole octets.
// Windows as there. For sm_90a only.

constexpr int STEP = 2;  // outputs of a row that a step begins
constexpr int RUN = 64;  // outputs of a row
constexpr int STAGE = 3;  // steps whose samples are copied together
constexpr int STAGES = 2;  // such copies that there is room for
constexpr int WINDOW = 32;  // outputs of a row between stores
constexpr int MOST_PART = 2;  // products whose samples are unpacked together

constexpr int WARPS = WGS / 32;
constexpr int ROWS = 16;  // of a warp
constexpr int STEP_SAMPLES = STEP * DECIMATION;
constexpr int STEP_BITS = STEP_SAMPLES * SAMPLE_BITS;
constexpr int PRODUCT = 16;  // samples of a row that a product takes: 32 bytes
constexpr int K_STEPS = 4;  // of a step; if they are not whole, samples of the next step fill them up
constexpr int LIVE = ceil_div(TAPS + (STEP - 1) * DECIMATION, STEP_SAMPLES);
constexpr int OCTETS = STEP * 4 / 8;  // of columns of a tile
constexpr int COLUMNS = (LIVE * OCTETS + 0) * 8;  // of a product: an even number of octets of bytes, above 4
constexpr int WARM_UP = LIVE - 1;  // steps before the first outputs of a run are done
// Or runs take the samples of their last outputs, which the next runs begin with.
constexpr bool OVERLAPS = true;
constexpr int TASK_STEPS = RUN / STEP + (OVERLAPS ? 0 : WARM_UP);
constexpr int END = TASK_STEPS - WARM_UP;  // the step behind the last one: step 0 is the first whose outputs are done
constexpr int TASK_STAGES = ceil_div(TASK_STEPS, STAGE);
constexpr int WINDOW_STEPS = WINDOW / STEP;
constexpr int OVERLAP_AT = 2 * WINDOW + 4;  // behind a row's outputs and their turns, what it has of the run before it
// Words; an odd multiple of 4, for stores by 8 rows of 4 lanes without conflicts.
constexpr int WINDOW_PITCH = OVERLAP_AT + (OVERLAPS ? ceil_div(2 * STEP * WARM_UP, 8) * 8 : 0);
static_assert(WARPS % 4 == 0, "whole warpgroups");
static_assert(LIVE == 4 && COLUMNS <= 256, "as the definition has it; what a product takes");
static_assert(K_STEPS * PRODUCT >= STEP_SAMPLES, "products take all samples of a step");
static_assert(STEP * 4 % 8 == 0, "whole octets a step");
static_assert(OVERLAPS || RUN % WINDOW == 0, "whole windows a run");
static_assert(END > 0, "what a run leaves open ends in the next one");

constexpr int SAMPLE_BYTES = 1;  // operands that a sample is made into

// Samples become halves in the registers that a product takes them from. Which of a step's samples is which row of the
// weights is free: lane l1 l0 of a row takes GROUP consecutive ones, whole bytes, from each GROUP_STEPS products.
//     fragment of product m: lane l has samples m 16 + 4 l + (0 1 2 3) of the row, if GROUP is 4; a register holds two,
//     the first in its high half. Rows l4 l3 l2 and 8 + l4 l3 l2 alternate from register to register.
// A half is made of a field without a conversion: below the exponent of 1024 a field is worth what it says.
//     (field ^ sign bit) | half(1024) = 1024 + sample + 2^(SAMPLE_BITS-1), and one exact subtraction leaves the sample
// 11 and 12 bits are two fields, of which the upper one is multiplied by 4 as it is added.
// Of even widths, samples APART start at the same bit of a byte. They share a register, so that one PRMT finds the
// bytes of both, and one shift and one mask serve both:
//     product m, lane l, pair j of its group (register j % 2)     samples j (high half) and j + APART
//                                                                 of 8 bits, 2 j and 2 j + 1
// Where a group then lies in two words only if it starts at an even byte, runs may have to start APART samples earlier
// (`skew`): the weights must leave the room.
// Where steps start at any bit of a byte, groups do, too: words are shifted into place, and samples taken one by one.
#include <cuda_fp16.h>

constexpr bool WHOLE_BYTES = STEP_BITS % 8 == 0;  // a step
constexpr int APART = SAMPLE_BITS % 8 == 0 ? 1 : SAMPLE_BITS % 4 == 0 ? 2 : 4;
constexpr int PAIR_GROUP = APART == 4 ? 8 : 4;
constexpr bool TWO_WORDS = PAIR_GROUP * SAMPLE_BITS / 8 + 3 <= 8;  // hold a group, wherever it starts
constexpr int ROOM = LIVE * STEP_SAMPLES - TAPS - (STEP - 1) * DECIMATION;
constexpr bool PAIRED = WHOLE_BYTES && SAMPLE_BITS % 2 == 0
    && MOST_PART % (PAIR_GROUP / 4) == 0
    && (TWO_WORDS || (STEP_BITS % 16 == 0 && ROOM >= APART));
constexpr bool STARTS_EVEN = PAIRED && !TWO_WORDS;
constexpr int GROUP = PAIRED ? PAIR_GROUP : WHOLE_BYTES && SAMPLE_BITS % 2 == 0 ? 4 : 8;
constexpr int GROUP_STEPS = GROUP / 4;
constexpr int GROUP_BITS = GROUP * SAMPLE_BITS;
constexpr int GROUP_BYTES = GROUP_BITS / 8;
constexpr int ALIGNED_WORDS = ceil_div(GROUP_BYTES, 4);
constexpr int SHIFTED_WORDS = ceil_div(GROUP_BITS + (WHOLE_BYTES ? 0 : 7), 32);  // from the byte on in which it starts
// Bytes of the first word that are before a group, at most, or of a group that starts at any bit, and one it shares.
constexpr int MOST_REST = STARTS_EVEN ? 2 : WHOLE_BYTES ? 3 : 4;
constexpr int GROUP_WORDS = ceil_div(GROUP_BYTES + MOST_REST, 4) > 2 ? ceil_div(GROUP_BYTES + MOST_REST, 4) : 2;
// A pair of samples lies in the first 5 bytes of its group: one PRMT finds its bytes in two words, wherever they start.
constexpr bool NARROW = WHOLE_BYTES && !PAIRED && SAMPLE_BITS % 2 == 0 && SAMPLE_BITS <= 10;

static_assert(K_STEPS % GROUP_STEPS == 0, "products take whole groups");
// Products whose samples are in registers together: whole groups, too.
constexpr int PART_STEPS = MOST_PART;  // a step's last part may have fewer
constexpr int PARTS = ceil_div(K_STEPS, PART_STEPS);
static_assert(PART_STEPS % GROUP_STEPS == 0, "whole groups");

// Products of part `part` of a step.
__host__ __device__ constexpr int products_of(int part)
{
    return part == PARTS - 1 ? K_STEPS - part * PART_STEPS : PART_STEPS;
}

// The compiler must not make a number again from others wherever it is used.
template <class Number>
__device__ __forceinline__ Number kept(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}

constexpr int PART_GROUPS = PART_STEPS / GROUP_STEPS;
constexpr int GROUP_STRIDE = GROUP_STEPS * SAMPLE_BITS / 2;  // words from group to group: those of 16 samples a product
constexpr int PART_WORDS = PART_GROUPS * GROUP_STRIDE;
static_assert(GROUP_STEPS * SAMPLE_BITS % 2 == 0, "groups start alike within a word");

// The first sample of pair `pair` of a group.
__host__ __device__ constexpr int leader_of(int pair)
{
    return APART == 1 ? 2 * pair : pair;
}

// The sample of a product's row 0 (of 0 to 3: a lane), register `r` and half `h` of it (0: the low one); those of the
// other rows follow GROUP samples apart.
__host__ __device__ constexpr int sample_of(unsigned product, int r, int h)
{
    const int first = product / GROUP_STEPS * (4 * GROUP), in_group = product % GROUP_STEPS;
    return PAIRED ? first + leader_of(in_group * 2 + r) + APART * (1 - h) : first + in_group * 4 + r * 2 + 1 - h;
}

// One PRMT takes the two bytes that hold it, most significant first.
__host__ __device__ constexpr int byte_of(int sample)
{
    const int first = sample * SAMPLE_BITS / 8;
    const bool in_one = (sample + 1) * SAMPLE_BITS <= (first + 1) * 8;
    return in_one && first > 0 ? first - 1 : first;  // the second of the two, so that none is past the group's end
}

// Bits behind it in those two bytes.
__host__ __device__ constexpr int shift_of(int sample)
{
    return (byte_of(sample) + 2) * 8 - (sample + 1) * SAMPLE_BITS;
}

// Bits [at, at + SAMPLE_BITS) are sample number SAMPLE of a group, most significant bit first.
template <int SAMPLE, int AT>
__device__ __forceinline__ unsigned place(const unsigned (&group)[ALIGNED_WORDS])
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

__device__ __forceinline__ __half2 as_halves(unsigned word)
{
    return *reinterpret_cast<const __half2*>(&word);
}

__device__ __forceinline__ unsigned as_word(__half2 halves)
{
    return *reinterpret_cast<const unsigned*>(&halves);
}

constexpr int LOW_BITS = SAMPLE_BITS < 10 ? SAMPLE_BITS : 10;  // the mantissa's
constexpr int TOP_BITS = SAMPLE_BITS - LOW_BITS;
constexpr unsigned EXPONENT = 0x6400;  // of 1024
constexpr unsigned BIAS = TOP_BITS == 0 ? EXPONENT | 1u << (SAMPLE_BITS - 1) : 0;  // what unbiased() takes away

// Samples in the low SAMPLE_BITS of halves, whatever is above them, as halves above BIAS.
__device__ __forceinline__ unsigned two_halves(unsigned fields)
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

// The same of two words, of which each has one sample in its low SAMPLE_BITS, or in those of its high half.
__device__ __forceinline__ unsigned two_halves(unsigned high, unsigned low)
{
    if constexpr (TOP_BITS == 0) {
        constexpr unsigned LOW = (1u << LOW_BITS) - 1;
        return and_xor(low, LOW, and_xor(high, LOW << 16, BIAS * 0x10001));
    } else {
        constexpr unsigned ALL = (1u << SAMPLE_BITS) - 1;
        return two_halves(and_xor(low, ALL, and_xor(high, ALL << 16, 0)));
    }
}

__device__ __forceinline__ unsigned unbiased(unsigned halves)
{
    return BIAS == 0 ? halves : as_word(__hadd2(as_halves(halves), __half2half2(__ushort_as_half(0x8000 | BIAS))));
}

// Samples by which the block's runs start earlier, so that groups start where they should.
__device__ __forceinline__ int skew_of(long long first_byte)
{
    return STARTS_EVEN && first_byte % 2 != 0 ? APART : 0;  // an odd number of bytes
}

typedef unsigned Words[2][PART_GROUPS][GROUP_WORDS];  // [row of the lane's two]

// What of unpacking depends on where in its word a lane's group starts. Where steps are whole words, always the same.
struct Decoder {
    static constexpr bool SAME_BYTES = SAMPLE_BITS <= 4;  // all pairs of a group are in the same two
    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    unsigned selectors[4];  // PAIRED: of each pair, see selector_of; NARROW: of samples 0 and 1, 2 and 3; or of all

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit Decoder(int rest) : bit(rest * 8 + threadIdx.x % 4 * GROUP_BITS)
    {
        turn_to(bit);
    }

    __device__ __forceinline__ int first_word() const { return bit >> 5; }

    // What follows is for groups that start at this bit of their row.
    __device__ __forceinline__ void turn_to(int group_bit)
    {
        shift = WHOLE_BYTES ? 0 : kept(group_bit & 7);
        const unsigned rest = 0x1111u * (group_bit >> 3 & 3);
        if constexpr (PAIRED && SAMPLE_BITS == 10) {  // of four bytes; samples 0 and 4; samples 3 and 7
            selectors[0] = kept(rest + 0x4321u);
            selectors[1] = kept(0x0145u + (rest & 0xff00u));
            selectors[2] = kept(0x2345u + (rest & 0x00ffu));
        } else if constexpr (PAIRED) {
#pragma unroll
            for (int pair = 0; pair < (SAME_BYTES ? 1 : GROUP / 2); ++pair)
                selectors[pair] = kept(rest + selector_of(leader_of(pair)));
        } else if constexpr (NARROW) {
            selectors[0] = kept(rest + selector(0));
            selectors[1] = kept(rest + selector(2));
        } else {
            selectors[0] = kept(rest + 0x0123u);
        }
    }

    __host__ __device__ static constexpr unsigned selector(int sample)
    {
        return byte_of(sample) * 0x1100u + 0x0100u + byte_of(sample + 1) * 0x0011u + 0x0001u;
    }

    // Bytes of sample `leader`, most significant first, and of the one APART; twice the same of what lies in one.
    __host__ __device__ static constexpr unsigned selector_of(int leader)
    {
        const int from_first_to_other = APART * SAMPLE_BITS / 8;
        return leader * SAMPLE_BITS / 8 * 0x1010u + last_byte_of(leader) * 0x0101u + from_first_to_other * 0x0011u;
    }

    __host__ __device__ static constexpr int last_byte_of(int sample) { return ((sample + 1) * SAMPLE_BITS - 1) / 8; }

    // The two registers of products `STEP` of a group, for one row.
    template <int IN_GROUP>
    __device__ __forceinline__ void decode_group(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
        if constexpr (IN_GROUP < GROUP_STEPS) {
            if constexpr (NARROW) {
                const unsigned t0 = __byte_perm(words[0], words[1], selectors[0]);
                const unsigned t1 = __byte_perm(words[0], words[1], selectors[1]);
                samples[first][r] = two_halves(t0 >> shift_of(0), t0 >> shift_of(1));
                samples[first][2 + r] = two_halves(t1 >> shift_of(2), t1 >> shift_of(3));
            } else {
                unsigned aligned[ALIGNED_WORDS];
                unsigned whole[SHIFTED_WORDS];  // from a byte on
#pragma unroll
                for (int w = 0; w < SHIFTED_WORDS; ++w)
                    whole[w] = __byte_perm(words[w], words[w + 1 < GROUP_WORDS ? w + 1 : w], selectors[0]);
#pragma unroll
                for (int w = 0; w < ALIGNED_WORDS; ++w)
                    aligned[w] = WHOLE_BYTES
                        ? whole[w]
                        : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
                constexpr int S = IN_GROUP * 4;
                samples[first + IN_GROUP][r] = two_halves(place<S, 16>(aligned), place<S + 1, 0>(aligned));
                samples[first + IN_GROUP][2 + r] = two_halves(place<S + 2, 16>(aligned), place<S + 3, 0>(aligned));
            }
            decode_group<IN_GROUP + 1>(samples, first, r, words);
        }
    }

    // The four registers of two products of 10 bits, for one row: a register has bytes i, i + 1, i + 5 and i + 6 of the
    // group.
    __device__ __forceinline__ void decode_pairs_of_10(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
        constexpr int LAST = GROUP_WORDS - 1;
        const unsigned bytes_1 = __byte_perm(words[0], words[1], selectors[0]);  // 1 to 4
        const unsigned bytes_5 = __byte_perm(words[1], words[LAST], selectors[0]);  // 5 to 8
        samples[first][r] = two_halves(__byte_perm(words[0], bytes_5, selectors[1]) >> 6);
        samples[first][2 + r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x0156) >> 4);
        samples[first + GROUP_STEPS - 1][r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x1267) >> 2);
        samples[first + GROUP_STEPS - 1][2 + r] = two_halves(__byte_perm(bytes_1, words[LAST], selectors[2]));
    }

    // The registers of a group's products, from `first` on, for one row.
    __device__ __forceinline__ void decode_pairs(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
#pragma unroll
        for (int pair = 0; pair < GROUP / 2; ++pair) {
            const int leader = leader_of(pair);
            const unsigned bytes = __byte_perm(words[0], words[1], selectors[SAME_BYTES ? 0 : pair]);
            samples[first + pair / 2][pair % 2 * 2 + r] =
                two_halves(bytes >> ((last_byte_of(leader) + 1) * 8 - (leader + 1) * SAMPLE_BITS));
        }
    }

    // Samples of the part's first `n` products, above BIAS.
    __device__ __forceinline__ void decode(
        unsigned (&samples)[PART_STEPS][4], const Words& words, int n = PART_STEPS) const
    {
#pragma unroll
        for (int i = 0; i < 2 * PART_GROUPS; ++i) {
            const int g = i / 2, r = i % 2;
            if (g * GROUP_STEPS >= n)
                continue;
            if constexpr (PAIRED && SAMPLE_BITS == 10)
                decode_pairs_of_10(samples, g * GROUP_STEPS, r, words[r][g]);
            else if constexpr (PAIRED)
                decode_pairs(samples, g * GROUP_STEPS, r, words[r][g]);
            else
                decode_group<0>(samples, g * GROUP_STEPS, r, words[r][g]);
        }
    }
};

// Copies a warp's samples to shared memory, a stage of all ROWS rows at a time. A stage of a row starts at any byte, and
// at any bit if steps are not whole bytes; its copies, at a multiple of 16 bytes before it.
// Rows    lie in boxes, for the copy engine of sm_90, whose rows are a multiple of 16 bytes apart: BOX_PITCH, the nearest
//         to ROW_BYTES. So rows drift within their box: each starts by DRIFT bytes further behind its copies than the
//         one before it. Where they do, a box is of 8 rows, which the next 8 follow alike.
constexpr int STAGE_BITS = STAGE * STEP_BITS;
// The last products may take more than their step's.
constexpr int READ_BITS = (STAGE - 1) * STEP_BITS + K_STEPS * (PRODUCT * SAMPLE_BITS);
constexpr long long ROW_BYTES = static_cast<long long>(RUN) * DECIMATION / 8 * SAMPLE_BITS
    + static_cast<long long>(RUN) * DECIMATION % 8 * SAMPLE_BITS / 8;  // from row to row
constexpr long long BOX_PITCH = (ROW_BYTES + 8) / 16 * 16;
constexpr int DRIFT = static_cast<int>(ROW_BYTES - BOX_PITCH);
constexpr int BOX_ROWS = DRIFT == 0 ? ROWS : 8;
constexpr int MOST_DRIFT = (BOX_ROWS - 1) * (DRIFT < 0 ? -DRIFT : DRIFT);
constexpr int FIRST_DRIFT = DRIFT < 0 ? MOST_DRIFT : 0;  // of a box's first row
static_assert(8 * ROW_BYTES % 16 == 0, "a lane reads of rows 8 apart, which start alike within 16 bytes");
constexpr int FIRST_BIT = MOST_DRIFT * 8 + (WHOLE_BYTES ? 120 : 127);  // of a stage, behind its copies, at most
// The words of the stage's last group, wherever it starts, end within them.
constexpr int PIECES = ceil_div((READ_BITS + FIRST_BIT - GROUP_BITS) / 32 * 4 + GROUP_WORDS * 4, 16);
constexpr int PITCH = PIECES | 1;  // odd: loads of words by 8 rows of 4 lanes are then mostly free of bank conflicts
constexpr bool ALIKE = STAGE_BITS % 128 == 0;  // all stages start alike within 16 bytes

// Of a row, that lanes copy together: the largest of few shapes that needs the fewest turns.
__host__ __device__ constexpr int turns_of(int lanes_a_row)
{
    return ceil_div(PIECES, lanes_a_row) * ceil_div(ROWS, 32 / lanes_a_row);
}

__host__ __device__ constexpr int best_lanes()
{
    int best = PIECES < 32 ? PIECES : 32;
    if (DRIFT != 0 && BOX_ROWS % (32 / best) != 0)
        best = 16;  // so that rows copied together are of one box
    for (int lanes = 16; lanes >= 4; lanes /= 2)
        if (turns_of(lanes) < turns_of(best))
            best = lanes;
    return best;
}

struct Copier {
    static constexpr int LANES = best_lanes();  // that copy pieces of one row
    static constexpr int ROWS_AT_ONCE = 32 / LANES;
    static constexpr int UNUSED_BYTES = (TASK_STAGES * STAGE - TASK_STEPS) * STEP_BITS / 8;
    static constexpr int LAST_PIECES = PIECES - UNUSED_BYTES / 16;
    static constexpr long long TASK_BYTES = (TASK_STAGES - 1ll) * STAGE_BITS / 8 + PITCH * 16;  // of a row, at most

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
    __device__ __forceinline__ Copier(
        int lane, uint4 (*stages)[ROWS][PITCH], const unsigned char* samples, long long n_bytes, long long first_byte)
        : lane_row(lane / LANES), lane_piece(lane % LANES), stages(&stages[0][lane_row][lane_piece]), samples(samples),
          n_bytes(n_bytes), first(first_byte - FIRST_DRIFT & ~15ll),
          is_inside(first_byte >= FIRST_DRIFT && first_byte + (ROWS - 1) * ROW_BYTES + TASK_BYTES <= n_bytes),
          offset(static_cast<int>(first_byte - FIRST_DRIFT & 15)), drift(FIRST_DRIFT + lane / 4 * DRIFT),
          start(offset * 8 - STAGE_BITS & 127), stage(0), slot(0)
    {
    }

    // Where the copies of the next stage start, from those of the first one.
    __device__ __forceinline__ int start_of_stage() const
    {
        return ALIKE ? stage * (STAGE_BITS / 8) : (offset * 8 + stage * STAGE_BITS) / 128 * 16;
    }

    // The next stage is read.
    __device__ __forceinline__ void read_next()
    {
        if constexpr (!ALIKE)
            start = start + STAGE_BITS & 127;
    }

    // Words, where stages are whole words, by which the stage that is read starts further than the first one.
    __device__ __forceinline__ int shift() const { return ALIKE ? 0 : start - offset * 8 >> 5; }

    // Closes a group in any case, so that the number of groups under way stays the same.
    __device__ __forceinline__ void next_stage()
    {
        if (stage < TASK_STAGES && (LANES * ROWS_AT_ONCE == 32 || lane_row < ROWS_AT_ONCE)) {
            copy<false>();  // what the engine does not
        }
        close_group();
        ++stage;
        slot = slot + 1 < STAGES ? slot + 1 : 0;
    }

    // For the oldest stage under way.
    __device__ __forceinline__ void wait_for_stage()
    {
        wait_for_groups<STAGES - 1>();
        __syncwarp();  // for every lane
        read_next();
    }

    // What lies outside of the buffer is 0.
    template <bool IS_INSIDE>
    __device__ __forceinline__ void copy()
    {
        constexpr int ROW_TURNS = ceil_div(ROWS, ROWS_AT_ONCE);
        static_assert((ROWS - 1) * ROW_BYTES + PIECES * 16 < FAR, "places of pieces are ints");
        const int pieces = stage + 1 < TASK_STAGES ? PIECES : LAST_PIECES;
        const long long from = first + start_of_stage() + lane_row * BOX_PITCH + lane_piece * 16;
        const int begin = capped(-from), end = capped(n_bytes - from);  // of the buffer, from the lane's first piece
        uint4* const to = stages + slot * (ROWS * PITCH);
        const unsigned char* const address = samples + from;
#pragma unroll
        for (int i = 0; i < turns_of(LANES); ++i) {
            const int r = i % ROW_TURNS * ROWS_AT_ONCE, p = i / ROW_TURNS * LANES;
            // All lanes have a piece of this turn, but for the last turns of rows and of pieces.
            if ((r + ROWS_AT_ONCE > ROWS && lane_row + r >= ROWS)
                || (p + LANES > LAST_PIECES && lane_piece + p >= pieces))
                continue;
            const int further = r % BOX_ROWS * BOX_PITCH + r / BOX_ROWS * (BOX_ROWS * ROW_BYTES) + p * 16;
            if constexpr (IS_INSIDE) {
                copy_async(to + r * PITCH + p, address + further);
            } else {
                // Below 0 behind the buffer, and too much before it. A copy of no bytes may point anywhere.
                const int left = end - further;
                const int n = static_cast<unsigned>(left) > static_cast<unsigned>(end - begin) ? 0 : min(left, 16);
                copy_async(to + r * PITCH + p, address + further, n);
            }
        }
    }

    static constexpr int FAR = 1 << 30;

    __device__ __forceinline__ static int capped(long long n)
    {
        return n < -FAR ? -FAR : n > FAR ? FAR : static_cast<int>(n);
    }
};

// Words of the part's first `n` products. `from`: the lane's first one of its first row.
__device__ __forceinline__ void load_part(Words& words, const unsigned* from, int n = PART_STEPS)
{
#pragma unroll
    for (int i = 0; i < 2 * PART_GROUPS * GROUP_WORDS; ++i) {
        const int r = i / (PART_GROUPS * GROUP_WORDS), g = i / GROUP_WORDS % PART_GROUPS, w = i % GROUP_WORDS;
        if (g * PART_STEPS < n * PART_GROUPS)
            words[r][g][w] = from[r * (8 * PITCH * 4) + g * GROUP_STRIDE + w];
    }
}

// Copies a warp's samples to shared memory by the copy engine of sm_90: all rows of a stage at once, as one or two boxes
// of an array whose rows are BOX_PITCH apart, and longer than that. Where a box could reach out of the buffer, lanes copy
// pieces, as in ddc/tensor_copy.cuh; and on the host, which looks for races only where no barriers in shared memory
// are used.
constexpr int BOX_BYTES = BOX_ROWS * PITCH * 16;
static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

// 0, but not before what `loaded` is made of has been loaded: __syncwarp() does not wait for loads that are under way, and
// the copy engine does not queue behind them.
__device__ __forceinline__ int zero_behind(unsigned loaded)
{
    return static_cast<int>(loaded & blockIdx.z);  // which is 0 in all launches, and the compiler cannot tell
}

struct StageCopier {
    Copier pieces;
    const bool leads;  // the lane that has boxes copied
    const TensorMap* const map;
    const unsigned to;  // the first stage
    const unsigned barriers;  // 8 bytes for each stage: over when it is there
    const int y;  // of the boxes: their first row
    const int x;  // and where in it the first one starts, in words

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ StageCopier(
        int lane, uint4 (*stages)[ROWS][PITCH], const unsigned char* samples, long long n_bytes, long long first_byte,
        unsigned long long* barriers, const TensorMap& map)
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane == 0), map(&map), to(shared_address(stages)),
          barriers(shared_address(barriers)), y(static_cast<int>(pieces.first / BOX_PITCH)),
          x(static_cast<int>(pieces.first % BOX_PITCH / 4))
    {
#ifndef AUTOTUNE_HOST
        if (leads) {
#pragma unroll
            for (int i = 0; i < STAGES; ++i)
                init_barrier(this->barriers + 8 * i, 1);
            publish_barriers();
        }
        __syncwarp();  // before any lane waits at one
#endif
    }

    __device__ __forceinline__ bool by_boxes() const
    {
#ifdef AUTOTUNE_HOST
        return false;
#else
        return pieces.is_inside;
#endif
    }

    // `loaded`: made of the words that were loaded last from the stage that was in its place.
    __device__ __forceinline__ void next_stage(unsigned loaded)
    {
        begin_stage(zero_behind(loaded));
    }

    // `zero`: behind all that was loaded from its place.
    __device__ __forceinline__ void begin_stage(int zero)
    {
        if (!by_boxes()) {
            pieces.next_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        if (pieces.stage < TASK_STAGES && leads) {
            const unsigned barrier = barriers + 8 * pieces.slot;
            const int start = x + pieces.start_of_stage() / 4 + zero;
            const unsigned stage = to + pieces.slot * (ROWS * PITCH * 16);
            arrive_and_expect(barrier, ROWS * PITCH * 16);
#pragma unroll
            for (int b = 0; b < ROWS / BOX_ROWS; ++b)
                copy_box(stage + b * BOX_BYTES, map, barrier, start + b * static_cast<int>(BOX_ROWS * ROW_BYTES / 4), y);
        }
#endif
        ++pieces.stage;
        pieces.slot = pieces.slot + 1 < STAGES ? pieces.slot + 1 : 0;
    }

    // For the first STAGES stages, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        for (int i = 0; i < (STAGES < TASK_STAGES ? STAGES : TASK_STAGES) && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // For the stage at `slot`, the oldest under way; parity: of the turns through all slots before it.
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
};

// Where mixed weights lie: 8 bytes each, a zero behind the last one, and behind that what warps found to be the largest
// of their share. Lanes take those of outputs next to each other, DECIMATION apart, and of groups of samples: the
// definition leaves room between them, so that most do not meet in a bank.
__host__ __device__ constexpr unsigned place_of_weight(unsigned k)
{
    return k + (k >> 3) * 2;
}

// Or of the zero: there is no such weight, below 0 neither.
__device__ __forceinline__ unsigned place_of_any(int k)
{
    return place_of_weight(min(static_cast<unsigned>(k), static_cast<unsigned>(TAPS)));
}

constexpr int PLACES = place_of_weight(TAPS) + 1;
constexpr int MIXED_BYTES = ceil_div(8 * PLACES + 4 * WARPS, 16) * 16;

constexpr int WINDOWS_BYTES = WARPS * ROWS * WINDOW_PITCH * 4;
constexpr int SCRATCH_BYTES = MIXED_BYTES > WINDOWS_BYTES ? MIXED_BYTES : WINDOWS_BYTES;

constexpr bool SUMS_MOVE = true;
constexpr int RING_BLOCKS = SUMS_MOVE ? LIVE : 2 * LIVE - 1;

constexpr int PIECE_WORDS = RING_BLOCKS * OCTETS * 32;  // of a product's first pieces

struct Ring {
    unsigned words[K_STEPS][2][RING_BLOCKS][OCTETS][32];
};

struct Shared {
    alignas(16) Ring ring;
    alignas(16) uint4 stages[WARPS][STAGES][ROWS][PITCH];  // at a multiple of 128 bytes, as the ring has 128 an octet
    alignas(16) unsigned char scratch[SCRATCH_BYTES];  // mixed weights, and then the windows
    alignas(16) unsigned long long barriers[WARPS][STAGES];
};
static_assert(sizeof(Shared) == 60480, "what the definition asks for at launch");

// Mixed weights as two halves, each of 11 bits: h = high + low 2^-11. They are scaled by a power of two, so that the
// largest is in [2^14, 2^15): no half overflows, and what is 2^28 times smaller is still a normal number.
typedef ushort4 Parts;  // (re high, re low, im high, im low)

constexpr int LARGEST = 14;  // the exponent of the largest weight
constexpr unsigned ALMOST = 0;  // floats that are by so much below a power of two count as above it
constexpr unsigned LEAST_EXPONENT = 27;  // of a largest weight of 2^-100, below which the scale would overflow
constexpr int SAMPLE_SCALE = 0;  // the exponent of what samples are multiplied by
constexpr int TOGETHER = 1;  // octets of columns, which have whole outputs

__device__ __forceinline__ ushort2 halves_of(float x)
{
    const __half high = __float2half_rn(x);
    const __half low = __float2half_rn((x - __half2float(high)) * 2048.0f);
    return make_ushort2(__half_as_ushort(high), __half_as_ushort(low));
}

__device__ __forceinline__ Parts split(float re, float im)
{
    const ushort2 r = halves_of(re), i = halves_of(im);
    return make_ushort4(r.x, r.y, i.x, i.y);
}

struct Taken {
    unsigned short halves[2][2];  // that a lane has of a product: of both registers that mma.sync takes
};

// Of product `product` of a step, what a block of weights has for the lane's column of octet `unit`.
__device__ __forceinline__ Taken take_weights(
    const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
{
    const int column = lane / 4, own = lane % 4 * GROUP;
    const int back = own - column / 4 * DECIMATION - skew, first = block * STEP_SAMPLES - unit * (2 * DECIMATION);
    const unsigned short* const parts = &weights->x + column % 4;
    Taken taken;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int of_row_0 = sample_of(product, i / 2, i % 2);
        const bool is_own = K_STEPS * PRODUCT == STEP_SAMPLES || own + of_row_0 < STEP_SAMPLES;
        const unsigned place = is_own ? place_of_any(back + (first + of_row_0)) : place_of_weight(TAPS);
        taken.halves[i / 2][i % 2] = parts[place * 4];
    }
    return taken;
}

// The two registers.
__device__ __forceinline__ void words_of(unsigned (&words)[TOGETHER][2], const Taken& taken, int)
{
#pragma unroll
    for (int r = 0; r < 2; ++r)
        words[0][r] = taken.halves[r][0] | taken.halves[r][1] << 16;
}

// Weights: fetched, mixed, scaled and split by the block.
struct Mixed {
    Parts weights[PLACES];
    unsigned largest[WARPS];  // of the warp's share of the weights, as bits
};
static_assert(sizeof(Mixed) <= MIXED_BYTES && sizeof(Parts) == sizeof(float2), "what is set aside for it");

constexpr int OWN_WEIGHTS = ceil_div(TAPS, WGS);  // of a thread, at most
typedef float Fetched[OWN_WEIGHTS];

// Each 32 next to each other are of a warp: weight k is one of lane k % 32.
__device__ __forceinline__ int own_weight(int i)
{
    return threadIdx.x + i * WGS;
}

__device__ __forceinline__ bool is_weight(int i)
{
    return (i + 1) * WGS <= TAPS || own_weight(i) < TAPS;
}

// A thread's weights, before all else: behind samples they would wait for all of those.
__device__ __forceinline__ void fetch_weights(Fetched& fetched, const float* __restrict__ weights)
{
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i)
        fetched[i] = is_weight(i) ? weights[own_weight(i)] : 0.0f;
}

// Mixed weights, by the whole block. Returns what sums are to be multiplied by.
__device__ __forceinline__ float mix_weights(unsigned char* scratch, const Fetched& weights, Frequency frequency)
{
    Mixed& mixed = *reinterpret_cast<Mixed*>(scratch);
    // The turn of weight k is the product of those of weights k % 32, the lane's own, and k - k % 32, which lane i % 32
    // has of the warp's i-th 32 weights.
    constexpr int FAR = ceil_div(OWN_WEIGHTS, 32);
    const int lane = threadIdx.x % 32;
    const float2 near = unit_vector(advance(frequency, lane));
    float2 far[FAR];
#pragma unroll
    for (int i = 0; i < FAR; ++i)
        far[i] = unit_vector(advance(frequency, own_weight(lane + 32 * i) - lane));
    if (threadIdx.x == 0)
        mixed.weights[place_of_weight(TAPS)] = {};  // which is no weight
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i)
        largest = max(largest, __float_as_uint(fabsf(weights[i])));  // floats above 0 are in the order of their bits
    largest = __reduce_max_sync(0xffffffff, largest);
    if (lane == 0)
        mixed.largest[threadIdx.x / 32] = largest;
    __syncthreads();  // the largest of each warp is there
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        largest = max(largest, mixed.largest[w]);
    const unsigned exponent = max(largest + ALMOST >> 23, LEAST_EXPONENT);
    const float scale = __uint_as_float((254 + LARGEST - exponent) << 23);
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i) {
        const float far_re = __shfl_sync(0xffffffff, far[i / 32].x, i % 32);
        const float far_im = __shfl_sync(0xffffffff, far[i / 32].y, i % 32);
        const float2 turn = multiply(near, make_float2(far_re, far_im));
        const float weight = weights[i] * scale;
        if (is_weight(i))
            mixed.weights[place_of_weight(own_weight(i))] = split(weight * turn.x, weight * turn.y);
    }
    __syncthreads();  // the mixed weights are complete
    return __uint_as_float((exponent - LARGEST - SAMPLE_SCALE) << 23);
}

__device__ __forceinline__ const Parts* mixed_weights(const unsigned char* scratch)
{
    return reinterpret_cast<const Mixed*>(scratch)->weights;
}

// The ring of weights: blocks 0, L-1, L-2 .. 1, 0, L-1 .. 1 of each product of a step, with L = LIVE, so that blocks
// (v - i) mod L for i = 0 .. L-1 follow each other, whatever v is; or, where sums move, L-1, L-2 .. 0 once. A block is
// OCTETS octets of 8 columns.
// What hardware reads: a product's samples of a column are two pieces of 16 bytes; the first ones of all columns follow
// each other, and the second ones behind them. Word l1 l0 of piece r of column c2 c1 c0 of an octet is register r of lane
// c2 c1 c0 l1 l0 of the fragment that mma.sync takes.
// The block of weights at place `at` of them, and again LIVE further on.
__device__ __forceinline__ int block_at(int at)
{
    return SUMS_MOVE ? LIVE - 1 - at : at == 0 ? 0 : LIVE - at;
}

// By the whole block, from mixed weights, which are not needed any more when it returns.
__device__ __forceinline__ void fill_ring(Ring& ring, const unsigned char* scratch, int skew, int warp, int lane)
{
    constexpr int UNITS = OCTETS / TOGETHER;
    const int first = lane, second = PIECE_WORDS + lane;
    // Each block once, for both its places. The weights of a unit are loaded before the words of the one before it are
    // stored: the compiler cannot tell that these do not change them.
    int at = warp % LIVE, product = warp / LIVE;
    Taken taken = take_weights(mixed_weights(scratch), block_at(at), product, 0, lane, skew);
#pragma unroll 1
    for (int i = warp; i < K_STEPS * LIVE; i += WARPS) {
        unsigned(*const to)[32] = ring.words[product][0][at];
        const bool is_twice = !SUMS_MOVE && at < LIVE - 1;
        const int block = block_at(at), of = product;
        at += WARPS % LIVE, product += WARPS / LIVE;
        if (at >= LIVE)
            at -= LIVE, ++product;
#pragma unroll
        for (int unit = 0; unit < UNITS; ++unit) {
            const bool is_last = unit + 1 == UNITS;  // behind the last block, what follows is not used
            const Taken next = take_weights(
                mixed_weights(scratch), is_last ? block_at(at) : block, is_last ? product : of, is_last ? 0 : unit + 1, lane,
                skew);
            unsigned words[TOGETHER][2];
            words_of(words, taken, lane);
#pragma unroll
            for (int o = 0; o < TOGETHER; ++o) {
                unsigned* const octet = to[unit * TOGETHER + o];
                octet[first] = words[o][0];
                octet[second] = words[o][1];
                if (is_twice) {
                    octet[LIVE * OCTETS * 32 + first] = words[o][0];
                    octet[LIVE * OCTETS * 32 + second] = words[o][1];
                }
            }
            taken = next;
        }
    }
    publish_writes();
    __syncthreads();  // the ring is complete
}

// Where the blocks of the first product start, in units of 16 bytes, as the hardware wants to be told.
__device__ __forceinline__ unsigned address_of(const Ring& ring)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(&ring.words)) >> 4;
}

// Describes the LIVE blocks from `block` on, for product `product` of a step; step v needs them from -v mod LIVE. No
// swizzle; 128 bytes from octet to octet. `before`: columns by which it starts earlier. Source: PTX ISA, "Matrix
// Descriptor Format".
__device__ __forceinline__ unsigned long long blocks_of(unsigned ring, int product, int block, int before = 0)
{
    constexpr unsigned PIECE = PIECE_WORDS * 4 / 16, OCTET = 128 / 16;
    const int columns = (product * 2 * RING_BLOCKS + block) * (OCTETS * 8) - before;
    return static_cast<unsigned long long>(OCTET) << 32 | (ring + ((PIECE << 16) + columns));
}

// Outputs whose samples are whole bytes, wherever they start.
constexpr int WHOLE =
    DECIMATION * SAMPLE_BITS % 8 == 0 ? 1 : DECIMATION * SAMPLE_BITS % 4 == 0 ? 2 : DECIMATION * SAMPLE_BITS % 2 == 0 ? 4 : 8;

// Outputs before a row's first, so that the first of them lies at a multiple of 128 bytes; fewer, if only they are a
// whole number of bytes of samples.
__device__ __forceinline__ int lead_of(const float2* row)
{
    return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / WHOLE * WHOLE;
}

// A warp's window of finished outputs: [ROWS][WINDOW], and behind each row the turns of two of its outputs, TURN apart:
// e^(2 pi i (f D j + phase)). Of every TURN outputs the first has such a turn, and the others are so far from it as the
// lanes that take them say.
constexpr int TURN = WINDOW < 32 ? WINDOW : 32;
constexpr int LANES_A_ROW = TURN / 2;  // that store outputs of one row, two each
constexpr int ROWS_A_STORE = 32 / LANES_A_ROW;
// Of stores one by one, whose code is written out: where all are pairs, such stores are for both ends of a row alone.
constexpr int UNPAIRED_STORES = WHOLE == 1 ? 1 : ROWS / ROWS_A_STORE;
static_assert(WINDOW % STEP == 0 && RUN % STEP == 0 && RUN % 2 == 0, "whole steps, and pairs; a last window may be cut");

// A lane's two outputs of TURN. Pairs of outputs lie at multiples of 16 bytes. If not, since rows may have any length, and
// leads are of WHOLE outputs, the two are half of them apart, so that lanes still store next to each other.
struct LanePair {
    const bool is_paired;
    const int apart;
    const int first;
    float2 turns[2];  // from the first of TURN outputs to the lane's two, and out of the weights' scale

    __device__ __forceinline__ LanePair(int lane, const float2* row, int lead)
        : is_paired(WHOLE == 1 || reinterpret_cast<unsigned long long>(row - lead) % 16 == 0),
          apart(is_paired ? 1 : LANES_A_ROW), first(lane % LANES_A_ROW * (is_paired ? 2 : 1))
    {
    }

    __device__ __forceinline__ void make_turns(Frequency frequency)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            turns[i] = unit_vector(advance(frequency, (first + i * apart) * DECIMATION));
    }

    __device__ __forceinline__ void scale_turns(float scale)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            turns[i].x *= scale, turns[i].y *= scale;
    }
};

struct Writer {
    const int lane;
    float* const window;
    const Frequency frequency;
    const Phase phase;  // of output -lead
    const long long first;  // output of the warp's runs; those before the lead are below 0
    const int lead;
    const int n_rows;  // that are stored: ROWS, or one less
    const int begin, end;  // of what is in the baseband of these rows, from the first output on
    const bool is_whole;  // that is all
    const LanePair pair;
    float2* const to;  // where the first of the pair goes, of the first TURN

    __device__ __forceinline__ Writer(
        int lane, float* window, float2* row, long long n_out, int lead, Frequency frequency, Phase phase,
        const LanePair& pair, long long first, int n_rows)
        : lane(lane), window(window), frequency(frequency), phase(phase - advance(frequency, lead * DECIMATION)),
          first(first - lead), lead(lead), n_rows(n_rows), begin(first < lead ? static_cast<int>(lead - first) : 0),
          end(static_cast<int>(max(0ll, min(n_out + lead - first, static_cast<long long>(n_rows * RUN))))),
          is_whole(begin == 0 && end == n_rows * RUN), pair(pair),
          to(row + (first - lead) + lane / LANES_A_ROW * RUN + pair.first)
    {
    }

    // Outputs [at, at + WINDOW) of each run, or those of them that it has.
    __device__ __forceinline__ void drain(int at)
    {
        if (at % (2 * TURN) == 0) {
            const long long output = first + lead + lane % ROWS * RUN + at + lane / ROWS * TURN;
            float* const turns = window + lane % ROWS * WINDOW_PITCH + 2 * WINDOW + lane / ROWS * 2;
            *reinterpret_cast<float2*>(turns) = unit_vector(phase + advance(frequency, output * DECIMATION));
        }
        __syncwarp();  // the window and its turns are complete
        const float* const outputs = window + lane / LANES_A_ROW * WINDOW_PITCH;
#pragma unroll
        for (int part = 0; part < WINDOW / TURN; ++part) {
            const int turn = 2 * (at / TURN + part) % 4;
            const float* const turns = outputs + 2 * WINDOW + turn;
            const float* const from = outputs + part * (2 * TURN) + pair.first * 2;
            const int offset = at + part * TURN;
            if (RUN % WINDOW != 0 && offset + pair.first >= RUN)
                continue;  // the run ends in this window; what is behind it was never put
            if (pair.is_paired && (is_whole || is_inside(offset))) {
#pragma unroll
                for (int r = 0; r < ROWS; r += ROWS_A_STORE)
                    if (r + ROWS_A_STORE < ROWS || r + lane / LANES_A_ROW < n_rows) {
                        const Floats<4> y = load_floats<4>(from + r * WINDOW_PITCH);
                        const float2 a = turned<0>(make_float2(y.at[0], y.at[1]), turns + r * WINDOW_PITCH);
                        const float2 b = turned<1>(make_float2(y.at[2], y.at[3]), turns + r * WINDOW_PITCH);
                        store_floats<4>(&to[offset + r * RUN].x, {a.x, a.y, b.x, b.y});
                    }
            } else {
                const int output = offset + lane / LANES_A_ROW * RUN + pair.first - begin;
                const bool has_second = RUN % TURN == 0 || offset + pair.first + pair.apart < RUN;
#pragma unroll UNPAIRED_STORES
                for (int r = 0; r < ROWS; r += ROWS_A_STORE) {
                    const float2* const two = reinterpret_cast<const float2*>(from + r * WINDOW_PITCH);
                    const float2 a = turned<0>(two[0], turns + r * WINDOW_PITCH);
                    const float2 b = turned<1>(two[pair.apart], turns + r * WINDOW_PITCH);
                    if (is_stored(output + r * RUN))
                        to[offset + r * RUN] = a;
                    if (has_second && is_stored(output + r * RUN + pair.apart))
                        to[offset + r * RUN + pair.apart] = b;
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
    }

    // Whether outputs [offset, offset + TURN) of all runs, or those that these have, are in the baseband.
    __device__ __forceinline__ bool is_inside(int offset) const
    {
        return offset >= begin && (n_rows - 1) * RUN + min(offset + TURN, RUN) <= end;
    }

    // An output, from the first one in the baseband on.
    __device__ __forceinline__ bool is_stored(int output) const
    {
        return static_cast<unsigned>(output) < static_cast<unsigned>(end - begin);
    }

    // The lane's first or second output of TURN.
    template <int I>
    __device__ __forceinline__ float2 turned(float2 y, const float* turn) const
    {
        return multiply(y, multiply(*reinterpret_cast<const float2*>(turn), pair.turns[I]));
    }
};

typedef float Sum;
typedef Sum Sums[COLUMNS / 2];  // [LIVE][OCTETS][4]: tiles

// Products by the four warps of a warpgroup, for sm_90a only: A is 64 rows of 32 bytes in registers, as for lib/mma.cuh
// with 16 rows a warp; B is N columns of 32 bytes in shared memory; sums are added to where they are. They go on while
// the threads do, which must leave the registers of A and of the sums alone until they have waited.
// The host multiplies at once. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
template <int N, bool ADDS = true>
__device__ __forceinline__ void multiply(Sum (&sums)[N / 2], const unsigned (&a)[4], unsigned long long b);

template <>
__device__ __forceinline__ void multiply<32>(
    Sum (&sums)[16], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wgmma_f16<32>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16"
                 ".f32.f16.f16 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "{ %16, %17, %18, %19}, %20, "
                 "add, 1, 1, 0; }"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7]), "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11]), "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

template <>
__device__ __forceinline__ void multiply<32, false>(
    Sum (&sums)[16], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    for (Sum& sum : sums)
        sum = 0;
    cuda_host_wgmma_f16<32>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 1;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k16"
                 ".f32.f16.f16 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "{ %16, %17, %18, %19}, %20, "
                 "add, 1, 1, 0; }"
                 : "=&f"(sums[0]), "=&f"(sums[1]), "=&f"(sums[2]), "=&f"(sums[3]), "=&f"(sums[4]), "=&f"(sums[5]), "=&f"(sums[6]), "=&f"(sums[7]), "=&f"(sums[8]), "=&f"(sums[9]), "=&f"(sums[10]), "=&f"(sums[11]), "=&f"(sums[12]), "=&f"(sums[13]), "=&f"(sums[14]), "=&f"(sums[15])
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

// What steps by wgmma are made of, whatever their products are, and whether chains of them are cut.

// Wait for the products. To the compiler they are over where they start: what uses the sums must not move to before
// here.
__device__ __forceinline__ void wait_for_sums(Sums& sums)
{
    wait_for_products<0>();
#ifndef AUTOTUNE_HOST
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i)
        asm volatile("" : "+f"(sums[i]));
#endif
}

// A lane's numbers of the outputs of a tile: what they are made of, and where they go. They are of its first row, the
// warp's row `lane` / 4, and, if it has numbers of two, of the row 8 further.
constexpr int TILE_NUMBERS = OCTETS * 2;  // a part of an output of each octet, of two rows
typedef float Numbers[TILE_NUMBERS];

__device__ __forceinline__ int first_row_of(int lane)
{
    return lane / 4;
}

__device__ __forceinline__ int first_number_of(int lane)
{
    return lane % 4;
}

__host__ __device__ constexpr int row_of(int i)
{
    return i % 2;
}

__host__ __device__ constexpr int place_of(int i)
{
    return i / 2 * 4;
}

__device__ __forceinline__ void numbers_of(Numbers& numbers, const Sum* tile, int lane)
{
#pragma unroll
    for (int i = 0; i < TILE_NUMBERS; ++i)
        numbers[i] = tile[i * 2] + tile[i * 2 + 1] * 0x1p-11f;
}

// The outputs of a tile, to the lane's first one of its first row.
__device__ __forceinline__ void put_tile(float* to, const Sum* tile, int lane)
{
    Numbers numbers;
    numbers_of(numbers, tile, lane);
#pragma unroll
    for (int i = 0; i < TILE_NUMBERS; ++i)
        to[row_of(i) * (8 * WINDOW_PITCH) + place_of(i)] = numbers[i];
}

// Those of the tile at PLACE; zeros are left for the next tile.
template <int PLACE>
__device__ __forceinline__ void put_outputs(float* to, Sums& sums, int lane, Sum zero = 0)
{
    Sum* const tile = sums + PLACE * OCTETS * 4;
    put_tile(to, tile, lane);
#pragma unroll
    for (int i = 0; i < OCTETS * 4; ++i)
        tile[i] = zero;
}

// What products take: unpacking leaves its last instruction to here. ptxas lets products go on while the next samples
// are made only if their registers are written by an instruction that it cannot leave out, behind any branch.
// Of the first `n` of N operands.
template <int N>
__device__ __forceinline__ void take_samples(
    unsigned (&taken)[N][4], const unsigned (&samples)[N][4], const Decoder& decoder, int n = N)
{
#pragma unroll
    for (int i = 0; i < N * 4; ++i) {
        if (i >= n * 4)
            continue;
        const unsigned own = samples[i / 4][i % 4];
        unsigned& to = taken[i / 4][i % 4];
#ifdef AUTOTUNE_HOST
        to = unbiased(own);
#else
        asm volatile("add.f16x2 %0, %1, %2;" : "=r"(to) : "r"(own), "r"(BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001));
#endif
    }
}

// Steps by the code of one. Products of halves are cut into chains of CHAIN at most: a chain has registers of its own,
// and float32 adds it to the sums, and moves these as it adds a step's last one. Products of bytes are exact, and all
// added to the sums by the tensor core.
// Parts   of a step: PART_STEPS products, whose samples are in registers together; the last part may have fewer.
//             part p     |take p|unpack p + 1, load p + 2|take p + 1|unpack p + 2, load p + 3| ..
//                               |  products of p         ..          |  products of p + 1   ..
//         Products take samples from two sets of registers in turns. The compiler would not unpack between the start of
//         products and a wait for them, so the wait is for those of the part before; where a chain ends, for all.
//         Behind a step's last part follows the next step's first one. The words of a step are all loaded before its
//         last two parts: there the stage may end, and the next one's words follow without a gap.
// Loop    the code of one step, of at least two parts. Where sums stay, its only piece that depends on the place is the
//         one that takes the outputs that are done, for each place another; where they move, it is the first place.
// Runs    of a block's rows are consecutive. The outputs that the samples of a run begin and do not end are those that
//         the samples of the next run end and do not begin: overlap-add. The first WARM_UP steps of a row leave what it
//         has of the run before it behind its window; at the end each row adds what the next one left to the outputs
//         that are still open. The last row of a block is there for that alone: the next block begins with it.
typedef unsigned Samples[PART_STEPS * SAMPLE_BYTES][4];

static_assert(PARTS >= 2, "words are loaded two parts ahead");
constexpr int CHAIN = 8;  // products of a sum that the tensor core adds before float32 does
constexpr int CHAIN_PARTS = CHAIN / PART_STEPS;
static_assert(CHAIN % PART_STEPS == 0 && SUMS_MOVE, "whole parts a chain, and sums that move as it is added");
constexpr int LAST_GROUPS = ceil_div(products_of(PARTS - 1) * PART_GROUPS, PART_STEPS);  // of a step, of its last part

// What a warp reads samples from: its stages, one after the other.
struct Stages {
    StageCopier& copier;
    const unsigned* const rows;  // the lane's first row of the first one
    int slot;  // of the one at hand
    unsigned parity;
    int end;  // the step behind it
    int bit;  // of the lane's first group of a step, in its row

    __device__ __forceinline__ Stages(StageCopier& copier, const unsigned* rows, int bit)
        : copier(copier), rows(rows), slot(0), parity(0), end(STAGE - WARM_UP), bit(bit)
    {
        copier.wait_for_stage(slot, parity);
    }

    // The lane's words of the step.
    __device__ __forceinline__ const unsigned* words() const { return rows + slot * (ROWS * PITCH * 4) + (bit >> 5); }

    // The words of the step behind `step`, whose last part's are `words_of_last`.
    __device__ __forceinline__ const unsigned* next_step(int step, const Words& words_of_last)
    {
        if (step == END - 1)
            return words();  // what becomes of these is not used
        bit += STEP_BITS;
        if (step + 1 == end) {
            __syncwarp();  // nobody reads the stage any more
            unsigned loaded = 0;
#pragma unroll
            for (int i = 0; i < 2 * LAST_GROUPS * GROUP_WORDS; ++i)
                loaded |= words_of_last[i / (LAST_GROUPS * GROUP_WORDS)][i / GROUP_WORDS % LAST_GROUPS][i % GROUP_WORDS];
            copier.next_stage(loaded);
            if (++slot == STAGES)
                slot = 0, parity ^= 1;
            copier.wait_for_stage(slot, parity);
            end += STAGE;
            bit = copier.pieces.start + copier.pieces.drift * 8 + threadIdx.x % 4 * GROUP_BITS;
        }
        return words();
    }
};

// A tile that is done.
typedef Sum Tile[OCTETS * 4];

// Takes the first tile out of the sums, each with the chain's added to it. The others move to the places before their
// own, and leave zeros for a new one.
__device__ __forceinline__ void move_sums(Tile& done, Sums& sums, const Sums& chain)
{
#pragma unroll
    for (int i = 0; i < LIVE * OCTETS * 4; ++i) {
        Sum& to = i < OCTETS * 4 ? done[i] : sums[i - OCTETS * 4];
        to = sums[i] + chain[i];
    }
#pragma unroll
    for (int i = 0; i < OCTETS * 4; ++i)
        sums[(LIVE - 1) * OCTETS * 4 + i] = 0;
}

// The products of a step with the LIVE blocks of weights, added to the sums, and these moved. samples: of its first
// part; words: of its second; from: where its words are. All three are then the next step's.
__device__ __forceinline__ void take_step(
    Tile& done, Sums& sums, Samples& samples, Words& words, const unsigned*& from, Stages& stages, int step,
    unsigned ring, Decoder& decoder)
{
    constexpr int block = 0;
    Sums products;
    Samples taken[2];
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        if (part == PARTS - 2)
            from = stages.next_step(step, words);
        take_samples(taken[part % 2], samples, decoder, products_of(part) * SAMPLE_BYTES);
        begin_products();
#pragma unroll
        for (int k = 0; k < PART_STEPS; ++k) {
            if (k >= products_of(part))
                continue;
            const unsigned long long blocks =
                blocks_of(ring, part * PART_STEPS + k, block, 0);
            if (part % CHAIN_PARTS == 0 && k == 0)
                multiply<COLUMNS, false>(products, taken[part % 2][k], blocks);
            else
                multiply<COLUMNS>(products, taken[part % 2][k], blocks);
        }
        close_products();
        if (STEP_BITS % 32 != 0 && part == PARTS - 1)
            decoder.turn_to(stages.bit);  // the next step's first part
        decoder.decode(samples, words, products_of((part + 1) % PARTS));  // while the products go on
        load_part(words, from + (part + 2) % PARTS * PART_WORDS, products_of((part + 2) % PARTS));
        if (part % CHAIN_PARTS == CHAIN_PARTS - 1 || part == PARTS - 1) {
            wait_for_sums(products);
            if (part == PARTS - 1) {
                move_sums(done, sums, products);
            } else {
#pragma unroll
                for (int i = 0; i < COLUMNS / 2; ++i)
                    sums[i] += products[i];
            }
            continue;
        }
        wait_for_products<1>();  // the part before is done: its samples' registers are free
    }
}


// Behind the last step: the outputs that it leaves open, tile after tile, added to what the next rows have of them;
// `overlap`: where the lane's first one is, for both its rows. `lane_window`: where the window begins for the lane.
template <int TILE>
__device__ __forceinline__ void put_overlap(
    Writer& writer, float* lane_window, const float* const (&overlap)[2], const Sums& sums)
{
    if constexpr (TILE < WARM_UP) {
        constexpr int STEP_OF = END + TILE, PLACE = SUMS_MOVE ? TILE : (TASK_STEPS + 1 + TILE) % LIVE;
        Numbers numbers;
        numbers_of(numbers, sums + PLACE * OCTETS * 4, writer.lane);
#pragma unroll
        for (int i = 0; i < TILE_NUMBERS; ++i)
            lane_window[row_of(i) * (8 * WINDOW_PITCH) + STEP_OF % WINDOW_STEPS * (2 * STEP) + place_of(i)] =
                numbers[i] + overlap[row_of(i)][TILE * (2 * STEP) + place_of(i)];
        if constexpr ((STEP_OF + 1) % WINDOW_STEPS == 0)
            writer.drain((STEP_OF + 1) * STEP - WINDOW);
        put_overlap<TILE + 1>(writer, lane_window, overlap, sums);
    } else if constexpr (RUN % WINDOW != 0) {
        writer.drain(RUN / WINDOW * WINDOW);
    }
}

// All rows of the block have left what the rows before them add.
__device__ __forceinline__ void rows_have_left()
{
    __syncthreads();
}

// Instead of a task, where its outputs are not needed: the other warpgroups have the tensor cores for themselves. What is
// added to the row before the warp's `window` is not stored either.
__device__ __forceinline__ void take_no_task(float* window, int lane)
{
    if (WARM_UP > 0) {
        for (int i = lane; i < 2 * STEP * WARM_UP; i += 32)
            window[OVERLAP_AT + i] = 0.0f;
        rows_have_left();
    }
}

// The runs of a warpgroup, step after step.
__device__ __forceinline__ void take_task(
    StageCopier& copier, Writer& writer, Decoder& decoder, const unsigned* rows, float* lane_window, unsigned ring)
{
    Stages stages(copier, rows, decoder.bit);
    Sums sums = {};
    Samples samples;
    Words words;
    const unsigned* from = stages.words();
    load_part(words, from, products_of(0));
    decoder.decode(samples, words, products_of(0));
    load_part(words, from + PART_WORDS, products_of(1));
    float* to = lane_window + (WARM_UP > 0 ? OVERLAP_AT : 0);
    int window_end = WARM_UP > 0 ? 0 : WINDOW_STEPS;
#pragma unroll 1
    for (int step = -WARM_UP; step < END;) {
        Tile done;
        take_step(done, sums, samples, words, from, stages, step, ring, decoder);
        put_tile(to, done, writer.lane);
        to += 2 * STEP;
        if (++step == window_end) {
            if (step == 0)
                rows_have_left();
            else
                writer.drain(step * STEP - WINDOW);
            to = lane_window;
            window_end += WINDOW_STEPS;
        }
    }
    // Behind the block's last row there is none; what becomes of it is not stored
    const float* const overlap = lane_window + OVERLAP_AT + WINDOW_PITCH;
    const int n_behind = writer.n_rows - first_row_of(writer.lane);  // rows, from the lane's first one on
    const float* const first = overlap - (n_behind < 1) * WINDOW_PITCH;
    put_overlap<0>(writer, lane_window, {first, overlap + (n_behind < 9 ? 7 : 8) * WINDOW_PITCH}, sums);
}

extern "C" __global__ void __launch_bounds__(WGS, 3) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes, const __grid_constant__ TensorMap map)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the same in all lanes, as the compiler sees, too
    const int lane = kept(static_cast<int>(threadIdx.x % 32));  // to read threadIdx again would take longer
    Fetched fetched;
    fetch_weights(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = lead_of(row);
    // The warp's first run; past the last output: zeros, for products that need all warps.
    const long long run = static_cast<long long>(blockIdx.x) * (WARPS * ROWS - OVERLAPS) + warp * ROWS;
    // Of the warp's first row; below 0 where it starts before the buffer. Exact: `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y + run * ROW_BYTES
        - static_cast<long long>(lead) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    StageCopier copier(
        lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte, shared.barriers[warp], map);
    LanePair pair(lane, row, lead);
#pragma unroll 1  // the code of stages once
    for (int i = 0; i < STAGES; ++i) {
        copier.begin_stage(0);
        if (i == 0) {  // while the first one's copies wait for each other, and weights are on their way
            pair.make_turns(frequency);
            pair.scale_turns(mix_weights(shared.scratch, fetched, frequency));
        }
    }
    fill_ring(shared.ring, shared.scratch, skew, warp, lane);
    float* const window = reinterpret_cast<float*>(shared.scratch) + warp * (ROWS * WINDOW_PITCH);
    // Whether the warpgroup has outputs that are stored, or what those of the runs before it are completed with.
    const bool is_needed = (run - warp % 4 * ROWS) * RUN - (OVERLAPS ? WARM_UP * STEP : 0) < n_out + lead;
    if (!is_needed) {
        copier.wait_for_begun();  // a block without any, which long leads may need, must not end before them
        take_no_task(window, lane);
        return;
    }
    const unsigned ring = address_of(shared.ring);
    Decoder decoder(copier.pieces.offset + copier.pieces.drift);
    const int n_rows = OVERLAPS && warp + 1 == WARPS ? ROWS - 1 : ROWS;
    Writer writer(lane, window, row, n_out, lead, frequency, phase, pair, run * RUN, n_rows);
    float* const lane_window = window + first_row_of(lane) * WINDOW_PITCH + first_number_of(lane);
    const unsigned* const rows = reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]);
    take_task(copier, writer, decoder, rows, lane_window, ring);
}
