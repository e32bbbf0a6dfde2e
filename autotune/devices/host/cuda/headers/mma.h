// Warp matrices of 16 x 16 x 16 (nvcuda::wmma). A lane holds 8 consecutive elements of a matrix, rows after rows; CUDA
// leaves open which elements a lane holds.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
    static_assert(m == 16 && n == 16 && k == 16, "the host device has no warp matrices but those of 16 x 16 x 16");
    static constexpr int num_elements = 8;
    T x[num_elements];
};

template <class Use, class T, class Layout>
CUDA_HOST_INLINE void fill_fragment(fragment<Use, 16, 16, 16, T, Layout>& to, T value) {
    for (T& element : to.x) element = value;
}
// Where in memory the element is that this lane holds.
CUDA_HOST_INLINE unsigned element_at(int element, unsigned stride, bool by_rows) {
    const unsigned number = unsigned(8 * cuda_host::lane() + element);
    return by_rows ? number / 16 * stride + number % 16 : number % 16 * stride + number / 16;
}
template <class Use, class T, class Layout>
CUDA_HOST_INLINE void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& to, const T* from, unsigned stride) {
    for (int i = 0; i < 8; i++) to.x[i] = from[element_at(i, stride, std::is_same<Layout, row_major>::value)];
}
template <class T>
CUDA_HOST_INLINE void load_matrix_sync(fragment<accumulator, 16, 16, 16, T>& to, const T* from, unsigned stride,
                                       layout_t layout) {
    for (int i = 0; i < 8; i++) to.x[i] = from[element_at(i, stride, layout == mem_row_major)];
}
template <class T>
CUDA_HOST_INLINE void store_matrix_sync(T* to, const fragment<accumulator, 16, 16, 16, T>& from, unsigned stride,
                                        layout_t layout) {
    for (int i = 0; i < 8; i++) to[element_at(i, stride, layout == mem_row_major)] = from.x[i];
}

template <class T, class Sum>
struct MatrixOperands {
    T a[8], b[8];
    Sum c[8];
};
template <class Sum>
struct MatrixResult {
    Sum d[8];
    unsigned present;
};

template <class T, class Sum>
CUDA_HOST_UNCHECKED void multiply_fragments(unsigned present, const cuda_host::Operands& in, cuda_host::Operands& out) {
    using Wide = typename std::conditional<std::is_same<Sum, int>::value, int64_t, double>::type;
    MatrixOperands<T, Sum> lanes[32];
    for (int lane = 0; lane < 32; lane++) ::memcpy(&lanes[lane], in[lane], sizeof lanes[lane]);
    for (int lane = 0; lane < 32; lane++) {
        MatrixResult<Sum> result;
        for (int i = 0; i < 8; i++) {
            const int row = lane / 2, column = lane % 2 * 8 + i;
            Wide sum = Wide(float(lanes[lane].c[i]));
            if (std::is_same<Sum, int>::value) sum = Wide(lanes[lane].c[i]);
            for (int k = 0; k < 16; k++)
                sum += Wide(float(lanes[2 * row + k / 8].a[k % 8])) * Wide(float(lanes[2 * k + column / 8].b[column % 8]));
            result.d[i] = Sum(sum);
        }
        result.present = present;
        ::memcpy(out[lane], &result, sizeof result);
    }
}

template <class Sum, class T, class LayoutA, class LayoutB>
CUDA_HOST_INLINE void mma_sync(fragment<accumulator, 16, 16, 16, Sum>& to,
                               const fragment<matrix_a, 16, 16, 16, T, LayoutA>& a,
                               const fragment<matrix_b, 16, 16, 16, T, LayoutB>& b,
                               const fragment<accumulator, 16, 16, 16, Sum>& c, CUDA_HOST_SITE) {
    MatrixOperands<T, Sum> given;
    MatrixResult<Sum> taken;
    for (int i = 0; i < 8; i++) given.a[i] = a.x[i], given.b[i] = b.x[i], given.c[i] = c.x[i];
    static_assert(sizeof given <= cuda_host::max_operand_bytes, "the operands of a lane are exchanged at once");
    cuda_host_collective(cuda_host::every_lane, "mma_sync", &given, sizeof given, &taken, sizeof taken,
                         multiply_fragments<T, Sum>, site);
    cuda_host::need_every_lane(taken.present, "mma_sync", site);
    for (int i = 0; i < 8; i++) to.x[i] = taken.d[i];
}

}  // namespace wmma
}  // namespace nvcuda
