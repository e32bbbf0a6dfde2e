// The ring of weights: blocks 0, L-1, L-2 .. 1, 0, L-1 .. 1 of each 16 samples of a step, with L = LIVE, so that blocks
// (v - i) mod L for i = 0 .. L-1 follow each other, whatever v is. A block is OCTETS octets of 8 columns, 256 bytes
// each.
// What hardware reads: the 16 samples of a column are two pieces of 16 bytes; those of 8 columns follow each other, and
// the second pieces follow the first. Word l1 l0 of piece r of column c2 c1 c0 is register r of lane c2 c1 c0 l1 l0 of
// the fragment that mma.sync takes: an octet is the first registers of all lanes, then the second ones.
// By the whole block, from mixed weights, which are not needed any more when it returns.
__device__ __forceinline__ void fill_ring(Ring& ring, const unsigned char* scratch, int skew)
{
    // Each block once, for both its places; two a turn, so that one's loads do not wait for the other's.
#pragma unroll 2
    for (int i = threadIdx.x; i < K_STEPS * LIVE * OCTETS * 32; i += WGS) {
        const int octet = i / 32 % OCTETS, at = i / 32 / OCTETS % LIVE, product = i / 32 / OCTETS / LIVE;
        const uint2 fragment = fragment_of(scratch, (LIVE - at) % LIVE, product, octet, i % 32, skew);
        unsigned* const to = &ring.words[product][at][octet][0][i % 32];
        to[0] = fragment.x;
        to[32] = fragment.y;
        if (at < LIVE - 1) {
            to[LIVE * OCTETS * 64] = fragment.x;
            to[LIVE * OCTETS * 64 + 32] = fragment.y;
        }
    }
    publish_writes();
    __syncthreads();  // the ring is complete
}

// Where the ring starts, in units of 16 bytes, as the hardware wants to be told.
__device__ __forceinline__ unsigned address_of(const Ring& ring)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(&ring)) >> 4;
}

// Describes the LIVE blocks from `block` on, for product `product` of a step; step v needs them from -v mod LIVE. No
// swizzle; 128 bytes from the first piece of a column to the second; 256 from octet to octet. Source: PTX ISA, "Matrix
// Descriptor Format".
__device__ __forceinline__ unsigned long long blocks_of(unsigned ring, int product, int block)
{
    constexpr unsigned PIECE = 128 / 16 << 16, OCTET = 256 / 16;
    const int blocks = product * RING_BLOCKS + block;
    return static_cast<unsigned long long>(OCTET) << 32 | (ring + (PIECE + blocks * (OCTETS * 256 / 16)));
}
