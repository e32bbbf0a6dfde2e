// Octets: the units of 8 receivers, in shared memory and in the registers of a warp.
// Needs     lib/mma.cuh (load_matrices)
// Provides  place_of; Octet, sorted, load_octet; lane_offset, receiver_of_column

// Returns where a piece of 16 bytes of a receiver's unit lies. It moves with the receiver's number, so that 8
// receivers' equal pieces, and all pieces of 2 receivers, lie in different banks: pieces p1 p0 of receiver r2 r1 r0 lie
// at p1^r2 p0^r1.
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

// Returns the receiver of an octet that column n of an operand is. Lane l1 l0 of a row of sums has columns l1 l0 0 and
// l1 l0 1: receivers 0 l1 l0 and 1 l1 ~l0, so that for each of the two the 4 lanes of the row store one after another.
// (~l0: 8 lanes that load 16 bytes each hold two columns, and need receivers of different parity for banks of their
// own.)
__host__ __device__ constexpr int receiver_of_column(int n)
{
    return n % 2 == 0 ? n / 2 : (n / 2 ^ 1) + 4;
}

// Returns where the lane's part of each octet starts. In layout blocks each piece is a matrix: two of polarisation a,
// two of b. Those of a row are loaded in the order in which an instruction wants them in consecutive registers: a, b,
// a, b.
template <bool IS_COLUMN>
__device__ __forceinline__ int lane_offset()
{
    const int lane = threadIdx.x % 32;
    const int row = BLOCKS ? lane % 8 : lane / 4;
    const int matrix = lane / 8;
    const int piece = !BLOCKS ? lane % 4 : IS_COLUMN ? matrix : matrix % 2 * 2 + matrix / 2;
    return place_of(IS_COLUMN ? receiver_of_column(row) : row, piece);
}

// Sorts a piece of layout batches, where samples of both polarisations alternate.
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
