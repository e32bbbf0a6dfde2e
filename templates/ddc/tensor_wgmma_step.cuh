// What steps by wgmma are made of, whatever their products are, and whether chains of them are cut.

// Wait for the products. To the compiler they are over where they start: what uses the sums must not move to before
// here.
__device__ __forceinline__ void wait_for_sums(Sums& sums)
{
    wait_for_products<0>();
#ifndef AUTOTUNE_HOST
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i)
        asm volatile("" : "+{{ register }}"(sums[i]));
#endif
}

// A lane's numbers of the outputs of a tile: what they are made of, and where they go. They are of its first row, the
// warp's row `lane` / 4, and, if it has numbers of two, of the row 8 further.
{% if element == "s8" %}
constexpr int TILE_ROWS = STEP == 2 ? 1 : 2;
constexpr bool TWO_ADD_UP = 257ll * (SAMPLE_BYTES == 1 ? 128 : 383) * 128 * TAPS < 1ll << 31;  // of a number's bytes
constexpr int TILE_NUMBERS = STEP;  // both parts of an output, of TILE_ROWS rows
typedef float Numbers[TILE_NUMBERS];

__device__ __forceinline__ int first_row_of(int lane)
{
    return TILE_ROWS == 2 ? lane / 4 : lane / 4 + lane % 4 / 2 * 8;
}

__device__ __forceinline__ int first_number_of(int lane)
{
    return TILE_ROWS == 2 ? lane % 4 * 2 : lane % 2 * 2;
}

__host__ __device__ constexpr int row_of(int i)
{
    return i % 4 / 2 * (TILE_ROWS - 1);
}

__host__ __device__ constexpr int place_of(int i)
{
    return i / 4 * 8 + i % 2;
}

// By whole warps. Of tiles of two outputs, lanes have two bytes of both rows' numbers: they trade them.
__device__ __forceinline__ void numbers_of(Numbers& numbers, const Sum* tile, int lane)
{
    if constexpr (TILE_ROWS == 2) {
#pragma unroll
        for (int i = 0; i < TILE_NUMBERS; ++i) {
            const Sum* const bytes = tile + i / 4 * (4 * BYTES) + i % 4;  // 4 from one to the next
            float number = static_cast<float>(bytes[4 * (BYTES - 1)]);
            if constexpr (TWO_ADD_UP) {
                if constexpr (BYTES == 4)
                    number = static_cast<float>(bytes[8] + bytes[12] * 256);
                number = fmaf(number, 0x1p16f, static_cast<float>(bytes[0] + bytes[4] * 256));
            } else {
#pragma unroll
                for (int b = BYTES - 2; b >= 0; --b)
                    number = fmaf(number, 0x1p8f, static_cast<float>(bytes[4 * b]));
            }
            numbers[i] = number;
        }
    } else {
        const bool has_odd = lane % 4 >= 2;  // bytes 1 and 3, or 0 and 2
        const float worth = has_odd ? 0x1p8f : 1.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const Sum* const low = tile + i;
            const float first = fmaf(static_cast<float>(low[4]), 0x1p16f, static_cast<float>(low[0])) * worth;
            const float second = fmaf(static_cast<float>(low[6]), 0x1p16f, static_cast<float>(low[2])) * worth;
            numbers[i] = (has_odd ? second : first) + __shfl_xor_sync(0xffffffff, has_odd ? first : second, 2);
        }
    }
}
{% else %}
constexpr int TILE_NUMBERS = OCTETS * 2;  // a part of an output of each octet, of two rows
typedef float Numbers[TILE_NUMBERS];

__device__ __forceinline__ int first_row_of(int lane)
{
    return lane / 4;
}

__device__ __forceinline__ int first_number_of(int lane)
{
    return lane % 4;
}

__host__ __device__ constexpr int row_of(int i)
{
    return i % 2;
}

__host__ __device__ constexpr int place_of(int i)
{
    return i / 2 * 4;
}

__device__ __forceinline__ void numbers_of(Numbers& numbers, const Sum* tile, int lane)
{
#pragma unroll
    for (int i = 0; i < TILE_NUMBERS; ++i)
        numbers[i] = tile[i * 2] + tile[i * 2 + 1] * 0x1p-11f;
}
{% endif %}

// The outputs of a tile, to the lane's first one of its first row.
__device__ __forceinline__ void put_tile(float* to, const Sum* tile, int lane)
{
    Numbers numbers;
    numbers_of(numbers, tile, lane);
#pragma unroll
    for (int i = 0; i < TILE_NUMBERS; ++i)
        to[row_of(i) * (8 * WINDOW_PITCH) + place_of(i)] = numbers[i];
}

// Those of the tile at PLACE; zeros are left for the next tile.
template <int PLACE>
__device__ __forceinline__ void put_outputs(float* to, Sums& sums, int lane, Sum zero = 0)
{
    Sum* const tile = sums + PLACE * OCTETS * 4;
    put_tile(to, tile, lane);
#pragma unroll
    for (int i = 0; i < OCTETS * 4; ++i)
        tile[i] = zero;
}

// What products take: unpacking leaves its last instruction to here. ptxas lets products go on while the next samples
// are made only if their registers are written by an instruction that it cannot leave out, behind any branch.
// Of the first `n` of N operands.
template <int N>
__device__ __forceinline__ void take_samples(
    unsigned (&taken)[N][4], const unsigned (&samples)[N][4], const Decoder& decoder, int n = N)
{
#pragma unroll
    for (int i = 0; i < N * 4; ++i) {
        if (i >= n * 4)
            continue;
        const unsigned own = samples[i / 4][i % 4];
        unsigned& to = taken[i / 4][i % 4];
{% if element == "s8" %}
        const unsigned top_bits = decoder.top_bits[i / 4 % SAMPLE_BYTES];
#ifdef AUTOTUNE_HOST
        to = own & top_bits;
#else
        asm volatile("and.b32 %0, %1, %2;" : "=r"(to) : "r"(own), "r"(top_bits));
#endif
{% else %}
#ifdef AUTOTUNE_HOST
        to = unbiased(own);
#else
        asm volatile("add.f16x2 %0, %1, %2;" : "=r"(to) : "r"(own), "r"(BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001));
#endif
{% endif %}
    }
}
