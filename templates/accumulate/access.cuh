__device__ __forceinline__ longlong2 load(const longlong2* address)
{
    return STREAMING_LOADS ? __ldcs(address) : *address;
}

__device__ __forceinline__ void clear(longlong2* address)
{
    if constexpr (STREAMING_ZEROS)
        __stcs(address, make_longlong2(0, 0));
    else
        *address = make_longlong2(0, 0);
}

template <class T>
__device__ __forceinline__ void store(T* address, T visibilities)
{
    if constexpr (STREAMING_STORES)
        __stcs(address, visibilities);
    else
        *address = visibilities;
}

__device__ __forceinline__ bool does_not_fit(long long sum)
{
    return static_cast<unsigned long long>(sum) + LARGEST > 2ull * LARGEST;
}

// Returns the sum, clipped to +-LARGEST. The most negative integer is free, and marks missing visibilities.
__device__ __forceinline__ int clip(long long sum)
{
    const int limit = sum < 0 ? -LARGEST : LARGEST, low = static_cast<int>(sum);
    return does_not_fit(sum) ? limit : low;
}

// Returns the value that the other lane of a pair passes to trade().
__device__ __forceinline__ int2 trade(int2 given)
{
    return make_int2(__shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1));
}
