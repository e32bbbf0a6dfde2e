// Bins of pair `i` of group `group` of pairs: real samples give the second one from the first one's complex points.
__device__ __forceinline__ int2 bins_of(int group, int i)
{
    if constexpr (COMPLEX)
        return make_int2(group + N1 * i, group + N1 * i + (N1 > 1 ? N1 / 2 : N2 / 2));
    const bool in_upper_row = N1 > 1 && group == 0 && i >= N2 / 2;
    const int a = in_upper_row ? N1 / 2 + N1 * (i - N2 / 2) : group + N1 * i;
    return make_int2(a, a == 0 ? N_POINTS / 2 : N_POINTS - a);
}

__device__ __forceinline__ float2 unit_vector(float turns)
{
    float2 z;
    sincospif(2.0f * turns, &z.y, &z.x);
    return z;
}

// Entry i of those that turn an R-point transform by omega = e^(-2 pi i turns): for i = 0 omega^(R/2), and for i = m/2 +
// j, j < m/2, m a power of two, omega^(R / 2m) e^(-2 pi i j / 2m). Every angle is a float, exactly.
__device__ __forceinline__ float2 twiddle(int i, int r, float turns)
{
    if (i == 0)
        return unit_vector(-turns * (r / 2));
    int m = 2;
    while (i >= m)
        m *= 2;
    return unit_vector(-(turns * r + (i - m / 2)) / (2 * m));
}

// (size, angle) of a gain; the size takes a sum of scaled samples, twice as large where split() makes it, to where all
// voltages lie between -1/2 and 1/2.
__device__ __forceinline__ float2 polar_form(float2 gain)
{
    constexpr float SIZE = (COMPLEX ? 1.0f : 0.5f) / (SAMPLE_SCALE * 2 * MOST);
    return make_float2(hypotf(gain.x, gain.y) * SIZE, atan2f(gain.y, gain.x));
}

extern "C" __global__ void __launch_bounds__({{ table_threads }}) channelise_tables(
    float2* __restrict__ twiddles, float2* __restrict__ splits, float4* __restrict__ polar,
{% if config.ALGORITHM == "one" %}
    unsigned* __restrict__ n_taken,
{% endif %}
    const float2* __restrict__ gains)
{
    const int i = blockIdx.x * {{ table_threads }} + threadIdx.x;
{% if config.ALGORITHM == "one" %}
    if (i == 0)
        *n_taken = 0;
{% endif %}
    if (i < N_FIRST_TWIDDLES) {
        constexpr int EACH = RADIX_1 / 2;
        twiddles[i] = twiddle(i % EACH, RADIX_1, i / EACH * (1.0f / (N1 * RADIX_1)));
    } else if (i < N_TWIDDLES) {
        constexpr int EACH = RADIX_2 / 2 * RADIX_1;
        const int j = i - N_FIRST_TWIDDLES, k1 = j / EACH, q = j % RADIX_1;
        twiddles[i] = twiddle(j % EACH / RADIX_1, RADIX_2, (k1 + N1 * q) * (1.0f / N_POINTS));
    }
    if (i < N_POLS * N_ALL_PAIRS) {
        const int pair = i % N_ALL_PAIRS, pol = i / N_ALL_PAIRS;
        const int2 bins = bins_of(pair / N_PAIRS, pair % N_PAIRS);
        const float2 a = polar_form(gains[bins.x * N_POLS + pol]), b = polar_form(gains[bins.y * N_POLS + pol]);
        polar[i] = make_float4(a.x, a.y, b.x, b.y);
        if (pol == 0)
            splits[pair] = unit_vector(bins.x * (0.5f / N_POINTS));
    }
}
