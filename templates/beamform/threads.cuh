// ALGORITHM threads: a thread has COARSEN times of all beams, in float32.
// Needs     jones.cuh (load_jones, part_of), weights.cuh (Weights), finish.cuh (Output)
// Provides  Beams: prepare, make_weights, clear, add_stage, finish
struct Beams {
    float2 sums[BEAMS][COARSEN];
    unsigned pols;  // bit b: the polarisation of beam b of the block
    int first_beam;

    __device__ __forceinline__ Beams(const unsigned char* pols_of_beams, int first, unsigned char*)
        : pols(0), first_beam(first)
    {
        if constexpr (!MIXES)
            for (int b = 0; b < BEAMS; ++b)
                pols |= first + b < N_BEAMS && __ldg(pols_of_beams + first + b) != 0 ? 1u << b : 0u;
    }

    __device__ __forceinline__ void prepare(const Weights&) const {}  // weights have no scale

    // All threads of the block make the weights of `n` antennas: [antenna][beam][polarisation], in shared memory.
    __device__ __forceinline__ void make_weights(unsigned char* to, const Weights& weights, int first, int n) const
    {
        float2* made = reinterpret_cast<float2*>(to);
        for (int i = threadIdx.x; i < n * BEAMS * POLS; i += N_THREADS) {
            const int antenna = i % n, beam = i / n / POLS, pol = i / n % POLS;
            const float2 w = weights.of(first_beam + beam, first + antenna, pol);
            made[(antenna * BEAMS + beam) * POLS + pol] = make_float2(w.x / UNIT, w.y / UNIT);
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < BEAMS * COARSEN; ++i)
            (&sums[0][0])[i] = make_float2(0.0f, 0.0f);
    }

    __device__ __forceinline__ static void add(float2& sum, float2 w, float2 x)
    {
        sum.x = __fmaf_rn(w.x, x.x, __fmaf_rn(-w.y, x.y, sum.x));
        sum.y = __fmaf_rn(w.x, x.y, __fmaf_rn(w.y, x.x, sum.y));
    }

    // Adds n antennas. from: the warp's stage; made: their weights.
    __device__ __forceinline__ void add_stage(const unsigned char* from, const unsigned char* made, int n)
    {
        from += threadIdx.x % 32 * (COARSEN * JONES_BYTES);
        const float2* w = reinterpret_cast<const float2*>(made);
#pragma unroll 2
        for (int antenna = 0; antenna < n; ++antenna) {
            unsigned words[COARSEN];
            load_jones(words, from + antenna * STAGE_ROW);
            float2 x[COARSEN][2];
#pragma unroll
            for (int t = 0; t < COARSEN; ++t) {
                const unsigned shifted = words[t] ^ 0x80808080u;
                x[t][0] = make_float2(part_of(shifted, 0), part_of(shifted, 1));
                x[t][1] = make_float2(part_of(shifted, 2), part_of(shifted, 3));
            }
#pragma unroll
            for (int b = 0; b < BEAMS; ++b) {
#pragma unroll
                for (int t = 0; t < COARSEN; ++t) {
                    if constexpr (MIXES) {
                        add(sums[b][t], w[(antenna * BEAMS + b) * 2], x[t][0]);
                        add(sums[b][t], w[(antenna * BEAMS + b) * 2 + 1], x[t][1]);
                    } else {
                        add(sums[b][t], w[antenna * BEAMS + b], pols >> b & 1 ? x[t][1] : x[t][0]);
                    }
                }
            }
        }
    }

    __device__ __forceinline__ void finish(const Output& output, int batch, int first_time) const
    {
        const int time = first_time + threadIdx.x % 32 * COARSEN;
#pragma unroll
        for (int b = 0; b < BEAMS; ++b)
            output.count(batch, first_beam + b, output.put(batch, first_beam + b, time, sums[b]));
    }
};
