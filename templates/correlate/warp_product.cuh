// The product of a warp, by mma.sync: OCTETS_J x OCTETS_I octets of a block's receivers.
// Needs     octet.cuh (Octet, load_octet), operands.cuh (plain_words, turned_words), lowest.cuh (Lowest),
//           deliver.cuh (baseline_of, deliver), lib/mma.cuh (mma)
// Provides  WarpProduct: clear, add_unit, store
// Rows of A: polarisation a of an octet of later receivers, then b of the same;
// columns of B: one polarisation of an octet of earlier receivers, plain for real parts and turned for imaginary ones.
// So lane l4 .. l0 holds, of each pair of octets, all four products of later receiver l4 l3 l2 with earlier receivers
// 0 l1 l0 and 1 l1 ~l0.
struct WarpProduct {
    Sum sums[OCTETS_J][OCTETS_I][2][2][4];  // [..][polarisation of i][re, im][lane's own]

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < OCTETS_J * OCTETS_I * 16; ++i)
            (&sums[0][0][0][0][0])[i] = 0;
    }

    // Adds the products of one unit. j, i: the lane's parts of the first octets.
    __device__ __forceinline__ void add_unit(const unsigned char* j, const unsigned char* i, Lowest& lowest)
    {
        Octet columns[OCTETS_I], rows[OCTETS_J];
#pragma unroll
        for (int k = 0; k < OCTETS_I; ++k)
            columns[k] = load_octet<true>(i + k * 8 * UNIT_BYTES);
#pragma unroll
        for (int k = 0; k < OCTETS_J; ++k)
            rows[k] = load_octet<false>(j + k * 8 * UNIT_BYTES);
#pragma unroll
        for (int k = 0; k < OCTETS_J; ++k)
            lowest.add(rows[k]);
#pragma unroll
        for (int product = 0; product < PRODUCTS_PER_UNIT; ++product) {
            unsigned plain[OCTETS_I][2][2], turned[OCTETS_I][2][2];
#pragma unroll
            for (int k = 0; k < OCTETS_I * 2; ++k) {
                plain_words(plain[k / 2][k % 2], columns[k / 2].words[k % 2], product);
                turned_words(turned[k / 2][k % 2], columns[k / 2].words[k % 2], product);
            }
#pragma unroll
            for (int row = 0; row < OCTETS_J; ++row) {
                unsigned a[2][2], operand[4];
                plain_words(a[0], rows[row].words[0], product);
                plain_words(a[1], rows[row].words[1], product);
                operand[0] = a[0][0], operand[1] = a[1][0], operand[2] = a[0][1], operand[3] = a[1][1];
#pragma unroll
                for (int k = 0; k < OCTETS_I * 2; ++k) {
                    mma(sums[row][k / 2][k % 2][0], operand, plain[k / 2][k % 2]);
                    mma(sums[row][k / 2][k % 2][1], operand, turned[k / 2][k % 2]);
                }
            }
        }
    }

    // Delivers all sums. results: of the slice and channel; first_j, first_i: the warp's first receivers.
    __device__ __forceinline__ void store(Result* results, int first_j, int first_i) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int row = 0; row < OCTETS_J; ++row) {
            const int j = first_j + row * 8 + lane / 4;
            Result* of_j = results + static_cast<long long>(j * (j + 1) / 2) * 8;
#pragma unroll
            for (int k = 0; k < OCTETS_I * 2; ++k) {
                const int column = k % 2, first = first_i + k / 2 * 8;
                deliver(of_j, baseline_of(sums[row][k / 2], column), first, column, j, lane);
            }
        }
    }
};
