// The filter of one complex column: a thread computes the weighted sums of S spectra. It holds FIR_TAPS weights. Each
// point is unpacked once for every FIR_TAPS taps and added to all sums that it is part of. If a thread holds the
// weights of all taps, a sum begins with its first point and ends with its last, so at most TAPS sums are in registers
// at once.
// Needs     power.cuh (add_squares)
// Provides  Weights: prepare, at; filter_column
constexpr int TAP_CHUNKS = (TAPS + FIR_TAPS - 1) / FIR_TAPS;
constexpr int LAST_TAPS = TAPS - (TAP_CHUNKS - 1) * FIR_TAPS;

// FIR_TAPS complex weights of one column, in registers.
struct Weights {
    float2 of[FIR_TAPS];

    // Loads the weights of all taps if a thread holds so many; otherwise filter_column() loads them chunk by chunk.
    // `weights` points to the weight of the column's first tap.
    __device__ __forceinline__ void prepare(const float* __restrict__ weights)
    {
        if (TAP_CHUNKS == 1)
            load<LAST_TAPS>(weights, 0);
    }

    // Loads N weights from tap `first` on.
    template <int N>
    __device__ __forceinline__ void load(const float* __restrict__ weights, int first)
    {
#pragma unroll
        for (int t = 0; t < N; ++t)
            of[t] = at(weights, first + t);
    }

    // Returns one weight. The load is volatile so that all loads of a column are under way at once. All parts use the
    // same weights, so they are the last to be evicted from the L2 cache. They bypass the small L1 cache, since a block
    // does not come back to a column soon and twiddles make better use of it.
    static __device__ __forceinline__ float2 at(const float* __restrict__ weights, int tap)
    {
        const float* from = weights + tap * STEP;
        if constexpr (COMPLEX) {
            const float w = __ldg(from);
            return make_float2(w, w);
        } else {
#ifdef AUTOTUNE_HOST
            return *reinterpret_cast<const float2*>(from);
#else
            unsigned long long last;
            asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
            float2 w;
            asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.f32 { %0, %1}, [%2], %3;"
                         : "=f"(w.x), "=f"(w.y)
                         : "l"(from), "l"(last));
            return w;
#endif
        }
    }
};

// Adds taps [first, first + N) of S spectra to their sums. With LAST, it also adds the squares of each spectrum's
// newest points to `squares`, and calls put(s, sum) with the complete sum of each spectrum s for which wants(s) is
// true. It calls put() as soon as the sum is known, but after starting the load of the next row, which must not wait.
template <int S, int N, bool LAST, class Column, class Wants, class Put>
__device__ __forceinline__ void add_taps(
    float2 (&sums)[S], Squares& squares, const Column& column, const Weights& w, int first, const Wants& wants,
    const Put& put)
{
    float2 following = column.at(first);
#pragma unroll
    for (int r = 0; r < S + N - 1; ++r) {
        const float2 point = following;
        if (r + 1 < S + N - 1)
            following = column.at(first + r + 1);
        if constexpr (LAST && !COMPLEX)
            if (r >= N - 1 && wants(r - N + 1))
                add_squares(squares, point);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (r >= s && r - s < N) {
                sums[s].x = __fmaf_rn(w.of[r - s].x, point.x, sums[s].x);
                sums[s].y = __fmaf_rn(w.of[r - s].y, point.y, sums[s].y);
            }
        }
        if (LAST && r >= N - 1 && wants(r - N + 1))
            put(r - N + 1, sums[r - N + 1]);
    }
}

// Filters S spectra, each of which starts STEP samples after the one before it. column.at(row) must return a point, and
// `w` must be prepared.
template <int S, class Column, class Wants, class Put>
__device__ __forceinline__ void filter_column(
    Squares& squares, const Column& column, Weights& w, const float* __restrict__ weights, const Wants& wants,
    const Put& put)
{
    float2 sums[S];
#pragma unroll
    for (int s = 0; s < S; ++s)
        sums[s] = make_float2(0.0f, 0.0f);
    if constexpr (TAP_CHUNKS == 1) {
        add_taps<S, TAPS, true>(sums, squares, column, w, 0, wants, put);
    } else {
#pragma unroll 1
        for (int first = 0; first < TAPS - LAST_TAPS; first += FIR_TAPS) {
            w.load<FIR_TAPS>(weights, first);
            add_taps<S, FIR_TAPS, false>(sums, squares, column, w, first, wants, put);
        }
        w.load<LAST_TAPS>(weights, TAPS - LAST_TAPS);
        add_taps<S, LAST_TAPS, true>(sums, squares, column, w, TAPS - LAST_TAPS, wants, put);
    }
}
