// A lane's load becomes PIECES stores, with gaps between lanes. With EXCHANGE shuffle, lanes exchange pieces, so that
// store i of a warp has pieces [32 i, 32 i + 32). For PIECES = 4, in bits of a piece's number in its warp:
//                         lane               register
//     in memory           l4 l3 l2 l1 l0     p1 p0         lane l holds the PIECES pieces of chunk l
//     loaded, permuted    l2 l1 l0 l4 l3     p1 p0         lane l holds those of chunk loaded_by(l)
//     exchanged           l2 l1 l0 p1 p0     l4 l3         lanes PIECES apart trade; the register is now the store
// Returns the chunk that a lane loads.
__device__ __forceinline__ unsigned loaded_by(unsigned lane)
{
    return SHUFFLE ? lane % PIECES * (32 / PIECES) + lane / PIECES : lane;
}

// Returns the first piece of the warp that a lane stores; its other pieces follow at a distance of STEP bytes. A scale
// belongs to 256 samples. Without an exchange all pieces of a lane share one; with an exchange all pieces of a warp's
// store do.
__device__ __forceinline__ unsigned stored_by(unsigned lane)
{
    return SHUFFLE ? lane : lane * PIECES;
}

// Does one step of the exchange: it swaps bit BIT of the register's number with bit lane_bit of the lane's.
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
    constexpr int HALVES = PIECE == 2 ? 2 : 1;  // pieces in a word; with two, the lowest bit of the lane selects one
    if constexpr (HALVES == 2) {
        const unsigned selector = threadIdx.x & 1 ? 0x3276 : 0x5410;  // one own piece, one of the neighbour
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = __byte_perm(words[i], __shfl_xor_sync(0xffffffffu, words[i], 1), selector);
    }
    if constexpr (WORDS >= 2)
        trade_words<1>(words, HALVES);
    if constexpr (WORDS >= 4)
        trade_words<2>(words, 2 * HALVES);
}

// Returns piece i of a thread, in the low bits.
__device__ __forceinline__ unsigned piece_of(const unsigned (&words)[WORDS], int i)
{
    return PIECE == 2 ? words[i / 2] >> i % 2 * 16 : words[i];
}
