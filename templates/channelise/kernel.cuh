// The only launch, or the second one: one block <-> SPECTRA spectra of a part, the rows whose bins are pairs, all
// polarisations, POLS_AT_ONCE at a time
//   grid = (parts, and blocks of SPECTRA of each, groups of pairs)
//   RADIX_2 threads <-> a row's transform;  a thread <-> units of work, each a pair of bins and POST_SPECTRA spectra
constexpr int N_ROWS = {{ shape.n_rows }};
constexpr int TURNS = N_POLS / POLS_AT_ONCE;
constexpr int BLOCKS_OF_PART = PART_SPECTRA / SPECTRA;
constexpr int N_ROW_TWIDDLES = RADIX_1 / 2 + RADIX_2 / 2 * RADIX_1;  // of both passes
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");
static_assert(N_POLS * SPECTRA <= THREADS, "a thread makes one turn at most");

struct Shared {
    alignas(16) float2 z[N_ROWS][SLICE_VALUES];
    alignas(16) float2 turns[N_POLS][SPECTRA];
{% if config.ALGORITHM == "one" %}
    alignas(16) Starts starts[N_POLS];
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
{% if config.SAMPLES == "ahead" %}
    alignas(16) long long following[N_POLS];  // where the part starts of the block that is likely to follow this one
{% endif %}
{% endif %}
{% if config.TWIDDLES == "shared" %}
    alignas(16) float2 twiddles{{ "[N_TWIDDLES]" if config.ALGORITHM == "one" else "[HALVES][N_ROW_TWIDDLES]" }};
{% endif %}
{% if shape.keeps_in_shared %}
    alignas(16) unsigned kept[UNITS_PER_THREAD * 2 * WORDS][THREADS];
{% endif %}
};
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// What turns each spectrum of a part: a thread <-> a spectrum of a polarisation.
__device__ __forceinline__ void make_turn(
    float2 (&turns)[N_POLS][SPECTRA], const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
{
    const int s = threadIdx.x / N_POLS, pol = threadIdx.x % N_POLS;
    if (s >= SPECTRA)
        return;
    const long long at = (part.first() + s) * N_POLS + pol;
    turns[pol][s] = part.has(s) ? turn_of(delays[at], phases[at]) : make_float2(0.0f, 0.0f);
}

// k1 of the rows of which a block has one half of each pair.
__device__ __forceinline__ int row_of_half(int group, int half)
{
    return half == 0 ? group : COMPLEX || group == 0 ? group + N1 / 2 : N1 - group;
}

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

__device__ __forceinline__ Pair pair_of(
    int group, int number, const float2* __restrict__ splits, const float4* __restrict__ polar)
{
    const int2 bins = bins_of(group, number);
    Pair pair;
    pair.split = __ldg(splits + group * N_PAIRS + number);
    pair.positions = make_float2(position(bins.x), position(bins.y));
    pair.polar = __ldg(polar + group * N_PAIRS + number);
    pair.limits = make_float2(limit_of(pair.polar.x), limit_of(pair.polar.z));
    return pair;
}

{% if config.get("SAMPLES") == "ahead" %}
// Returns about how many blocks run at the same time: as many as there must be registers for.
__device__ __forceinline__ int blocks_at_once()
{
#ifdef AUTOTUNE_HOST
    return 1;
#else
    int multiprocessors;
    asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
    return multiprocessors * {{ config.MIN_BLOCKS }};
#endif
}

{% endif %}
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
    const long long index = static_cast<long long>(blockIdx.x) / BLOCKS_OF_PART;
    const int skipped = blockIdx.x % BLOCKS_OF_PART * SPECTRA;
    const Part part = part_at(index, skipped, SPECTRA, first_spectrum, n_spectra);
    const Output output = {voltages, n_times, part};
    make_turn(shared.turns, part, delays, phases);
{% if config.ALGORITHM == "one" and config.TWIDDLES == "shared" %}
    for (int i = threadIdx.x; i < N_TWIDDLES; i += THREADS)
        shared.twiddles[i] = twiddles[i];
{% elif config.TWIDDLES == "shared" %}
    for (int i = threadIdx.x; i < HALVES * N_ROW_TWIDDLES; i += THREADS) {
        const int half = i / N_ROW_TWIDDLES, at = i % N_ROW_TWIDDLES, k1 = row_of_half(group, half);
        const int from = at < RADIX_1 / 2 ? k1 * (RADIX_1 / 2) + at
                                          : N_FIRST_TWIDDLES + k1 * (RADIX_2 / 2 * RADIX_1) + at - RADIX_1 / 2;
        shared.twiddles[half][at] = twiddles[from];
    }
    __syncthreads();  // the twiddles are complete
{% endif %}
{% if config.ALGORITHM == "one" %}
    const Stream stream = {samples, weights, offsets, row_bytes, 0};
    stream.find_starts(shared.starts, part);
{% if config.SAMPLES == "ahead" %}
    if (const int pol = threadIdx.x - (THREADS - N_POLS); pol >= 0) {
        const long long following = index + blocks_at_once();
        const Part next = part_at(following, 0, SPECTRA, first_spectrum, n_spectra);
        shared.following[pol] = following < gridDim.x && next.has(0) ? stream.start(next, pol, 0) : -1;
    }
{% endif %}
    __syncthreads();  // the starts are complete
{% endif %}

{% if not shape.keeps_in_shared %}
    unsigned kept[UNITS_PER_THREAD][2][WORDS];  // of the first of two polarisations in turn
{% endif %}
#pragma unroll 1
    for (int turn = 0; turn < TURNS; ++turn) {
        if (!PAIRED && turn > 0)
            __syncthreads();  // z is free: paired, a thread overwrites what it has read itself
{% if config.ALGORITHM == "one" %}
        unsigned long long power[POLS_AT_ONCE] = {};
        Weights w;
#pragma unroll 1
        for (int piece = 0; piece < N_PIECES; ++piece) {
            if (TAP_CHUNKS == 1)
                w.load<LAST_TAPS>(stream.weights_of_piece(piece), 0);
#pragma unroll 1
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                const int pol = turn * POLS_AT_ONCE + p;
                const unsigned long long squares = stream.filter_piece(
                    pol, piece, shared.starts[pol], w,
                    [&](int s, int n, float2 sum) { shared.z[row_of(0, p, s)][n] = sum; });
#pragma unroll
                for (int i = 0; i < POLS_AT_ONCE; ++i)
                    power[i] += i == p ? squares : 0;
            }
        }
{% if problem.sample_bits != 64 %}
        add_sums<THREADS>(  // a barrier: z is complete
            total_power + turn * POLS_AT_ONCE, shared.sums + turn * POLS_AT_ONCE, power);
{% else %}
        __syncthreads();  // z is complete
{% endif %}
{% if config.SAMPLES == "ahead" %}
        // What is filtered next: the second polarisation, or the part of the block that is likely to follow.
        if (turn + 1 < TURNS)
            stream.fetch(turn + 1, shared.starts[turn + 1].of[0]);
        else
            for (int p = 0; p < POLS_AT_ONCE; ++p)
                stream.fetch(p, shared.following[p]);
{% endif %}
{% endif %}
#pragma unroll 1
        for (int unit = threadIdx.x; unit < N_ROWS * RADIX_2; unit += THREADS) {
            const int row = unit / RADIX_2, lane = unit % RADIX_2;
            float2* slice = shared.z[row];
{% if config.ALGORITHM == "one" %}
            transform_row(
                slice, lane, true, [&](int at, int n) { return slice[at + n]; }, [&](int) { return make_float2(1.0f, 0.0f); },
{% if config.TWIDDLES == "shared" %}
                [&](int i) { return shared.twiddles[i]; });
{% else %}
                [&](int i) { return __ldg(twiddles + i); });
{% endif %}
{% else %}
            const int s = row % SPECTRA, pol = turn * POLS_AT_ONCE + row / SPECTRA % POLS_AT_ONCE;
            const int half = row / (SPECTRA * POLS_AT_ONCE), k1 = row_of_half(group, half);
            const long long n_parts = gridDim.x / BLOCKS_OF_PART;
            const Between* from =
                between + (pol * n_parts + index) * PART_SPECTRA * N_POINTS + place_between(skipped + s, k1, lane);
            transform_row(  // the place of lane + n is the sum of both places, because all are powers of two
                slice, lane, k1 == 0, [&](int, int n) { return from_between(__ldcg(from + place_between(0, 0, n))); },
{% if config.TWIDDLES == "shared" %}
                [&](int i) { return shared.twiddles[half][i]; },
                [&](int i) { return shared.twiddles[half][RADIX_1 / 2 + i]; });
{% else %}
                [&](int i) { return __ldg(twiddles + k1 * (RADIX_1 / 2) + i); },
                [&](int i) { return __ldg(twiddles + N_FIRST_TWIDDLES + k1 * (RADIX_2 / 2 * RADIX_1) + i); });
{% endif %}
{% endif %}
        }
        // What is known of pairs is under way while the block waits, unless it takes too many registers.
        constexpr bool EARLY = UNITS_PER_THREAD * POLS_AT_ONCE <= 2;
        Pair pairs[UNITS_PER_THREAD][POLS_AT_ONCE];
        const auto load = [&](int i, int p) {
            const int number = (threadIdx.x + i * THREADS) % N_PAIRS, pol = turn * POLS_AT_ONCE + p;
            pairs[i][p] = pair_of(group, number, splits, polar + pol * N_ALL_PAIRS);
        };
        if constexpr (EARLY)
#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
        unsigned n_saturated[POLS_AT_ONCE] = {};
        __syncthreads();  // the bins of all rows, and turns, are complete

#pragma unroll
        for (int i = 0; i < UNITS_PER_THREAD; ++i) {
            const int unit = threadIdx.x + i * THREADS;
            if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                break;
            const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
            const int2 bins = bins_of(group, number);
            const Place first = first_place(group, number), second = second_place(group, number);
            const auto cells_of = [&](Place place) { return &shared.z[row_of(place.half, 0, s)][place.at]; };
            unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                if constexpr (!EARLY)
                    load(i, p);
                const int pol = turn * POLS_AT_ONCE + p;
                make_voltages(
                    words[p], pairs[i][p], &shared.z[row_of(first.half, p, s)][first.at],
                    &shared.z[row_of(second.half, p, s)][second.at], &shared.turns[pol][s], n_saturated[p]);
            }
            if constexpr (TURNS == 1) {
                output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0], cells_of(first), 1);
                output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1], cells_of(second), COMPLEX ? 1 : -1);
            } else {
{% if shape.keeps_in_shared %}
                const auto of_first = [&](int bin, int w) -> unsigned& {
                    return shared.kept[(i * 2 + bin) * WORDS + w][threadIdx.x];
                };
{% else %}
                const auto of_first = [&](int bin, int w) -> unsigned& { return kept[i][bin][w]; };
{% endif %}
#pragma unroll
                for (int bin = 0; bin < 2; ++bin) {
                    unsigned before[WORDS];
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        if (turn == 0)
                            of_first(bin, w) = words[0][bin][w];
                        else
                            before[w] = of_first(bin, w);
                    }
                    if (turn != 0)
                        output.store(
                            bin == 0 ? bins.x : bins.y, s, before, words[0][bin], cells_of(bin == 0 ? first : second),
                            bin == 0 || COMPLEX ? 1 : -1);
                }
            }
        }
#pragma unroll
        for (int p = 0; p < POLS_AT_ONCE; ++p) {
            const unsigned n = __reduce_add_sync(0xffffffffu, n_saturated[p]);
            if (n != 0 && threadIdx.x % 32 == 0)
                atomicAdd(&saturated[part.heap * N_POLS + turn * POLS_AT_ONCE + p], n);
        }
    }
}
