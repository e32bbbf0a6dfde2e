// Voltages in global memory. A unit of work stores POST_SPECTRA spectra of a bin: WORDS words for each polarisation,
// time fastest.
// Needs     part.cuh (Part)
// Provides  Output: part, store
template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

constexpr int INTERLEAVED = TIMES_PER_BLOCK * VOLTAGE_BYTES;  // bytes of one polarisation before the next one's
constexpr bool ONE_RUN = N_POLS == 1 || POST_SPECTRA >= TIMES_PER_BLOCK;  // all voltages of a unit are contiguous

// A run has CHUNKS chunks of 16 bytes. CHUNKS neighbouring lanes exchange chunks, so that they store a run together.
constexpr int CHUNKS = ONE_RUN ? POST_SPECTRA * N_POLS * VOLTAGE_BYTES / 16 : 1;
constexpr bool TOGETHER = CHUNKS > 1 && VECTOR_BYTES == 16;

template <int N>
__device__ __forceinline__ void store_words(unsigned char* to, const unsigned (&words)[N])
{
    constexpr int WIDTH = VECTOR_BYTES >= 4 * N ? N : VECTOR_BYTES >= 4 ? VECTOR_BYTES / 4 : 1;
#pragma unroll
    for (int i = 0; i < N; i += WIDTH) {
        Words<WIDTH> some;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            some.at[j] = words[i + j];
        *reinterpret_cast<Words<WIDTH>*>(to + 4 * i) = some;
    }
}

// Puts the words of both polarisations into the order of memory.
__device__ __forceinline__ void interleave(
    unsigned (&out)[2 * WORDS], const unsigned (&first)[WORDS], const unsigned (&second)[WORDS])
{
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if constexpr (INTERLEAVED == 1) {
            out[2 * i] = __byte_perm(first[i], second[i], 0x5140);
            out[2 * i + 1] = __byte_perm(first[i], second[i], 0x7362);
        } else if constexpr (INTERLEAVED == 2) {
            out[2 * i] = __byte_perm(first[i], second[i], 0x5410);
            out[2 * i + 1] = __byte_perm(first[i], second[i], 0x7632);
        } else {
            constexpr int RUN = INTERLEAVED >= 4 ? INTERLEAVED / 4 : 1;  // consecutive words of one polarisation
            out[i / RUN * 2 * RUN + i % RUN] = first[i];
            out[i / RUN * 2 * RUN + RUN + i % RUN] = second[i];
        }
    }
}

struct Output {
    unsigned char* voltages;
    long long n_times;
    Part part;

    // Returns the address of the voltage of spectrum s of the part.
    __device__ __forceinline__ unsigned char* at(int bin, int s, int pol) const
    {
        const int in_heap = part.in_heap + s;
        if constexpr (BLOCKS) {
            const long long time = part.heap * SPECTRA_PER_HEAP + in_heap;
            const long long block = bin * (n_times / TIMES_PER_BLOCK) + time / TIMES_PER_BLOCK;
            return voltages + ((block * N_POLS + pol) * TIMES_PER_BLOCK + time % TIMES_PER_BLOCK) * VOLTAGE_BYTES;
        } else {
            const long long first = (part.heap * N_CHANNELS + bin) * SPECTRA_PER_HEAP;
            return voltages + ((first + in_heap) * N_POLS + pol) * VOLTAGE_BYTES;
        }
    }

    // Stores POST_SPECTRA spectra of a bin from number s on, as far as the part has them. `cells` points to the bin's
    // values in z, SLICE_VALUES apart, which are free to be overwritten; those of the next lane lie `step` further on.
    __device__ __forceinline__ void store(
        int bin, int s, const unsigned (&first)[WORDS], const unsigned (&second)[WORDS], float2* cells, int step) const
    {
        if constexpr (TOGETHER && N_POLS == 1) {
            store_run(bin, s, first, cells, step);
        } else if constexpr (TOGETHER) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_run(bin, s, both, cells, step);
        } else if (VECTOR_BYTES < 4 || !part.is_whole(s, POST_SPECTRA)) {
            store_each(bin, s, first, 0);
            if (N_POLS == 2)
                store_each(bin, s, second, 1);
        } else if constexpr (ONE_RUN && N_POLS == 2) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_words(at(bin, s, 0), both);
        } else {
            store_words(at(bin, s, 0), first);
            if (N_POLS == 2)
                store_words(at(bin, s, 1), second);
        }
    }

private:
    // Stores the runs of CHUNKS lanes, which exchange chunks through their cells. Chunk q of a lane's run goes to the
    // cells of the lane q further on, so that lanes read from different banks.
    template <int N>
    __device__ __forceinline__ void store_run(int bin, int s, const unsigned (&words)[N], float2* cells, int step) const
    {
        const int own = threadIdx.x % CHUNKS;
        const auto cell = [&](int lane, int q) {
            return cells + ((lane + q) % CHUNKS - own) * step + 2 * q * SLICE_VALUES;
        };
        __syncwarp();  // all have read the values in the cells
#pragma unroll
        for (int q = 0; q < CHUNKS; ++q)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                *reinterpret_cast<uint2*>(cell(own, q) + i * SLICE_VALUES) =
                    make_uint2(words[4 * q + 2 * i], words[4 * q + 2 * i + 1]);
        __syncwarp();
        if (part.is_whole(s, POST_SPECTRA)) {  // the same for all lanes
#pragma unroll
            for (int lane = 0; lane < CHUNKS; ++lane) {
                const float2* from = cell(lane, own);
                const uint2 a = *reinterpret_cast<const uint2*>(from);
                const uint2 b = *reinterpret_cast<const uint2*>(from + SLICE_VALUES);
                const int its_bin = __shfl_sync(0xffffffffu, bin, threadIdx.x % 32 - own + lane);
                *reinterpret_cast<uint4*>(at(its_bin, s, 0) + 16 * own) = make_uint4(a.x, a.y, b.x, b.y);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < POST_SPECTRA * N_POLS; ++i) {
                unsigned char* to = at(bin, s + i / N_POLS, i % N_POLS);
                const int byte = static_cast<int>(to - at(bin, s, 0));
                const float2* from = cell(own, byte / 16) + byte / 8 % 2 * SLICE_VALUES;
                const unsigned char* voltage = reinterpret_cast<const unsigned char*>(from) + byte % 8;
                if (part.has(s + i / N_POLS))
                    store_voltage(to, BITS == 8 ? voltage[0] | voltage[VOLTAGE_BYTES - 1] << 8 : voltage[0]);
            }
        }
        __syncwarp();  // the cells are free
    }

    static __device__ __forceinline__ void store_voltage(unsigned char* to, unsigned voltage)
    {
        if constexpr (BITS == 8)
            *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(voltage);
        else
            *to = static_cast<unsigned char>(voltage);
    }

    __device__ __forceinline__ void store_each(int bin, int s, const unsigned (&words)[WORDS], int pol) const
    {
#pragma unroll
        for (int i = 0; i < POST_SPECTRA; ++i) {
            if (part.has(s + i))
                store_voltage(at(bin, s + i, pol), words[i * VOLTAGE_BYTES / 4] >> i * VOLTAGE_BYTES % 4 * 8);
        }
    }
};
