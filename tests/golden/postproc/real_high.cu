// postproc[n_channels=37,nyquist=1,n_pols=2,bits=4,nibbles=real_high,layout=batches,times_per_block=16,spectra_per_heap=35|WGS=256,BLOCK_C=64,BLOCK_S=64,TIMES=4,PHASE=fast,ORDER=channels,HINTS=none]
// v[r][p][s][k] = X[r][p][s][k] e^(i (phase - pi delay (k - C/2) / C)) gain,  k < C = N_CHANNELS
// Both parts are rounded to nearest, halves to even, and saturated to +-MAXIMUM.
//   voltages   out    int8    batches: [n_heaps][n_receivers][C][SPECTRA_PER_HEAP][N_POLS][2]
//                             blocks:  [C][n_spectra / TIMES_PER_BLOCK][n_receivers][N_POLS][TIMES_PER_BLOCK][2]
//                             4 bits: both parts in one byte, the real one in its high nibble
//   saturated  inout  uint32  [n_heaps][n_receivers][N_POLS]            samples with a saturated part are added
//   spectra    in     float2  [n_receivers][N_POLS][n_spectra][ROW]     X; channels from C on are not read
//   delays     in     float   [n_receivers][n_spectra][N_POLS]          samples
//   phases     in     float   [n_receivers][n_spectra][N_POLS]          radians
//   gains      in     float2  [n_receivers][C][N_POLS]
// Work    one block <-> a tile of BLOCK_C channels and BLOCK_S spectra of one heap, all polarisations of receiver
//                       blockIdx.z;  grid x = tiles, heaps slowest
//         one warp  <-> TIMES consecutive spectra of the tile, then those WARPS TIMES further
//         one lane  <-> channels lane, lane + 32, ... of the tile: a warp reads 256 contiguous bytes
//             spectra, channel fastest                 tile in shared memory, time fastest          voltages
//                  c0 c1 c2 .. c31                          s0 s1 s2 s3 | s4 ..
//             s0   l0 l1 l2 .. l31  \                  c0   l0 of warp 0| l0 of warp 1 ..  ->  16 bytes a thread,
//             s1   l0 l1 l2 .. l31   | one warp        c1   l1 of warp 0| l1 of warp 1 ..      a row of the tile is
//             ..                    /                  ..                                      contiguous (batches)
// Shared  a row of the tile is 16 bytes longer than its voltages: an odd number of 16-byte units, so that both the
//         lanes of a warp that write 16 bytes of a row each and those that read along a row meet all banks alike.

constexpr int N_CHANNELS = 37;  // C
constexpr int ROW = N_CHANNELS + 1;  // channels of a spectrum in memory
constexpr int N_POLS = 2;
constexpr int BITS = 4;  // of each part of a voltage
constexpr int SPECTRA_PER_HEAP = 35;
constexpr bool BLOCKS = false;  // the layout
constexpr int TIMES_PER_BLOCK = 1;  // batches: as if 1
constexpr int WGS = 256;  // blockDim.x
constexpr int BLOCK_C = 64;  // channels of a tile
constexpr int BLOCK_S = 64;  // spectra of a tile
constexpr int TIMES = 4;  // consecutive spectra that a thread loads before it uses any
constexpr bool FAST = true;  // sine and cosine by the special units
constexpr bool CHANNELS_FIRST = true;  // the next tile's channels
constexpr bool STREAM = false;  // the caches need keep nothing

constexpr int WARPS = WGS / 32;
constexpr int COARSEN = BLOCK_C / 32;  // channels of a lane
constexpr int MAXIMUM = (1 << (BITS - 1)) - 1;
constexpr int VOLTAGE_BYTES = BITS / 4;
// 1.5 * 2^23: x + ROUND is rounded to an integer, halves to even, because its last place is worth 1; its low bits are
// those of the integer in two's complement.
constexpr float ROUND = 12582912.0f;

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

// The rotation of a spectrum and polarisation at channel k is (phase - delay (k - C/2) / C) half-turns.
// PHASE fast: sine and cosine of each sample by the special function units.
// PHASE accurate: those of a lane's first channel by sincospi; a complex product leads to its next, 32 further.
constexpr bool STEPPED = !FAST && COARSEN > 1;

__device__ __forceinline__ float2 multiply(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ float2 unit_vector(float half_turns)
{
    float2 z;
    sincospif(half_turns, &z.y, &z.x);
    return z;
}

// The same within 1e-6. The units are that good up to half a turn: what is left, exactly, without the whole turns.
__device__ __forceinline__ float2 fast_unit_vector(float half_turns)
{
    const float turns = __fadd_rn(__fmaf_rn(half_turns, 0.5f, ROUND), -ROUND);  // a whole number
    const float angle = 3.14159265f * __fmaf_rn(turns, -2.0f, half_turns);
    return make_float2(__cosf(angle), __sinf(angle));
}

// Half-turns in [-1, 1]. Reduced in double precision, so that any phase is as good as a small one.
__device__ __forceinline__ float reduced(float radians)
{
    const double half_turns = radians * 0.3183098861837907;  // 1 / pi
    return static_cast<float>(half_turns - 2.0 * rint(0.5 * half_turns));
}

// e^(-i pi delay 32 / C)
__device__ __forceinline__ float2 step_of(float delay)
{
    return unit_vector(-delay * (32.0f / N_CHANNELS));
}

// (k - C/2) / C, rounded once
__device__ __forceinline__ float position(int channel)
{
    return static_cast<float>(2 * channel - N_CHANNELS) / (2.0f * N_CHANNELS);
}

// A lane's channels of one spectrum and polarisation; turn: its phase, in half-turns, and its delay.
__device__ __forceinline__ void rotate(
    float2 (&rotated)[COARSEN], const float2 (&samples)[COARSEN], float2 turn, float2 step,
    const float (&positions)[COARSEN])
{
    float2 unit = make_float2(1.0f, 0.0f);
#pragma unroll
    for (int c = 0; c < COARSEN; ++c) {
        const float half_turns = __fmaf_rn(-turn.y, positions[c], turn.x);
        if (FAST)
            unit = fast_unit_vector(half_turns);
        else if (c == 0)
            unit = unit_vector(half_turns);
        else
            unit = multiply(unit, step);
        rotated[c] = multiply(samples[c], unit);
    }
}

// Two's complement, VOLTAGE_BYTES in the low bits; what lies above is not defined. Clamping before rounding is the same
// as after it, for the ends are integers. A sample is saturated when a part rounds beyond MAXIMUM, and MAXIMUM + 0.5
// does, for MAXIMUM is odd; NaN is not below it, so it counts, and fmaxf makes -MAXIMUM of it.
__device__ __forceinline__ unsigned quantise(float2 v, unsigned& saturated)
{
    constexpr float MAX = MAXIMUM;
    saturated += !(fmaxf(fabsf(v.x), fabsf(v.y)) < MAX + 0.5f);
    const unsigned re = __float_as_uint(fminf(fmaxf(v.x, -MAX), MAX) + ROUND);
    const unsigned im = __float_as_uint(fminf(fmaxf(v.y, -MAX), MAX) + ROUND);
    if constexpr (BITS == 8)
        return __byte_perm(re, im, 0x0040);  // byte 0 of re, byte 0 of im
    else
        return (im & 15u) | (re << 4 & ~15u);
}

// Codes of consecutive voltages in a word.
__device__ __forceinline__ unsigned pack(const unsigned* codes)
{
    if constexpr (BITS == 8)
        return __byte_perm(codes[0], codes[1], 0x5410);
    else
        return __byte_perm(__byte_perm(codes[0], codes[1], 0x0040), __byte_perm(codes[2], codes[3], 0x0040), 0x5410);
}

template <int N>
struct alignas(4 * N) Words {
    unsigned at[N];
};

// The type of N bytes that one instruction moves.
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

// What a thread writes of a row: its TIMES spectra are one piece, or one for each polarisation in larger blocks.
constexpr bool SPLIT = TIMES < TIMES_PER_BLOCK;
constexpr int PIECE = SPLIT ? TIMES : TIMES * N_POLS;  // voltages
constexpr int PIECE_WORDS = PIECE * VOLTAGE_BYTES / 4;

// What one thread stores at a time: the widest vector that all runs of the output are made of.
constexpr int RUN_BYTES = (BLOCKS ? TIMES_PER_BLOCK : SPECTRA_PER_HEAP) * N_POLS * VOLTAGE_BYTES;
constexpr int VECTOR = RUN_BYTES % 16 == 0 ? 16 : RUN_BYTES % 8 == 0 ? 8 : RUN_BYTES % 4 == 0 ? 4 : 2 - RUN_BYTES % 2;

struct Shared {
    alignas(16) unsigned tile[BLOCK_C * STRIDE];
    alignas(16) float2 turns[BLOCK_S * N_POLS];  // phase in half-turns, delay in samples
    alignas(16) float2 steps[STEPPED ? BLOCK_S * N_POLS : 1];
    alignas(16) unsigned counts[WARPS][N_POLS];
};
static_assert(sizeof(Shared) == 10320, "what the definition asks for at launch");

struct Tile {
    int heap;
    int channel;  // the first
    int spectrum;  // the first, in the heap
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

// Where all tiles are whole, the compiler knows, and guards nothing.
__device__ __forceinline__ bool has_channel(const Tile& tile, int c)
{
    return N_CHANNELS % BLOCK_C == 0 || tile.channel + c < N_CHANNELS;
}

__device__ __forceinline__ bool has_spectrum(const Tile& tile, int s)
{
    return SPECTRA_PER_HEAP % BLOCK_S == 0 || tile.spectrum + s < SPECTRA_PER_HEAP;
}

// TIMES spectra from number s of the tile on, all polarisations, the lane's channels; `corner`: its first channel's
// sample of the tile's first spectrum. All are loaded before any is used, so that many are under way.
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

// Of each spectrum and polarisation of the tile; `phases` and `delays` start at its first.
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

// Where the voltage of time t, polarisation p lies among those of a thread, piece after piece.
__host__ __device__ constexpr int place(int t, int p)
{
    return SPLIT ? p * TIMES + t
                 : t / TIMES_PER_BLOCK * TIMES_PER_BLOCK * N_POLS + p * TIMES_PER_BLOCK + t % TIMES_PER_BLOCK;
}

// The voltages of TIMES spectra from number s on into their row.
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

// Byte b of a row in the output; `channel` is its channel.
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

// Threads along rows: a row of the tile is contiguous in the output, or its blocks are.
__device__ __forceinline__ void store_tile(
    unsigned char* __restrict__ voltages, const unsigned* rows, const Tile& tile, long long receiver,
    long long n_spectra)
{
    typedef VectorOf<VECTOR>::Type Vector;
    constexpr int VECTORS = ROW_BYTES / VECTOR;  // of a row
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

extern "C" __global__ void __launch_bounds__(WGS) postproc(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float2* __restrict__ spectra,
    const float* __restrict__ delays, const float* __restrict__ phases, const float2* __restrict__ gains,
    long long n_spectra)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const Tile tile = tile_of(blockIdx.x);
    const long long receiver = blockIdx.z;
    const long long first = tile.heap * static_cast<long long>(SPECTRA_PER_HEAP) + tile.spectrum;
    const float2* corner = spectra + (receiver * N_POLS * n_spectra + first) * ROW + tile.channel + lane;

    float2 samples[TIMES][N_POLS][COARSEN];
    int s = warp * TIMES;
    load_samples(samples, corner, n_spectra, tile, s);  // under way while the turns are made
    float2 own_gains[N_POLS][COARSEN];
    load_gains(own_gains, gains + (receiver * N_CHANNELS + tile.channel + lane) * N_POLS, tile);
    float positions[COARSEN];
#pragma unroll
    for (int c = 0; c < COARSEN; ++c)
        positions[c] = position(tile.channel + lane + c * 32);
    const long long first_turn = (receiver * n_spectra + first) * N_POLS;
    make_turns(shared, phases + first_turn, delays + first_turn, tile);
    __syncthreads();  // the turns of all spectra of the tile are complete

    unsigned counts[N_POLS] = {};
#pragma unroll 1
    while (true) {
        unsigned codes[COARSEN][TIMES * N_POLS];
#pragma unroll
        for (int t = 0; t < TIMES; ++t) {
#pragma unroll
            for (int p = 0; p < N_POLS; ++p) {
                float2 voltage[COARSEN];
                const int i = (s + t) * N_POLS + p;
                const float2 step = STEPPED ? shared.steps[i] : make_float2(1.0f, 0.0f);
                rotate(voltage, samples[t][p], shared.turns[i], step, positions);
#pragma unroll
                for (int c = 0; c < COARSEN; ++c)
                    codes[c][place(t, p)] = quantise(multiply(voltage[c], own_gains[p][c]), counts[p]);
            }
        }
#pragma unroll
        for (int c = 0; c < COARSEN; ++c)
            stage(&shared.tile[(lane + c * 32) * STRIDE], s, codes[c]);
        s += WARPS * TIMES;
        if (s >= BLOCK_S)
            break;
        load_samples(samples, corner, n_spectra, tile, s);
    }

#pragma unroll
    for (int p = 0; p < N_POLS; ++p) {
        const unsigned of_warp = __reduce_add_sync(0xffffffffu, counts[p]);
        if (lane == 0)
            shared.counts[warp][p] = of_warp;
    }
    __syncthreads();  // the tile and its counts are complete
    if (threadIdx.x < N_POLS) {
        unsigned count = 0;
        for (int w = 0; w < WARPS; ++w)
            count += shared.counts[w][threadIdx.x];
        const long long heap = tile.heap * static_cast<long long>(gridDim.z) + receiver;
        if (count != 0)  // most tiles of real data have none
            atomicAdd(&saturated[heap * N_POLS + threadIdx.x], count);
    }
    store_tile(voltages, shared.tile, tile, receiver, n_spectra);
}
