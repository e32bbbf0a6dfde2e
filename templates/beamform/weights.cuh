// Weights: those of a beam turn with the channel by the antenna's delay.
// Needs     nothing
// Provides  Weights: of, power
struct Weights {
    const float2* weights;
    const float* delays;
    int n_antennas;
    float position;  // of the channel, from the centre of the band: an integer or a half, so it is exact

    // Returns W of a polarisation, or 0 past the last beam or antenna. The phase is `position` times the delay, in half
    // turns, with 48 bits: a rounded product, of which whole turns are taken away, and the error of its rounding.
    __device__ __forceinline__ float2 of(int beam, int antenna, int pol) const
    {
        if (beam >= N_BEAMS || antenna >= n_antennas)
            return make_float2(0.0f, 0.0f);
        const long long i = static_cast<long long>(beam) * n_antennas + antenna;
        const float2 w = __ldg(weights + (i * POLS + pol));
        const float delay = __ldg(delays + i);
        const float product = __fmul_rn(position, delay), error = __fmaf_rn(position, delay, -product);
        float sine, cosine;
        sincospif(product - 2.0f * rintf(0.5f * product) + error, &sine, &cosine);
        return make_float2(w.x * cosine - w.y * sine, w.x * sine + w.y * cosine);
    }

    // Returns |w|^2, of antenna and polarisation number i of a beam.
    __device__ __forceinline__ float power(int beam, int i) const
    {
        if (beam >= N_BEAMS)
            return 0.0f;
        const float2 w = __ldg(weights + (static_cast<long long>(beam) * n_antennas * POLS + i));
        return w.x * w.x + w.y * w.y;
    }
};
