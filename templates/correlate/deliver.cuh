// Delivery of what a warp has by mma.sync: sums of pairs of octets become results.
// Needs     octet.cuh (receiver_of_column), store.cuh (Sums, put, add_shared)
// Provides  baseline_of, deliver

constexpr bool NARROW = sizeof(Result) == 4;

// Returns where a lane's half of a baseline starts, of 8 numbers: what the two lanes of a pair move at a time is a
// sector of 32 bytes. The even lane has products 0 and 2 of 64-bit results, the odd one 1 and 3; of 32 bits 0 and 1,
// and 2 and 3.
__device__ __forceinline__ int start_of_half(bool odd)
{
    return odd ? (NARROW ? 4 : 2) : 0;
}

// The lanes of a pair have a baseline each, and trade halves: `kept` is the lane's half of its own baseline, `received`
// that of the other lane's. All lanes of the warp take part.
template <class T>
__device__ __forceinline__ void trade(Sums<T, 2>& kept, Sums<T, 2>& received, const Sums<T, 4>& own, bool odd)
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int of_even = NARROW ? i : 2 * i, of_odd = NARROW ? 2 + i : 2 * i + 1;
        kept.re[i] = odd ? own.re[of_odd] : own.re[of_even];
        kept.im[i] = odd ? own.im[of_odd] : own.im[of_even];
        received.re[i] = __shfl_xor_sync(0xffffffffu, odd ? own.re[of_even] : own.re[of_odd], 1);
        received.im[i] = __shfl_xor_sync(0xffffffffu, odd ? own.im[of_even] : own.im[of_odd], 1);
    }
}

// Puts the lane's baseline of receivers i and j, where there is one; its neighbour has that of other_i and j. All lanes
// of the warp take part.
__device__ __forceinline__ void put_baseline(
    Result* of_j, const Sums<Sum, 4>& own, int i, int other_i, int j, bool odd)
{
    const bool exists = j < N_RECEIVERS;
    if constexpr (PAIRED) {
        Sums<Sum, 2> halves[2];
        trade(halves[0], halves[1], own, odd);
        Result* const to[2] = {of_j + i * 8 + start_of_half(odd), of_j + other_i * 8 + start_of_half(odd)};
        const bool valid[2] = {exists && i <= j, exists && other_i <= j};
        put(to, halves, valid, 2);
    } else {
        Result* const to[1] = {of_j + i * 8};
        const Sums<Sum, 4> all[1] = {own};
        const bool valid[1] = {exists && i <= j};
        put(to, all, valid);
    }
}

// Returns the sums of the lane's baseline in a column, 0 or 1, of a pair of octets. sums: [polarisation of i][re,
// im][the lane's own].
__device__ __forceinline__ Sums<Sum, 4> baseline_of(const Sum (&sums)[2][2][4], int column)
{
    Sums<Sum, 4> made;
#pragma unroll
    for (int product = 0; product < 4; ++product) {
        const int p = product % 2, own = product / 2 * 2 + column;
        made.re[product] = sums[p][0][own];
        made.im[product] = sums[p][1][own];
    }
    return made;
}

// Delivers the lane's baseline in a column, 0 or 1, of a pair of octets: of earlier receivers from first_i on, and of
// later receiver j. of_j: the results of j's first baseline. All lanes of the warp take part.
__device__ __forceinline__ void deliver(
    Result* of_j, const Sums<Sum, 4>& own, int first_i, int column, int j, int lane)
{
    const auto of_lane = [&](int m) { return first_i + receiver_of_column(m * 2 + column); };
    if constexpr (ATOMIC) {
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            Sum numbers[4] = {own.re[2 * q], own.im[2 * q], own.re[2 * q + 1], own.im[2 * q + 1]};
            add_shared(of_j + q * 4, numbers, [&](int m) {
                return j < N_RECEIVERS && of_lane(m) <= j ? of_lane(m) * 8 : -1;
            });
        }
    } else {
        put_baseline(of_j, own, of_lane(lane % 4), of_lane(lane % 4 ^ 1), j, lane % 2 != 0);
    }
}
