// Weights: fetched, mixed, scaled and split by the block.
struct Mixed {
    Parts weights[PLACES];
    unsigned largest[WARPS];  // of the warp's share of the weights, as bits
};
static_assert(sizeof(Mixed) <= MIXED_BYTES, "what is set aside for it");

// Copies of the weights, as a group: the first one, since behind samples they would wait for all of those. Each thread
// copies what it mixes later.
__device__ __forceinline__ void fetch_weights(unsigned char* scratch, const float* __restrict__ weights)
{
    static_assert(SCRATCH_BYTES >= FETCHED_AT + 4 * TAPS, "they lie behind the mixed weights");
    float* const fetched = reinterpret_cast<float*>(scratch + FETCHED_AT);
    for (int k = threadIdx.x; k < TAPS; k += WGS)
        copy_word_async(fetched + k, weights + k);
    close_group();
}

// Mixed weights, by the whole block; at least GROUPS groups of copies follow that of the weights. Returns what sums are
// to be multiplied by.
template <int GROUPS>
__device__ __forceinline__ float mix_weights(unsigned char* scratch, Frequency frequency)
{
    Mixed& mixed = *reinterpret_cast<Mixed*>(scratch);
    const float* const weights = reinterpret_cast<const float*>(scratch + FETCHED_AT);
    wait_for_groups<GROUPS>();
    unsigned largest = 0;
    for (int k = threadIdx.x; k < TAPS; k += WGS)
        largest = max(largest, __float_as_uint(fabsf(weights[k])));  // floats above 0 are in the order of their bits
    largest = __reduce_max_sync(0xffffffff, largest);
    if (threadIdx.x % 32 == 0)
        mixed.largest[threadIdx.x / 32] = largest;
    __syncthreads();  // the largest of each warp is there
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        largest = max(largest, mixed.largest[w]);
    const unsigned exponent = max(largest + ALMOST >> 23, LEAST_EXPONENT);
    const float scale = __uint_as_float((254 + LARGEST - exponent) << 23);
    for (int k = threadIdx.x; k < TAPS; k += WGS) {
        const float2 turn = unit_vector(advance(frequency, k));
        const float weight = weights[k] * scale;
        mixed.weights[place_of_weight(k)] = split(weight * turn.x, weight * turn.y);
    }
    __syncthreads();  // the mixed weights are complete
    return __uint_as_float((exponent - LARGEST - SAMPLE_SCALE) << 23);
}

__device__ __forceinline__ const Parts* mixed_weights(const unsigned char* scratch)
{
    return reinterpret_cast<const Mixed*>(scratch)->weights;
}
