// Two samples that are the parts of one complex point, as floats: integers, times SAMPLE_SCALE.
// A field of SAMPLE_BITS becomes the top of the mantissa of a number in [1, 2), its sign bit turned over:
//     as_float((bits & FIELD) ^ PATTERN) = 1.5 + sample 2^-SAMPLE_BITS
// and one exact subtraction leaves the sample.
constexpr float SAMPLE_SCALE = COMPLEX ? 1.0f : 1.0f / (1 << SAMPLE_BITS % 32);
constexpr int ROW_WORDS = COMPLEX ? 2 * STEP : STEP / 32 * SAMPLE_BITS;  // from one row of STEP samples to the next
constexpr bool NARROW = SAMPLE_BITS <= 12;  // two samples lie in four bytes, wherever they begin

__device__ __forceinline__ float exact_float(unsigned bits)
{
    constexpr unsigned FIELD = ((1u << SAMPLE_BITS % 32) - 1) << (COMPLEX ? 0 : 23 - SAMPLE_BITS);
    return __uint_as_float(and_xor(bits, FIELD, 0x3fc00000u)) - 1.5f;
}

constexpr int POINT_BITS = COMPLEX ? 64 : 2 * SAMPLE_BITS;

// The point that begins at bit `bit` of a, which b follows.
__device__ __forceinline__ float2 unpacked(unsigned a, unsigned b, unsigned bit)
{
    if constexpr (NARROW && SAMPLE_BITS >= 9) {
        const unsigned four = __byte_perm(a, b, 0x0123 + 0x1111 * (bit / 8));  // skips bytes, and reverses four
        return make_float2(exact_float(four >> (9 - bit % 8)), exact_float(four << (SAMPLE_BITS % 32 - 9 + bit % 8)));
    } else {
        unsigned top;  // the first sample's sign bit is its highest
        if constexpr (NARROW)
            top = __byte_perm(a, b, 0x0123 + 0x1111 * (bit / 8)) << bit % 8;
        else
            top = __funnelshift_l(__byte_perm(b, 0, 0x0123), __byte_perm(a, 0, 0x0123), bit);
        return make_float2(exact_float(top >> 9), exact_float(top << SAMPLE_BITS % 32 >> 9));
    }
}

// A word of samples. What surrounds it, up to 256 bytes, comes to the L2 cache with it: other blocks want it soon.
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

// Brings a line of memory to the L2 cache, for a block that wants it soon.
constexpr int LINE = 128;
__device__ __forceinline__ void fetch_line(const unsigned char* at)
{
#ifdef AUTOTUNE_HOST
    static_cast<void>(__ldg(at));  // it must lie in the buffer
#else
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
#endif
}

// Points of one column in global memory: point number `row` is `row` STEP samples further on.
// GUARDED: the words may lie beyond the end, where they are 0.
template <bool GUARDED>
class Column {
public:
    // first_bit: of the first point, among all streams' samples, of which there are n_bytes.
    __device__ __forceinline__ Column(const unsigned char* __restrict__ samples, long long first_bit, long long n_bytes)
        : words(reinterpret_cast<const unsigned*>(samples) + first_bit / 32),
          bit(static_cast<unsigned>(first_bit) % 32),
          second(bit + POINT_BITS > 32),
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
            return unpacked(a, b, bit);
        }
    }

    // Whether the words of a point lie before the end.
    __device__ __forceinline__ bool is_inside(int row) const
    {
        return (row * static_cast<long long>(ROW_WORDS) + 1 + second) * 4 <= left;
    }

private:
    const unsigned* words;  // of the first point
    unsigned bit;  // of the first word, in which it begins
    int second;  // 1 if it goes on in the next word, of which nothing is wanted else
    long long left;  // bytes from there to the end

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

// A sum of squares of samples. A float holds it exactly where Squares is one.
__device__ __forceinline__ void add_squares(Squares& sum, float2 point)
{
    if constexpr (FLOAT_SQUARES) {
        sum = static_cast<Squares>(__fmaf_rn(point.x, point.x, __fmaf_rn(point.y, point.y, static_cast<float>(sum))));
    } else {
        const int a = __float2int_rn(point.x * (1.0f / SAMPLE_SCALE)), b = __float2int_rn(point.y * (1.0f / SAMPLE_SCALE));
        sum += static_cast<unsigned>(a * a);
        sum += static_cast<unsigned>(b * b);
    }
}

__device__ __forceinline__ unsigned long long whole(Squares sum)
{
    if constexpr (FLOAT_SQUARES)
        return static_cast<unsigned>(static_cast<float>(sum) * (1.0f / (SAMPLE_SCALE * SAMPLE_SCALE)));
    else
        return static_cast<unsigned long long>(sum);
}
