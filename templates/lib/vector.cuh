// N consecutive floats, which one instruction moves. Their address must be a multiple of 4 N bytes.
template <int N>
struct alignas(4 * N) Floats {
    float at[N];
};

template <int N>
__device__ __forceinline__ Floats<N> load_floats(const float* address)
{
    return *reinterpret_cast<const Floats<N>*>(address);
}

template <int N>
__device__ __forceinline__ void store_floats(float* address, Floats<N> floats)
{
    *reinterpret_cast<Floats<N>*>(address) = floats;
}

__host__ __device__ constexpr int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}
