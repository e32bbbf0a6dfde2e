// correlate[bits=16,layout=batches,n_receivers=47,n_times=22,overwrites=False,count_lowest=False|MMA=mma_sync,NR_RECEIVERS_PER_BLOCK=32,NR_RECEIVERS_PER_BLOCK_X=64,NR_TIMES_PER_BLOCK=32,NR_SHARED_BUFFERS=3,READ_AHEAD=2,WARPS=8,WARPS_J=2,STORE=direct]
// results[z][c][b(i, j)][p + 2 q] += sum over t of x[i][p][t] conj(x[j][q][t]),  i <= j,  b = j (j + 1) / 2 + i
//   results       inout  float  [n_slices][n_channels][n_baselines][4][2]  (re, im) of aa, ba, ab, bb
//   voltages      in     float16  [n_batches][N_RECEIVERS][n_channels][N_TIMES][2]  (re, im)
// Work    one block  <-> later receivers j x earlier receivers i, of slice blockIdx.z of time
//                        and of channel blockIdx.y
//         one warp   <-> OCTETS_J x OCTETS_I octets of receivers: a product of 16 x 16 inputs for each pair of octets
//         one unit   <-> 64 bytes of a receiver: 128 / BITS samples of both polarisations
// Shared  a ring of stages of some units of every receiver of both sides; copies are asynchronous

constexpr int BITS = 16;  // of the real and of the imaginary part: integers of 4 or 8, floats of 16
constexpr bool BLOCKS = false;  // the layout
constexpr bool OVERWRITES = false;
constexpr bool COUNTS_LOWEST = false;
constexpr int N_RECEIVERS = 47;
constexpr int N_TIMES = 22;  // samples of a batch
constexpr int RECEIVERS_J = 32;  // later receivers of a block: rows of its product
constexpr int RECEIVERS_I = 64;  // earlier ones: columns
constexpr bool STREAM = false;  // results are evicted first
constexpr bool PAIRED = false;  // two lanes write a whole sector
constexpr int N_THREADS = 256;  // blockDim.x
constexpr int UNITS_PER_STAGE = 4;  // of a receiver, that are staged at once
constexpr int N_STAGES = 3;  // that shared memory holds
constexpr int STAGE_BYTES = 24576;  // of both sides
constexpr int SHARED_BYTES = 73728;  // dynamic

constexpr int UNIT_BYTES = 64;  // of a receiver
constexpr int PIECES = UNIT_BYTES / 16;  // copies of a unit
constexpr int BATCH_BYTES = N_TIMES * BITS / 2;  // of a receiver
constexpr int BATCH_UNITS = (BATCH_BYTES + UNIT_BYTES - 1) / UNIT_BYTES;  // the last one is filled up with zeros
static_assert(BATCH_BYTES % 16 == 0, "a copy does not reach into the next batch");

using Sum = float;  // of a launch; a slice is so short that integers fit
using Result = float;
using Piece = float4;  // 16 bytes of them

// 4 bits become 8 in registers, twice as many: nibbles become the high halves of bytes, 16 times their value, with no
// sign to extend.
constexpr int PRODUCTS_PER_UNIT = BITS == 4 ? 2 : 1;
constexpr int SUM_SHIFT = BITS == 4 ? 8 : 0;  // sums are 2^SUM_SHIFT times too large

constexpr int READ_AHEAD = 2;  // stages under way while one is used
constexpr int WARPS = 8;  // of a block
constexpr int WARPS_J = 2;  // that share its later receivers
constexpr int UNITS_J = RECEIVERS_J * UNIT_BYTES;  // bytes of a unit of all later receivers
constexpr int ALL_UNITS = UNITS_J + RECEIVERS_I * UNIT_BYTES;  // and of the earlier ones, which lie behind
constexpr int OCTETS_J = 2;  // of later receivers of a warp
constexpr int OCTETS_I = 2;
static_assert(OCTETS_J * 8 * WARPS_J == RECEIVERS_J && OCTETS_I * 8 * (WARPS / WARPS_J) == RECEIVERS_I);
static_assert(N_THREADS == 32 * WARPS && STAGE_BYTES == UNITS_PER_STAGE * ALL_UNITS);
static_assert(N_STAGES * STAGE_BYTES == SHARED_BYTES, "as the launch has it");

// Each file that is included says in its head what it needs of the others; the constants here are there for all.

// Tensor cores, through mma.sync: a warp multiplies small matrices that lie in the registers of its 32 lanes, all of
// which must take part. A row of A and a column of B are `bytes` of 16 or 32, whatever the type of their elements; with
// lane l4 l3 l2 l1 l0, and byte y4 .. y0 of a row or column (y4 is absent where they have 16 bytes):
//     A (16 rows)       register r1 r0       row: r0 l4 l3 l2      byte: r1 l1 l0 and two bits in the register
//     B (8 columns)     register r0       column: l4 l3 l2         byte: r0 l1 l0 and two bits in the register
//     C (16 x 8 sums)   register r1 r0       row: r1 l4 l3 l2    column: l1 l0 r0
__device__ __forceinline__ void mma(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])  // 32 of s8 a row
{
#ifdef AUTOTUNE_HOST
    cuda_host_mma_m16n8k32_s8(c, a, b);
#else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
                 "{ %0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

__device__ __forceinline__ void mma(int (&c)[4], const unsigned (&a)[2], const unsigned (&b)[1])  // 16 of s8 a row
{
#ifdef AUTOTUNE_HOST
    cuda_host_mma_m16n8k16_s8(c, a, b);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 { %0, %1, %2, %3}, { %4, %5}, { %6}, "
                 "{ %0, %1, %2, %3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])  // 16 of f16 a row
{
#ifdef AUTOTUNE_HOST
    cuda_host_mma_m16n8k16_f16(c, a, b);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
                 "{ %0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// N (1, 2 or 4) matrices of 8 rows of 16 bytes, from shared memory. Lane l4 .. l0 gives the address of row l2 l1 l0 of
// matrix l4 l3, a multiple of 16; addresses of lanes from 8 N on are ignored. The lane takes word l1 l0 of row l4 l3 l2
// of each matrix: what A and B want, 8 rows and 16 bytes a register.
template <int N>
__device__ __forceinline__ void load_matrices(unsigned (&words)[N], const void* row)
{
    static_assert(N == 1 || N == 2 || N == 4, "as many as the instruction takes");
#ifdef AUTOTUNE_HOST
    cuda_host_ldmatrix<N>(words, row);
#else
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if constexpr (N == 1)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 { %0}, [%1];"
                     : "=r"(words[0])
                     : "r"(address)
                     : "memory");
    else if constexpr (N == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 { %0, %1}, [%2];"
                     : "=r"(words[0]), "=r"(words[1])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(address)
                     : "memory");
#endif
}

// The same for elements of 16 bits, transposed: a lane takes elements l1 l0 0 and l1 l0 1 of column l4 l3 l2.
template <int N>
__device__ __forceinline__ void load_matrices_transposed(unsigned (&words)[N], const void* row)
{
    static_assert(N == 1 || N == 2 || N == 4, "as many as the instruction takes");
#ifdef AUTOTUNE_HOST
    cuda_host_ldmatrix_trans<N>(words, row);
#else
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if constexpr (N == 1)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 { %0}, [%1];"
                     : "=r"(words[0])
                     : "r"(address)
                     : "memory");
    else if constexpr (N == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 { %0, %1}, [%2];"
                     : "=r"(words[0]), "=r"(words[1])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(address)
                     : "memory");
#endif
}

// The triangle of baselines, i <= j, and slices of time. Blocks take tiles of the triangle: row by row of later
// receivers, each row up to the diagonal.
// Needs     nothing
// Provides  Block, block_of; first_of_slice
struct Block {
    int first_j, first_i;  // receivers
};

__host__ __device__ constexpr int blocks_of_row(int row, int n_receivers)
{
    const int end = (row + 1) * RECEIVERS_J < n_receivers ? (row + 1) * RECEIVERS_J : n_receivers;
    return (end + RECEIVERS_I - 1) / RECEIVERS_I;
}

// Returns the tile of block `index`. It walks the rows: exact for any sizes of tiles, and at most 32 steps for 1024
// receivers.
__device__ __forceinline__ Block block_of(int index, int n_receivers)
{
    int row = 0;
#pragma unroll 1
    while (index >= blocks_of_row(row, n_receivers))
        index -= blocks_of_row(row++, n_receivers);
    return {row * RECEIVERS_J, index * RECEIVERS_I};
}

// Returns the first batch of slice z, of n_slices that share n_batches.
__device__ __forceinline__ int first_of_slice(int z, int n_slices, int n_batches)
{
    return static_cast<int>(static_cast<long long>(n_batches) * z / n_slices);
}

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

// Operands: words of a unit become what tensor cores multiply. Plain words are (re, im), turned ones (im, -re): the sum
// of products of turned x with plain y is the imaginary part of x conj(y).
// Needs     nothing
// Provides  plain_words, turned_words

// Makes the plain words of one polarisation of the unit, for product number `product` of PRODUCTS_PER_UNIT.
__device__ __forceinline__ void plain_words(unsigned (&words)[2], const unsigned (&unit)[2], int product)
{
    if constexpr (BITS == 4) {  // 4 real parts, 4 imaginary ones
        words[0] = unit[product] << 4 & 0xf0f0f0f0;
        words[1] = unit[product] & 0xf0f0f0f0;
    } else {
        words[0] = unit[0], words[1] = unit[1];
    }
}

// Returns (im, -re).
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

// Counts of the lowest integers, -128 or -8, which have no negative.
// Needs     octet.cuh (Octet)
// Provides  Lowest: add, report
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

    // Adds the counts of the warp to `total`. All lanes take part.
    __device__ __forceinline__ void report(unsigned long long* total)
    {
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            count += __shfl_xor_sync(0xffffffffu, count, apart);
        if (threadIdx.x % 32 == 0 && count > 0)
            atomicAdd(total, static_cast<unsigned long long>(count));
    }
};

// Results: sums of baselines are added to global memory, or overwrite it.
// Needs     nothing
// Provides  Sums; put; deliver

// Sums of COUNT products of a baseline; number p + 2 q is of polarisation p of the earlier receiver and q of the later.
template <class Number, int COUNT>
struct Sums {
    Number re[COUNT], im[COUNT];
};

template <class T>
__device__ __forceinline__ T load(const T* address)
{
    if constexpr (STREAM)
        return __ldcs(address);
    return *address;
}

template <class T>
__device__ __forceinline__ void store(T* address, T value)
{
    if constexpr (STREAM)
        __stcs(address, value);
    else
        *address = value;
}

// Returns 16 bytes of results: sums number i and on, added to what was there. A sum of nibbles is a multiple of
// 2^SUM_SHIFT.
template <int COUNT>
__device__ __forceinline__ float4 piece_of(float4 before, const Sums<float, COUNT>& sums, int i)
{
    return make_float4(before.x + sums.re[2 * i], before.y + sums.im[2 * i], before.z + sums.re[2 * i + 1],
                       before.w + sums.im[2 * i + 1]);
}

template <int COUNT>
__device__ __forceinline__ int4 piece_of(int4, const Sums<int, COUNT>& sums, int i)  // overwrites
{
    return make_int4(sums.re[2 * i] >> SUM_SHIFT, sums.im[2 * i] >> SUM_SHIFT, sums.re[2 * i + 1] >> SUM_SHIFT,
                     sums.im[2 * i + 1] >> SUM_SHIFT);
}

template <int COUNT>
__device__ __forceinline__ longlong2 piece_of(longlong2 before, const Sums<int, COUNT>& sums, int i)
{
    return make_longlong2(before.x + (sums.re[i] >> SUM_SHIFT), before.y + (sums.im[i] >> SUM_SHIFT));
}

// Adds the sums of some baselines to their results, or overwrites these, where `valid`. All loads come before any use.
// The pieces of a baseline may lie apart.
template <int BASELINES, int COUNT>
__device__ __forceinline__ void put(
    Result* const (&results)[BASELINES], const Sums<Sum, COUNT> (&sums)[BASELINES], const bool (&valid)[BASELINES],
    int apart = 1)
{
    constexpr int N = COUNT * sizeof(Result) * 2 / sizeof(Piece);
    Piece before[BASELINES][N] = {};
    if constexpr (!OVERWRITES) {
#pragma unroll
        for (int k = 0; k < BASELINES; ++k)
#pragma unroll
            for (int i = 0; i < N; ++i)
                if (valid[k])
                    before[k][i] = load(reinterpret_cast<Piece*>(results[k]) + i * apart);
    }
#pragma unroll
    for (int k = 0; k < BASELINES; ++k)
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (valid[k])
                store(reinterpret_cast<Piece*>(results[k]) + i * apart, piece_of(before[k][i], sums[k], i));
}

constexpr bool NARROW = sizeof(Result) == 4;

// Returns where a lane's half of a baseline starts, of 8 numbers: what the two lanes of a pair move at a time is a
// sector of 32 bytes. The even lane has products 0 and 2 of 64-bit results, the odd one 1 and 3; of 32 bits 0 and 1,
// and 2 and 3.
__device__ __forceinline__ int start_of_half(bool odd)
{
    return odd ? (NARROW ? 4 : 2) : 0;
}

// The lanes of a pair have a baseline each, and trade halves: `kept` is the lane's half of its own baseline, `received`
// that of the other lane's. All lanes of the warp take part.
template <class T>
__device__ __forceinline__ void trade(Sums<T, 2>& kept, Sums<T, 2>& received, const Sums<T, 4>& own, bool odd)
{
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int of_even = NARROW ? i : 2 * i, of_odd = NARROW ? 2 + i : 2 * i + 1;
        kept.re[i] = odd ? own.re[of_odd] : own.re[of_even];
        kept.im[i] = odd ? own.im[of_odd] : own.im[of_even];
        received.re[i] = __shfl_xor_sync(0xffffffffu, odd ? own.re[of_even] : own.re[of_odd], 1);
        received.im[i] = __shfl_xor_sync(0xffffffffu, odd ? own.im[of_even] : own.im[of_odd], 1);
    }
}

// Delivers the lane's baseline of receivers i and j, where there is one; its neighbour has that of other_i and j. of_j:
// the results of j's first baseline. All lanes of the warp take part.
__device__ __forceinline__ void deliver(
    Result* of_j, const Sums<Sum, 4>& own, int i, int other_i, int j, bool odd)
{
    const bool exists = j < N_RECEIVERS;
    if constexpr (PAIRED) {
        Sums<Sum, 2> halves[2];
        trade(halves[0], halves[1], own, odd);
        Result* const to[2] = {of_j + i * 8 + start_of_half(odd), of_j + other_i * 8 + start_of_half(odd)};
        const bool valid[2] = {exists && i <= j, exists && other_i <= j};
        put(to, halves, valid, 2);
    } else {
        Result* const to[1] = {of_j + i * 8};
        const Sums<Sum, 4> all[1] = {own};
        const bool valid[1] = {exists && i <= j};
        put(to, all, valid);
    }
}

// Copies from global to shared memory that the threads do not wait for, 16 bytes each; both addresses are multiples of
// 16. Of the 16 bytes, `n` are read, and the others become 0.
__device__ __forceinline__ void copy_async(void* to, const void* from, int n)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16, 16 - n);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(n)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_async(void* to, const void* from)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from)
                 : "memory");
#endif
}

// The copies so far, of this thread, since the last such call: a group.
__device__ __forceinline__ void close_group()
{
#ifdef AUTOTUNE_HOST
    __pipeline_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most N of this thread's groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_groups()
{
#ifdef AUTOTUNE_HOST
    __pipeline_wait_prior(N);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

// Copies for mma.sync: all threads of a block copy the units of N consecutive receivers to shared memory, one unit
// after another. Piece i of a unit is piece i % 4 of receiver i / 4; a thread has pieces threadIdx.x, + N_THREADS, ...,
// which all go to the same place of an octet of receivers.
// Needs     octet.cuh (place_of), lib/async.cuh (copy_async)
// Provides  Copier: copy
template <int N>
struct Copier {
    static constexpr int OWN = (N * PIECES + N_THREADS - 1) / N_THREADS;
    static constexpr int APART = N_THREADS / PIECES;  // receivers from a thread's piece to its next: whole octets

    const unsigned char* next;  // the thread's first piece of the next unit
    long long receiver_stride, batch_stride;
    int receiver;  // that this piece is of
    int n_left;  // units of the slice
    int in_batch;  // bytes of the batch before this piece

    __device__ __forceinline__ Copier(
        const unsigned char* voltages, int n_channels, int n_batches, int first_receiver, int first_batch, int n_units)
        : receiver(first_receiver + threadIdx.x / PIECES), n_left(n_units), in_batch(threadIdx.x % PIECES * 16)
    {
        receiver_stride = BLOCKS ? BATCH_BYTES : static_cast<long long>(n_channels) * BATCH_BYTES;
        batch_stride = N_RECEIVERS * receiver_stride;
        const long long channel = blockIdx.y * (BLOCKS ? n_batches * batch_stride : BATCH_BYTES);
        next = voltages + (channel + first_batch * batch_stride + receiver * receiver_stride + in_batch);
    }

    // Begins the copies of the next unit. What is past the slice, the batch or the last receiver is not read, and
    // becomes 0. to: the unit of the side's first receiver.
    __device__ __forceinline__ void copy(unsigned char* to, bool is_needed)
    {
        const bool is_valid = n_left > 0 && (BATCH_BYTES % UNIT_BYTES == 0 || in_batch < BATCH_BYTES);
        to += place_of(threadIdx.x / PIECES, threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const bool is_piece = (i + 1) * N_THREADS <= N * PIECES || i * N_THREADS + threadIdx.x < N * PIECES;
            const int n_bytes = is_valid && receiver + i * APART < N_RECEIVERS ? 16 : 0;
            if (is_piece && is_needed)
                copy_async(to + i * APART * UNIT_BYTES, next + i * APART * receiver_stride, n_bytes);
        }
        --n_left;
        if constexpr (BATCH_UNITS == 1) {
            next += batch_stride;
        } else {
            constexpr int OTHERS = (BATCH_UNITS - 1) * UNIT_BYTES;
            const bool is_last = in_batch >= OTHERS;  // of its batch
            next += is_last ? batch_stride - OTHERS : UNIT_BYTES;
            in_batch += is_last ? -OTHERS : UNIT_BYTES;
        }
    }
};

// The product of a warp, by mma.sync: OCTETS_J x OCTETS_I octets of a block's receivers.
// Needs     octet.cuh (Octet, load_octet, receiver_of_column), operands.cuh (plain_words, turned_words),
//           lowest.cuh (Lowest), store.cuh (Sums, deliver), lib/mma.cuh (mma)
// Provides  WarpProduct: clear, add_unit, store
// Rows of A: polarisation a of an octet of later receivers, then b of the same;
// columns of B: one polarisation of an octet of earlier receivers, plain for real parts and turned for imaginary ones.
// So lane l4 .. l0 holds, of each pair of octets, all four products of later receiver l4 l3 l2 with earlier receivers
// 0 l1 l0 and 1 l1 ~l0.
struct WarpProduct {
    Sum sums[OCTETS_J][OCTETS_I][2][2][4];  // [..][polarisation of i][re, im][lane's own]

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < OCTETS_J * OCTETS_I * 16; ++i)
            (&sums[0][0][0][0][0])[i] = 0;
    }

    // Adds the products of one unit. j, i: the lane's parts of the first octets.
    __device__ __forceinline__ void add_unit(const unsigned char* j, const unsigned char* i, Lowest& lowest)
    {
        Octet columns[OCTETS_I], rows[OCTETS_J];
#pragma unroll
        for (int k = 0; k < OCTETS_I; ++k)
            columns[k] = load_octet<true>(i + k * 8 * UNIT_BYTES);
#pragma unroll
        for (int k = 0; k < OCTETS_J; ++k)
            rows[k] = load_octet<false>(j + k * 8 * UNIT_BYTES);
#pragma unroll
        for (int k = 0; k < OCTETS_J; ++k)
            lowest.add(rows[k]);
#pragma unroll
        for (int product = 0; product < PRODUCTS_PER_UNIT; ++product) {
            unsigned plain[OCTETS_I][2][2], turned[OCTETS_I][2][2];
#pragma unroll
            for (int k = 0; k < OCTETS_I * 2; ++k) {
                plain_words(plain[k / 2][k % 2], columns[k / 2].words[k % 2], product);
                turned_words(turned[k / 2][k % 2], columns[k / 2].words[k % 2], product);
            }
#pragma unroll
            for (int row = 0; row < OCTETS_J; ++row) {
                unsigned a[2][2], operand[4];
                plain_words(a[0], rows[row].words[0], product);
                plain_words(a[1], rows[row].words[1], product);
                operand[0] = a[0][0], operand[1] = a[1][0], operand[2] = a[0][1], operand[3] = a[1][1];
#pragma unroll
                for (int k = 0; k < OCTETS_I * 2; ++k) {
                    mma(sums[row][k / 2][k % 2][0], operand, plain[k / 2][k % 2]);
                    mma(sums[row][k / 2][k % 2][1], operand, turned[k / 2][k % 2]);
                }
            }
        }
    }

    // Returns the sums of the lane's baseline in a column, 0 or 1, of a pair of octets.
    __device__ __forceinline__ Sums<Sum, 4> baseline(int row, int octet, int column) const
    {
        Sums<Sum, 4> made;
#pragma unroll
        for (int product = 0; product < 4; ++product) {
            const int p = product % 2, own = product / 2 * 2 + column;
            made.re[product] = sums[row][octet][p][0][own];
            made.im[product] = sums[row][octet][p][1][own];
        }
        return made;
    }

    // Delivers all sums. results: of the slice and channel; first_j, first_i: the warp's first receivers.
    __device__ __forceinline__ void store(Result* results, int first_j, int first_i) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int row = 0; row < OCTETS_J; ++row) {
            const int j = first_j + row * 8 + lane / 4;
            Result* of_j = results + static_cast<long long>(j * (j + 1) / 2) * 8;
#pragma unroll
            for (int k = 0; k < OCTETS_I * 2; ++k) {
                const int column = k % 2, first = first_i + k / 2 * 8;
                deliver(of_j, baseline(row, k / 2, column), first + receiver_of_column(lane % 4 * 2 + column),
                        first + receiver_of_column((lane % 4 ^ 1) * 2 + column), j, lane % 2 != 0);
            }
        }
    }
};

// MMA mma_sync: all warps of a block copy, and all multiply; a ring of N_STAGES stages lies in shared memory, of which
// READ_AHEAD are under way while one is used.
// Needs     triangle.cuh (Block, block_of, first_of_slice), copy.cuh (Copier), octet.cuh (lane_offset),
//           warp_product.cuh (WarpProduct), lowest.cuh (Lowest), lib/async.cuh (close_group, wait_for_groups)
// Provides  correlate
extern "C" __global__ void __launch_bounds__(N_THREADS) correlate(
    Result* __restrict__ results,
    const unsigned char* __restrict__ voltages, int n_channels, int n_batches, int first_batch, int n_used)
{
    extern __shared__ uint4 dynamic_shared[];
    unsigned char* ring = reinterpret_cast<unsigned char*>(dynamic_shared);
    const Block block = block_of(blockIdx.x, N_RECEIVERS);
    const bool square = RECEIVERS_J == RECEIVERS_I && block.first_j == block.first_i;  // both sides are the same
    const int begin = first_of_slice(blockIdx.z, gridDim.z, n_used);
    const int n_units = (first_of_slice(blockIdx.z + 1, gridDim.z, n_used) - begin) * BATCH_UNITS;
    const int n_steps = (n_units + UNITS_PER_STAGE - 1) / UNITS_PER_STAGE;
    Copier<RECEIVERS_J> copier_j(voltages, n_channels, n_batches, block.first_j, first_batch + begin, n_units);
    Copier<RECEIVERS_I> copier_i(voltages, n_channels, n_batches, block.first_i, first_batch + begin, n_units);
    const auto copy_unit = [&](int buffer, int unit) {
        unsigned char* to = ring + (buffer * UNITS_PER_STAGE + unit) * ALL_UNITS;
        copier_j.copy(to, true);
        copier_i.copy(to + UNITS_J, !square);
    };
    // A step that is past the slice is a group, too, so that the number of groups under way stays the same.
    const auto copy_step = [&](int buffer) {
#pragma unroll
        for (int unit = 0; unit < UNITS_PER_STAGE; ++unit)
            copy_unit(buffer, unit);
        close_group();
    };

    const int warp = threadIdx.x / 32;
    const int own_j = warp % WARPS_J * OCTETS_J * 8, own_i = warp / WARPS_J * OCTETS_I * 8;  // receivers of the block
    const int first_j = block.first_j + own_j, first_i = block.first_i + own_i;
    // A warp whose receivers are all above the diagonal, or past the last one, only copies.
    const bool is_needed = first_i < first_j + OCTETS_J * 8 && first_i < N_RECEIVERS && first_j < N_RECEIVERS;
    const int offset_j = own_j * UNIT_BYTES + lane_offset<false>();
    const int offset_i = own_i * UNIT_BYTES + lane_offset<true>() + (square ? 0 : UNITS_J);

    WarpProduct product;
    product.clear();
    Lowest lowest;
    constexpr bool BEFORE = READ_AHEAD < N_STAGES - 1;  // whether copies go where nobody reads since the last barrier
    for (int step = 0; step < READ_AHEAD; ++step)
        copy_step(step);
    int buffer = 0;
#pragma unroll 1
    for (int step = 0; step < n_steps; ++step) {
        const int next = buffer + READ_AHEAD < N_STAGES ? buffer + READ_AHEAD : buffer + READ_AHEAD - N_STAGES;
        if constexpr (BEFORE)
            copy_step(next);
        wait_for_groups<BEFORE ? READ_AHEAD : READ_AHEAD - 1>();
        __syncthreads();  // the step is complete; and nobody reads the one before it any more
        const unsigned char* from = ring + buffer * UNITS_PER_STAGE * ALL_UNITS;
        if (is_needed) {
#pragma unroll
            for (int unit = 0; unit < UNITS_PER_STAGE; ++unit) {
                product.add_unit(from + unit * ALL_UNITS + offset_j, from + unit * ALL_UNITS + offset_i, lowest);
                if constexpr (!BEFORE)  // in the shadow of the products
                    copy_unit(next, unit);
            }
            if constexpr (!BEFORE)
                close_group();
        } else if constexpr (!BEFORE) {
            copy_step(next);
        }
        buffer = buffer == N_STAGES - 1 ? 0 : buffer + 1;
    }
    if (is_needed && (OVERWRITES || n_steps > 0)) {
        constexpr long long N_BASELINES = N_RECEIVERS * (N_RECEIVERS + 1ll) / 2;
        const long long of_channel = blockIdx.z * static_cast<long long>(n_channels) + blockIdx.y;
        product.store(results + of_channel * N_BASELINES * 8, first_j, first_i);
    }
}
