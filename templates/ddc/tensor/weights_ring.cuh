// Weights as wgmma takes them: a ring of blocks in shared memory.
// Needs     Shape; Weights: WeightHalves or WeightBytes; lib/tma.cuh (publish_writes),
//           weights_mixed.cuh (MixedWeights)
// Provides  WeightRing, in shared memory: fill, by the whole block; address; blocks_of, the descriptor of a product's
//           blocks
// Blocks    With L = N_TILES, the ring has these blocks for each product of a step: 0, L-1, L-2 .. 1, 0, L-1 .. 2. So
//           blocks (v - i) mod L for i = 0 .. L-1 follow each other for every v. If sums move, the ring has each block
//           once: L-1, L-2 .. 0. A block is OCTETS_PER_TILE octets of 8 columns.
// Layout    The hardware reads a column of a product as two pieces of 16 bytes. The first pieces of all columns follow
//           each other, and the second pieces follow them. Word l1 l0 of piece r of column c2 c1 c0 of an octet is
//           register r of lane c2 c1 c0 l1 l0 of the fragment that mma.sync takes.
// Zeros     An octet of zeros before the blocks is for upper bytes of samples, which are multiplied by columns that
//           start earlier. An octet of zeros behind the blocks makes the number of octets even. Variants that do not
//           need one of them have an empty base class instead.
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

template <class Shape>
struct RingBlocks : ZerosBefore<(Shape::OPERANDS_PER_SAMPLE > 1)> {
    // [product][piece][block][octet]
    unsigned words[Shape::MMAS_PER_STEP][2][Shape::BLOCKS_IN_RING][Shape::OCTETS_PER_TILE][32];
};

template <class Shape, class Weights>
struct WeightRing : RingBlocks<Shape>, ZerosBehind<(Shape::FILL_OCTETS > 0)> {
    typedef MixedWeights<Shape, Weights> Mixed;
    static constexpr int PIECE_WORDS = Shape::BLOCKS_IN_RING * Shape::OCTETS_PER_TILE * 32;  // of first pieces

    // Fills the ring from the mixed weights in `scratch`. The mixed weights are not needed any more when it returns.
    __device__ __forceinline__ void fill(const unsigned char* scratch, int skew, int warp, int lane)
    {
        constexpr int UNITS = Shape::OCTETS_PER_TILE / Weights::OCTETS_PER_UNIT;
        const int first = Weights::ALTERNATES_REGISTERS ? lane / 4 % 2 * PIECE_WORDS + lane : lane;
        const int second = Weights::ALTERNATES_REGISTERS ? first ^ 4 : PIECE_WORDS + lane;
        // Each block is made once and stored at both its places. The weights of a unit are loaded before the words of
        // the previous unit are stored. The compiler would not move the loads there, since it cannot tell that the
        // stores do not change the weights.
        int at = warp % Shape::N_TILES, product = warp / Shape::N_TILES;
        typename Weights::Taken taken = Weights::take(Mixed::weights_in(scratch), block_at(at), product, 0, lane, skew);
#pragma unroll 1
        for (int i = warp; i < Shape::MMAS_PER_STEP * Shape::N_TILES; i += Shape::N_WARPS) {
            unsigned(*const to)[32] = this->words[product][0][at];
            const bool is_twice = !Shape::SUMS_MOVE && at < Shape::N_TILES - 1;
            const int block = block_at(at), of = product;
            at += Shape::N_WARPS % Shape::N_TILES, product += Shape::N_WARPS / Shape::N_TILES;
            if (at >= Shape::N_TILES)
                at -= Shape::N_TILES, ++product;
#pragma unroll
            for (int unit = 0; unit < UNITS; ++unit) {
                const bool is_last = unit + 1 == UNITS;  // behind the last block, these weights are not used
                const typename Weights::Taken next = Weights::take(
                    Mixed::weights_in(scratch), is_last ? block_at(at) : block, is_last ? product : of,
                    is_last ? 0 : unit + 1, lane, skew);
                unsigned made[Weights::OCTETS_PER_UNIT][2];
                Weights::words_of(made, taken, lane);
#pragma unroll
                for (int o = 0; o < Weights::OCTETS_PER_UNIT; ++o) {
                    unsigned* const octet = to[unit * Weights::OCTETS_PER_UNIT + o];
                    octet[first] = made[o][0];
                    octet[second] = made[o][1];
                    if (is_twice) {
                        octet[Shape::N_TILES * Shape::OCTETS_PER_TILE * 32 + first] = made[o][0];
                        octet[Shape::N_TILES * Shape::OCTETS_PER_TILE * 32 + second] = made[o][1];
                    }
                }
                taken = next;
            }
        }
        if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
            if (threadIdx.x < 32)
                this->before[threadIdx.x] = 0;
        if constexpr (Shape::FILL_OCTETS > 0)
            if (threadIdx.x < 32)
                this->behind[threadIdx.x] = 0;
        publish_writes();
        __syncthreads();  // the ring is complete
    }

    // Returns the address of the first product's blocks in units of 16 bytes, as in the hardware's descriptor.
    __device__ __forceinline__ unsigned address() const
    {
        return static_cast<unsigned>(__cvta_generic_to_shared(&this->words)) >> 4;
    }

    // Returns the descriptor of the N_TILES blocks from `block` on, for product `product` of a step. Step v needs the
    // blocks from -v mod N_TILES on. `ring` is the ring's address(); `before` is a number of columns by which the
    // operand starts earlier. There is no swizzle, and octets lie 128 bytes apart. Source: PTX ISA, "Matrix Descriptor
    // Format".
    __device__ __forceinline__ static unsigned long long blocks_of(
        unsigned ring, int product, int block, int before = 0)
    {
        constexpr unsigned PIECE = PIECE_WORDS * 4 / 16, OCTET = 128 / 16;
        const int columns = (product * 2 * Shape::BLOCKS_IN_RING + block) * (Shape::OCTETS_PER_TILE * 8) - before;
        return static_cast<unsigned long long>(OCTET) << 32 | (ring + ((PIECE << 16) + columns));
    }

private:
    // Returns the block of weights at place `at` of the ring, which is also at place `at` + N_TILES.
    __device__ __forceinline__ static int block_at(int at)
    {
        return Shape::SUMS_MOVE ? Shape::N_TILES - 1 - at : at == 0 ? 0 : Shape::N_TILES - at;
    }
};
