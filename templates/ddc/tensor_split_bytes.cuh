// Mixed weights as integers of 24 bits, and these as three signed bytes: h = byte 0 + byte 1 2^8 + byte 2 2^16. They
// are scaled by a power of two, so that the largest is in [2^22, 2^23), less what bytes 0 and 1 may take from byte 2.
// Sums of such products are exact.
typedef uint2 Parts;  // of the real and the imaginary part: its bytes, 0 in the lowest bits, and 0 in the highest

constexpr int LARGEST = 22;  // the exponent of the largest weight
constexpr unsigned ALMOST = 65795;  // floats that are by so much below a power of two count as above it
constexpr unsigned LEAST_EXPONENT = 30;  // of a largest weight of 2^-97, below which the scale of sums would underflow
constexpr int SAMPLE_SCALE = 8 * SAMPLE_BYTES - SAMPLE_BITS;  // the exponent of what samples are multiplied by
// Columns of a tile: bytes 0 to BYTES - 1 of the weights, each of both parts of up to four outputs.
constexpr int BYTES = {{ columns // 2 }};
constexpr int TOGETHER = STEP == 2 ? 2 : BYTES;  // octets of columns, which have whole outputs
constexpr int BYTE_COLUMNS = STEP == 2 ? 4 : 8;  // from byte to byte
static_assert(TAPS < 1 << 15, "no sum of 383 x 128 for each tap overflows");

__device__ __forceinline__ unsigned bytes_of(float x)
{
    return ((static_cast<unsigned>(__float2int_rn(x)) + 0x8080u) ^ 0x8080u) & 0xffffff;
}

__device__ __forceinline__ Parts split(float re, float im)
{
    return make_uint2(bytes_of(re), bytes_of(im));
}

// Of a block of weights, what `lane` of a warp gives to product `product` of a step, for octets TOGETHER `unit` and on.
__device__ __forceinline__ void fragments_of(
    uint2 (&fragments)[TOGETHER], const Parts* weights, int block, int product, int unit, int lane, int skew)
{
    const int column = lane / 4 % BYTE_COLUMNS, byte = lane / 4 / BYTE_COLUMNS;  // of the first octet
    const int own = lane % 4 * GROUP;
    const int back = own - column / 2 * DECIMATION - skew, first = block * STEP_SAMPLES - unit * (4 * DECIMATION);
    const unsigned* const parts = &weights->x + column % 2;
    unsigned words[TOGETHER][2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        unsigned all[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const int of_row_0 = sample_of(product, r, b), k = back + (first + of_row_0);
            const bool is_own = K_STEPS * PRODUCT == STEP_SAMPLES || own + of_row_0 < STEP_SAMPLES;
            all[b] = is_own && is_weight(k) ? parts[place_of_weight(k) * 2] : 0;
        }
#pragma unroll
        for (int o = 0; o < TOGETHER; ++o) {
            const unsigned selector = 0x40 + 0x11 * (o * (8 / BYTE_COLUMNS) + byte);
            words[o][r] = __byte_perm(
                __byte_perm(all[0], all[1], selector), __byte_perm(all[2], all[3], selector), 0x5410);
        }
    }
#pragma unroll
    for (int o = 0; o < TOGETHER; ++o)
        fragments[o] = make_uint2(words[o][0], words[o][1]);
}
