// Weights: fetched, mixed, scaled and split by the block.
struct Mixed {
    Parts weights[PLACES];
    unsigned largest[WARPS];  // of the warp's share of the weights, as bits
};
static_assert(sizeof(Mixed) <= MIXED_BYTES && sizeof(Parts) == sizeof(float2), "what is set aside for it");

constexpr int OWN_WEIGHTS = ceil_div(TAPS, WGS);  // of a thread, at most

__device__ __forceinline__ int own_weight(int i)
{
    return threadIdx.x + i * WGS;
}

// Copies of the weights, as a group: the first one, since behind samples they would wait for all of those. Each thread
// copies what it mixes later.
__device__ __forceinline__ void fetch_weights(unsigned char* scratch, const float* __restrict__ weights)
{
    static_assert(SCRATCH_BYTES >= WEIGHING_BYTES, "they and their turns lie behind the mixed weights");
    float* const fetched = reinterpret_cast<float*>(scratch + FETCHED_AT);
    for (int i = 0; i < OWN_WEIGHTS; ++i) {
        const int k = own_weight(i);
        if (k < TAPS)
            copy_word_async(fetched + k, weights + k);
    }
    close_group();
}

// Mixed weights, by the whole block; one group of copies follows that of the weights. Returns what sums are to be
// multiplied by. While weights are on their way, turns are made.
__device__ __forceinline__ float mix_weights(unsigned char* scratch, Frequency frequency)
{
    Mixed& mixed = *reinterpret_cast<Mixed*>(scratch);
    const float* const weights = reinterpret_cast<const float*>(scratch + FETCHED_AT);
    float2* const turns = reinterpret_cast<float2*>(scratch + TURNS_AT);
    for (int i = threadIdx.x; i < TURNS; i += WGS)
        turns[i] = unit_vector(advance(frequency, i < NEAR ? i : (i - NEAR) * NEAR));
    if (threadIdx.x == 0)
        mixed.weights[place_of_weight(TAPS)] = {};  // which is no weight
    wait_for_groups<1>();
    unsigned largest = 0;
#pragma unroll 4
    for (int i = 0; i < OWN_WEIGHTS; ++i) {
        const int k = own_weight(i);
        if (k < TAPS)
            largest = max(largest, __float_as_uint(fabsf(weights[k])));  // floats above 0 are in the order of their bits
    }
    largest = __reduce_max_sync(0xffffffff, largest);
    if (threadIdx.x % 32 == 0)
        mixed.largest[threadIdx.x / 32] = largest;
    __syncthreads();  // the largest of each warp is there, and so are all turns
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        largest = max(largest, mixed.largest[w]);
    const unsigned exponent = max(largest + ALMOST >> 23, LEAST_EXPONENT);
    const float scale = __uint_as_float((254 + LARGEST - exponent) << 23);
#pragma unroll 4
    for (int i = 0; i < OWN_WEIGHTS; ++i) {
        const int k = own_weight(i);
        if (k < TAPS) {
            const float2 turn = multiply(turns[k % NEAR], turns[NEAR + k / NEAR]);
            const float weight = weights[k] * scale;
            mixed.weights[place_of_weight(k)] = split(weight * turn.x, weight * turn.y);
        }
    }
    __syncthreads();  // the mixed weights are complete
    return __uint_as_float((exponent - LARGEST - SAMPLE_SCALE) << 23);
}

__device__ __forceinline__ const Parts* mixed_weights(const unsigned char* scratch)
{
    return reinterpret_cast<const Mixed*>(scratch)->weights;
}
