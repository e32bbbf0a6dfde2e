// Registers move between warpgroups, from a pool that holds what the launch gave all threads.
template <int N>
__device__ __forceinline__ void give_registers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N));
#endif
}

template <int N>
__device__ __forceinline__ void take_registers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N));
#endif
}

constexpr int HALF = UNITS_PER_STAGE / (BLOCKS_PER_CLUSTER > 1 ? 2 : 1);  // units of a share; without clusters all
constexpr bool COPIES_ALL = BLOCKS || BLOCKS_PER_CLUSTER > 1;  // units past the slice, too: they are not used

// HALF the units of one side of a stage: for this block, or SHARED, for those whose ranks are bits of `blocks`. In
// layout blocks a unit is a batch, and one box holds them.
template <bool SHARED>
__device__ __forceinline__ void copy_half(unsigned to, const TensorMap& map, unsigned barrier, int first_receiver,
                                          const Range& range, int unit, int channel, unsigned blocks)
{
    if constexpr (BLOCKS) {
        const int batch = range.first_batch + unit;
        if constexpr (SHARED)
            copy_box_to(blocks, to, &map, barrier, 0, first_receiver, batch, channel);
        else
            copy_box(to, &map, barrier, 0, first_receiver, batch, channel);
    } else {
        for (int i = 0; i < HALF && (COPIES_ALL || unit + i < range.n_units); ++i) {
            const int batch = range.first_batch + (unit + i) / BATCH_UNITS;
            const int in_batch = (unit + i) % BATCH_UNITS * UNIT_BYTES;
            if constexpr (SHARED)
                copy_box_to(blocks, to + i * UNIT, &map, barrier, in_batch, channel, first_receiver, batch);
            else
                copy_box(to + i * UNIT, &map, barrier, in_batch, channel, first_receiver, batch);
        }
    }
}

// The units of a side that this block copies.
__device__ __forceinline__ void copy_side(unsigned to, const TensorMap& map, unsigned barrier, int first_receiver,
                                          const Range& range, int unit, int channel, const Share& share)
{
    if (BLOCKS_PER_CLUSTER > 1 && share.blocks != 0) {
        const int first = share.first;
        copy_half<true>(
            to + first * UNIT, map, barrier, first_receiver, range, unit + first, channel, share.blocks);
    } else {
#pragma unroll
        for (int first = 0; first < UNITS_PER_STAGE; first += HALF)
            copy_half<false>(to + first * UNIT, map, barrier, first_receiver, range, unit + first, channel, 0);
    }
}

// One thread's work. Partners, too, have released a stage before this block copies to them. They may copy to this block
// before it expects the bytes: the phase does not end without its arrival. Partners copy to each other in every stage,
// also in the last one, so that none of them releases a stage a second time before this block has seen the first.
__device__ __forceinline__ void copy_slice(
    Ring& ring, const TensorMap& map, const Member& own, const Sides& sides, const Range& range, int channel)
{
    const Share of_j = share_of(own.rank, own.same_j), of_i = share_of(own.rank, own.same_i);
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS_PER_STAGE) {
        const int n_copied = COPIES_ALL ? UNITS_PER_STAGE : min(UNITS_PER_STAGE, range.n_units - unit);
        wait(ring.released(), ring.parity ^ 1);
        arrive_and_expect(ring.copied(), n_copied * UNIT * (sides.has_j + sides.has_i));
        if (sides.has_i)
            copy_side(ring.address() + SIDE, map, ring.copied(), own.tile.first_i, range, unit, channel, of_i);
        if (sides.has_j)
            copy_side(ring.address(), map, ring.copied(), own.tile.first_j, range, unit, channel, of_j);
        ring.advance();
    }
}

// Until all stages are released, by partners, too: then nobody copies to this block any more, or arrives at its
// barriers, so that its shared memory may go; and what it has copied to partners is there.
__device__ __forceinline__ void await_partners(Ring& ring)
{
#pragma unroll 1
    for (int stage = 0; stage < N_STAGES; ++stage) {
        wait(ring.released(), ring.parity ^ 1);
        ring.advance();
    }
}

// Units of a receiver become a pair of products' operands, in the order along K in which lanes have the words of A:
// lane l1 l0 of a row has words l1 l0 of both halves. A thread reads all units before it writes: they may lie where it
// writes.
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

// Two teams take turns at the stages, so that one reads while the other writes. Both wait for all copies: these may end
// in another order than they began, and a team that is a round ahead of one would take the parity of the round before
// for its own.
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

// A consumer whose receivers are all past the last one keeps the ring going.
__device__ __forceinline__ void skip_slice(Ring& ring, const Range& range, const Release& release)
{
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS_PER_STAGE) {
        wait(ring.copied(), ring.parity);
        release(ring.released());
        ring.advance();
    }
}
