// The first launch, which is short: channelise_tables computes the tables for the other launches.
//   twiddles  float2 [N_TWIDDLES]             those of the first pass of each row, then those of the second pass
//   splits    float2 [N_ALL_PAIRS]            e^(i pi k / N) of the first bin k of each pair
//   polar     float4 [N_POLS][N_ALL_PAIRS]    (size, angle) of the gains of both bins of each pair
// Needs     pairs.cuh (bins_of), samples.cuh (SAMPLE_SCALE)
// Provides  channelise_tables

// Returns e^(2 pi i cycles).
__device__ __forceinline__ float2 phasor(float cycles)
{
    float2 z;
    sincospif(2.0f * cycles, &z.y, &z.x);
    return z;
}

// Returns entry i of the table of an R-point DFT of y[j] omega^j, omega = e^(-2 pi i cycles): omega^(R/2) for i = 0,
// and omega^(R / 2m) e^(-2 pi i j / 2m) for i = m/2 + j, j < m/2, m a power of two. Every angle is a float, exactly.
__device__ __forceinline__ float2 twiddle(int i, int r, float cycles)
{
    if (i == 0)
        return phasor(-cycles * (r / 2));
    int m = 2;
    while (i >= m)
        m *= 2;
    return phasor(-(cycles * r + (i - m / 2)) / (2 * m));
}

// Returns (size, angle) of a gain. The size maps a sum of scaled samples to the range -1/2 to 1/2 of voltages. It is
// halved for real samples, since split() of quantise.cuh doubles their sums.
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
            splits[pair] = phasor(bins.x * (0.5f / N_POINTS));
    }
}
