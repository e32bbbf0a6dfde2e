// Returns the bit at which row number `row` starts in its piece: `bit` for row 0, and for all rows if they are
// multiples of 16 bytes.
__device__ __forceinline__ unsigned row_start(unsigned bit, int row)
{
    return (bit + static_cast<unsigned>(row) * static_cast<unsigned>(ROW_BITS % 128)) % 128;
}

__host__ __device__ constexpr bool sum_fits_a_word(int bits, int n)
{
    return 2 * bits - 2 < 32 && (static_cast<long long>(n) << (2 * bits - 2)) < 1ll << 32;
}

// The sum of squares of the samples of a turn.
struct Squares {
    unsigned low = 0;
    unsigned long long high = 0;

    __device__ __forceinline__ void add(int sample)
    {
        const unsigned square = static_cast<unsigned>(sample * sample);
        if constexpr (sum_fits_a_word(SAMPLE_BITS, TAPS * COLUMNS))
            low += square;
        else
            high += square;
    }
    __device__ __forceinline__ unsigned long long sum() const { return high + low; }
};

// Reads the samples of a thread's columns from a row that starts at bit `start` of its piece, and adds their squares.
__device__ __forceinline__ void read_row(Value (&values)[COLUMNS], const uint4* piece, unsigned start, Squares& squares)
{
    const unsigned bit = start + threadIdx.x * (COLUMNS * SAMPLE_BITS);
    const unsigned* words = reinterpret_cast<const unsigned*>(piece) + bit / 32;
    if constexpr (COMPLEX) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const float2 value = reinterpret_cast<const float2*>(words)[i];
            values[i].at[0] = value.x, values[i].at[PARTS - 1] = value.y;
        }
    } else {
        constexpr int FIELD = COLUMNS * SAMPLE_BITS;
        constexpr int N_WORDS = ceil_div(FIELD, 32);
        unsigned field[N_WORDS];  // the thread's samples, from the first bit on
        if constexpr (FIELD + 7 <= 32) {  // they lie in four bytes
            const unsigned selector = 0x0123 + 0x1111 * (bit / 8 % 4);  // skips bytes and reverses four
            field[0] = __byte_perm(words[0], words[1], selector) << bit % 8;
        } else {
            unsigned ordered[N_WORDS + 1];
#pragma unroll
            for (int i = 0; i <= N_WORDS; ++i)
                ordered[i] = __byte_perm(words[i], 0, 0x0123);
#pragma unroll
            for (int i = 0; i < N_WORDS; ++i)
                field[i] = __funnelshift_l(ordered[i + 1], ordered[i], bit % 32);
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const int word = i * SAMPLE_BITS / 32, past = i * SAMPLE_BITS % 32;
            const unsigned top = past + SAMPLE_BITS <= 32
                ? field[word] << past
                : __funnelshift_l(field[(word + 1) % N_WORDS], field[word], past);
            const int sample = static_cast<int>(top) >> (32 - SAMPLE_BITS);
            values[i].at[0] = static_cast<float>(sample);
            squares.add(sample);
        }
    }
}

template <bool STREAMING, int N>
__device__ __forceinline__ void store(float* address, Floats<N> values)
{
    if constexpr (!STREAMING)
        store_floats(address, values);
    else if constexpr (N == 4)
        __stcs(reinterpret_cast<float4*>(address), make_float4(values.at[0], values.at[1], values.at[2], values.at[3]));
    else if constexpr (N == 2)
        __stcs(reinterpret_cast<float2*>(address), make_float2(values.at[0], values.at[1]));
    else
        __stcs(address, values.at[0]);
}

// Adds up `power` over the block, and adds the result to `total` by one atomic addition.
__device__ __forceinline__ void add_power(unsigned long long* total, unsigned long long power)
{
    __shared__ unsigned long long of_warps[WGS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        power += __shfl_xor_sync(0xffffffffu, power, step);
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = power;
    __syncthreads();  // the sums of all warps are stored
    if (threadIdx.x == 0) {
#pragma unroll
        for (int warp = 1; warp < WGS / 32; ++warp)
            power += of_warps[warp];
        atomicAdd(total, power);
    }
}
