// The product of a warp, by mma.sync: pairs of octets of a block's receivers, as a table shares them between the warps.
// Needs     triangle.cuh (Block), octet.cuh (Octet, lane_offset, load_octet), operands.cuh (plain_words, turned_words),
//           lowest.cuh (Lowest), deliver.cuh (baseline_of, deliver), lib/mma.cuh (mma)
// Provides  WarpProduct: is_needed, counts, clear, add_stage, store
// The table is made by kernels/correlate/shares.py. Each warp has code of its own for its products, and all have the
// same for results. Operands and sums of a pair are those of warp_product.cuh.

constexpr int MOST_OCTETS = RECEIVERS_J / 8;

// The octets of rows (later receivers) and of columns (earlier ones) of a warp; for each column, a bit for each row that
// meets it.
struct WarpShare {
    int n_rows, n_columns;
    int rows[MOST_OCTETS], columns[MOST_OCTETS];
    unsigned wanted[MOST_OCTETS];
};

// Returns the share of a warp, or from number WARPS on of a warp of a block that is not on the diagonal.
__host__ __device__ constexpr WarpShare share_of_warp(int number)
{
    constexpr WarpShare SHARES[] = {
{% for share in shares %}
        {{ share }},
{% endfor %}
    };
    return SHARES[number];
}

// The octets of each pair, row and column, in the order of sums; -1 where a warp has fewer.
__constant__ const signed char PAIRS[][PAIRS_PER_WARP][2] = {
{% for pairs in pairs_of_shares %}
    {{ pairs }},
{% endfor %}
};
// The first octet of the rows of each.
__constant__ const signed char FIRST_ROWS[] = {{ first_rows }};

struct WarpProduct {
    Sum sums[PAIRS_PER_WARP][2][2][4];  // [..][polarisation of i][re, im][lane's own]
    Block block;
    int share;
    bool square;  // whether the block is on the diagonal

    __device__ __forceinline__ WarpProduct(const Block& block, bool square)
        : block(block), share(threadIdx.x / 32 + (square ? 0 : WARPS)), square(square)
    {
    }

    // Returns false for a warp whose receivers are all past the last one: it only copies.
    __device__ __forceinline__ bool is_needed() const { return block.first_j + FIRST_ROWS[share] * 8 < N_RECEIVERS; }

    // Returns whether the lowest integers are counted in this block: in one for each later receiver.
    __device__ __forceinline__ bool counts() const { return block.first_i == 0; }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < PAIRS_PER_WARP * 16; ++i)
            (&sums[0][0][0][0])[i] = 0;
    }

    // Adds the products of one unit. j, i: the lane's parts of the first octets of the block. A row is counted where it
    // meets the first column.
    template <int SHARE>
    __device__ __forceinline__ void add_unit(const unsigned char* j, const unsigned char* i, Lowest& lowest)
    {
        constexpr WarpShare own = share_of_warp(SHARE);
        Octet rows[own.n_rows];
#pragma unroll
        for (int k = 0; k < own.n_rows; ++k)
            rows[k] = load_octet<false>(j + own.rows[k] * 8 * UNIT_BYTES);
        if constexpr (own.columns[0] == 0) {
#pragma unroll
            for (int k = 0; k < own.n_rows; ++k)
                if (own.wanted[0] >> k & 1)
                    lowest.add(rows[k]);
        }
        int pair = 0;
#pragma unroll
        for (int column = 0; column < own.n_columns; ++column) {
            const Octet octet = load_octet<true>(i + own.columns[column] * 8 * UNIT_BYTES);
#pragma unroll
            for (int product = 0; product < PRODUCTS_PER_UNIT; ++product) {
                unsigned plain[2][2], turned[2][2];
#pragma unroll
                for (int pol = 0; pol < 2; ++pol) {
                    plain_words(plain[pol], octet.words[pol], product);
                    turned_words(turned[pol], octet.words[pol], product);
                }
                int of_column = pair;
#pragma unroll
                for (int row = 0; row < own.n_rows; ++row) {
                    if (!(own.wanted[column] >> row & 1))
                        continue;
                    unsigned a[2][2], operand[4];
                    plain_words(a[0], rows[row].words[0], product);
                    plain_words(a[1], rows[row].words[1], product);
                    operand[0] = a[0][0], operand[1] = a[1][0], operand[2] = a[0][1], operand[3] = a[1][1];
#pragma unroll
                    for (int pol = 0; pol < 2; ++pol) {
                        mma(sums[of_column][pol][0], operand, plain[pol]);
                        mma(sums[of_column][pol][1], operand, turned[pol]);
                    }
                    ++of_column;
                }
            }
#pragma unroll
            for (int row = 0; row < own.n_rows; ++row)
                pair += own.wanted[column] >> row & 1;
        }
    }

    template <int SHARE>
    __device__ __forceinline__ void add_units(const unsigned char* stage, Lowest& lowest)
    {
        const unsigned char* j = stage + lane_offset<false>();
        const unsigned char* i = stage + lane_offset<true>() + (square ? 0 : UNITS_J);
#pragma unroll UNITS_UNROLLED  // the code of all shares is fetched in turns
        for (int unit = 0; unit < UNITS_PER_STAGE; ++unit)
            add_unit<SHARE>(j + unit * ALL_UNITS, i + unit * ALL_UNITS, lowest);
    }

    // Adds the products of a stage.
    __device__ __forceinline__ void add_stage(const unsigned char* stage, Lowest& lowest)
    {
        switch (share) {
{% for share in shares %}
        case {{ loop.index0 }}:
            add_units<{{ loop.index0 }}>(stage, lowest);
            break;
{% endfor %}
        }
    }

    // Delivers all sums. results: of the slice and channel.
    __device__ __forceinline__ void store(Result* results) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int pair = 0; pair < PAIRS_PER_WARP; ++pair) {
            const int row = PAIRS[share][pair][0], first = block.first_i + PAIRS[share][pair][1] * 8;
            if (row < 0)
                return;
            const int j = block.first_j + row * 8 + lane / 4;
            Result* of_j = results + static_cast<long long>(j * (j + 1) / 2) * 8;
#pragma unroll
            for (int column = 0; column < 2; ++column)
                deliver(of_j, baseline_of(sums[pair], column), first, column, j, lane);
        }
    }
};
