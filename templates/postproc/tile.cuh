template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

// The type of N bytes, which one instruction moves.
template <int N>
struct VectorOf {
    typedef uint4 Type;
};
template <>
struct VectorOf<8> {
    typedef uint2 Type;
};
template <>
struct VectorOf<4> {
    typedef unsigned Type;
};
template <>
struct VectorOf<2> {
    typedef unsigned short Type;
};
template <>
struct VectorOf<1> {
    typedef unsigned char Type;
};

// A row of the tile is one channel, in the order of the output: [time / TIMES_PER_BLOCK][pol][time % TIMES_PER_BLOCK].
constexpr int ROW_BYTES = BLOCK_S * N_POLS * VOLTAGE_BYTES;
constexpr int STRIDE = (ROW_BYTES + 16) / 4;  // words from row to row
static_assert(ROW_BYTES / 16 % 2 == 0, "rows are an odd number of 16-byte units apart");

// A thread writes TIMES spectra of a row. They are one contiguous piece, or one for each polarisation if blocks have
// more than TIMES spectra.
constexpr bool SPLIT = TIMES < TIMES_PER_BLOCK;
constexpr int PIECE = SPLIT ? TIMES : TIMES * N_POLS;  // voltages in a piece
constexpr int PIECE_WORDS = PIECE * VOLTAGE_BYTES / 4;

// The bytes that one thread stores at a time: the widest vector that divides all runs of the output.
constexpr int RUN_BYTES = (BLOCKS ? TIMES_PER_BLOCK : SPECTRA_PER_HEAP) * N_POLS * VOLTAGE_BYTES;
constexpr int VECTOR = RUN_BYTES % 16 == 0 ? 16 : RUN_BYTES % 8 == 0 ? 8 : RUN_BYTES % 4 == 0 ? 4 : 2 - RUN_BYTES % 2;

struct Shared {
    alignas(16) unsigned tile[BLOCK_C * STRIDE];
    alignas(16) float2 turns[BLOCK_S * N_POLS];  // phase in half-turns, delay in samples
    alignas(16) float2 steps[STEPPED ? BLOCK_S * N_POLS : 1];
    alignas(16) unsigned counts[WARPS][N_POLS];
};
static_assert(sizeof(Shared) == {{ shared_bytes }}, "what the definition asks for at launch");

struct Tile {
    int heap;
    int channel;  // first channel
    int spectrum;  // first spectrum, counted from the start of the heap
};

__device__ __forceinline__ Tile tile_of(int index)
{
    constexpr int TILES_C = ceil_div(N_CHANNELS, BLOCK_C);
    constexpr int TILES_S = ceil_div(SPECTRA_PER_HEAP, BLOCK_S);
    const int in_heap = index % (TILES_C * TILES_S);
    const int c = CHANNELS_FIRST ? in_heap % TILES_C : in_heap / TILES_S;
    const int s = CHANNELS_FIRST ? in_heap / TILES_C : in_heap % TILES_S;
    return {index / (TILES_C * TILES_S), c * BLOCK_C, s * BLOCK_S};
}

// Return whether a tile has a channel or a spectrum. If all tiles are whole, the compiler knows it and adds no guards.
__device__ __forceinline__ bool has_channel(const Tile& tile, int c)
{
    return N_CHANNELS % BLOCK_C == 0 || tile.channel + c < N_CHANNELS;
}

__device__ __forceinline__ bool has_spectrum(const Tile& tile, int s)
{
    return SPECTRA_PER_HEAP % BLOCK_S == 0 || tile.spectrum + s < SPECTRA_PER_HEAP;
}

// Loads TIMES spectra from number s of the tile on: all polarisations, the lane's channels. `corner` is the sample of
// the lane's first channel in the tile's first spectrum. All samples are loaded before the first is used, so that many
// loads are under way.
__device__ __forceinline__ void load_samples(
    float2 (&samples)[TIMES][N_POLS][COARSEN], const float2* __restrict__ corner, long long n_spectra,
    const Tile& tile, int s)
{
#pragma unroll
    for (int p = 0; p < N_POLS; ++p) {
        const float2* row = corner + (p * n_spectra + s) * ROW;
#pragma unroll
        for (int t = 0; t < TIMES; ++t) {
#pragma unroll
            for (int c = 0; c < COARSEN; ++c) {
                samples[t][p][c] = make_float2(0.0f, 0.0f);
                if (has_spectrum(tile, s + t) && has_channel(tile, threadIdx.x % 32 + c * 32)) {
                    const float2* sample = row + static_cast<long long>(t) * ROW + c * 32;
                    samples[t][p][c] = STREAM ? __ldcs(sample) : __ldg(sample);
                }
            }
        }
    }
}

__device__ __forceinline__ void load_gains(
    float2 (&own)[N_POLS][COARSEN], const float2* __restrict__ gains, const Tile& tile)
{
#pragma unroll
    for (int c = 0; c < COARSEN; ++c) {
#pragma unroll
        for (int p = 0; p < N_POLS; ++p) {
            const bool there = has_channel(tile, threadIdx.x % 32 + c * 32);
            own[p][c] = there ? __ldg(gains + c * 32 * N_POLS + p) : make_float2(0.0f, 0.0f);
        }
    }
}

// Computes the turns, and the steps if STEPPED, of each spectrum and polarisation of the tile. `phases` and `delays`
// start at the tile's first spectrum.
__device__ __forceinline__ void make_turns(
    Shared& shared, const float* __restrict__ phases, const float* __restrict__ delays, const Tile& tile)
{
#pragma unroll
    for (int first = 0; first < BLOCK_S * N_POLS; first += WGS) {
        const int i = first + threadIdx.x;
        if (i >= BLOCK_S * N_POLS)
            break;
        const bool there = has_spectrum(tile, i / N_POLS);
        const float delay = there ? __ldg(delays + i) : 0.0f;
        shared.turns[i] = make_float2(reduced(there ? __ldg(phases + i) : 0.0f), delay);
        if (STEPPED)
            shared.steps[i] = step_of(delay);
    }
}

// Returns the place of the voltage of time t and polarisation p among a thread's voltages, which are ordered piece
// after piece.
__host__ __device__ constexpr int place(int t, int p)
{
    return SPLIT ? p * TIMES + t
                 : t / TIMES_PER_BLOCK * TIMES_PER_BLOCK * N_POLS + p * TIMES_PER_BLOCK + t % TIMES_PER_BLOCK;
}

// Writes the voltages of TIMES spectra from number s on to their row of the tile.
__device__ __forceinline__ void stage(unsigned* row, int s, const unsigned (&codes)[TIMES * N_POLS])
{
    constexpr int WIDTH = PIECE_WORDS % 4 == 0 ? 4 : PIECE_WORDS;  // words of one store: 1, 2 or 4
#pragma unroll
    for (int piece = 0; piece < TIMES * N_POLS / PIECE; ++piece) {
        const int voltage = SPLIT ? s / TIMES_PER_BLOCK * TIMES_PER_BLOCK * N_POLS + piece * TIMES_PER_BLOCK +
                                        s % TIMES_PER_BLOCK
                                  : s * N_POLS;
#pragma unroll
        for (int w = 0; w < PIECE_WORDS; w += WIDTH) {
            Words<WIDTH> words;
#pragma unroll
            for (int i = 0; i < WIDTH; ++i)
                words.at[i] = pack(codes + piece * PIECE + (w + i) * (4 / VOLTAGE_BYTES));
            *reinterpret_cast<Words<WIDTH>*>(row + voltage * VOLTAGE_BYTES / 4 + w) = words;
        }
    }
}

// Returns the place in the output of byte b of the row of `channel`.
__device__ __forceinline__ long long address(
    const Tile& tile, int channel, int b, long long receiver, long long n_spectra)
{
    if constexpr (BLOCKS) {
        constexpr int HEAP_BLOCKS = SPECTRA_PER_HEAP / TIMES_PER_BLOCK;
        const long long block = tile.heap * static_cast<long long>(HEAP_BLOCKS) + tile.spectrum / TIMES_PER_BLOCK +
                                b / RUN_BYTES;
        const long long n_blocks = n_spectra / TIMES_PER_BLOCK;
        return ((channel * n_blocks + block) * gridDim.z + receiver) * RUN_BYTES + b % RUN_BYTES;
    } else {
        const long long run = (tile.heap * static_cast<long long>(gridDim.z) + receiver) * N_CHANNELS + channel;
        return run * RUN_BYTES + tile.spectrum * N_POLS * VOLTAGE_BYTES + b;
    }
}

// Stores the tile with neighbouring threads along rows. A row of the tile, or each block of it, is contiguous in the
// output.
__device__ __forceinline__ void store_tile(
    unsigned char* __restrict__ voltages, const unsigned* rows, const Tile& tile, long long receiver,
    long long n_spectra)
{
    typedef VectorOf<VECTOR>::Type Vector;
    constexpr int VECTORS = ROW_BYTES / VECTOR;  // vectors in a row
#pragma unroll 4  // independent stores
    for (int first = 0; first < BLOCK_C * VECTORS; first += WGS) {
        const int i = first + threadIdx.x;
        if (BLOCK_C * VECTORS % WGS != 0 && i >= BLOCK_C * VECTORS)
            break;
        const int c = i / VECTORS;
        const int b = i % VECTORS * VECTOR;
        if (has_channel(tile, c) && has_spectrum(tile, b / (N_POLS * VOLTAGE_BYTES))) {
            const char* row = reinterpret_cast<const char*>(rows + c * STRIDE);
            const Vector vector = *reinterpret_cast<const Vector*>(row + b);
            Vector* to = reinterpret_cast<Vector*>(voltages + address(tile, tile.channel + c, b, receiver, n_spectra));
            if constexpr (STREAM)
                __stcs(to, vector);
            else
                *to = vector;
        }
    }
}
