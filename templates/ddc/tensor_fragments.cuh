// Fragments of the weights as mma.sync takes them: in registers, or in shared memory where there are too many.
struct Weights {
    uint2 own[SHARED_WEIGHTS ? 1 : FRAGMENTS];
    const uint2* shared;

    // By the whole block, from mixed weights.
    __device__ __forceinline__ Weights(unsigned char* scratch, int skew)
        : shared(reinterpret_cast<const uint2*>(scratch + FRAGMENTS_AT) + threadIdx.x % 32)
    {
        uint2* const fragments = reinterpret_cast<uint2*>(scratch + FRAGMENTS_AT);
#pragma unroll 1
        for (int i = threadIdx.x; i < FRAGMENTS * 32; i += WGS) {
            const int octet = i / 32 % OCTETS, product = i / 32 / OCTETS % K_STEPS, block = i / 32 / OCTETS / K_STEPS;
            const Taken taken = take_weights(mixed_weights(scratch), block, product, octet, i % 32, skew);
            unsigned words[TOGETHER][2];
            words_of(words, taken, i % 32);
            fragments[i] = make_uint2(words[0][0], words[0][1]);
        }
        __syncthreads();  // the fragments are complete
        if constexpr (!SHARED_WEIGHTS) {
#pragma unroll
            for (int i = 0; i < FRAGMENTS; ++i)
                own[i] = shared[i * 32];
            __syncthreads();  // all have theirs: windows may take the place of the fragments
        }
    }

    __device__ __forceinline__ uint2 fragment(int block, int product, int octet) const
    {
        const int i = (block * K_STEPS + product) * OCTETS + octet;
        return SHARED_WEIGHTS ? shared[i * 32] : own[SHARED_WEIGHTS ? 0 : i];
    }
};
