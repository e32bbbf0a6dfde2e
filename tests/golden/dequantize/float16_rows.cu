// dequantize[out_type=float16,scale_offset=False,missing=True|GRID=rows,WGS=128,LOAD=4,EXCHANGE=none,UNROLL=2,READ=plain,STORE=write_through,AHEAD=0,RESERVED=0]
// values[i] = x, or scale x + offset, for the four-bit sample x number i; the low nibble of a byte comes first
//   values        out  float32, float16 or bfloat16  [n_beams][n_freqs][n_times], 16 bytes at a time
//   samples       in   bytes of two samples          [n_beams][n_freqs][n_times / 2]; row_bytes a row, n_bytes in all
//   scale_offset  in   half2 (scale, offset)         [n_beams][n_freqs][n_times / 256], where the problem has it
// Work    one block  <-> a tile: UNROLL runs of WGS loads;  GRID flat: tile blockIdx.x of the whole array
//                        rows: tile blockIdx.x of row blockIdx.y of beam blockIdx.z
//         one warp   <-> 32 consecutive loads of each run, LOAD bytes a lane
//         a piece is what 16 bytes of output are made of: 2 bytes for float32, 4 for float16 and bfloat16
//             run 0: | warp 0: 32 LOAD bytes | warp 1 | .. | run 1: | warp 0 | ..      of the input
//             a warp's output: store 0: 32 pieces, 512 bytes | store 1 | ..            EXCHANGE shuffle

#include <cuda_fp16.h>

enum class Out { float32, float16, bfloat16 };

constexpr Out OUT = Out::float16;
constexpr bool SCALED = false;
constexpr bool MISSING = true;  // -8 is no sample: 0 takes its place
constexpr bool ROWS = true;  // a tile ends with its row
constexpr int WGS = 128;  // blockDim.x
constexpr int LOAD = 4;  // bytes of one load of a thread
constexpr bool SHUFFLE = false;  // lanes exchange pieces
constexpr int UNROLL = 2;  // loads of a thread, all before its first store
constexpr bool STREAMING_LOADS = false;
constexpr bool STREAMING_STORES = false;
constexpr int AHEAD = 0 * 1024;  // bytes from a tile to what is brought near

constexpr int GROUP_BYTES = 128;  // of samples that share a scale and an offset
constexpr int PIECE = OUT == Out::float32 ? 2 : 4;  // bytes of samples that become 16 bytes of values
constexpr int PIECES = LOAD / PIECE;  // of one load
constexpr int WORDS = LOAD < 4 ? 1 : LOAD / 4;  // registers of one load
constexpr int RUN = WGS * LOAD;  // bytes that a block loads at once
constexpr int TILE = RUN * UNROLL;
constexpr int WARP_BYTES = 32 * LOAD;  // of one run
constexpr int STEP = SHUFFLE ? 32 * PIECE : PIECE;  // bytes from one store of a thread to its next of the same load
static_assert(PIECES >= 1 && (PIECES > 1 || !SHUFFLE), "there is something to store, and to exchange");

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

// Nibbles of 8, which mark missing samples, become 0: the top bit goes where the three below it are clear.
__device__ __forceinline__ unsigned without_missing(unsigned word)
{
    const unsigned others = word << 1 | word << 2 | word << 3;  // their top bits: any of the three
    return word & (others | ~0x88888888u);
}

// Sample I of a word as float, without a conversion. The nibble stays at bits [p, p + 4) of the mantissa; with the
// exponent of 2^(23-p) its lowest bit is worth 1, and with its sign bit inverted it counts from 0, not from -8.
template <int I>
__device__ __forceinline__ float sample(unsigned word)
{
    constexpr int position = I % 4 * 4;
    constexpr unsigned exponent = (127u + 23 - position) << 23;
    constexpr float bias = static_cast<float>((1 << (23 - position)) + 8);
    return __uint_as_float(and_xor(word >> I / 4 * 16, 15u << position, exponent | 8u << position)) - bias;
}

struct Scale {
    float scale, offset;
};

template <int I>
__device__ __forceinline__ float value(unsigned word, Scale by)
{
    const float x = sample<I>(word);
    if constexpr (!SCALED)
        return x;
    const float scaled = fmaf(by.scale, x, by.offset);
    return MISSING && x == -8.0f ? 0.0f : scaled;
}

__device__ __forceinline__ __half2 as_half2(unsigned word)
{
    return *reinterpret_cast<const __half2*>(&word);
}

__device__ __forceinline__ unsigned as_word(__half2 pair)
{
    return *reinterpret_cast<const unsigned*>(&pair);
}

// Two floats, each rounded to the nearest bfloat16, to even where two are as near; a NaN becomes 0x7fff.
__device__ __forceinline__ unsigned pack_bfloat16(float low, float high)
{
#ifdef AUTOTUNE_HOST
    const auto top = [](float f) {
        const unsigned bits = __float_as_uint(f);
        return f != f ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return top(low) | top(high) << 16;
#else
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#endif
}

// Samples I and I + 1 of a word as two values of 16 bits.
template <int I>
__device__ __forceinline__ unsigned pair(unsigned word, Scale by)
{
    const float low = value<I>(word, by), high = value<I + 1>(word, by);
    return OUT == Out::float16 ? as_word(__floats2half2_rn(low, high)) : pack_bfloat16(low, high);
}

// Samples I and I + 4 of a word as halves: as for float, with a mantissa of 10 bits, and exponents of 2^10.
template <int I>
__device__ __forceinline__ unsigned halves(unsigned word)
{
    const unsigned biased = and_xor(word >> 4 * I, 0x000f000f, 0x64086408);
    return as_word(__hsub2(as_half2(biased), as_half2(0x64086408)));  // 1024 + 8
}

// The values of a piece; of float32, the samples in the low half of `word`.
__device__ __forceinline__ uint4 convert(unsigned word, __half2 scale_offset)
{
    Scale by = {};
    if constexpr (SCALED)
        by = {__low2float(scale_offset), __high2float(scale_offset)};
    if constexpr (OUT == Out::float32) {
        return make_uint4(
            __float_as_uint(value<0>(word, by)), __float_as_uint(value<1>(word, by)),
            __float_as_uint(value<2>(word, by)), __float_as_uint(value<3>(word, by)));
    } else if constexpr (OUT == Out::float16 && !SCALED) {
        const unsigned h0 = halves<0>(word), h1 = halves<1>(word), h2 = halves<2>(word), h3 = halves<3>(word);
        constexpr unsigned low = 0x5410, high = 0x7632;  // samples of the word's lower and upper half
        return make_uint4(
            __byte_perm(h0, h1, low), __byte_perm(h2, h3, low), __byte_perm(h0, h1, high), __byte_perm(h2, h3, high));
    } else {
        return make_uint4(pair<0>(word, by), pair<2>(word, by), pair<4>(word, by), pair<6>(word, by));
    }
}

// A lane's load is worth PIECES stores, which would leave gaps between lanes. EXCHANGE shuffle: lanes exchange pieces,
// so that store i of a warp is its pieces [32 i, 32 i + 32). For PIECES = 4, in bits of a piece's number in its warp:
//                         lane               register
//     in memory           l4 l3 l2 l1 l0     p1 p0         lane l holds the PIECES pieces of chunk l
//     loaded, permuted    l2 l1 l0 l4 l3     p1 p0         lane l holds those of chunk loaded_by(l)
//     exchanged           l2 l1 l0 p1 p0     l4 l3         lanes PIECES apart trade; the register is now the store
__device__ __forceinline__ unsigned loaded_by(unsigned lane)
{
    return SHUFFLE ? lane % PIECES * (32 / PIECES) + lane / PIECES : lane;
}

// Of the pieces of a warp, the first that a lane stores; the others follow STEP bytes apart. The groups of scales are
// 256 samples: without an exchange a lane's pieces lie in one, with it those of a store of all lanes do.
__device__ __forceinline__ unsigned stored_by(unsigned lane)
{
    return SHUFFLE ? lane : lane * PIECES;
}

// One step: registers that differ in bit BIT of their number and lanes that differ in lane_bit trade places.
template <int BIT>
__device__ __forceinline__ void trade_words(unsigned (&words)[WORDS], int lane_bit)
{
    const bool upper = threadIdx.x & lane_bit;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        if (i & BIT)
            continue;
        const unsigned received = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | BIT], lane_bit);
        words[i] = upper ? received : words[i];
        words[i | BIT] = upper ? words[i | BIT] : received;
    }
}

__device__ __forceinline__ void exchange(unsigned (&words)[WORDS])
{
    constexpr int HALVES = PIECE == 2 ? 2 : 1;  // pieces of a word: with two, the lowest bit of a lane is for them
    if constexpr (HALVES == 2) {
        const unsigned selector = threadIdx.x & 1 ? 0x3276 : 0x5410;  // one of its own, one of its neighbour's
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = __byte_perm(words[i], __shfl_xor_sync(0xffffffffu, words[i], 1), selector);
    }
    if constexpr (WORDS >= 2)
        trade_words<1>(words, HALVES);
    if constexpr (WORDS >= 4)
        trade_words<2>(words, 2 * HALVES);
}

// Piece i of a thread's own, in the low bits.
__device__ __forceinline__ unsigned piece_of(const unsigned (&words)[WORDS], int i)
{
    return PIECE == 2 ? words[i / 2] >> i % 2 * 16 : words[i];
}

template <class T>
__device__ __forceinline__ T load(const unsigned char* address)
{
    const T* typed = reinterpret_cast<const T*>(address);
    return STREAMING_LOADS ? __ldcs(typed) : __ldg(typed);
}

// LOAD bytes from `samples` on. Not WHOLE: word by word, those of them that are among n_bytes; for others 0.
template <bool WHOLE>
__device__ __forceinline__ void load_chunk(
    unsigned (&words)[WORDS], const unsigned char* __restrict__ samples, int n_bytes)
{
    if constexpr (LOAD == 2) {
        words[0] = WHOLE || 0 < n_bytes ? load<unsigned short>(samples) : 0;
    } else if constexpr (!WHOLE || LOAD == 4) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = WHOLE || 4 * i < n_bytes ? load<unsigned>(samples + 4 * i) : 0;
    } else if constexpr (LOAD == 8) {
        const uint2 loaded = load<uint2>(samples);
        words[0] = loaded.x, words[1] = loaded.y;
    } else {
        const uint4 loaded = load<uint4>(samples);
        words[0] = loaded.x, words[1] = loaded.y, words[2] = loaded.z, words[3] = loaded.w;
    }
}

__device__ __forceinline__ void store(uint4* address, uint4 values)
{
    if constexpr (STREAMING_STORES)
        __stcs(address, values);
    else
        *address = values;
}

// Asks for 128 bytes to be in the L2, and waits for nothing.
__device__ __forceinline__ void prefetch(const unsigned char* address)
{
#ifndef AUTOTUNE_HOST
    asm volatile("prefetch.global.L2 [%0];" : : "l"(address));
#endif
}

// One block in eight brings the samples of eight tiles into the L2, AHEAD bytes after `samples`, the first of n_bytes:
// memory then reads longer runs between its writes.
__device__ __forceinline__ void bring_near(const unsigned char* samples, long long n_bytes)
{
    constexpr int TILES = 8;
    if (blockIdx.x % TILES == 0) {
        for (int i = threadIdx.x * 128; i < TILES * TILE; i += WGS * 128)
            if (AHEAD + i < n_bytes)
                prefetch(samples + AHEAD + i);
    }
}

// The tile that begins at these addresses. WHOLE: all of its bytes are there, and loads are aligned; otherwise n_bytes.
template <bool WHOLE>
__device__ __forceinline__ void dequantize_tile(
    uint4* __restrict__ values, const unsigned char* __restrict__ samples, const __half2* __restrict__ scale_offset,
    int n_bytes)
{
    // Where this thread begins; the rest are constants, so that addresses are too but for one sum of 64 bits each
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 * WARP_BYTES;
    const unsigned loaded = warp + loaded_by(lane) * LOAD, stored = warp + stored_by(lane) * PIECE;
    samples += loaded;
    values += stored / PIECE;
    scale_offset += stored / GROUP_BYTES;
    unsigned words[UNROLL][WORDS];
    __half2 scales[UNROLL][PIECES];
#pragma unroll
    for (int run = 0; run < UNROLL; ++run)
        load_chunk<WHOLE>(words[run], samples + run * RUN, n_bytes - static_cast<int>(loaded) - run * RUN);
    if constexpr (SCALED) {
#pragma unroll
        for (int run = 0; run < UNROLL; ++run) {
#pragma unroll
            for (int i = 0; i < PIECES; ++i)
                if (WHOLE || static_cast<int>(stored) + run * RUN + i * STEP < n_bytes)
                    scales[run][i] = __ldg(scale_offset + run * RUN / GROUP_BYTES + i * STEP / GROUP_BYTES);
        }
    }
#pragma unroll
    for (int run = 0; run < UNROLL; ++run) {
        if constexpr (MISSING && !SCALED) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i)
                words[run][i] = without_missing(words[run][i]);
        }
        if constexpr (SHUFFLE)
            exchange(words[run]);
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            if (WHOLE || static_cast<int>(stored) + run * RUN + i * STEP < n_bytes)
                store(values + (run * RUN + i * STEP) / PIECE, convert(piece_of(words[run], i), scales[run][i]));
    }
}

extern "C" __global__ void __launch_bounds__(WGS) dequantize(
    uint4* __restrict__ values, const unsigned char* __restrict__ samples,
    long long n_bytes, long long row_bytes)
{
    long long begin = 0, end = n_bytes;
    if constexpr (ROWS) {
        begin = (blockIdx.z * static_cast<long long>(gridDim.y) + blockIdx.y) * row_bytes;
        end = begin + row_bytes;
    }
    begin += blockIdx.x * static_cast<long long>(TILE);
    samples += begin;
    if constexpr (AHEAD > 0)
        bring_near(samples, end - begin);
    values += begin / PIECE;
    const __half2* scale_offset = nullptr;
    // Rows are a multiple of 4 bytes, which need not be one of LOAD
    if (end - begin >= TILE && (!ROWS || LOAD <= 4 || row_bytes % LOAD == 0))
        dequantize_tile<true>(values, samples, scale_offset, TILE);
    else
        dequantize_tile<false>(values, samples, scale_offset, static_cast<int>(min(end - begin, 1ll * TILE)));
}
