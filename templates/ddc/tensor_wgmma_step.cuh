// What steps by wgmma are made of, whether their chains of products are cut or not.

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
template <int N>
__device__ __forceinline__ void take_samples(unsigned (&taken)[N][4], const unsigned (&samples)[N][4])
{
#pragma unroll
    for (int i = 0; i < N * 4; ++i) {
#ifdef AUTOTUNE_HOST
        taken[i / 4][i % 4] = unbiased(samples[i / 4][i % 4]);
#else
        asm volatile("add.f16x2 %0, %1, %2;"
                     : "=r"(taken[i / 4][i % 4])
                     : "r"(samples[i / 4][i % 4]), "r"(BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001));
#endif
    }
}
