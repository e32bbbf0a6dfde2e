// Weights: fetched, mixed, scaled and split by the block.
struct Mixed {
    Parts weights[PLACES];
    unsigned largest[WARPS];  // of the warp's share of the weights, as bits
};
static_assert(sizeof(Mixed) <= MIXED_BYTES && sizeof(Parts) == sizeof(float2), "what is set aside for it");

constexpr int OWN_WEIGHTS = ceil_div(TAPS, WGS);  // of a thread, at most
typedef float Fetched[OWN_WEIGHTS];

// Each 32 next to each other are of a warp: weight k is one of lane k % 32.
__device__ __forceinline__ int own_weight(int i)
{
    return threadIdx.x + i * WGS;
}

__device__ __forceinline__ bool is_weight(int i)
{
    return (i + 1) * WGS <= TAPS || own_weight(i) < TAPS;
}

// A thread's weights, before all else: behind samples they would wait for all of those.
__device__ __forceinline__ void fetch_weights(Fetched& fetched, const float* __restrict__ weights)
{
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i)
        fetched[i] = is_weight(i) ? weights[own_weight(i)] : 0.0f;
}

// Mixed weights, by the whole block. Returns what sums are to be multiplied by.
__device__ __forceinline__ float mix_weights(unsigned char* scratch, const Fetched& weights, Frequency frequency)
{
    Mixed& mixed = *reinterpret_cast<Mixed*>(scratch);
    // The turn of weight k is the product of those of weights k % 32, the lane's own, and k - k % 32, which lane i % 32
    // has of the warp's i-th 32 weights.
    constexpr int FAR = ceil_div(OWN_WEIGHTS, 32);
    const int lane = threadIdx.x % 32;
    const float2 near = unit_vector(advance(frequency, lane));
    float2 far[FAR];
#pragma unroll
    for (int i = 0; i < FAR; ++i)
        far[i] = unit_vector(advance(frequency, own_weight(lane + 32 * i) - lane));
    if (threadIdx.x == 0)
        mixed.weights[place_of_weight(TAPS)] = {};  // which is no weight
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i)
        largest = max(largest, __float_as_uint(fabsf(weights[i])));  // floats above 0 are in the order of their bits
    largest = __reduce_max_sync(0xffffffff, largest);
    if (lane == 0)
        mixed.largest[threadIdx.x / 32] = largest;
    __syncthreads();  // the largest of each warp is there
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        largest = max(largest, mixed.largest[w]);
    const unsigned exponent = max(largest + ALMOST >> 23, LEAST_EXPONENT);
    const float scale = __uint_as_float((254 + LARGEST - exponent) << 23);
#pragma unroll
    for (int i = 0; i < OWN_WEIGHTS; ++i) {
        const float far_re = __shfl_sync(0xffffffff, far[i / 32].x, i % 32);
        const float far_im = __shfl_sync(0xffffffff, far[i / 32].y, i % 32);
        const float2 turn = multiply(near, make_float2(far_re, far_im));
        const float weight = weights[i] * scale;
        if (is_weight(i))
            mixed.weights[place_of_weight(own_weight(i))] = split(weight * turn.x, weight * turn.y);
    }
    __syncthreads();  // the mixed weights are complete
    return __uint_as_float((exponent - LARGEST - SAMPLE_SCALE) << 23);
}

__device__ __forceinline__ const Parts* mixed_weights(const unsigned char* scratch)
{
    return reinterpret_cast<const Mixed*>(scratch)->weights;
}
