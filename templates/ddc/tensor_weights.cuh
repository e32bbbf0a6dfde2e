// Weights, mixed and split in two halves, each of 11 bits: h = high + low 2^-11. They are scaled by a power of two, so
// that the largest is in [2^14, 2^15): no half overflows, and what is 2^28 times smaller is still a normal number.
struct Mixed {
    ushort4 weights[TAPS];  // (re high, re low, im high, im low)
    unsigned largest[WARPS];  // of the warp's share of the weights, as bits
};
static_assert(sizeof(Mixed) <= MIXED_BYTES, "what is set aside for it");

__device__ __forceinline__ ushort2 split(float x)
{
    const __half high = __float2half_rn(x);
    const __half low = __float2half_rn((x - __half2float(high)) * 2048.0f);
    return make_ushort2(__half_as_ushort(high), __half_as_ushort(low));
}

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
    const unsigned exponent = max(largest >> 23, 27u);  // below 2^-100 the scale would overflow
    const float scale = __uint_as_float((268 - exponent) << 23);
    for (int k = threadIdx.x; k < TAPS; k += WGS) {
        const float2 turn = unit_vector(advance(frequency, k));
        const float weight = weights[k] * scale;
        const ushort2 re = split(weight * turn.x), im = split(weight * turn.y);
        mixed.weights[k] = make_ushort4(re.x, re.y, im.x, im.y);
    }
    __syncthreads();  // the mixed weights are complete
    return __uint_as_float((exponent - 14) << 23);
}

// Of a block of weights, what `lane` of a warp gives to product `product` of a step, for octet `octet` of columns.
__device__ __forceinline__ uint2 fragment_of(
    const unsigned char* scratch, int block, int product, int octet, int lane, int skew)
{
    const unsigned short* const parts = &reinterpret_cast<const Mixed*>(scratch)->weights[0].x;
    const int l = lane % 4, column = lane / 4;
    const int first = block * STEP_SAMPLES - (octet * 2 + column / 4) * DECIMATION - skew;
    unsigned words[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        unsigned halves[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int in_step = sample_of(product, l, r, h), k = first + in_step;
            halves[h] = in_step < STEP_SAMPLES && k >= 0 && k < TAPS ? parts[k * 4 + column % 4] : 0;
        }
        words[r] = halves[0] | halves[1] << 16;
    }
    return make_uint2(words[0], words[1]);
}
