// A lane's load is worth PIECES stores, which would leave gaps between lanes. EXCHANGE shuffle: lanes exchange pieces,
// so that store i of a warp is its pieces [32 i, 32 i + 32). For PIECES = 4, in bits of a piece's number in its warp:
//                         lane               register
//     in memory           l4 l3 l2 l1 l0     p1 p0         lane l holds the PIECES pieces of chunk l
//     loaded, permuted    l2 l1 l0 l4 l3     p1 p0         lane l holds those of chunk loaded_by(l)
//     exchanged           l2 l1 l0 p1 p0     l4 l3         lanes PIECES apart trade; the register is now the store
__device__ __forceinline__ unsigned loaded_by(unsigned lane)
{
    return SHUFFLE ? lane % PIECES * (32 / PIECES) + lane / PIECES : lane;
}

// Of the pieces of a warp, the first that a lane stores; the others follow STEP bytes apart. The groups of scales are
// 256 samples: without an exchange a lane's pieces lie in one, with it those of a store of all lanes do.
__device__ __forceinline__ unsigned stored_by(unsigned lane)
{
    return SHUFFLE ? lane : lane * PIECES;
}

// One step: registers that differ in bit BIT of their number and lanes that differ in lane_bit trade places.
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
    constexpr int HALVES = PIECE == 2 ? 2 : 1;  // pieces of a word: with two, the lowest bit of a lane is for them
    if constexpr (HALVES == 2) {
        const unsigned selector = threadIdx.x & 1 ? 0x3276 : 0x5410;  // one of its own, one of its neighbour's
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = __byte_perm(words[i], __shfl_xor_sync(0xffffffffu, words[i], 1), selector);
    }
    if constexpr (WORDS >= 2)
        trade_words<1>(words, HALVES);
    if constexpr (WORDS >= 4)
        trade_words<2>(words, 2 * HALVES);
}

// Piece i of a thread's own, in the low bits.
__device__ __forceinline__ unsigned piece_of(const unsigned (&words)[WORDS], int i)
{
    return PIECE == 2 ? words[i / 2] >> i % 2 * 16 : words[i];
}
