// Where voltages go. A unit of work has POST_SPECTRA spectra of a bin: words[p] of polarisation p, time fastest.
template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

constexpr int INTERLEAVED = TIMES_PER_BLOCK * VOLTAGE_BYTES;  // bytes of a polarisation before those of the next one
constexpr bool ONE_RUN = N_POLS == 1 || POST_SPECTRA >= TIMES_PER_BLOCK;  // all of a unit is contiguous

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

// Both polarisations' words in the order of memory.
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
            constexpr int EACH = INTERLEAVED / 4;
            out[i / EACH * 2 * EACH + i % EACH] = first[i];
            out[i / EACH * 2 * EACH + EACH + i % EACH] = second[i];
        }
    }
}

struct Output {
    unsigned char* voltages;
    long long n_times;
    Part part;

    // The voltage of spectrum number s of the part.
    __device__ __forceinline__ unsigned char* at(int bin, int s, int pol) const
    {
        const int in_heap = part.in_heap + s;
        if constexpr (BLOCKS) {
            const long long time = part.heap * SPECTRA_PER_HEAP + in_heap;
            const long long block = bin * (n_times / TIMES_PER_BLOCK) + time / TIMES_PER_BLOCK;
            return voltages + ((block * N_POLS + pol) * TIMES_PER_BLOCK + time % TIMES_PER_BLOCK) * VOLTAGE_BYTES;
        } else {
            return voltages + (((part.heap * N_CHANNELS + bin) * SPECTRA_PER_HEAP + in_heap) * N_POLS + pol) * VOLTAGE_BYTES;
        }
    }

    // POST_SPECTRA spectra of a bin from number s on, as far as they are made.
    __device__ __forceinline__ void store(
        int bin, int s, const unsigned (&first)[WORDS], const unsigned (&second)[WORDS]) const
    {
        if (VECTOR_BYTES < 4 || !part.is_whole(s, POST_SPECTRA)) {
            store_each(bin, s, first, 0);
            if (N_POLS == 2)
                store_each(bin, s, second, 1);
        } else if constexpr (N_POLS == 1) {
            store_words(at(bin, s, 0), first);
        } else if constexpr (ONE_RUN) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_words(at(bin, s, 0), both);
        } else {
            store_words(at(bin, s, 0), first);
            store_words(at(bin, s, 1), second);
        }
    }

private:
    __device__ __forceinline__ void store_each(int bin, int s, const unsigned (&words)[WORDS], int pol) const
    {
#pragma unroll
        for (int i = 0; i < POST_SPECTRA; ++i) {
            const unsigned voltage = words[i * VOLTAGE_BYTES / 4] >> i * VOLTAGE_BYTES % 4 * 8;
            if (!part.has(s + i))
                continue;
            if constexpr (BITS == 8)
                *reinterpret_cast<unsigned short*>(at(bin, s + i, pol)) = static_cast<unsigned short>(voltage);
            else
                *at(bin, s + i, pol) = static_cast<unsigned char>(voltage);
        }
    }
};
