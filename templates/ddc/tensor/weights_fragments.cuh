// Weights as mma.sync takes them: fragments in registers, or in shared memory where there are too many.
// Needs     S: Shape; W: WeightHalves; weights_mixed.cuh
// Provides  WeightFragments, made by the whole block; `fragment`
template <class S, class W>
struct WeightFragments {
    typedef MixedWeights<S, W> Mixed;

    uint2 own[S::WEIGHTS_ARE_SHARED ? 1 : S::N_FRAGMENTS];
    const uint2* shared;

    // `scratch`: begins with the mixed weights, behind which fragments are made.
    __device__ __forceinline__ WeightFragments(unsigned char* scratch, int skew)
        : shared(reinterpret_cast<const uint2*>(scratch + S::FRAGMENTS_AT) + threadIdx.x % 32)
    {
        uint2* const fragments = reinterpret_cast<uint2*>(scratch + S::FRAGMENTS_AT);
#pragma unroll 1
        for (int i = threadIdx.x; i < S::N_FRAGMENTS * 32; i += S::N_THREADS) {
            const int octet = i / 32 % S::OCTETS_PER_TILE, product = i / 32 / S::OCTETS_PER_TILE % S::MMAS_PER_STEP;
            const int block = i / 32 / S::OCTETS_PER_TILE / S::MMAS_PER_STEP;
            const typename W::Taken taken =
                W::take(Mixed::weights_in(scratch), block, product, octet, i % 32, skew);
            unsigned words[W::OCTETS_PER_UNIT][2];
            W::words_of(words, taken, i % 32);
            fragments[i] = make_uint2(words[0][0], words[0][1]);
        }
        __syncthreads();  // the fragments are complete
        if constexpr (!S::WEIGHTS_ARE_SHARED) {
#pragma unroll
            for (int i = 0; i < S::N_FRAGMENTS; ++i)
                own[i] = shared[i * 32];
            __syncthreads();  // all have theirs: windows may take the place of the fragments
        }
    }

    __device__ __forceinline__ uint2 fragment(int block, int product, int octet) const
    {
        const int i = (block * S::MMAS_PER_STEP + product) * S::OCTETS_PER_TILE + octet;
        return S::WEIGHTS_ARE_SHARED ? shared[i * 32] : own[S::WEIGHTS_ARE_SHARED ? 0 : i];
    }
};
