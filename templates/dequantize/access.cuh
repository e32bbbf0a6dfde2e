template <class T>
__device__ __forceinline__ T load(const unsigned char* address)
{
    const T* typed = reinterpret_cast<const T*>(address);
    return STREAMING_LOADS ? __ldcs(typed) : __ldg(typed);
}

// Loads LOAD bytes from `samples` on. If not WHOLE, it loads word by word, and words from n_bytes on become 0.
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

// Starts to load 128 bytes into the L2 cache, and does not wait.
__device__ __forceinline__ void prefetch(const unsigned char* address)
{
#ifndef AUTOTUNE_HOST
    asm volatile("prefetch.global.L2 [%0];" : : "l"(address));
#endif
}

// In one block of eight, starts to load the samples of eight tiles into the L2 cache, from AHEAD bytes after `samples`
// on and at most up to n_bytes. Memory then reads longer runs between its writes.
__device__ __forceinline__ void bring_near(const unsigned char* samples, long long n_bytes)
{
    constexpr int TILES = 8;
    if (blockIdx.x % TILES == 0) {
        for (int i = threadIdx.x * 128; i < TILES * TILE; i += WGS * 128)
            if (AHEAD + i < n_bytes)
                prefetch(samples + AHEAD + i);
    }
}
