constexpr int STEP_WORDS = PARTS * PART_WORDS;

// Parts of a step's samples, from PART on. `next`: where the words of the part after this one are; behind the last
// part, those of the next step are loaded if there are `more`.
template <int PART>
__device__ __forceinline__ void decode_step(
    Samples& samples, Words& words, const unsigned* next, bool more, const Decoder& decoder)
{
    if constexpr (PART < PARTS) {
        decoder.decode(*reinterpret_cast<unsigned(*)[PART_STEPS][4]>(samples + PART * PART_STEPS), words);
        if (PART + 1 < PARTS || more)
            load_part(words, next);
        decode_step<PART + 1>(samples, words, next + PART_WORDS, more, decoder);
    }
}

// Wait for the products. To the compiler they are over where they start: what uses the sums must not move to before
// here.
__device__ __forceinline__ void wait_for_sums(Sums& sums)
{
    wait_for_products<0>();
#ifndef AUTOTUNE_HOST
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i)
        asm volatile("" : "+f"(sums[i]));
#endif
}

// The outputs of the tile at PLACE, to the lane's first one of its first row; zeros are left for the next tile.
template <int PLACE>
__device__ __forceinline__ void put_outputs(float* to, Sums& sums)
{
#pragma unroll
    for (int i = 0; i < OCTETS * 2; ++i) {
        Sum* const parts = sums + PLACE * OCTETS * 4 + i * 2;
        to[i / 2 * 4 + i % 2 * (8 * WINDOW_PITCH)] = parts[0] + parts[1] * 0x1p-11f;
        parts[0] = parts[1] = 0.0f;
    }
}

// What products take: unpacking leaves its last addition to here. ptxas lets products go on while the next samples are
// made only if their registers are written by an instruction that it cannot leave out, behind any branch.
__device__ __forceinline__ void take_samples(Samples& taken, const Samples& samples)
{
#pragma unroll
    for (int i = 0; i < K_STEPS * 4; ++i) {
#ifdef AUTOTUNE_HOST
        taken[i / 4][i % 4] = unbiased(samples[i / 4][i % 4]);
#else
        asm volatile("add.f16x2 %0, %1, %2;"
                     : "=r"(taken[i / 4][i % 4])
                     : "r"(samples[i / 4][i % 4]), "r"(BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001));
#endif
    }
}

// Step v of a task, v % LIVE = PLACE, and the samples of the step after it, whose words are in `words`; `next`: where
// the words behind those are. The outputs that are done go to the window at `to`.
template <int PLACE>
__device__ __forceinline__ void take_step(
    Sums& sums, Samples& samples, Words& words, const unsigned* next, bool more, float* to, unsigned ring,
    const Decoder& decoder)
{
    Samples taken;
    take_samples(taken, samples);
    begin_products();
#pragma unroll
    for (int k = 0; k < K_STEPS; ++k)
        multiply<COLUMNS>(sums, taken[k], blocks_of(ring, k, PLACE));
    close_products();
    decode_step<0>(samples, words, next, more, decoder);  // while the products go on
    wait_for_sums(sums);
    put_outputs<(PLACE + 1) % LIVE>(to, sums);
}

// Before which step words cannot be loaded from the stage any more, if the last ones loaded were of step `step` + 1: a
// step before the one that they are for is begun. Or there are none.
__device__ __forceinline__ int stage_end_after(int step)
{
    return step + STAGE < RUN / STEP - 1 ? step + STAGE : RUN / STEP - 1;
}
