// Products on tensor cores, by mma.sync: a warp multiplies small matrices in the registers of its 32 lanes, and all
// lanes must take part. A row of A and a column of B have 16 or 32 bytes, whatever the type of their elements. Elements
// lie in lane l4 l3 l2 l1 l0 as follows (r1 of A and r0 of B are absent if rows have 16 bytes):
//     A (16 rows)       register r1 r0       row: r0 l4 l3 l2      byte: r1 l1 l0 and two bits in the register
//     B (8 columns)     register r0       column: l4 l3 l2         byte: r0 l1 l0 and two bits in the register
//     C (16 x 8 sums)   register r1 r0       row: r1 l4 l3 l2    column: l1 l0 r0
__device__ __forceinline__ void mma(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])  // rows of 32 int8
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

__device__ __forceinline__ void mma(int (&c)[4], const unsigned (&a)[2], const unsigned (&b)[1])  // rows of 16 int8
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

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])  // rows of 16 halves
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

// Loads N (1, 2 or 4) matrices of 8 rows of 16 bytes from shared memory. Lane l4 .. l0 passes the address of row
// l2 l1 l0 of matrix l4 l3, a multiple of 16; addresses from lanes 8 N and above are ignored. The lane receives word
// l1 l0 of row l4 l3 l2 of each matrix. So a register receives 8 rows of 16 bytes of A or B.
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

// Does the same for matrices of 16-bit elements and transposes them: a lane receives elements l1 l0 0 and l1 l0 1 of
// column l4 l3 l2.
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
