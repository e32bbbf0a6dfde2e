// The only launch, or the second one: one block <-> SPECTRA spectra of a part, the rows whose bins are pairs, all
// polarisations, POLS_AT_ONCE at a time; the only launch: of PARTS parts, one after another, in each of GROUPS groups
//   grid = (parts, and blocks of SPECTRA of each, groups of pairs)
//   RADIX_2 threads <-> a row's transform;  a thread <-> units of work, each a pair of bins and POST_SPECTRA spectra
constexpr int N_ROWS = {{ shape.n_rows }};
constexpr int PARTS = {{ shape.parts }};  // of a block, one after another
constexpr int TURNS = N_POLS / POLS_AT_ONCE;
{% if config.ALGORITHM == "one" %}
constexpr int STEPS = N_PIECES * POLS_AT_ONCE;  // of a turn: pieces that a block filters
{% endif %}
constexpr int BLOCKS_OF_PART = PART_SPECTRA / SPECTRA;
constexpr int N_ROW_TWIDDLES = RADIX_1 / 2 + RADIX_2 / 2 * RADIX_1;  // of both passes
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");
static_assert(N_POLS * SPECTRA <= THREADS, "a thread makes one turn at most");

{% if shape.groups > 1 %}
constexpr int MAY_FILTER = 1 + GROUPS;  // the barrier at which group 0 waits for its turn; group 1's is the next one
static_assert(GROUPS == 2, "each gives way to the other");
{% endif %}

struct Shared {
    alignas(16) float2 z[N_ROWS][SLICE_VALUES];
    alignas(16) float2 turns[PARTS > 1 ? 2 : 1][N_POLS][SPECTRA];  // of a part, and of the next one
{% if config.ALGORITHM == "one" %}
    alignas(16) Starts starts[PARTS > 1 ? 2 : 1][N_POLS];
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
{% if config.STAGING != "none" %}
    Rows rows[STAGES];
{% endif %}
{% if config.STAGING == "whole" %}
    alignas(16) unsigned long long barrier;
{% endif %}
{% endif %}
{% if config.TWIDDLES == "shared" %}
    alignas(16) float2 twiddles{{ "[N_TWIDDLES]" if config.ALGORITHM == "one" else "[HALVES][N_ROW_TWIDDLES]" }};
{% endif %}
{% if shape.keeps_in_shared %}
    alignas(16) unsigned kept[UNITS_PER_THREAD * 2 * WORDS][THREADS];
{% endif %}
};
static_assert(GROUPS * sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// What turns each spectrum of a part: a thread <-> a spectrum of a polarisation.
__device__ __forceinline__ void make_turn(
    float2 (&turns)[N_POLS][SPECTRA], const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
{
    const int s = own_thread() / N_POLS, pol = own_thread() % N_POLS;
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

extern "C" __global__ void __launch_bounds__(GROUPS * THREADS, {{ config.MIN_BLOCKS }}) channelise(
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
    const int group_of_warps = GROUPS == 1 ? 0 : __shfl_sync(0xffffffffu, threadIdx.x / THREADS, 0);  // of a warp's threads
    Shared& shared = reinterpret_cast<Shared*>(dynamic_shared)[group_of_warps];
    const int group = blockIdx.y;
    const long long index = (static_cast<long long>(blockIdx.x) / BLOCKS_OF_PART * GROUPS + group_of_warps) * PARTS;
    const int skipped = blockIdx.x % BLOCKS_OF_PART * SPECTRA;
{% if config.ALGORITHM == "one" %}
    const Stream stream = {samples, weights, offsets, row_bytes, 0};
{% endif %}
    const auto prepare = [&](int nth) {  // what the threads need to know of a part
        const Part part = part_at(index + nth, skipped, SPECTRA, first_spectrum, n_spectra);
        make_turn(shared.turns[nth % 2 % PARTS], part, delays, phases);
{% if config.ALGORITHM == "one" %}
        stream.find_starts(shared.starts[nth % 2 % PARTS], part);
{% endif %}
    };
{% if config.ALGORITHM == "one" and config.STAGING == "rows" %}
    const Copies copies;
    int place = 0;  // of the piece that is filtered
    const auto copy = [&](int nth, int step, int to) {  // what a part has in its step number `step` of all turns
        const int pol = step / STEPS * POLS_AT_ONCE + step % POLS_AT_ONCE;
        if (nth < PARTS)
            copies.copy(shared.rows[to], stream, pol, shared.starts[nth % 2 % PARTS][pol], step % STEPS / POLS_AT_ONCE);
        copies.close();
    };
{% elif config.ALGORITHM == "one" and config.STAGING == "whole" %}
    Copies copies = {&shared.barrier};
    copies.begin();
    const auto copy_next = [&](int nth, int turn) {  // the samples of the turn after this one
        const int next = turn + 1 == TURNS ? 0 : turn + 1, part = nth + (turn + 1 == TURNS);
        if (own_thread() == 0 && part < PARTS)
            copies.copy(shared.rows[0], stream, next, shared.starts[part % 2 % PARTS][next].of_runs[0]);
    };
{% endif %}
{% if config.ALGORITHM == "one" and config.TWIDDLES == "shared" %}
    for (int i = own_thread(); i < N_TWIDDLES; i += THREADS)
        shared.twiddles[i] = twiddles[i];
{% elif config.TWIDDLES == "shared" %}
    for (int i = own_thread(); i < HALVES * N_ROW_TWIDDLES; i += THREADS) {
        const int half = i / N_ROW_TWIDDLES, at = i % N_ROW_TWIDDLES, k1 = row_of_half(group, half);
        const int from = at < RADIX_1 / 2 ? k1 * (RADIX_1 / 2) + at
                                          : N_FIRST_TWIDDLES + k1 * (RADIX_2 / 2 * RADIX_1) + at - RADIX_1 / 2;
        shared.twiddles[half][at] = twiddles[from];
    }
    __syncthreads();
{% endif %}
    prepare(0);
{% if shape.groups > 1 %}
    if (group_of_warps == 1)
        arrive_named(MAY_FILTER, GROUPS * THREADS);  // group 0 begins
{% endif %}
{% if config.ALGORITHM == "one" %}
    sync_group();  // the starts are complete
{% if config.STAGING == "rows" %}
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; ++step)
        copy(0, step, step);
{% elif config.STAGING == "whole" %}
    copy_next(-1, TURNS - 1);
{% endif %}
{% endif %}

#pragma unroll 1
    for (int nth = 0; nth < PARTS; ++nth) {
        const Part part = part_at(index + nth, skipped, SPECTRA, first_spectrum, n_spectra);
        if (GROUPS == 1 && PARTS > 1 && part.from >= part.to)
            break;  // groups wait for each other, so they have as many parts
        const Output output = {voltages, n_times, part};
{% if not shape.keeps_in_shared %}
        unsigned kept[UNITS_PER_THREAD][2][WORDS];  // of the first of two polarisations in turn
{% endif %}
#pragma unroll 1
        for (int turn = 0; turn < TURNS; ++turn) {
{% if config.ALGORITHM == "one" %}
            unsigned long long power[POLS_AT_ONCE] = {};
            Weights w;
            if (AHEAD)
                w.load<LAST_TAPS>(stream.weights_of_piece(0), 0);
{% if shape.groups > 1 %}
            sync_named(MAY_FILTER + group_of_warps, GROUPS * THREADS);  // it is this group's turn
{% endif %}
#pragma unroll 1
            for (int step = 0; step < STEPS; ++step) {
                const int piece = step / POLS_AT_ONCE, p = step % POLS_AT_ONCE, pol = turn * POLS_AT_ONCE + p;
                if (TAP_CHUNKS == 1 && !AHEAD && p == 0)
                    w.load<LAST_TAPS>(stream.weights_of_piece(piece), 0);
                const bool has_next = AHEAD && p == POLS_AT_ONCE - 1 && step + 1 < STEPS;
                const float* next = has_next ? stream.weights_of_piece(piece + 1) : nullptr;
{% if config.STAGING == "rows" %}
                copies.wait();
                sync_group();  // the piece is complete, the one before it done with, and z is free
                const int ahead = turn * STEPS + step + STAGES - 1;
                copy(nth + (ahead >= TURNS * STEPS), ahead % (TURNS * STEPS), (place + STAGES - 1) % STAGES);
{% else %}
                if (!PAIRED && step == 0 && (turn > 0 || nth > 0))
                    sync_group();  // z is free
{% endif %}
{% if config.STAGING == "whole" %}
                if (step == 0)
                    copies.wait();
{% else %}
                if (PARTS > 1 && turn == 0 && step == 0 && nth + 1 < PARTS)
                    prepare(nth + 1);
{% endif %}
                const unsigned long long squares = stream.filter_piece<AHEAD>(
                    pol, piece, shared.starts[nth % 2 % PARTS][pol],
{% if config.STAGING == "rows" %}
                    shared.rows[place],
{% elif config.STAGING == "whole" %}
                    shared.rows[0],
{% endif %}
                    w, next, [&](int s, int n, float2 sum) { shared.z[row_of(0, p, s)][n] = sum; });
#pragma unroll
                for (int i = 0; i < POLS_AT_ONCE; ++i)
                    power[i] += i == p ? squares : 0;
{% if config.STAGING == "rows" %}
                place = place + 1 < STAGES ? place + 1 : 0;
{% endif %}
            }
{% if shape.groups > 1 %}
            if (group_of_warps == 0 || nth + 1 < PARTS || turn + 1 < TURNS)
                arrive_named(MAY_FILTER + 1 - group_of_warps, GROUPS * THREADS);
{% endif %}
{% if problem.sample_bits != 64 %}
            add_sums<THREADS>(  // a barrier: z is complete
                total_power + turn * POLS_AT_ONCE, shared.sums + turn * POLS_AT_ONCE, power);
{% else %}
            sync_group();  // z is complete
{% endif %}
{% if config.STAGING == "whole" %}
            if (PARTS > 1 && turn == 0 && nth + 1 < PARTS)
                prepare(nth + 1);
            if (TURNS > 1)
                copy_next(nth, turn);
{% endif %}
{% else %}
            if (turn > 0)
                sync_group();  // z is free
{% endif %}
#pragma unroll 1
            for (int unit = own_thread(); unit < N_ROWS * RADIX_2; unit += THREADS) {
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
                    slice, lane, k1 == 0, [&](int, int n) { return from_between(__ldcs(from + place_between(0, 0, n))); },
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
                const int number = (own_thread() + i * THREADS) % N_PAIRS, pol = turn * POLS_AT_ONCE + p;
                pairs[i][p] = pair_of(group, number, splits, polar + pol * N_ALL_PAIRS);
            };
            if constexpr (EARLY)
#pragma unroll
                for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                    load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
            unsigned n_saturated[POLS_AT_ONCE] = {};
            sync_group();  // the bins of all rows, and turns, are complete
{% if config.ALGORITHM == "one" and config.STAGING == "whole" %}
            if (TURNS == 1)
                copy_next(nth, turn);  // whose start was found behind the barrier before
{% endif %}

#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD; ++i) {
                const int unit = own_thread() + i * THREADS;
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
                        &shared.z[row_of(second.half, p, s)][second.at], &shared.turns[nth % 2 % PARTS][pol][s], n_saturated[p]);
                }
                if constexpr (TURNS == 1) {
                    output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0], cells_of(first), 1);
                    output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1], cells_of(second), COMPLEX ? 1 : -1);
                } else {
{% if shape.keeps_in_shared %}
                    const auto of_first = [&](int bin, int w) -> unsigned& {
                        return shared.kept[(i * 2 + bin) * WORDS + w][own_thread()];
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
}
