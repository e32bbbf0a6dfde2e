// The only launch, or the second one: one block <-> SPECTRA spectra of a part, the rows whose bins are pairs, all
// polarisations, POLS_AT_ONCE at a time
//   grid = (parts, and blocks of SPECTRA of each, groups of pairs)
//   RADIX_2 threads <-> a row's transform;  a thread <-> units of work, each a pair of bins and POST_SPECTRA spectra
constexpr int N_ROWS = {{ shape.n_rows }};
constexpr int N_RUNS = {{ shape.n_runs }};  // of FIR_SPECTRA spectra that a block filters
constexpr int TURNS = N_POLS / POLS_AT_ONCE;
constexpr int BLOCKS_OF_PART = PART_SPECTRA / SPECTRA;
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");
static_assert(N_POLS * SPECTRA <= THREADS, "a thread makes one turn at most");

struct Shared {
    alignas(16) float2 z[N_ROWS][SLICE_VALUES];
    alignas(16) float2 turns[N_POLS][SPECTRA];
    alignas(16) long long starts[N_POLS][N_RUNS];
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
};
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// A bin of a pair in the row of its spectrum.
struct Place {
    int half, at;
};

__device__ __forceinline__ Place first_place(int group, int i)
{
    const bool in_upper_row = !COMPLEX && N1 > 1 && group == 0 && i >= N2 / 2;
    return {in_upper_row, in_upper_row ? i - N2 / 2 : i};
}

__device__ __forceinline__ Place second_place(int group, int i)
{
    if constexpr (COMPLEX)
        return {N1 > 1, N1 > 1 ? i : i + N2 / 2};
    if (N1 == 1)
        return {0, N2 - i};
    if (group != 0)
        return {1, N2 - 1 - i};
    return {i >= N2 / 2, i >= N2 / 2 ? N2 + N2 / 2 - 1 - i : N2 - i};
}

extern "C" __global__ void __launch_bounds__(THREADS, {{ config.MIN_BLOCKS }}) channelise(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float* __restrict__ delays,
    const float* __restrict__ phases, const float2* __restrict__ twiddles, const float2* __restrict__ splits,
    const float4* __restrict__ polar, long long first_spectrum, long long n_spectra, long long n_times,
{% if config.ALGORITHM == "two" %}
    const Between* __restrict__ between)
{% else %}
{% if problem.sample_bits != 64 %}
    unsigned long long* __restrict__ total_power,
{% endif %}
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long row_bytes)
{% endif %}
{
    extern __shared__ uint4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int group = blockIdx.y;
    const long long index = blockIdx.x / BLOCKS_OF_PART;
    const int skipped = blockIdx.x % BLOCKS_OF_PART * SPECTRA;
    const Part part = part_at(index, skipped, SPECTRA, first_spectrum, n_spectra);
    const Output output = {voltages, n_times, part};
    const int own_s = threadIdx.x / N_POLS, own_pol = threadIdx.x % N_POLS;  // whose turn this thread makes
    float delay = 0.0f, phase = 0.0f;
    if (part.has(own_s)) {
        const long long at = (part.first() + own_s) * N_POLS + own_pol;
        delay = delays[at], phase = phases[at];  // under way while the block finds where its spectra start
    }
{% if config.ALGORITHM == "one" %}
    const Stream stream = {samples, weights, offsets, row_bytes, part};
    for (int i = threadIdx.x; i < N_POLS * N_RUNS; i += THREADS)
        shared.starts[i % N_POLS][i / N_POLS] = stream.start_of_run(i % N_POLS, i / N_POLS * FIR_SPECTRA);
    __syncthreads();  // the starts are complete
{% endif %}
    if (own_s < SPECTRA)
        shared.turns[own_pol][own_s] = turn_of(delay, phase);

    unsigned kept[UNITS_PER_THREAD][2][WORDS];  // of the first of two polarisations in turn
#pragma unroll 1
    for (int turn = 0; turn < TURNS; ++turn) {
{% if config.ALGORITHM == "one" %}
        unsigned long long power[POLS_AT_ONCE] = {};
#pragma unroll 1
        for (int unit = threadIdx.x; unit < N2 * N_RUNS; unit += THREADS) {
            const int n = unit % N2, run = unit / N2, s = run * FIR_SPECTRA;
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                const int pol = turn * POLS_AT_ONCE + p;
                power[p] += stream.filter_run(pol, s, shared.starts[pol][run], n, [&](int i, float2 sum) {
                    shared.z[row_of(0, p, s + i)][n] = sum;
                });
            }
        }
{% if problem.sample_bits != 64 %}
#pragma unroll
        for (int p = 0; p < POLS_AT_ONCE; ++p) {
            const int pol = turn * POLS_AT_ONCE + p;
            add_sum<THREADS>(total_power + pol, shared.sums[pol], power[p]);  // a barrier: z is complete
        }
{% else %}
        __syncthreads();  // z is complete
{% endif %}
{% endif %}
#pragma unroll 1
        for (int unit = threadIdx.x; unit < N_ROWS * RADIX_2; unit += THREADS) {
            const int row = unit / RADIX_2, lane = unit % RADIX_2;
            float2* slice = shared.z[row];
{% if config.ALGORITHM == "one" %}
            transform_row(slice, lane, 0, twiddles, [&](int n) { return slice[n]; });
{% else %}
            const int s = row % SPECTRA, pol = turn * POLS_AT_ONCE + row / SPECTRA % POLS_AT_ONCE;
            const bool is_upper = row >= SPECTRA * POLS_AT_ONCE;
            const int k1 = !is_upper ? group : COMPLEX || group == 0 ? group + N1 / 2 : N1 - group;
            const long long n_parts = gridDim.x / BLOCKS_OF_PART;
            const long long spectrum = (pol * n_parts + index) * PART_SPECTRA + skipped + s;
            const Between* from = between + spectrum * N_POINTS + k1 * N2;
            transform_row(slice, lane, k1, twiddles, [&](int n) { return from_between(__ldcs(from + n)); });
{% endif %}
        }
        __syncthreads();  // the bins of all rows, and turns, are complete

#pragma unroll
        for (int i = 0; i < UNITS_PER_THREAD; ++i) {
            const int unit = threadIdx.x + i * THREADS;
            if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                break;
            const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
            const int2 bins = bins_of(group, number);
            const Place first = first_place(group, number), second = second_place(group, number);
            unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                const int pol = turn * POLS_AT_ONCE + p;
                Pair pair;
                pair.split = __ldg(splits + group * N_PAIRS + number);
                pair.positions = make_float2(position(bins.x), position(bins.y));
                pair.polar = __ldg(polar + pol * N_ALL_PAIRS + group * N_PAIRS + number);
                unsigned count = 0;
                make_voltages(
                    words[p], pair, &shared.z[row_of(first.half, p, s)][first.at],
                    &shared.z[row_of(second.half, p, s)][second.at], &shared.turns[pol][s], count);
                if (count != 0)
                    atomicAdd(&saturated[part.heap * N_POLS + pol], count);
            }
            if constexpr (TURNS == 1) {
                output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0]);
                output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1]);
            } else if (turn == 0) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    kept[i][0][w] = words[0][0][w], kept[i][1][w] = words[0][1][w];
            } else {
                output.store(bins.x, s, kept[i][0], words[0][0]);
                output.store(bins.y, s, kept[i][1], words[0][1]);
            }
        }
        if (turn + 1 < TURNS)
            __syncthreads();  // z is free
    }
}
