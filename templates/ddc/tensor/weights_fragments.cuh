// Weights as mma.sync takes them: fragments in registers, or in shared memory if there are too many.
// Needs     Shape; Weights: WeightHalves; weights_mixed.cuh (MixedWeights)
// Provides  WeightFragments, made by the whole block; `fragment`
template <class Shape, class Weights>
struct WeightFragments {
    typedef MixedWeights<Shape, Weights> Mixed;

    uint2 own[Shape::WEIGHTS_ARE_SHARED ? 1 : Shape::N_FRAGMENTS];
    const uint2* shared;

    // `scratch` begins with the mixed weights. The fragments are made behind them.
    __device__ __forceinline__ WeightFragments(unsigned char* scratch, int skew)
        : shared(reinterpret_cast<const uint2*>(scratch + Shape::FRAGMENTS_AT) + threadIdx.x % 32)
    {
        uint2* const fragments = reinterpret_cast<uint2*>(scratch + Shape::FRAGMENTS_AT);
#pragma unroll 1
        for (int i = threadIdx.x; i < Shape::N_FRAGMENTS * 32; i += Shape::N_THREADS) {
            const int octet = i / 32 % Shape::OCTETS_PER_TILE;
            const int product = i / 32 / Shape::OCTETS_PER_TILE % Shape::MMAS_PER_STEP;
            const int block = i / 32 / Shape::OCTETS_PER_TILE / Shape::MMAS_PER_STEP;
            const typename Weights::Taken taken =
                Weights::take(Mixed::weights_in(scratch), block, product, octet, i % 32, skew);
            unsigned words[Weights::OCTETS_PER_UNIT][2];
            Weights::words_of(words, taken, i % 32);
            fragments[i] = make_uint2(words[0][0], words[0][1]);
        }
        __syncthreads();  // the fragments are complete
        if constexpr (!Shape::WEIGHTS_ARE_SHARED) {
#pragma unroll
            for (int i = 0; i < Shape::N_FRAGMENTS; ++i)
                own[i] = shared[i * 32];
            __syncthreads();  // all threads have their fragments in registers, so windows may take their place
        }
    }

    __device__ __forceinline__ uint2 fragment(int block, int product, int octet) const
    {
        const int i = (block * Shape::MMAS_PER_STEP + product) * Shape::OCTETS_PER_TILE + octet;
        return Shape::WEIGHTS_ARE_SHARED ? shared[i * 32] : own[Shape::WEIGHTS_ARE_SHARED ? 0 : i];
    }
};
