// The piece of 16 bytes in a unit of a receiver is moved with the receiver's number, so that 8 receivers' equal pieces,
// and all pieces of 2 receivers, lie in different banks: pieces p1 p0 of receiver r2 r1 r0 lie at p1^r2 p0^r1.
__device__ __forceinline__ int place_of(int receiver, int piece)
{
    return receiver * UNIT_BYTES + (piece ^ receiver / 2 % PIECES) * 16;
}

// The unit of an octet of receivers, in the registers of a warp: lane l4 .. l0 has 4 words of receiver l4 l3 l2, a
// quarter of its unit. The words are sorted by polarisation; which times are in which lane depends
// on the layout, but not on the receiver: products add up over them, so any order does.
struct Octet {
    unsigned words[2][2];  // [polarisation]
};

// The receiver of an octet that column n of an operand is. Lane l1 l0 of a row of sums has columns l1 l0 0 and l1 l0 1:
// receivers 0 l1 l0 and 1 l1 ~l0, so that for each of the two the 4 lanes of the row store one after another. (~l0: 8
// lanes that load 16 bytes each hold two columns, and need receivers of different parity for banks of their own.)
__host__ __device__ constexpr int receiver_of_column(int n)
{
    return n % 2 == 0 ? n / 2 : (n / 2 ^ 1) + 4;
}

// Where the lane's part of each octet starts. In layout blocks each piece is a matrix: two of polarisation a, two of b.
// Those of a row are loaded in the order in which an instruction wants them in consecutive registers: a, b, a, b.
template <bool IS_COLUMN>
__device__ __forceinline__ int lane_offset()
{
    const int lane = threadIdx.x % 32;
    const int row = BLOCKS ? lane % 8 : lane / 4;
    const int matrix = lane / 8;
    const int piece = !BLOCKS ? lane % 4 : IS_COLUMN ? matrix : matrix % 2 * 2 + matrix / 2;
    return place_of(IS_COLUMN ? receiver_of_column(row) : row, piece);
}

// Of a piece in layout batches, where samples of both polarisations take turns.
__device__ __forceinline__ Octet sorted(uint4 w)
{
    if constexpr (BITS == 16)
        return {w.x, w.z, w.y, w.w};
    constexpr unsigned A = BITS == 8 ? 0x5410 : 0x6420, B = BITS == 8 ? 0x7632 : 0x7531;
    return {__byte_perm(w.x, w.y, A), __byte_perm(w.z, w.w, A), __byte_perm(w.x, w.y, B), __byte_perm(w.z, w.w, B)};
}

template <bool IS_COLUMN>
__device__ __forceinline__ Octet load_octet(const unsigned char* rows)
{
    if constexpr (BLOCKS) {
        unsigned words[4];
        load_matrices(words, rows);
        return {words[0], words[IS_COLUMN ? 1 : 2], words[IS_COLUMN ? 2 : 1], words[3]};
    } else {
        const uint4 piece = *reinterpret_cast<const uint4*>(rows);
        return sorted(piece);
    }
}

// Products of matrices that a unit needs: 4 bits become 8 in registers, twice as many.
constexpr int PRODUCTS_PER_UNIT = BITS == 4 ? 2 : 1;
// Nibbles become the high halves of bytes, 16 times their value, with no sign to extend: sums are 256 times too large.
constexpr int SUM_SHIFT = BITS == 4 ? 8 : 0;

// (re, im) of a polarisation, for product number `product` of the unit.
__device__ __forceinline__ void plain_words(unsigned (&words)[2], const unsigned (&unit)[2], int product)
{
    if constexpr (BITS == 4) {  // 4 real parts, 4 imaginary ones
        words[0] = unit[product] << 4 & 0xf0f0f0f0;
        words[1] = unit[product] & 0xf0f0f0f0;
    } else {
        words[0] = unit[0], words[1] = unit[1];
    }
}

// (im, -re): a sum of products with it is the imaginary part of x conj(y), where x is turned and y is plain.
__device__ __forceinline__ unsigned turn(unsigned word)
{
    if constexpr (BITS == 16)
        return __byte_perm(word, word, 0x1032) ^ 0x80000000;
    const unsigned negative = 0x01000100 - (word & 0x00ff00ff);  // no borrow; the low byte of a half is what counts
    return __byte_perm(word, negative, 0x6341);
}

__device__ __forceinline__ void turned_words(unsigned (&words)[2], const unsigned (&unit)[2], int product)
{
    if constexpr (BITS == 4) {
        words[0] = unit[product] & 0xf0f0f0f0;
        words[1] = (0x10101010 - (unit[product] & 0x0f0f0f0f)) << 4 & 0xf0f0f0f0;
    } else {
        words[0] = turn(unit[0]), words[1] = turn(unit[1]);
    }
}

// Counts the lowest integers, -128 or -8, which have no negative.
struct Lowest {
    unsigned count = 0;

    __device__ __forceinline__ void add(const Octet& octet)
    {
        if constexpr (COUNTS_LOWEST) {
            constexpr unsigned LOWEST = BITS == 4 ? 0x88888888 : 0x80808080;  // of each part, the sign bit alone
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned others = octet.words[i / 2][i % 2] ^ LOWEST;
                count += __popc(~((others & ~LOWEST) + ~LOWEST | others) & LOWEST);
            }
        }
    }

    // All lanes of the warp take part.
    __device__ __forceinline__ void report(unsigned long long* total)
    {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            count += __shfl_xor_sync(0xffffffffu, count, apart);
        if (threadIdx.x % 32 == 0 && count > 0)
            atomicAdd(total, static_cast<unsigned long long>(count));
    }
};
