// The rotation of a spectrum and polarisation at channel k is (phase - delay (k - C/2) / C) half-turns.
// PHASE fast      The special function units compute sine and cosine for each sample.
// PHASE accurate  sincospi computes them for a lane's first channel. A complex product gives each next channel of the
//                 lane, which is 32 further on.
constexpr bool STEPPED = !FAST && COARSEN > 1;

__device__ __forceinline__ float2 multiply(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ float2 unit_vector(float half_turns)
{
    float2 z;
    sincospif(half_turns, &z.y, &z.x);
    return z;
}

// Returns the same within 1e-6. The special units are so accurate up to half a turn, so whole turns are subtracted
// first, which is exact.
__device__ __forceinline__ float2 fast_unit_vector(float half_turns)
{
    const float turns = __fadd_rn(__fmaf_rn(half_turns, 0.5f, ROUND), -ROUND);  // a whole number
    const float angle = 3.14159265f * __fmaf_rn(turns, -2.0f, half_turns);
    return make_float2(__cosf(angle), __sinf(angle));
}

// Returns an angle in half-turns, in [-1, 1]. It is reduced in double precision, so that a large phase is as accurate
// as a small one.
__device__ __forceinline__ float reduced(float radians)
{
    const double half_turns = radians * 0.3183098861837907;  // 1 / pi
    return static_cast<float>(half_turns - 2.0 * rint(0.5 * half_turns));
}

// Returns e^(-i pi delay 32 / C).
__device__ __forceinline__ float2 step_of(float delay)
{
    return unit_vector(-delay * (32.0f / N_CHANNELS));
}

// Returns (k - C/2) / C, rounded once.
__device__ __forceinline__ float position(int channel)
{
    return static_cast<float>(2 * channel - N_CHANNELS) / (2.0f * N_CHANNELS);
}

// Rotates a lane's channels of one spectrum and polarisation. `turn` is its phase, in half-turns, and its delay.
__device__ __forceinline__ void rotate(
    float2 (&rotated)[COARSEN], const float2 (&samples)[COARSEN], float2 turn, float2 step,
    const float (&positions)[COARSEN])
{
    float2 unit = make_float2(1.0f, 0.0f);
#pragma unroll
    for (int c = 0; c < COARSEN; ++c) {
        const float half_turns = __fmaf_rn(-turn.y, positions[c], turn.x);
        if (FAST)
            unit = fast_unit_vector(half_turns);
        else if (c == 0)
            unit = unit_vector(half_turns);
        else
            unit = multiply(unit, step);
        rotated[c] = multiply(samples[c], unit);
    }
}
