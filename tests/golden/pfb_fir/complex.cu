// pfb_fir[taps=8,n_channels=96,sample_bits=64|WGS=64,COLUMNS=1,SPECTRA=32,MIN_BLOCKS=1,TURNS=1,STAGES=3,STORE=streaming]
// z[p][s][c] = sum over t < TAPS of w[t][c] x[p][o_p + (s + t) STEP + c],  c < STEP
//   filtered     out    Value  [n_pols][n_spectra][STEP]   float, or float2 of complex samples; a polarisation's spectra
//                                                          are part of filtered_spectra
//   total_power  inout  uint64 [n_pols]                    += squares of the newest STEP samples of each spectrum
//   samples      in     uint8  [n_pols][row_bytes]         SAMPLE_BITS wide, two's complement, most significant bit first
//   weights      in     float  [TAPS][STEP]
//   offsets      in     int64  [n_pols]                    o, samples, to any bit of a byte
// Work    one thread <-> COLUMNS neighbouring columns c, SPECTRA consecutive spectra s
//         one block  <-> WIDTH = WGS COLUMNS columns, the same spectra; grid = (columns, spectra, polarisations)
//         A thread holds the weights of its columns, and of each column the latest TAPS samples: each new row of samples
//         takes the place of the oldest one, and makes a spectrum. So a sample is unpacked once, and a byte is read once,
//         but for the TAPS - 1 rows before a block's first spectrum.
//             turn 0        row  -  0  1  ..  T-2      fills places 1 to T-1; makes nothing
//             turn 1        row T-1 T T+1 .. 2T-2      row T-1+s takes place s % T, and makes spectrum s
//             turn 2        row 2T-1 ..
// Shared  ring of STAGES, of TURNS turns of packed rows: a piece of each row, from the 16 bytes on in which it starts
//         Copies are asynchronous: one stage is used, the others are under way. A warp reads neighbouring words.

constexpr int TAPS = 8;  // spectra that a weighted sum spans
constexpr int N_CHANNELS = 96;
constexpr int SAMPLE_BITS = 64;  // 64: two floats
constexpr int WGS = 64;  // blockDim.x
constexpr int COLUMNS = 1;  // neighbouring columns of a thread
constexpr int SPECTRA = 32;  // that a block makes
constexpr int TURNS = 1;  // of TAPS rows that are copied together
constexpr int STAGES = 3;  // such copies that there is room for
constexpr bool STREAMING = true;  // stores leave the L2 first

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

constexpr bool COMPLEX = SAMPLE_BITS == 64;
constexpr int PARTS = COMPLEX ? 2 : 1;  // floats of a value
constexpr int STEP = COMPLEX ? N_CHANNELS : 2 * N_CHANNELS;  // samples from one spectrum to the next
constexpr long long ROW_BITS = static_cast<long long>(STEP) * SAMPLE_BITS;
constexpr int WIDTH = WGS * COLUMNS;  // columns of a block
constexpr int STAGE_ROWS = TURNS * TAPS;
constexpr int PART = ceil_div(SPECTRA, TAPS) * TAPS;
constexpr int PART_STAGES = ceil_div(PART / TAPS + 1, TURNS);
// A piece starts at any of 128 bits, and its last samples are read with the words that follow them
constexpr int PIECE = ceil_div(127 + WIDTH * SAMPLE_BITS + 64, 128);
static_assert(STAGES * STAGE_ROWS * PIECE * 16 == 13056, "what the definition asks for at launch");
static_assert(STEP % COLUMNS == 0, "a thread's columns are all there, or none is");

struct Value {
    float at[PARTS];
};
using Values = Floats<COLUMNS * PARTS>;

// Where row number `row` starts in its piece, in bits: `bit` for row 0. A constant where rows are multiples of 16 bytes.
__device__ __forceinline__ unsigned row_start(unsigned bit, int row)
{
    return (bit + static_cast<unsigned>(row) * static_cast<unsigned>(ROW_BITS % 128)) % 128;
}

__host__ __device__ constexpr bool sum_fits_a_word(int bits, int n)
{
    return 2 * bits - 2 < 32 && (static_cast<long long>(n) << (2 * bits - 2)) < 1ll << 32;
}

// A sum of squares of the samples of a turn.
struct Squares {
    unsigned low = 0;
    unsigned long long high = 0;

    __device__ __forceinline__ void add(int sample)
    {
        const unsigned square = static_cast<unsigned>(sample * sample);
        if constexpr (sum_fits_a_word(SAMPLE_BITS, TAPS * COLUMNS))
            low += square;
        else
            high += square;
    }
    __device__ __forceinline__ unsigned long long sum() const { return high + low; }
};

// The samples of a thread's columns, of a row that starts at bit `start` of its piece.
__device__ __forceinline__ void read_row(Value (&values)[COLUMNS], const uint4* piece, unsigned start, Squares& squares)
{
    const unsigned bit = start + threadIdx.x * (COLUMNS * SAMPLE_BITS);
    const unsigned* words = reinterpret_cast<const unsigned*>(piece) + bit / 32;
    if constexpr (COMPLEX) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const float2 value = reinterpret_cast<const float2*>(words)[i];
            values[i].at[0] = value.x, values[i].at[PARTS - 1] = value.y;
        }
    } else {
        constexpr int FIELD = COLUMNS * SAMPLE_BITS;
        constexpr int N_WORDS = ceil_div(FIELD, 32);
        unsigned field[N_WORDS];  // from its first bit on
        if constexpr (FIELD + 7 <= 32) {  // it lies in the four bytes from that of its first bit on
            const unsigned selector = 0x0123 + 0x1111 * (bit / 8 % 4);  // skips bytes, and reverses four
            field[0] = __byte_perm(words[0], words[1], selector) << bit % 8;
        } else {
            unsigned ordered[N_WORDS + 1];
#pragma unroll
            for (int i = 0; i <= N_WORDS; ++i)
                ordered[i] = __byte_perm(words[i], 0, 0x0123);
#pragma unroll
            for (int i = 0; i < N_WORDS; ++i)
                field[i] = __funnelshift_l(ordered[i + 1], ordered[i], bit % 32);
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const int word = i * SAMPLE_BITS / 32, past = i * SAMPLE_BITS % 32;
            const unsigned top = past + SAMPLE_BITS <= 32
                ? field[word] << past
                : __funnelshift_l(field[(word + 1) % N_WORDS], field[word], past);
            const int sample = static_cast<int>(top) >> (32 - SAMPLE_BITS);
            values[i].at[0] = static_cast<float>(sample);
            squares.add(sample);
        }
    }
}

template <bool STREAMING, int N>
__device__ __forceinline__ void store(float* address, Floats<N> values)
{
    if constexpr (!STREAMING)
        store_floats(address, values);
    else if constexpr (N == 4)
        __stcs(reinterpret_cast<float4*>(address), make_float4(values.at[0], values.at[1], values.at[2], values.at[3]));
    else if constexpr (N == 2)
        __stcs(reinterpret_cast<float2*>(address), make_float2(values.at[0], values.at[1]));
    else
        __stcs(address, values.at[0]);
}

// One addition for a block.
__device__ __forceinline__ void add_power(unsigned long long* total, unsigned long long power)
{
    __shared__ unsigned long long of_warps[WGS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        power += __shfl_xor_sync(0xffffffffu, power, step);
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = power;
    __syncthreads();  // the sums of all warps are there
    if (threadIdx.x == 0) {
#pragma unroll
        for (int warp = 1; warp < WGS / 32; ++warp)
            power += of_warps[warp];
        atomicAdd(total, power);
    }
}

// Copies the rows of a part, a stage at a time. Item i of a stage is copy i % PIECE of row i / PIECE; a thread has items
// threadIdx.x, + WGS, ...
struct Copier {
    static constexpr int ITEMS = STAGE_ROWS * PIECE;
    static constexpr int OWN_ITEMS = ceil_div(ITEMS, WGS);
    static constexpr bool EVEN = ROW_BITS % 128 == 0;  // all pieces start at the same bit, and items lie in even steps
    static constexpr long long ROW_BYTES = ROW_BITS / 8;

    const unsigned char* samples;
    long long n_bytes;  // of all samples
    long long first_bit;  // of the part's first row, in the buffer
    int n_rows;
    int stage;  // the next one
    bool inside;  // every row of every stage is in the buffer
    const unsigned char* next[OWN_ITEMS];  // where the items of the next stage are, if EVEN

    // A part of `n` spectra. Its first turn has a row less than the others: place 0 is for row -1, which nobody reads.
    __device__ __forceinline__ Copier(const unsigned char* samples, long long n_bytes, long long first_bit, int n)
        : samples(samples), n_bytes(n_bytes), first_bit(first_bit), n_rows(n + TAPS - 1), stage(0)
    {
        const long long end = first_bit + (PART_STAGES * STAGE_ROWS - 2) * ROW_BITS + PIECE * 128;
        inside = n == PART && first_bit >= ROW_BITS && end <= 8 * n_bytes;
        if constexpr (EVEN) {
#pragma unroll
            for (int i = 0; i < OWN_ITEMS; ++i) {
                const int item = i * WGS + threadIdx.x;
                next[i] = samples + ((first_bit >> 7 << 4) + (item / PIECE - 1) * ROW_BYTES + item % PIECE * 16);
            }
        }
    }

    // Closes a group in any case, so that the number of groups under way stays the same.
    __device__ __forceinline__ void next_stage(uint4 (*rows)[PIECE])
    {
        if (stage < PART_STAGES) {
            if (EVEN && inside) {
#pragma unroll
                for (int i = 0; i < OWN_ITEMS; ++i) {
                    const int item = i * WGS + threadIdx.x;
                    if ((i + 1) * WGS <= ITEMS || item < ITEMS)
                        copy_async(&rows[0][0] + item, next[i]);
                    next[i] += STAGE_ROWS * ROW_BYTES;
                }
            } else {
#pragma unroll 1
                for (int item = threadIdx.x; item < ITEMS; item += WGS)
                    copy_guarded(rows, item);
            }
            ++stage;
        }
        close_group();
    }

    // What lies outside of the buffer is 0; rows that no spectrum needs are left out.
    __device__ __forceinline__ void copy_guarded(uint4 (*rows)[PIECE], int item)
    {
        const int row = stage * STAGE_ROWS - 1 + item / PIECE;
        if (row >= 0 && row < n_rows) {
            const long long address = ((first_bit + row * ROW_BITS) >> 7 << 4) + item % PIECE * 16;
            const long long n_left = address < 0 ? 0 : n_bytes - address;
            const int n = n_left >= 16 ? 16 : n_left > 0 ? static_cast<int>(n_left) : 0;
            copy_async(&rows[item / PIECE][item % PIECE], samples + (n > 0 ? address : 0), n);
        }
    }
};

// The weights of a thread's columns, and the latest TAPS samples of each.
struct Filter {
    float weights[TAPS][COLUMNS];
    Value window[TAPS][COLUMNS];
};

// The rows of turn 0, but for its first: there is none.
__device__ __forceinline__ void fill(Filter& filter, const uint4 (*rows)[PIECE], unsigned bit)
{
    Squares none;
#pragma unroll
    for (int j = 1; j < TAPS; ++j)
        read_row(filter.window[j], rows[j], row_start(bit, j - 1), none);
}

// The spectra of one turn, or where it is not FULL the first `n` of them. Returns the squares of its samples.
template <bool FULL>
__device__ __forceinline__ unsigned long long take_turn(
    Filter& filter, const uint4 (*rows)[PIECE], unsigned bit, float* __restrict__ filtered, int n)
{
    Squares squares;
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
        if (FULL || j < n) {
            read_row(filter.window[j], rows[j], row_start(bit, j + TAPS - 1), squares);
            Values sums;
#pragma unroll
            for (int i = 0; i < COLUMNS * PARTS; ++i) {
                float sum = 0.0f;
#pragma unroll
                for (int t = 0; t < TAPS; ++t)  // the oldest sample first
                    sum += filter.weights[t][i / PARTS] * filter.window[(j + 1 + t) % TAPS][i / PARTS].at[i % PARTS];
                sums.at[i] = sum;
            }
            store<STREAMING>(filtered + static_cast<long long>(j) * STEP * PARTS, sums);
        }
    }
    return squares.sum();
}

extern "C" __global__ void __launch_bounds__(WGS, 1) pfb_fir(
    float* __restrict__ filtered,
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long n_spectra, long long filtered_spectra, long long row_bytes)
{
    extern __shared__ uint4 dynamic_shared[];
    uint4(*ring)[STAGE_ROWS][PIECE] = reinterpret_cast<uint4(*)[STAGE_ROWS][PIECE]>(dynamic_shared);
    const long long first = blockIdx.y * static_cast<long long>(PART);
    const int pol = blockIdx.z;
    const int column = blockIdx.x * WIDTH + threadIdx.x * COLUMNS;
    const bool valid = column < STEP;  // threads past the edge stay: they copy, and the barriers need them
    const int n = n_spectra - first < PART ? static_cast<int>(n_spectra - first) : PART;
    const long long first_sample = offsets[pol] + first * STEP + blockIdx.x * WIDTH;
    const long long first_bit = 8 * row_bytes * pol + first_sample * SAMPLE_BITS;
    const unsigned bit = static_cast<unsigned>(first_bit);  // modulo 128, of which 2^32 is a multiple

    Copier copier(samples, row_bytes * gridDim.z, first_bit, n);
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; ++stage)
        copier.next_stage(ring[stage]);
    Filter filter;
    if (valid) {
#pragma unroll
        for (int t = 0; t < TAPS; ++t) {
            const Floats<COLUMNS> row = load_floats<COLUMNS>(weights + t * STEP + column);
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                filter.weights[t][i] = row.at[i];
        }
    }
    float* out = filtered + ((pol * filtered_spectra + first) * STEP + column) * PARTS;
    unsigned long long power = 0;
    int slot = 0;
#pragma unroll 1
    for (int stage = 0; stage < PART_STAGES; ++stage) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // the stage is complete; and nobody reads the one before it, where the next copies go
        copier.next_stage(ring[slot == 0 ? STAGES - 1 : slot - 1]);
        if (valid) {
#pragma unroll 1
            for (int i = 0; i < TURNS; ++i) {
                const int turn = stage * TURNS + i;
                const uint4(*rows)[PIECE] = &ring[slot][i * TAPS];
                const unsigned row_bit = row_start(bit, (turn - 1) * TAPS);
                const int n_left = n - (turn - 1) * TAPS;
                if (turn == 0) {
                    fill(filter, rows, bit);
                } else if (n_left >= TAPS) {
                    power += take_turn<true>(filter, rows, row_bit, out, TAPS);
                    out += static_cast<long long>(TAPS) * STEP * PARTS;
                } else if (n_left > 0) {
                    power += take_turn<false>(filter, rows, row_bit, out, n_left);
                }
            }
        }
        slot = slot == STAGES - 1 ? 0 : slot + 1;
    }
}
