// ALGORITHM subgroup: SG_SIZE threads share COARSEN outputs; each takes other phases of the decimation.
// Work    subgroup s of a block <-> outputs [s COARSEN, (s + 1) COARSEN) of a tile
//         lane l of a subgroup  <-> phases l, l + SG_SIZE, ... of the D phases of a row of taps
//         one block             <-> tiles blockIdx.x, + gridDim.x, ... of polarisation blockIdx.y
// Tile    its samples stay packed, in the registers of all threads, in segments of 16 or 32:
//             thread t: segments t, t + WGS, t + 2 WGS, ...
// Slice   phases [r SG_SIZE, (r + 1) SG_SIZE) of every row, unpacked into shared memory when their turn comes: the
//         lanes of a subgroup read one row, those of the next subgroup the row COARSEN further, STRIDE floats away
//             row 0: l0 l1 .. | row 1: l0 l1 .. | ... | row COARSEN-1 | gap | row COARSEN ...
//         An odd number of rows in STRIDE keeps a warp's reads free of bank conflicts. There are two slices, so that
//         one can be written while the other is read.
constexpr int SG_SIZE = {{ config.SG_SIZE }};  // threads that share COARSEN outputs, a power of two

constexpr int ROWS = ceil_div(TAPS, DECIMATION);  // of taps, the last one filled up with zeros
constexpr int SLICES = ceil_div(DECIMATION, SG_SIZE);
constexpr int OUTPUTS = COARSEN / SG_SIZE;  // that a thread is left with
constexpr int TILE_OUTPUTS = WGS * OUTPUTS;
constexpr int SEGMENT = Group<SAMPLE_BITS>::SAMPLES;
constexpr int SEGMENT_WORDS = Group<SAMPLE_BITS>::WORDS;
constexpr int SEGMENTS = ceil_div((TILE_OUTPUTS + ROWS - 1) * DECIMATION, SEGMENT);  // of a tile with its halo
constexpr int OWN_SEGMENTS = ceil_div(SEGMENTS, WGS);
constexpr int STRIDE = (COARSEN | 1) * SG_SIZE;  // floats from subgroup to subgroup
constexpr int CHUNKS = ceil_div(ceil_div(SEGMENTS * SEGMENT, DECIMATION), COARSEN);
static_assert(COARSEN % SG_SIZE == 0, "each thread is left with whole outputs");

struct Shared {
    alignas(16) float2 weights[SLICES][ROWS][SG_SIZE];  // w[k] e^(2 pi i f k)
    alignas(16) float2 turns[OUTPUTS];  // e^(2 pi i f D c)
    alignas(16) float2 tile_turn;  // e^(2 pi i (f D j + phase)) of the tile's first output j
    alignas(16) float slices[2][CHUNKS * STRIDE];
};
static_assert(sizeof(Shared) == {{ shared_bytes }}, "what the definition asks for at launch");

__device__ __forceinline__ void mix_weights(Shared& shared, const float* __restrict__ weights, Frequency frequency)
{
    for (int k = threadIdx.x; k < ROWS * DECIMATION; k += WGS) {
        const float weight = k < TAPS ? weights[k] : 0.0f;
        const float2 turn = unit_vector(advance(frequency, k));
        shared.weights[k % DECIMATION / SG_SIZE][k / DECIMATION][k % DECIMATION % SG_SIZE] =
            make_float2(weight * turn.x, weight * turn.y);
    }
    for (int c = threadIdx.x; c < OUTPUTS; c += WGS)
        shared.turns[c] = unit_vector(advance(frequency, c * DECIMATION));
}

__device__ __forceinline__ void load_segments(
    unsigned (&words)[OWN_SEGMENTS][SEGMENT_WORDS], const unsigned char* __restrict__ packed, long long offset,
    long long n_bytes, Loads loads)
{
#pragma unroll
    for (int i = 0; i < OWN_SEGMENTS; ++i) {
        const int segment = threadIdx.x + i * WGS;
        if (segment < SEGMENTS)
            load_words<SEGMENT_WORDS, true>(words[i], packed, offset + segment * (4ll * SEGMENT_WORDS), n_bytes, loads);
    }
}

// Samples FIRST and on of a segment, those that belong to slice number `slice`. Where segments and rows fit into each
// other, KIND, the slice modulo the slices that a segment meets, tells the compiler which samples those are.
constexpr bool SEGMENT_OF_ROWS = SEGMENT % DECIMATION == 0;
constexpr bool ROW_OF_SEGMENTS = DECIMATION % SEGMENT == 0 && SEGMENT % SG_SIZE == 0;
constexpr int KINDS = SEGMENT_OF_ROWS ? SLICES : ROW_OF_SEGMENTS ? SEGMENT / SG_SIZE : 1;

template <int KIND, int FIRST>
__device__ __forceinline__ void store_segment(float* samples, int slice, int segment, const unsigned* words)
{
    if constexpr (FIRST < SEGMENT) {
        constexpr bool KNOWN = SEGMENT_OF_ROWS || ROW_OF_SEGMENTS;
        constexpr int PHASE = FIRST % DECIMATION;
        if constexpr (!KNOWN || PHASE / SG_SIZE == KIND) {
            const int index = segment * SEGMENT + FIRST;
            const int row = index / DECIMATION;
            const int lane = KNOWN ? PHASE % SG_SIZE : index % DECIMATION - slice * SG_SIZE;
            if (KNOWN || (lane >= 0 && lane < SG_SIZE))
                samples[row / COARSEN * STRIDE + row % COARSEN * SG_SIZE + lane] = unpack<SAMPLE_BITS, FIRST>(words);
        }
        store_segment<KIND, FIRST + 1>(samples, slice, segment, words);
    }
}

template <int KIND>
__device__ __forceinline__ void store_slice(
    float* samples, int slice, const unsigned (&words)[OWN_SEGMENTS][SEGMENT_WORDS])
{
    if constexpr (KIND + 1 < KINDS) {
        if (slice % KINDS != KIND) {
            store_slice<KIND + 1>(samples, slice, words);
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < OWN_SEGMENTS; ++i) {
        const int segment = threadIdx.x + i * WGS;
        const bool meets = !ROW_OF_SEGMENTS || segment % ceil_div(DECIMATION, SEGMENT) == slice / KINDS;
        if (segment < SEGMENTS && meets)
            store_segment<KIND, 0>(samples, slice, segment, words[i]);
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
        window[newest % COARSEN] = row[newest / COARSEN * STRIDE + newest % COARSEN * SG_SIZE];
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
    for (int r = 0; r < ROWS / COARSEN; ++r) {
        slide<COARSEN>(sums, window, row, weights);
        row += STRIDE;
        weights += COARSEN * SG_SIZE;
    }
    slide<ROWS % COARSEN>(sums, window, row, weights);
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

extern "C" __global__ void __launch_bounds__(WGS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    constexpr long long TILE_BYTES = static_cast<long long>(TILE_OUTPUTS / 8) * DECIMATION * SAMPLE_BITS;
    const int t = threadIdx.x;
    const int lane = t % SG_SIZE;
    const Frequency frequency = {frequency_high, frequency_low};
    const long long n_bytes = row_bytes * gridDim.y;

    mix_weights(shared, weights, frequency);
    const float2 thread_turn = unit_vector(advance(frequency, t * OUTPUTS * DECIMATION));
    for (long long first = blockIdx.x * static_cast<long long>(TILE_OUTPUTS); first < n_out;
         first += gridDim.x * static_cast<long long>(TILE_OUTPUTS)) {
        const long long offset = row_bytes * blockIdx.y + first / TILE_OUTPUTS * TILE_BYTES;
        unsigned words[OWN_SEGMENTS][SEGMENT_WORDS];
        load_segments(words, samples, offset, n_bytes, loads_of(offset, 4ll * SEGMENTS * SEGMENT_WORDS, n_bytes));
        if (t == WGS - 1)
            shared.tile_turn = unit_vector(phase + advance(frequency, first * DECIMATION));

        float2 sums[COARSEN];
#pragma unroll
        for (int c = 0; c < COARSEN; ++c)
            sums[c] = make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int slice = 0; slice < SLICES; ++slice) {
            float* unpacked = shared.slices[slice % 2];
            store_slice<0>(unpacked, slice, words);
            __syncthreads();  // the slice is complete; and nobody reads the other one, which is written next
            if (slice * SG_SIZE + lane < DECIMATION)
                filter_slice(sums, unpacked + t / SG_SIZE * STRIDE + lane, &shared.weights[slice][0][lane]);
        }
        reduce<COARSEN, SG_SIZE>(sums);
        const float2 turn = multiply(thread_turn, shared.tile_turn);
#pragma unroll
        for (int c = 0; c < OUTPUTS; ++c)
            sums[c] = multiply(sums[c], multiply(turn, shared.turns[c]));
        store_run<OUTPUTS>(baseband + n_out * blockIdx.y, first + t * OUTPUTS, n_out, sums);
        __syncthreads();  // nobody reads this tile's slices and turn any more
    }
}
