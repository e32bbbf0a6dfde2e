// Mixed weights as two halves, each of 11 bits: h = high + low 2^-11. They are scaled by a power of two, so that the
// largest is in [2^14, 2^15): no half overflows, and what is 2^28 times smaller is still a normal number.
typedef ushort4 Parts;  // (re high, re low, im high, im low)

constexpr int LARGEST = 14;  // the exponent of the largest weight
constexpr unsigned ALMOST = 0;  // floats that are by so much below a power of two count as above it
constexpr unsigned LEAST_EXPONENT = 27;  // of a largest weight of 2^-100, below which the scale would overflow
constexpr int SAMPLE_SCALE = 0;  // the exponent of what samples are multiplied by
constexpr int TOGETHER = 1;  // octets of columns, which have whole outputs

__device__ __forceinline__ ushort2 halves_of(float x)
{
    const __half high = __float2half_rn(x);
    const __half low = __float2half_rn((x - __half2float(high)) * 2048.0f);
    return make_ushort2(__half_as_ushort(high), __half_as_ushort(low));
}

__device__ __forceinline__ Parts split(float re, float im)
{
    const ushort2 r = halves_of(re), i = halves_of(im);
    return make_ushort4(r.x, r.y, i.x, i.y);
}

// Of a block of weights and product `product` of a step: the two registers of `lane` of the fragment that mma.sync takes,
// for the octet `unit` of columns.
__device__ __forceinline__ void words_of(
    unsigned (&words)[TOGETHER][2], const Parts* weights, int block, int product, int unit, int lane, int skew)
{
    const int column = lane / 4, own = lane % 4 * GROUP;
    const int back = own - column / 4 * DECIMATION - skew, first = block * STEP_SAMPLES - unit * (2 * DECIMATION);
    const unsigned short* const parts = &weights->x + column % 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        unsigned halves[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int of_row_0 = sample_of(product, r, h);
            const bool is_own = K_STEPS * PRODUCT == STEP_SAMPLES || own + of_row_0 < STEP_SAMPLES;
            halves[h] = parts[(is_own ? place_of_any(back + (first + of_row_0)) : place_of_weight(TAPS)) * 4];
        }
        words[0][r] = halves[0] | halves[1] << 16;
    }
}
