// Jones vectors: both polarisations of an antenna at one time, as a word of four int8: re, im, re, im. Nibbles become
// the high halves of bytes, UNIT times their value, with no sign to extend.
// Needs     nothing
// Provides  load_jones, part_of
__device__ __forceinline__ unsigned expand(unsigned two_bytes)
{
    const unsigned doubled = __byte_perm(two_bytes, 0, 0x1100);  // each byte twice
    constexpr unsigned FIRST = 0x00f000f0, SECOND = 0xf000f000;
    if constexpr (REAL_LOW)
        return (doubled << 4 & FIRST) | (doubled & SECOND);
    else
        return (doubled & FIRST) | (doubled << 4 & SECOND);
}

// Loads N consecutive times (1, 2 or 4) from an address that is a multiple of their bytes.
template <int N>
__device__ __forceinline__ void load_jones(unsigned (&words)[N], const unsigned char* from)
{
    static_assert(N == 1 || N == 2 || N == 4, "as many as one load has");
    if constexpr (BITS == 8 && N == 4) {
        const uint4 loaded = *reinterpret_cast<const uint4*>(from);
        words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
    } else if constexpr (BITS == 8 && N == 2) {
        const uint2 loaded = *reinterpret_cast<const uint2*>(from);
        words[0] = loaded.x, words[1] = loaded.y;
    } else if constexpr (BITS == 8) {
        words[0] = *reinterpret_cast<const unsigned*>(from);
    } else if constexpr (N == 4) {
        const uint2 loaded = *reinterpret_cast<const uint2*>(from);
        words[0] = expand(loaded.x), words[1] = expand(loaded.x >> 16);
        words[2] = expand(loaded.y), words[3] = expand(loaded.y >> 16);
    } else if constexpr (N == 2) {
        const unsigned loaded = *reinterpret_cast<const unsigned*>(from);
        words[0] = expand(loaded), words[1] = expand(loaded >> 16);
    } else {
        words[0] = expand(*reinterpret_cast<const unsigned short*>(from));
    }
}

// Returns byte number `part` of a word whose bytes were made unsigned by ^ 0x80808080, as the float of the signed one:
// it becomes the low byte of the mantissa of 2^23.
__device__ __forceinline__ float part_of(unsigned shifted, int part)
{
    return __uint_as_float(__byte_perm(shifted, 0x4b000000u, 0x7540 + part)) - (8388608.0f + 128.0f);
}
