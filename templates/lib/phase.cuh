// A phase is a 64-bit fraction of a cycle. When the integer wraps, the phase wraps, so it stays exact for ever.
// A frequency, in cycles per sample, is a 128-bit fraction in two words. It is rounded at 2^-128, so its error stays
// below 2^-64 cycles over any number of samples that fits into 64 bits.
typedef unsigned long long Phase;

struct Frequency {
    Phase high, low;
};

// Returns f n modulo 1.
__device__ __forceinline__ Phase advance(Frequency f, unsigned long long n)
{
    return f.high * n + __umul64hi(f.low, n);
}

// Returns e^(2 pi i phase). The top 32 bits of the phase are taken as a signed fraction of half a cycle; as a float it
// is within 2^-25 half cycles of the phase.
__device__ __forceinline__ float2 unit_vector(Phase phase)
{
    float2 z;
    sincospif(static_cast<float>(static_cast<int>(phase >> 32)) * 4.656612873077393e-10f, &z.y, &z.x);  // 2^-31
    return z;
}

__device__ __forceinline__ float2 multiply(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
