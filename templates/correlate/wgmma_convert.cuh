// Conversion for wgmma, by a warpgroup: the units of the earlier receivers become operands that tensor cores read.
// Needs     octet.cuh (Octet, place_of, sorted), operands.cuh (plain_words), wgmma_ring.cuh (Ring),
//           wgmma_chain.cuh (Range), wgmma_cluster.cuh (Sides),
//           lib/tma.cuh (arrive, publish_writes, shared_pointer, wait)
// Provides  convert_slice

// Makes the operands of a pair of products of a receiver's units, in the order along K in which lanes have the words of
// A: lane l1 l0 of a row has words l1 l0 of both halves. A thread reads all units before it writes: they may lie where
// it writes.
__device__ __forceinline__ void convert_pair(
    const unsigned char* raw, unsigned char* operand, int receiver, int n_units)
{
    Octet octets[PAIR_UNITS][4];  // what the four lanes of a row would have
#pragma unroll
    for (int unit = 0; unit < PAIR_UNITS; ++unit) {
        union {
            uint4 pieces[4];
            unsigned words[4][4];
        };
#pragma unroll
        for (int i = 0; i < 4 && unit < n_units; ++i)
            pieces[i] = *reinterpret_cast<const uint4*>(raw + unit * UNIT + place_of(receiver, i));
#pragma unroll
        for (int lane = 0; lane < 4; ++lane) {
            if constexpr (BLOCKS)
                octets[unit][lane] = {words[0][lane], words[1][lane], words[2][lane], words[3][lane]};
            else
                octets[unit][lane] = sorted(pieces[lane]);
        }
    }
#pragma unroll
    for (int product = 0; product < PAIR_UNITS * PRODUCTS_PER_UNIT; ++product)
#pragma unroll
        for (int pol = 0; pol < 2; ++pol) {
            unsigned plain[4][2];
#pragma unroll
            for (int lane = 0; lane < 4; ++lane)
                plain_words(
                    plain[lane], octets[product / PRODUCTS_PER_UNIT][lane].words[pol], product % PRODUCTS_PER_UNIT);
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (product / PRODUCTS_PER_UNIT < n_units)
                    *reinterpret_cast<uint4*>(operand + place_of(pol * RECEIVERS_I + receiver, 2 * product + half)) =
                        make_uint4(plain[0][half], plain[1][half], plain[2][half], plain[3][half]);
        }
}

// Converts all units of a slice. Two teams alternate from stage to stage, so that one reads while the other writes.
// Both wait for all copies: these may end in another order than they began, and a team that is a round ahead of one
// would take the parity of the round before for its own.
__device__ __forceinline__ void convert_slice(Ring& ring, const Sides& sides, const Range& range)
{
    const int receiver = threadIdx.x % RECEIVERS_I;
    bool is_own = threadIdx.x % GROUP < RECEIVERS_I;
#pragma unroll 1
    for (int first = 0; first < range.n_units; first += UNITS_PER_STAGE) {
        wait(ring.copied(), ring.parity);
        if (is_own) {
#pragma unroll
            for (int unit = 0; unit < UNITS_PER_STAGE; unit += PAIR_UNITS)
                convert_pair(shared_pointer(ring.address() + sides.earlier + unit * UNIT),
                             shared_pointer(ring.address() + OPERAND_AT + unit * PRODUCTS_PER_UNIT * OPERAND), receiver,
                             range.n_units - first - unit);
            publish_writes();
            __syncwarp();  // all lanes have written
            if (threadIdx.x % 32 == 0)
                arrive(ring.converted());
        }
        is_own = !is_own;
        ring.advance();
    }
}
