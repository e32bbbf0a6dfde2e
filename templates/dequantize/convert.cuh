// Returns the word with nibbles of 8, which mark missing samples, set to 0: it clears the top bit of a nibble if the
// three bits below are 0.
__device__ __forceinline__ unsigned without_missing(unsigned word)
{
    const unsigned others = word << 1 | word << 2 | word << 3;  // top bit of a nibble: any of its three low bits
    return word & (others | ~0x88888888u);
}

// Returns sample I of a word as a float, without a conversion. The nibble stays at bits [p, p + 4) of the mantissa.
// With the exponent of 2^(23-p) its lowest bit is worth 1, and with its sign bit inverted it counts from 0 and not from
// -8.
template <int I>
__device__ __forceinline__ float sample(unsigned word)
{
    constexpr int position = I % 4 * 4;
    constexpr unsigned exponent = (127u + 23 - position) << 23;
    constexpr float bias = static_cast<float>((1 << (23 - position)) + 8);
    return __uint_as_float(and_xor(word >> I / 4 * 16, 15u << position, exponent | 8u << position)) - bias;
}

struct Scale {
    float scale, offset;
};

template <int I>
__device__ __forceinline__ float value(unsigned word, Scale by)
{
    const float x = sample<I>(word);
    if constexpr (!SCALED)
        return x;
    const float scaled = fmaf(by.scale, x, by.offset);
    return MISSING && x == -8.0f ? 0.0f : scaled;
}

__device__ __forceinline__ __half2 as_half2(unsigned word)
{
    return *reinterpret_cast<const __half2*>(&word);
}

__device__ __forceinline__ unsigned as_word(__half2 pair)
{
    return *reinterpret_cast<const unsigned*>(&pair);
}

// Returns two floats as bfloat16, rounded to nearest, halves to even; a NaN becomes 0x7fff.
__device__ __forceinline__ unsigned pack_bfloat16(float low, float high)
{
#ifdef AUTOTUNE_HOST
    const auto top = [](float f) {
        const unsigned bits = __float_as_uint(f);
        return f != f ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return top(low) | top(high) << 16;
#else
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#endif
}

// Returns samples I and I + 1 of a word as two values of 16 bits.
template <int I>
__device__ __forceinline__ unsigned pair(unsigned word, Scale by)
{
    const float low = value<I>(word, by), high = value<I + 1>(word, by);
    return OUT == Out::float16 ? as_word(__floats2half2_rn(low, high)) : pack_bfloat16(low, high);
}

// Returns samples I and I + 4 of a word as halves. It works like sample(), with a mantissa of 10 bits and the exponent
// of 2^10.
template <int I>
__device__ __forceinline__ unsigned halves(unsigned word)
{
    const unsigned biased = and_xor(word >> 4 * I, 0x000f000f, 0x64086408);
    return as_word(__hsub2(as_half2(biased), as_half2(0x64086408)));  // 1024 + 8
}

// Returns the values of a piece. For float32 the piece is the low half of `word`.
__device__ __forceinline__ uint4 convert(unsigned word, __half2 scale_offset)
{
    Scale by = {};
    if constexpr (SCALED)
        by = {__low2float(scale_offset), __high2float(scale_offset)};
    if constexpr (OUT == Out::float32) {
        return make_uint4(
            __float_as_uint(value<0>(word, by)), __float_as_uint(value<1>(word, by)),
            __float_as_uint(value<2>(word, by)), __float_as_uint(value<3>(word, by)));
    } else if constexpr (OUT == Out::float16 && !SCALED) {
        const unsigned h0 = halves<0>(word), h1 = halves<1>(word), h2 = halves<2>(word), h3 = halves<3>(word);
        constexpr unsigned low = 0x5410, high = 0x7632;  // samples of the word's lower and upper half
        return make_uint4(
            __byte_perm(h0, h1, low), __byte_perm(h2, h3, low), __byte_perm(h0, h1, high), __byte_perm(h2, h3, high));
    } else {
        return make_uint4(pair<0>(word, by), pair<2>(word, by), pair<4>(word, by), pair<6>(word, by));
    }
}
