// Returns a voltage in two's complement in the low VOLTAGE_BYTES; the bits above are undefined. Clamping before
// rounding gives the same result as after it, since the limits are integers. A voltage is saturated when a part rounds
// beyond MAXIMUM. MAXIMUM + 0.5 does, since MAXIMUM is odd. NaN is not below it, so it counts as saturated, and fmaxf
// makes -MAXIMUM of it.
__device__ __forceinline__ unsigned quantise(float2 v, unsigned& saturated)
{
    constexpr float MAX = MAXIMUM;
    saturated += !(fmaxf(fabsf(v.x), fabsf(v.y)) < MAX + 0.5f);
    const unsigned re = __float_as_uint(fminf(fmaxf(v.x, -MAX), MAX) + ROUND);
    const unsigned im = __float_as_uint(fminf(fmaxf(v.y, -MAX), MAX) + ROUND);
    if constexpr (BITS == 8)
        return __byte_perm(re, im, 0x0040);  // byte 0 of re, byte 0 of im
    else
{% if problem.nibbles == "real_low" %}
        return (re & 15u) | (im << 4 & ~15u);
{% else %}
        return (im & 15u) | (re << 4 & ~15u);
{% endif %}
}

// Returns a word with the codes of consecutive voltages.
__device__ __forceinline__ unsigned pack(const unsigned* codes)
{
    if constexpr (BITS == 8)
        return __byte_perm(codes[0], codes[1], 0x5410);
    else
        return __byte_perm(__byte_perm(codes[0], codes[1], 0x0040), __byte_perm(codes[2], codes[3], 0x0040), 0x5410);
}
