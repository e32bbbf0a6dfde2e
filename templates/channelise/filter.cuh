// The weighted sums of one complex column. A thread holds FIR_TAPS weights; each point is unpacked once for each FIR_TAPS
// taps, and added to all of FIR_SPECTRA sums that it is part of. If it holds the weights of all taps, a sum is begun with
// its first point and done with its last one: it holds no more sums at once than there are taps.
constexpr int TAP_CHUNKS = (TAPS + FIR_TAPS - 1) / FIR_TAPS;
constexpr int LAST_TAPS = TAPS - (TAP_CHUNKS - 1) * FIR_TAPS;
constexpr int FIR_ROWS = FIR_SPECTRA + TAPS - 1;  // points of a column of which FIR_SPECTRA sums are made
constexpr int N_PIECES = ceil_div(FIR_WIDTH * N_RUNS, FIR_THREADS);  // what a block filters of a polarisation

// Of both parts of a column, as many as a thread holds.
struct Weights {
    float2 of[FIR_TAPS];

    // N weights from tap `first` on; weights: those of the column's first tap.
    template <int N>
    __device__ __forceinline__ void load(const float* __restrict__ weights, int first)
    {
#pragma unroll
        for (int t = 0; t < N; ++t)
            of[t] = weights_at(weights, first + t);
    }

    // Volatile: all loads of a column are under way at once. All parts want the same weights, so that they are the last to
    // leave the L2 cache; but a block does not come back to a column soon, and twiddles have more of a small cache.
    static __device__ __forceinline__ float2 weights_at(const float* __restrict__ weights, int tap)
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

// Taps `first` to first + N of S spectra. LAST: and the squares of the points that are newest in their spectra.
// Of spectra that wants(s) says, put(s, sum) gets each sum as soon as it is complete, behind the load of the row after it,
// which must not wait for it.
template <int S, int N, bool LAST, class Column, class Wants, class Put>
__device__ __forceinline__ void add_taps(
    float2 (&sums)[S], Squares& squares, const Column& column, const Weights& w, int first, const Wants& wants, const Put& put)
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

// S spectra of which the second and later ones start STEP samples after the one before. With one chunk of taps, w has
// the column's weights.
template <int S, class Column, class Wants, class Put>
__device__ __forceinline__ void filter(
    Squares& squares, const Column& column, Weights& w, const float* __restrict__ weights, const Wants& wants, const Put& put)
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

// A column of which only rows from `first` on are there, rows 0 to `last` of another one; other rows are some of these.
struct Shifted {
    Column<false> column;
    int first, last;

    __device__ __forceinline__ float2 at(int row) const { return column.at(min(max(row - first, 0), last)); }
};

// Where the spectra of a part start; -1: one is not made. Of a run: -1, too, if its spectra do not follow each other, or some
// of their samples lie beyond the end.
struct Starts {
    long long of[PART_SPECTRA], of_runs[N_RUNS];
};

// What a block filters. FIR_THREADS threads filter a piece at a time, a column each, of one run of FIR_SPECTRA spectra.
struct Stream {
    const unsigned char* samples;
    const float* weights;
    const long long* offsets;
    long long row_bytes;
    int first_column;

    __device__ __forceinline__ long long n_bytes() const { return row_bytes * N_POLS; }

    // The point that column c of the block is.
    __device__ __forceinline__ int point(int c) const { return c / SEGMENT * N2 + first_column + c % SEGMENT; }

    __device__ __forceinline__ const float* weights_of(int n) const { return weights + (COMPLEX ? 1 : 2) * n; }

    // The calling thread's column of a piece. Paired: those in whose places it finds its pairs of bins.
    static __device__ __forceinline__ int column_of(int piece)
    {
        if constexpr (PAIRED) {
            const int pair = piece / 2 * FIR_THREADS + threadIdx.x;
            const int partner = COMPLEX || pair == 0 ? pair + N2 / 2 : N2 - pair;
            return piece % 2 == 0 ? pair : partner;
        }
        return (piece * FIR_THREADS + threadIdx.x) % FIR_WIDTH;
    }

    __device__ __forceinline__ const float* weights_of_piece(int piece) const { return weights_of(point(column_of(piece))); }

    // Where point n of a spectrum begins that starts at sample `start`.
    __device__ __forceinline__ long long first_bit(int pol, long long start, int n) const
    {
        return pol * row_bytes * 8 + start * SAMPLE_BITS + static_cast<long long>(n) * POINT_BITS;
    }

{% if config.get("SAMPLES") == "ahead" %}
    // Brings samples of a part that starts at `from` to the L2 cache: what its spectra have that the part before has not.
    __device__ __forceinline__ void fetch(int pol, long long from) const
    {
        constexpr long long ROW_BYTES = 4 * ROW_WORDS;
        if (from < 0)
            return;
        const long long first = first_bit(pol, from, 0) / 8 + (TAPS - 1) * ROW_BYTES;
        fetch_bytes<FIR_THREADS>(samples, first, min(first + PART_SPECTRA * ROW_BYTES, n_bytes()));
    }

{% endif %}
    // Where spectrum s of a part starts, if it is one; -1: it is not made.
    __device__ __forceinline__ long long own_start(const Part& part, int pol, int s, bool is_one) const
    {
        return is_one && part.has(s) ? offsets[(part.first() + s) * N_POLS + pol] : -1;
    }

    // What the threads of a warp know by own_start(), neighbouring spectra each, for all.
    __device__ __forceinline__ void put_starts(Starts& starts, int pol, int s, bool is_one, long long own) const
    {
        constexpr unsigned ALL = 0xffffffffu >> (32 - FIR_SPECTRA);
        const int lane = threadIdx.x % 32, first_lane = lane - lane % FIR_SPECTRA;
        const long long first = __shfl_sync(0xffffffffu, own, first_lane);
        const bool follows = first >= 0 && own == first + static_cast<long long>(lane % FIR_SPECTRA) * STEP;
        const bool is_regular = (__ballot_sync(0xffffffffu, follows) >> first_lane & ALL) == ALL;
        if (!is_one)
            return;
        starts.of[s] = own;
        if (s % FIR_SPECTRA == 0) {
            const Column<false> last(samples, first_bit(pol, first, N_POINTS - 1), n_bytes());
            starts.of_runs[s / FIR_SPECTRA] = is_regular && last.is_inside(FIR_ROWS - 1) ? first : -1;
        }
    }

    // A run whose spectra start at of[0] and so on, wherever that is. Those that follow each other are filtered like a run,
    // of which the others are not wanted; samples beyond the end are 0, and a spectrum that is not made is, too.
    // Few runs come here. Inline, it would take registers from the others; called, it would spill what a thread of the only
    // launch holds. Returns the squares.
    template <class Put>
    static __device__ {{ "__forceinline__" if config.ALGORITHM == "one" else "__noinline__" }} Squares
    filter_each(Stream stream, const long long* of, int pol, int n, Put put)
    {
        Squares squares = 0;
        Weights w;
        if (TAP_CHUNKS == 1)
            w.load<LAST_TAPS>(stream.weights_of(n), 0);
#pragma unroll 1
        for (int from = 0, to; from < FIR_SPECTRA; from = to) {
            for (to = from + 1; to < FIR_SPECTRA && of[from] >= 0 && of[to] == of[to - 1] + STEP; ++to) {
            }
            const long long bit = stream.first_bit(pol, of[from], n);
            const Column<false> column(stream.samples, bit, stream.n_bytes());
            const int last = to - from + TAPS - 2;  // row that they want
            if (of[from] < 0) {
                for (int i = from; i < to; ++i)
                    put(i, make_float2(0.0f, 0.0f));
            } else if (column.is_inside(last)) {
                filter<FIR_SPECTRA>(
                    squares, Shifted{column, from, last}, w, stream.weights_of(n), [&](int i) { return from <= i && i < to; }, put);
            } else {
                for (int i = from; i < to; ++i)
                    put(i, stream.sum_of({stream.samples, bit, stream.n_bytes()}, i - from, n, squares));
            }
        }
        return squares;
    }

    // The sum of taps from `row` on, and the squares.
    __device__ __forceinline__ float2 sum_of(const Column<true>& column, int row, int n, Squares& squares) const
    {
        float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int t = 0; t < TAPS; ++t) {
            const float2 w = Weights::weights_at(weights_of(n), t), point = column.at(row + t);
            sum.x = __fmaf_rn(w.x, point.x, sum.x);
            sum.y = __fmaf_rn(w.y, point.y, sum.y);
            if constexpr (!COMPLEX)
                if (t == TAPS - 1)
                    add_squares(squares, point);
        }
        return sum;
    }

    // A thread's column of piece number `piece`, of which c, the number in the block, is less than FIR_WIDTH, and n the
    // point: put(s, c, sum) gets each sum; of spectra that are not made, 0. Returns the squares.
    template <class Put>
    __device__ __forceinline__ unsigned long long filter_piece(
        int pol, int piece, const Starts& starts, Weights& w, Put put) const
    {
        const int c = column_of(piece), run = (piece * FIR_THREADS + threadIdx.x) / FIR_WIDTH;
        if (FIR_WIDTH * N_RUNS < FIR_THREADS && run >= N_RUNS)
            return 0;
        const int n = point(c), s = run * FIR_SPECTRA;
        const auto put_here = [&](int i, float2 sum) { put(s + i, c, sum); };
        Squares squares = 0;
        const Column<false> column(samples, first_bit(pol, starts.of_runs[run], n), n_bytes());
        if (starts.of_runs[run] >= 0)
            filter<FIR_SPECTRA>(squares, column, w, weights_of(n), [](int) { return true; }, put_here);
        else
            squares = filter_each(*this, starts.of + s, pol, n, put_here);
        return whole(squares);
    }
};
