// The weighted sums of one complex column. A thread holds FIR_TAPS weights and FIR_SPECTRA sums; each point is unpacked
// once for each FIR_TAPS taps, and added to all sums that it is part of.
constexpr int TAP_CHUNKS = (TAPS + FIR_TAPS - 1) / FIR_TAPS;
constexpr int LAST_TAPS = TAPS - (TAP_CHUNKS - 1) * FIR_TAPS;

// Weights of tap `tap` for both parts of column n.
__device__ __forceinline__ float2 load_weights(const float* __restrict__ weights, int tap, int n)
{
    if constexpr (COMPLEX) {
        const float w = __ldg(weights + tap * STEP + n);
        return make_float2(w, w);
    } else {
        return __ldg(reinterpret_cast<const float2*>(weights + tap * STEP) + n);
    }
}

// Taps `first` to first + N of S spectra. LAST: and the squares of the points that are newest in their spectra.
template <int S, int N, bool LAST, bool GUARDED>
__device__ __forceinline__ void add_taps(
    float2 (&sums)[S], Squares& squares, const Column& column, const float* __restrict__ weights, int n, int first)
{
    float2 w[N];
#pragma unroll
    for (int t = 0; t < N; ++t)
        w[t] = load_weights(weights, first + t, n);
#pragma unroll
    for (int r = 0; r < S + N - 1; ++r) {
        const float2 point = column.at<GUARDED>(first + r);
        if constexpr (LAST && !COMPLEX)
            if (r >= N - 1)
                add_squares(squares, point);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (r >= s && r - s < N) {
                sums[s].x = __fmaf_rn(w[r - s].x, point.x, sums[s].x);
                sums[s].y = __fmaf_rn(w[r - s].y, point.y, sums[s].y);
            }
        }
    }
}

// S spectra of which the second and later ones start STEP samples after the one before.
template <int S, bool GUARDED>
__device__ __forceinline__ void filter(
    float2 (&sums)[S], Squares& squares, const Column& column, const float* __restrict__ weights, int n)
{
#pragma unroll
    for (int s = 0; s < S; ++s)
        sums[s] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int chunk = 0; chunk < TAP_CHUNKS - 1; ++chunk)
        add_taps<S, FIR_TAPS, false, GUARDED>(sums, squares, column, weights, n, chunk * FIR_TAPS);
    add_taps<S, LAST_TAPS, true, GUARDED>(sums, squares, column, weights, n, (TAP_CHUNKS - 1) * FIR_TAPS);
}

// What a block filters: its samples, and where its runs of FIR_SPECTRA spectra start.
struct Stream {
    const unsigned char* samples;
    const float* weights;
    const long long* offsets;
    long long row_bytes;
    Part part;

    __device__ __forceinline__ Column column(int pol, long long start, int n) const
    {
        constexpr int POINT = COMPLEX ? 1 : 2;  // samples of it
        const long long bit = pol * row_bytes * 8 + (start + POINT * n) * SAMPLE_BITS;
        return Column(samples, bit, row_bytes * N_POLS);
    }

    __device__ __forceinline__ long long start(int pol, int s) const { return offsets[(part.first() + s) * N_POLS + pol]; }

    // Where FIR_SPECTRA spectra from number s on start, or -1 where they do not follow each other or are not all made.
    __device__ __forceinline__ long long start_of_run(int pol, int s) const
    {
        if (!part.is_whole(s, FIR_SPECTRA))
            return -1;
        const long long first = start(pol, s);
        bool is_regular = first >= 0;
        for (int i = 1; i < FIR_SPECTRA; ++i)
            is_regular &= start(pol, s + i) == first + static_cast<long long>(i) * STEP;
        return is_regular ? first : -1;
    }

    // Column n of FIR_SPECTRA spectra from number s on: put(i, sum) gets each; of those that are not made, 0.
    template <class Put>
    __device__ __forceinline__ unsigned long long filter_run(int pol, int s, long long run_start, int n, Put put) const
    {
        Squares squares = 0;
        if (run_start >= 0) {
            const Column its = column(pol, run_start, n);
            if (its.is_inside(FIR_SPECTRA + TAPS - 2)) {
                float2 sums[FIR_SPECTRA];
                filter<FIR_SPECTRA, false>(sums, squares, its, weights, n);
#pragma unroll
                for (int i = 0; i < FIR_SPECTRA; ++i)
                    put(i, sums[i]);
                return whole(squares);
            }
        }
#pragma unroll 1
        for (int i = 0; i < FIR_SPECTRA; ++i) {  // one by one: wherever they start, and at the end of the samples
            float2 sum[1] = {make_float2(0.0f, 0.0f)};
            if (part.has(s + i) && start(pol, s + i) >= 0)
                filter<1, true>(sum, squares, column(pol, start(pol, s + i), n), weights, n);
            put(i, sum[0]);
        }
        return whole(squares);
    }
};
