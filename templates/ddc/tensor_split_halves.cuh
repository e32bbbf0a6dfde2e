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

struct Taken {
    unsigned short halves[2][2];  // that a lane has of a product: of both registers that mma.sync takes
};

// Of product `product` of a step, what a block of weights has for the lane's column of octet `unit`.
__device__ __forceinline__ Taken take_weights(
    const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
{
    const int column = lane / 4, own = lane % 4 * GROUP;
    const int back = own - column / 4 * DECIMATION - skew, first = block * STEP_SAMPLES - unit * (2 * DECIMATION);
    const unsigned short* const parts = &weights->x + column % 4;
    Taken taken;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int of_row_0 = sample_of(product, i / 2, i % 2);
        const bool is_own = K_STEPS * PRODUCT == STEP_SAMPLES || own + of_row_0 < STEP_SAMPLES;
        const unsigned place = is_own ? place_of_any(back + (first + of_row_0)) : place_of_weight(TAPS);
        taken.halves[i / 2][i % 2] = parts[place * 4];
    }
    return taken;
}

// The two registers.
__device__ __forceinline__ void words_of(unsigned (&words)[TOGETHER][2], const Taken& taken, int)
{
#pragma unroll
    for (int r = 0; r < 2; ++r)
        words[0][r] = taken.halves[r][0] | taken.halves[r][1] << 16;
}
