template <class T>
__device__ __forceinline__ T load(const unsigned char* address)
{
    const T* typed = reinterpret_cast<const T*>(address);
    return STREAMING_LOADS ? __ldcs(typed) : __ldg(typed);
}

// LOAD bytes from `samples` on. Not WHOLE: word by word, those of them that are among n_bytes; for others 0.
template <bool WHOLE>
__device__ __forceinline__ void load_chunk(
    unsigned (&words)[WORDS], const unsigned char* __restrict__ samples, int n_bytes)
{
    if constexpr (LOAD == 2) {
        words[0] = WHOLE || 0 < n_bytes ? load<unsigned short>(samples) : 0;
    } else if constexpr (!WHOLE || LOAD == 4) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = WHOLE || 4 * i < n_bytes ? load<unsigned>(samples + 4 * i) : 0;
    } else if constexpr (LOAD == 8) {
        const uint2 loaded = load<uint2>(samples);
        words[0] = loaded.x, words[1] = loaded.y;
    } else {
        const uint4 loaded = load<uint4>(samples);
        words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
    }
}

__device__ __forceinline__ void store(uint4* address, uint4 values)
{
    if constexpr (STREAMING_STORES)
        __stcs(address, values);
    else
        *address = values;
}

// Asks for 128 bytes to be in the L2, and waits for nothing.
__device__ __forceinline__ void prefetch(const unsigned char* address)
{
#ifndef AUTOTUNE_HOST
    asm volatile("prefetch.global.L2 [%0];" : : "l"(address));
#endif
}

// One block in eight brings the samples of eight tiles into the L2, AHEAD bytes after `samples`, the first of n_bytes:
// memory then reads longer runs between its writes.
__device__ __forceinline__ void bring_near(const unsigned char* samples, long long n_bytes)
{
    constexpr int TILES = 8;
    if (blockIdx.x % TILES == 0) {
        for (int i = threadIdx.x * 128; i < TILES * TILE; i += WGS * 128)
            if (AHEAD + i < n_bytes)
                prefetch(samples + AHEAD + i);
    }
}
