// The last step of a round: rows of bins in shared memory become voltages in global memory. A thread has
// UNITS_PER_THREAD units of work. A unit is a pair of bins in POST_SPECTRA spectra.
// Needs     pairs.cuh (bins_of, Place, first_place, second_place), phasor.cuh (Phasors),
//           quantise.cuh (Pair, pair_of, make_voltages), row.cuh (Rows, row_of), voltages.cuh (Output)
// Provides  FirstVoltages; Finish: store

// With two polarisations in turn, the voltages of the first one, which wait for those of the second. N is 1 for one
// thread's voltages, in registers, or the number of threads for those of a block, in shared memory.
template <int N>
struct FirstVoltages {
    unsigned words[UNITS_PER_THREAD * 2 * WORDS][N];

    __device__ __forceinline__ unsigned& of(int unit, int bin, int w, int thread)
    {
        return words[(unit * 2 + bin) * WORDS + w][N == 1 ? 0 : thread];
    }
};

// The calling thread's units of work in a round.
struct Finish {
    static constexpr bool EARLY = UNITS_PER_THREAD * POLS_AT_ONCE <= 2;  // more would take too many registers
    const float2* splits;
    const float4* polar;
    int group, round, thread;
    Pair pairs[UNITS_PER_THREAD][POLS_AT_ONCE];

    // If EARLY, starts the loads of the pairs' factors, which are under way while the block waits for z.
    __device__ __forceinline__ Finish(
        const float2* __restrict__ splits, const float4* __restrict__ polar, int group, int round, int thread)
        : splits(splits), polar(polar), group(group), round(round), thread(thread)
    {
        if constexpr (EARLY)
#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
    }

    // Computes the voltages of the thread's units and stores them. `z` has the bins of all rows of the round.
    template <int N>
    __device__ __forceinline__ void store(
        Rows& z, const Phasors& phasors, const Output& output, unsigned* __restrict__ saturated,
        FirstVoltages<N>& first_voltages)
    {
        unsigned n_saturated[POLS_AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < UNITS_PER_THREAD; ++i) {
            const int unit = thread + i * THREADS;
            if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                break;
            const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
            const int2 bins = bins_of(group, number);
            const auto first = first_place(group, number), second = second_place(group, number);
            const auto cells_of = [&](const Place& place) { return &z[row_of(place.half, 0, s)][place.at]; };
            unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                if constexpr (!EARLY)
                    load(i, p);
                make_voltages(
                    words[p], pairs[i][p], &z[row_of(first.half, p, s)][first.at],
                    &z[row_of(second.half, p, s)][second.at], &phasors[round * POLS_AT_ONCE + p][s], n_saturated[p]);
            }
            if constexpr (ROUNDS == 1) {
                output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0], cells_of(first), 1);
                output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1], cells_of(second), COMPLEX ? 1 : -1);
            } else {
#pragma unroll
                for (int bin = 0; bin < 2; ++bin) {
                    unsigned before[WORDS];
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        if (round == 0)
                            first_voltages.of(i, bin, w, thread) = words[0][bin][w];
                        else
                            before[w] = first_voltages.of(i, bin, w, thread);
                    }
                    if (round != 0)
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
                atomicAdd(saturated + output.part.heap * N_POLS + static_cast<unsigned>(round * POLS_AT_ONCE + p), n);
        }
    }

private:
    __device__ __forceinline__ void load(int i, int p)
    {
        const int number = (thread + i * THREADS) % N_PAIRS;
        pairs[i][p] = pair_of(group, number, splits, polar + (round * POLS_AT_ONCE + p) * N_ALL_PAIRS);
    }
};
