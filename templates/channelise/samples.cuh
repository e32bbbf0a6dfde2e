// Samples in global memory become points: two samples are the real and imaginary parts of a point, as floats.
// Needs     lib/bits.cuh (and_xor)
// Provides  SAMPLE_SCALE; Column: at, is_inside; fetch_bytes
constexpr float SAMPLE_SCALE = COMPLEX ? 1.0f : 1.0f / (1 << SAMPLE_BITS % 32);  // the float of a sample of 1
constexpr bool NARROW = SAMPLE_BITS <= 12;  // two samples lie in four bytes, wherever they begin
constexpr bool IN_BYTES = SAMPLE_BITS <= 8;  // two samples also lie in the 23 bits of a mantissa, with suitable bytes
constexpr bool IN_PLACE = {{ "true" if config.UNPACKING == "in_place" else "false" }};

// A field of SAMPLE_BITS with its sign bit inverted becomes the highest bits of the mantissa of a number in [1, 2):
//     as_float((bits & mask) ^ pattern) = 1.5 + sample 2^-SAMPLE_BITS
// One exact subtraction leaves the sample. A field e bits further down becomes part of a number in [2^e, 2^(e+1)).
struct Field {
    unsigned mask;
    float offset;  // 2^e + 0.5: its bits are the pattern

    __device__ __forceinline__ explicit Field(int e = 0)
        : mask(((1u << SAMPLE_BITS % 32) - 1) << (COMPLEX ? 0 : 23 - SAMPLE_BITS) >> e),
          offset(__uint_as_float(0x3f800000u + (e << 23)) + 0.5f)
    {
    }

    __device__ __forceinline__ float sample(unsigned bits) const
    {
        return __uint_as_float(and_xor(bits, mask, __float_as_uint(offset))) - offset;
    }
};

// Unpacks two samples that begin at bit `bit` of a word and may end in the next word.
class Unpacking {
public:
    __device__ __forceinline__ explicit Unpacking(unsigned bit)
    {
        const int skipped = bit % 8;  // bits of the first byte
        if constexpr (IN_BYTES) {
            const int down = skipped == 0 ? 2 : 1, e = 8 * down + skipped - 9;  // down in bytes, so that e is 0 to 7
            selector = (0x0123 + 0x1111 * (bit / 8)) >> 4 * down;
            first = Field(e), second = Field(e + SAMPLE_BITS);
        } else if constexpr (NARROW) {
            selector = 0x0123 + 0x1111 * (bit / 8);
            right = 9 - skipped, left = SAMPLE_BITS - right;
            second = Field(IN_PLACE ? left : 0);
        } else {
            left = bit;
        }
    }

    // Returns the point that begins in word a. Word b follows a.
    __device__ __forceinline__ float2 point(unsigned a, unsigned b) const
    {
        if constexpr (NARROW) {
            const unsigned four = __byte_perm(a, b, selector);  // bytes, the first one highest
            return make_float2(
                first.sample(IN_BYTES ? four : four >> right),
                second.sample(IN_BYTES || IN_PLACE ? four : four << left));
        } else {
            const unsigned top = __funnelshift_l(__byte_perm(b, 0, 0x0123), __byte_perm(a, 0, 0x0123), left);
            return make_float2(first.sample(top >> 9), second.sample(top << (SAMPLE_BITS - 9) % 32));
        }
    }

private:
    unsigned selector, right, left;  // selects four bytes of two words; shifts of both samples, in bits
    Field first, second;
};

// Loads a word of samples. The 256 bytes around it are loaded into the L2 cache, since other blocks need them soon.
__device__ __forceinline__ unsigned load_word(const unsigned* from)
{
#ifdef AUTOTUNE_HOST
    return __ldg(from);
#else
    unsigned word;
    asm("ld.global.nc.L2::256B.u32 %0, [%1];" : "=r"(word) : "l"(from));
    return word;
#endif
}

// Loads bytes [first, end) into the L2 cache, for a block that needs them soon. All N threads of a block call it.
template <int N>
__device__ __forceinline__ void fetch_bytes(const unsigned char* base, long long first, long long end)
{
    constexpr int LINE = 128;
    for (long long at = first + threadIdx.x * LINE; at < end; at += N * LINE) {
#ifdef AUTOTUNE_HOST
        static_cast<void>(__ldg(base + at));  // checks that it lies in the buffer
#else
        asm volatile("prefetch.global.L2 [%0];" : : "l"(base + at));
#endif
    }
}

// The points of one column in global memory: point number `row` begins `row` STEP samples behind the first one.
// GUARDED: words may lie beyond the end of the buffer; they count as 0.
template <bool GUARDED>
class Column {
public:
    // first_bit: bit at which the first point begins, in the samples of all streams; n_bytes: size of these samples.
    __device__ __forceinline__ Column(const unsigned char* __restrict__ samples, long long first_bit, long long n_bytes)
        : words(reinterpret_cast<const unsigned*>(samples) + first_bit / 32),
          unpacking(static_cast<unsigned>(first_bit) % 32),
          second(static_cast<unsigned>(first_bit) % 32 + POINT_BITS > 32),
          left(n_bytes - first_bit / 32 * 4)
    {
    }

    __device__ __forceinline__ float2 at(int row) const
    {
        const unsigned* from = words + static_cast<long long>(row) * ROW_WORDS;
        if constexpr (COMPLEX) {
            if (GUARDED && !is_inside(row))
                return make_float2(0.0f, 0.0f);
            return __ldg(reinterpret_cast<const float2*>(from));
        } else {
            const unsigned a = GUARDED ? guarded(row * (4ll * ROW_WORDS)) : load_word(from);
            const unsigned b = GUARDED ? guarded(row * (4ll * ROW_WORDS) + 4) : load_word(from + second);
            return unpacking.point(a, b);
        }
    }

    // Returns whether the words of a point lie before the end.
    __device__ __forceinline__ bool is_inside(int row) const
    {
        return (row * static_cast<long long>(ROW_WORDS) + 1 + second) * 4 <= left;
    }

private:
    const unsigned* words;  // first word of the first point
    Unpacking unpacking;
    int second;  // 1 if a point ends in the next word; if 0, the next word is not needed
    long long left;  // bytes from `words` to the end

    __device__ __forceinline__ unsigned guarded(long long offset) const
    {
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(words);
        if (offset + 4 <= left)
            return __ldg(reinterpret_cast<const unsigned*>(bytes + offset));
        unsigned word = 0;
        for (int i = 0; i < 4; ++i)
            if (offset + i < left)
                word |= static_cast<unsigned>(__ldg(bytes + offset + i)) << 8 * i;
        return word;
    }
};
