// channelise[taps=4,n_channels=64,sample_bits=8,n_pols=2,bits=4,nibbles=real_high,layout=batches,times_per_block=16,spectra_per_heap=16,precision=single|SPECTRA=4,POLS=together,THREADS=128,MIN_BLOCKS=1,FIR_SPECTRA=4,FIR_TAPS=8,POST_SPECTRA=4,UNPACKING=in_place,ALGORITHM=one,SAMPLES=when_read,TWIDDLES=global]
// z[s][p][c] = sum over t < TAPS of w[t][c] x[p][o[s][p] + t STEP + c],  c < STEP;  X = DFT of z
// v[s][p][k] = X[k] e^(i (phase - pi delay (k - C/2) / C)) gain,  k < C = N_CHANNELS
//   voltages     inout  int8    batches: [n_heaps][C][SPECTRA_PER_HEAP][N_POLS][2]
//                               blocks:  [C][n_times / TIMES_PER_BLOCK][N_POLS][TIMES_PER_BLOCK][2]
//                               4 bits: both parts in one byte, the real one in its high nibble
//   saturated    inout  uint32  [n_heaps][N_POLS]          samples with a saturated part are added
//   total_power  inout  uint64  [N_POLS]                   += squares of the newest STEP samples of each spectrum
//   samples      in     uint8   [N_POLS][row_bytes]        SAMPLE_BITS wide, two's complement, most significant bit first
//                               (float2 [N_POLS][row_bytes / 8])
//   weights      in     float   [TAPS][STEP]
//   offsets      in     int64   [n_times][N_POLS]          o, samples, to any bit of a byte
//   delays       in     float   [n_times][N_POLS]          samples
//   phases       in     float   [n_times][N_POLS]          radians
//   gains        in     float2  [C][N_POLS]
// Spectra first_spectrum to first_spectrum + n_spectra are made; of the others nothing is read or written.
//
// Real samples: even and odd ones are the parts of N = C complex points, and X[k], X[N - k] follow from Z[k], Z[N - k].
// N = N1 N2, point n1 N2 + n2, bin k1 + N1 k2:
//   channelise_tables             makes what the others look up: twiddles, what splits pairs of bins, gains in polar form
//   channelise_columns  (N1 > 1)  filters points of neighbouring n2, transforms along n1     -> between[p][part]
//   channelise                    (filters, if N1 is 1,) transforms rows of N2 = RADIX_1 RADIX_2 points, makes voltages
// Parts   a heap's spectra are cut into parts of PART_SPECTRA; a block has a part, or SPECTRA of it
// Each file that is included says in its head what it needs of the others; the constants here are there for all.

constexpr int TAPS = 4;  // spectra that a weighted sum spans
constexpr int N_CHANNELS = 64;  // C
constexpr int SAMPLE_BITS = 8;  // 64: two floats
constexpr int N_POLS = 2;
constexpr int BITS = 4;  // of each part of a voltage
constexpr bool BLOCKS = false;  // the layout
constexpr int TIMES_PER_BLOCK = 1;  // batches: as if 1
constexpr int SPECTRA_PER_HEAP = 16;

constexpr int N1 = 1;  // points of a column's transform; 1: there is none
constexpr int N2 = 64;  // points of a row's transform
constexpr int RADIX_1 = 8;  // of its first pass
constexpr int RADIX_2 = 8;  // of its second one; also the threads of a row
constexpr int PART_SPECTRA = 4;
constexpr int PARTS_PER_HEAP = 4;
constexpr int THREADS = 128;
constexpr int SPECTRA = 4;  // of its blocks
constexpr int POLS_AT_ONCE = 2;  // polarisations whose rows a block has at once
constexpr int ROUNDS = N_POLS / POLS_AT_ONCE;  // in which a block has all of them
constexpr int HALVES = 1;  // rows of a spectrum that a block has: those whose bins are pairs
constexpr int N_ROWS = 8;  // that a block has at once
constexpr int SLICE_VALUES = 72;  // complex values from row to row
constexpr int N_PAIRS = 32;  // pairs of bins of a block
constexpr int N_ALL_PAIRS = 32;
constexpr int POST_SPECTRA = 4;  // spectra of a unit of work of the last step: its pair is one
constexpr int N_UNITS = 32;
constexpr int UNITS_PER_THREAD = 1;
constexpr int FIR_THREADS = 128;  // of the block that filters
constexpr int FIR_WIDTH = 64;  // points of a spectrum that it has
constexpr int SEGMENT = 64;  // neighbouring ones among them
constexpr int N_RUNS = 1;  // of FIR_SPECTRA spectra that it filters
constexpr int FIR_SPECTRA = 4;  // consecutive ones of which a thread makes the sums of a column
constexpr int FIR_TAPS = 4;  // weights of a column that it holds
constexpr bool PAIRED = false;  // a thread filters in the places of its bins
constexpr int N_FIRST_TWIDDLES = 0;
constexpr int N_TWIDDLES = 32;
constexpr int VECTOR_BYTES = 8;  // the widest store that all runs of voltages are made of

constexpr bool COMPLEX = SAMPLE_BITS == 64;
constexpr int STEP = COMPLEX ? N_CHANNELS : 2 * N_CHANNELS;  // samples from one spectrum to the next
constexpr int N_POINTS = N_CHANNELS;
constexpr int POINT_BITS = COMPLEX ? 64 : 2 * SAMPLE_BITS;
constexpr int ROW_WORDS = N_POINTS / 32 * POINT_BITS;  // from one row of STEP samples to the next
constexpr int VOLTAGE_BYTES = BITS / 4;
constexpr int WORDS = POST_SPECTRA * VOLTAGE_BYTES / 4;  // of a bin's voltages of a unit of work, of one polarisation
constexpr int CODES = 1 << BITS, MOST = CODES / 2 - 1;  // values of BITS bits; the largest part of a voltage
typedef float Squares;  // holds a thread's sum of squares of one column exactly
constexpr bool SMALL_SQUARES = true;  // 32 bits hold those of a warp
constexpr bool FLOAT_SQUARES = true;

// N consecutive floats that one instruction moves; the address must be a multiple of 4 N bytes.
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

// (value & mask) ^ pattern in one instruction: a compiler that sees two constants makes two of it.
__device__ __forceinline__ unsigned and_xor(unsigned value, unsigned mask, unsigned pattern)
{
#ifdef AUTOTUNE_HOST
    return (value & mask) ^ pattern;
#else
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(value), "r"(mask), "r"(pattern));
    return result;
#endif
}

// The calling thread's number, read again. The compiler does not know that it is the same: it does not compute what
// follows from it before a loop, and keep it in registers, or in local memory, until it is used.
__device__ __forceinline__ int thread_again()
{
#ifdef AUTOTUNE_HOST
    return threadIdx.x;
#else
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}

// Parts: each heap's spectra are cut into parts of PART_SPECTRA, which blocks share out.
// Needs     nothing
// Provides  Part; part_at

// A range of spectra of one heap: one part, or the piece of it that a block handles. Those numbered [from, to) are
// made.
struct Part {
    long long heap;
    int in_heap;  // number of the first spectrum in the heap
    int from, to;  // counted from there

    __device__ __forceinline__ bool has_any() const { return from < to; }
    __device__ __forceinline__ bool has(int s) const { return from <= s && s < to; }
    __device__ __forceinline__ bool is_whole(int s, int n) const { return from <= s && s + n <= to; }
    __device__ __forceinline__ long long first() const { return heap * SPECTRA_PER_HEAP + in_heap; }
};

__device__ __forceinline__ int clamped(long long value, int most)
{
    return value < 0 ? 0 : value > most ? most : static_cast<int>(value);
}

// Returns spectra `skipped` to `skipped` + n of part number `index`, counted from the part that has first_spectrum.
__device__ __forceinline__ Part part_at(
    long long index, int skipped, int n, long long first_spectrum, long long n_spectra)
{
    const long long number = first_spectrum / SPECTRA_PER_HEAP * PARTS_PER_HEAP +
                             first_spectrum % SPECTRA_PER_HEAP / PART_SPECTRA + index;
    Part part;
    part.heap = number / PARTS_PER_HEAP;
    part.in_heap = static_cast<int>(number % PARTS_PER_HEAP) * PART_SPECTRA + skipped;
    const long long first = part.first();
    const int there = clamped(SPECTRA_PER_HEAP - part.in_heap, n);
    part.from = clamped(first_spectrum - first, there);
    part.to = clamped(first_spectrum + n_spectra - first, there);
    return part;
}

// Samples in global memory become points: two samples are the parts of a complex one, as floats.
// Needs     lib/bits.cuh (and_xor)
// Provides  SAMPLE_SCALE; Column: at, is_inside; fetch_bytes
constexpr float SAMPLE_SCALE = COMPLEX ? 1.0f : 1.0f / (1 << SAMPLE_BITS % 32);  // what a sample of 1 becomes
constexpr bool NARROW = SAMPLE_BITS <= 12;  // two samples lie in four bytes, wherever they begin
constexpr bool IN_BYTES = SAMPLE_BITS <= 8;  // and in the 23 bits of a mantissa, if the right bytes are taken
constexpr bool IN_PLACE = true;

// A field of SAMPLE_BITS, its sign bit turned over, becomes the highest bits of the mantissa of a number in [1, 2):
//     as_float((bits & mask) ^ pattern) = 1.5 + sample 2^-SAMPLE_BITS
// and one exact subtraction leaves the sample. A field e bits further down is part of a number in [2^e, 2^(e+1)).
struct Field {
    unsigned mask;
    float offset;  // 2^e + 0.5: its bits are the pattern

    __device__ __forceinline__ explicit Field(int e = 0)
        : mask(((1u << SAMPLE_BITS % 32) - 1) << (COMPLEX ? 0 : 23 - SAMPLE_BITS) >> e),
          offset(__uint_as_float(0x3f800000u + (e << 23)) + 0.5f)
    {
    }

    __device__ __forceinline__ float sample(unsigned bits) const
    {
        return __uint_as_float(and_xor(bits, mask, __float_as_uint(offset))) - offset;
    }
};

// How two samples are found that begin at bit `bit` of a word, and may end in the next one.
class Unpacking {
public:
    __device__ __forceinline__ explicit Unpacking(unsigned bit)
    {
        const int skipped = bit % 8;  // bits of the first byte
        if constexpr (IN_BYTES) {
            const int down = skipped == 0 ? 2 : 1, e = 8 * down + skipped - 9;  // bytes, so that e is 0 to 7
            selector = (0x0123 + 0x1111 * (bit / 8)) >> 4 * down;
            first = Field(e), second = Field(e + SAMPLE_BITS);
        } else if constexpr (NARROW) {
            selector = 0x0123 + 0x1111 * (bit / 8);
            right = 9 - skipped, left = SAMPLE_BITS - right;
            second = Field(IN_PLACE ? left : 0);
        } else {
            left = bit;
        }
    }

    // Returns the point that begins in a, which b follows.
    __device__ __forceinline__ float2 point(unsigned a, unsigned b) const
    {
        if constexpr (NARROW) {
            const unsigned four = __byte_perm(a, b, selector);  // bytes, the first one highest
            return make_float2(
                first.sample(IN_BYTES ? four : four >> right),
                second.sample(IN_BYTES || IN_PLACE ? four : four << left));
        } else {
            const unsigned top = __funnelshift_l(__byte_perm(b, 0, 0x0123), __byte_perm(a, 0, 0x0123), left);
            return make_float2(first.sample(top >> 9), second.sample(top << (SAMPLE_BITS - 9) % 32));
        }
    }

private:
    unsigned selector, right, left;  // the bytes of both words that make `four`; bits by which samples are shifted
    Field first, second;
};

// Loads a word of samples. What surrounds it, up to 256 bytes, comes to the L2 cache with it: other blocks want it
// soon.
__device__ __forceinline__ unsigned load_word(const unsigned* from)
{
#ifdef AUTOTUNE_HOST
    return __ldg(from);
#else
    unsigned word;
    asm("ld.global.nc.L2::256B.u32 %0, [%1];" : "=r"(word) : "l"(from));
    return word;
#endif
}

// Brings bytes `first` to `end` to the L2 cache, for a block that wants them soon. All N threads of a block call it.
template <int N>
__device__ __forceinline__ void fetch_bytes(const unsigned char* base, long long first, long long end)
{
    constexpr int LINE = 128;
    for (long long at = first + threadIdx.x * LINE; at < end; at += N * LINE) {
#ifdef AUTOTUNE_HOST
        static_cast<void>(__ldg(base + at));  // it must lie in the buffer
#else
        asm volatile("prefetch.global.L2 [%0];" : : "l"(base + at));
#endif
    }
}

// Points of one column in global memory: point number `row` is `row` STEP samples further on.
// GUARDED: the words may lie beyond the end, where they are 0.
template <bool GUARDED>
class Column {
public:
    // first_bit: of the first point, among all streams' samples, of which there are n_bytes.
    __device__ __forceinline__ Column(const unsigned char* __restrict__ samples, long long first_bit, long long n_bytes)
        : words(reinterpret_cast<const unsigned*>(samples) + first_bit / 32),
          unpacking(static_cast<unsigned>(first_bit) % 32),
          second(static_cast<unsigned>(first_bit) % 32 + POINT_BITS > 32),
          left(n_bytes - first_bit / 32 * 4)
    {
    }

    __device__ __forceinline__ float2 at(int row) const
    {
        const unsigned* from = words + static_cast<long long>(row) * ROW_WORDS;
        if constexpr (COMPLEX) {
            if (GUARDED && !is_inside(row))
                return make_float2(0.0f, 0.0f);
            return __ldg(reinterpret_cast<const float2*>(from));
        } else {
            const unsigned a = GUARDED ? guarded(row * (4ll * ROW_WORDS)) : load_word(from);
            const unsigned b = GUARDED ? guarded(row * (4ll * ROW_WORDS) + 4) : load_word(from + second);
            return unpacking.point(a, b);
        }
    }

    // Returns whether the words of a point lie before the end.
    __device__ __forceinline__ bool is_inside(int row) const
    {
        return (row * static_cast<long long>(ROW_WORDS) + 1 + second) * 4 <= left;
    }

private:
    const unsigned* words;  // of the first point
    Unpacking unpacking;
    int second;  // 1 if it goes on in the next word, of which nothing is wanted else
    long long left;  // bytes from there to the end

    __device__ __forceinline__ unsigned guarded(long long offset) const
    {
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(words);
        if (offset + 4 <= left)
            return __ldg(reinterpret_cast<const unsigned*>(bytes + offset));
        unsigned word = 0;
        for (int i = 0; i < 4; ++i)
            if (offset + i < left)
                word |= static_cast<unsigned>(__ldg(bytes + offset + i)) << 8 * i;
        return word;
    }
};

// Total power: the squares of samples, added up by a thread, and then over a block.
// Needs     samples.cuh (SAMPLE_SCALE)
// Provides  add_squares; whole; add_sums

// Adds the squares of a point's samples. If Squares is float, it holds their sum exactly.
__device__ __forceinline__ void add_squares(Squares& sum, float2 point)
{
    if constexpr (FLOAT_SQUARES) {
        sum = static_cast<Squares>(__fmaf_rn(point.x, point.x, __fmaf_rn(point.y, point.y, static_cast<float>(sum))));
    } else {
        const int a = __float2int_rn(point.x * (1.0f / SAMPLE_SCALE));
        const int b = __float2int_rn(point.y * (1.0f / SAMPLE_SCALE));
        sum += static_cast<unsigned>(a * a);
        sum += static_cast<unsigned>(b * b);
    }
}

// Returns a sum of squares without the scale of samples.
__device__ __forceinline__ unsigned long long whole(Squares sum)
{
    if constexpr (FLOAT_SQUARES)
        return static_cast<unsigned>(static_cast<float>(sum) * (1.0f / (SAMPLE_SCALE * SAMPLE_SCALE)));
    else
        return static_cast<unsigned long long>(sum);
}

// Adds N sums over the BLOCK threads of a block to `total`, one atomic addition each. of_warps: shared memory. All
// threads pass a barrier.
template <int BLOCK, int N>
__device__ __forceinline__ void add_sums(
    unsigned long long* total, unsigned long long (*of_warps)[BLOCK / 32], const unsigned long long (&sums)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
        unsigned long long sum = sums[i];
        if constexpr (SMALL_SQUARES) {
            sum = __reduce_add_sync(0xffffffffu, static_cast<unsigned>(sum));
        } else {
#pragma unroll
            for (int step = 16; step > 0; step /= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (threadIdx.x % 32 == 0)
            of_warps[i][threadIdx.x / 32] = sum;
    }
    __syncthreads();  // the sums of all warps are there
    if (threadIdx.x < N) {
        unsigned long long sum = 0;
#pragma unroll
        for (int warp = 0; warp < BLOCK / 32; ++warp)
            sum += of_warps[threadIdx.x][warp];
        if (sum != 0)
            atomicAdd(total + threadIdx.x, sum);
    }
}

// The filter of one complex column: a thread makes the weighted sums of S spectra. It holds FIR_TAPS weights; each
// point is unpacked once for each FIR_TAPS taps, and added to all of the sums that it is part of. If a thread holds the
// weights of all taps, a sum begins with its first point and ends with its last: it holds no more sums at once than
// there are taps.
// Needs     power.cuh (add_squares)
// Provides  Weights: prepare, at; filter_column
constexpr int TAP_CHUNKS = (TAPS + FIR_TAPS - 1) / FIR_TAPS;
constexpr int LAST_TAPS = TAPS - (TAP_CHUNKS - 1) * FIR_TAPS;

// FIR_TAPS complex weights of one column, in registers.
struct Weights {
    float2 of[FIR_TAPS];

    // Loads the weights of all taps, if a thread holds so many; otherwise filter_column() loads them, chunk by chunk.
    // weights: of the column's first tap.
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

    // Returns one weight. Volatile: all loads of a column are under way at once. All parts want the same weights, so
    // that they are the last to leave the L2 cache; but a block does not come back to a column soon, and twiddles have
    // more of a small cache.
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

// Adds taps `first` to `first` + N of S spectra to their sums; with LAST, the squares of each spectrum's newest points,
// too. put(s, sum) gets the complete sum of each spectrum s for which wants(s) is true as soon as it is known, behind
// the load of the row after it, which must not wait for it.
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

// Filters S spectra, of which each starts STEP samples after the one before it. column: at(row) returns a point; w:
// prepared.
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

// Streams: FIR_THREADS threads of a block filter the columns of a part, a piece at a time: a thread has one column of
// one run of FIR_SPECTRA spectra.
// Needs     part.cuh (Part), samples.cuh (Column, fetch_bytes), taps.cuh (Weights, filter_column),
//           power.cuh (add_squares, whole), lib/vector.cuh (ceil_div)
// Provides  Starts; Stream: own_start, put_starts, filter, fetch
constexpr int FIR_ROWS = FIR_SPECTRA + TAPS - 1;  // points of a column of which FIR_SPECTRA sums are made
constexpr int N_PIECES = ceil_div(FIR_WIDTH * N_RUNS, FIR_THREADS);  // of a polarisation

// First sample of each spectrum, or -1 to skip it. of_runs: first sample of each run of FIR_SPECTRA spectra, or -1 if
// the run is not contiguous or passes the end of the buffer.
struct Starts {
    long long of[PART_SPECTRA], of_runs[N_RUNS];
};

// A column of which only rows from `first` on are there, rows 0 to `last` of another one; other rows repeat some of
// these.
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
    int first_column;  // of the block

    // Returns where spectrum s of a part starts, if is_one says that there is one and the part has it; otherwise -1.
    __device__ __forceinline__ long long own_start(const Part& part, int pol, int s, bool is_one) const
    {
        return is_one && part.has(s) ? offsets[(part.first() + s) * N_POLS + pol] : -1;
    }

    // Puts what the threads of a warp know by own_start(), neighbouring spectra each, where all threads find it.
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

    // Filters N polarisations from first_pol on, whose spectra start at starts[0] and so on. Of polarisation first_pol
    // + p, put_of(p)(s, c, sum) gets the sum of spectrum s of the part and point c of the block; 0 for a spectrum that
    // is skipped. Adds the squares of the newest samples to `power`.
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

private:
    __device__ __forceinline__ long long n_bytes() const { return row_bytes * N_POLS; }

    // Returns the point of a spectrum that column c of the block is.
    __device__ __forceinline__ int point(int c) const { return c / SEGMENT * N2 + first_column + c % SEGMENT; }

    __device__ __forceinline__ const float* weights_of(int n) const { return weights + (COMPLEX ? 1 : 2) * n; }

    // Returns the calling thread's column of a piece. Paired: those in whose places it finds its pairs of bins.
    static __device__ __forceinline__ int column_of(int piece)
    {
        if constexpr (PAIRED) {
            const int pair = piece / 2 * FIR_THREADS + threadIdx.x;
            const int partner = COMPLEX || pair == 0 ? pair + N2 / 2 : N2 - pair;
            return piece % 2 == 0 ? pair : partner;
        }
        return (piece * FIR_THREADS + threadIdx.x) % FIR_WIDTH;
    }

    // Returns the bit at which point n begins of a spectrum that starts at sample `start`.
    __device__ __forceinline__ long long first_bit(int pol, long long start, int n) const
    {
        return pol * row_bytes * 8 + start * SAMPLE_BITS + static_cast<long long>(n) * POINT_BITS;
    }

    // Filters a thread's column of a piece: put(s, c, sum) gets each sum. Returns the squares.
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

    // Filters a run whose spectra start anywhere, at of[0] and so on. Spectra that follow each other are filtered like
    // a run, of which the others are not wanted; samples beyond the end count as 0, and so does a spectrum that is
    // skipped. Few runs come here. Inline, it would take registers from the others; called, it would spill what a
    // thread of the only launch holds. Returns the squares.
    template <class Put>
    static __device__ __forceinline__ Squares
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
            const int last = to - from + TAPS - 2;  // row that they want
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

    // Returns the weighted sum of the points from `row` on, and adds the squares.
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

// DFTs of 2 to 64 points in a thread's registers.
// Needs     nothing
// Provides  reversed; transform; transform_twiddled
__host__ __device__ constexpr int log_2(int n)
{
    return (n >= 2) + (n >= 4) + (n >= 8) + (n >= 16) + (n >= 32) + (n >= 64);
}

// Returns the place of point i of R in bit-reversed order. There is no loop, which a compiler might keep.
template <int R>
__host__ __device__ constexpr int reversed(int i)
{
    return ((i & 1) << 5 | (i & 2) << 3 | (i & 4) << 1 | (i & 8) >> 1 | (i & 16) >> 3 | (i & 32) >> 5)
        >> (6 - log_2(R));
}

// Returns cos(2 pi i / 64), i <= 16. Nothing here calls itself, which a compiler would leave as a call.
__host__ __device__ constexpr float quarter(int i)
{
    return i == 0 ? 1.0f
         : i == 1 ? 0.9951847195625305f
         : i == 2 ? 0.9807852506637573f
         : i == 3 ? 0.9569403529167175f
         : i == 4 ? 0.9238795042037964f
         : i == 5 ? 0.8819212913513184f
         : i == 6 ? 0.8314695954322815f
         : i == 7 ? 0.7730104327201843f
         : i == 8 ? 0.7071067690849304f
         : i == 9 ? 0.6343932747840881f
         : i == 10 ? 0.5555702447891235f
         : i == 11 ? 0.4713967442512512f
         : i == 12 ? 0.3826834261417389f
         : i == 13 ? 0.290284663438797f
         : i == 14 ? 0.19509032368659973f
         : i == 15 ? 0.0980171412229538f
         : 0.0f;
}

// Return cos(2 pi i / 64) and sin(2 pi i / 64), i <= 32.
__host__ __device__ constexpr float cosine(int i) { return i <= 16 ? quarter(i) : -quarter(32 - i); }
__host__ __device__ constexpr float sine(int i) { return i <= 16 ? quarter(16 - i) : quarter(i - 16); }

// Makes (e + w o, e - w o) of (e, o): six multiply-adds.
__device__ __forceinline__ void butterfly(float2& e, float2& o, float wr, float wi)
{
    const float x = __fmaf_rn(-wi, o.y, __fmaf_rn(wr, o.x, e.x));
    const float y = __fmaf_rn(wi, o.x, __fmaf_rn(wr, o.y, e.y));
    o = make_float2(__fmaf_rn(2.0f, e.x, -x), __fmaf_rn(2.0f, e.y, -y));
    e = make_float2(x, y);
}

// The same, for w = 1 and for w = -i.
__device__ __forceinline__ void butterfly_one(float2& e, float2& o)
{
    const float2 a = e, b = o;
    e = make_float2(a.x + b.x, a.y + b.y);
    o = make_float2(a.x - b.x, a.y - b.y);
}

__device__ __forceinline__ void butterfly_minus_i(float2& e, float2& o)
{
    const float2 a = e, b = o;
    e = make_float2(a.x + b.y, a.y - b.x);
    o = make_float2(a.x - b.y, a.y + b.x);
}

// Replaces y [R], in bit-reversed order, with its DFT in natural order.
template <int R>
__device__ __forceinline__ void transform(float2* y)
{
#pragma unroll
    for (int lg = 0; lg < log_2(R); ++lg) {
        const int m = 1 << lg;
#pragma unroll
        for (int i = 0; i < R / 2; ++i) {
            const int j = i % m, at = i / m * 2 * m + j;
            if (j == 0)
                butterfly_one(y[at], y[at + m]);
            else if (2 * j == m)
                butterfly_minus_i(y[at], y[at + m]);
            else
                butterfly(y[at], y[at + m], cosine(j * (32 / m)), -sine(j * (32 / m)));
        }
    }
}

// The same of y[j] omega^j, beginning with the pass whose butterflies are M apart. twiddles(i stride), i < R / 2, are
// entry i of omega's table (kernel_tables.cuh). M is a template parameter, because a loop over it is not always
// unrolled, and w would then lie in local memory.
template <int R, int M = 1, class Twiddles>
__device__ __forceinline__ void transform_twiddled(float2* y, const Twiddles& twiddles, int stride)
{
    constexpr int N = M > 1 ? M / 2 : 1, FIRST = M > 1 ? M / 2 : 0;
    float2 w[N];
#pragma unroll
    for (int i = 0; i < N; ++i)
        w[i] = twiddles((FIRST + i) * stride);
#pragma unroll
    for (int i = 0; i < R / 2; ++i) {
        const int j = i % M, at = i / M * 2 * M + j;
        if (j < N)
            butterfly(y[at], y[at + M], w[j].x, w[j].y);
        else  // a quarter of a cycle further
            butterfly(y[at], y[at + M], w[j - N].y, -w[j - N].x);
    }
    if constexpr (2 * M < R)
        transform_twiddled<R, 2 * M>(y, twiddles, stride);
}

// Rows in shared memory: the DFT of N2 points of a spectrum, by RADIX_2 threads of a warp in two passes.
// Needs     transform.cuh (reversed, transform, transform_twiddled)
// Provides  Rows, row_of; transform_row
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");

typedef float2 Rows[N_ROWS][SLICE_VALUES];

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// Bins 0 and N / 2 of real samples are not a pair. Makes them one, for split() of quantise.cuh with c = 1, s = 0.
__device__ __forceinline__ void pair_up(float2& zero, float2& half)
{
    const float sum = zero.x + zero.y, p = sum + half.x, q = sum - half.x, u = half.y;
    zero = make_float2(0.5f * (p + u), 0.5f * (q + u));
    half = make_float2(0.5f * (p - u), 0.5f * (q - u));
}

// Transforms a row. load(lane, n) returns its point n2 = lane + n. first_twiddle, second_twiddle: the tables of both
// passes; those of the first one are 1 where a row is a whole spectrum. The bins lie in order in `slice`; if has_zero
// (row 0 of real samples), bin N2 / 2 lies at place N2. Element n2 = lane + RADIX_2 j; after the first pass q + RADIX_1
// lane; bin q + RADIX_1 r.
template <class Load, class First, class Second>
__device__ __forceinline__ void transform_row(
    float2* slice, int lane, bool has_zero, Load load, First first_twiddle, Second second_twiddle)
{
    float2 y[RADIX_1];
#pragma unroll
    for (int j = 0; j < RADIX_1; ++j)
        y[reversed<RADIX_1>(j)] = load(lane, RADIX_2 * j);
    if constexpr (N1 > 1)
        transform_twiddled<RADIX_1>(y, first_twiddle, 1);
    else
        transform<RADIX_1>(y);
    __syncwarp();  // all points are in registers
#pragma unroll
    for (int q = 0; q < RADIX_1; ++q)
        slice[q * (RADIX_2 + 1) + lane] = y[q];
    __syncwarp();  // the first pass is complete
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
        const int q = first + lane;
#pragma unroll
        for (int l = 0; l < RADIX_2; ++l)
            y[first + reversed<RADIX_2>(l)] = slice[q * (RADIX_2 + 1) + l];
        transform_twiddled<RADIX_2>(y + first, [&](int i) { return second_twiddle(q + i); }, RADIX_1);
    }
    __syncwarp();  // what the first pass left is in registers
    if (!COMPLEX && lane == 0 && has_zero) {
        pair_up(y[0], y[RADIX_2 / 2]);
        slice[N2] = y[RADIX_2 / 2];
    }
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
#pragma unroll
        for (int r = 0; r < RADIX_2; ++r)
            slice[r * RADIX_1 + first + lane] = y[first + r];
    }
}

// Pairs of bins: X[k] and X[N - k] of real samples follow from the same two bins of the complex points, so that a
// thread finishes both. A block has the pairs of one group, N_PAIRS of them, in HALVES rows of each spectrum.
// Needs     nothing
// Provides  bins_of; Place, first_place, second_place

// Returns both bins of pair `i` of a group.
__device__ __forceinline__ int2 bins_of(int group, int i)
{
    if constexpr (COMPLEX)
        return make_int2(group + N1 * i, group + N1 * i + (N1 > 1 ? N1 / 2 : N2 / 2));
    const bool in_upper_row = N1 > 1 && group == 0 && i >= N2 / 2;
    const int a = in_upper_row ? N1 / 2 + N1 * (i - N2 / 2) : group + N1 * i;
    return make_int2(a, a == 0 ? N_POINTS / 2 : N_POINTS - a);
}

// Where a bin lies: which of the HALVES rows of its spectrum, and at what place in it.
struct Place {
    int half, at;
};

__device__ __forceinline__ Place first_place(int group, int i)
{
    const bool in_upper_row = !COMPLEX && N1 > 1 && group == 0 && i >= N2 / 2;
    return {in_upper_row, in_upper_row ? i - N2 / 2 : i};
}

__device__ __forceinline__ Place second_place(int group, int i)
{
    if constexpr (COMPLEX)
        return {N1 > 1, N1 > 1 ? i : i + N2 / 2};
    if (N1 == 1)
        return {0, N2 - i};
    if (group != 0)
        return {1, N2 - 1 - i};
    return {i >= N2 / 2, i >= N2 / 2 ? N2 + N2 / 2 - 1 - i : N2 - i};
}

// Phasors: each bin of a spectrum is multiplied by e^(i phi), phi = phase - pi delay (k - C/2) / C.
// Needs     part.cuh (Part), lib/thread.cuh (thread_again)
// Provides  Phasors; Phasor: put
static_assert(N_POLS * SPECTRA <= THREADS, "a thread has the phasor of one spectrum at most");

typedef float2 Phasors[N_POLS][SPECTRA];  // (-pi delay, phase in [-pi, pi]) of each spectrum

// The delay and the phase of the calling thread's spectrum: thread pol SPECTRA + s has spectrum s of polarisation pol.
struct Phasor {
    float delay = 0.0f, phase = 0.0f;

    Phasor() = default;

    __device__ __forceinline__ Phasor(
        const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol >= N_POLS || !part.has(s))
            return;
        const long long at = (part.first() + s) * N_POLS + pol;
        delay = __ldg(delays + at), phase = __ldg(phases + at);
    }

    // Puts it where all threads find it.
    __device__ __forceinline__ void put(Phasors& phasors) const
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol < N_POLS)
            phasors[pol][s] = reduced();
    }

private:
    __device__ __forceinline__ float2 reduced() const
    {
        const double cycles = phase * 0.15915494309189535;
        return make_float2(-3.14159265f * delay, static_cast<float>((cycles - rint(cycles)) * 6.283185307179586));
    }
};

// Quantisation: two bins of a spectrum become voltages.
// Needs     pairs.cuh (bins_of)
// Provides  Pair, pair_of; make_voltages
constexpr int EACH = 4 / VOLTAGE_BYTES;  // voltages of a word
static_assert(WORDS * 4 == POST_SPECTRA * VOLTAGE_BYTES, "they are whole words");

// The factors of a pair of bins, which are the same in all spectra.
struct Pair {
    float2 split;  // e^(i pi k / N) of the first bin
    float2 positions;  // (k - C/2) / C of both
    float4 polar;  // (size, angle) of both gains
    float2 limits;  // of parts that do not saturate, before they are scaled
};

__device__ __forceinline__ float position(int bin) { return (2 * bin - N_CHANNELS) / (2.0f * N_CHANNELS); }

// Returns the number that `size` scales to half a step beyond the largest part.
__device__ __forceinline__ float limit_of(float size) { return __fdividef((MOST + 0.5f) / (2 * MOST), size); }

__device__ __forceinline__ Pair pair_of(
    int group, int number, const float2* __restrict__ splits, const float4* __restrict__ polar)
{
    const int2 bins = bins_of(group, number);
    Pair pair;
    pair.split = __ldg(splits + group * N_PAIRS + number);
    pair.positions = make_float2(position(bins.x), position(bins.y));
    pair.polar = __ldg(polar + group * N_PAIRS + number);
    pair.limits = make_float2(limit_of(pair.polar.x), limit_of(pair.polar.z));
    return pair;
}

// Replaces the complex points' Z[k] and Z[N - k] with 2 X[k] and 2 X[N - k]. phasor: e^(i pi k / N).
__device__ __forceinline__ void split(float2& first, float2& second, float2 phasor)
{
    const float2 a = first, b = second;
    const float2 even = make_float2(a.x + b.x, a.y - b.y), odd = make_float2(a.x - b.x, a.y + b.y);
    first.x = __fmaf_rn(phasor.x, odd.y, __fmaf_rn(-phasor.y, odd.x, even.x));
    first.y = __fmaf_rn(-phasor.y, odd.y, __fmaf_rn(-phasor.x, odd.x, even.y));
    second.x = __fmaf_rn(2.0f, even.x, -first.x);
    second.y = __fmaf_rn(-2.0f, even.y, first.y);
}

// Both parts of a voltage in two's complement, in the low BITS bits. They are rounded to nearest, halves to even,
// because the last place of ROUNDED is worth 1; of CODES, which keeps it positive, the low bits are 0.
struct Codes {
    unsigned re, im;
};

// Returns x e^(i phi) size, phi = phasor.x position + phasor.y + angle. A part beyond `limit`, before it is scaled,
// saturates.
__device__ __forceinline__ Codes quantise(
    float2 x, float2 phasor, float position, float size, float angle, float limit, unsigned& saturated)
{
    constexpr float ROUNDED = 12582912.0f + CODES - MOST;
    const float phi = __fmaf_rn(phasor.x, position, phasor.y) + angle;
    const float c = __cosf(phi), s = __sinf(phi);
    const float re = __fmaf_rn(-x.y, s, x.x * c), im = __fmaf_rn(x.y, c, x.x * s);
    if (fabsf(re) > limit || fabsf(im) > limit)
        ++saturated;
    const float clipped_re = __saturatef(__fmaf_rn(re, size, 0.5f));
    const float clipped_im = __saturatef(__fmaf_rn(im, size, 0.5f));
    return {
        __float_as_uint(__fmaf_rn(clipped_re, 2 * MOST, ROUNDED)),
        __float_as_uint(__fmaf_rn(clipped_im, 2 * MOST, ROUNDED))};
}

// Returns the codes of consecutive spectra in a word.
__device__ __forceinline__ unsigned packed(const Codes* codes)
{
    if constexpr (BITS == 8) {
        return __byte_perm(
            __byte_perm(codes[0].re, codes[0].im, 0x0040), __byte_perm(codes[1].re, codes[1].im, 0x0040), 0x5410);
    } else {
        unsigned word = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word |= (codes[i].im % 16 | codes[i].re % 16 << 4) << 8 * i;
        return word;
    }
}

// Makes the voltages of POST_SPECTRA spectra of a pair of bins: words[0] of the first bin, words[1] of the second.
// first, second: the bins in the first spectrum's row; phasors: of the spectra.
__device__ __forceinline__ void make_voltages(
    unsigned (&words)[2][WORDS], const Pair& pair, const float2* first, const float2* second, const float2* phasors,
    unsigned& saturated)
{
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        Codes codes[2][EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int s = w * EACH + i;
            float2 a = first[s * SLICE_VALUES], b = second[s * SLICE_VALUES];
            if constexpr (!COMPLEX)
                split(a, b, pair.split);
            codes[0][i] =
                quantise(a, phasors[s], pair.positions.x, pair.polar.x, pair.polar.y, pair.limits.x, saturated);
            codes[1][i] =
                quantise(b, phasors[s], pair.positions.y, pair.polar.z, pair.polar.w, pair.limits.y, saturated);
        }
        words[0][w] = packed(codes[0]), words[1][w] = packed(codes[1]);
    }
}

// Voltages in global memory. A unit of work has POST_SPECTRA spectra of a bin: WORDS words of each polarisation, time
// fastest.
// Needs     part.cuh (Part)
// Provides  Output: part, store
template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

constexpr int INTERLEAVED = TIMES_PER_BLOCK * VOLTAGE_BYTES;  // bytes of a polarisation before those of the next one
constexpr bool ONE_RUN = N_POLS == 1 || POST_SPECTRA >= TIMES_PER_BLOCK;  // all of a unit is contiguous

// Neighbouring lanes, as many as a run has chunks of 16 bytes, exchange theirs, so that they store a run together.
constexpr int CHUNKS = ONE_RUN ? POST_SPECTRA * N_POLS * VOLTAGE_BYTES / 16 : 1;
constexpr bool TOGETHER = CHUNKS > 1 && VECTOR_BYTES == 16;

template <int N>
__device__ __forceinline__ void store_words(unsigned char* to, const unsigned (&words)[N])
{
    constexpr int WIDTH = VECTOR_BYTES >= 4 * N ? N : VECTOR_BYTES >= 4 ? VECTOR_BYTES / 4 : 1;
#pragma unroll
    for (int i = 0; i < N; i += WIDTH) {
        Words<WIDTH> some;
#pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            some.at[j] = words[i + j];
        *reinterpret_cast<Words<WIDTH>*>(to + 4 * i) = some;
    }
}

// Puts both polarisations' words in the order of memory.
__device__ __forceinline__ void interleave(
    unsigned (&out)[2 * WORDS], const unsigned (&first)[WORDS], const unsigned (&second)[WORDS])
{
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if constexpr (INTERLEAVED == 1) {
            out[2 * i] = __byte_perm(first[i], second[i], 0x5140);
            out[2 * i + 1] = __byte_perm(first[i], second[i], 0x7362);
        } else if constexpr (INTERLEAVED == 2) {
            out[2 * i] = __byte_perm(first[i], second[i], 0x5410);
            out[2 * i + 1] = __byte_perm(first[i], second[i], 0x7632);
        } else {
            constexpr int RUN = INTERLEAVED >= 4 ? INTERLEAVED / 4 : 1;  // words of a polarisation
            out[i / RUN * 2 * RUN + i % RUN] = first[i];
            out[i / RUN * 2 * RUN + RUN + i % RUN] = second[i];
        }
    }
}

struct Output {
    unsigned char* voltages;
    long long n_times;
    Part part;

    // Returns the address of the voltage of spectrum s of the part.
    __device__ __forceinline__ unsigned char* at(int bin, int s, int pol) const
    {
        const int in_heap = part.in_heap + s;
        if constexpr (BLOCKS) {
            const long long time = part.heap * SPECTRA_PER_HEAP + in_heap;
            const long long block = bin * (n_times / TIMES_PER_BLOCK) + time / TIMES_PER_BLOCK;
            return voltages + ((block * N_POLS + pol) * TIMES_PER_BLOCK + time % TIMES_PER_BLOCK) * VOLTAGE_BYTES;
        } else {
            const long long first = (part.heap * N_CHANNELS + bin) * SPECTRA_PER_HEAP;
            return voltages + ((first + in_heap) * N_POLS + pol) * VOLTAGE_BYTES;
        }
    }

    // Stores POST_SPECTRA spectra of a bin from number s on, as far as the part has them. cells: the bin's values in z,
    // SLICE_VALUES apart, which nobody reads any more; the next lane's lie `step` further.
    __device__ __forceinline__ void store(
        int bin, int s, const unsigned (&first)[WORDS], const unsigned (&second)[WORDS], float2* cells, int step) const
    {
        if constexpr (TOGETHER && N_POLS == 1) {
            store_run(bin, s, first, cells, step);
        } else if constexpr (TOGETHER) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_run(bin, s, both, cells, step);
        } else if (VECTOR_BYTES < 4 || !part.is_whole(s, POST_SPECTRA)) {
            store_each(bin, s, first, 0);
            if (N_POLS == 2)
                store_each(bin, s, second, 1);
        } else if constexpr (ONE_RUN && N_POLS == 2) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_words(at(bin, s, 0), both);
        } else {
            store_words(at(bin, s, 0), first);
            if (N_POLS == 2)
                store_words(at(bin, s, 1), second);
        }
    }

private:
    // Lanes exchange chunks through their cells: chunk q of a lane's run lies in the cells of the lane q further, so
    // that lanes read from different banks.
    template <int N>
    __device__ __forceinline__ void store_run(int bin, int s, const unsigned (&words)[N], float2* cells, int step) const
    {
        const int own = threadIdx.x % CHUNKS;
        const auto cell = [&](int lane, int q) {
            return cells + ((lane + q) % CHUNKS - own) * step + 2 * q * SLICE_VALUES;
        };
        __syncwarp();  // all have read what was there
#pragma unroll
        for (int q = 0; q < CHUNKS; ++q)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                *reinterpret_cast<uint2*>(cell(own, q) + i * SLICE_VALUES) =
                    make_uint2(words[4 * q + 2 * i], words[4 * q + 2 * i + 1]);
        __syncwarp();
        if (part.is_whole(s, POST_SPECTRA)) {  // for all lanes alike
#pragma unroll
            for (int lane = 0; lane < CHUNKS; ++lane) {
                const float2* from = cell(lane, own);
                const uint2 a = *reinterpret_cast<const uint2*>(from);
                const uint2 b = *reinterpret_cast<const uint2*>(from + SLICE_VALUES);
                const int its_bin = __shfl_sync(0xffffffffu, bin, threadIdx.x % 32 - own + lane);
                *reinterpret_cast<uint4*>(at(its_bin, s, 0) + 16 * own) = make_uint4(a.x, a.y, b.x, b.y);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < POST_SPECTRA * N_POLS; ++i) {
                unsigned char* to = at(bin, s + i / N_POLS, i % N_POLS);
                const int byte = static_cast<int>(to - at(bin, s, 0));
                const float2* from = cell(own, byte / 16) + byte / 8 % 2 * SLICE_VALUES;
                const unsigned char* voltage = reinterpret_cast<const unsigned char*>(from) + byte % 8;
                if (part.has(s + i / N_POLS))
                    store_voltage(to, BITS == 8 ? voltage[0] | voltage[VOLTAGE_BYTES - 1] << 8 : voltage[0]);
            }
        }
        __syncwarp();  // the cells are free
    }

    static __device__ __forceinline__ void store_voltage(unsigned char* to, unsigned voltage)
    {
        if constexpr (BITS == 8)
            *reinterpret_cast<unsigned short*>(to) = static_cast<unsigned short>(voltage);
        else
            *to = static_cast<unsigned char>(voltage);
    }

    __device__ __forceinline__ void store_each(int bin, int s, const unsigned (&words)[WORDS], int pol) const
    {
#pragma unroll
        for (int i = 0; i < POST_SPECTRA; ++i) {
            if (part.has(s + i))
                store_voltage(at(bin, s + i, pol), words[i * VOLTAGE_BYTES / 4] >> i * VOLTAGE_BYTES % 4 * 8);
        }
    }
};

// The last step of a round: rows of bins in shared memory become voltages in global memory. A thread has
// UNITS_PER_THREAD units of work, each a pair of bins and POST_SPECTRA spectra.
// Needs     pairs.cuh (bins_of, Place, first_place, second_place), phasor.cuh (Phasors),
//           quantise.cuh (Pair, pair_of, make_voltages), row.cuh (Rows, row_of), voltages.cuh (Output)
// Provides  FirstVoltages; Finish: store

// Voltages of the first of two polarisations in turn, until those of the second are made: of one thread, in registers,
// or of N threads, in shared memory.
template <int N>
struct FirstVoltages {
    unsigned words[UNITS_PER_THREAD * 2 * WORDS][N];

    __device__ __forceinline__ unsigned& of(int unit, int bin, int w, int thread)
    {
        return words[(unit * 2 + bin) * WORDS + w][N == 1 ? 0 : thread];
    }
};

// The calling thread's units of work in a round.
struct Finish {
    static constexpr bool EARLY = UNITS_PER_THREAD * POLS_AT_ONCE <= 2;  // else it takes too many registers
    const float2* splits;
    const float4* polar;
    int group, round, thread;
    Pair pairs[UNITS_PER_THREAD][POLS_AT_ONCE];

    // Loads of the pairs' factors are under way while the block waits for z.
    __device__ __forceinline__ Finish(
        const float2* __restrict__ splits, const float4* __restrict__ polar, int group, int round, int thread)
        : splits(splits), polar(polar), group(group), round(round), thread(thread)
    {
        if constexpr (EARLY)
#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
    }

    // Makes and stores voltages. z: the bins of all rows of the round.
    template <int N>
    __device__ __forceinline__ void store(
        Rows& z, const Phasors& phasors, const Output& output, unsigned* __restrict__ saturated,
        FirstVoltages<N>& first_voltages)
    {
        unsigned n_saturated[POLS_AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < UNITS_PER_THREAD; ++i) {
            const int unit = thread + i * THREADS;
            if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                break;
            const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
            const int2 bins = bins_of(group, number);
            const auto first = first_place(group, number), second = second_place(group, number);
            const auto cells_of = [&](const Place& place) { return &z[row_of(place.half, 0, s)][place.at]; };
            unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
            for (int p = 0; p < POLS_AT_ONCE; ++p) {
                if constexpr (!EARLY)
                    load(i, p);
                make_voltages(
                    words[p], pairs[i][p], &z[row_of(first.half, p, s)][first.at],
                    &z[row_of(second.half, p, s)][second.at], &phasors[round * POLS_AT_ONCE + p][s], n_saturated[p]);
            }
            if constexpr (ROUNDS == 1) {
                output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0], cells_of(first), 1);
                output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1], cells_of(second), COMPLEX ? 1 : -1);
            } else {
#pragma unroll
                for (int bin = 0; bin < 2; ++bin) {
                    unsigned before[WORDS];
#pragma unroll
                    for (int w = 0; w < WORDS; ++w) {
                        if (round == 0)
                            first_voltages.of(i, bin, w, thread) = words[0][bin][w];
                        else
                            before[w] = first_voltages.of(i, bin, w, thread);
                    }
                    if (round != 0)
                        output.store(
                            bin == 0 ? bins.x : bins.y, s, before, words[0][bin], cells_of(bin == 0 ? first : second),
                            bin == 0 || COMPLEX ? 1 : -1);
                }
            }
        }
#pragma unroll
        for (int p = 0; p < POLS_AT_ONCE; ++p) {
            const unsigned n = __reduce_add_sync(0xffffffffu, n_saturated[p]);
            if (n != 0 && thread % 32 == 0)
                atomicAdd(saturated + output.part.heap * N_POLS + static_cast<unsigned>(round * POLS_AT_ONCE + p), n);
        }
    }

private:
    __device__ __forceinline__ void load(int i, int p)
    {
        const int number = (thread + i * THREADS) % N_PAIRS;
        pairs[i][p] = pair_of(group, number, splits, polar + (round * POLS_AT_ONCE + p) * N_ALL_PAIRS);
    }
};

// The first launch, short: channelise_tables makes the tables that the others look up.
//   twiddles  float2 [N_TWIDDLES]             of the first pass of each row, then of the second one
//   splits    float2 [N_ALL_PAIRS]            e^(i pi k / N) of the first bin k of each pair
//   polar     float4 [N_POLS][N_ALL_PAIRS]    (size, angle) of the gains of both bins of each pair
// Needs     pairs.cuh (bins_of), samples.cuh (SAMPLE_SCALE)
// Provides  channelise_tables

// Returns e^(2 pi i cycles).
__device__ __forceinline__ float2 phasor(float cycles)
{
    float2 z;
    sincospif(2.0f * cycles, &z.y, &z.x);
    return z;
}

// Returns entry i of the table of an R-point DFT of y[j] omega^j, omega = e^(-2 pi i cycles): omega^(R/2) for i = 0,
// and omega^(R / 2m) e^(-2 pi i j / 2m) for i = m/2 + j, j < m/2, m a power of two. Every angle is a float, exactly.
__device__ __forceinline__ float2 twiddle(int i, int r, float cycles)
{
    if (i == 0)
        return phasor(-cycles * (r / 2));
    int m = 2;
    while (i >= m)
        m *= 2;
    return phasor(-(cycles * r + (i - m / 2)) / (2 * m));
}

// Returns (size, angle) of a gain. The size takes a sum of scaled samples, twice as large where split() of quantise.cuh
// makes it, to where all voltages lie between -1/2 and 1/2.
__device__ __forceinline__ float2 polar_form(float2 gain)
{
    constexpr float SIZE = (COMPLEX ? 1.0f : 0.5f) / (SAMPLE_SCALE * 2 * MOST);
    return make_float2(hypotf(gain.x, gain.y) * SIZE, atan2f(gain.y, gain.x));
}

extern "C" __global__ void __launch_bounds__(256) channelise_tables(
    float2* __restrict__ twiddles, float2* __restrict__ splits, float4* __restrict__ polar,
    unsigned* __restrict__ n_taken,
    const float2* __restrict__ gains)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i == 0)
        *n_taken = 0;
    if (i < N_FIRST_TWIDDLES) {
        constexpr int EACH = RADIX_1 / 2;
        twiddles[i] = twiddle(i % EACH, RADIX_1, i / EACH * (1.0f / (N1 * RADIX_1)));
    } else if (i < N_TWIDDLES) {
        constexpr int EACH = RADIX_2 / 2 * RADIX_1;
        const int j = i - N_FIRST_TWIDDLES, k1 = j / EACH, q = j % RADIX_1;
        twiddles[i] = twiddle(j % EACH / RADIX_1, RADIX_2, (k1 + N1 * q) * (1.0f / N_POINTS));
    }
    if (i < N_POLS * N_ALL_PAIRS) {
        const int pair = i % N_ALL_PAIRS, pol = i / N_ALL_PAIRS;
        const int2 bins = bins_of(pair / N_PAIRS, pair % N_PAIRS);
        const float2 a = polar_form(gains[bins.x * N_POLS + pol]), b = polar_form(gains[bins.y * N_POLS + pol]);
        polar[i] = make_float4(a.x, a.y, b.x, b.y);
        if (pol == 0)
            splits[pair] = phasor(bins.x * (0.5f / N_POINTS));
    }
}

// The only launch after the tables: a block processes one part at a time (all points, all polarisations), and takes the
// next unclaimed part from a counter in global memory.
//   grid = (at least as many blocks as run at once, or as there are parts; those that find no part do nothing)
// While a block transforms a part, it reads where the following one starts and what its phasors follow from. So it goes
// on without a wait; and without a barrier, if threads are PAIRED.
// Needs     part.cuh (Part, part_at), stream.cuh (Starts, Stream), power.cuh (add_sums),
//           row.cuh (Rows, row_of, transform_row), phasor.cuh (Phasors, Phasor), finish.cuh (FirstVoltages, Finish),
//           lib/thread.cuh (thread_again), lib/vector.cuh (ceil_div)
// Provides  channelise
struct Plan {  // what a block knows of a part
    Part part;
    Phasors phasors;
    Starts starts[N_POLS];
};

struct Shared {
    alignas(16) Rows z;
    alignas(16) Plan plans[2];  // of the part at hand, and of the one that follows
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
    alignas(16) unsigned ticket;  // number of the part that follows
};
static_assert(sizeof(Shared) == 5024, "what the definition asks for at launch");

extern "C" __global__ void __launch_bounds__(THREADS, 1) channelise(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float* __restrict__ delays,
    const float* __restrict__ phases, const float2* __restrict__ twiddles, const float2* __restrict__ splits,
    const float4* __restrict__ polar, long long first_spectrum, long long n_spectra, long long n_times,
    unsigned long long* __restrict__ total_power,
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long row_bytes, unsigned* __restrict__ n_taken)
{
    extern __shared__ uint4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const Stream stream = {samples, weights, offsets, row_bytes, 0};
    constexpr int PLANNERS = ceil_div(N_POLS * SPECTRA, 32) * 32;  // threads: a thread <-> a spectrum of a polarisation
    const auto part_of_ticket = [&] { return part_at(shared.ticket, 0, SPECTRA, first_spectrum, n_spectra); };
    const auto start_in = [&](const Part& part) {
        const int thread = thread_again(), pol = thread / SPECTRA;
        return stream.own_start(part, pol, thread % SPECTRA, pol < N_POLS);
    };
    const auto put_plan = [&](Plan& plan, const Part& part, long long start, const Phasor& phasor) {
        const int thread = thread_again(), pol = thread / SPECTRA;
        if (thread == 0)
            plan.part = part;
        stream.put_starts(plan.starts[pol < N_POLS ? pol : 0], pol, thread % SPECTRA, pol < N_POLS, start);
        phasor.put(plan.phasors);
    };
    if (threadIdx.x == 0)
        shared.ticket = atomicAdd(n_taken, 1u);
    __syncthreads();  // the ticket is there
    if (threadIdx.x < PLANNERS) {
        const Part part = part_of_ticket();
        put_plan(shared.plans[0], part, start_in(part), Phasor(part, delays, phases));
    }
    __syncthreads();  // the first plan, and the twiddles, are complete

    FirstVoltages<1> first_voltages;
#pragma unroll 1
    for (int slot = 0; shared.plans[slot].part.has_any(); slot = 1 - slot) {
        const Plan& plan = shared.plans[slot];
        Plan& following = shared.plans[1 - slot];
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) {
            const bool takes = round == 0 && threadIdx.x == 0, plans = round == 0 && threadIdx.x < PLANNERS;
            const unsigned ticket = takes ? atomicAdd(n_taken, 1u) : 0;  // it is wanted after the filter
            unsigned long long power[POLS_AT_ONCE] = {};
            stream.filter(
                power, round * POLS_AT_ONCE, plan.starts + round * POLS_AT_ONCE,
                [&](int p) { return [&, p](int s, int n, float2 sum) { shared.z[row_of(0, p, s)][n] = sum; }; });
            if (takes)
                shared.ticket = ticket;
            add_sums<THREADS>(  // a barrier: z is complete
                total_power + round * POLS_AT_ONCE, shared.sums + round * POLS_AT_ONCE, power);
            long long start = -1;
            Phasor phasor;
            if (plans) {  // both are wanted after the transforms
                const Part part = part_of_ticket();
                start = start_in(part);
                phasor = Phasor(part, delays, phases);
            }
#pragma unroll 1
            for (int unit = threadIdx.x; unit < N_ROWS * RADIX_2; unit += THREADS) {
                float2* slice = shared.z[unit / RADIX_2];
                transform_row(
                    slice, unit % RADIX_2, true, [&](int at, int n) { return slice[at + n]; },
                    [&](int) { return make_float2(1.0f, 0.0f); },
                    [&](int i) { return __ldg(twiddles + i); });
            }
            if (plans)
                put_plan(following, part_of_ticket(), start, phasor);
            Finish finish(splits, polar, 0, round, thread_again());
            __syncthreads();  // the bins of all rows, and the following plan, are complete
            finish.store(shared.z, plan.phasors, {voltages, n_times, plan.part}, saturated, first_voltages);
            if (!PAIRED)
                __syncthreads();  // z is free: paired, a thread overwrites what it has read itself
        }
    }
}
