// The end of a batch: sums become beams.
// Needs     dither.cuh (Dither, dither_of)
// Provides  Output: put, count, count_octet
struct Output {
    unsigned char* beams;  // of batch 0 and beam 0 of the channel
    unsigned* saturated;
    long long beam_stride;
    unsigned seed, channel;  // of the band
    long long first_time;

    // Returns both parts in the low two bytes. A sample is clipped if a part rounds beyond 127; 127.5 does, to the even
    // 128. Clamping before rounding gives the same result as after it. NaN counts as clipped, and becomes -127.
    __device__ __forceinline__ static unsigned quantise(float2 v, unsigned& n_clipped)
    {
        constexpr float MAXIMUM = 127.0f;
        // 1.5 * 2^23: the last place of a sum is worth 1, so it is rounded, halves to even; its low byte is the integer.
        constexpr float ROUND = 12582912.0f;
        n_clipped += !(fmaxf(fabsf(v.x), fabsf(v.y)) < MAXIMUM + 0.5f);
        const unsigned re = __float_as_uint(fminf(fmaxf(v.x, -MAXIMUM), MAXIMUM) + ROUND);
        const unsigned im = __float_as_uint(fminf(fmaxf(v.y, -MAXIMUM), MAXIMUM) + ROUND);
        return __byte_perm(re, im, 0x0040);
    }

    template <class T>
    __device__ __forceinline__ static void store(unsigned char* to, T value)
    {
        if constexpr (STREAM)
            __stcs(reinterpret_cast<T*>(to), value);
        else
            *reinterpret_cast<T*>(to) = value;
    }

    // Writes N consecutive times of a beam, the first of which is a multiple of N, and returns how many of them were
    // clipped. Batches have a multiple of 4 times, so up to 4 are written all or none; and 8 if it is one of 8.
    template <int N>
    __device__ __forceinline__ unsigned put(int batch, int beam, int time, const float2 (&sums)[N]) const
    {
        if (beam >= N_BEAMS || time >= N_TIMES)
            return 0;
        static_assert(N < 8 || N_TIMES % 8 == 0, "a store does not reach into the next row");
        unsigned codes[N], n_clipped = 0;
        const Dither dither = DITHERS ? dither_of(seed, channel, beam) : Dither{};
#pragma unroll
        for (int i = 0; i < N; ++i) {
            float2 v = sums[i];
            if constexpr (DITHERS) {
                const float2 noise = dither.of(first_time + static_cast<long long>(batch) * N_TIMES + time + i);
                v = make_float2(v.x + noise.x, v.y + noise.y);
            }
            codes[i] = quantise(v, n_clipped);
        }
        unsigned char* to = beams + ((static_cast<long long>(batch) * N_BEAMS + beam) * beam_stride + time * 2);
        if constexpr (N == 1) {
            store(to, static_cast<unsigned short>(codes[0]));
        } else {
            unsigned words[N / 2];
#pragma unroll
            for (int i = 0; i < N / 2; ++i)
                words[i] = __byte_perm(codes[2 * i], codes[2 * i + 1], 0x5410);
            if constexpr (N == 2)
                store(to, words[0]);
            else if constexpr (N == 4)
                store(to, make_uint2(words[0], words[1]));
            else
                store(to, make_uint4(words[0], words[1], words[2], words[3]));
        }
        return n_clipped;
    }

    // Adds up the counts of a warp, of which one lane adds them to the beam's. All lanes take part.
    __device__ __forceinline__ void count(int batch, int beam, unsigned n_clipped) const
    {
        if (!__any_sync(0xffffffffu, n_clipped != 0))
            return;
        const unsigned of_warp = __reduce_add_sync(0xffffffffu, n_clipped);
        if (threadIdx.x % 32 == 0)
            atomicAdd(saturated + (static_cast<long long>(batch) * N_BEAMS + beam), of_warp);
    }

    // Does the same for an octet of beams, one for each 4 lanes.
    __device__ __forceinline__ void count_octet(int batch, int beam, unsigned n_clipped) const
    {
        if (!__any_sync(0xffffffffu, n_clipped != 0))
            return;
        n_clipped += __shfl_xor_sync(0xffffffffu, n_clipped, 1);
        n_clipped += __shfl_xor_sync(0xffffffffu, n_clipped, 2);
        if (threadIdx.x % 4 == 0 && n_clipped != 0)
            atomicAdd(saturated + (static_cast<long long>(batch) * N_BEAMS + beam), n_clipped);
    }
};
