// Packed samples are two's complement, BITS wide (2 to 16), with the first sample in the most significant bits of the
// first byte. They are unpacked in groups of 16 or 32 samples, the smallest number that fills whole 32-bit words.
//
// A field becomes a float without a conversion. The field stays at its place in the word, bits [i, i + BITS) of the low
// 23, which are the mantissa. With the exponent of 2^(23-i) above the mantissa, the field's lowest bit is worth 1:
//     as_float((word & mask) ^ (exponent | sign bit of the field)) = 2^(23-i) + sample + 2^(BITS-1)
// One exact subtraction leaves the sample. Only a field outside of the low 23 bits of a word needs a shift, and its
// neighbours use the same shifted word: 16 samples of 10 bits take 5 shifts.
constexpr int MANTISSA = 23;

template <int BITS>
struct Group {
    static constexpr int SAMPLES = BITS % 2 == 0 ? 16 : 32;
    static constexpr int WORDS = SAMPLES * BITS / 32;
};

// Returns the first of the 23 bits from which sample number `sample` of a group is taken, counted from the group's
// first bit.
__host__ __device__ constexpr int window_start(int bits, int sample)
{
    int shifted = -32;  // first bit of the latest shifted window
    for (int s = 0;; ++s) {
        const int first = s * bits;
        const int in_word = first % 32;
        const bool in_low_bits = in_word >= 32 - MANTISSA && in_word + bits <= 32;
        if (!in_low_bits && first + bits > shifted + MANTISSA)
            shifted = first;
        if (s == sample)
            return in_low_bits ? first - in_word + 32 - MANTISSA : shifted;
    }
}

{% include "lib/bits.cuh" %}

// Returns sample number SAMPLE of a group. Its words have their most significant byte first.
template <int BITS, int SAMPLE>
__device__ __forceinline__ float unpack(const unsigned* words)
{
    constexpr int start = window_start(BITS, SAMPLE);
    constexpr int word = start / 32;
    constexpr int past = start % 32 + MANTISSA - 32;  // bits of the window in the next word, if positive
    constexpr int position = start + MANTISSA - (SAMPLE + 1) * BITS;  // place of the field's lowest bit
    constexpr unsigned mask = ((1u << BITS) - 1) << position;
    constexpr unsigned sign_and_exponent = (1u << (position + BITS - 1)) | (127u + MANTISSA - position) << MANTISSA;
    constexpr float bias = static_cast<float>((1 << (MANTISSA - position)) + (1 << (BITS - 1)));
    unsigned window;
    if constexpr (past > 0)
        window = __funnelshift_r(words[word + 1], words[word], 32 - past);
    else
        window = words[word] >> -past;
    return __uint_as_float(and_xor(window, mask, sign_and_exponent)) - bias;
}

// Unpacks samples [FIRST, FIRST + COUNT) of a group.
template <int BITS, int FIRST, int COUNT>
__device__ __forceinline__ void unpack_run(const unsigned* words, float* samples)
{
    if constexpr (COUNT > 0) {
        samples[0] = unpack<BITS, FIRST>(words);
        unpack_run<BITS, FIRST + 1, COUNT - 1>(words, samples + 1);
    }
}

// How the words of a tile are loaded, which depends on their place in the buffer.
enum class Loads {
    ALIGNED,  // the tile starts at a multiple of 16 bytes and lies inside the buffer: the widest loads
    INSIDE,  // the tile starts at any byte and ends at least 4 bytes before the end of the buffer
    GUARDED,  // the tile is near the end of the buffer, and no load may pass the end
};

__device__ __forceinline__ Loads loads_of(long long offset, long long span, long long n_bytes)
{
    if (offset + span + 4 > n_bytes)
        return Loads::GUARDED;
    return offset % 16 == 0 ? Loads::ALIGNED : Loads::INSIDE;
}

// Returns the 32-bit word at `offset`, a multiple of 4. Bytes from n_bytes on are not read; they become 0.
__device__ __forceinline__ unsigned load_guarded(const unsigned char* bytes, long long offset, long long n_bytes)
{
    if (offset + 4 <= n_bytes)
        return __ldg(reinterpret_cast<const unsigned*>(bytes + offset));
    unsigned word = 0;
    for (int i = 0; i < 3; ++i)
        if (offset + i < n_bytes)
            word |= static_cast<unsigned>(__ldg(bytes + offset + i)) << 8 * i;
    return word;
}

// Returns the width of the widest load, in words, that cuts `words` words into equal parts.
__host__ __device__ constexpr int load_width(int words)
{
    return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
}

// Loads WORDS words from an address that is a multiple of load_width(WORDS) words.
template <int WORDS>
__device__ __forceinline__ void load_aligned(unsigned* words, const unsigned char* address)
{
    constexpr int WIDTH = load_width(WORDS);
#pragma unroll
    for (int i = 0; i < WORDS; i += WIDTH) {
        if constexpr (WIDTH == 4) {
            const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(address + 4 * i));
            words[i] = loaded.x, words[i + 1] = loaded.y, words[i + 2] = loaded.z, words[i + 3] = loaded.w;
        } else if constexpr (WIDTH == 2) {
            const uint2 loaded = __ldg(reinterpret_cast<const uint2*>(address + 4 * i));
            words[i] = loaded.x, words[i + 1] = loaded.y;
        } else {
            words[i] = __ldg(reinterpret_cast<const unsigned*>(address + 4 * i));
        }
    }
}

// Loads WORDS words from byte `offset` on and puts the most significant byte of each first. If `loads` is ALIGNED, the
// address is a multiple of load_width(WORDS) words. MAY_BE_GUARDED: `loads` may be GUARDED. Code for guarded loads is
// long, so callers that never need it leave it out.
template <int WORDS, bool MAY_BE_GUARDED>
__device__ __forceinline__ void load_words(
    unsigned* words, const unsigned char* __restrict__ bytes, long long offset, long long n_bytes, Loads loads)
{
    unsigned loaded[WORDS + 1];
    loaded[WORDS] = 0;
    if (loads == Loads::ALIGNED) {
        load_aligned<WORDS>(loaded, bytes + offset);
    } else if (!MAY_BE_GUARDED || loads == Loads::INSIDE) {
#pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            loaded[i] = __ldg(reinterpret_cast<const unsigned*>(bytes + (offset & ~3ll) + 4 * i));
    } else {
#pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            loaded[i] = load_guarded(bytes, (offset & ~3ll) + 4 * i, n_bytes);
    }
    const unsigned selector = 0x0123 + 0x1111 * static_cast<unsigned>(offset & 3);  // skips bytes and reverses four
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        words[i] = __byte_perm(loaded[i], loaded[i + 1], selector);
}
