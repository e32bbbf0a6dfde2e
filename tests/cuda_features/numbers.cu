// Numbers and their functions. Each kernel: 2 blocks of 64 threads; x has 128 floats, and so has y.
#include <assert.h>
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <mma.h>
#include <stdint.h>
#include <stdio.h>
#include <cfloat>
#include <cmath>
#include <limits>

extern "C" __global__ void bit_counts(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = int(x[i]);
    y[i] = float(__popc(v) + 10 * __clz(v) + 1000 * __ffs(v) + int(__brev(unsigned(v)) >> 25) * 32);
}

extern "C" __global__ void byte_selection(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned v = unsigned(x[i]);
    y[i] = float(__byte_perm(v, 7u, 0x4440) % 65536u + __funnelshift_l(v << 24, 0u, 8));
}

extern "C" __global__ void dot_products_of_bytes(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = float(__dp4a(int(x[i]) * 0x01010101, 0x01020304, 5));
}

extern "C" __global__ void integer_intrinsics(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = int(x[i]);
    y[i] = float(__mul24(v, 3) + int(__umulhi(unsigned(v) << 24, 256u)) + int(__sad(v, 10, 1u)) + __hadd(v, 1));
}

extern "C" __global__ void vector_types(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int4 a = make_int4(int(x[i]), 1, 2, 3);
    const uchar4 b = make_uchar4(1, 2, 3, 4);
    const double2 c = make_double2(0.5, 0.25);
    y[i] = float(a.x + a.w + b.y) + float(c.x + c.y) + float(sizeof(float3));
}

extern "C" __global__ void halves(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half v = __float2half(x[i]);
    const __half2 pair = __hfma2(__half2half2(v), __floats2half2_rn(2.0f, 3.0f), __float2half2_rn(1.0f));
    y[i] = __low2float(pair) + __half2float(__hadd(__high2half(pair), v * __float2half(0.5f)));
}

extern "C" __global__ void bfloat16s(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __nv_bfloat16 v = __float2bfloat16(x[i] * 1.01f);
    const __nv_bfloat162 pair = __hmul2(__bfloat162bfloat162(v), __floats2bfloat162_rn(2.0f, 0.5f));
    y[i] = __low2float(pair) + __bfloat162float(__high2bfloat16(pair));
}

extern "C" __global__ void complex_numbers(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const cuFloatComplex a = make_cuFloatComplex(x[i], 1.0f), b = cuConjf(a);
    y[i] = cuCrealf(cuCmulf(a, b)) + cuCimagf(cuCaddf(a, a)) + cuCabsf(cuCdivf(a, a));
}

extern "C" __global__ void printing(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] < 0.0f) printf("thread %d: %f\n", i, x[i]);
    y[i] = x[i];
}

extern "C" __global__ void assertions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(x[i] >= 0.0f);
    y[i] = x[i];
}

extern "C" __global__ void special_numbers(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float v = i % 2 ? CUDART_INF_F : x[i];
    y[i] = (isnan(v - v) ? 1.0f : 0.0f) + (isinf(v) ? 2.0f : 0.0f) + (isfinite(v) ? 4.0f : 0.0f) + (signbit(-x[i]) ? 8.0f : 0.0f);
}

extern "C" __global__ void mathematics(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sine, cosine;
    sincosf(x[i], &sine, &cosine);
    y[i] = sine * sine + cosine * cosine + rsqrtf(x[i] + 1.0f) + fmaf(x[i], 2.0f, 1.0f) + powf(2.0f, 3.0f);
}

extern "C" __global__ void rounded_operations(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __fadd_rn(__fmul_rn(x[i], 0.1f), __fmaf_rn(x[i], 3.0f, 1.0f)) + __fdiv_rn(1.0f, 3.0f) + float(__float2int_rd(0.7f));
}

extern "C" __global__ void c_headers(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t v = uint32_t(x[i]);
    y[i] = float(v % (INT_MAX / 2)) + float(M_PI) + std::sqrt(4.0f) + (FLT_MAX == std::numeric_limits<float>::max() ? 1.0f : 0.0f);
}

extern "C" __global__ void matrices(const float* x, float* y) {
    using namespace nvcuda;
    __shared__ alignas(32) __half a[256];
    __shared__ alignas(32) float c[256];
    for (int k = threadIdx.x; k < 256; k += 64) a[k] = __float2half(x[k % 8] * float(k % 3));
    __syncthreads();
    if (threadIdx.x < 32) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
        wmma::fill_fragment(sum, 1.0f);
        wmma::load_matrix_sync(left, a, 16);
        wmma::load_matrix_sync(right, a, 16);
        wmma::mma_sync(sum, left, right, sum);
        wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
    }
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = c[blockIdx.x * 64 + threadIdx.x];
}
