// ALGORITHM register: a thread computes COARSEN consecutive outputs, and a window of samples slides through its
// registers.
// Work    thread t of a block <-> outputs [t COARSEN, (t + 1) COARSEN) of a tile, and the unpacking of chunk t
//         one block           <-> tiles blockIdx.x, + gridDim.x, ... of polarisation blockIdx.y
// Tile    samples as float, in order, in chunks of COARSEN rows of D samples. A gap after each chunk makes the stride
//         between threads an odd number of vectors, so neither unpacking nor filtering has bank conflicts.
//             chunk 0 (thread 0)       | chunk 1 (thread 1)       | ... | chunk N_THREADS ... : the halo, which
//             row 0 .. row COARSEN-1 gap row 0 .. row COARSEN-1 gap      the last outputs need beyond their own chunk
// Filter  PHASES columns of the rows at a time. Output c multiplies row r of the taps by row c + r of the window:
//         row r + COARSEN - 1 is loaded into the place of row r - 1, and all rows are then multiplied by row r of the
//         taps.
constexpr int N_THREADS = {{ shape.n_threads }};  // blockDim.x
constexpr int COARSEN = {{ config.COARSEN }};  // consecutive outputs that share a window of samples
constexpr int PHASES = {{ config.PHASES }};  // columns of the window, which is the width of its loads
constexpr bool STAGED = {{ "true" if config.STORE == "staged" else "false" }};  // outputs pass through shared memory

// The geometry, which kernels/ddc/threads.py derives.
constexpr int ROWS_OF_TAPS = {{ shape.problem.rows_of_taps }};  // zeros fill the last one
constexpr int OUTPUTS_PER_BLOCK = {{ shape.outputs_per_block }};  // in one tile; a block processes tile after tile
constexpr int SAMPLES_PER_CHUNK = {{ shape.samples_per_chunk }};  // distance between two threads' first samples
constexpr int CHUNK_STRIDE = {{ shape.chunk_stride }};  // floats in shared memory from one chunk to the next
constexpr int SAMPLES_PER_GROUP = {{ shape.samples_per_group }};  // the unit of unpacking, which fills whole words
constexpr int WORDS_PER_GROUP = {{ shape.words_per_group }};
constexpr int GROUPS_PER_TILE = {{ shape.groups_per_tile }};  // halo included
constexpr int CHUNKS_PER_TILE = {{ shape.chunks_per_tile }};
static_assert(OUTPUTS_PER_BLOCK == N_THREADS * COARSEN && SAMPLES_PER_CHUNK == COARSEN * DECIMATION);
static_assert(SAMPLES_PER_GROUP == Group<SAMPLE_BITS>::SAMPLES && WORDS_PER_GROUP == Group<SAMPLE_BITS>::WORDS);
static_assert(ROWS_OF_TAPS * DECIMATION >= TAPS && DECIMATION % PHASES == 0, "a vector of samples lies in one row");
static_assert(GROUPS_PER_TILE * SAMPLES_PER_GROUP >= (OUTPUTS_PER_BLOCK + ROWS_OF_TAPS - 1) * DECIMATION);
static_assert(CHUNKS_PER_TILE * SAMPLES_PER_CHUNK >= GROUPS_PER_TILE * SAMPLES_PER_GROUP);

// Whether a thread can unpack its own chunk, the samples at which its outputs begin.
constexpr bool OWN_CHUNKS = SAMPLES_PER_CHUNK % SAMPLES_PER_GROUP == 0;
// Rows of taps that are unrolled: as many whole rounds of the window as have 1536 multiply-adds, and at least one.
constexpr int FMAS_PER_ROUND = 2 * COARSEN * COARSEN * PHASES;
constexpr int UNROLLED_ROWS = (FMAS_PER_ROUND < 1536 ? 1536 / FMAS_PER_ROUND : 1) * COARSEN;

struct Shared {
    alignas(16) float2 weights[DECIMATION / PHASES][ROWS_OF_TAPS][PHASES];  // w[k] e^(2 pi i f k), in order of use
    alignas(16) float2 phasors[COARSEN];  // e^(2 pi i f D c)
    alignas(16) float2 tile_phasor;  // e^(2 pi i (f D j + phase)) of the tile's first output j
    alignas(16) float samples[CHUNKS_PER_TILE * CHUNK_STRIDE];
};
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

__device__ __forceinline__ void mix_weights(Shared& shared, const float* __restrict__ weights, Frequency frequency)
{
    for (int k = threadIdx.x; k < ROWS_OF_TAPS * DECIMATION; k += N_THREADS) {
        const float weight = k < TAPS ? weights[k] : 0.0f;
        const float2 phasor = unit_vector(advance(frequency, k));
        shared.weights[k % DECIMATION / PHASES][k / DECIMATION][k % PHASES] =
            make_float2(weight * phasor.x, weight * phasor.y);
    }
    for (int c = threadIdx.x; c < COARSEN; c += N_THREADS)
        shared.phasors[c] = unit_vector(advance(frequency, c * DECIMATION));
}

// Returns the index in shared memory of sample SAMPLE of group `group` of the tile.
template <int SAMPLE>
__device__ __forceinline__ int slot(int group)
{
    if constexpr (OWN_CHUNKS) {
        constexpr int GROUPS_PER_CHUNK = SAMPLES_PER_CHUNK / SAMPLES_PER_GROUP;
        return group / GROUPS_PER_CHUNK * CHUNK_STRIDE + group % GROUPS_PER_CHUNK * SAMPLES_PER_GROUP + SAMPLE;
    } else if constexpr (SAMPLES_PER_GROUP % SAMPLES_PER_CHUNK == 0) {
        constexpr int CHUNKS_PER_GROUP = SAMPLES_PER_GROUP / SAMPLES_PER_CHUNK;
        return group * CHUNKS_PER_GROUP * CHUNK_STRIDE + SAMPLE / SAMPLES_PER_CHUNK * CHUNK_STRIDE
            + SAMPLE % SAMPLES_PER_CHUNK;
    } else {
        const int index = group * SAMPLES_PER_GROUP + SAMPLE;
        return index / SAMPLES_PER_CHUNK * CHUNK_STRIDE + index % SAMPLES_PER_CHUNK;
    }
}

// Unpacks samples FIRST and later of a group and stores them PHASES at a time. PHASES such samples lie in one row.
template <int FIRST>
__device__ __forceinline__ void store_group(float* samples, int group, const unsigned* words)
{
    if constexpr (FIRST < SAMPLES_PER_GROUP) {
        Floats<PHASES> run;
        unpack_run<SAMPLE_BITS, FIRST, PHASES>(words, run.at);
        store_floats<PHASES>(samples + slot<FIRST>(group), run);
        store_group<FIRST + PHASES>(samples, group, words);
    }
}

// Unpacks COUNT consecutive groups. `offset` is the tile's first byte.
template <int COUNT, bool MAY_BE_GUARDED>
__device__ __forceinline__ void unpack_groups(
    float* samples, int group, const unsigned char* __restrict__ packed, long long offset, long long n_bytes,
    Loads loads)
{
    unsigned words[COUNT * WORDS_PER_GROUP];
    const long long first = offset + group * (4ll * WORDS_PER_GROUP);
    load_words<COUNT * WORDS_PER_GROUP, MAY_BE_GUARDED>(words, packed, first, n_bytes, loads);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        store_group<0>(samples, group + i, words + i * WORDS_PER_GROUP);
}

// Returns how many groups of a chunk to load at once. The more there are, the more wide loads are in flight; MAX_WORDS
// limits them.
__host__ __device__ constexpr int batch_of(int groups)
{
    constexpr int MAX_WORDS = 40;  // few registers are in use while a tile is unpacked
    int batch = groups;
    while (batch > 1 && (groups % batch != 0 || batch * WORDS_PER_GROUP > MAX_WORDS))
        --batch;
    return batch;
}

// Unpacks all samples of a tile into shared memory. A thread unpacks its own chunk and then its share of the halo. Near
// the end of the buffer, and where chunks are not whole groups, it unpacks groups from anywhere in the tile.
__device__ __forceinline__ void unpack_tile(
    float* samples, const unsigned char* __restrict__ packed, long long offset, long long n_bytes, Loads loads)
{
    int group = threadIdx.x;
    if (OWN_CHUNKS && loads != Loads::GUARDED) {
        constexpr int GROUPS_PER_CHUNK = ceil_div(SAMPLES_PER_CHUNK, SAMPLES_PER_GROUP);
        constexpr int BATCH = batch_of(GROUPS_PER_CHUNK);
#pragma unroll
        for (int i = 0; i < GROUPS_PER_CHUNK; i += BATCH)
            unpack_groups<BATCH, false>(samples, threadIdx.x * GROUPS_PER_CHUNK + i, packed, offset, n_bytes, loads);
        group += N_THREADS * GROUPS_PER_CHUNK;
    }
#pragma unroll 1
    for (; group < GROUPS_PER_TILE; group += N_THREADS)
        unpack_groups<1, true>(samples, group, packed, offset, n_bytes, loads);
}

// Multiplies the STEPS rows of taps from `weights` on by the window and adds the products to the sums. `row` is the
// window's first row, and its first COARSEN - 1 rows are loaded.
// Each multiply-add shares its weight or its sample with the one before it. Otherwise it would read three registers, of
// which two may lie in one bank, and would not issue at full rate.
template <int STEPS>
__device__ __forceinline__ void slide(
    float2 (&sums)[COARSEN], Floats<PHASES> (&window)[COARSEN], const float* row, const float2 (*weights)[PHASES])
{
#pragma unroll
    for (int r = 0; r < STEPS; ++r) {
        const int newest = r + COARSEN - 1;
        window[newest % COARSEN] =
            load_floats<PHASES>(row + newest / COARSEN * CHUNK_STRIDE + newest % COARSEN * DECIMATION);
        constexpr int LOAD = PHASES == 1 ? 2 : 4;  // floats in one load of weights
#pragma unroll
        for (int p = 0; p < 2 * PHASES; p += LOAD) {
            const Floats<LOAD> h = load_floats<LOAD>(&weights[r][p / 2].x);
#pragma unroll
            for (int i = 0; i < LOAD; i += 2) {
#pragma unroll
                for (int c = COARSEN - 1; c >= 0; --c) {
                    const float x = window[(r + c) % COARSEN].at[(p + i) / 2];
                    if (c % 2 != 0) {
                        sums[c].x += h.at[i] * x;
                        sums[c].y += h.at[i + 1] * x;
                    } else {
                        sums[c].y += h.at[i + 1] * x;
                        sums[c].x += h.at[i] * x;
                    }
                }
            }
        }
    }
}

__device__ __forceinline__ void filter(float2 (&sums)[COARSEN], const Shared& shared)
{
#pragma unroll
    for (int c = 0; c < COARSEN; ++c)
        sums[c] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int column = 0; column < DECIMATION / PHASES; ++column) {
        const float* row = shared.samples + threadIdx.x * CHUNK_STRIDE + column * PHASES;
        const float2(*weights)[PHASES] = shared.weights[column];
        Floats<PHASES> window[COARSEN];
#pragma unroll
        for (int c = 0; c < COARSEN - 1; ++c)
            window[c] = load_floats<PHASES>(row + c * DECIMATION);
        if constexpr (ROWS_OF_TAPS > UNROLLED_ROWS) {
#pragma unroll 1
            for (int r = 0; r < ROWS_OF_TAPS / UNROLLED_ROWS; ++r) {
                slide<UNROLLED_ROWS>(sums, window, row, weights);
                row += UNROLLED_ROWS / COARSEN * CHUNK_STRIDE;
                weights += UNROLLED_ROWS;
            }
        }
        slide<ROWS_OF_TAPS == UNROLLED_ROWS ? ROWS_OF_TAPS : ROWS_OF_TAPS % UNROLLED_ROWS>(sums, window, row, weights);
    }
}

extern "C" __global__ void __launch_bounds__(N_THREADS, {{ shape.min_blocks }}) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    constexpr long long TILE_BYTES = static_cast<long long>(N_THREADS / 8) * SAMPLES_PER_CHUNK * SAMPLE_BITS;
    const int t = threadIdx.x;
    const Frequency frequency = {frequency_high, frequency_low};
    const long long n_bytes = row_bytes * gridDim.y;
    float2* row = baseband + n_out * blockIdx.y;

    mix_weights(shared, weights, frequency);
    const float2 thread_phasor = unit_vector(advance(frequency, t * SAMPLES_PER_CHUNK));
    for (long long first = blockIdx.x * static_cast<long long>(OUTPUTS_PER_BLOCK); first < n_out;
         first += gridDim.x * static_cast<long long>(OUTPUTS_PER_BLOCK)) {
        const long long offset = row_bytes * blockIdx.y + first / OUTPUTS_PER_BLOCK * TILE_BYTES;
        const Loads loads = loads_of(offset, 4ll * GROUPS_PER_TILE * WORDS_PER_GROUP, n_bytes);
        if (STAGED && (!OWN_CHUNKS || loads == Loads::GUARDED))
            __syncthreads();  // warps have read their outputs from the chunks, into which any thread now unpacks
        if (t == N_THREADS - 1)
            shared.tile_phasor = unit_vector(phase + advance(frequency, first * DECIMATION));
        unpack_tile(shared.samples, samples, offset, n_bytes, loads);
        __syncthreads();  // the tile, its phasor and, before the first, the weights are complete

        float2 sums[COARSEN];
        filter(sums, shared);
        const float2 phasor = multiply(thread_phasor, shared.tile_phasor);
#pragma unroll
        for (int c = 0; c < COARSEN; ++c)
            sums[c] = multiply(sums[c], multiply(phasor, shared.phasors[c]));

        __syncthreads();  // nobody reads the tile any more: the next tile, or the outputs, may take its place
        if constexpr (STAGED) {
            // A warp's outputs lie in its own chunks, which no other warp touches before the next barrier.
            float* chunk = shared.samples + t * CHUNK_STRIDE;
#pragma unroll
            for (int c = 0; c < COARSEN; ++c)
                chunk[2 * c] = sums[c].x, chunk[2 * c + 1] = sums[c].y;
            __syncwarp();  // a warp's outputs are complete
            const int warp = t / 32 * 32;
#pragma unroll
            for (int i = 0; i < COARSEN; ++i) {
                const int output = warp * COARSEN + i * 32 + t % 32;
                const float* from = shared.samples + output / COARSEN * CHUNK_STRIDE + output % COARSEN * 2;
                if (first + output < n_out)
                    row[first + output] = make_float2(from[0], from[1]);
            }
            __syncwarp();  // a thread may unpack into its own chunk, from which the warp has read
        } else {
            store_run<COARSEN>(row, first + t * COARSEN, n_out, sums);
        }
    }
}
