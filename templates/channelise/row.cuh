// Rows in shared memory: the DFT of N2 points of a spectrum, by RADIX_2 threads of a warp in two passes.
// Needs     transform.cuh (reversed, transform, transform_twiddled)
// Provides  Rows, row_of; transform_row
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");

typedef float2 Rows[N_ROWS][SLICE_VALUES];

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// Makes bins 0 and N / 2 of real samples a pair, which they are not otherwise. split() of quantise.cuh then gives their
// X with phasor 1.
__device__ __forceinline__ void pair_up(float2& zero, float2& half)
{
    const float sum = zero.x + zero.y, p = sum + half.x, q = sum - half.x, u = half.y;
    zero = make_float2(0.5f * (p + u), 0.5f * (q + u));
    half = make_float2(0.5f * (p - u), 0.5f * (q - u));
}

// Transforms a row. load(lane, n) returns its point n2 = lane + n. first_twiddle and second_twiddle read the tables of
// the two passes; if a row is a whole spectrum, all twiddles of the first pass are 1. The bins are left in order in
// `slice`. If has_zero (row 0 of real samples), bin N2 / 2 lies at place N2. Elements: n2 = lane + RADIX_2 j at first,
// q + RADIX_1 lane after the first pass, bin q + RADIX_1 r at the end.
template <class Load, class First, class Second>
__device__ __forceinline__ void transform_row(
    float2* slice, int lane, bool has_zero, Load load, First first_twiddle, Second second_twiddle)
{
    float2 y[RADIX_1];
#pragma unroll
    for (int j = 0; j < RADIX_1; ++j)
        y[reversed<RADIX_1>(j)] = load(lane, RADIX_2 * j);
    if constexpr (N1 > 1)
        transform_twiddled<RADIX_1>(y, first_twiddle, 1);
    else
        transform<RADIX_1>(y);
    __syncwarp();  // all points are in registers
#pragma unroll
    for (int q = 0; q < RADIX_1; ++q)
        slice[q * (RADIX_2 + 1) + lane] = y[q];
    __syncwarp();  // the first pass is complete
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
        const int q = first + lane;
#pragma unroll
        for (int l = 0; l < RADIX_2; ++l)
            y[first + reversed<RADIX_2>(l)] = slice[q * (RADIX_2 + 1) + l];
        transform_twiddled<RADIX_2>(y + first, [&](int i) { return second_twiddle(q + i); }, RADIX_1);
    }
    __syncwarp();  // the results of the first pass are in registers
    if (!COMPLEX && lane == 0 && has_zero) {
        pair_up(y[0], y[RADIX_2 / 2]);
        slice[N2] = y[RADIX_2 / 2];
    }
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
#pragma unroll
        for (int r = 0; r < RADIX_2; ++r)
            slice[r * RADIX_1 + first + lane] = y[first + r];
    }
}
