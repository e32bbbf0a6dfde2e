// Accumulators of halves, by wgmma: sums in float32. Neighbouring columns are the high and the low part of one number.
// Needs     Shape
// Provides  AccumulatorsHalves: Sum; which numbers of a finished tile a lane has (first_row_of, first_number_of,
//           row_of, place_of), and numbers_of, which makes them of its sums; pin
// A lane has numbers of its first row, which is the warp's row `lane` / 4, and of the row 8 further on.
template <class Shape>
struct AccumulatorsHalves {
    typedef float Sum;
    static constexpr int NUMBERS_PER_TILE = Shape::OCTETS_PER_TILE * 2;  // a part of an output per octet, in two rows

    __device__ __forceinline__ static int first_row_of(int lane)
    {
        return lane / 4;
    }

    __device__ __forceinline__ static int first_number_of(int lane)
    {
        return lane % 4;
    }

    // Returns 1 if number `i` belongs to the second row, and otherwise 0.
    __host__ __device__ static constexpr int row_of(int i)
    {
        return i % 2;
    }

    // Returns the place of number `i` in its row of the window, counted from the lane's first number.
    __host__ __device__ static constexpr int place_of(int i)
    {
        return i / 2 * 4;
    }

    __device__ __forceinline__ static void numbers_of(float (&numbers)[NUMBERS_PER_TILE], const Sum* tile, int)
    {
#pragma unroll
        for (int i = 0; i < NUMBERS_PER_TILE; ++i)
            numbers[i] = tile[i * 2] + tile[i * 2 + 1] * 0x1p-11f;
    }

    // Keeps the compiler from moving a use of the sum to before this call.
    __device__ __forceinline__ static void pin(Sum& sum)
    {
#ifndef AUTOTUNE_HOST
        asm volatile("" : "+f"(sum));
#endif
    }
};
