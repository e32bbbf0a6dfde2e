// accumulate[n_accumulators=8|GRID=channels,WGS=128,VECTOR=2,COARSEN=1,DEPTH=8,READ=plain,CLEAR=streaming,STORE=streaming]
// visibilities[c][b] = sum over z of accumulators[z][c][b], clipped to +-(2^31 - 1), or (-2^31, 1) where !present[b]
//   visibilities  out    int2       [n_channels][n_baselines][4]                  (re, im)
//   accumulators  inout  longlong2  [N_ACCUMULATORS][n_channels][n_baselines][4]  (re, im); left at 0
//   saturated     inout  uint64     [1]            increased by the visibilities of which a part was clipped
//   present       in     uint8      [n_baselines]  0: the baseline lacks data
// Work    one thread <-> VECTOR COARSEN visibilities, of all accumulators
//         one block  <-> a tile: WGS VECTOR COARSEN consecutive visibilities;  GRID channels: of channel blockIdx.y
//                        flat: of all channels together, tiles blockIdx.x, + gridDim.x, ...
//         one warp   <-> in each of COARSEN runs, VECTOR rows of 32 visibilities
//             run 0: | warp 0: row 0 | warp 0: row 1 | warp 1: row 0 | .. | run 1: | warp 0: row 0 | ..
//             lane l loads visibility l of each row: 512 contiguous bytes of an accumulator a warp

constexpr int N_ACCUMULATORS = 8;
constexpr bool CHANNELS = true;  // a tile ends with its channel
constexpr int WGS = 128;  // blockDim.x
constexpr int VECTOR = 2;  // visibilities of one store of a thread, 1 or 2
constexpr int COARSEN = 1;  // stores of a thread
constexpr int DEPTH = 8;  // accumulators that are loaded before the first of them is added
constexpr int TILES = 1;  // that a block makes, at most
constexpr bool STREAMING_LOADS = false;
constexpr bool STREAMING_ZEROS = true;
constexpr bool STREAMING_STORES = true;

constexpr int PRODUCTS = 4;  // of a baseline
constexpr int RUN = WGS * VECTOR;  // visibilities of a block from one store of a thread to its next
constexpr int TILE = RUN * COARSEN;
constexpr long long LARGEST = 0x7fffffff;  // of either sign

__device__ __forceinline__ longlong2 load(const longlong2* address)
{
    return STREAMING_LOADS ? __ldcs(address) : *address;
}

__device__ __forceinline__ void clear(longlong2* address)
{
    if constexpr (STREAMING_ZEROS)
        __stcs(address, make_longlong2(0, 0));
    else
        *address = make_longlong2(0, 0);
}

template <class T>
__device__ __forceinline__ void store(T* address, T visibilities)
{
    if constexpr (STREAMING_STORES)
        __stcs(address, visibilities);
    else
        *address = visibilities;
}

__device__ __forceinline__ bool does_not_fit(long long sum)
{
    return static_cast<unsigned long long>(sum) + LARGEST > 2ull * LARGEST;
}

// To +-LARGEST: the most negative integer stays free, for what is missing.
__device__ __forceinline__ int clip(long long sum)
{
    const int limit = sum < 0 ? -LARGEST : LARGEST, low = static_cast<int>(sum);
    return does_not_fit(sum) ? limit : low;
}

// What the other lane of a pair gives for it.
__device__ __forceinline__ int2 trade(int2 given)
{
    return make_int2(__shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1));
}

// From a thread's first visibility of a tile to its visibility i; a constant, so that addresses differ by constants.
__host__ __device__ constexpr int apart(int i)
{
    return i / VECTOR * RUN + i % VECTOR * 32;
}

// Adds COUNT accumulators to the sums of N visibilities of a thread: those less than n_left apart from `first`, which
// is in the first of the COUNT; the others follow `stride` apart. Leaves zeros there. All loads come before any use.
template <bool WHOLE, int COUNT, int N>
__device__ __forceinline__ void add_and_clear(
    longlong2 (&sums)[N], longlong2* __restrict__ first, long long stride, int n_left)
{
    longlong2 loaded[COUNT > 0 ? COUNT : 1][N];
#pragma unroll
    for (int z = 0; z < COUNT; ++z) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (WHOLE || apart(i) < n_left)
                loaded[z][i] = load(first + z * stride + apart(i));
    }
#pragma unroll
    for (int z = 0; z < COUNT; ++z) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (WHOLE || apart(i) < n_left) {
                sums[i].x += loaded[z][i].x, sums[i].y += loaded[z][i].y;
                clear(first + z * stride + apart(i));
            }
    }
}

// All accumulators, AT_ONCE of them at a time.
template <bool WHOLE, int AT_ONCE, int N>
__device__ __forceinline__ void sum_and_clear(
    longlong2 (&sums)[N], longlong2* __restrict__ first, long long stride, int n_left)
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        sums[i] = make_longlong2(0, 0);
#pragma unroll 1  // unrolled, the loads of all batches would come first, whatever DEPTH
    for (int batch = 0; batch < N_ACCUMULATORS / AT_ONCE; ++batch) {
        add_and_clear<WHOLE, AT_ONCE, N>(sums, first, stride, n_left);
        first += AT_ONCE * stride;
    }
    add_and_clear<WHOLE, N_ACCUMULATORS % AT_ONCE, N>(sums, first, stride, n_left);
}

// The visibilities of RUNS runs -> how many of this thread's were saturated. Pointers and `in_channel` are of the first
// run; WHOLE: all of them are there, otherwise n_left.
template <bool WHOLE, int RUNS, int AT_ONCE>
__device__ __forceinline__ unsigned make_runs(
    int2* __restrict__ visibilities, longlong2* __restrict__ accumulators, const unsigned char* __restrict__ present,
    long long stride, unsigned in_channel, unsigned n_visibilities, int n_left)
{
    constexpr int N = VECTOR * RUNS;
    const unsigned own = threadIdx.x / 32 * (32 * VECTOR) + threadIdx.x % 32;
    in_channel += own;
    n_left -= static_cast<int>(own);
    bool is_present[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const unsigned visibility = in_channel + apart(i);  // a flat tile goes on in the next channel
        if (WHOLE || apart(i) < n_left)
            is_present[i] = __ldg(present + (CHANNELS ? visibility : visibility % n_visibilities) / PRODUCTS) != 0;
    }
    longlong2 sums[N];
    sum_and_clear<WHOLE, AT_ONCE, N>(sums, accumulators + own, stride, n_left);
    unsigned n_saturated = 0;
    int2 made[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (!WHOLE && apart(i) >= n_left)
            continue;
        n_saturated += is_present[i] & (does_not_fit(sums[i].x) | does_not_fit(sums[i].y));  // not ||: no branches
        made[i] = is_present[i] ? make_int2(clip(sums[i].x), clip(sums[i].y)) : make_int2(-LARGEST - 1, 1);
    }
#pragma unroll
    for (int i = 0; i < N; i += VECTOR) {
        if constexpr (VECTOR == 1) {
            if (WHOLE || apart(i) < n_left)
                store(visibilities + own + apart(i), made[i]);
        } else {
            // Lanes in pairs: the even one stores both of the first row, the odd one both of the second
            const bool odd = threadIdx.x % 2 != 0;
            const int2 kept = odd ? made[i + 1] : made[i], received = trade(odd ? made[i] : made[i + 1]);
            const int to_pair = odd ? 31 : 0;
            if (WHOLE || apart(i) + to_pair < n_left)  // both are there or none: channels have multiples of 4
                store(
                    reinterpret_cast<int4*>(visibilities + (own + to_pair)) + apart(i) / 2,
                    odd ? make_int4(received.x, received.y, kept.x, kept.y)
                        : make_int4(kept.x, kept.y, received.x, received.y));
        }
    }
    return n_saturated;
}

// One addition in global memory for a block, and none where no visibility of it was saturated.
__device__ __forceinline__ void add_count(unsigned long long* saturated, unsigned n_saturated)
{
    __shared__ unsigned of_block;
    if (threadIdx.x == 0)
        of_block = 0;
    if (__syncthreads_or(n_saturated != 0)) {  // of_block is 0 before anyone adds to it
        const unsigned of_warp = __reduce_add_sync(0xffffffffu, n_saturated);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&of_block, of_warp);
        __syncthreads();  // all warps have added theirs
        if (threadIdx.x == 0)
            atomicAdd(saturated, static_cast<unsigned long long>(of_block));
    }
}

// One block a multiprocessor is enough: to let more of them in, the compiler would spill a register or two.
extern "C" __global__ void __launch_bounds__(WGS, 1) accumulate(
    int2* __restrict__ visibilities, longlong2* __restrict__ accumulators, unsigned long long* __restrict__ saturated,
    const unsigned char* __restrict__ present, int n_channels, int n_baselines)
{
    const unsigned n_visibilities = static_cast<unsigned>(n_baselines) * PRODUCTS;  // of a channel
    const long long n_all = static_cast<long long>(n_visibilities) * n_channels;  // of an accumulator
    const long long first_of_channel = blockIdx.y * static_cast<long long>(n_visibilities);  // 0 in a flat grid
    const long long end = CHANNELS ? n_visibilities : n_all;
    unsigned n_saturated = 0;
    for (long long begin = blockIdx.x * static_cast<long long>(TILE); begin < end;
         begin += gridDim.x * static_cast<long long>(TILE)) {
        int2* to = visibilities + (first_of_channel + begin);
        longlong2* from = accumulators + (first_of_channel + begin);
        const unsigned in_channel = static_cast<unsigned>(CHANNELS ? begin : begin % n_visibilities);
        if (end - begin >= TILE) {
            n_saturated += make_runs<true, COARSEN, DEPTH>(to, from, present, n_all, in_channel, n_visibilities, TILE);
        } else {
            const int n_left = static_cast<int>(end - begin);
#pragma unroll 1  // the last tile, run by run: it must not be what takes the most registers
            for (int run = 0; run < n_left; run += RUN)
                n_saturated += make_runs<false, 1, DEPTH < 4 ? DEPTH : 4>(
                    to + run, from + run, present, n_all, in_channel + run, n_visibilities, n_left - run);
        }
        if constexpr (TILES == 1)
            break;  // known to the compiler only so
    }
    add_count(saturated, n_saturated);
}
