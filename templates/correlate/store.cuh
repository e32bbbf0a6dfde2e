// Sums of COUNT products of a baseline; number p + 2 q is of polarisation p of the earlier receiver and q of the later.
template <class T, int COUNT>
struct Sums {
    T re[COUNT], im[COUNT];
};

template <class T>
__device__ __forceinline__ T load(const T* address)
{
    if constexpr (STREAM)
        return __ldcs(address);
    return *address;
}

template <class T>
__device__ __forceinline__ void store(T* address, T value)
{
    if constexpr (STREAM)
        __stcs(address, value);
    else
        *address = value;
}

// Adds to all products of a baseline, or to half of them. All loads come before any use.
template <int COUNT>
__device__ __forceinline__ void add_to(float* accumulator, const Sums<float, COUNT>& sums)
{
    float4* to = reinterpret_cast<float4*>(accumulator);  // two products
    float4 before[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        before[i] = load(to + i);
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i)
        store(to + i, make_float4(before[i].x + sums.re[2 * i], before[i].y + sums.im[2 * i],
                                  before[i].z + sums.re[2 * i + 1], before[i].w + sums.im[2 * i + 1]));
}

template <int COUNT>
__device__ __forceinline__ void add_to(long long* accumulator, const Sums<int, COUNT>& sums)
{
    constexpr int APART = 4 / COUNT;  // half of the products: every other one
    longlong2* to = reinterpret_cast<longlong2*>(accumulator);
    longlong2 before[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        before[i] = load(to + i * APART);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)  // a sum of nibbles is a multiple of 2^SUM_SHIFT
        store(to + i * APART,
              make_longlong2(before[i].x + (sums.re[i] >> SUM_SHIFT), before[i].y + (sums.im[i] >> SUM_SHIFT)));
}

// Where a lane's half of a baseline starts, of 8 numbers: what the two lanes of a pair move at a time is a sector of 32
// bytes. The even lane has products 0 and 2 of integers, the odd one 1 and 3; of floats 0 and 1, and 2 and 3.
__device__ __forceinline__ int start_of_half(bool odd)
{
    return odd ? (BITS == 16 ? 4 : 2) : 0;
}

// The lanes of a pair have a baseline each, and trade halves: `kept` is the lane's half of its own baseline, `received`
// that of the other lane's. All lanes of the warp take part.
template <class T>
__device__ __forceinline__ void trade(Sums<T, 2>& kept, Sums<T, 2>& received, const Sums<T, 4>& own, bool odd)
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int of_even = BITS == 16 ? i : 2 * i, of_odd = BITS == 16 ? 2 + i : 2 * i + 1;
        kept.re[i] = odd ? own.re[of_odd] : own.re[of_even];
        kept.im[i] = odd ? own.im[of_odd] : own.im[of_even];
        received.re[i] = __shfl_xor_sync(0xffffffffu, odd ? own.re[of_even] : own.re[of_odd], 1);
        received.im[i] = __shfl_xor_sync(0xffffffffu, odd ? own.im[of_even] : own.im[of_odd], 1);
    }
}
