// Weights as wgmma takes them: a ring of blocks in shared memory.
// Needs     S: Shape; W: WeightHalves or WeightBytes; lib/tma.cuh (publish_writes), weights_mixed.cuh
// Provides  WeightRing, in shared memory: fill, by the whole block; address, and the descriptor of a product's blocks
// Blocks    of each product of a step, with L = N_TILES: 0, L-1, L-2 .. 1, 0, L-1 .. 2, so that blocks (v - i) mod L
//           for i = 0 .. L-1 follow each other, whatever v is; or, where sums move, L-1, L-2 .. 0 once. A block is
//           OCTETS_PER_TILE octets of 8 columns.
// Layout    as hardware reads it: a product's samples of a column are two pieces of 16 bytes; the first ones of all
//           columns follow each other, and the second ones behind them. Word l1 l0 of piece r of column c2 c1 c0 of an
//           octet is register r of lane c2 c1 c0 l1 l0 of the fragment that mma.sync takes.
// Zeros     an octet of columns before the blocks, for upper bytes of samples, which are multiplied with columns that
//           start earlier; and one behind them, which fills products up. Each is there where it is needed: bases may be
//           empty.
template <bool IS_THERE>
struct ZerosBefore {
    unsigned before[32];
};
template <>
struct ZerosBefore<false> {
};

template <bool IS_THERE>
struct ZerosBehind {
    unsigned behind[32];
};
template <>
struct ZerosBehind<false> {
};

template <class S>
struct RingBlocks : ZerosBefore<(S::OPERANDS_PER_SAMPLE > 1)> {
    unsigned words[S::MMAS_PER_STEP][2][S::BLOCKS_IN_RING][S::OCTETS_PER_TILE][32];  // [product][piece][block][octet]
};

template <class S, class W>
struct WeightRing : RingBlocks<S>, ZerosBehind<(S::FILL_OCTETS > 0)> {
    typedef MixedWeights<S, W> Mixed;
    static constexpr int PIECE_WORDS = S::BLOCKS_IN_RING * S::OCTETS_PER_TILE * 32;  // of a product's first pieces

    // Fills the ring from the mixed weights in `scratch`, which are not needed any more when it returns.
    __device__ __forceinline__ void fill(const unsigned char* scratch, int skew, int warp, int lane)
    {
        constexpr int UNITS = S::OCTETS_PER_TILE / W::OCTETS_PER_UNIT;
        const int first = W::ALTERNATES_REGISTERS ? lane / 4 % 2 * PIECE_WORDS + lane : lane;
        const int second = W::ALTERNATES_REGISTERS ? first ^ 4 : PIECE_WORDS + lane;
        // Each block once, for both its places. The weights of a unit are loaded before the words of the one before it
        // are stored: the compiler cannot tell that these do not change them.
        int at = warp % S::N_TILES, product = warp / S::N_TILES;
        typename W::Taken taken = W::take(Mixed::weights_in(scratch), block_at(at), product, 0, lane, skew);
#pragma unroll 1
        for (int i = warp; i < S::MMAS_PER_STEP * S::N_TILES; i += S::N_WARPS) {
            unsigned(*const to)[32] = this->words[product][0][at];
            const bool is_twice = !S::SUMS_MOVE && at < S::N_TILES - 1;
            const int block = block_at(at), of = product;
            at += S::N_WARPS % S::N_TILES, product += S::N_WARPS / S::N_TILES;
            if (at >= S::N_TILES)
                at -= S::N_TILES, ++product;
#pragma unroll
            for (int unit = 0; unit < UNITS; ++unit) {
                const bool is_last = unit + 1 == UNITS;  // behind the last block, what follows is not used
                const typename W::Taken next = W::take(
                    Mixed::weights_in(scratch), is_last ? block_at(at) : block, is_last ? product : of,
                    is_last ? 0 : unit + 1, lane, skew);
                unsigned made[W::OCTETS_PER_UNIT][2];
                W::words_of(made, taken, lane);
#pragma unroll
                for (int o = 0; o < W::OCTETS_PER_UNIT; ++o) {
                    unsigned* const octet = to[unit * W::OCTETS_PER_UNIT + o];
                    octet[first] = made[o][0];
                    octet[second] = made[o][1];
                    if (is_twice) {
                        octet[S::N_TILES * S::OCTETS_PER_TILE * 32 + first] = made[o][0];
                        octet[S::N_TILES * S::OCTETS_PER_TILE * 32 + second] = made[o][1];
                    }
                }
                taken = next;
            }
        }
        if constexpr (S::OPERANDS_PER_SAMPLE > 1)
            if (threadIdx.x < 32)
                this->before[threadIdx.x] = 0;
        if constexpr (S::FILL_OCTETS > 0)
            if (threadIdx.x < 32)
                this->behind[threadIdx.x] = 0;
        publish_writes();
        __syncthreads();  // the ring is complete
    }

    // Returns where the blocks of the first product start, in units of 16 bytes, as the hardware wants to be told.
    __device__ __forceinline__ unsigned address() const
    {
        return static_cast<unsigned>(__cvta_generic_to_shared(&this->words)) >> 4;
    }

    // Describes the N_TILES blocks from `block` on, for product `product` of a step; step v needs them from -v mod
    // N_TILES. No swizzle; 128 bytes from octet to octet. `ring`: its address; `before`: columns by which it starts
    // earlier. Source: PTX ISA, "Matrix Descriptor Format".
    __device__ __forceinline__ static unsigned long long blocks_of(
        unsigned ring, int product, int block, int before = 0)
    {
        constexpr unsigned PIECE = PIECE_WORDS * 4 / 16, OCTET = 128 / 16;
        const int columns = (product * 2 * S::BLOCKS_IN_RING + block) * (S::OCTETS_PER_TILE * 8) - before;
        return static_cast<unsigned long long>(OCTET) << 32 | (ring + ((PIECE << 16) + columns));
    }

private:
    // Returns the block of weights at place `at` of them, and again N_TILES further on.
    __device__ __forceinline__ static int block_at(int at)
    {
        return S::SUMS_MOVE ? S::N_TILES - 1 - at : at == 0 ? 0 : S::N_TILES - at;
    }
};
