// Results: sums of baselines are added to global memory, or overwrite it.
// Needs     nothing
// Provides  Sums; put; add_shared

// Sums of COUNT products of a baseline; number p + 2 q is of polarisation p of the earlier receiver and q of the later.
template <class Number, int COUNT>
struct Sums {
    Number re[COUNT], im[COUNT];
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

// Returns 16 bytes of results: sums number i and on, added to what was there. A sum of nibbles is a multiple of
// 2^SUM_SHIFT.
template <int COUNT>
__device__ __forceinline__ float4 piece_of(float4 before, const Sums<float, COUNT>& sums, int i)
{
    return make_float4(before.x + sums.re[2 * i], before.y + sums.im[2 * i], before.z + sums.re[2 * i + 1],
                       before.w + sums.im[2 * i + 1]);
}

template <int COUNT>
__device__ __forceinline__ int4 piece_of(int4, const Sums<int, COUNT>& sums, int i)  // overwrites
{
    return make_int4(sums.re[2 * i] >> SUM_SHIFT, sums.im[2 * i] >> SUM_SHIFT, sums.re[2 * i + 1] >> SUM_SHIFT,
                     sums.im[2 * i + 1] >> SUM_SHIFT);
}

template <int COUNT>
__device__ __forceinline__ longlong2 piece_of(longlong2 before, const Sums<int, COUNT>& sums, int i)
{
    return make_longlong2(before.x + (sums.re[i] >> SUM_SHIFT), before.y + (sums.im[i] >> SUM_SHIFT));
}

// Adds the sums of some baselines to their results, or overwrites these, where `valid`. All loads come before any use.
// The pieces of a baseline may lie apart.
template <int BASELINES, int COUNT>
__device__ __forceinline__ void put(
    Result* const (&results)[BASELINES], const Sums<Sum, COUNT> (&sums)[BASELINES], const bool (&valid)[BASELINES],
    int apart = 1)
{
    constexpr int N = COUNT * sizeof(Result) * 2 / sizeof(Piece);
    Piece before[BASELINES][N] = {};
    if constexpr (!OVERWRITES) {
#pragma unroll
        for (int k = 0; k < BASELINES; ++k)
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (valid[k])
                    before[k][i] = load(reinterpret_cast<Piece*>(results[k]) + i * apart);
    }
#pragma unroll
    for (int k = 0; k < BASELINES; ++k)
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (valid[k])
                store(reinterpret_cast<Piece*>(results[k]) + i * apart, piece_of(before[k][i], sums[k], i));
}

// Trades numbers among the four lanes of a row: number n of lane m becomes number m of lane n. All lanes of the warp
// take part.
template <class Number>
__device__ __forceinline__ void transpose(Number (&numbers)[4])
{
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) {
        const bool is_later = threadIdx.x & apart;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k & apart)
                continue;
            const Number received = __shfl_xor_sync(0xffffffffu, is_later ? numbers[k] : numbers[k + apart], apart);
            (is_later ? numbers[k] : numbers[k + apart]) = received;
        }
    }
}

// Adds four numbers of a lane to results to which other blocks add, too. The lanes of a row trade their numbers first,
// so that they add to a whole sector at a time: lane n adds number n of each. place_of_lane(m) returns the place of lane
// m's numbers among `results`, or -1 if they have none. All lanes of the warp take part.
template <class Number, class Place>
__device__ __forceinline__ void add_shared(Result* results, Number (&numbers)[4], const Place& place_of_lane)
{
    transpose(numbers);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
        const int place = place_of_lane(m);
        const long long number = numbers[m] >> SUM_SHIFT;
        if (place >= 0)
            atomicAdd(reinterpret_cast<unsigned long long*>(results + place + threadIdx.x % 4),
                      static_cast<unsigned long long>(number));
    }
}
