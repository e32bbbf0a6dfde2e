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

// Units of one side of a stage. In layout blocks a unit is a batch, and one box holds all; what it has beyond the slice
// is not used.
__device__ __forceinline__ void copy_side(
    unsigned to, const TensorMap& map, unsigned barrier, int first_receiver, const Range& range, int unit, int channel)
{
    if constexpr (BLOCKS) {
        copy_box(to, &map, barrier, 0, first_receiver, range.first_batch + unit, channel);
    } else {
        for (int i = 0; i < UNITS && unit + i < range.n_units; ++i) {
            const int batch = (unit + i) / BATCH_UNITS, in_batch = (unit + i) % BATCH_UNITS * UNIT_BYTES;
            copy_box(to + i * UNIT, &map, barrier, in_batch, channel, first_receiver, range.first_batch + batch);
        }
    }
}

// One thread's work. On the diagonal both sides are the same receivers: one copy serves both, unless it is converted.
__device__ __forceinline__ void copy_slice(
    Ring& ring, const TensorMap& map, const Block& block, const Range& range, int channel)
{
    const bool both = IN_PLACE || block.first_j != block.first_i;
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS) {
        const int n_copied = BLOCKS ? UNITS : min(UNITS, range.n_units - unit);
        wait(ring.released(), ring.parity ^ 1);
        arrive_and_expect(ring.copied(), n_copied * UNIT * (1 + both));
        copy_side(ring.address() + SIDE, map, ring.copied(), block.first_i, range, unit, channel);
        if (both)
            copy_side(ring.address(), map, ring.copied(), block.first_j, range, unit, channel);
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
    for (int product = 0; product < PAIR_UNITS * PRODUCTS; ++product)
#pragma unroll
        for (int pol = 0; pol < 2; ++pol) {
            unsigned plain[4][2];
#pragma unroll
            for (int lane = 0; lane < 4; ++lane)
                plain_words(plain[lane], octets[product / PRODUCTS][lane].words[pol], product % PRODUCTS);
#pragma unroll
            for (int half = 0; half < 2; ++half)
                if (product / PRODUCTS < n_units)
                    *reinterpret_cast<uint4*>(operand + place_of(pol * RECEIVERS_I + receiver, 2 * product + half)) =
                        make_uint4(plain[0][half], plain[1][half], plain[2][half], plain[3][half]);
        }
}

// Two teams take turns at the stages, so that one reads while the other writes. Both wait for all copies: these may end
// in another order than they began, and a team that is a round ahead of one would take the parity of the round before
// for its own.
__device__ __forceinline__ void convert_slice(Ring& ring, const Range& range)
{
    const int receiver = threadIdx.x % RECEIVERS_I;
    bool is_own = threadIdx.x % GROUP < RECEIVERS_I;
#pragma unroll 1
    for (int first = 0; first < range.n_units; first += UNITS) {
        wait(ring.copied(), ring.parity);
        if (is_own) {
#pragma unroll
            for (int unit = 0; unit < UNITS; unit += PAIR_UNITS)
                convert_pair(shared_pointer(ring.address() + SIDE + unit * UNIT),
                             shared_pointer(ring.address() + OPERAND_AT + unit * PRODUCTS * OPERAND), receiver,
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
__device__ __forceinline__ void skip_slice(Ring& ring, const Range& range)
{
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS) {
        wait(ring.copied(), ring.parity);
        if (threadIdx.x % 32 == 0)
            arrive(ring.released());
        ring.advance();
    }
}
