// ALGORITHM subgroup: SG_SIZE threads share COARSEN outputs, and each sums different phases of the decimation.
// Work    subgroup s of a block <-> outputs [s COARSEN, (s + 1) COARSEN) of a tile
//         lane l of a subgroup  <-> phases l, l + SG_SIZE, ... of the D phases of a row of taps
//         one block             <-> tiles blockIdx.x, + gridDim.x, ... of polarisation blockIdx.y
// Tile    The samples of a tile stay packed, in the registers of all threads, in groups of 16 or 32:
//             thread t: groups t, t + N_THREADS, t + 2 N_THREADS, ...
// Slice   phases [r SG_SIZE, (r + 1) SG_SIZE) of every row, unpacked into shared memory when they are needed. The lanes
//         of a subgroup read one row, and the lanes of the next subgroup read the row COARSEN rows further on,
//         SUBGROUP_STRIDE floats away:
//             row 0: l0 l1 .. | row 1: l0 l1 .. | ... | row COARSEN-1 | gap | row COARSEN ...
//         SUBGROUP_STRIDE is an odd number of rows, so a warp's reads have no bank conflicts. There are two slices: one
//         is written while the other is read.
constexpr int N_THREADS = {{ shape.n_threads }};  // blockDim.x
constexpr int COARSEN = {{ config.COARSEN }};  // consecutive outputs that share a window of samples
constexpr int SG_SIZE = {{ config.SG_SIZE }};  // threads that share COARSEN outputs, a power of two

// The geometry, which kernels/ddc/threads.py derives.
constexpr int ROWS_OF_TAPS = {{ shape.problem.rows_of_taps }};  // zeros fill the last one
constexpr int N_SLICES = {{ shape.n_slices }};  // each has SG_SIZE phases
constexpr int OUTPUTS_PER_THREAD = {{ shape.outputs_per_thread }};  // outputs of a thread after the reduction
constexpr int OUTPUTS_PER_BLOCK = {{ shape.outputs_per_block }};  // in one tile; a block processes tile after tile
constexpr int SAMPLES_PER_GROUP = {{ shape.samples_per_group }};  // the unit of unpacking, which fills whole words
constexpr int WORDS_PER_GROUP = {{ shape.words_per_group }};
constexpr int GROUPS_PER_TILE = {{ shape.groups_per_tile }};  // halo included
constexpr int GROUPS_PER_THREAD = {{ shape.groups_per_thread }};
constexpr int SUBGROUP_STRIDE = {{ shape.subgroup_stride }};  // floats from one subgroup's rows to the next one's
constexpr int CHUNKS_PER_SLICE = {{ shape.chunks_per_slice }};  // each has COARSEN rows
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
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

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

// store_group stores the samples of slice `slice` among samples FIRST and later of a group. If groups are whole rows,
// or rows are whole groups, KIND tells the compiler which samples those are: it is the slice modulo KINDS, the number
// of slices in which a group has samples.
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

// Multiplies the STEPS rows of taps from `weights` on by the window and adds the products to the sums. `row` is the
// window's first row, and its first COARSEN - 1 rows are loaded.
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

// Adds up the sums of the WIDTH lanes of a subgroup. At each step a lane gives away one half of its COUNT sums and
// keeps the other. At the end lane l holds sums [l COUNT / WIDTH, (l + 1) COUNT / WIDTH).
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
            __syncthreads();  // the slice is complete, and nobody reads the other one, which is written next
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
