// The second of two launches after the tables: a block transforms rows (SPECTRA spectra of a part, the rows whose bins
// are pairs, all polarisations) and makes voltages of them.
//   grid = (SPECTRA spectra of a part, fastest, groups of pairs, and parts)
// The last part comes first, since the values that the previous launch has stored last are still in the L2 cache.
// Needs     part.cuh (Part, part_at), kernel_columns.cuh (Between, from_between, place_between),
//           row.cuh (Rows, transform_row), phasor.cuh (Phasors, Phasor), finish.cuh (FirstVoltages, Finish),
//           voltages.cuh (Output), lib/thread.cuh (thread_again)
// Provides  channelise
constexpr int BLOCKS_OF_PART = PART_SPECTRA / SPECTRA;
constexpr int N_GROUPS = {{ shape.n_pair_groups }};  // groups of pairs; a block has the rows of one group

// Returns k1 of the row that has half `half` of each pair of the group.
__device__ __forceinline__ int row_of_half(int group, int half)
{
    return half == 0 ? group : COMPLEX || group == 0 ? group + N1 / 2 : N1 - group;
}

struct Shared {
    alignas(16) Rows z;
    alignas(16) Phasors phasors;
{% if shape.keeps_in_shared %}
    alignas(16) FirstVoltages<THREADS> first_voltages;
{% endif %}
};
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

extern "C" __global__ void __launch_bounds__(THREADS, {{ config.MIN_BLOCKS }}) channelise(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float* __restrict__ delays,
    const float* __restrict__ phases, const float2* __restrict__ twiddles, const float2* __restrict__ splits,
    const float4* __restrict__ polar, long long first_spectrum, long long n_spectra, long long n_times,
    const Between* __restrict__ between)
{
    extern __shared__ uint4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const unsigned from_end = gridDim.x - 1 - blockIdx.x;
    const int skipped = from_end % BLOCKS_OF_PART * SPECTRA, group = from_end / BLOCKS_OF_PART % N_GROUPS;
    const long long index = from_end / (BLOCKS_OF_PART * N_GROUPS);
    const Part part = part_at(index, skipped, SPECTRA, first_spectrum, n_spectra);
    const Output output = {voltages, n_times, part};
    Phasor(part, delays, phases).put(shared.phasors);

{% if shape.keeps_in_shared %}
    FirstVoltages<THREADS>& first_voltages = shared.first_voltages;
{% else %}
    FirstVoltages<1> first_voltages;
{% endif %}
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
        if (round > 0)
            __syncthreads();  // z is free
#pragma unroll 1
        for (int unit = threadIdx.x; unit < N_ROWS * RADIX_2; unit += THREADS) {
            const int row = unit / RADIX_2, lane = unit % RADIX_2;
            const int s = row % SPECTRA, pol = round * POLS_AT_ONCE + row / SPECTRA % POLS_AT_ONCE;
            const int half = row / (SPECTRA * POLS_AT_ONCE), k1 = row_of_half(group, half);
            const long long n_parts = gridDim.x / (BLOCKS_OF_PART * N_GROUPS);
            const Between* from =
                between + (pol * n_parts + index) * PART_SPECTRA * N_POINTS + place_between(skipped + s, k1, lane);
            transform_row(  // the place of lane + n is the sum of both places, because all are powers of two
                shared.z[row], lane, k1 == 0,
                [&](int, int n) { return from_between(__ldcg(from + place_between(0, 0, n))); },
                [&](int i) { return __ldg(twiddles + k1 * (RADIX_1 / 2) + i); },
                [&](int i) { return __ldg(twiddles + N_FIRST_TWIDDLES + k1 * (RADIX_2 / 2 * RADIX_1) + i); });
        }
        Finish finish(splits, polar, group, round, thread_again());
        __syncthreads();  // the bins of all rows, and phasors, are complete
        finish.store(shared.z, shared.phasors, output, saturated, first_voltages);
    }
}
