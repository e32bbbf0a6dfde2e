// The block fetches the weights, multiplies them by the mixer's phasors, scales them and splits them.
// Needs     Shape; Weights: WeightHalves or WeightBytes, which says how they are split;
//           lib/phase.cuh (Frequency, advance, multiply, unit_vector), lib/vector.cuh (ceil_div)
// Provides  MixedWeights: fetch, then mix, to shared memory; weights_in, the weights, each at Shape::place_of_weight
template <class Shape, class Weights>
struct MixedWeights {
    typedef typename Weights::Parts Parts;
    static constexpr int WEIGHTS_PER_THREAD = ceil_div(TAPS, Shape::N_THREADS);  // the most that a thread has
    typedef float Fetched[WEIGHTS_PER_THREAD];

    Parts weights[Shape::place_of_weight(TAPS) + 1];  // a zero behind the last one
    unsigned largest[Shape::N_WARPS];  // largest weight of each warp's share, as the bits of a float

    // Fetches a thread's weights. Call it before any samples are fetched, or the weights arrive after all of those.
    __device__ __forceinline__ static void fetch(Fetched& fetched, const float* __restrict__ weights)
    {
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i)
            fetched[i] = is_weight(i) ? weights[own_weight(i)] : 0.0f;
    }

    // Mixes the weights and stores them in `scratch`; all threads of the block call it. Returns the factor by which
    // sums must be multiplied.
    __device__ __forceinline__ static float mix(unsigned char* scratch, const Fetched& fetched, Frequency frequency)
    {
        MixedWeights& mixed = *reinterpret_cast<MixedWeights*>(scratch);
        // The phasor of weight k is the product of two phasors: that of weight k % 32, which is the lane's own, and
        // that of weight k - k % 32. Lane i % 32 computes the second one for the warp's i-th 32 weights.
        constexpr int FAR = ceil_div(WEIGHTS_PER_THREAD, 32);
        const int lane = threadIdx.x % 32;
        const float2 near = unit_vector(advance(frequency, lane));
        float2 far[FAR];
#pragma unroll
        for (int i = 0; i < FAR; ++i)
            far[i] = unit_vector(advance(frequency, own_weight(lane + 32 * i) - lane));
        if (threadIdx.x == 0)
            mixed.weights[Shape::place_of_weight(TAPS)] = {};  // the zero behind the last weight
        unsigned most = 0;
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i)
            most = max(most, __float_as_uint(fabsf(fetched[i])));  // the bits of positive floats sort like the floats
        most = __reduce_max_sync(0xffffffff, most);
        if (lane == 0)
            mixed.largest[threadIdx.x / 32] = most;
        __syncthreads();  // the largest weight of each warp is stored
#pragma unroll
        for (int w = 0; w < Shape::N_WARPS; ++w)
            most = max(most, mixed.largest[w]);
        const unsigned exponent = max(most + Weights::ALMOST >> 23, Weights::LEAST_EXPONENT);
        const float scale = __uint_as_float((254 + Weights::LARGEST - exponent) << 23);
#pragma unroll
        for (int i = 0; i < WEIGHTS_PER_THREAD; ++i) {
            const float far_re = __shfl_sync(0xffffffff, far[i / 32].x, i % 32);
            const float far_im = __shfl_sync(0xffffffff, far[i / 32].y, i % 32);
            const float2 phasor = multiply(near, make_float2(far_re, far_im));
            const float weight = fetched[i] * scale;
            if (is_weight(i))
                mixed.weights[Shape::place_of_weight(own_weight(i))] =
                    Weights::split(weight * phasor.x, weight * phasor.y);
        }
        __syncthreads();  // the mixed weights are complete
        return __uint_as_float((exponent - Weights::LARGEST - Weights::SAMPLE_SCALE) << 23);
    }

    __device__ __forceinline__ static const Parts* weights_in(const unsigned char* scratch)
    {
        return reinterpret_cast<const MixedWeights*>(scratch)->weights;
    }

private:
    // Returns the number of the thread's i-th weight. A warp has 32 consecutive weights at a time: lane k % 32 has
    // weight k.
    __device__ __forceinline__ static int own_weight(int i)
    {
        return threadIdx.x + i * Shape::N_THREADS;
    }

    __device__ __forceinline__ static bool is_weight(int i)
    {
        return (i + 1) * Shape::N_THREADS <= TAPS || own_weight(i) < TAPS;
    }
};
