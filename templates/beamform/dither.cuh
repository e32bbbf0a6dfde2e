// Dither: noise of one step, uniform, that depends on the seed, the channel of the band, the beam and the time alone.
// Needs     nothing
// Provides  Dither: of; dither_of

// A bijection of 32 bits in which each bit depends on all: the rounds of Chris Wellons' lowbias32.
__device__ __forceinline__ unsigned mixed(unsigned word)
{
    word = (word ^ word >> 16) * 0x7feb352du;
    word = (word ^ word >> 15) * 0x846ca68bu;
    return word ^ word >> 16;
}

struct Dither {
    unsigned first, second;  // keys of a channel and beam: together 64 bits, so that no two share their noise

    // Returns noise of both parts at a time: 16 bits each, so that its sum with a beam of 8 bits is exact.
    __device__ __forceinline__ float2 of(long long time) const
    {
        const unsigned low = static_cast<unsigned>(time), high = static_cast<unsigned>(time >> 32);
        const unsigned word = mixed(mixed(low + first) ^ (second + high * 0x85ebca6bu));
        constexpr float STEP = 1.0f / 65536.0f, FIRST = STEP / 2.0f - 0.5f;
        return make_float2(static_cast<int>(word & 0xffff) * STEP + FIRST, static_cast<int>(word >> 16) * STEP + FIRST);
    }
};

__device__ __forceinline__ Dither dither_of(unsigned seed, unsigned channel, unsigned beam)
{
    return {mixed(mixed(mixed(seed) + channel) + beam), mixed(mixed(mixed(seed ^ 0x9e3779b9u) + beam) + channel)};
}
