// Accumulators of bytes, by wgmma_int8: exact sums in int32, those of byte i of the weights worth 2^8i.
// Needs     Shape; Weights: WeightBytes, which says in which columns they are
// Provides  AccumulatorsBytes: as AccumulatorsHalves of accumulators_halves.cuh
// A column for each of the three bytes of the weights, of the real and of the imaginary part of each output, byte after
// byte of a tile of up to four outputs. Samples of more than 8 bits are two bytes, and have columns of zeros behind
// these: the lower byte is multiplied with all, and the upper one, which is worth 2^8 times as much, with those that
// start a byte earlier. Tiles of two outputs have such zeros in any case, for whole octets.
// A lane's numbers are of its first row, the warp's row `lane` / 4, and, if it has numbers of two, of the row 8
// further.
template <class Shape, class Weights>
struct AccumulatorsBytes {
    typedef int Sum;
    static constexpr int TILE_ROWS = Shape::OUTPUTS_PER_STEP == 2 ? 1 : 2;
    static constexpr int NUMBERS_PER_TILE = Shape::OUTPUTS_PER_STEP;  // both parts of an output, of TILE_ROWS rows
    // Two bytes of a number add up in an int.
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

    // Whole warps call it: lanes have two bytes of both rows' numbers in tiles of two outputs, and trade them.
    __device__ __forceinline__ static void numbers_of(float (&numbers)[NUMBERS_PER_TILE], const Sum* tile, int lane)
    {
        constexpr int BYTES = Weights::BYTES_PER_WEIGHT;
        if constexpr (TILE_ROWS == 2) {
#pragma unroll
            for (int i = 0; i < NUMBERS_PER_TILE; ++i) {
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

    __device__ __forceinline__ static void pin(Sum& sum)
    {
#ifndef AUTOTUNE_HOST
        asm volatile("" : "+r"(sum));
#endif
    }
};
