// The ring of weights: blocks 0, L-1, L-2 .. 1, 0, L-1 .. 1 of each product of a step, with L = LIVE, so that blocks
// (v - i) mod L for i = 0 .. L-1 follow each other, whatever v is; or, where sums move, L-1, L-2 .. 0 once. A block is
// OCTETS octets of 8 columns.
// What hardware reads: a product's samples of a column are two pieces of 16 bytes; the first ones of all columns follow
// each other, and the second ones behind them. Word l1 l0 of piece r of column c2 c1 c0 of an octet is register r of lane
// c2 c1 c0 l1 l0 of the fragment that mma.sync takes.
// The block of weights at place `at` of them, and again LIVE further on.
__device__ __forceinline__ int block_at(int at)
{
    return SUMS_MOVE ? LIVE - 1 - at : at == 0 ? 0 : LIVE - at;
}

// By the whole block, from mixed weights, which are not needed any more when it returns.
__device__ __forceinline__ void fill_ring(Ring& ring, const unsigned char* scratch, int skew, int warp, int lane)
{
    constexpr int UNITS = OCTETS / TOGETHER;
{% if element == "s8" %}
    const int first = lane / 4 % 2 * PIECE_WORDS + lane, second = first ^ 4;
{% else %}
    const int first = lane, second = PIECE_WORDS + lane;
{% endif %}
    // Each block once, for both its places. The weights of a unit are loaded before the words of the one before it are
    // stored: the compiler cannot tell that these do not change them.
    int at = warp % LIVE, product = warp / LIVE;
    Taken taken = take_weights(mixed_weights(scratch), block_at(at), product, 0, lane, skew);
#pragma unroll 1
    for (int i = warp; i < K_STEPS * LIVE; i += WARPS) {
        unsigned(*const to)[32] = ring.words[product][0][at];
        const bool is_twice = !SUMS_MOVE && at < LIVE - 1;
        const int block = block_at(at), of = product;
        at += WARPS % LIVE, product += WARPS / LIVE;
        if (at >= LIVE)
            at -= LIVE, ++product;
#pragma unroll
        for (int unit = 0; unit < UNITS; ++unit) {
            const bool is_last = unit + 1 == UNITS;  // behind the last block, what follows is not used
            const Taken next = take_weights(
                mixed_weights(scratch), is_last ? block_at(at) : block, is_last ? product : of, is_last ? 0 : unit + 1, lane,
                skew);
            unsigned words[TOGETHER][2];
            words_of(words, taken, lane);
#pragma unroll
            for (int o = 0; o < TOGETHER; ++o) {
                unsigned* const octet = to[unit * TOGETHER + o];
                octet[first] = words[o][0];
                octet[second] = words[o][1];
                if (is_twice) {
                    octet[LIVE * OCTETS * 32 + first] = words[o][0];
                    octet[LIVE * OCTETS * 32 + second] = words[o][1];
                }
            }
            taken = next;
        }
    }
{% if bytes > 1 %}
    if (threadIdx.x < 32)
        ring.before[threadIdx.x] = 0;
{% endif %}
{% if fills %}
    if (threadIdx.x < 32)
        ring.behind[threadIdx.x] = 0;
{% endif %}
    publish_writes();
    __syncthreads();  // the ring is complete
}

// Where the blocks of the first product start, in units of 16 bytes, as the hardware wants to be told.
__device__ __forceinline__ unsigned address_of(const Ring& ring)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(&ring.words)) >> 4;
}

// Describes the LIVE blocks from `block` on, for product `product` of a step; step v needs them from -v mod LIVE. No
// swizzle; 128 bytes from octet to octet. `before`: columns by which it starts earlier. Source: PTX ISA, "Matrix
// Descriptor Format".
__device__ __forceinline__ unsigned long long blocks_of(unsigned ring, int product, int block, int before = 0)
{
    constexpr unsigned PIECE = PIECE_WORDS * 4 / 16, OCTET = 128 / 16;
    const int columns = (product * 2 * RING_BLOCKS + block) * (OCTETS * 8) - before;
    return static_cast<unsigned long long>(OCTET) << 32 | (ring + ((PIECE << 16) + columns));
}
