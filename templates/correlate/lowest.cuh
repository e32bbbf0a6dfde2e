// Counts of the lowest integers, -128 or -8, which have no negative.
// Needs     octet.cuh (Octet)
// Provides  Lowest: add, report
struct Lowest {
    unsigned count = 0;

    __device__ __forceinline__ void add(const Octet& octet)
    {
        if constexpr (COUNTS_LOWEST) {
            constexpr unsigned LOWEST = BITS == 4 ? 0x88888888 : 0x80808080;  // of each part, the sign bit alone
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned others = octet.words[i / 2][i % 2] ^ LOWEST;
                count += __popc(~((others & ~LOWEST) + ~LOWEST | others) & LOWEST);
            }
        }
    }

    // Adds the counts of the warp to `total`. All lanes take part.
    __device__ __forceinline__ void report(unsigned long long* total)
    {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            count += __shfl_xor_sync(0xffffffffu, count, apart);
        if (threadIdx.x % 32 == 0 && count > 0)
            atomicAdd(total, static_cast<unsigned long long>(count));
    }
};
