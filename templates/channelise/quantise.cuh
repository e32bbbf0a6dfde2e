// Quantisation: two bins of a spectrum become voltages.
// Needs     pairs.cuh (bins_of)
// Provides  Pair, pair_of; make_voltages
constexpr int EACH = 4 / VOLTAGE_BYTES;  // voltages in a word
static_assert(WORDS * 4 == POST_SPECTRA * VOLTAGE_BYTES, "they are whole words");

// The factors of a pair of bins, which are the same in all spectra.
struct Pair {
    float2 split;  // e^(i pi k / N) for the first bin k
    float2 positions;  // (k - C/2) / C of both bins
    float4 polar;  // (size, angle) of both gains
    float2 limits;  // largest parts that do not saturate, before scaling
};

__device__ __forceinline__ float position(int bin) { return (2 * bin - N_CHANNELS) / (2.0f * N_CHANNELS); }

// Returns the number that `size` scales to half a step beyond the largest part.
__device__ __forceinline__ float limit_of(float size) { return __fdividef((MOST + 0.5f) / (2 * MOST), size); }

__device__ __forceinline__ Pair pair_of(
    int group, int number, const float2* __restrict__ splits, const float4* __restrict__ polar)
{
    const int2 bins = bins_of(group, number);
    Pair pair;
    pair.split = __ldg(splits + group * N_PAIRS + number);
    pair.positions = make_float2(position(bins.x), position(bins.y));
    pair.polar = __ldg(polar + group * N_PAIRS + number);
    pair.limits = make_float2(limit_of(pair.polar.x), limit_of(pair.polar.z));
    return pair;
}

// Replaces the complex points' Z[k] and Z[N - k] with 2 X[k] and 2 X[N - k]. `phasor` is e^(i pi k / N).
__device__ __forceinline__ void split(float2& first, float2& second, float2 phasor)
{
    const float2 a = first, b = second;
    const float2 even = make_float2(a.x + b.x, a.y - b.y), odd = make_float2(a.x - b.x, a.y + b.y);
    first.x = __fmaf_rn(phasor.x, odd.y, __fmaf_rn(-phasor.y, odd.x, even.x));
    first.y = __fmaf_rn(-phasor.y, odd.y, __fmaf_rn(-phasor.x, odd.x, even.y));
    second.x = __fmaf_rn(2.0f, even.x, -first.x);
    second.y = __fmaf_rn(-2.0f, even.y, first.y);
}

// Both parts of a voltage, in two's complement in the low BITS bits. They are rounded to nearest, halves to even,
// because the last place of ROUNDED is worth 1. CODES keeps ROUNDED positive, and its low BITS bits are 0.
struct Codes {
    unsigned re, im;
};

// Returns the codes of x e^(i phi) size, phi = phasor.x position + phasor.y + angle. If a part exceeds `limit` before
// scaling, the voltage saturates and `saturated` is incremented.
__device__ __forceinline__ Codes quantise(
    float2 x, float2 phasor, float position, float size, float angle, float limit, unsigned& saturated)
{
    constexpr float ROUNDED = 12582912.0f + CODES - MOST;
    const float phi = __fmaf_rn(phasor.x, position, phasor.y) + angle;
    const float c = __cosf(phi), s = __sinf(phi);
    const float re = __fmaf_rn(-x.y, s, x.x * c), im = __fmaf_rn(x.y, c, x.x * s);
    if (fabsf(re) > limit || fabsf(im) > limit)
        ++saturated;
    const float clipped_re = __saturatef(__fmaf_rn(re, size, 0.5f));
    const float clipped_im = __saturatef(__fmaf_rn(im, size, 0.5f));
    return {
        __float_as_uint(__fmaf_rn(clipped_re, 2 * MOST, ROUNDED)),
        __float_as_uint(__fmaf_rn(clipped_im, 2 * MOST, ROUNDED))};
}

// Returns a word with the codes of EACH consecutive spectra.
__device__ __forceinline__ unsigned packed(const Codes* codes)
{
    if constexpr (BITS == 8) {
        return __byte_perm(
            __byte_perm(codes[0].re, codes[0].im, 0x0040), __byte_perm(codes[1].re, codes[1].im, 0x0040), 0x5410);
    } else {
        unsigned word = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
{% if problem.nibbles == "real_low" %}
            word |= (codes[i].re % 16 | codes[i].im % 16 << 4) << 8 * i;
{% else %}
            word |= (codes[i].im % 16 | codes[i].re % 16 << 4) << 8 * i;
{% endif %}
        return word;
    }
}

// Computes the voltages of POST_SPECTRA spectra for a pair of bins: words[0] for the first bin, words[1] for the
// second. `first` and `second` point to the bins in the first spectrum's row, and phasors[s] belongs to spectrum s.
__device__ __forceinline__ void make_voltages(
    unsigned (&words)[2][WORDS], const Pair& pair, const float2* first, const float2* second, const float2* phasors,
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
            codes[0][i] =
                quantise(a, phasors[s], pair.positions.x, pair.polar.x, pair.polar.y, pair.limits.x, saturated);
            codes[1][i] =
                quantise(b, phasors[s], pair.positions.y, pair.polar.z, pair.polar.w, pair.limits.y, saturated);
        }
        words[0][w] = packed(codes[0]), words[1][w] = packed(codes[1]);
    }
}
