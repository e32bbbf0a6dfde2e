// Operands of tensor cores: weights of a beam, scaled by a power of two so that the largest is 2^13 to 2^14, and
// voltages, as words that they multiply.
// Needs     nothing
// Provides  PLANES, TERMS, WORDS, Sum; Scale, scale_of; turn; make_words; columns_of; value_of
{% if problem.precision == "half" %}
#include <cuda_fp16.h>

constexpr int PLANES = 1;
constexpr int TERMS = 2;  // products whose sum is a beam: one for each polarisation
constexpr int WORDS = POLS;  // of an antenna in a beam
using Sum = float;
{% else %}
constexpr int PLANES = 2;
constexpr int TERMS = 1;
constexpr int WORDS = PLANES;  // of an antenna in a beam
using Sum = int;
{% endif %}
static_assert(WEIGHT_BYTES == WORDS * 4, "as the launch has it");

struct Scale {
    float factor, inverse;  // of weights; of sums, with the UNIT of voltages
};

// Returns the scale of a beam with a largest weight of this magnitude. A part of a weight is at most 127.5 * 128 then.
__device__ __forceinline__ Scale scale_of(float largest)
{
    constexpr int LEAST = 64, MOST = 190;  // biased exponents, so that neither number overflows
    constexpr float LIMIT = 127.0f * 128.0f + 63.0f;
    int exponent = static_cast<int>(__float_as_uint(largest) >> 23);
    exponent = exponent < LEAST ? LEAST : exponent > MOST ? MOST : exponent;
    float factor = __uint_as_float(static_cast<unsigned>(254 + 13 - exponent) << 23);
    if (largest * factor > LIMIT)
        factor *= 0.5f;
    const int biased = static_cast<int>(__float_as_uint(factor) >> 23);
    return {factor, __uint_as_float(static_cast<unsigned>(254 - biased) << 23) / UNIT};
}

{% if problem.precision == "half" %}
__device__ __forceinline__ unsigned as_word(__half2 pair)
{
    return *reinterpret_cast<const unsigned*>(&pair);
}

// Makes (re, -im) of each polarisation: the products with (re, im) of a voltage add up to the real part.
__device__ __forceinline__ void make_words(unsigned (&words)[WORDS], const float2 (&w)[2], float factor)
{
#pragma unroll
    for (int p = 0; p < WORDS; ++p)
        words[p] = as_word(__floats2half2_rn(w[p].x * factor, -w[p].y * factor));
}

// Returns (im, re) of (re, -im), for the imaginary part.
__device__ __forceinline__ unsigned turn(unsigned word)
{
    return __byte_perm(word, word, 0x1032) ^ 0x00008000u;
}

// Makes float16 of the int8 of both polarisations: a byte made unsigned is the low byte of the mantissa of 1024.
__device__ __forceinline__ void columns_of(unsigned (&columns)[TERMS][4][2], const unsigned (&words)[2][4])
{
    const unsigned bias = 0x64806480u;  // 1024 + 128
    const __half2 biases = *reinterpret_cast<const __half2*>(&bias);
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned shifted = words[half][j] ^ 0x80808080u;
#pragma unroll
            for (int p = 0; p < TERMS; ++p) {
                const unsigned biased = __byte_perm(shifted, 0x64646464u, p == 0 ? 0x4140 : 0x4342);
                columns[p][j][half] = as_word(__hsub2(*reinterpret_cast<const __half2*>(&biased), biases));
            }
        }
}

__device__ __forceinline__ float value_of(const Sum (&sums)[PLANES][4][4], int j, int i)
{
    return sums[0][j][i];
}
{% else %}
// Makes the high and the low plane of (re, -im) of both polarisations. low is -64 to 63.
__device__ __forceinline__ void make_words(unsigned (&words)[WORDS], const float2 (&w)[2], float factor)
{
    const float parts[4] = {w[0].x, -w[0].y, w[1].x, -w[1].y};
    words[0] = words[1] = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int integer = static_cast<int>(rintf(parts[i] * factor)), high = (integer + 64) >> 7;
        words[0] |= static_cast<unsigned>(high & 255) << i * 8;
        words[1] |= static_cast<unsigned>((integer - high * 128) & 255) << i * 8;
    }
}

// Returns (im, re) of (re, -im), of both polarisations, for the imaginary part.
__device__ __forceinline__ unsigned turn(unsigned word)
{
    const unsigned negative = 0x01000100u - (word >> 8 & 0x00ff00ffu);  // no borrow; the low byte of a half counts
    return __byte_perm(word, negative, 0x2604);
}

__device__ __forceinline__ void columns_of(unsigned (&columns)[TERMS][4][2], const unsigned (&words)[2][4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
        columns[0][j][0] = words[0][j], columns[0][j][1] = words[1][j];
}

// Returns 128 high + low, rounded once: sums that make no clipped beam are below 2^24.
__device__ __forceinline__ float value_of(const Sum (&sums)[PLANES][4][4], int j, int i)
{
    return __fmaf_rn(static_cast<float>(sums[0][j][i]), 128.0f, static_cast<float>(sums[1][j][i]));
}
{% endif %}
