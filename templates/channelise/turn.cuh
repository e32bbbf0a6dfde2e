// Rows of SPECTRA spectra in shared memory become voltages, POLS_AT_ONCE polarisations in a turn.
//   RADIX_2 threads <-> a row's transform;  a thread <-> units of work, each a pair of bins and POST_SPECTRA spectra
constexpr int N_ROWS = {{ shape.n_rows }};
constexpr int TURNS = N_POLS / POLS_AT_ONCE;
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");
static_assert(N_POLS * SPECTRA <= THREADS, "a thread makes one turn at most");

typedef float2 Rows[N_ROWS][SLICE_VALUES];
typedef float2 Turns[N_POLS][SPECTRA];

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// What turns a spectrum: a thread <-> a spectrum of a polarisation.
struct Turning {
    float delay = 0.0f, phase = 0.0f;

    Turning() = default;

    __device__ __forceinline__ Turning(const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol >= N_POLS || !part.has(s))
            return;
        const long long at = (part.first() + s) * N_POLS + pol;
        delay = __ldg(delays + at), phase = __ldg(phases + at);
    }

    __device__ __forceinline__ void put(Turns& turns) const
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol < N_POLS)
            turns[pol][s] = turn_of(delay, phase);
    }
};

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

// Voltages of the first of two polarisations in turn, which wait for the second's: a thread's, in registers, or those of N
// threads in shared memory.
template <int N>
struct Kept {
    unsigned words[UNITS_PER_THREAD * 2 * WORDS][N];

    __device__ __forceinline__ unsigned& of(int unit, int bin, int w, int thread)
    {
        return words[(unit * 2 + bin) * WORDS + w][N == 1 ? 0 : thread];
    }
};

// What the calling thread knows of the pairs of its units of work in a turn, and makes of them.
struct Finish {
    static constexpr bool EARLY = UNITS_PER_THREAD * POLS_AT_ONCE <= 2;  // else it takes too many registers
    const float2* splits;
    const float4* polar;
    int group, turn, thread;
    Pair pairs[UNITS_PER_THREAD][POLS_AT_ONCE];

    // What is known of pairs is under way while the block waits for z.
    __device__ __forceinline__ Finish(
        const float2* __restrict__ splits, const float4* __restrict__ polar, int group, int turn, int thread)
        : splits(splits), polar(polar), group(group), turn(turn), thread(thread)
    {
        if constexpr (EARLY)
#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
    }

    // Makes and stores voltages. z: the bins of all rows.
    template <int N>
    __device__ __forceinline__ void store(
        Rows& z, const Turns& turns, const Output& output, unsigned* __restrict__ saturated, Kept<N>& kept)
    {
        unsigned n_saturated[POLS_AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < UNITS_PER_THREAD; ++i) {
            const int unit = thread + i * THREADS;
            if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                break;
            const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
            const int2 bins = bins_of(group, number);
            const Place first = first_place(group, number), second = second_place(group, number);
            const auto cells_of = [&](Place place) { return &z[row_of(place.half, 0, s)][place.at]; };
            unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                if constexpr (!EARLY)
                    load(i, p);
                make_voltages(
                    words[p], pairs[i][p], &z[row_of(first.half, p, s)][first.at], &z[row_of(second.half, p, s)][second.at],
                    &turns[turn * POLS_AT_ONCE + p][s], n_saturated[p]);
            }
            if constexpr (TURNS == 1) {
                output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0], cells_of(first), 1);
                output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1], cells_of(second), COMPLEX ? 1 : -1);
            } else {
#pragma unroll
                for (int bin = 0; bin < 2; ++bin) {
                    unsigned before[WORDS];
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        if (turn == 0)
                            kept.of(i, bin, w, thread) = words[0][bin][w];
                        else
                            before[w] = kept.of(i, bin, w, thread);
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
            if (n != 0 && thread % 32 == 0)
                atomicAdd(saturated + output.part.heap * N_POLS + static_cast<unsigned>(turn * POLS_AT_ONCE + p), n);
        }
    }

private:
    __device__ __forceinline__ void load(int i, int p)
    {
        const int number = (thread + i * THREADS) % N_PAIRS;
        pairs[i][p] = pair_of(group, number, splits, polar + (turn * POLS_AT_ONCE + p) * N_ALL_PAIRS);
    }
};
