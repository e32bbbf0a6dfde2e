// correlate[bits=8,layout=blocks,n_receivers=256,n_times=16,overwrites=True,count_lowest=False|MMA=wgmma,STAGES=7,IN_FLIGHT=1,CHAIN=8,TAPER=1,FETCH=128,STORE=stream,CLUSTER=4]
// results[z][c][b(i, j)][p + 2 q] = sum over t of x[i][p][t] conj(x[j][q][t]),  i <= j,  b = j (j + 1) / 2 + i
//   results       out    int  [n_slices][n_channels][n_baselines][4][2]  (re, im) of aa, ba, ab, bb
//   voltages      in     int8  [n_channels][n_batches][N_RECEIVERS][2][N_TIMES]  (re, im)
// Work    one block  <-> later receivers j x earlier receivers i, of slice blockIdx.z of time
//                        and of the channels of chain blockIdx.y, one after another
//         one warpgroup copies, two multiply: 64 rows (32 later receivers) x 2 N columns (N earlier ones)
//         one unit   <-> 64 bytes of a receiver: 128 / BITS samples of both polarisations
// Shared  a ring of stages of some units of every receiver of both sides; copies are asynchronous

constexpr int BITS = 8;  // of the real and of the imaginary part: integers of 4 or 8, floats of 16
constexpr bool BLOCKS = true;  // the layout
constexpr bool OVERWRITES = true;
constexpr bool COUNTS_LOWEST = false;
constexpr int N_RECEIVERS = 256;
constexpr int N_TIMES = 16;  // samples of a batch
constexpr int RECEIVERS_J = 64;  // later receivers of a block: rows of its product
constexpr int RECEIVERS_I = 64;  // earlier ones: columns
constexpr bool STREAM = true;  // results are evicted first
constexpr bool PAIRED = false;  // two lanes write a whole sector
constexpr int N_THREADS = 384;  // blockDim.x
constexpr int UNITS_PER_STAGE = 4;  // of a receiver, that are staged at once
constexpr int N_STAGES = 7;  // that shared memory holds
constexpr int STAGE_BYTES = 32768;  // of both sides
constexpr int SHARED_BYTES = 229544;  // dynamic

constexpr int UNIT_BYTES = 64;  // of a receiver
constexpr int PIECES = UNIT_BYTES / 16;  // copies of a unit
constexpr int BATCH_BYTES = N_TIMES * BITS / 2;  // of a receiver
constexpr int BATCH_UNITS = (BATCH_BYTES + UNIT_BYTES - 1) / UNIT_BYTES;  // the last one is filled up with zeros
static_assert(BATCH_BYTES % 16 == 0, "a copy does not reach into the next batch");

using Sum = int;  // of a launch; a slice is so short that integers fit
using Result = int;
using Piece = int4;  // 16 bytes of them

// 4 bits become 8 in registers, twice as many: nibbles become the high halves of bytes, 16 times their value, with no
// sign to extend.
constexpr int PRODUCTS_PER_UNIT = BITS == 4 ? 2 : 1;
constexpr int SUM_SHIFT = BITS == 4 ? 8 : 0;  // sums are 2^SUM_SHIFT times too large

constexpr int IN_FLIGHT = 1;  // products under way while the next one's rows are loaded
constexpr int CHANNELS_PER_CHAIN = 8;  // channels of a block, one after another
constexpr bool TAPERED = true;  // chains become shorter towards the last
constexpr int BLOCKS_PER_CLUSTER = 4;  // blocks that copy for each other

constexpr bool CONVERTS = false;
constexpr int PRODUCTS_PER_STAGE = 4;
static_assert(UNITS_PER_STAGE * PRODUCTS_PER_UNIT == PRODUCTS_PER_STAGE);
constexpr int UNIT = RECEIVERS_J * UNIT_BYTES;  // of all receivers of a side
constexpr int SIDE = UNITS_PER_STAGE * UNIT;
constexpr bool IN_PLACE = CONVERTS && BITS != 4;  // converted where it lies, unless it becomes larger
constexpr int OPERAND_AT = BITS == 4 ? 2 * SIDE : SIDE;
constexpr int OPERAND = RECEIVERS_I * UNIT_BYTES;  // of one product
constexpr int PAIR_UNITS = 2 / PRODUCTS_PER_UNIT;  // units that two products need
static_assert(STAGE_BYTES == OPERAND_AT + PRODUCTS_PER_STAGE * OPERAND);
constexpr int GROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = 2;  // warpgroups
static_assert(N_THREADS == GROUP * (1 + CONVERTS + CONSUMERS));
constexpr int BUFFERS = IN_FLIGHT == 1 ? 2 : 4;  // of a thread's part of A: a divisor of PRODUCTS_PER_STAGE
constexpr int PRODUCER_REGISTERS = 24, CONVERTER_REGISTERS = PAIR_UNITS == 2 ? 72 : 56;  // of a thread, multiples of 8
constexpr int CONSUMER_REGISTERS = CONVERTS ? (512 - PRODUCER_REGISTERS - CONVERTER_REGISTERS) / CONSUMERS : 240;
static_assert(N_STAGES * (STAGE_BYTES + 24) == SHARED_BYTES, "as the launch has it: each stage has three barriers");
static_assert(RECEIVERS_J == 64 && RECEIVERS_I == 64, "rows of two consumers, and columns for each polarisation");

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

// The calling thread's number, read again. The compiler does not know that it is the same: it does not compute what
// follows from it before a loop, and keep it in registers, or in local memory, until it is used.
__device__ __forceinline__ int thread_again()
{
#ifdef AUTOTUNE_HOST
    return threadIdx.x;
#else
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}

// Registers move between warpgroups, from a pool that holds what the launch gave all threads: afterwards each thread
// has N. All threads of a warpgroup take part. Source: PTX ISA, "setmaxnreg", sm_90a.
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

// Copies of boxes of an array to shared memory by the tensor memory accelerator of sm_90 and later, and the barriers in
// shared memory that know when such copies have arrived. One thread issues a copy; nobody spends registers on it.
// The host has them, too. Source: PTX ISA, "Tensors" and "mbarrier".
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

__device__ __forceinline__ unsigned shared_address(const void* p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ unsigned char* shared_pointer(unsigned address)
{
    return static_cast<unsigned char*>(__cvta_shared_to_generic(address));
}

// A phase of a barrier is over when so many threads have arrived, and when all bytes that are expected are there.
__device__ __forceinline__ void init_barrier(unsigned barrier, int n_threads)
{
#ifdef AUTOTUNE_HOST
    cuda_host_init_barrier(barrier, n_threads);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(n_threads) : "memory");
#endif
}

// After the first threads' calls of init_barrier: copies, too, see the barriers.
__device__ __forceinline__ void publish_barriers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
#endif
}

__device__ __forceinline__ void arrive_and_expect(unsigned barrier, int n_bytes)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier, n_bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(n_bytes) : "memory");
#endif
}

// Returns when the phase of that parity is over: 0 for the first one, 1 for the next, and so on; a barrier that is new
// counts as being past a phase of parity 1.
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wait(barrier, parity);
#else
    unsigned is_over;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!is_over);
#endif
}

// What this thread wrote to shared memory before, copies and tensor cores see after.
__device__ __forceinline__ void publish_writes()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

// The box that starts at these coordinates, fastest axis first; its bytes count for the barrier.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap* map, unsigned barrier, int x, int y)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y});
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_box(
    unsigned to, const TensorMap* map, unsigned barrier, int x, int y, int z, int w)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y, z, w});
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4, %5, %6}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
#endif
}

// Products by the four warps of a warpgroup, for sm_90a only: A is 64 rows of 32 bytes in registers, as for lib/mma.cuh
// with 16 rows a warp; B is N columns of 32 bytes in shared memory; sums are added to where they are. They go on while
// the threads do, which must leave the registers of A and of the sums alone until they have waited.
// The host multiplies at once. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
// Needs     Sum, the type of the sums
// Provides  multiply, multiply_u8, begin_products, close_products, wait_for_products, rows_of_64_bytes
template <int N, bool ADDS = true>
__device__ __forceinline__ void multiply(Sum (&sums)[N / 2], const unsigned (&a)[4], unsigned long long b);

template <>
__device__ __forceinline__ void multiply<32>(
    Sum (&sums)[16], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wgmma_s8<32>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n32k32"
                 ".s32.s8.s8 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "{ %16, %17, %18, %19}, %20, "
                 "add; }"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]), "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

template <>
__device__ __forceinline__ void multiply<64>(
    Sum (&sums)[32], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wgmma_s8<64>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32"
                 ".s32.s8.s8 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{ %32, %33, %34, %35}, %36, "
                 "add; }"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]), "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]), "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]), "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]), "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]), "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

// Before the first product, and after threads have written to registers that the next one uses.
__device__ __forceinline__ void begin_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#endif
}

// The products since the last such call: a group.
__device__ __forceinline__ void close_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
}

// Wait until at most N groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
#endif
}

// What describes an operand to the hardware: rows of 64 bytes, pieces of 16 swizzled within them; groups of 8 rows lie
// 512 bytes apart. `address`: of the first row's 32 bytes.
__device__ __forceinline__ unsigned long long rows_of_64_bytes(unsigned address)
{
    constexpr unsigned long long SWIZZLE_64 = 2ull << 62, GROUP = 512ull / 16 << 32;
    constexpr unsigned UNUSED = 1 << 16;
    return (SWIZZLE_64 | GROUP) + ((address >> 4) + UNUSED);
}

// Clusters of blocks, of sm_90 and later: blocks that run at the same time, and reach each other's shared memory. A
// block is known by its rank, blockIdx.x % the blocks of a cluster, where clusters lie along x.
// The host runs them one after another, so there a block has no others. Source: PTX ISA, "Cluster of Cooperative Thread
// Arrays", "barrier.cluster", "mapa" and "cp.async.bulk.tensor".
// Needs     lib/tma.cuh (TensorMap, arrive, copy_box)
// Provides  RUN_TOGETHER, sync_cluster, arrive_at, copy_box_to
#ifdef AUTOTUNE_HOST
constexpr bool RUN_TOGETHER = false;
#else
constexpr bool RUN_TOGETHER = true;
#endif

// Waits for all threads of all blocks, but those that have ended: then published barriers are seen, and nothing else
// that was written. It brings the threads of a warp together, too.
__device__ __forceinline__ void sync_cluster()
{
#ifdef AUTOTUNE_HOST
    __syncthreads();
#else
    asm volatile("barrier.cluster.arrive.relaxed;\n"
                 "barrier.cluster.wait.acquire;"
                 :
                 :
                 : "memory");
#endif
}

// At the barrier of the block of that rank, which has the same address in its shared memory as in this block's. Whoever
// waits there knows that this thread has read what it read before. What it wrote, only threads of its own block see: to
// show it to others, too, takes hundreds of cycles.
__device__ __forceinline__ void arrive_at(unsigned barrier, int rank)
{
#ifdef AUTOTUNE_HOST
    arrive(barrier);
#else
    asm volatile("{ .reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }"
                 :
                 : "r"(barrier), "r"(rank)
                 : "memory");
#endif
}

// As copy_box(), to the same address of each block whose rank is a bit of `blocks`; the bytes count for the barrier of
// the same address in each.
__device__ __forceinline__ void copy_box_to(
    unsigned blocks, unsigned to, const TensorMap* map, unsigned barrier, int x, int y, int z, int w)
{
#ifdef AUTOTUNE_HOST
    copy_box(to, map, barrier, x, y, z, w);
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, { %3, %4, %5, %6}], [%2], %7;"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w),
                   "h"(static_cast<unsigned short>(blocks))
                 : "memory");
#endif
}

// The ring of stages in shared memory, and the three barriers of each: its copies are there, its operands are
// converted, it is released.
// Needs     nothing
// Provides  Ring: address, copied, converted, released, released_before, advance

// The stages in the order of their use, round and round; `parity` is that of the round.
struct Ring {
    unsigned base;  // of shared memory
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit Ring(unsigned base) : base(base) {}
    __device__ __forceinline__ unsigned address() const { return base + stage * STAGE_BYTES; }
    __device__ __forceinline__ unsigned copied() const { return base + N_STAGES * STAGE_BYTES + stage * 24; }
    __device__ __forceinline__ unsigned converted() const { return copied() + 8; }
    __device__ __forceinline__ unsigned released() const { return copied() + 16; }
    __device__ __forceinline__ unsigned released_before() const  // that of the stage before
    {
        return base + N_STAGES * STAGE_BYTES + (stage == 0 ? N_STAGES - 1 : stage - 1) * 24 + 16;
    }
    __device__ __forceinline__ void advance()
    {
        if (++stage == N_STAGES)
            stage = 0, parity ^= 1;
    }
};

// What a block works on: a chain of channels, and in each the batches of its slice.
// Needs     nothing
// Provides  Chain, chain_of; Range

// Consecutive channels of a block. Tapered, half of the channels are in chains of CHANNELS_PER_CHAIN, half of the
// others in chains of half of that, and so on, and the rest one by one: blocks start in this order, so that the last
// ones end together.
struct Chain {
    int first, end;
};

__device__ __forceinline__ Chain chain_of(int index, int n_channels)
{
    int length = CHANNELS_PER_CHAIN, first = 0;
    if constexpr (TAPERED) {
        for (; length > 1; length /= 2) {
            const int n = (n_channels - first) / 2 / length;
            if (index < n)
                break;
            index -= n, first += n * length;
        }
    }
    first += index * length;
    return {first, min(first + length, n_channels)};
}

// The batches of a slice, in units.
struct Range {
    int first_batch, n_units;
};

// Clusters: their blocks take tiles of the same channels and times, such that some of them share receivers.
// Needs     triangle.cuh (Block, block_of), lib/cluster.cuh (RUN_TOGETHER, arrive_at), lib/tma.cuh (arrive)
// Provides  NOBODY; Member, member_of; Share, share_of; Sides; Release
// Partners  two blocks of a cluster whose tiles have the same later receivers (same_j), or the same earlier ones
//           (same_i); a block may have one of each: four blocks then have a square of tiles
// Two blocks that need the same side each copy half of its units and multicast it to both: the one of the lower rank
// the first half. A block without partners copies whole sides, as without clusters. A block without a tile ends at
// once.
constexpr int NOBODY = -1;

struct Member {
    Block tile;
    int rank;
    int same_j, same_i;  // ranks of partners

    __device__ __forceinline__ bool has_tile() const { return BLOCKS_PER_CLUSTER == 1 || tile.first_j >= 0; }
};

// The row and the column of the tile of each block along x, and its partners' ranks.
__constant__ const signed char MEMBERS[][4] = {
    {1, 0, 1, 2}, {1, 1, 0, 3}, {2, 0, 3, 0}, {2, 1, 2, 1},
    {3, 0, 1, -1}, {3, 1, 0, -1}, {3, 2, 3, -1}, {3, 3, 2, -1},
    {0, 0, -1, -1}, {2, 2, -1, -1}, {-1, -1, -1, -1}, {-1, -1, -1, -1},
};

__device__ __forceinline__ Member member_of(int index)
{
    const signed char(&own)[4] = MEMBERS[index];
    const Block tile = {own[0] * RECEIVERS_J, own[1] * RECEIVERS_I};
    if constexpr (RUN_TOGETHER)
        return {tile, index % BLOCKS_PER_CLUSTER, own[2], own[3]};
    else
        return {tile, index % BLOCKS_PER_CLUSTER, NOBODY, NOBODY};
}

// What a block copies of a side of a stage.
struct Share {
    unsigned blocks;  // for whom: a bit for each rank, or 0: the whole side for itself
    int first;  // unit of the half that it copies for them
};

__device__ __forceinline__ Share share_of(int rank, int partner)
{
    if (partner == NOBODY)
        return {0, 0};
    return {1u << rank | 1u << partner, rank < partner ? 0 : UNITS_PER_STAGE / 2};
}

// Where the sides of a stage lie. On the diagonal they are the same receivers, and one copy serves both, unless it is
// converted where it lies, or partners have halves of both.
struct Sides {
    bool has_j, has_i;  // whether later, and earlier, receivers are copied
    int later, earlier;  // places of their units

    __device__ __forceinline__ explicit Sides(const Member& own)
    {
        const bool is_single = !IN_PLACE && own.tile.first_j == own.tile.first_i;
        has_j = !is_single || own.same_j != NOBODY;
        has_i = !is_single || own.same_i != NOBODY || own.same_j == NOBODY;
        later = has_j ? 0 : SIDE, earlier = has_i ? SIDE : 0;
    }
};

// A warp of a consumer tells all who copy to its block that it has read a stage: each of three lanes tells one block.
struct Release {
    int rank;  // of that block

    __device__ __forceinline__ explicit Release(const Member& own)
    {
        const int lane = threadIdx.x % 32;
        rank = lane == 0 ? own.rank : NOBODY;
        if constexpr (BLOCKS_PER_CLUSTER > 1) {
            if (lane == 1)
                rank = own.same_j;
            if (lane == 2)
                rank = own.same_i;
        }
    }

    __device__ __forceinline__ void operator()(unsigned barrier) const
    {
        if (rank == NOBODY)
            return;
        if constexpr (BLOCKS_PER_CLUSTER > 1)
            arrive_at(barrier, rank);
        else
            arrive(barrier);
    }
};

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
            const int batch = range.first_batch + (unit + i) / BATCH_UNITS;
            const int in_batch = (unit + i) % BATCH_UNITS * UNIT_BYTES;
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

// Products by wgmma, of a consumer: a warpgroup with 32 later receivers, and N earlier ones.
// Needs     octet.cuh (Octet, lane_offset, load_octet, place_of), operands.cuh (plain_words, turned_words),
//           lowest.cuh (Lowest), store.cuh (Sums, put), triangle.cuh (Block), wgmma_ring.cuh (Ring),
//           wgmma_chain.cuh (Range), wgmma_cluster.cuh (Release, Sides), lib/thread.cuh (thread_again),
//           lib/tma.cuh (shared_pointer, wait),
//           lib/wgmma.cuh (begin_products, close_products, multiply, rows_of_64_bytes, wait_for_products)
// Provides  multiply_slice; skip_slice

// Returns where the row of a lane starts. A warp has polarisation a of 8 later receivers, then b of the same; in layout
// blocks both of a receiver one after the other, so that the lanes of two rows have 32 contiguous bytes of 32-bit
// results.
__device__ __forceinline__ int row_offset()
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
    return BLOCKS ? place_of(matrix % 2 * 4 + lane % 8 / 2, lane % 2 * 2 + matrix / 2) : lane_offset<false>();
}

// The lane's part of A for one product, of 32 later receivers' rows; words of the same unit serve PRODUCTS_PER_UNIT.
struct Rows {
    unsigned plain[4], turned[4];

    __device__ __forceinline__ void make(const Octet& octet, int product)
    {
#pragma unroll
        for (int pol = 0; pol < 2; ++pol) {
            unsigned words[2];
            plain_words(words, octet.words[pol], product);
            plain[pol] = words[0], plain[pol + 2] = words[1];
            turned_words(words, octet.words[pol], product);
            turned[pol] = words[0], turned[pol + 2] = words[1];
        }
    }
};

// Returns the sums of one polarisation of the earlier receivers.
template <int N>
__device__ __forceinline__ Sum (&half_of(Sum (&sums)[N], int pol))[N / 2]
{
    return *reinterpret_cast<Sum(*)[N / 2]>(sums + pol * (N / 2));
}

// Adds the products of a stage's step with N earlier receivers: real parts from plain rows, negative imaginary ones
// from turned.
template <int N>
__device__ __forceinline__ void add_product(Sum (&re)[N], Sum (&im)[N], const Rows& rows, unsigned operands, int step)
{
    constexpr int OF_B = (CONVERTS ? OPERAND : 32) / 16;  // from polarisation a to b, in the units of a description
    operands += CONVERTS ? step / 2 * 2 * OPERAND + step % 2 * 32 : step * OPERAND;
    const unsigned long long columns = rows_of_64_bytes(operands);
    begin_products();
    if constexpr (CONVERTS && N == RECEIVERS_I) {  // all rows, one after another
        multiply<2 * N>(re, rows.plain, columns);
        multiply<2 * N>(im, rows.turned, columns);
    } else {
        multiply<N>(half_of(re, 0), rows.plain, columns);
        multiply<N>(half_of(re, 1), rows.plain, columns + OF_B);
        multiply<N>(half_of(im, 0), rows.turned, columns);
        multiply<N>(half_of(im, 1), rows.turned, columns + OF_B);
    }
    close_products();
}

__device__ __forceinline__ void wait_for_stage(const Ring& ring)
{
    wait(ring.copied(), ring.parity);
    if constexpr (CONVERTS)
        wait(ring.converted(), ring.parity);
}

// Adds the products of all units of a slice. A stage is released when the first products of the next one are under way.
template <int N>
__device__ __forceinline__ void add_slice(
    Sum (&re)[N], Sum (&im)[N], Ring& ring, int n_units, unsigned row, int operand, const Release& release,
    Lowest& lowest)
{
    Rows rows[BUFFERS];
#pragma unroll 1
    for (int stage = 0; stage < n_units / UNITS_PER_STAGE; ++stage) {
        wait_for_stage(ring);
        // Shuffled: then the compiler knows it to be the same in all lanes, and describes operands in uniform registers
        const unsigned operands = __shfl_sync(0xffffffffu, ring.address() + operand, 0);
        Octet octet;
#pragma unroll
        for (int step = 0; step < PRODUCTS_PER_STAGE; ++step) {
            if (step % PRODUCTS_PER_UNIT == 0) {
                octet = load_octet<false>(shared_pointer(ring.address() + row + step / PRODUCTS_PER_UNIT * UNIT));
                lowest.add(octet);
            }
            rows[step % BUFFERS].make(octet, step % PRODUCTS_PER_UNIT);
            add_product<N>(re, im, rows[step % BUFFERS], operands, step);
            wait_for_products<IN_FLIGHT>();
            if (step == IN_FLIGHT - 1 && stage > 0)
                release(ring.released_before());
        }
        ring.advance();
    }
    wait_for_products<0>();
    if (n_units >= UNITS_PER_STAGE)
        release(ring.released_before());
    if (n_units % UNITS_PER_STAGE == 0)
        return;
    wait_for_stage(ring);  // one that is full in part
#pragma unroll 1
    for (int unit = 0; unit < n_units % UNITS_PER_STAGE; ++unit) {
        const Octet octet = load_octet<false>(shared_pointer(ring.address() + row + unit * UNIT));
        lowest.add(octet);
#pragma unroll
        for (int product = 0; product < PRODUCTS_PER_UNIT; ++product) {
            rows[0].make(octet, product);
            add_product<N>(re, im, rows[0], ring.address() + operand, unit * PRODUCTS_PER_UNIT + product);
            wait_for_products<0>();
        }
    }
    release(ring.released());
    ring.advance();
}

// Makes the results of a slice.
template <int N>
__device__ __forceinline__ void multiply_slice(
    Result* results, Ring& ring, const Block& block, const Sides& sides, const Range& range, int consumer,
    const Release& release, Lowest& lowest)
{
    Sum re[N], im[N];  // of polarisation a of the earlier receivers, then b
#pragma unroll
    for (int i = 0; i < N; ++i)
        re[i] = im[i] = 0;
    {
        const int first = consumer * 32 + threadIdx.x / 32 % 4 * 8;  // of the warp's receivers
        const unsigned row = sides.later + first * UNIT_BYTES + row_offset();
        const int operand = CONVERTS ? OPERAND_AT : sides.earlier;  // its place in a stage
        add_slice<N>(re, im, ring, range.n_units, row, operand, release, lowest);
    }
    if (!OVERWRITES && range.n_units == 0)
        return;
    const int thread = thread_again();  // so that nothing of it lives in a register meanwhile
    const int lane = thread % 32, first_j = block.first_j + consumer * 32 + thread / 32 % 4 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // rows 0 to 7, and 8 to 15
        const int j = first_j + (BLOCKS ? half * 4 + lane / 8 : lane / 4), q = BLOCKS ? lane / 4 % 2 : half;
        Result* of_j = results + static_cast<long long>(j * (j + 1) / 2) * 8 + q * 4;
#pragma unroll
        for (int octet = 0; octet < N / 8; octet += 2) {
            constexpr int TOGETHER = 4;  // columns of two octets
            Sums<Sum, 2> both[TOGETHER];  // polarisations of i
            Result* to[TOGETHER];
            bool valid[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                const int i = block.first_i + (octet + k / 2) * 8 + lane % 4 * 2 + k % 2;
#pragma unroll
                for (int p = 0; p < 2; ++p) {
                    const int place = p * (N / 2) + (octet + k / 2) * 4 + half * 2 + k % 2;
                    both[k].re[p] = re[place], both[k].im[p] = -im[place];
                }
                to[k] = of_j + i * 8, valid[k] = j < N_RECEIVERS && i <= j;
            }
            put(to, both, valid);
        }
    }
}

// Stands for multiply_slice() where all receivers are past the last one: it keeps the ring going.
__device__ __forceinline__ void skip_slice(Ring& ring, const Range& range, const Release& release)
{
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS_PER_STAGE) {
        wait(ring.copied(), ring.parity);
        release(ring.released());
        ring.advance();
    }
}

// MMA wgmma, for sm_90a only: the first warpgroup of a block copies, the last two multiply; one between them may
// convert.
//   stage       4 products along K of 64 later and 64 earlier receivers: UNITS_PER_STAGE units of a receiver
//   consumer    64 rows: both polarisations of 32 later receivers; 2 x N columns: of N earlier receivers, first all
//               polarisations a, then all b; each product twice, for real and for imaginary parts
//   operand     what the tensor cores read of the earlier receivers: rows of 64 bytes, swizzled, of a receiver's
//               polarisation a and then b, for one product: voltages as they are
// Needs     triangle.cuh (Block, first_of_slice), wgmma_ring.cuh (Ring), wgmma_chain.cuh (Chain, chain_of, Range),
//           wgmma_cluster.cuh (Member, member_of, NOBODY, Sides, Release), wgmma_copy.cuh (copy_slice, await_partners),
//           wgmma_convert.cuh (convert_slice), wgmma_multiply.cuh (multiply_slice, skip_slice), lowest.cuh (Lowest),
//           lib/tma.cuh (TensorMap, shared_address, init_barrier, publish_barriers), lib/cluster.cuh (sync_cluster),
//           lib/registers.cuh (give_registers, take_registers)
// Provides  correlate
extern "C" __global__ void __cluster_dims__(BLOCKS_PER_CLUSTER, 1, 1) __launch_bounds__(N_THREADS, 1) correlate(
    Result* __restrict__ results,
    const unsigned char* __restrict__ voltages, int n_channels, int n_batches, int first_batch, int n_used,
    const __grid_constant__ TensorMap map)
{
    extern __shared__ __align__(1024) unsigned char dynamic_shared[];
    Ring ring(shared_address(dynamic_shared));
    const Member own = member_of(blockIdx.x);
    if (threadIdx.x == 0) {
        const int n_blocks = 1 + (own.same_j != NOBODY) + (own.same_i != NOBODY);  // that this one copies to
        for (Ring each = ring; each.parity == 0; each.advance()) {
            init_barrier(each.copied(), 1);
            init_barrier(each.converted(), RECEIVERS_I / 32);
            init_barrier(each.released(), n_blocks * CONSUMERS * GROUP / 32);
        }
        publish_barriers();
    }
    if constexpr (BLOCKS_PER_CLUSTER > 1) {
        sync_cluster();  // the barriers of all blocks are ready
        if (!own.has_tile())
            return;
    } else {
        __syncthreads();  // the barriers are ready
    }

    const Block block = own.tile;
    const Sides sides(own);
    const Chain chain = chain_of(blockIdx.y, n_channels);
    const int begin = first_of_slice(blockIdx.z, gridDim.z, n_used);
    const int end = first_of_slice(blockIdx.z + 1, gridDim.z, n_used);
    const Range range = {first_batch + begin, (end - begin) * BATCH_UNITS};
    const int role = threadIdx.x / GROUP;
    if (role == 0) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int channel = chain.first; channel < chain.end; ++channel)
                copy_slice(ring, map, own, sides, range, channel);
            if constexpr (BLOCKS_PER_CLUSTER > 1)
                await_partners(ring);
        }
    } else if (CONVERTS && role == 1) {
        give_registers<CONVERTER_REGISTERS>();
        for (int channel = chain.first; channel < chain.end; ++channel)
            convert_slice(ring, sides, range);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const long long n_baselines = N_RECEIVERS * (N_RECEIVERS + 1ll) / 2;
        const int consumer = role - 1 - CONVERTS;
        const Release release(own);
        Lowest lowest;
        for (int channel = chain.first; channel < chain.end; ++channel) {
            Result* to = results + (blockIdx.z * static_cast<long long>(n_channels) + channel) * n_baselines * 8;
            // On the diagonal, the first consumer's rows need the first half of the columns only.
            if (block.first_j + consumer * 32 >= N_RECEIVERS)
                skip_slice(ring, range, release);
            else if (block.first_j == block.first_i && consumer == 0)
                multiply_slice<32>(to, ring, block, sides, range, consumer, release, lowest);
            else
                multiply_slice<64>(to, ring, block, sides, range, consumer, release, lowest);
        }
    }
}
