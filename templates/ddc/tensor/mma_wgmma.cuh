// MMA, by wgmma: the products of a warpgroup's samples with all blocks of weights of a step, and its sums.
// Needs     Shape; Accumulators; lib/wgmma.cuh (multiply, multiply_u8, wait_for_products)
// Provides  Wgmma: Sums; product, and product_of_lower for the lower bytes of samples; wait, for all products;
//           finish, the last instruction of decoding; put_tile and put_place, from sums to the window
template <class Shape, class Accumulators>
struct Wgmma {
    typedef typename Accumulators::Sum Sum;
    typedef Sum Sums[Shape::COLUMNS_PER_MMA / 2];  // [N_TILES][OCTETS_PER_TILE][4]: tiles
    static constexpr int SUMS_PER_TILE = Shape::OCTETS_PER_TILE * 4;

    // Starts a product, which adds to the sums or begins them.
    template <bool ADDS>
    __device__ __forceinline__ static void product(Sums& sums, const unsigned (&a)[4], unsigned long long b)
    {
        multiply<Shape::COLUMNS_PER_MMA, ADDS>(sums, a, b);
    }

{% if shape.operands_per_sample > 1 %}
    // Starts a product of the lower bytes of samples, which are unsigned.
    __device__ __forceinline__ static void product_of_lower(Sums& sums, const unsigned (&a)[4], unsigned long long b)
    {
        multiply_u8<Shape::COLUMNS_PER_MMA>(sums, a, b);
    }

{% endif %}
    // Waits for all products. The compiler takes a product for complete where it starts, so pins keep uses of the sums
    // behind the wait.
    __device__ __forceinline__ static void wait(Sums& sums)
    {
        wait_for_products<0>();
#pragma unroll
        for (int i = 0; i < Shape::COLUMNS_PER_MMA / 2; ++i)
            Accumulators::pin(sums[i]);
    }

    // Finishes the first `n` of N operands of products, by the last instruction of decoding. ptxas lets products run
    // while the next samples are decoded only if an instruction that it cannot leave out writes the operands'
    // registers, behind any branch.
    template <int N, class Decode>
    __device__ __forceinline__ static void finish(
        unsigned (&taken)[N][4], const unsigned (&decoded)[N][4], const Decode& decode, int n = N)
    {
#pragma unroll
        for (int i = 0; i < N * 4; ++i) {
            if (i >= n * 4)
                continue;
            taken[i / 4][i % 4] = decode.finished(decoded[i / 4][i % 4], i / 4);
        }
    }

    // Puts the outputs of a tile into the window. `to` is the place of the lane's first number in its first row.
    __device__ __forceinline__ static void put_tile(float* to, const Sum* tile, int lane)
    {
        float numbers[Accumulators::NUMBERS_PER_TILE];
        Accumulators::numbers_of(numbers, tile, lane);
#pragma unroll
        for (int i = 0; i < Accumulators::NUMBERS_PER_TILE; ++i)
            to[Accumulators::row_of(i) * (8 * Shape::WINDOW_PITCH) + Accumulators::place_of(i)] = numbers[i];
    }

    // Puts the outputs of the tile at PLACE into the window and sets its sums to zero for the next tile.
    template <int PLACE>
    __device__ __forceinline__ static void put_place(float* to, Sums& sums, int lane, Sum zero = 0)
    {
        Sum* const tile = sums + PLACE * SUMS_PER_TILE;
        put_tile(to, tile, lane);
#pragma unroll
        for (int i = 0; i < SUMS_PER_TILE; ++i)
            tile[i] = zero;
    }
};
