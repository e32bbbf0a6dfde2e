// channelise[taps=16,n_channels=1024,sample_bits=10,n_pols=2,bits=8,layout=batches,times_per_block=16,spectra_per_heap=256,precision=single|ALGORITHM=one,SPECTRA=16,POLS=in_turn,THREADS=512,MIN_BLOCKS=1,FIR_SPECTRA=16,FIR_TAPS=16,POST_SPECTRA=16,STAGING=rows,STAGES=2,WEIGHTS=here,PARTS=4,TWIDDLES=shared,KEPT=registers,GROUPS=1]
// z[s][p][c] = sum over t < TAPS of w[t][c] x[p][o[s][p] + t STEP + c],  c < STEP;  X = DFT of z
// v[s][p][k] = X[k] e^(i (phase - pi delay (k - C/2) / C)) gain,  k < C = N_CHANNELS
//   voltages     inout  int8    batches: [n_heaps][C][SPECTRA_PER_HEAP][N_POLS][2]
//                               blocks:  [C][n_times / TIMES_PER_BLOCK][N_POLS][TIMES_PER_BLOCK][2]
//                               4 bits: both parts in one byte, the real one in its low nibble
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
//   channelise_columns  (N1 > 1)  filters points of neighbouring n2, transforms along n1     -> between[p][part]
//   channelise                    (filters, if N1 is 1,) transforms rows of N2 = RADIX_1 RADIX_2 points, makes voltages
//   channelise_tables             makes what they look up: twiddles, what splits pairs of bins, gains in polar form
// Parts   a heap's spectra are cut into parts of PART_SPECTRA; a block has a part, or SPECTRA of it

constexpr int TAPS = 16;  // spectra that a weighted sum spans
constexpr int N_CHANNELS = 1024;  // C
constexpr int SAMPLE_BITS = 10;  // 64: two floats
constexpr int N_POLS = 2;
constexpr int BITS = 8;  // of each part of a voltage
constexpr bool BLOCKS = false;  // the layout
constexpr int TIMES_PER_BLOCK = 1;  // batches: as if 1
constexpr int SPECTRA_PER_HEAP = 256;

constexpr int N1 = 1;  // points of a column's transform; 1: there is none
constexpr int N2 = 1024;  // points of a row's transform
constexpr int RADIX_1 = 32;  // of its first pass
constexpr int RADIX_2 = 32;  // of its second one; also the threads of a row
constexpr int PART_SPECTRA = 16;
constexpr int PARTS_PER_HEAP = 16;
constexpr int GROUPS = 1;  // of THREADS threads each, of a block of channelise
constexpr int THREADS = 512;
constexpr int SPECTRA = 16;  // of its blocks
constexpr int POLS_AT_ONCE = 1;  // polarisations whose rows a block has at once
constexpr int HALVES = 1;  // rows of a spectrum that a block has: those whose bins are pairs
constexpr int SLICE_VALUES = 1056;  // complex values from row to row
constexpr int N_PAIRS = 512;  // pairs of bins of a block
constexpr int N_ALL_PAIRS = 512;
constexpr int POST_SPECTRA = 16;  // spectra of a unit of work of the last step: its pair is one
constexpr int N_UNITS = 512;
constexpr int UNITS_PER_THREAD = 1;
constexpr int FIR_THREADS = 512;  // of the block that filters
constexpr int FIR_WIDTH = 1024;  // points of a spectrum that it has
constexpr int SEGMENT = 1024;  // neighbouring ones among them
constexpr int N_RUNS = 1;  // of FIR_SPECTRA spectra that it filters
constexpr int FIR_SPECTRA = 16;  // sums of a column that a thread holds
constexpr int FIR_TAPS = 16;  // weights of a column that it holds
constexpr bool AHEAD = false;  // weights are loaded a column ahead
constexpr int STAGES = 2;  // pieces of samples in shared memory
constexpr int ROW_COLUMNS = 512;  // columns of a staged row
constexpr int ROW_CHUNKS = 82;  // 16 bytes each
constexpr int ROW_LANES = 32;  // threads that copy it
constexpr int PIECE_SEGMENTS = 1;
constexpr int PIECE_RUNS = 1;
constexpr int N_FIRST_TWIDDLES = 0;
constexpr int N_TWIDDLES = 512;
constexpr int VECTOR_BYTES = 16;  // the widest store that all runs of voltages are made of

constexpr bool COMPLEX = SAMPLE_BITS == 64;
constexpr int STEP = COMPLEX ? N_CHANNELS : 2 * N_CHANNELS;  // samples from one spectrum to the next
constexpr int N_POINTS = N_CHANNELS;
constexpr int VOLTAGE_BYTES = BITS / 4;
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

// A block of one launch is made of GROUPS groups of warps, each with parts of its own, which filter in turn: while one
// multiplies, the other one loads, stores and rotates.
__device__ __forceinline__ int own_thread()
{
    return GROUPS == 1 ? threadIdx.x : threadIdx.x % FIR_THREADS;
}

// A barrier of the threads of a group.
__device__ __forceinline__ void sync_group()
{
    __syncthreads();
}

// Some spectra of a heap: those of a part, or of what a block has of it. Numbers in [from, to) are made.
struct Part {
    long long heap;
    int in_heap;  // number of the first spectrum in the heap
    int from, to;

    __device__ __forceinline__ bool has(int s) const { return from <= s && s < to; }
    __device__ __forceinline__ bool is_whole(int s, int n) const { return from <= s && s + n <= to; }
    __device__ __forceinline__ long long first() const { return heap * SPECTRA_PER_HEAP + in_heap; }
};

__device__ __forceinline__ int clamped(long long value, int most)
{
    return value < 0 ? 0 : value > most ? most : static_cast<int>(value);
}

// Spectra `skipped` to skipped + n of part number `index`, counted from that of first_spectrum.
__device__ __forceinline__ Part part_at(long long index, int skipped, int n, long long first_spectrum, long long n_spectra)
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

// Adds N sums over the threads of a block, one addition each. A barrier is behind it.
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
        if (own_thread() % 32 == 0)
            of_warps[i][own_thread() / 32] = sum;
    }
    sync_group();  // the sums of all warps are there
    if (own_thread() < N) {
        unsigned long long sum = 0;
#pragma unroll
        for (int warp = 0; warp < BLOCK / 32; ++warp)
            sum += of_warps[own_thread()][warp];
        if (sum != 0)
            atomicAdd(total + own_thread(), sum);
    }
}

// Two samples that are the parts of one complex point, as floats: integers, times SAMPLE_SCALE.
// A field of SAMPLE_BITS becomes the top of the mantissa of a number in [1, 2), its sign bit turned over:
//     as_float((bits & FIELD) ^ PATTERN) = 1.5 + sample 2^-SAMPLE_BITS
// and one exact subtraction leaves the sample.
constexpr float SAMPLE_SCALE = COMPLEX ? 1.0f : 1.0f / (1 << SAMPLE_BITS % 32);
constexpr int ROW_WORDS = COMPLEX ? 2 * STEP : STEP / 32 * SAMPLE_BITS;  // from one row of STEP samples to the next
constexpr bool NARROW = SAMPLE_BITS <= 12;  // two samples lie in four bytes, wherever they begin

__device__ __forceinline__ float exact_float(unsigned bits)
{
    constexpr unsigned FIELD = ((1u << SAMPLE_BITS % 32) - 1) << (COMPLEX ? 0 : 23 - SAMPLE_BITS);
    return __uint_as_float(and_xor(bits, FIELD, 0x3fc00000u)) - 1.5f;
}

constexpr int POINT_BITS = COMPLEX ? 64 : 2 * SAMPLE_BITS;

// The point that begins at bit `bit` of a, which b follows.
__device__ __forceinline__ float2 unpacked(unsigned a, unsigned b, unsigned bit)
{
    if constexpr (NARROW && SAMPLE_BITS >= 9) {
        const unsigned four = __byte_perm(a, b, 0x0123 + 0x1111 * (bit / 8));  // skips bytes, and reverses four
        return make_float2(exact_float(four >> (9 - bit % 8)), exact_float(four << (SAMPLE_BITS % 32 - 9 + bit % 8)));
    } else {
        unsigned top;  // the first sample's sign bit is its highest
        if constexpr (NARROW)
            top = __byte_perm(a, b, 0x0123 + 0x1111 * (bit / 8)) << bit % 8;
        else
            top = __funnelshift_l(__byte_perm(b, 0, 0x0123), __byte_perm(a, 0, 0x0123), bit);
        return make_float2(exact_float(top >> 9), exact_float(top << SAMPLE_BITS % 32 >> 9));
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
          bit(static_cast<unsigned>(first_bit) % 32),
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
            const unsigned a = GUARDED ? guarded(row * (4ll * ROW_WORDS)) : __ldg(from);
            const unsigned b = GUARDED ? guarded(row * (4ll * ROW_WORDS) + 4) : __ldg(from + 1);
            return unpacked(a, b, bit);
        }
    }

    // Whether both words of a point lie before the end.
    __device__ __forceinline__ bool is_inside(int row) const { return (row * static_cast<long long>(ROW_WORDS) + 2) * 4 <= left; }

private:
    const unsigned* words;  // of the first point
    unsigned bit;  // of the first word, in which it begins
    long long left;  // bytes from there to the end

    __device__ __forceinline__ unsigned guarded(long long offset) const
    {
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(words);
        unsigned word = 0;
        for (int i = 0; i < 4; ++i)
            if (offset + i < left)
                word |= static_cast<unsigned>(__ldg(bytes + offset + i)) << 8 * i;
        return word;
    }
};

// A sum of squares of samples. A float holds it exactly where Squares is one.
__device__ __forceinline__ void add_squares(Squares& sum, float2 point)
{
    if constexpr (FLOAT_SQUARES) {
        sum = static_cast<Squares>(__fmaf_rn(point.x, point.x, __fmaf_rn(point.y, point.y, static_cast<float>(sum))));
    } else {
        const int a = __float2int_rn(point.x * (1.0f / SAMPLE_SCALE)), b = __float2int_rn(point.y * (1.0f / SAMPLE_SCALE));
        sum += static_cast<unsigned>(a * a);
        sum += static_cast<unsigned>(b * b);
    }
}

__device__ __forceinline__ unsigned long long whole(Squares sum)
{
    if constexpr (FLOAT_SQUARES)
        return static_cast<unsigned>(static_cast<float>(sum) * (1.0f / (SAMPLE_SCALE * SAMPLE_SCALE)));
    else
        return static_cast<unsigned long long>(sum);
}

// Copies from global to shared memory that the threads do not wait for, 16 bytes each; both addresses are multiples of
// 16. Of the 16 bytes, `n` are read, and the others become 0.
__device__ __forceinline__ void copy_async(void* to, const void* from, int n)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16, 16 - n);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(n)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_async(void* to, const void* from)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from)
                 : "memory");
#endif
}

// The copies so far, of this thread, since the last such call: a group.
__device__ __forceinline__ void close_group()
{
#ifdef AUTOTUNE_HOST
    __pipeline_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most N of this thread's groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_groups()
{
#ifdef AUTOTUNE_HOST
    __pipeline_wait_prior(N);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

// The weighted sums of one complex column. A thread holds FIR_TAPS weights and FIR_SPECTRA sums; each point is unpacked
// once for each FIR_TAPS taps, and added to all sums that it is part of.
constexpr int TAP_CHUNKS = (TAPS + FIR_TAPS - 1) / FIR_TAPS;
constexpr int LAST_TAPS = TAPS - (TAP_CHUNKS - 1) * FIR_TAPS;
constexpr int FIR_ROWS = FIR_SPECTRA + TAPS - 1;  // points of a column of which FIR_SPECTRA sums are made
constexpr int N_PIECES = ceil_div(FIR_WIDTH * N_RUNS, FIR_THREADS);  // what a block filters of a polarisation

// Packed samples on their way to shared memory. A staged row is what ROW_COLUMNS neighbouring columns have of one row of
// samples, in ROW_CHUNKS times 16 bytes, which begin at a multiple of 16 in memory too. Of a piece, FIR_ROWS rows of each
// of PIECE_SEGMENTS groups of columns, of each of PIECE_RUNS runs of spectra, lie in one of STAGES places.
constexpr int ROW_BYTES = ROW_WORDS * 4, SEGMENT_BYTES = N2 * POINT_BITS / 8;
static_assert(ROW_BYTES % 16 == 0 && N2 * POINT_BITS % 128 == 0, "all rows of a run begin at the same bit of 16 bytes");

struct Rows {
    alignas(16) unsigned char at[PIECE_RUNS][FIR_ROWS][PIECE_SEGMENTS][16 * ROW_CHUNKS];
};
static_assert(sizeof(Rows) == 40672, "what the definition counts for a piece");

// Points of a thread's column of a piece.
class StagedColumn {
public:
    // first_bit: of the first of the ROW_COLUMNS columns in memory
    __device__ __forceinline__ StagedColumn(const Rows& rows, long long first_bit)
    {
        const int c = own_thread() % FIR_WIDTH, run = own_thread() / FIR_WIDTH;
        const unsigned first = static_cast<unsigned>(first_bit) % 128 + c % ROW_COLUMNS * POINT_BITS;
        words = reinterpret_cast<const unsigned*>(rows.at[run][0][c / ROW_COLUMNS]) + first / 32;
        bit = first % 32;
    }

    __device__ __forceinline__ float2 at(int row) const
    {
        const unsigned* from = words + row * (4 * ROW_CHUNKS * PIECE_SEGMENTS);
        if constexpr (COMPLEX)
            return *reinterpret_cast<const float2*>(from);
        else
            return unpacked(from[0], from[1], bit);
    }

private:
    const unsigned* words;
    unsigned bit;
};

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

    // Volatile: the load stays where it is written, among the sums of the column before. A block does not come back to a
    // column soon: twiddles have more of a small cache.
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
            float2 w;
            asm volatile("ld.global.nc.L1::no_allocate.v2.f32 { %0, %1}, [%2];" : "=f"(w.x), "=f"(w.y) : "l"(from));
            return w;
#endif
        }
    }
};

// Taps `first` to first + N of S spectra. LAST: and the squares of the points that are newest in their spectra.
// put(s, sum) gets each sum as soon as it is complete, behind the load of the row after it, which must not wait for it.
// AHEAD: as soon as a weight is done with, that of the next column takes its place, if there is one.
template <int S, int N, bool LAST, bool AHEAD, class Column, class Put>
__device__ __forceinline__ void add_taps(
    float2 (&sums)[S], Squares& squares, const Column& column, Weights& w, int first, const float* __restrict__ next,
    const Put& put)
{
    float2 following = column.at(first);
#pragma unroll
    for (int r = 0; r < S + N - 1; ++r) {
        const float2 point = following;
        if (r + 1 < S + N - 1)
            following = column.at(first + r + 1);
        if constexpr (LAST && !COMPLEX)
            if (r >= N - 1)
                add_squares(squares, point);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            if (r >= s && r - s < N) {
                sums[s].x = __fmaf_rn(w.of[r - s].x, point.x, sums[s].x);
                sums[s].y = __fmaf_rn(w.of[r - s].y, point.y, sums[s].y);
            }
        }
        if (LAST && r >= N - 1)
            put(r - N + 1, sums[r - N + 1]);
        if (AHEAD && r >= S && next != nullptr)
            w.of[r - S] = Weights::weights_at(next, r - S);
    }
    if (AHEAD && next != nullptr)
        w.of[N - 1] = Weights::weights_at(next, N - 1);
}

// S spectra of which the second and later ones start STEP samples after the one before. With one chunk of taps, w has
// the column's weights, and gets those of the next one.
template <int S, bool AHEAD, class Column, class Put>
__device__ __forceinline__ void filter(
    Squares& squares, const Column& column, Weights& w, const float* __restrict__ weights, const float* __restrict__ next,
    const Put& put)
{
    float2 sums[S];
#pragma unroll
    for (int s = 0; s < S; ++s)
        sums[s] = make_float2(0.0f, 0.0f);
    if constexpr (TAP_CHUNKS == 1) {
        add_taps<S, TAPS, true, AHEAD>(sums, squares, column, w, 0, next, put);
    } else {
#pragma unroll 1
        for (int first = 0; first < TAPS - LAST_TAPS; first += FIR_TAPS) {
            w.load<FIR_TAPS>(weights, first);
            add_taps<S, FIR_TAPS, false, false>(sums, squares, column, w, first, nullptr, put);
        }
        w.load<LAST_TAPS>(weights, TAPS - LAST_TAPS);
        add_taps<S, LAST_TAPS, true, false>(sums, squares, column, w, TAPS - LAST_TAPS, nullptr, put);
    }
}

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

    // The weights of the calling thread's column of a piece.
    __device__ __forceinline__ const float* weights_of_piece(int piece) const
    {
        return weights_of(point((piece * FIR_THREADS + own_thread()) % FIR_WIDTH));
    }

    // Where point n of a spectrum begins that starts at sample `start`.
    __device__ __forceinline__ long long first_bit(int pol, long long start, int n) const
    {
        return pol * row_bytes * 8 + start * SAMPLE_BITS + static_cast<long long>(n) * POINT_BITS;
    }

    __device__ __forceinline__ long long start(const Part& part, int pol, int s) const
    {
        return offsets[(part.first() + s) * N_POLS + pol];
    }

    // Where runs start, or -1 where their spectra do not follow each other or are not all made: a thread <-> a spectrum.
    __device__ __forceinline__ void find_starts(long long (&starts)[N_POLS][N_RUNS], const Part& part) const
    {
        constexpr unsigned ALL = (1u << FIR_SPECTRA) - 1;
        if (own_thread() >= ceil_div(N_POLS * PART_SPECTRA, 32) * 32)
            return;
        const int lane = own_thread() % 32, first_lane = lane - lane % FIR_SPECTRA;
        const int pol = own_thread() / PART_SPECTRA, s = own_thread() % PART_SPECTRA;
        const bool is_made = pol < N_POLS && part.has(s);
        const long long own = is_made ? start(part, pol, s) : -1;
        const long long first = __shfl_sync(0xffffffffu, own, first_lane);
        const bool follows = is_made && first >= 0 && own == first + static_cast<long long>(lane % FIR_SPECTRA) * STEP;
        const bool is_regular = (__ballot_sync(0xffffffffu, follows) >> first_lane & ALL) == ALL;
        if (pol < N_POLS && s % FIR_SPECTRA == 0)
            starts[pol][s / FIR_SPECTRA] = is_regular ? first : -1;
    }

    // Where the first staged row of a run of a piece begins in memory; -1 if the run does not start.
    __device__ __forceinline__ long long first_byte(int pol, const long long (&starts)[N_RUNS], int piece, int run) const
    {
        const long long start = starts[piece * FIR_THREADS / FIR_WIDTH + run];
        return start < 0 ? -1 : first_bit(pol, start, point(piece * FIR_THREADS % FIR_WIDTH)) / 128 * 16;
    }

    // FIR_SPECTRA spectra from number s on one by one, wherever they start, and at the end of the samples.
    template <class Put>
    __device__ __forceinline__ void filter_each(const Part& part, int pol, int s, int n, Squares& squares, Put put) const
    {
#pragma unroll 1
        for (int i = 0; i < FIR_SPECTRA; ++i) {
            float2 sum = make_float2(0.0f, 0.0f);
            const long long first = part.has(s + i) ? start(part, pol, s + i) : -1;
            if (first >= 0) {
                const Column<true> column(samples, first_bit(pol, first, n), n_bytes());
                float2 point = sum;
#pragma unroll 1
                for (int t = 0; t < TAPS; ++t) {
                    const float2 w = Weights::weights_at(weights_of(n), t);
                    point = column.at(t);
                    sum.x = __fmaf_rn(w.x, point.x, sum.x);
                    sum.y = __fmaf_rn(w.y, point.y, sum.y);
                }
                if constexpr (!COMPLEX)
                    add_squares(squares, point);
            }
            put(i, sum);
        }
    }

    // A thread's column of piece number `piece`, of which c, the number in the block, is less than FIR_WIDTH, and n the
    // point: put(s, c, sum) gets each sum; of spectra that are not made, 0. Returns the squares.
    template <bool AHEAD, class Put>
    __device__ __forceinline__ unsigned long long filter_piece(
        const Part& part, int pol, int piece, const long long (&starts)[N_RUNS], const Rows& rows, Weights& w,
        const float* __restrict__ next, Put put) const
    {
        const int unit = piece * FIR_THREADS + own_thread(), c = unit % FIR_WIDTH, run = unit / FIR_WIDTH;
        if (FIR_WIDTH * N_RUNS < FIR_THREADS && run >= N_RUNS)
            return 0;
        const int n = point(c), s = run * FIR_SPECTRA;
        Squares squares = 0;
        bool is_done = false;
        if (starts[run] >= 0) {
            const StagedColumn column(rows, first_bit(pol, starts[run], point(c - c % ROW_COLUMNS)));
            {
                filter<FIR_SPECTRA, AHEAD>(
                    squares, column, w, weights_of(n), next, [&](int i, float2 sum) { put(s + i, c, sum); });
                is_done = true;
            }
        }
        if (!is_done) {
            filter_each(part, pol, s, n, squares, [&](int i, float2 sum) { put(s + i, c, sum); });
            if (AHEAD && next != nullptr)
                w.load<LAST_TAPS>(next, 0);
        }
        return whole(squares);
    }
};

// Copies of pieces from global to shared memory. Nobody waits for a copy before the piece is filtered.
// All threads copy 16 bytes at a time; beyond the end of the samples 0 is staged.
struct Copies {
    __device__ __forceinline__ void begin() {}

    // Copies piece number `piece` of a polarisation.
    __device__ __forceinline__ void copy(
        Rows& rows, int, const Stream& stream, int pol, const long long (&starts)[N_RUNS], int piece) const
    {
#pragma unroll
        for (int run = 0; run < PIECE_RUNS; ++run) {
            const long long byte = stream.first_byte(pol, starts, piece, run);
            const long long left = stream.n_bytes() - byte;
            if (byte >= 0 && left >= (FIR_ROWS - 1) * ROW_BYTES + (PIECE_SEGMENTS - 1) * SEGMENT_BYTES + 16 * ROW_CHUNKS)
                copy_run<false>(rows, run, stream.samples + byte, left);
            else if (byte >= 0)
                copy_run<true>(rows, run, stream.samples + byte, left);
        }
    }

    // GUARDED: only `left` bytes are there.
    template <bool GUARDED>
    __device__ __forceinline__ void copy_run(Rows& rows, int run, const unsigned char* from, long long left) const
    {
        constexpr int AT_ONCE = FIR_THREADS / ROW_LANES, N = ceil_div(FIR_ROWS * PIECE_SEGMENTS, AT_ONCE);
        const int first = own_thread() / ROW_LANES, lane = own_thread() % ROW_LANES;
#pragma unroll(GUARDED ? 1 : N <= 16 ? N : 4)
        for (int k = 0; k < N; ++k) {  // a sum of what a thread knows and of a constant: one of both parts is 0
            const int row = first / PIECE_SEGMENTS + k * AT_ONCE / PIECE_SEGMENTS;
            const int segment = first % PIECE_SEGMENTS + k * AT_ONCE % PIECE_SEGMENTS;
            if (FIR_ROWS * PIECE_SEGMENTS % AT_ONCE != 0 && row >= FIR_ROWS)
                break;
            const int offset = row * ROW_BYTES + segment * SEGMENT_BYTES;
#pragma unroll(GUARDED ? 1 : ceil_div(ROW_CHUNKS, ROW_LANES))
            for (int i = 0; i < ceil_div(ROW_CHUNKS, ROW_LANES); ++i) {
                const int chunk = lane + i * ROW_LANES;
                if (ROW_CHUNKS % ROW_LANES != 0 && chunk >= ROW_CHUNKS)
                    break;
                unsigned char* to = rows.at[run][row][segment] + 16 * chunk;
                if constexpr (GUARDED)
                    copy_async(to, from + offset + 16 * chunk, clamped(left - offset - 16 * chunk, 16));
                else
                    copy_async(to, from + offset + 16 * chunk);
            }
        }
    }

    // Behind each piece, and behind what is none, at the end.
    __device__ __forceinline__ void close() const { close_group(); }

    // Until the oldest of STAGES - 1 pieces is there, for this thread's copies.
    __device__ __forceinline__ void wait(int) { wait_for_groups<STAGES - 2>(); }
};

// Transforms in registers, and of a row by two passes of them.
__host__ __device__ constexpr int log_2(int n)
{
    return (n >= 2) + (n >= 4) + (n >= 8) + (n >= 16) + (n >= 32) + (n >= 64);
}

// The lowest `bits` of i in reverse. There is no loop, which a compiler might keep.
__host__ __device__ constexpr int reversed(int i, int bits)
{
    return ((i & 1) << 5 | (i & 2) << 3 | (i & 4) << 1 | (i & 8) >> 1 | (i & 16) >> 3 | (i & 32) >> 5) >> (6 - bits);
}

// cos(2 pi i / 64), i <= 16. Nothing here calls itself, which a compiler would leave as a call.
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

// cos(2 pi i / 64) and sin(2 pi i / 64), i <= 32
__host__ __device__ constexpr float cosine(int i) { return i <= 16 ? quarter(i) : -quarter(32 - i); }
__host__ __device__ constexpr float sine(int i) { return i <= 16 ? quarter(16 - i) : quarter(i - 16); }

// (e, o) becomes (e + w o, e - w o): six multiply-adds.
__device__ __forceinline__ void butterfly(float2& e, float2& o, float wr, float wi)
{
    const float x = __fmaf_rn(-wi, o.y, __fmaf_rn(wr, o.x, e.x));
    const float y = __fmaf_rn(wi, o.x, __fmaf_rn(wr, o.y, e.y));
    o = make_float2(__fmaf_rn(2.0f, e.x, -x), __fmaf_rn(2.0f, e.y, -y));
    e = make_float2(x, y);
}

// The same for w = 1, and for w = -i.
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

// y in bit-reversed order becomes its DFT in natural order.
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

// The same of y[j] omega^j, from the pass whose butterflies are M apart on. twiddles(i stride), i < R / 2, belong to omega:
// what twiddle() says. M is a template's, because a loop over it is not always unrolled, and w then lies in local memory.
template <int R, int M = 1, class Twiddles>
__device__ __forceinline__ void transform_turned(float2* y, const Twiddles& twiddles, int stride)
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
        else  // a quarter of a turn further
            butterfly(y[at], y[at + M], w[j - N].y, -w[j - N].x);
    }
    if constexpr (2 * M < R)
        transform_turned<R, 2 * M>(y, twiddles, stride);
}

// Bins 0 and N / 2 of real samples are no pair. What makes them one, for split() with c = 1, s = 0.
__device__ __forceinline__ void pair_up(float2& zero, float2& half)
{
    const float sum = zero.x + zero.y, p = sum + half.x, q = sum - half.x, u = half.y;
    zero = make_float2(0.5f * (p + u), 0.5f * (q + u));
    half = make_float2(0.5f * (p - u), 0.5f * (q - u));
}

// Transforms row k1 by RADIX_2 threads; load(lane, n) returns its point n2 = lane + n, and second(i) twiddle number i of the second pass of
// all rows. The bins are in order in `slice`, and of row 0 of
// real samples, with bin 0, bin N2 / 2 is in place N2.
// Element n2 = lane + RADIX_2 j; after the first pass q + RADIX_1 lane; bin q + RADIX_1 r.
template <class Load, class Second>
__device__ __forceinline__ void transform_row(
    float2* slice, int lane, int k1, const float2* __restrict__ twiddles, Load load, Second second)
{
    float2 y[RADIX_1];
#pragma unroll
    for (int j = 0; j < RADIX_1; ++j)
        y[reversed(j, log_2(RADIX_1))] = load(lane, RADIX_2 * j);
    if constexpr (N1 > 1)
        transform_turned<RADIX_1>(y, [&](int i) { return __ldg(twiddles + k1 * (RADIX_1 / 2) + i); }, 1);
    else
        transform<RADIX_1>(y);
    __syncwarp();  // all points are in registers
#pragma unroll
    for (int q = 0; q < RADIX_1; ++q)
        slice[q * (RADIX_2 + 1) + lane] = y[q];
    __syncwarp();  // the first pass is complete
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
        const int q = first + lane, of_lane = k1 * (RADIX_2 / 2 * RADIX_1) + q;
#pragma unroll
        for (int l = 0; l < RADIX_2; ++l)
            y[first + reversed(l, log_2(RADIX_2))] = slice[q * (RADIX_2 + 1) + l];
        transform_turned<RADIX_2>(y + first, [&](int i) { return second(of_lane + i); }, RADIX_1);
    }
    __syncwarp();  // what the first pass left is in registers
    if (!COMPLEX && lane == 0 && k1 == 0) {
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

// Bins of pair `i` of group `group` of pairs: real samples give the second one from the first one's complex points.
__device__ __forceinline__ int2 bins_of(int group, int i)
{
    if constexpr (COMPLEX)
        return make_int2(group + N1 * i, group + N1 * i + (N1 > 1 ? N1 / 2 : N2 / 2));
    const bool in_upper_row = N1 > 1 && group == 0 && i >= N2 / 2;
    const int a = in_upper_row ? N1 / 2 + N1 * (i - N2 / 2) : group + N1 * i;
    return make_int2(a, a == 0 ? N_POINTS / 2 : N_POINTS - a);
}

__device__ __forceinline__ float2 unit_vector(float turns)
{
    float2 z;
    sincospif(2.0f * turns, &z.y, &z.x);
    return z;
}

// Entry i of those that turn an R-point transform by omega = e^(-2 pi i turns): for i = 0 omega^(R/2), and for i = m/2 +
// j, j < m/2, m a power of two, omega^(R / 2m) e^(-2 pi i j / 2m). Every angle is a float, exactly.
__device__ __forceinline__ float2 twiddle(int i, int r, float turns)
{
    if (i == 0)
        return unit_vector(-turns * (r / 2));
    int m = 2;
    while (i >= m)
        m *= 2;
    return unit_vector(-(turns * r + (i - m / 2)) / (2 * m));
}

// (size, angle) of a gain; the size takes a sum of scaled samples, twice as large where split() makes it, to where all
// voltages, and half a step on each side, lie between -1/2 and 1/2.
__device__ __forceinline__ float2 polar_form(float2 gain)
{
    constexpr float SIZE = (COMPLEX ? 1.0f : 0.5f) / (SAMPLE_SCALE * (1 << BITS));
    return make_float2(hypotf(gain.x, gain.y) * SIZE, atan2f(gain.y, gain.x));
}

extern "C" __global__ void __launch_bounds__(256) channelise_tables(
    float2* __restrict__ twiddles, float2* __restrict__ splits, float4* __restrict__ polar,
    const float2* __restrict__ gains)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
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
            splits[pair] = unit_vector(bins.x * (0.5f / N_POINTS));
    }
}

// Two bins of a spectrum become voltages.
constexpr int CODES = 1 << BITS;
constexpr int WORDS = POST_SPECTRA * VOLTAGE_BYTES / 4;  // of a bin's voltages of a unit of work, of one polarisation
constexpr int EACH = 4 / VOLTAGE_BYTES;  // voltages of a word
static_assert(WORDS * 4 == POST_SPECTRA * VOLTAGE_BYTES, "they are whole words");

// What a unit of work knows of its pair of bins.
struct Pair {
    float2 split;  // e^(i pi k / N) of the first bin
    float2 positions;  // (k - C/2) / C of both
    float4 polar;  // (size, angle) of both gains
};

// What turns a spectrum of one polarisation: -pi delay, and the phase in [-pi, pi].
__device__ __forceinline__ float2 turn_of(float delay, float phase)
{
    const double turns = phase * 0.15915494309189535;
    return make_float2(-3.14159265f * delay, static_cast<float>((turns - rint(turns)) * 6.283185307179586));
}

__device__ __forceinline__ float position(int bin) { return (2 * bin - N_CHANNELS) / (2.0f * N_CHANNELS); }

// X of both bins, twice as large, from the complex points' Z[k] and Z[N - k].
__device__ __forceinline__ void split(float2& first, float2& second, float2 turned)
{
    const float2 a = first, b = second;
    const float2 even = make_float2(a.x + b.x, a.y - b.y), odd = make_float2(a.x - b.x, a.y + b.y);
    first.x = __fmaf_rn(turned.x, odd.y, __fmaf_rn(-turned.y, odd.x, even.x));
    first.y = __fmaf_rn(-turned.y, odd.y, __fmaf_rn(-turned.x, odd.x, even.y));
    second.x = __fmaf_rn(2.0f, even.x, -first.x);
    second.y = __fmaf_rn(-2.0f, even.y, first.y);
}

// Both parts of a voltage, offset by CODES / 2, in the low bits. They are rounded to nearest, halves to even, because the
// last place of 1.5 2^23 is worth 1. What saturates is 0 or CODES.
struct Codes {
    unsigned re, im;
};

__device__ __forceinline__ Codes quantise(float2 x, float2 turn, float position, float size, float angle)
{
    const float turned = __fmaf_rn(turn.x, position, turn.y) + angle;
    const float c = __cosf(turned), s = __sinf(turned);
    const float re = __saturatef(__fmaf_rn(__fmaf_rn(-x.y, s, x.x * c), size, 0.5f));
    const float im = __saturatef(__fmaf_rn(__fmaf_rn(x.y, c, x.x * s), size, 0.5f));
    return {__float_as_uint(__fmaf_rn(re, CODES, 12582912.0f)), __float_as_uint(__fmaf_rn(im, CODES, 12582912.0f))};
}

__device__ __forceinline__ bool is_saturated(unsigned code) { return code % CODES == 0; }

// The code as it is, or that of the largest or smallest voltage.
__device__ __forceinline__ unsigned clipped(unsigned code)
{
    return !is_saturated(code) ? code : (code & CODES) ? CODES - 1 : 1;
}

// Codes of consecutive spectra in a word.
__device__ __forceinline__ unsigned packed(const Codes* codes)
{
    if constexpr (BITS == 8) {
        return __byte_perm(
            __byte_perm(codes[0].re, codes[0].im, 0x0040), __byte_perm(codes[1].re, codes[1].im, 0x0040), 0x5410);
    } else {
        unsigned word = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            word |= (codes[i].re % 16 | codes[i].im % 16 << 4) << 8 * i;
        return word;
    }
}

// Not 0 if a code in the word is 0. A borrow finds one too many only where there is one.
__device__ __forceinline__ unsigned zeros(unsigned word)
{
    constexpr unsigned ONES = BITS == 8 ? 0x01010101u : 0x11111111u;
    return (word - ONES) & ~word & ONES * (CODES / 2);
}

// Codes of both bins of a pair, in two's complement; counts the saturated voltages.
__device__ __forceinline__ void finish(unsigned& first, unsigned& second, Codes (&codes)[2][EACH], unsigned& saturated)
{
    constexpr unsigned OFFSETS = BITS == 8 ? 0x80808080u : 0x88888888u;
    first = packed(codes[0]), second = packed(codes[1]);
    if ((zeros(first) | zeros(second)) != 0) {
#pragma unroll
        for (int i = 0; i < 2 * EACH; ++i) {
            Codes& code = codes[i / EACH][i % EACH];
            saturated += is_saturated(code.re) || is_saturated(code.im);
            code.re = clipped(code.re), code.im = clipped(code.im);
        }
        first = packed(codes[0]), second = packed(codes[1]);
    }
    first ^= OFFSETS, second ^= OFFSETS;
}

// Voltages of POST_SPECTRA spectra of a pair of bins: words[0] of the first bin. first, second: the bins in the first
// spectrum's row; turns: of the spectra.
__device__ __forceinline__ void make_voltages(
    unsigned (&words)[2][WORDS], const Pair& pair, const float2* first, const float2* second, const float2* turns,
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
            codes[0][i] = quantise(a, turns[s], pair.positions.x, pair.polar.x, pair.polar.y);
            codes[1][i] = quantise(b, turns[s], pair.positions.y, pair.polar.z, pair.polar.w);
        }
        finish(words[0][w], words[1][w], codes, saturated);
    }
}

// Where voltages go. A unit of work has POST_SPECTRA spectra of a bin: words[p] of polarisation p, time fastest.
template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

constexpr int INTERLEAVED = TIMES_PER_BLOCK * VOLTAGE_BYTES;  // bytes of a polarisation before those of the next one
constexpr bool ONE_RUN = N_POLS == 1 || POST_SPECTRA >= TIMES_PER_BLOCK;  // all of a unit is contiguous

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

// Both polarisations' words in the order of memory.
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
            constexpr int EACH = INTERLEAVED / 4;
            out[i / EACH * 2 * EACH + i % EACH] = first[i];
            out[i / EACH * 2 * EACH + EACH + i % EACH] = second[i];
        }
    }
}

struct Output {
    unsigned char* voltages;
    long long n_times;
    Part part;

    // The voltage of spectrum number s of the part.
    __device__ __forceinline__ unsigned char* at(int bin, int s, int pol) const
    {
        const int in_heap = part.in_heap + s;
        if constexpr (BLOCKS) {
            const long long time = part.heap * SPECTRA_PER_HEAP + in_heap;
            const long long block = bin * (n_times / TIMES_PER_BLOCK) + time / TIMES_PER_BLOCK;
            return voltages + ((block * N_POLS + pol) * TIMES_PER_BLOCK + time % TIMES_PER_BLOCK) * VOLTAGE_BYTES;
        } else {
            return voltages + (((part.heap * N_CHANNELS + bin) * SPECTRA_PER_HEAP + in_heap) * N_POLS + pol) * VOLTAGE_BYTES;
        }
    }

    // POST_SPECTRA spectra of a bin from number s on, as far as they are made.
    __device__ __forceinline__ void store(
        int bin, int s, const unsigned (&first)[WORDS], const unsigned (&second)[WORDS]) const
    {
        if (VECTOR_BYTES < 4 || !part.is_whole(s, POST_SPECTRA)) {
            store_each(bin, s, first, 0);
            if (N_POLS == 2)
                store_each(bin, s, second, 1);
        } else if constexpr (N_POLS == 1) {
            store_words(at(bin, s, 0), first);
        } else if constexpr (ONE_RUN) {
            unsigned both[2 * WORDS];
            interleave(both, first, second);
            store_words(at(bin, s, 0), both);
        } else {
            store_words(at(bin, s, 0), first);
            store_words(at(bin, s, 1), second);
        }
    }

private:
    __device__ __forceinline__ void store_each(int bin, int s, const unsigned (&words)[WORDS], int pol) const
    {
#pragma unroll
        for (int i = 0; i < POST_SPECTRA; ++i) {
            const unsigned voltage = words[i * VOLTAGE_BYTES / 4] >> i * VOLTAGE_BYTES % 4 * 8;
            if (!part.has(s + i))
                continue;
            if constexpr (BITS == 8)
                *reinterpret_cast<unsigned short*>(at(bin, s + i, pol)) = static_cast<unsigned short>(voltage);
            else
                *at(bin, s + i, pol) = static_cast<unsigned char>(voltage);
        }
    }
};

// The only launch, or the second one: one block <-> SPECTRA spectra of a part, the rows whose bins are pairs, all
// polarisations, POLS_AT_ONCE at a time; the only launch: of PARTS parts, one after another, in each of GROUPS groups
//   grid = (parts, and blocks of SPECTRA of each, groups of pairs)
//   RADIX_2 threads <-> a row's transform;  a thread <-> units of work, each a pair of bins and POST_SPECTRA spectra
constexpr int N_ROWS = 16;
constexpr int PARTS = 4;  // of a block, one after another
constexpr int TURNS = N_POLS / POLS_AT_ONCE;
constexpr int STEPS = N_PIECES * POLS_AT_ONCE;  // of a turn: pieces that a block filters
constexpr int BLOCKS_OF_PART = PART_SPECTRA / SPECTRA;
static_assert(N_ROWS * RADIX_2 % 32 == 0, "warps take part in barriers as a whole");
static_assert(N_POLS * SPECTRA <= THREADS, "a thread makes one turn at most");


struct Shared {
    alignas(16) float2 z[N_ROWS][SLICE_VALUES];
    alignas(16) float2 turns[PARTS > 1 ? 2 : 1][N_POLS][SPECTRA];  // of a part, and of the next one
    alignas(16) long long starts[PARTS > 1 ? 2 : 1][N_POLS][N_RUNS];
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
    Rows rows[STAGES];
    alignas(16) float2 twiddles[N_TWIDDLES];
};
static_assert(GROUPS * sizeof(Shared) == 221408, "what the definition asks for at launch");

__device__ __forceinline__ int row_of(int half, int pol, int s) { return (half * POLS_AT_ONCE + pol) * SPECTRA + s; }

// What turns each spectrum of a part: a thread <-> a spectrum of a polarisation.
__device__ __forceinline__ void make_turn(
    float2 (&turns)[N_POLS][SPECTRA], const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
{
    const int s = own_thread() / N_POLS, pol = own_thread() % N_POLS;
    if (s >= SPECTRA)
        return;
    const long long at = (part.first() + s) * N_POLS + pol;
    turns[pol][s] = part.has(s) ? turn_of(delays[at], phases[at]) : make_float2(0.0f, 0.0f);
}

// A bin of a pair in the row of its spectrum.
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

__device__ __forceinline__ Pair pair_of(
    int group, int number, const float2* __restrict__ splits, const float4* __restrict__ polar)
{
    const int2 bins = bins_of(group, number);
    Pair pair;
    pair.split = __ldg(splits + group * N_PAIRS + number);
    pair.positions = make_float2(position(bins.x), position(bins.y));
    pair.polar = __ldg(polar + group * N_PAIRS + number);
    return pair;
}

extern "C" __global__ void __launch_bounds__(GROUPS * THREADS, 1) channelise(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float* __restrict__ delays,
    const float* __restrict__ phases, const float2* __restrict__ twiddles, const float2* __restrict__ splits,
    const float4* __restrict__ polar, long long first_spectrum, long long n_spectra, long long n_times,
    unsigned long long* __restrict__ total_power,
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long row_bytes)
{
    extern __shared__ uint4 dynamic_shared[];
    const int group_of_warps = GROUPS == 1 ? 0 : __shfl_sync(0xffffffffu, threadIdx.x / THREADS, 0);  // of a warp's threads
    Shared& shared = reinterpret_cast<Shared*>(dynamic_shared)[group_of_warps];
    const int group = blockIdx.y;
    const long long index = (static_cast<long long>(blockIdx.x) / BLOCKS_OF_PART * GROUPS + group_of_warps) * PARTS;
    const int skipped = blockIdx.x % BLOCKS_OF_PART * SPECTRA;
    const Stream stream = {samples, weights, offsets, row_bytes, 0};
    const auto prepare = [&](int nth) {  // what the threads need to know of a part
        const Part part = part_at(index + nth, skipped, SPECTRA, first_spectrum, n_spectra);
        make_turn(shared.turns[nth % 2 % PARTS], part, delays, phases);
        stream.find_starts(shared.starts[nth % 2 % PARTS], part);
    };
    Copies copies;
    int place = 0;  // of the piece that is filtered
    const auto copy = [&](int nth, int step, int to) {  // what a part has in its step number `step` of all turns
        const int pol = step / STEPS * POLS_AT_ONCE + step % POLS_AT_ONCE;
        if (nth < PARTS)
            copies.copy(
                shared.rows[to], to, stream, pol, shared.starts[nth % 2 % PARTS][pol], step % STEPS / POLS_AT_ONCE);
        copies.close();
    };
    copies.begin();
    for (int i = own_thread(); i < N_TWIDDLES; i += THREADS)
        shared.twiddles[i] = twiddles[i];
    prepare(0);
    sync_group();  // the starts are complete
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; ++step)
        copy(0, step, step);

#pragma unroll 1
    for (int nth = 0; nth < PARTS; ++nth) {
        const Part part = part_at(index + nth, skipped, SPECTRA, first_spectrum, n_spectra);
        if (GROUPS == 1 && PARTS > 1 && part.from >= part.to)
            break;  // groups wait for each other, so they have as many parts
        const Output output = {voltages, n_times, part};
        unsigned kept[UNITS_PER_THREAD][2][WORDS];  // of the first of two polarisations in turn
#pragma unroll 1
        for (int turn = 0; turn < TURNS; ++turn) {
            unsigned long long power[POLS_AT_ONCE] = {};
            Weights w;
            if (AHEAD)
                w.load<LAST_TAPS>(stream.weights_of_piece(0), 0);
#pragma unroll 1
            for (int step = 0; step < STEPS; ++step) {
                const int piece = step / POLS_AT_ONCE, p = step % POLS_AT_ONCE, pol = turn * POLS_AT_ONCE + p;
                if (TAP_CHUNKS == 1 && !AHEAD && p == 0)
                    w.load<LAST_TAPS>(stream.weights_of_piece(piece), 0);
                const bool has_next = AHEAD && p == POLS_AT_ONCE - 1 && step + 1 < STEPS;
                const float* next = has_next ? stream.weights_of_piece(piece + 1) : nullptr;
                copies.wait(place);
                sync_group();  // the piece is complete, the one before it done with, and z is free
                const int ahead = turn * STEPS + step + STAGES - 1;
                copy(nth + (ahead >= TURNS * STEPS), ahead % (TURNS * STEPS), (place + STAGES - 1) % STAGES);
                if (PARTS > 1 && turn == 0 && step == 0 && nth + 1 < PARTS)
                    prepare(nth + 1);
                const unsigned long long squares = stream.filter_piece<AHEAD>(
                    part, pol, piece, shared.starts[nth % 2 % PARTS][pol],
                    shared.rows[place],
                    w, next, [&](int s, int n, float2 sum) { shared.z[row_of(0, p, s)][n] = sum; });
#pragma unroll
                for (int i = 0; i < POLS_AT_ONCE; ++i)
                    power[i] += i == p ? squares : 0;
                place = place + 1 < STAGES ? place + 1 : 0;
            }
            add_sums<THREADS>(  // a barrier: z is complete
                total_power + turn * POLS_AT_ONCE, shared.sums + turn * POLS_AT_ONCE, power);
#pragma unroll 1
            for (int unit = own_thread(); unit < N_ROWS * RADIX_2; unit += THREADS) {
                const int row = unit / RADIX_2, lane = unit % RADIX_2;
                float2* slice = shared.z[row];
                transform_row(
                    slice, lane, 0, twiddles, [&](int at, int n) { return slice[at + n]; },
                    [&](int i) { return shared.twiddles[i]; });
            }
            // What is known of pairs is under way while the block waits, unless it takes too many registers.
            constexpr bool EARLY = UNITS_PER_THREAD * POLS_AT_ONCE <= 2;
            Pair pairs[UNITS_PER_THREAD][POLS_AT_ONCE];
            const auto load = [&](int i, int p) {
                const int number = (own_thread() + i * THREADS) % N_PAIRS, pol = turn * POLS_AT_ONCE + p;
                pairs[i][p] = pair_of(group, number, splits, polar + pol * N_ALL_PAIRS);
            };
            if constexpr (EARLY)
#pragma unroll
                for (int i = 0; i < UNITS_PER_THREAD * POLS_AT_ONCE; ++i)
                    load(i / POLS_AT_ONCE, i % POLS_AT_ONCE);
            sync_group();  // the bins of all rows, and turns, are complete

#pragma unroll
            for (int i = 0; i < UNITS_PER_THREAD; ++i) {
                const int unit = own_thread() + i * THREADS;
                if (N_UNITS % THREADS != 0 && unit >= N_UNITS)
                    break;
                const int number = unit % N_PAIRS, s = unit / N_PAIRS * POST_SPECTRA;
                const int2 bins = bins_of(group, number);
                const Place first = first_place(group, number), second = second_place(group, number);
                unsigned words[POLS_AT_ONCE][2][WORDS];
#pragma unroll
                for (int p = 0; p < POLS_AT_ONCE; ++p) {
                    if constexpr (!EARLY)
                        load(i, p);
                    const int pol = turn * POLS_AT_ONCE + p;
                    unsigned count = 0;
                    make_voltages(
                        words[p], pairs[i][p], &shared.z[row_of(first.half, p, s)][first.at],
                        &shared.z[row_of(second.half, p, s)][second.at], &shared.turns[nth % 2 % PARTS][pol][s], count);
                    if (count != 0)
                        atomicAdd(&saturated[part.heap * N_POLS + pol], count);
                }
                if constexpr (TURNS == 1) {
                    output.store(bins.x, s, words[0][0], words[POLS_AT_ONCE - 1][0]);
                    output.store(bins.y, s, words[0][1], words[POLS_AT_ONCE - 1][1]);
                } else {
                    const auto of_first = [&](int bin, int w) -> unsigned& { return kept[i][bin][w]; };
#pragma unroll
                    for (int bin = 0; bin < 2; ++bin) {
                        unsigned before[WORDS];
#pragma unroll
                        for (int w = 0; w < WORDS; ++w) {
                            if (turn == 0)
                                of_first(bin, w) = words[0][bin][w];
                            else
                                before[w] = of_first(bin, w);
                        }
                        if (turn != 0)
                            output.store(bin == 0 ? bins.x : bins.y, s, before, words[0][bin]);
                    }
                }
            }
        }
    }
}
