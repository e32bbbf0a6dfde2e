// Accumulators of halves, by wgmma: float32, whose columns are the high and the low part of the same number.
// Needs     Shape
// Provides  AccumulatorsHalves: Sum; which numbers of a finished tile a lane has (first_row_of, first_number_of,
//           row_of, place_of), and numbers_of, which makes them of its sums; pin
// A lane's numbers are of its first row, the warp's row `lane` / 4, and of the row 8 further.
template <class Shape>
struct AccumulatorsHalves {
    typedef float Sum;
    static constexpr int NUMBERS_PER_TILE = Shape::OCTETS_PER_TILE * 2;  // a part of an output of an octet, two rows

    __device__ __forceinline__ static int first_row_of(int lane)
    {
        return lane / 4;
    }

    __device__ __forceinline__ static int first_number_of(int lane)
    {
        return lane % 4;
    }

    // Returns 1 where number `i` is of the second row.
    __host__ __device__ static constexpr int row_of(int i)
    {
        return i % 2;
    }

    // Returns where number `i` goes in its row, from the lane's first one.
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

    // Keeps what uses the sum from moving to before this.
    __device__ __forceinline__ static void pin(Sum& sum)
    {
#ifndef AUTOTUNE_HOST
        asm volatile("" : "+f"(sum));
#endif
    }
};
