// Accumulators of bytes, by wgmma_int8: exact sums in int32. A sum of products with byte i of the weights is worth
// 2^(8 i).
// Needs     Shape; Weights: WeightBytes, which says in which columns the bytes are
// Provides  AccumulatorsBytes: the same names as AccumulatorsHalves of accumulators_halves.cuh
// There is a column for each of the three bytes of the weights and each part, real and imaginary, of an output. In a
// tile of up to four outputs, all columns of byte 0 come first, then those of byte 1, then those of byte 2. If samples
// have more than 8 bits, they are two bytes, and columns of zeros follow: the lower byte is multiplied by all columns,
// and the upper byte, which is worth 2^8 times as much, by the columns from one byte earlier on. Tiles of two outputs
// always have these zeros, for whole octets.
// A lane has numbers of its first row, which is the warp's row `lane` / 4. If TILE_ROWS is 2, it also has numbers of
// the row 8 further on.
template <class Shape, class Weights>
struct AccumulatorsBytes {
    typedef int Sum;
    static constexpr int TILE_ROWS = Shape::OUTPUTS_PER_STEP == 2 ? 1 : 2;
    static constexpr int NUMBERS_PER_TILE = Shape::OUTPUTS_PER_STEP;  // both parts of an output, in TILE_ROWS rows
    // Whether the sums of two bytes of a number add up in an int.
    static constexpr bool TWO_ADD_UP = 257ll * (Shape::OPERANDS_PER_SAMPLE == 1 ? 128 : 383) * 128 * TAPS < 1ll << 31;

    __device__ __forceinline__ static int first_row_of(int lane)
    {
        return TILE_ROWS == 2 ? lane / 4 : lane / 4 + lane % 4 / 2 * 8;
    }

    __device__ __forceinline__ static int first_number_of(int lane)
    {
        return TILE_ROWS == 2 ? lane % 4 * 2 : lane % 2 * 2;
    }

    __host__ __device__ static constexpr int row_of(int i)
    {
        return i % 4 / 2 * (TILE_ROWS - 1);
    }

    __host__ __device__ static constexpr int place_of(int i)
    {
        return i / 4 * 8 + i % 2;
    }

    // Converts the sums of a tile to the lane's numbers. All lanes of a warp call it: in tiles of two outputs, a lane
    // has sums of two of the bytes, for both rows, and exchanges half of them with another lane.
    __device__ __forceinline__ static void numbers_of(float (&numbers)[NUMBERS_PER_TILE], const Sum* tile, int lane)
    {
        constexpr int BYTES = Weights::BYTES_PER_WEIGHT;
        if constexpr (TILE_ROWS == 2) {
#pragma unroll
            for (int i = 0; i < NUMBERS_PER_TILE; ++i) {
                const Sum* const bytes = tile + i / 4 * (4 * BYTES) + i % 4;  // sums of a number's bytes lie 4 apart
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

    __device__ __forceinline__ static void pin(Sum& sum)
    {
#ifndef AUTOTUNE_HOST
        asm volatile("" : "+r"(sum));
#endif
    }
};
