// Tensor cores: products of small matrices that a warp holds in its registers, and the loads that fill these. After the
// PTX definitions of mma.sync and ldmatrix; the layouts are told in bits in templates/lib/mma.cuh.
//
// All 32 lanes must take part. A lane gives its registers, the last one to arrive computes for all, and each lane takes
// its own registers of the result.
#pragma once

namespace cuda_host {

constexpr unsigned every_lane = 0xffffffffu;

// Stops a lane whose warp was not whole: the hardware's result is undefined then.
CUDA_HOST_INLINE void need_every_lane(unsigned present, const char* name, Site site) {
    if (present != every_lane)
        cuda_host_stop(site, "%s: lanes 0x%08x take no part, and all 32 must", name, ~present);
}

// What a lane gives and takes. A row of `a`, and a column of `b`, has 8 bytes for each register of b: 16 or 32.
template <int n_b>
struct MmaIn {
    unsigned a[2 * n_b], b[n_b], c[4];
};
template <class Sum>
struct MmaOut {
    Sum c[4];
    unsigned present;
};

// c[row][column] += sum over k of a[row][k] b[column][k], for 16 rows and 8 columns. In unsigned integers, which wrap; or
// in double, whose products of halves are exact, and whose one rounding at the end is within the hardware's own.
template <class Row, class Column, class Sum, int n_b>
CUDA_HOST_UNCHECKED void multiply_matrices(unsigned present, const Operands& in, Operands& out) {
    using Wide = typename std::conditional<std::is_same<Sum, int>::value, unsigned, double>::type;
    static_assert(sizeof(Row) == sizeof(Column), "elements of one size");
    constexpr int n_elements = 4 / int(sizeof(Row)), n_k = 4 * n_b * n_elements;
    Wide a[16][n_k], b[n_k][8], c[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const int group = lane / 4, word = lane % 4;
        MmaIn<n_b> own;
        memcpy(&own, in[lane], sizeof own);
        for (int i = 0; i < n_b; i++) {
            Row rows[2][n_elements];
            Column columns[n_elements];
            memcpy(rows, &own.a[2 * i], 8);
            memcpy(columns, &own.b[i], 4);
            for (int e = 0; e < n_elements; e++) {
                const int k = (4 * i + word) * n_elements + e;
                a[group][k] = Wide(rows[0][e]);
                a[group + 8][k] = Wide(rows[1][e]);
                b[k][group] = Wide(columns[e]);
            }
        }
        Sum sums[4];
        memcpy(sums, own.c, sizeof sums);
        for (int i = 0; i < 4; i++) c[group + i / 2 * 8][2 * word + i % 2] = Wide(sums[i]);
    }
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < n_k; k++)
            for (int column = 0; column < 8; column++) c[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < 32; lane++) {
        MmaOut<Sum> result;
        for (int i = 0; i < 4; i++) result.c[i] = Sum(c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
        result.present = present;
        memcpy(out[lane], &result, sizeof result);
    }
}

template <class Row, class Column, class Sum, int n_b>
CUDA_HOST_UNCHECKED void mma(Sum* c, const unsigned* a, const unsigned* b, const char* name, Site site) {
    static_assert(sizeof(MmaIn<n_b>) <= max_operand_bytes, "the operands of a lane are exchanged at once");
    MmaIn<n_b> given;
    memcpy(given.a, a, sizeof given.a);
    memcpy(given.b, b, sizeof given.b);
    memcpy(given.c, c, sizeof given.c);
    MmaOut<Sum> taken;
    cuda_host_collective(every_lane, name, &given, sizeof given, &taken, sizeof taken,
                         multiply_matrices<Row, Column, Sum, n_b>, site);
    need_every_lane(taken.present, name, site);
    memcpy(c, taken.c, sizeof taken.c);
}

// Lane l gives row l % 8 of matrix l / 8, 16 bytes, and takes a word of row l / 4 of each matrix, or a column's.
struct MatricesOut {
    unsigned word[4], present;
};

template <bool transposed>
CUDA_HOST_UNCHECKED void deal_matrices(unsigned present, const Operands& in, Operands& out) {
    for (int lane = 0; lane < 32; lane++) {
        MatricesOut result;
        for (int matrix = 0; matrix < 4; matrix++)
            for (int half = 0; half < 2; half++) {
                const int along = lane % 4 * 2 + half, across = lane / 4;
                const int row = transposed ? along : across, column = transposed ? across : along;
                memcpy(reinterpret_cast<char*>(&result.word[matrix]) + 2 * half, in[8 * matrix + row] + 2 * column, 2);
            }
        result.present = present;
        memcpy(out[lane], &result, sizeof result);
    }
}

template <int n, bool transposed>
CUDA_HOST_UNCHECKED void ldmatrix(unsigned* words, const void* row, const char* name, Site site) {
    unsigned char given[16] = {};
    if (cuda_host::lane() < 8 * n) {  // the addresses of the other lanes are ignored
        if (uintptr_t(row) % 16)
            cuda_host_stop(site, "misaligned address: a row of %s needs a multiple of 16", name);
        cuda_host_note_read(row, 16, site);
        memcpy(given, row, 16);
    }
    MatricesOut taken;
    cuda_host_collective(every_lane, name, given, sizeof given, &taken, sizeof taken, deal_matrices<transposed>, site);
    need_every_lane(taken.present, name, site);
    memcpy(words, taken.word, 4 * n);
}

// A warp's 16 rows of wgmma, by n columns of 32 bytes in shared memory that `b` describes (PTX ISA, "Matrix Descriptor
// Format"): octets of columns, two pieces of 16 bytes each. At once: that is one of the times at which hardware may do it.
template <class Row, class Column, class Sum, int n>
CUDA_HOST_UNCHECKED void wgmma(Sum* c, const unsigned* a, unsigned long long b, const char* name, Site site) {
    const unsigned long long start = (b & 0x3fff) * 16, swizzle = b >> 62, octet = (b >> 32 & 0x3fff) * 16;
    if (swizzle != 0 && swizzle != 2)
        cuda_host_stop(site, "%s: of swizzled operands the host knows those of 64 bytes only", name);
    const unsigned long long column = swizzle ? 64 : 16, piece = swizzle ? 16 : (b >> 16 & 0x3fff) * 16;
    for (int i = 0; i < n / 8; i++) {
        unsigned words[2];
        for (int r = 0; r < 2; r++) {
            unsigned long long at = start + i * octet + lane() / 4 * column + r * piece + lane() % 4 * 4;
            if (swizzle) at ^= at >> 3 & 0x30;
            const char* from = static_cast<const char*>(cuda_host_dynamic_shared()) + at;
            cuda_host_note_read(from, 4, site);
            memcpy(&words[r], from, 4);
        }
        mma<Row, Column, Sum, 2>(c + 4 * i, a, words, name, site);
    }
}

}  // namespace cuda_host

template <int n>
CUDA_HOST_INLINE void cuda_host_wgmma_s8(int* c, const unsigned* a, unsigned long long b, CUDA_HOST_SITE) {
    cuda_host::wgmma<int8_t, int8_t, int, n>(c, a, b, "wgmma of s8", site);
}
template <int n>
CUDA_HOST_INLINE void cuda_host_wgmma_u8(int* c, const unsigned* a, unsigned long long b, CUDA_HOST_SITE) {
    cuda_host::wgmma<uint8_t, int8_t, int, n>(c, a, b, "wgmma of u8 and s8", site);
}
template <int n>
CUDA_HOST_INLINE void cuda_host_wgmma_f16(float* c, const unsigned* a, unsigned long long b, CUDA_HOST_SITE) {
    cuda_host::wgmma<_Float16, _Float16, float, n>(c, a, b, "wgmma of f16", site);
}
CUDA_HOST_INLINE void cuda_host_mma_m16n8k32_s8(int* c, const unsigned* a, const unsigned* b, CUDA_HOST_SITE) {
    cuda_host::mma<int8_t, int8_t, int, 2>(c, a, b, "mma.m16n8k32 of s8", site);
}
CUDA_HOST_INLINE void cuda_host_mma_m16n8k16_s8(int* c, const unsigned* a, const unsigned* b, CUDA_HOST_SITE) {
    cuda_host::mma<int8_t, int8_t, int, 1>(c, a, b, "mma.m16n8k16 of s8", site);
}
CUDA_HOST_INLINE void cuda_host_mma_m16n8k16_f16(float* c, const unsigned* a, const unsigned* b, CUDA_HOST_SITE) {
    cuda_host::mma<_Float16, _Float16, float, 2>(c, a, b, "mma.m16n8k16 of f16", site);
}
template <int n>
CUDA_HOST_INLINE void cuda_host_ldmatrix(unsigned* words, const void* row, CUDA_HOST_SITE) {
    cuda_host::ldmatrix<n, false>(words, row, "ldmatrix", site);
}
template <int n>
CUDA_HOST_INLINE void cuda_host_ldmatrix_trans(unsigned* words, const void* row, CUDA_HOST_SITE) {
    cuda_host::ldmatrix<n, true>(words, row, "ldmatrix.trans", site);
}
