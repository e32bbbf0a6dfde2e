// The first of two launches after the tables: a block filters COLUMNS neighbouring columns n2 (all n1, one part, one
// polarisation) and transforms each along n1.
//   between  out  float2 or __half2 [N_POLS][parts][PART_SPECTRA N_POINTS]  place_between() orders a part
//   grid = (groups of columns, fastest, and parts; polarisations)
// Needs     part.cuh (Part, part_at), stream.cuh (Starts, Stream), power.cuh (add_sums),
//           transform.cuh (reversed, transform), lib/thread.cuh (thread_again), lib/vector.cuh (ceil_div)
// Provides  channelise_columns; Between, from_between, place_between
{% if config.BETWEEN == "half" %}
#include <cuda_fp16.h>

typedef __half2 Between;
__device__ __forceinline__ Between as_between(float2 value) { return __float22half2_rn(value); }
__device__ __forceinline__ float2 from_between(Between value) { return __half22float2(value); }
{% else %}
typedef float2 Between;
__device__ __forceinline__ Between as_between(float2 value) { return value; }
__device__ __forceinline__ float2 from_between(Between value) { return value; }
{% endif %}

constexpr int COLUMNS = {{ config.COLUMNS }};
constexpr int COLUMN_THREADS = {{ config.COLUMN_THREADS }};  // blockDim.x of channelise_columns

// Returns the place of value n2 of row k1 of spectrum s in a part of a polarisation. Values of COLUMNS neighbouring
// columns and all spectra of a part are contiguous, so that a block stores long runs.
__device__ __forceinline__ int place_between(int s, int k1, int n2)
{
    return k1 * (N2 * PART_SPECTRA) + (n2 / COLUMNS * PART_SPECTRA + s) * COLUMNS + n2 % COLUMNS;
}

static_assert(COLUMNS == SEGMENT && COLUMN_THREADS == FIR_THREADS && FIR_WIDTH == N1 * COLUMNS, "what a block filters");

struct ColumnShared {
    alignas(16) float2 z[PART_SPECTRA][FIR_WIDTH];
    alignas(16) Starts starts;
    alignas(16) unsigned long long sums[1][COLUMN_THREADS / 32];
};
static_assert(sizeof(ColumnShared) == {{ shape.column_shared_bytes }}, "what the definition asks for at launch");

extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, {{ config.COLUMN_BLOCKS }}) channelise_columns(
    Between* __restrict__ between,
{% if problem.sample_bits != 64 %}
    unsigned long long* __restrict__ total_power,
{% endif %}
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long first_spectrum, long long n_spectra, long long row_bytes)
{
    extern __shared__ uint4 dynamic_shared[];
    ColumnShared& shared = *reinterpret_cast<ColumnShared*>(dynamic_shared);
    constexpr int GROUPS = N2 / COLUMNS;
    const int pol = blockIdx.y, first_column = blockIdx.x % GROUPS * COLUMNS;
    const long long index = blockIdx.x / GROUPS, n_parts = gridDim.x / GROUPS;
    const Part part = part_at(index, 0, PART_SPECTRA, first_spectrum, n_spectra);
    const Stream stream = {samples, weights, offsets, row_bytes, first_column};
    if (threadIdx.x < ceil_div(PART_SPECTRA, 32) * 32) {
        const bool has = threadIdx.x < PART_SPECTRA;
        stream.put_starts(shared.starts, pol, threadIdx.x, has, stream.own_start(part, pol, threadIdx.x, has));
    }
    __syncthreads();  // the starts are complete

    unsigned long long power[1] = {0};
    stream.filter(
        power, pol, &shared.starts,
        [&](int) { return [&](int s, int c, float2 sum) { shared.z[s][c] = sum; }; });
{% if problem.sample_bits != 64 %}
    add_sums<COLUMN_THREADS>(total_power + pol, shared.sums, power);  // a barrier: z is complete
{% else %}
    __syncthreads();  // z is complete
{% endif %}

    Between* to = between + (pol * n_parts + index) * PART_SPECTRA * static_cast<long long>(N_POINTS);
#pragma unroll 1
    for (int unit = thread_again(); unit < PART_SPECTRA * COLUMNS; unit += COLUMN_THREADS) {
        const int c = unit % COLUMNS, s = unit / COLUMNS;
        float2 y[N1];
#pragma unroll
        for (int j = 0; j < N1; ++j)
            y[reversed<N1>(j)] = shared.z[s][j * COLUMNS + c];
        transform<N1>(y);
#pragma unroll
        for (int k = 0; k < N1; ++k)
            to[place_between(s, k, first_column + c)] = as_between(y[k]);
    }
}
