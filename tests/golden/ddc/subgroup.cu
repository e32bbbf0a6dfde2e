// ddc[taps=256,decimation=16,sample_bits=10|ALGORITHM=subgroup,WGS=64,SG_SIZE=4,COARSEN=8,TILES=4]
// y[p][j] = sum over k < TAPS of w[k] x[p][j D + k] e^(2 pi i (f (j D + k) + phase)),  D = DECIMATION
//   baseband  out  float2 [n_pols][n_out]       (re, im)
//   samples   in   uint8  [n_pols][row_bytes]   SAMPLE_BITS wide, two's complement, most significant bit first
//   weights   in   float  [TAPS]
//   f = (frequency_high, frequency_low), a 128-bit fraction of a cycle a sample; phase, a 64-bit fraction of a cycle
// The mixer goes into the weights, h[k] = w[k] e^(2 pi i f k), so that real samples meet complex weights: two
// multiply-adds for a tap of an output. What is left of it is one rotation of each output.

constexpr int TAPS = 256;  // weights of the filter
constexpr int DECIMATION = 16;  // samples from one output to the next
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

// Packed samples: two's complement, BITS wide (2 to 16), the first sample in the most significant bits of the first
// byte. They are unpacked in groups, the fewest samples (16 or 32) that fill whole 32-bit words.
//
// A float is made of a field without a conversion. The field stays where it is in the word, at bits [i, i + BITS) of
// the low 23, the mantissa; with the exponent of 2^(23-i) above it, its lowest bit is worth 1:
//     as_float((word & mask) ^ (exponent | sign bit of the field)) = 2^(23-i) + sample + 2^(BITS-1)
// and one exact subtraction leaves the sample. Only a field that does not lie in the low 23 bits of a word needs a
// shift, and the shifted word serves its neighbours: 5 shifts for 16 samples of 10 bits.
constexpr int MANTISSA = 23;

template <int BITS>
struct Group {
    static constexpr int SAMPLES = BITS % 2 == 0 ? 16 : 32;
    static constexpr int WORDS = SAMPLES * BITS / 32;
};

// The first bit, counted from the group's first, of the 23 that sample number `sample` is taken from.
__host__ __device__ constexpr int window_start(int bits, int sample)
{
    int shifted = -32;  // where the latest shifted window starts
    for (int s = 0;; ++s) {
        const int first = s * bits;
        const int in_word = first % 32;
        const bool in_low_bits = in_word >= 32 - MANTISSA && in_word + bits <= 32;
        if (!in_low_bits && first + bits > shifted + MANTISSA)
            shifted = first;
        if (s == sample)
            return in_low_bits ? first - in_word + 32 - MANTISSA : shifted;
    }
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

// Sample number SAMPLE of a group whose words are in most-significant-first order.
template <int BITS, int SAMPLE>
__device__ __forceinline__ float unpack(const unsigned* words)
{
    constexpr int start = window_start(BITS, SAMPLE);
    constexpr int word = start / 32;
    constexpr int past = start % 32 + MANTISSA - 32;  // bits of the window in the next word, if positive
    constexpr int position = start + MANTISSA - (SAMPLE + 1) * BITS;  // of the field's lowest bit
    constexpr unsigned mask = ((1u << BITS) - 1) << position;
    constexpr unsigned sign_and_exponent = (1u << (position + BITS - 1)) | (127u + MANTISSA - position) << MANTISSA;
    constexpr float bias = static_cast<float>((1 << (MANTISSA - position)) + (1 << (BITS - 1)));
    unsigned window;
    if constexpr (past > 0)
        window = __funnelshift_r(words[word + 1], words[word], 32 - past);
    else
        window = words[word] >> -past;
    return __uint_as_float(and_xor(window, mask, sign_and_exponent)) - bias;
}

// Samples FIRST to FIRST + COUNT of a group.
template <int BITS, int FIRST, int COUNT>
__device__ __forceinline__ void unpack_run(const unsigned* words, float* samples)
{
    if constexpr (COUNT > 0) {
        samples[0] = unpack<BITS, FIRST>(words);
        unpack_run<BITS, FIRST + 1, COUNT - 1>(words, samples + 1);
    }
}

// Where the words of a tile lie, which decides how they are loaded.
enum class Loads {
    ALIGNED,  // from a multiple of 16 bytes on, inside the buffer: the widest loads
    INSIDE,  // from any byte on, inside the buffer, with 4 bytes to spare
    GUARDED,  // near the end of the buffer, which is not read past
};

__device__ __forceinline__ Loads loads_of(long long offset, long long span, long long n_bytes)
{
    if (offset + span + 4 > n_bytes)
        return Loads::GUARDED;
    return offset % 16 == 0 ? Loads::ALIGNED : Loads::INSIDE;
}

// The 32-bit word at `offset`, a multiple of 4; bytes from n_bytes on are not read, and are 0.
__device__ __forceinline__ unsigned load_guarded(const unsigned char* bytes, long long offset, long long n_bytes)
{
    if (offset + 4 <= n_bytes)
        return __ldg(reinterpret_cast<const unsigned*>(bytes + offset));
    unsigned word = 0;
    for (int i = 0; i < 3; ++i)
        if (offset + i < n_bytes)
            word |= static_cast<unsigned>(__ldg(bytes + offset + i)) << 8 * i;
    return word;
}

// The widest load, in words, that cuts WORDS words into equal parts.
__host__ __device__ constexpr int load_width(int words)
{
    return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
}

// WORDS words at an address that load_width(WORDS) words divide.
template <int WORDS>
__device__ __forceinline__ void load_aligned(unsigned* words, const unsigned char* address)
{
    constexpr int WIDTH = load_width(WORDS);
#pragma unroll
    for (int i = 0; i < WORDS; i += WIDTH) {
        if constexpr (WIDTH == 4) {
            const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(address + 4 * i));
            words[i] = loaded.x, words[i + 1] = loaded.y, words[i + 2] = loaded.z, words[i + 3] = loaded.w;
        } else if constexpr (WIDTH == 2) {
            const uint2 loaded = __ldg(reinterpret_cast<const uint2*>(address + 4 * i));
            words[i] = loaded.x, words[i + 1] = loaded.y;
        } else {
            words[i] = __ldg(reinterpret_cast<const unsigned*>(address + 4 * i));
        }
    }
}

// WORDS words from byte `offset` on, most significant byte first. ALIGNED: load_width(WORDS) words divide the address.
// MAY_BE_GUARDED: `loads` may say so; guarding is long code, which need not be everywhere.
template <int WORDS, bool MAY_BE_GUARDED>
__device__ __forceinline__ void load_words(
    unsigned* words, const unsigned char* __restrict__ bytes, long long offset, long long n_bytes, Loads loads)
{
    unsigned loaded[WORDS + 1];
    loaded[WORDS] = 0;
    if (loads == Loads::ALIGNED) {
        load_aligned<WORDS>(loaded, bytes + offset);
    } else if (!MAY_BE_GUARDED || loads == Loads::INSIDE) {
#pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            loaded[i] = __ldg(reinterpret_cast<const unsigned*>(bytes + (offset & ~3ll) + 4 * i));
    } else {
#pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            loaded[i] = load_guarded(bytes, (offset & ~3ll) + 4 * i, n_bytes);
    }
    const unsigned selector = 0x0123 + 0x1111 * static_cast<unsigned>(offset & 3);  // skips bytes, and reverses four
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        words[i] = __byte_perm(loaded[i], loaded[i + 1], selector);
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

// COUNT consecutive outputs from number `first` of a row on, as many as the row has.
template <int COUNT>
__device__ __forceinline__ void store_run(float2* row, long long first, long long n_out, const float2* outputs)
{
    const bool pairs_aligned = reinterpret_cast<unsigned long long>(row + first) % 16 == 0;  // rows may have any length
    if (COUNT % 2 == 0 && pairs_aligned && first + COUNT <= n_out) {
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i)
            reinterpret_cast<float4*>(row + first)[i] =
                make_float4(outputs[2 * i].x, outputs[2 * i].y, outputs[2 * i + 1].x, outputs[2 * i + 1].y);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (first + i < n_out)
                row[first + i] = outputs[i];
    }
}

// ALGORITHM subgroup: SG_SIZE threads share COARSEN outputs; each takes other phases of the decimation.
// Work    subgroup s of a block <-> outputs [s COARSEN, (s + 1) COARSEN) of a tile
//         lane l of a subgroup  <-> phases l, l + SG_SIZE, ... of the D phases of a row of taps
//         one block             <-> tiles blockIdx.x, + gridDim.x, ... of polarisation blockIdx.y
// Tile    its samples stay packed, in the registers of all threads, in groups of 16 or 32:
//             thread t: groups t, t + N_THREADS, t + 2 N_THREADS, ...
// Slice   phases [r SG_SIZE, (r + 1) SG_SIZE) of every row, unpacked into shared memory when they are needed: the
//         lanes of a subgroup read one row, those of the next subgroup the row COARSEN further, SUBGROUP_STRIDE floats
//         away
//             row 0: l0 l1 .. | row 1: l0 l1 .. | ... | row COARSEN-1 | gap | row COARSEN ...
//         An odd number of rows in SUBGROUP_STRIDE keeps a warp's reads free of bank conflicts. There are two slices,
//         so that one can be written while the other is read.
constexpr int N_THREADS = 64;  // blockDim.x
constexpr int COARSEN = 8;  // consecutive outputs that share a window of samples
constexpr int SG_SIZE = 4;  // threads that share COARSEN outputs, a power of two

// The geometry, by kernels/ddc/threads.py.
constexpr int ROWS_OF_TAPS = 16;  // the last one filled up with zeros
constexpr int N_SLICES = 4;  // of SG_SIZE phases
constexpr int OUTPUTS_PER_THREAD = 2;  // that it is left with
constexpr int OUTPUTS_PER_BLOCK = 128;  // of a tile: a block takes one tile after the other
constexpr int SAMPLES_PER_GROUP = 16;  // that fill whole words: the unit of unpacking
constexpr int WORDS_PER_GROUP = 5;
constexpr int GROUPS_PER_TILE = 143;  // with its halo
constexpr int GROUPS_PER_THREAD = 3;
constexpr int SUBGROUP_STRIDE = 36;  // floats, from subgroup to subgroup
constexpr int CHUNKS_PER_SLICE = 18;  // of COARSEN rows
static_assert(OUTPUTS_PER_THREAD * SG_SIZE == COARSEN && OUTPUTS_PER_BLOCK == N_THREADS * OUTPUTS_PER_THREAD);
static_assert(SAMPLES_PER_GROUP == Group<SAMPLE_BITS>::SAMPLES && WORDS_PER_GROUP == Group<SAMPLE_BITS>::WORDS);
static_assert(ROWS_OF_TAPS * DECIMATION >= TAPS && N_SLICES * SG_SIZE >= DECIMATION);
static_assert(GROUPS_PER_TILE * SAMPLES_PER_GROUP >= (OUTPUTS_PER_BLOCK + ROWS_OF_TAPS - 1) * DECIMATION);
static_assert(GROUPS_PER_THREAD * N_THREADS >= GROUPS_PER_TILE);

struct Shared {
    alignas(16) float2 weights[N_SLICES][ROWS_OF_TAPS][SG_SIZE];  // w[k] e^(2 pi i f k)
    alignas(16) float2 phasors[OUTPUTS_PER_THREAD];  // e^(2 pi i f D c)
    alignas(16) float2 tile_phasor;  // e^(2 pi i (f D j + phase)) of the tile's first output j
    alignas(16) float slices[2][CHUNKS_PER_SLICE * SUBGROUP_STRIDE];
};
static_assert(sizeof(Shared) == 7264, "what the definition asks for at launch");

__device__ __forceinline__ void mix_weights(Shared& shared, const float* __restrict__ weights, Frequency frequency)
{
    for (int k = threadIdx.x; k < ROWS_OF_TAPS * DECIMATION; k += N_THREADS) {
        const float weight = k < TAPS ? weights[k] : 0.0f;
        const float2 phasor = unit_vector(advance(frequency, k));
        shared.weights[k % DECIMATION / SG_SIZE][k / DECIMATION][k % DECIMATION % SG_SIZE] =
            make_float2(weight * phasor.x, weight * phasor.y);
    }
    for (int c = threadIdx.x; c < OUTPUTS_PER_THREAD; c += N_THREADS)
        shared.phasors[c] = unit_vector(advance(frequency, c * DECIMATION));
}

__device__ __forceinline__ void load_groups(
    unsigned (&words)[GROUPS_PER_THREAD][WORDS_PER_GROUP], const unsigned char* __restrict__ packed, long long offset,
    long long n_bytes, Loads loads)
{
#pragma unroll
    for (int i = 0; i < GROUPS_PER_THREAD; ++i) {
        const int group = threadIdx.x + i * N_THREADS;
        if (group < GROUPS_PER_TILE)
            load_words<WORDS_PER_GROUP, true>(
                words[i], packed, offset + group * (4ll * WORDS_PER_GROUP), n_bytes, loads);
    }
}

// Samples FIRST and on of a group, those that belong to slice number `slice`. Where groups and rows fit into each
// other, KIND, the slice modulo the slices that a group meets, tells the compiler which samples those are.
constexpr bool GROUP_OF_ROWS = SAMPLES_PER_GROUP % DECIMATION == 0;
constexpr bool ROW_OF_GROUPS = DECIMATION % SAMPLES_PER_GROUP == 0 && SAMPLES_PER_GROUP % SG_SIZE == 0;
constexpr int KINDS = GROUP_OF_ROWS ? N_SLICES : ROW_OF_GROUPS ? SAMPLES_PER_GROUP / SG_SIZE : 1;

template <int KIND, int FIRST>
__device__ __forceinline__ void store_group(float* samples, int slice, int group, const unsigned* words)
{
    if constexpr (FIRST < SAMPLES_PER_GROUP) {
        constexpr bool KNOWN = GROUP_OF_ROWS || ROW_OF_GROUPS;
        constexpr int PHASE = FIRST % DECIMATION;
        if constexpr (!KNOWN || PHASE / SG_SIZE == KIND) {
            const int index = group * SAMPLES_PER_GROUP + FIRST;
            const int row = index / DECIMATION;
            const int lane = KNOWN ? PHASE % SG_SIZE : index % DECIMATION - slice * SG_SIZE;
            if (KNOWN || (lane >= 0 && lane < SG_SIZE))
                samples[row / COARSEN * SUBGROUP_STRIDE + row % COARSEN * SG_SIZE + lane] =
                    unpack<SAMPLE_BITS, FIRST>(words);
        }
        store_group<KIND, FIRST + 1>(samples, slice, group, words);
    }
}

template <int KIND>
__device__ __forceinline__ void store_slice(
    float* samples, int slice, const unsigned (&words)[GROUPS_PER_THREAD][WORDS_PER_GROUP])
{
    if constexpr (KIND + 1 < KINDS) {
        if (slice % KINDS != KIND) {
            store_slice<KIND + 1>(samples, slice, words);
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < GROUPS_PER_THREAD; ++i) {
        const int group = threadIdx.x + i * N_THREADS;
        const bool meets = !ROW_OF_GROUPS || group % ceil_div(DECIMATION, SAMPLES_PER_GROUP) == slice / KINDS;
        if (group < GROUPS_PER_TILE && meets)
            store_group<KIND, 0>(samples, slice, group, words[i]);
    }
}

// STEPS rows of taps from `weights` on, at the window whose first COARSEN - 1 rows are loaded; `row` is its first.
template <int STEPS>
__device__ __forceinline__ void slide(
    float2 (&sums)[COARSEN], float (&window)[COARSEN], const float* row, const float2* weights)
{
#pragma unroll
    for (int r = 0; r < STEPS; ++r) {
        const int newest = r + COARSEN - 1;
        window[newest % COARSEN] = row[newest / COARSEN * SUBGROUP_STRIDE + newest % COARSEN * SG_SIZE];
        const float2 h = weights[r * SG_SIZE];
#pragma unroll
        for (int c = 0; c < COARSEN; ++c) {
            sums[c].x += h.x * window[(r + c) % COARSEN];
            sums[c].y += h.y * window[(r + c) % COARSEN];
        }
    }
}

__device__ __forceinline__ void filter_slice(float2 (&sums)[COARSEN], const float* row, const float2* weights)
{
    float window[COARSEN];
#pragma unroll
    for (int c = 0; c < COARSEN - 1; ++c)
        window[c] = row[c * SG_SIZE];
#pragma unroll 1
    for (int r = 0; r < ROWS_OF_TAPS / COARSEN; ++r) {
        slide<COARSEN>(sums, window, row, weights);
        row += SUBGROUP_STRIDE;
        weights += COARSEN * SG_SIZE;
    }
    slide<ROWS_OF_TAPS % COARSEN>(sums, window, row, weights);
}

// Sums over the WIDTH lanes of a subgroup: at each step a lane gives one half of its COUNT sums and keeps the other.
// Lane l is left with sums [l COUNT / WIDTH, (l + 1) COUNT / WIDTH).
template <int COUNT, int WIDTH>
__device__ __forceinline__ void reduce(float2* sums)
{
    if constexpr (WIDTH > 1) {
        constexpr int HALF = COUNT / 2;
        const bool upper = threadIdx.x & WIDTH / 2;
#pragma unroll
        for (int i = 0; i < HALF; ++i) {
            const float2 given = upper ? sums[i] : sums[i + HALF];
            const float2 kept = upper ? sums[i + HALF] : sums[i];
            sums[i].x = kept.x + __shfl_xor_sync(0xffffffffu, given.x, WIDTH / 2);
            sums[i].y = kept.y + __shfl_xor_sync(0xffffffffu, given.y, WIDTH / 2);
        }
        reduce<HALF, WIDTH / 2>(sums);
    }
}

extern "C" __global__ void __launch_bounds__(N_THREADS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    constexpr long long TILE_BYTES = static_cast<long long>(OUTPUTS_PER_BLOCK / 8) * DECIMATION * SAMPLE_BITS;
    const int t = threadIdx.x;
    const int lane = t % SG_SIZE;
    const Frequency frequency = {frequency_high, frequency_low};
    const long long n_bytes = row_bytes * gridDim.y;

    mix_weights(shared, weights, frequency);
    const float2 thread_phasor = unit_vector(advance(frequency, t * OUTPUTS_PER_THREAD * DECIMATION));
    for (long long first = blockIdx.x * static_cast<long long>(OUTPUTS_PER_BLOCK); first < n_out;
         first += gridDim.x * static_cast<long long>(OUTPUTS_PER_BLOCK)) {
        const long long offset = row_bytes * blockIdx.y + first / OUTPUTS_PER_BLOCK * TILE_BYTES;
        unsigned words[GROUPS_PER_THREAD][WORDS_PER_GROUP];
        const Loads loads = loads_of(offset, 4ll * GROUPS_PER_TILE * WORDS_PER_GROUP, n_bytes);
        load_groups(words, samples, offset, n_bytes, loads);
        if (t == N_THREADS - 1)
            shared.tile_phasor = unit_vector(phase + advance(frequency, first * DECIMATION));

        float2 sums[COARSEN];
#pragma unroll
        for (int c = 0; c < COARSEN; ++c)
            sums[c] = make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int slice = 0; slice < N_SLICES; ++slice) {
            float* unpacked = shared.slices[slice % 2];
            store_slice<0>(unpacked, slice, words);
            __syncthreads();  // the slice is complete; and nobody reads the other one, which is written next
            if (slice * SG_SIZE + lane < DECIMATION)
                filter_slice(sums, unpacked + t / SG_SIZE * SUBGROUP_STRIDE + lane, &shared.weights[slice][0][lane]);
        }
        reduce<COARSEN, SG_SIZE>(sums);
        const float2 phasor = multiply(thread_phasor, shared.tile_phasor);
#pragma unroll
        for (int c = 0; c < OUTPUTS_PER_THREAD; ++c)
            sums[c] = multiply(sums[c], multiply(phasor, shared.phasors[c]));
        store_run<OUTPUTS_PER_THREAD>(baseband + n_out * blockIdx.y, first + t * OUTPUTS_PER_THREAD, n_out, sums);
        __syncthreads();  // nobody reads this tile's slices and phasor any more
    }
}
