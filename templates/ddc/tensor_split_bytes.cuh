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

struct Taken {
    Parts weights[4];  // that a lane has of a product: those of one register of the fragment that mma.sync takes
};

// Of product `product` of a step, for register `lane` / 4 % 2, what a block of weights has for outputs of TOGETHER octets
// of columns, from octet `unit` TOGETHER on.
__device__ __forceinline__ Taken take_weights(
    const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
{
    constexpr int OUTPUTS = BYTE_COLUMNS / 2;  // of an octet
    constexpr int REGISTER_SAMPLES = sample_of(0, 1, 0) - sample_of(0, 0, 0);  // of all products
    const int own = lane % 4 * GROUP + (lane / 4 % 2 != 0 ? REGISTER_SAMPLES : 0);
    const int back = own - lane / 8 % OUTPUTS * DECIMATION - skew;
    const int first = block * STEP_SAMPLES - unit * (4 * DECIMATION);
    Taken taken;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
        const int of_row_0 = sample_of(product, 0, b);
        const bool is_own = K_STEPS * PRODUCT == STEP_SAMPLES || own + of_row_0 < STEP_SAMPLES;
        taken.weights[b] = weights[is_own ? place_of_any(back + (first + of_row_0)) : place_of_weight(TAPS)];
    }
    return taken;
}

// The words of these octets, of the two parts of one output: the first of them of lane `lane` of that fragment, the second
// one of lane `lane` ^ 4.
__device__ __forceinline__ void words_of(unsigned (&words)[TOGETHER][2], const Taken& taken, int lane)
{
    const Parts* const all = taken.weights;
    const int byte = lane / 8 / (BYTE_COLUMNS / 2);  // of the first octet
    const bool is_second = lane / 4 % 2 != 0;  // of the registers
#pragma unroll
    for (int o = 0; o < TOGETHER; ++o) {
        const unsigned selector = 0x40 + 0x11 * (o * (8 / BYTE_COLUMNS) + byte);
        const unsigned re = __byte_perm(
            __byte_perm(all[0].x, all[1].x, selector), __byte_perm(all[2].x, all[3].x, selector), 0x5410);
        const unsigned im = __byte_perm(
            __byte_perm(all[0].y, all[1].y, selector), __byte_perm(all[2].y, all[3].y, selector), 0x5410);
        words[o][0] = is_second ? im : re;  // so that no two lanes store to one bank
        words[o][1] = is_second ? re : im;
    }
}
