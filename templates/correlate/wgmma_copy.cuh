// Copies for wgmma, by one thread of a block: the units of its slice, stage after stage, by the tensor memory
// accelerator.
// Needs     wgmma_ring.cuh (Ring), wgmma_chain.cuh (Range), wgmma_cluster.cuh (Member, Share, share_of, Sides),
//           lib/tma.cuh (TensorMap, arrive_and_expect, copy_box, wait), lib/cluster.cuh (copy_box_to)
// Provides  copy_slice; await_partners
constexpr int HALF = UNITS_PER_STAGE / (BLOCKS_PER_CLUSTER > 1 ? 2 : 1);  // units of a share; without clusters all
constexpr bool COPIES_ALL = BLOCKS || BLOCKS_PER_CLUSTER > 1;  // units past the slice, too: they are not used

// Copies HALF the units of one side of a stage: to this block, or, if SHARED, to those whose ranks are bits of
// `blocks`. In layout blocks a unit is a batch, and one box holds them.
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
            const int from_batch = unit + i + (ATOMIC ? range.first_unit : 0);  // units
            const int batch = range.first_batch + from_batch / BATCH_UNITS;
            const int in_batch = from_batch % BATCH_UNITS * UNIT_BYTES;
            if constexpr (SHARED)
                copy_box_to(blocks, to + i * UNIT, &map, barrier, in_batch, channel, first_receiver, batch);
            else
                copy_box(to + i * UNIT, &map, barrier, in_batch, channel, first_receiver, batch);
        }
    }
}

// Copies the units of a side that are this block's to copy.
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

// Copies all units of a slice. Partners, too, have released a stage before this block copies to them. They may copy to
// this block before it expects the bytes: the phase does not end without its arrival. Partners copy to each other in
// every stage, also in the last one, so that none of them releases a stage a second time before this block has seen the
// first.
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

// Waits until all stages are released, by partners, too: then nobody copies to this block any more, or arrives at its
// barriers, so that its shared memory may go; and what it has copied to partners is there.
__device__ __forceinline__ void await_partners(Ring& ring)
{
#pragma unroll 1
    for (int stage = 0; stage < N_STAGES; ++stage) {
        wait(ring.released(), ring.parity ^ 1);
        ring.advance();
    }
}
