// Two bins of a spectrum become voltages.
constexpr int WORDS = POST_SPECTRA * VOLTAGE_BYTES / 4;  // of a bin's voltages of a unit of work, of one polarisation
constexpr int EACH = 4 / VOLTAGE_BYTES;  // voltages of a word
static_assert(WORDS * 4 == POST_SPECTRA * VOLTAGE_BYTES, "they are whole words");

// What a unit of work knows of its pair of bins.
struct Pair {
    float2 split;  // e^(i pi k / N) of the first bin
    float2 positions;  // (k - C/2) / C of both
    float4 polar;  // (size, angle) of both gains
    float2 limits;  // of parts that do not saturate, before they are scaled
};

// What turns a spectrum of one polarisation: -pi delay, and the phase in [-pi, pi].
__device__ __forceinline__ float2 turn_of(float delay, float phase)
{
    const double turns = phase * 0.15915494309189535;
    return make_float2(-3.14159265f * delay, static_cast<float>((turns - rint(turns)) * 6.283185307179586));
}

__device__ __forceinline__ float position(int bin) { return (2 * bin - N_CHANNELS) / (2.0f * N_CHANNELS); }

// What a size takes to half a step beyond the largest part.
__device__ __forceinline__ float limit_of(float size) { return __fdividef((MOST + 0.5f) / (2 * MOST), size); }

// X of both bins, twice as large, from the complex points' Z[k] and Z[N - k].
__device__ __forceinline__ void split(float2& first, float2& second, float2 turned)
{
    const float2 a = first, b = second;
    const float2 even = make_float2(a.x + b.x, a.y - b.y), odd = make_float2(a.x - b.x, a.y + b.y);
    first.x = __fmaf_rn(turned.x, odd.y, __fmaf_rn(-turned.y, odd.x, even.x));
    first.y = __fmaf_rn(-turned.y, odd.y, __fmaf_rn(-turned.x, odd.x, even.y));
    second.x = __fmaf_rn(2.0f, even.x, -first.x);
    second.y = __fmaf_rn(-2.0f, even.y, first.y);
}

// Both parts of a voltage in two's complement, in the low BITS bits. They are rounded to nearest, halves to even, because
// the last place of ROUNDED is worth 1; of CODES, which keeps it positive, the low bits are 0.
struct Codes {
    unsigned re, im;
};

// x turned and scaled. limit: beyond it a part saturates, before it is scaled.
__device__ __forceinline__ Codes quantise(
    float2 x, float2 turn, float position, float size, float angle, float limit, unsigned& saturated)
{
    constexpr float ROUNDED = 12582912.0f + CODES - MOST;
    const float turned = __fmaf_rn(turn.x, position, turn.y) + angle;
    const float c = __cosf(turned), s = __sinf(turned);
    const float re = __fmaf_rn(-x.y, s, x.x * c), im = __fmaf_rn(x.y, c, x.x * s);
    if (fabsf(re) > limit || fabsf(im) > limit)
        ++saturated;
    const float clipped_re = __saturatef(__fmaf_rn(re, size, 0.5f)), clipped_im = __saturatef(__fmaf_rn(im, size, 0.5f));
    return {
        __float_as_uint(__fmaf_rn(clipped_re, 2 * MOST, ROUNDED)),
        __float_as_uint(__fmaf_rn(clipped_im, 2 * MOST, ROUNDED))};
}

// Codes of consecutive spectra in a word.
__device__ __forceinline__ unsigned packed(const Codes* codes)
{
    if constexpr (BITS == 8) {
        return __byte_perm(
            __byte_perm(codes[0].re, codes[0].im, 0x0040), __byte_perm(codes[1].re, codes[1].im, 0x0040), 0x5410);
    } else {
        unsigned word = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word |= (codes[i].re % 16 | codes[i].im % 16 << 4) << 8 * i;
        return word;
    }
}

// Voltages of POST_SPECTRA spectra of a pair of bins: words[0] of the first bin. first, second: the bins in the first
// spectrum's row; turns: of the spectra.
__device__ __forceinline__ void make_voltages(
    unsigned (&words)[2][WORDS], const Pair& pair, const float2* first, const float2* second, const float2* turns,
    unsigned& saturated)
{
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        Codes codes[2][EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int s = w * EACH + i;
            float2 a = first[s * SLICE_VALUES], b = second[s * SLICE_VALUES];
            if constexpr (!COMPLEX)
                split(a, b, pair.split);
            codes[0][i] = quantise(a, turns[s], pair.positions.x, pair.polar.x, pair.polar.y, pair.limits.x, saturated);
            codes[1][i] = quantise(b, turns[s], pair.positions.y, pair.polar.z, pair.polar.w, pair.limits.y, saturated);
        }
        words[0][w] = packed(codes[0]), words[1][w] = packed(codes[1]);
    }
}
