constexpr int READ_AHEAD = {{ config.READ_AHEAD }};  // stages under way while one is used
constexpr int WARPS = {{ config.WARPS }};  // of a block
constexpr int WARPS_J = {{ config.WARPS_J }};  // that share its later receivers

constexpr int UNIT_TIMES = 128 / BITS;
constexpr int UNITS_J = RECEIVERS_J * UNIT_BYTES;  // bytes of a unit of all later receivers
constexpr int ALL_UNITS = UNITS_J + RECEIVERS_I * UNIT_BYTES;  // and of the earlier ones, which lie behind
constexpr int OCTETS_J = {{ shape.octets_j }};  // of later receivers of a warp
constexpr int OCTETS_I = {{ shape.octets_i }};
static_assert(OCTETS_J * 8 * WARPS_J == RECEIVERS_J && OCTETS_I * 8 * (WARPS / WARPS_J) == RECEIVERS_I);
static_assert(N_THREADS == 32 * WARPS && STAGE_BYTES == UNITS_PER_STAGE * ALL_UNITS);
static_assert(N_STAGES * STAGE_BYTES == SHARED_BYTES, "as the launch has it");

{% include "correlate/copy.cuh" %}

// A warp's part of a block's product. Rows of A: polarisation a of an octet of later receivers, then b of the same;
// columns of B: one polarisation of an octet of earlier receivers, plain for real parts and turned for imaginary ones.
// So lane l4 .. l0 holds, of each pair of octets, all four products of later receiver l4 l3 l2 with earlier receivers
// 0 l1 l0 and 1 l1 ~l0.
struct Part {
    Sum sums[OCTETS_J][OCTETS_I][2][2][4];  // [..][polarisation of i][re, im][lane's own]

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < OCTETS_J * OCTETS_I * 16; ++i)
            (&sums[0][0][0][0][0])[i] = 0;
    }

    // Adds the products of one unit; `j`, `i`: the lane's parts of the first octets.
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

    // The sums of the lane's baseline in a column, 0 or 1, of a pair of octets.
    __device__ __forceinline__ Sums<Sum, 4> baseline(int row, int octet, int column) const
    {
        Sums<Sum, 4> made;
#pragma unroll
        for (int product = 0; product < 4; ++product) {
            const int p = product % 2, own = product / 2 * 2 + column;
            made.re[product] = sums[row][octet][p][0][own];
            made.im[product] = sums[row][octet][p][1][own];
        }
        return made;
    }

    // `results`: of the slice and channel; first_j, first_i: the part's first receivers.
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
                deliver(of_j, baseline(row, k / 2, column), first + receiver_of_column(lane % 4 * 2 + column),
                        first + receiver_of_column((lane % 4 ^ 1) * 2 + column), j, lane % 2 != 0);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(N_THREADS) correlate(
    Result* __restrict__ results,
{% if problem.count_lowest %}
    unsigned long long* __restrict__ n_lowest,
{% endif %}
    const unsigned char* __restrict__ voltages, int n_channels, int n_batches, int first_batch, int n_used)
{
    extern __shared__ uint4 dynamic_shared[];
    unsigned char* ring = reinterpret_cast<unsigned char*>(dynamic_shared);
    const Block block = block_of(blockIdx.x, N_RECEIVERS);
    const bool square = RECEIVERS_J == RECEIVERS_I && block.first_j == block.first_i;  // both sides are the same
    const int begin = first_of_slice(blockIdx.z, gridDim.z, n_used);
    const int n_units = (first_of_slice(blockIdx.z + 1, gridDim.z, n_used) - begin) * BATCH_UNITS;
    const int n_steps = (n_units + UNITS_PER_STAGE - 1) / UNITS_PER_STAGE;
    Copier<RECEIVERS_J> copier_j(voltages, n_channels, n_batches, block.first_j, first_batch + begin, n_units);
    Copier<RECEIVERS_I> copier_i(voltages, n_channels, n_batches, block.first_i, first_batch + begin, n_units);
    const auto copy_unit = [&](int buffer, int unit) {
        unsigned char* to = ring + (buffer * UNITS_PER_STAGE + unit) * ALL_UNITS;
        copier_j.copy(to, true);
        copier_i.copy(to + UNITS_J, !square);
    };
    // A step that is past the slice is a group, too, so that the number of groups under way stays the same.
    const auto copy_step = [&](int buffer) {
#pragma unroll
        for (int unit = 0; unit < UNITS_PER_STAGE; ++unit)
            copy_unit(buffer, unit);
        close_group();
    };

    const int warp = threadIdx.x / 32;
    const int own_j = warp % WARPS_J * OCTETS_J * 8, own_i = warp / WARPS_J * OCTETS_I * 8;  // receivers of the block
    const int first_j = block.first_j + own_j, first_i = block.first_i + own_i;
    // Of a warp whose receivers are all above the diagonal, or past the last one, only the copies are needed.
    const bool is_needed = first_i < first_j + OCTETS_J * 8 && first_i < N_RECEIVERS && first_j < N_RECEIVERS;
    const int offset_j = own_j * UNIT_BYTES + lane_offset<false>();
    const int offset_i = own_i * UNIT_BYTES + lane_offset<true>() + (square ? 0 : UNITS_J);

    Part part;
    part.clear();
    Lowest lowest;
    constexpr bool BEFORE = READ_AHEAD < N_STAGES - 1;  // whether copies go where nobody reads since the last barrier
    for (int step = 0; step < READ_AHEAD; ++step)
        copy_step(step);
    int buffer = 0;
#pragma unroll 1
    for (int step = 0; step < n_steps; ++step) {
        const int next = buffer + READ_AHEAD < N_STAGES ? buffer + READ_AHEAD : buffer + READ_AHEAD - N_STAGES;
        if constexpr (BEFORE)
            copy_step(next);
        wait_for_groups<BEFORE ? READ_AHEAD : READ_AHEAD - 1>();
        __syncthreads();  // the step is complete; and nobody reads the one before it any more
        const unsigned char* from = ring + buffer * UNITS_PER_STAGE * ALL_UNITS;
        if (is_needed) {
#pragma unroll
            for (int unit = 0; unit < UNITS_PER_STAGE; ++unit) {
                part.add_unit(from + unit * ALL_UNITS + offset_j, from + unit * ALL_UNITS + offset_i, lowest);
                if constexpr (!BEFORE)  // in the shadow of the products
                    copy_unit(next, unit);
            }
            if constexpr (!BEFORE)
                close_group();
        } else if constexpr (!BEFORE) {
            copy_step(next);
        }
        buffer = buffer == N_STAGES - 1 ? 0 : buffer + 1;
    }
    if (is_needed && (OVERWRITES || n_steps > 0)) {
        constexpr long long N_BASELINES = N_RECEIVERS * (N_RECEIVERS + 1ll) / 2;
        const long long of_channel = blockIdx.z * static_cast<long long>(n_channels) + blockIdx.y;
        part.store(results + of_channel * N_BASELINES * 8, first_j, first_i);
    }
{% if problem.count_lowest %}
    if (first_i == 0 && is_needed)  // a warp for each later receiver
        lowest.report(n_lowest);
{% endif %}
}
