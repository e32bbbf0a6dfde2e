// Streams: FIR_THREADS threads of a block filter the columns of a part, a piece at a time. In a piece a thread filters
// one column of one run of FIR_SPECTRA spectra.
// Needs     part.cuh (Part), samples.cuh (Column, fetch_bytes), taps.cuh (Weights, filter_column),
//           power.cuh (add_squares, whole), lib/vector.cuh (ceil_div)
// Provides  Starts; Stream: own_start, put_starts, filter, fetch
constexpr int FIR_ROWS = FIR_SPECTRA + TAPS - 1;  // points of a column in FIR_SPECTRA sums
constexpr int N_PIECES = ceil_div(FIR_WIDTH * N_RUNS, FIR_THREADS);  // pieces of a polarisation

// First sample of each spectrum, or -1 to skip it. of_runs: first sample of each run of FIR_SPECTRA spectra, or -1 if
// the run is not contiguous or passes the end of the buffer.
struct Starts {
    long long of[PART_SPECTRA], of_runs[N_RUNS];
};

// A column whose rows [first, first + last] are rows [0, last] of another column. Rows before and after repeat the
// nearest of these.
struct Shifted {
    Column<false> column;
    int first, last;

    __device__ __forceinline__ float2 at(int row) const { return column.at(min(max(row - first, 0), last)); }
};

struct Stream {
    const unsigned char* samples;
    const float* weights;
    const long long* offsets;
    long long row_bytes;
    int first_column;  // first column of the block

    // Returns the first sample of spectrum s of a part. Returns -1 if is_one is false or the part lacks the spectrum.
    __device__ __forceinline__ long long own_start(const Part& part, int pol, int s, bool is_one) const
    {
        return is_one && part.has(s) ? offsets[(part.first() + s) * N_POLS + pol] : -1;
    }

    // Stores the starts that the threads of a warp have from own_start() in shared memory, for all threads.
    // Neighbouring threads have neighbouring spectra.
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

    // Filters N polarisations from first_pol on. starts[p] belongs to polarisation first_pol + p, and for it
    // put_of(p)(s, c, sum) is called with the sum of spectrum s of the part and point c of the block. The sum is 0 for
    // a spectrum that is skipped. Adds the squares of the newest samples to power[p].
    template <int N, class PutOf>
    __device__ __forceinline__ void filter(
        unsigned long long (&power)[N], int first_pol, const Starts* starts, PutOf put_of) const
    {
        Weights w;
#pragma unroll 1
        for (int piece = 0; piece < N_PIECES; ++piece) {
            w.prepare(weights_of(point(column_of(piece))));
#pragma unroll 1
            for (int p = 0; p < N; ++p) {
                const unsigned long long squares = filter_piece(first_pol + p, piece, starts[p], w, put_of(p));
#pragma unroll
                for (int i = 0; i < N; ++i)
                    power[i] += i == p ? squares : 0;
            }
        }
    }

{% if config.get("SAMPLES") == "ahead" %}
    // Loads samples of a part that starts at `from` into the L2 cache, except those that the previous part also uses.
    __device__ __forceinline__ void fetch(int pol, long long from) const
    {
        constexpr long long ROW_BYTES = 4 * ROW_WORDS;
        if (from < 0)
            return;
        const long long first = first_bit(pol, from, 0) / 8 + (TAPS - 1) * ROW_BYTES;
        fetch_bytes<FIR_THREADS>(samples, first, min(first + PART_SPECTRA * ROW_BYTES, n_bytes()));
    }

{% endif %}
private:
    __device__ __forceinline__ long long n_bytes() const { return row_bytes * N_POLS; }

    // Returns the number, in a spectrum, of the point in column c of the block.
    __device__ __forceinline__ int point(int c) const { return c / SEGMENT * N2 + first_column + c % SEGMENT; }

    __device__ __forceinline__ const float* weights_of(int n) const { return weights + (COMPLEX ? 1 : 2) * n; }

    // Returns the calling thread's column of a piece. If PAIRED, its columns are those at whose places in z its pairs
    // of bins will lie.
    static __device__ __forceinline__ int column_of(int piece)
    {
        if constexpr (PAIRED) {
            const int pair = piece / 2 * FIR_THREADS + threadIdx.x;
            const int partner = COMPLEX || pair == 0 ? pair + N2 / 2 : N2 - pair;
            return piece % 2 == 0 ? pair : partner;
        }
        return (piece * FIR_THREADS + threadIdx.x) % FIR_WIDTH;
    }

    // Returns the bit at which point n of a spectrum begins. The spectrum starts at sample `start`.
    __device__ __forceinline__ long long first_bit(int pol, long long start, int n) const
    {
        return pol * row_bytes * 8 + start * SAMPLE_BITS + static_cast<long long>(n) * POINT_BITS;
    }

    // Filters the thread's column of a piece and calls put(s, c, sum) with each sum. Returns the sum of squares.
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
            filter_column<FIR_SPECTRA>(squares, column, w, weights_of(n), [](int) { return true; }, put_here);
        else
            squares = filter_each(*this, starts.of + s, pol, n, put_here);
        return whole(squares);
    }

    // Filters a run whose spectra may start anywhere, at of[0] and so on. Spectra that follow each other are filtered
    // together, like a run whose other spectra are not wanted. Samples beyond the end count as 0, and the sum of a
    // skipped spectrum is 0. Few runs come here. It is not inlined, since it would take registers from the other runs;
    // with only one launch it is, since a call would spill the registers of a thread. Returns the sum of squares.
    template <class Put>
    static __device__ {{ "__forceinline__" if config.ALGORITHM == "one" else "__noinline__" }} Squares
    filter_each(Stream stream, const long long* of, int pol, int n, Put put)
    {
        Squares squares = 0;
        Weights w;
        w.prepare(stream.weights_of(n));
#pragma unroll 1
        for (int from = 0, to; from < FIR_SPECTRA; from = to) {
            for (to = from + 1; to < FIR_SPECTRA && of[from] >= 0 && of[to] == of[to - 1] + STEP; ++to) {
            }
            const long long bit = stream.first_bit(pol, of[from], n);
            const Column<false> column(stream.samples, bit, stream.n_bytes());
            const int last = to - from + TAPS - 2;  // last row that they need
            if (of[from] < 0) {
                for (int i = from; i < to; ++i)
                    put(i, make_float2(0.0f, 0.0f));
            } else if (column.is_inside(last)) {
                filter_column<FIR_SPECTRA>(
                    squares, Shifted{column, from, last}, w, stream.weights_of(n),
                    [&](int i) { return from <= i && i < to; }, put);
            } else {
                for (int i = from; i < to; ++i)
                    put(i, stream.sum_of({stream.samples, bit, stream.n_bytes()}, i - from, n, squares));
            }
        }
        return squares;
    }

    // Returns the weighted sum of the points from `row` on, and adds the newest point's squares to `squares`.
    __device__ __forceinline__ float2 sum_of(const Column<true>& column, int row, int n, Squares& squares) const
    {
        float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 1
        for (int t = 0; t < TAPS; ++t) {
            const float2 w = Weights::at(weights_of(n), t), point = column.at(row + t);
            sum.x = __fmaf_rn(w.x, point.x, sum.x);
            sum.y = __fmaf_rn(w.y, point.y, sum.y);
            if constexpr (!COMPLEX)
                if (t == TAPS - 1)
                    add_squares(squares, point);
        }
        return sum;
    }
};
