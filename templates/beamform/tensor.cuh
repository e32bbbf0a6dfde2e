// ALGORITHM mma_sync: a warp multiplies weights and voltages on tensor cores, 32 COARSEN times of all beams.
//     A  rows: the real parts of an octet of beams, then their imaginary parts; words: weights of 8 antennas
//     B  columns: 8 times; words: voltages of these antennas. Column g of product j is time 4 g + j of 32, so a lane's
//        words are one load of 16 bytes, and its sums belong to 8 consecutive times of a beam.
//     lane l4 .. l0     A: beam l4 l3 l2, antennas 0 l1 l0 and 1 l1 l0     B: times l4 l3 l2 0 0 and the next three
//                       sums: beam l4 l3 l2, times l1 l0 0 0 0 and the next seven
{% if problem.precision == "half" %}
// A word is (re, im) of one polarisation, as float16; the products of two polarisations are added.
{% else %}
// A word is a Jones vector, four int8 as they lie in memory. A weight is an integer of 15 bits, 128 high + low; the
// products with each of the two are exact.
{% endif %}
// Needs     jones.cuh (load_jones), weights.cuh (Weights), operands.cuh (PLANES, TERMS, WORDS, Sum, Scale, scale_of,
//           turn, make_words, columns_of, value_of), finish.cuh (Output), lib/mma.cuh (mma)
// Provides  Beams: prepare, make_weights, clear, add_stage, finish
constexpr int OCTETS = BEAMS / 8;

struct Beams {
    Sum sums[OCTETS][COARSEN][PLANES][4][4];  // [octet][32 times][plane][product][lane's own]
    const unsigned char* pols;
    Scale* scales;  // in shared memory
    unsigned own_pols, used[2];  // bit o: polarisation of the lane's beam of octet o; whether it has a beam of this one
    int first_beam;

    __device__ __forceinline__ Beams(const unsigned char* pols_of_beams, int first, unsigned char* shared)
        : pols(pols_of_beams), scales(reinterpret_cast<Scale*>(shared)), own_pols(0), used{0, 0}, first_beam(first)
    {
        if constexpr (!MIXES && PLANES == 1)
#pragma unroll
            for (int octet = 0; octet < OCTETS; ++octet) {
                const int beam = first + octet * 8 + threadIdx.x % 32 / 4;
                const unsigned pol = beam < N_BEAMS && __ldg(pols + beam) != 0;
                own_pols |= pol << octet;
                used[0] |= __any_sync(0xffffffffu, beam < N_BEAMS && pol == 0) ? 1u << octet : 0u;
                used[1] |= __any_sync(0xffffffffu, pol != 0) ? 1u << octet : 0u;
            }
    }

    // All threads of the block find the scale of each beam: a warp looks for the largest weight of some beams.
    __device__ __forceinline__ void prepare(const Weights& weights) const
    {
        for (int beam = threadIdx.x / 32; beam < BEAMS; beam += N_THREADS / 32) {
            float largest = 0.0f;
            for (int i = threadIdx.x % 32; i < weights.n_antennas * POLS; i += 32)
                largest = fmaxf(largest, weights.power(first_beam + beam, i));
            largest = __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(largest)));  // no float is negative
            if (threadIdx.x % 32 == 0)
                scales[beam] = scale_of(sqrtf(largest));
        }
        __syncthreads();  // all scales are there
    }

    // All threads of the block make the weights of `n` antennas, whole octets: [4 antennas][octet][word][lane].
    __device__ __forceinline__ void make_weights(unsigned char* to, const Weights& weights, int first, int n) const
    {
        unsigned* made = reinterpret_cast<unsigned*>(to);
        for (int i = threadIdx.x; i < n * BEAMS; i += N_THREADS) {
            const int antenna = i % n, beam = i / n, all = first_beam + beam;
            float2 w[2] = {};
            if constexpr (MIXES)
                w[0] = weights.of(all, first + antenna, 0), w[1] = weights.of(all, first + antenna, 1);
            else
                w[PLANES == 2 && all < N_BEAMS && __ldg(pols + all) != 0] = weights.of(all, first + antenna, 0);
            unsigned words[WORDS];
            make_words(words, w, scales[beam].factor);
            const int lane = beam % 8 * 4 + antenna % 4;
#pragma unroll
            for (int word = 0; word < WORDS; ++word)
                made[((antenna / 4 * OCTETS + beam / 8) * WORDS + word) * 32 + lane] = words[word];
        }
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < OCTETS * COARSEN * PLANES * 16; ++i)
            (&sums[0][0][0][0][0])[i] = 0;
    }

    // Adds n antennas, and those up to whole octets, whose voltages are 0. from: the warp's stage; made: their weights.
    __device__ __forceinline__ void add_stage(const unsigned char* from, const unsigned char* made, int n)
    {
        const int lane = threadIdx.x % 32;
        from += lane % 4 * STAGE_ROW + lane / 4 * (4 * JONES_BYTES);
        const unsigned* own = reinterpret_cast<const unsigned*>(made) + lane;
#pragma unroll 1
        for (int antenna = 0; antenna < n; antenna += 8) {
            unsigned columns[COARSEN][TERMS][4][2];  // [32 times][polarisation or one][product][word]
#pragma unroll
            for (int u = 0; u < COARSEN; ++u) {
                unsigned words[2][4];
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    load_jones(words[half], from + (antenna + half * 4) * STAGE_ROW + u * (32 * JONES_BYTES));
                columns_of(columns[u], words);
            }
            const unsigned* of_octets = own + antenna / 4 * (OCTETS * WORDS * 32);
#pragma unroll
            for (int octet = 0; octet < OCTETS; ++octet) {
#pragma unroll
                for (int term = 0; term < (PLANES == 2 ? 2 : TERMS); ++term) {  // planes, or polarisations
                    constexpr bool ASKS = !MIXES && PLANES == 1;
                    if (ASKS && (used[term] >> octet & 1) == 0)
                        continue;  // no beam of the octet has this polarisation
                    unsigned rows[4];
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int at = ((half * OCTETS + octet) * WORDS + (ASKS ? 0 : term)) * 32;
                        const unsigned word = !ASKS || (own_pols >> octet & 1) == term ? of_octets[at] : 0;
                        rows[half * 2] = word, rows[half * 2 + 1] = turn(word);
                    }
#pragma unroll
                    for (int u = 0; u < COARSEN; ++u)
#pragma unroll
                        for (int j = 0; j < 4; ++j)
                            mma(sums[octet][u][PLANES == 2 ? term : 0][j], rows, columns[u][PLANES == 2 ? 0 : term][j]);
                }
            }
        }
    }

    __device__ __forceinline__ void finish(const Output& output, int batch, int first_time) const
    {
        constexpr int N = N_TIMES % 8 == 0 ? 8 : 4;  // times of a store
        const int time = first_time + threadIdx.x % 4 * 8;
#pragma unroll
        for (int octet = 0; octet < OCTETS; ++octet) {
            const int of_block = octet * 8 + threadIdx.x % 32 / 4;
            const float inverse = scales[of_block].inverse;
            unsigned n_clipped = 0;
#pragma unroll
            for (int u = 0; u < COARSEN; ++u) {
#pragma unroll
                for (int i = 0; i < 8; i += N) {
                    float2 values[N];
#pragma unroll
                    for (int k = 0; k < N; ++k) {
                        const int column = (i + k) / 4, j = (i + k) % 4;
                        values[k].x = value_of(sums[octet][u], j, column) * inverse;
                        values[k].y = value_of(sums[octet][u], j, 2 + column) * inverse;
                    }
                    n_clipped += output.put(batch, first_beam + of_block, time + u * 32 + i, values);
                }
            }
            output.count_octet(batch, first_beam + of_block, n_clipped);
        }
    }
};
